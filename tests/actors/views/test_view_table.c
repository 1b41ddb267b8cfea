/* The rules by which views change, by rows: what happens, and the view of one partition
 * that comes of it. */
#include "actors/views/internal.h"
#include "muster/error.h"
#include "tests/support/test.h"
#include "tests/support/views/model.h"

#include <inttypes.h>

enum { GRACE_MS = 20, RECOVERY_MS = 1000 };

static const struct mu__view_config three = {3, 1, GRACE_MS, RECOVERY_MS, NULL};

/* Words that are separated by blanks, each with what it says of a server:
 *
 *     +0  a new process, which is linked and reports  x0  it crashes
 *     -0  its link goes down                          ~0  it is up, and has reported
 *     ^0  its link is up, without a report
 *     v0  it says that the learner is level           a0  its task is added
 *     l0  that the other replica is lost              d0  that it has diverged
 *     j0  as +0, with its journal                     k0  the same without a report
 *     w0  it is drained                               r0  it is ready to hand over
 *     s0  it has all in its journal
 *
 * or of the chief:
 *
 *     C   it crashes, and is started again, its store lost  t5  5 ms pass
 *     R   the same, and it reads what is recorded
 *     S   it goes on without its store
 *     m5  only the servers of these bits hear it from here on
 *     J   all processes from here on have journals
 */
struct story {
    const char *name;
    uint32_t backups;
    uint32_t partition;
    const char *events;
    const char *view; /* afterwards; a number of a restarted chief is "+" */
};

