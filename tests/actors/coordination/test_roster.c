/* The roster: who is known, its lists in order of time, its counts, its words. */
#include "actors/coordination/roster.h"
#include "sim/world/random.h"
#include "tests/support/test.h"

static struct mu__roster *roster_of(const char *tasks, const char *recoverable)
{
    struct mu__task_set set = {0};
    struct mu__roster *roster;

    assert_int_equal(mu__task_set_parse(mu__view_str(tasks), NULL, &set), 0);
    roster = mu__roster_new(&set, recoverable);
    mu__task_set_done(&set);
    assert_non_null(roster);
    return roster;
}

TEST(test_known)
{
    struct mu__roster *roster = roster_of("chief:0,worker:0-2", "worker");
    struct mu__roster_task *guest;

    assert_int_equal(roster->count, 4);
    assert_int_equal(roster->coordinated, 4);
    assert_string_equal(mu__roster_find(roster, "worker", 2)->name, "/job:worker/task:2");
    assert_true(mu__roster_find(roster, "worker", 2)->coordinated);
    assert_int_equal(mu__roster_find(roster, "worker", 2)->state, MU__TASK_DISCONNECTED);
    assert_null(mu__roster_find(roster, "worker", 3));
    assert_null(mu__roster_find(roster, "boss", 0));
    assert_null(mu__roster_add(roster, "Boss", 0));
    assert_ptr_equal(mu__roster_add(roster, "worker", 1),
                     mu__roster_find(roster, "worker", 1));
    guest = mu__roster_add(roster, "worker", 9);
    assert_false(guest->coordinated);
    assert_ptr_equal(mu__roster_find(roster, "worker", 9), guest);
    assert_int_equal(roster->coordinated, 4);
    mu__roster_free(roster);
}

/* A guest's failures are never those of others. */
TEST(test_recoverable)
{
    static const struct {
        const char *recoverable;
        bool chief;
        bool ps;
        bool worker;
    } rows[] = {{"all", true, true, true},           {"none", false, false, false},
                {"", false, false, false},           {NULL, true, true, true},
                {"ps", false, true, false},          {"ps,worker", false, true, true},
                {"worker, chief", true, false, true}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__roster *roster =
            roster_of("chief:0,ps:0,worker:0", rows[i].recoverable);

        assert_int_equal(mu__roster_find(roster, "chief", 0)->recoverable, rows[i].chief);
        assert_int_equal(mu__roster_find(roster, "ps", 0)->recoverable, rows[i].ps);
        assert_int_equal(mu__roster_find(roster, "worker", 0)->recoverable,
                         rows[i].worker);
        assert_true(mu__roster_add(roster, "evaluator", 0)->recoverable);
        mu__roster_free(roster);
    }
}

TEST(test_bad_recoverable)
{
    struct mu__task_set set = {0};

    assert_null(mu__roster_new(&set, "worker,Boss"));
    assert_null(mu__roster_new(&set, "a-type-with-a-very-long-name"));
}

/* ---- words ---- */

static bool is_missing(void *user, const struct mu__roster_task *task)
{
    (void)user;
    return task->state != MU__TASK_CONNECTED;
}

static void expect_words(const struct mu__roster *roster, uint64_t now_ms, uint32_t most,
                         uint32_t count, const char *words)
{
    char text[512];

    assert_int_equal(mu__roster_describe(roster, now_ms, is_missing, NULL, most, text,
                                         sizeof text),
                     count);
    assert_string_equal(text, words);
}

TEST(test_words)
{
    struct mu__roster *roster = roster_of("worker:0-4", "all");
    mu_error error = {.code = -MU_EUNAVAILABLE};

    for (int i = 0; i < 5; i++)
        mu__roster_move(roster, roster->tasks[i], MU__TASK_CONNECTED, NULL, 1000);
    expect_words(roster, 1000, 3, 0, "");
    mu__roster_move(roster, roster->tasks[1], MU__TASK_FAILED, &error, 1200);
    expect_words(roster, 5200, 3, 1,
                 "/job:worker/task:1 (in error, last heard 4,200 ms ago)");
    mu__roster_move(roster, roster->tasks[3], MU__TASK_DISCONNECTED, NULL, 1200);
    expect_words(roster, 1001000, 3, 2,
                 "/job:worker/task:1 (in error, last heard 1,000,000 ms ago), "
                 "/job:worker/task:3 (has left, last heard 1,000,000 ms ago)");
    mu__roster_clear(roster, 2000);
    expect_words(roster, 2000, 2, 5,
                 "/job:worker/task:0 (never registered), "
                 "/job:worker/task:1 (never registered) and 3 more");
    expect_words(roster, 2000, 0, 5, "5 more");
    mu__roster_free(roster);
}