static const struct story stories[] = {
    {"nothing is placed without its home", 0, 0, "+1 +2", "-"},
    {"a link without a report is not enough", 0, 0, "^0", "-"},
    {"a partition is placed at its home", 0, 1, "+0 +1", "1: 1.1 - -"},
    {"and those of other homes there", 0, 5, "+0 +1 +2", "1: 2.1 - -"},
    {"with a backup, if another server is up", 1, 1, "+0 +1", "1: 1.1 0.1 -"},
    {"all servers are waited for before", 1, 0, "+0 +1 ^2 t999", "-"},
    {"for a while", 1, 0, "+0 +1 ^2 t1000", "1: 0.1 1.1 -"},
    {"else with a learner, as soon as one is", 1, 0, "+0 t1000 +1", "2: 0.1 - 1.1"},
    {"a level learner is the backup", 1, 0, "+0 t1000 +1 v0", "3: 0.1 1.1 -"},
    {"a learner that is lost makes room for the next", 1, 0, "+0 t1000 +1 +2 l0",
     "4: 0.1 - 2.1"},
    {"no backup without the option", 0, 0, "+0 +1 v0 t1000", "1: 0.1 - -"},
    {"one server alone has none, and is not waited for", 1, 0, "+0", "1: 0.1 - -"},
    {"with a second one there is a backup", 1, 0, "+0 a1 +1 v0", "3: 0.1 1.1 -"},

    {"a short break of the primary's link changes nothing", 1, 1, "+0 +1 -1 t19 ~1",
     "1: 1.1 0.1 -"},
    {"a longer one makes the backup the primary", 1, 1, "+0 +1 -1 t20", "2: 0.1 - -"},
    {"and the former one, empty, its learner", 1, 1, "+0 +1 -1 t20 ~1", "3: 0.1 - 1.1"},
    {"a crash is one, too", 1, 1, "+0 +1 x1 t20", "2: 0.1 - -"},
    {"a new process of the primary is no reason to wait", 1, 1, "+0 +1 x1 +1",
     "3: 0.1 - 1.2"},
    {"the same before its report", 1, 1, "+0 +1 x1 t1 ^1", "2: 0.1 - -"},
    {"a backup that is down cannot replace the primary", 1, 1, "+0 +1 -0 -1 t100",
     "1: 1.1 0.1 -"},
    {"until one of them comes back: the backup", 1, 1, "+0 +1 -0 -1 t100 ~0",
     "2: 0.1 - -"},
    {"or the primary", 1, 1, "+0 +1 -0 -1 t100 ~1", "1: 1.1 0.1 -"},
    {"a learner is never the primary", 1, 0, "+0 t1000 +1 -0 t1000", "2: 0.1 - 1.1"},
    {"a primary without a backup is waited for", 0, 0, "+0 +1 -0 t9999 ~0", "1: 0.1 - -"},
    {"its new process means that the partition is lost", 0, 0, "+0 +1 x0 t9999 +0",
     "2: 0.2 - - lost"},
    {"which is known at once, but placed after its report", 0, 0, "+0 +1 x0 ^0",
     "1: 0.1 - -"},
    {"both processes are new: lost, and placed at home", 1, 1, "+0 +1 x0 x1 +0 +1",
     "2: 1.2 0.2 - lost"},
    {"the learner is no backup: lost", 1, 0, "+0 t1000 +1 x0 +0", "3: 0.2 1.1 - lost"},

    {"a backup that only the chief cannot reach stays", 1, 1, "+0 +1 -0 t2000",
     "1: 1.1 0.1 -"},
    {"one that the primary cannot reach is dropped", 1, 1, "+0 +1 -0 l1", "2: 1.1 - -"},
    {"and another one filled", 1, 4, "+0 +1 +2 -0 l1", "3: 1.1 - 2.1"},
    {"a short break of the backup's link changes nothing", 1, 1, "+0 +1 -0 t19 ~0",
     "1: 1.1 0.1 -"},
    {"a backup with a new process is dropped at once", 1, 1, "+0 +1 x0 ^0", "2: 1.1 - -"},
    {"a lost backup is dropped on the primary's word", 1, 1, "+0 +1 l1", "3: 1.1 - 0.1"},
    {"a diverged one, too", 1, 1, "+0 +1 d1", "3: 1.1 - 0.1"},
    {"not on the word of the backup itself", 1, 1, "+0 +1 l0", "1: 1.1 0.1 - refused"},
    {"a backup is level in any case", 1, 1, "+0 +1 v1", "1: 1.1 0.1 -"},
    {"news of older views are ignored", 1, 0, "+0 t1000 m0 +1 v0", "2: 0.1 - 1.1"},
    {"a learner that is down is dropped", 1, 0, "+0 t1000 +1 -1 t20", "3: 0.1 - -"},

    {"a server that missed a view is told when it is back", 1, 1,
     "+0 +1 m1 -1 t20 m255 ~1 v0", "4: 0.1 1.1 -"},
    {"so is one that missed that it is the primary", 1, 1, "m0 +0 +1 m255 -1 t1 ~1 l1",
     "3: 1.1 - 0.1"},

    {"a restarted chief adopts views", 1, 1, "+0 +1 C ~0 ~1", "1: 1.1 0.1 -"},
    {"and places nothing before all have reported", 0, 2, "x2 +0 +1 C ~0 ~1 t999", "-"},
    {"then it does", 0, 2, "+0 +1 C ~0 ~1 +2", "+: 2.1 - -"},
    {"not even what a server is there for", 0, 1, "x2 +0 C ~0 +1 t999", "-"},
    {"until their time is over", 0, 1, "x2 +0 C ~0 +1 t1000", "+: 1.1 - -"},
    {"servers that know no views are not waited for", 0, 0, "C +0", "1: 0.1 - -"},
    {"the newest view counts: it comes last", 1, 4, "+0 +1 +2 -0 l1 C ~0 ~2 ~1",
     "3: 1.1 - 2.1"},
    {"or first", 1, 4, "+0 +1 +2 -0 l1 C ~1 ~2 ~0", "3: 1.1 - 2.1"},
    {"an adopted primary that is down is replaced", 1, 4, "+0 +1 +2 C ~0 ~1 ~2 -1 t20",
     "+: 0.1 - 2.1"},
    {"not before all have reported", 1, 4, "+0 +1 +2 C ~0 ~1 -1 t900", "1: 1.1 0.1 -"},
    {"unless their time is over", 1, 4, "+0 +1 +2 C ~0 ~1 -1 t1000", "+: 0.1 - -"},
    {"not if the backup has not reported", 1, 4, "+0 +1 +2 C ~1 ~2 -1 t9999",
     "1: 1.1 0.1 -"},
    {"who may have been made the primary", 1, 4, "+0 +1 +2 m1 -1 t20 C m255 ~1 ~2 ~0",
     "3: 0.1 - 2.1"},
    {"a primary that has not reported may have gone on", 1, 4, "+0 +1 +2 C ~0 ~2 t9999",
     "1: 1.1 0.1 -"},
    {"it comes back, and all is well", 1, 4, "+0 +1 +2 C ~0 ~2 t9999 ~1", "1: 1.1 0.1 -"},
    {"it does not: that is a loss", 1, 4, "+0 +1 +2 C ~0 ~2 x1 +1", "+: 1.2 2.1 - lost"},
    {"but not while others may know more", 1, 4, "+0 +1 +2 C ~0 x1 +1 t900",
     "1: 1.1 0.1 -"},
    {"a backup's new process proves that the old is dead", 1, 4, "+0 +1 +2 C ~1 ~2 x0 +0",
     "+: 1.1 - 0.2"},
    {"a backup that had not heard of its view hears of it", 1, 4,
     "+0 +1 m2 +2 m255 C ~1 ~2 ~0 -1 t20", "+: 0.1 - 2.1"},
    {"so does a primary", 1, 4, "+0 +1 m1 +2 m255 C ~0 ~2 ~1 l1", "+: 1.1 - 0.1"},
    {"news that came too early are kept", 1, 4, "+0 +1 +2 C ~1 ~0 l1 ~2", "+: 1.1 - 0.1"},
    {"what a chief has decided gives way to nobody", 1, 4,
     "+0 +1 +2 m4 l1 C m255 ~0 ~1 t1000 -1 t20 ~2", "+: 0.1 - 2.1"},

    {"recorded views stay", 1, 1, "+0 +1 R ~0 ~1", "1: 1.1 0.1 -"},
    {"before anybody has reported", 1, 1, "+0 +1 R", "1: 1.1 0.1 -"},
    {"they are not changed before all have reported", 1, 4, "+0 +1 +2 R ~0 ~2 t999",
     "1: 1.1 0.1 -"},
    {"then a primary that does not come is replaced", 1, 4, "+0 +1 +2 R ~0 ~2 t1000",
     "+: 0.1 - 2.1"},
    {"at once if it is dead", 1, 4, "+0 +1 +2 R ~0 ~2 x1 +1", "+: 0.1 - 2.1"},
    {"what nobody has heard of is in force", 1, 4, "+0 +1 +2 m0 l1 R m255 ~0 ~1 ~2",
     "3: 1.1 - 0.1"},
    {"a former backup is no primary", 1, 4, "+0 +1 +2 m2 l1 m255 R ~0 ~2 x1 +1",
     "+: 1.2 2.1 - lost"},
    {"nor is a former primary", 1, 4, "+0 +1 +2 -1 t20 x0 R ~1 ~2 +0",
     "+: 1.1 0.2 - lost"},
    {"its place was taken", 1, 4, "+0 +1 +2 m0 -1 t20 R m255 ~0 ~1 ~2", "3: 0.1 - 2.1"},
    {"a newer view that was reported counts", 1, 4, "+0 +1 +2 S l1 R ~0 ~1 ~2",
     "3: 1.1 - 0.1"},

    {"a primary with its journal goes on", 0, 0, "+0 +1 x0 t9999 j0", "2: 0.2 - -"},
    {"it is heard first", 0, 0, "+0 +1 x0 k0 t9999", "1: 0.1 - -"},
    {"and then goes on", 0, 0, "+0 +1 x0 k0 ~0", "2: 0.2 - -"},
    {"one that comes without it has lost it", 0, 0, "+0 +1 x0 +0 x0 j0",
     "3: 0.3 - - lost"},
    {"as often as it dies", 0, 0, "+0 +1 x0 j0 x0 j0", "3: 0.3 - -"},
    {"also if it had not heard that it goes on", 0, 0, "+0 +1 x0 m0 j0 x0 m255 j0",
     "3: 0.3 - -"},
    {"or if the chief had not heard of it", 0, 0, "+0 +1 x0 k0 x0 j0", "2: 0.3 - -"},
    {"a backup that lives is preferred", 1, 1, "+0 +1 x1 j1", "3: 0.1 - 1.2"},
    {"of both that die the one with its journal goes on", 1, 1, "+0 +1 x0 x1 j1",
     "2: 1.2 - -"},
    {"and fills the other one", 1, 1, "+0 +1 x0 x1 +0 j1", "3: 1.2 - 0.2"},
    {"a journal of before its backup took over is of no use", 1, 1,
     "+0 +1 x1 t20 x0 j1 +0", "3: 1.2 0.2 - lost"},
    {"a chief that has its store knows it", 0, 0, "+0 +1 x0 R j0 ~1", "+: 0.2 - -"},
    {"one that has lost it hears it from the journal", 0, 0, "+0 +1 x0 C j0 ~1",
     "+: 0.2 - -"},
    {"a view that the primary had not heard of is its own", 1, 1,
     "+0 +1 m0 l1 m255 x0 x1 j1", "4: 1.2 - -"},

    {"who handed over stays", 0, 0, "J +0 +1 w0 v0 r0", "5: 1.1 0.1 -"},
    {"until the next one has it in its journal", 0, 0, "J +0 +1 w0 v0 r0 s1",
     "6: 1.1 - -"},
    {"also when it is lost", 0, 0, "J +0 +1 w0 v0 r0 x0 t9999 l1", "5: 1.1 0.1 -"},
    {"and comes back with its journal", 0, 0, "J +0 +1 w0 v0 r0 x0 l1 j0",
     "5: 1.1 0.1 -"},
    {"until then", 0, 0, "J +0 +1 w0 v0 r0 x0 l1 s1", "6: 1.1 - -"},
    {"not if it comes without", 0, 0, "J +0 +1 w0 v0 r0 x0 l1 +0", "7: 1.1 - 0.2"},
    {"nor if it never had one", 0, 0, "+0 +1 w0 v0 r0 l1", "6: 1.1 - -"},
    {"nor if it has something else", 0, 0, "J +0 +1 w0 v0 r0 d1", "6: 1.1 - -"},
    {"of two that die it goes on", 0, 0, "J +0 +1 w0 v0 r0 x0 x1 t20 j0", "6: 0.2 - -"},
    {"also if the other one is back before", 0, 0, "J +0 +1 w0 v0 r0 x0 x1 j1 t9999 j0",
     "6: 0.2 - -"},
    {"it is waited for", 0, 0, "J +0 +1 w0 v0 r0 x0 x1 j1 t9999", "5: 1.1 0.1 -"},
    {"with its report", 0, 0, "J +0 +1 w0 v0 r0 x0 x1 j1 k0 w0 t9999", "5: 1.1 0.1 -"},
    {"lost is what none of them has", 0, 0, "J +0 +1 w0 v0 r0 x0 x1 j1 +0",
     "6: 0.2 - - lost"},
    {"who dies before it hands over stays, too", 0, 0, "J +0 +1 w0 v0 x0 t20",
     "5: 1.1 0.1 -"},
    {"and goes on if the next one dies", 0, 0, "J +0 +1 w0 v0 x0 t20 x1 j1 j0",
     "6: 0.2 - -"},
    {"not without a journal", 0, 0, "+0 +1 w0 v0 x0 t20", "5: 1.1 - -"},
    {"a restarted chief keeps it", 0, 0, "J +0 +1 w0 v0 r0 R ~0 ~1 l1", "5: 1.1 0.1 -"},
    {"until it hears more", 0, 0, "J +0 +1 w0 v0 r0 R ~0 ~1 l1 s1", "+: 1.1 - -"},
    {"so that it can go on", 0, 0, "J +0 +1 w0 v0 r0 R x0 x1 j1 j0", "+: 0.2 - -"},
    {"whoever of two has the journal", 0, 0, "J +0 +1 w0 v0 R ~0 ~1 x0 t20",
     "+: 1.1 0.1 -"},
    {"with backups it makes room for another one", 1, 0, "J +0 +1 +2 w0 v0 r0 l1",
     "5: 1.1 - 2.1"},
};

static void view_text(const struct view_model *model, uint32_t partition, char *text,
                      size_t size)
{
    const struct mu__partition_view *view = mu__view_table_at(model->table, partition);
    char number[24];
    size_t length;

    if (view == NULL) {
        (void)snprintf(text, size, "-");
        return;
    }
    (void)snprintf(number, sizeof number, view->number > 1000 ? "+" : "%" PRIu64,
                   view->number);
    (void)snprintf(text, size, "%s: %" PRIu32 ".%" PRIu64, number, view->primary.task,
                   view->primary.incarnation);
    for (int i = 0; i < 2; i++) {
        const struct mu__replica *other = i == 0 ? &view->backup : &view->learner;

        length = strlen(text);
        if (other->incarnation == 0)
            (void)snprintf(text + length, size - length, " -");
        else
            (void)snprintf(text + length, size - length, " %" PRIu32 ".%" PRIu64,
                           other->task, other->incarnation);
    }
}

/* Says so of a server. Returns what the table says. */
static int happen_to(struct view_model *model, char event, uint32_t task,
                     uint32_t partition)
{
    switch (event) {
    case '+':
        model_start(model, task);
        model_link(model, task);
        return model_report(model, task);
    case '~':
        model_link(model, task);
        return model_report(model, task);
    case 'j':
        model_restore(model, task);
        model_link(model, task);
        return model_report(model, task);
    case 'k':
        model_restore(model, task);
        model_link(model, task);
        return 0;
    case '^':
        if (!model->servers[task].runs)
            model_start(model, task);
        model_link(model, task);
        return 0;
    case '-':
        model_unlink(model, task);
        return 0;
    case 'x':
        model_crash(model, task);
        return 0;
    case 'a':
        return mu__view_table_added(model->table, task, model->now_ms);
    case 'l':
        return model_news(model, task, partition, MU__REPLICA_LOST);
    case 'd':
        return model_news(model, task, partition, MU__REPLICA_DIVERGED);
    case 'v':
        return model_news(model, task, partition, MU__REPLICA_LEVEL);
    case 'r':
        return model_news(model, task, partition, MU__REPLICA_READY);
    case 's':
        return model_news(model, task, partition, MU__REPLICA_SPARE);
    case 'w':
        return mu__view_table_drain(model->table, task) ? 0 : -MU_ENOTFOUND;
    default:
        fail_msg("%c is no event", event);
        return 0;
    }
}