TEST(test_words_cut)
{
    struct mu__roster *roster = roster_of("worker:0-9", "all");
    char text[16];

    assert_int_equal(
        mu__roster_describe(roster, 0, is_missing, NULL, 10, text, sizeof text), 10);
    assert_string_equal(text, "/job:worker/tas");
    mu__roster_free(roster);
}

TEST(test_state_words)
{
    struct mu__roster *roster = roster_of("worker:0", "all");
    struct mu__roster_task *task = roster->tasks[0];
    mu_error error = {.code = -MU_EINTERNAL};

    assert_string_equal(mu__roster_state_word(task), "disconnected");
    mu__roster_suspect(roster, task);
    assert_string_equal(mu__roster_state_word(task), "disconnected");
    mu__roster_move(roster, task, MU__TASK_CONNECTED, NULL, 1);
    assert_string_equal(mu__roster_state_word(task), "connected");
    mu__roster_suspect(roster, task);
    assert_string_equal(mu__roster_state_word(task), "suspect");
    mu__roster_move(roster, task, MU__TASK_FAILED, &error, 2);
    assert_string_equal(mu__roster_state_word(task), "error");
    assert_int_equal(task->failure.error.code, -MU_EINTERNAL);
    mu__roster_free(roster);
}

/* ---- against a naive model ---- */

enum { TASKS = 12, STEPS = 400 };

struct model {
    enum mu__task_state state;
    bool suspect;
    bool up;
    uint32_t node;
    uint64_t heard_ms;
    uint64_t down_ms;
};

struct world {
    struct sim_random random;
    struct mu__roster *roster;
    struct model models[TASKS];
    uint64_t now_ms;
    uint32_t nodes;
    uint64_t version;
};

static size_t below(struct sim_random *random, size_t count)
{
    return sim_between(random, 0, count - 1);
}

static void note_heard(struct world *w, struct model *model)
{
    model->heard_ms = w->now_ms;
    if (model->state == MU__TASK_CONNECTED && model->suspect && model->up) {
        model->suspect = false;
        w->version++;
    }
}

static void do_move(struct world *w, struct mu__roster_task *task, struct model *model)
{
    mu_error error = {.code = -MU_EINTERNAL};
    enum mu__task_state to = (enum mu__task_state)below(&w->random, 3);

    mu__roster_move(w->roster, task, to, to == MU__TASK_FAILED ? &error : NULL,
                    w->now_ms);
    model->state = to;
    model->suspect = false;
    w->version++;
    if (to == MU__TASK_CONNECTED)
        model->heard_ms = w->now_ms;
}

static void do_heard(struct world *w, struct mu__roster_task *task, struct model *model)
{
    bool better = model->state == MU__TASK_CONNECTED && model->suspect && model->up;

    assert_int_equal(mu__roster_heard(w->roster, task, w->now_ms), better);
    note_heard(w, model);
}

static void do_suspect(struct world *w, struct mu__roster_task *task, struct model *model)
{
    mu__roster_suspect(w->roster, task);
    if (model->state != MU__TASK_CONNECTED || model->suspect)
        return;
    model->suspect = true;
    w->version++;
}

static void do_up(struct world *w, struct mu__roster_task *task, struct model *model)
{
    assert_int_equal(mu__roster_link_up(w->roster, task, ++w->nodes, w->now_ms), 0);
    model->up = true;
    model->node = w->nodes;
    note_heard(w, model);
}

static void do_down(struct world *w, struct mu__roster_task *task, struct model *model)
{
    mu__roster_link_down(w->roster, task, w->now_ms);
    if (!model->up)
        return;
    model->up = false;
    model->down_ms = w->now_ms;
    if (model->state == MU__TASK_CONNECTED && !model->suspect) {
        model->suspect = true;
        w->version++;
    }
}