static void restart_chief(struct view_model *model, bool has_store)
{
    model_chief_crash(model);
    if (!has_store)
        model_store_lost(model);
    model_chief_start(model);
}

static int happen(struct view_model *model, const char *word, uint32_t partition)
{
    unsigned long value = strtoul(word + 1, NULL, 10);
    int rv = 0;

    if (word[0] == 't')
        model_pass(model, value);
    else if (word[0] == 'm')
        model->told = (unsigned)value;
    else if (word[0] == 'S')
        model->goes_without = true;
    else if (word[0] == 'J')
        model->journals = true;
    else if (word[0] != 'C' && word[0] != 'R')
        rv = happen_to(model, word[0], (uint32_t)value, partition);
    else
        restart_chief(model, word[0] == 'R');
    model_settle(model);
    return rv;
}

/* 0: none. A restarted chief knows of none for a while. */
static uint64_t store_of(const struct view_model *model, uint32_t partition)
{
    const struct mu__partition_view *view = mu__view_table_at(model->table, partition);

    return view == NULL ? 0 : view->store_id;
}

/* As many as there are before the first is added, and at least one. */
static uint32_t servers_of(const char *events)
{
    uint32_t count = 1;

    for (const char *at = events; at != NULL; at = strchr(at + 1, ' ')) {
        const char *word = at + strspn(at, " ");

        if (word[0] == 'a')
            return count;
        if (strchr("tmCRSJ", word[0]) == NULL && (uint32_t)(word[1] - '0') >= count)
            count = (uint32_t)(word[1] - '0') + 1;
    }
    return count;
}

static bool goes_as_told(const struct story *story)
{
    struct mu__view_config config = three;
    struct view_model model;
    uint64_t first = 0;
    uint64_t last = 0;
    char view[64];
    char text[96];
    int rv = 0;

    config.servers = servers_of(story->events);
    config.backups = story->backups;
    model_init(&model, &config, 7);
    for (const char *at = story->events; *at != '\0'; at += strspn(at, " ")) {
        int code = happen(&model, at, story->partition);

        rv = rv == 0 ? code : rv;
        last = store_of(&model, story->partition);
        first = first == 0 ? last : first;
        at += strcspn(at, " ");
    }
    view_text(&model, story->partition, view, sizeof view);
    (void)snprintf(text, sizeof text, "%s%s%s", view, last != first ? " lost" : "",
                   rv != 0 ? " refused" : "");
    model_done(&model);
    if (strcmp(text, story->view) == 0)
        return true;
    print_error("%s (%s): %s, and not %s\n", story->name, story->events, text,
                story->view);
    return false;
}

TEST(test_stories)
{
    bool all = true;

    for (size_t i = 0; i < sizeof stories / sizeof stories[0]; i++)
        all &= goes_as_told(&stories[i]);
    assert_true(all);
}

/* ---- Journals ---- */

/* Its next process had none, and became primary in its turn. */
TEST(test_a_journal_of_an_older_process_gives_nothing_back)
{
    const struct mu__view_config two = {2, 1, GRACE_MS, RECOVERY_MS, NULL};
    static const char *const before[] = {"+0", "+1", "x1",  "t20", "+1",
                                         "v0", "x0", "t20", "x1"};
    uint8_t stores[MU__NUMBERED_BYTES];
    uint8_t former[8] = {1};
    struct view_model model;
    uint64_t store;

    model_init(&model, &two, 7);
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++)
        assert_int_equal(happen(&model, before[i], 1), 0);
    store = store_of(&model, 1);
    assert_int_equal(mu__view_table_at(model.table, 1)->primary.incarnation, 2);
    model_start(&model, 1);
    model_link(&model, 1);
    assert_int_equal(model_report(&model, 1), 0);
    (void)mu__numbered_put(stores, &(struct mu__numbered){1, store});
    assert_int_equal(mu__views_note_restored(model.table, model.servers[1].node,
                                             (struct mu__view){former, sizeof former},
                                             (struct mu__view){stores, sizeof stores}),
                     0);
    model_settle(&model);
    assert_int_not_equal(store_of(&model, 1), store);
    model_done(&model);
}