static void check_list(const struct mu__list *list, bool by_heard, size_t count)
{
    const struct mu__list_node *before = NULL;
    uint64_t before_ms = 0;

    for (const struct mu__list_node *at = list->first; at != NULL; at = at->next) {
        uint64_t ms =
            by_heard
                ? MU__LIST_ENTRY(at, struct mu__roster_task, link.by_heard)->link.heard_ms
                : MU__LIST_ENTRY(at, struct mu__roster_task, link.by_down)->link.down_ms;

        assert_ptr_equal(at->prev, before);
        assert_true(before_ms <= ms);
        before = at;
        before_ms = ms;
        assert_true(count-- > 0);
    }
    assert_ptr_equal(list->last, before);
    assert_int_equal(count, 0);
}

static void check(const struct world *w)
{
    size_t heard = 0;
    size_t silent = 0;
    size_t down = 0;

    for (size_t i = 0; i < TASKS; i++) {
        const struct model *model = &w->models[i];
        const struct mu__roster_task *task = w->roster->tasks[i];
        bool connected = model->state == MU__TASK_CONNECTED;

        assert_int_equal(task->state, model->state);
        assert_int_equal(task->suspect, model->suspect);
        assert_int_equal(task->link.up, model->up);
        assert_int_equal(task->link.heard_ms, model->heard_ms);
        if (model->up)
            assert_ptr_equal(mu__roster_at_node(w->roster, model->node), task);
        heard += connected && !model->suspect;
        silent += connected && model->suspect;
        down += connected && !model->up;
    }
    check_list(&w->roster->heard, true, heard);
    check_list(&w->roster->silent, true, silent);
    check_list(&w->roster->down, false, down);
    assert_int_equal(w->roster->connected, heard + silent);
    assert_int_equal(w->roster->version, w->version);
}

TEST(test_naive)
{
    static void (*const steps[])(struct world *, struct mu__roster_task *,
                                 struct model *) = {do_move,    do_heard, do_heard,
                                                    do_suspect, do_up,    do_down};

    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct world w = {.roster = roster_of("worker:0-11", "all"),
                          .random = sim_stream(seed, 0)};

        for (int i = 0; i < STEPS; i++) {
            size_t at = below(&w.random, TASKS);

            w.now_ms += below(&w.random, 3);
            steps[below(&w.random, sizeof steps / sizeof steps[0])](
                &w, w.roster->tasks[at], &w.models[at]);
            check(&w);
        }
        mu__roster_free(w.roster);
    }
}

/* Guests that have gone give their places to others; those that are here do not. */
TEST(test_guests_bound)
{
    struct mu__roster *roster = roster_of("worker:0", "all");
    struct mu__roster_task *first = mu__roster_add(roster, "client", 0);
    uint32_t count = 1;

    mu__roster_move(roster, first, MU__TASK_CONNECTED, NULL, 1);
    while (roster->count - roster->coordinated == count)
        assert_non_null(mu__roster_add(roster, "client", count++));
    assert_ptr_equal(mu__roster_find(roster, "client", 0), first);
    assert_null(mu__roster_find(roster, "client", 1));
    assert_string_equal(mu__roster_find(roster, "client", count - 1)->name,
                        roster->tasks[2]->name);
    mu__roster_free(roster);
}

/* Of clients that come and go the last ones are remembered; tasks of other types, and
 * clients that are here, whoever long ago they came. */
TEST(test_former_clients_are_forgotten)
{
    struct mu__roster *roster = roster_of("worker:0", "all");
    struct mu__roster_task *here = mu__roster_add(roster, "client", 0);
    struct mu__roster_task *worker = mu__roster_add(roster, "worker", 7);

    mu__roster_move(roster, here, MU__TASK_CONNECTED, NULL, 1);
    mu__roster_move(roster, worker, MU__TASK_CONNECTED, NULL, 1);
    mu__roster_move(roster, worker, MU__TASK_FAILED, NULL, 2);
    for (uint32_t i = 1; i <= 1500; i++) {
        struct mu__roster_task *client = mu__roster_add(roster, "client", i);

        assert_non_null(client);
        mu__roster_move(roster, client, MU__TASK_CONNECTED, NULL, 10 + 2 * i);
        mu__roster_move(roster, client, MU__TASK_FAILED, NULL, 11 + 2 * i);
    }
    assert_true(roster->count < 100);
    assert_ptr_equal(mu__roster_find(roster, "client", 0), here);
    assert_ptr_equal(mu__roster_find(roster, "worker", 7), worker);
    assert_non_null(mu__roster_find(roster, "client", 1500));
    assert_non_null(mu__roster_find(roster, "client", 1490));
    assert_null(mu__roster_find(roster, "client", 1400));
    mu__roster_free(roster);
}

TEST_PROGRAM()