/* Whose backup is up is not waited for; of two that are gone, both are. */
TEST(test_servers_with_journals_are_awaited_if_no_backup_is_up)
{
    const struct mu__view_config two = {2, 1, GRACE_MS, RECOVERY_MS, NULL};

    for (uint32_t gone = 1; gone <= 2; gone++) {
        struct view_model model;
        uint32_t awaited = 0;
        uint32_t count;
        uint32_t task;

        model_init(&model, &two, 7);
        assert_int_equal(happen(&model, "J", 0), 0);
        assert_int_equal(happen(&model, "+0", 0), 0);
        assert_int_equal(happen(&model, "+1", 0), 0);
        for (uint32_t i = 0; i < gone; i++)
            model_unlink(&model, i);
        model_pass(&model, GRACE_MS);
        while (mu__view_table_next_awaited(model.table, model.now_ms, &task, &count)) {
            assert_int_equal(task, awaited++);
            assert_int_equal(count, MU__PARTITIONS / 2);
        }
        assert_int_equal(awaited, gone == 2 ? 2 : 0);
        model_done(&model);
    }
}

/* ---- Choices ---- */

static void come(struct view_model *model, uint32_t task)
{
    model_start(model, task);
    model_link(model, task);
    assert_int_equal(model_report(model, task), 0);
}

/* How many partitions of `primary` a server has as a backup or learner. */
static uint32_t roles_for(const struct view_model *model, uint32_t primary, uint32_t task)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        const struct mu__partition_view *view = mu__view_table_at(model->table, i);
        const struct mu__replica *other =
            view->backup.incarnation != 0 ? &view->backup : &view->learner;

        count += view->primary.task == primary && other->incarnation != 0 &&
                 other->task == task;
    }
    return count;
}

/* There is no ps:2. */
TEST(test_indices_need_not_follow_each_other)
{
    static const uint32_t tasks[] = {0, 1, 3};
    struct mu__view_config config = three;
    struct view_model model;
    struct mu__view_roles roles;

    config.tasks = tasks;
    model_init(&model, &config, 7);
    for (uint32_t i = 0; i < 3; i++)
        come(&model, tasks[i]);
    model_settle(&model);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(mu__view_table_roles_of(model.table, tasks[i], &roles));
        assert_in_range(roles.primary, MU__PARTITIONS / 3, MU__PARTITIONS / 3 + 1);
    }
    model_done(&model);
}

TEST(test_backups_of_one_server_are_spread)
{
    struct mu__view_config config = three;
    struct view_model model;

    config.servers = 4;
    model_init(&model, &config, 7);
    for (uint32_t i = 0; i < 4; i++)
        come(&model, i);
    model_settle(&model);
    for (uint32_t primary = 0; primary < 4; primary++)
        for (uint32_t task = 0; task < 4; task++)
            assert_in_range(roles_for(&model, primary, task),
                            task == primary ? 0 : 64 / 3, task == primary ? 0 : 22);
    model_done(&model);
}

/* A primary cannot reach its backups on a server. */
static void lose_backups_on(struct view_model *model, uint32_t primary, uint32_t backup)
{
    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        const struct mu__partition_view *view = mu__view_table_at(model->table, i);

        if (view->primary.task == primary && view->backup.incarnation != 0 &&
            view->backup.task == backup)
            assert_int_equal(model_news(model, primary, i, MU__REPLICA_LOST), 0);
    }
    model_settle(model);
}

/* Those that a server has lost are filled on the others alike. */
TEST(test_learners_are_spread)
{
    struct mu__view_config config = three;
    struct view_model model;

    config.servers = 4;
    model_init(&model, &config, 7);
    for (uint32_t i = 0; i < 4; i++)
        come(&model, i);
    model_settle(&model);
    model_crash(&model, 3);
    model_pass(&model, GRACE_MS);
    for (uint32_t task = 0; task < 3; task++)
        lose_backups_on(&model, task, 3);
    for (uint32_t task = 0; task < 3; task++)
        assert_in_range(roles_for(&model, 0, task) + roles_for(&model, 1, task) +
                            roles_for(&model, 2, task),
                        MU__PARTITIONS / 3 - 10, MU__PARTITIONS / 3 + 10);
    model_done(&model);
}

/* ---- Counts ---- */

static void assert_totals(const struct view_model *model, struct mu__view_totals expected)
{
    struct mu__view_totals totals;

    mu__view_table_totals(model->table, &totals);
    assert_int_equal(totals.placed, expected.placed);
    assert_int_equal(totals.without_primary, expected.without_primary);
    assert_int_equal(totals.degraded, expected.degraded);
    assert_int_equal(totals.filling, expected.filling);
    assert_int_equal(totals.lost, expected.lost);
}

TEST(test_totals_and_losses)
{
    struct view_model model;
    uint32_t task = 99;
    uint32_t count = 0;

    model_init(&model, &three, 7);
    assert_totals(&model, (struct mu__view_totals){0});
    come(&model, 0);
    model_pass(&model, RECOVERY_MS);
    assert_totals(&model, (struct mu__view_totals){.placed = 86, .degraded = 86});
    come(&model, 2);
    model_settle(&model);
    assert_totals(&model,
                  (struct mu__view_totals){.placed = 171, .degraded = 86, .filling = 86});
    model_crash(&model, 2);
    model_pass(&model, GRACE_MS);
    assert_totals(&model, (struct mu__view_totals){.placed = 171, .degraded = 171});
    assert_false(mu__view_table_next_lost(model.table, &task, &count));
    model_crash(&model, 0);
    model_pass(&model, GRACE_MS);
    assert_totals(&model, (struct mu__view_totals){
                              .placed = 171, .without_primary = 171, .degraded = 171});
    come(&model, 0);
    model_settle(&model);
    assert_totals(&model,
                  (struct mu__view_totals){.placed = 171, .degraded = 171, .lost = 171});
    assert_true(mu__view_table_next_lost(model.table, &task, &count));
    assert_int_equal(task, 0);
    assert_int_equal(count, 171);
    assert_false(mu__view_table_next_lost(model.table, &task, &count));
    model_done(&model);
}

static void assert_roles(const struct view_model *model, uint32_t at,
                         struct mu__view_roles expected)
{
    struct mu__view_roles roles;

    assert_true(mu__view_table_roles(model->table, at, &roles));
    assert_int_equal(roles.task, at);
    assert_int_equal(roles.is_up, expected.is_up);
    assert_int_equal(roles.primary, expected.primary);
    assert_int_equal(roles.backup, expected.backup);
    assert_int_equal(roles.learner, expected.learner);
    assert_int_equal(roles.degraded, expected.degraded);
    assert_int_equal(roles.lost, expected.lost);
}

TEST(test_roles_of_servers)
{
    struct mu__view_roles roles;
    struct view_model model;

    model_init(&model, &three, 7);
    come(&model, 0);
    model_pass(&model, RECOVERY_MS);
    come(&model, 2);
    model_settle(&model);
    assert_roles(&model, 0,
                 (struct mu__view_roles){
                     .is_up = true, .primary = 86, .backup = 85, .degraded = 86});
    assert_roles(&model, 1, (struct mu__view_roles){0});
    assert_roles(&model, 2,
                 (struct mu__view_roles){.is_up = true, .primary = 85, .learner = 86});
    model_crash(&model, 2);
    model_pass(&model, GRACE_MS);
    model_crash(&model, 0);
    come(&model, 0);
    model_settle(&model);
    assert_roles(&model, 0,
                 (struct mu__view_roles){
                     .is_up = true, .primary = 171, .degraded = 171, .lost = 171});
    assert_roles(&model, 2, (struct mu__view_roles){0});
    assert_false(mu__view_table_roles(model.table, 3, &roles));
    model_done(&model);
}

/* ---- Nonsense ---- */

static const struct mu__partition_view nonsense[] = {
    {.partition = 256, .number = 9, .primary = {1, 1}},
    {.partition = 0, .number = 0, .primary = {1, 1}},
    {.partition = 0, .number = UINT64_MAX, .primary = {1, 1}},
    {.partition = 0, .number = 9},
    {.partition = 0, .number = 9, .primary = {UINT32_MAX, 1}},
    {.partition = 0, .number = 9, .primary = {1, 1}, .backup = {UINT32_MAX, 1}},
    {.partition = 0, .number = 9, .primary = {1, 1}, .backup = {1, 2}},
    {.partition = 0, .number = 9, .primary = {1, 1}, .learner = {1, 2}},
    {.partition = 0, .number = 9, .primary = {1, 1}, .backup = {2, 1}, .learner = {2, 1}},
};

/* It is left out, and what stands beside it is taken. */
TEST(test_nonsense_is_refused)
{
    const struct mu__partition_view sane = {
        .partition = 1, .number = 9, .store_id = 5, .primary = {0, 1}};
    uint8_t bytes[2 * MU__VIEW_BYTES];
    struct view_model model;

    for (size_t i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++) {
        uint8_t *at = bytes;

        model_init(&model, &three, 7);
        model_start(&model, 0);
        model_link(&model, 0);
        at = mu__views_put(at, &nonsense[i]);
        (void)mu__views_put(at, &sane);
        assert_int_equal(mu__view_table_held(model.table, model.node_last,
                                             (struct mu__view){bytes, sizeof bytes}, true,
                                             0),
                         -MU_EINVALID);
        assert_null(mu__view_table_at(model.table, 0));
        assert_int_equal(mu__view_table_at(model.table, 1)->number, 9);
        model_done(&model);
    }
}

TEST(test_nodes_that_are_no_servers_are_refused)
{
    const struct mu__view none = {NULL, 0};
    struct view_model model;

    model_init(&model, &three, 7);
    come(&model, 0);
    assert_int_equal(mu__view_table_held(model.table, 77, none, false, 0), -MU_ENOTFOUND);
    assert_int_equal(mu__view_table_news(model.table, 77, MU__REPLICA_LOST, false, none),
                     -MU_ENOTFOUND);
    assert_int_equal(mu__view_table_news(model.table, model.node_last, 0, false, none),
                     -MU_EINVALID);
    assert_int_equal(mu__view_table_news(model.table, model.node_last, 6, false, none),
                     -MU_EINVALID);
    mu__view_table_down(model.table, 77, 0);
    mu__view_table_note_draining(model.table, 77, true);
    model_pass(&model, RECOVERY_MS);
    assert_totals(&model, (struct mu__view_totals){.placed = 86, .degraded = 86});
    model_done(&model);
}

TEST_PROGRAM()
