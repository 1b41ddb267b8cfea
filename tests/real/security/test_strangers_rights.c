/* Peers that have proven something, against a cluster at work: each message of the table
 * that they have no right to, to each actor of each task; and what they say to be. */
#include "tests/real/security/speaker.h"

static int begin(void **state)
{
    static const char *const rights[] = {"observe", "use", "operate", "task"};

    (void)state;
    at_work_begin();
    for (size_t i = 0; i < sizeof rights / sizeof rights[0]; i++)
        at_work_derive(rights[i]);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    at_work_end();
    return 0;
}

/* ---- what needs more than was proven ---- */

/* As whom one sends, and what is beyond that. */
struct sender {
    const char *key;
    const char *type;
    uint32_t index;
    enum mu__right as; /* the most that this may send */
};

static bool is_beyond(const struct sender *sender, const struct mu__row *row)
{
    return row->name != NULL && (row->right > sender->as || row->by_chief != 0);
}

/* What is said to everybody who links: where the service is, what a server serves, and to
 * a server by whom its effects are. */
static bool is_for_all(const struct speaker *s, uint16_t kind)
{
    return kind == MU__SERVICE_HERE || kind == MU__PEERS_REPORT || kind == MU__SERVES ||
           (kind == MU__FENCE && strcmp(s->type, "ps") == 0);
}

static void expect_nothing_heard(const struct speaker *s)
{
    for (uint16_t kind = 0; kind < MU__KINDS_END; kind++)
        if (s->heard[kind] != 0 && !is_for_all(s, kind))
            fail_msg("as /job:%s/task:%u it has heard %s", s->type, (unsigned)s->index,
                     mu__messages.rows[kind].name);
}

/* All that is beyond it, in each way, to each actor. */
static unsigned say_all_beyond(struct speaker *s, const struct sender *sender)
{
    unsigned said = 0;

    for (uint16_t kind = 0; kind < mu__messages.rows_count; kind++) {
        if (!is_beyond(sender, &mu__messages.rows[kind]))
            continue;
        for (uint32_t actor = MU__SUPERVISOR; actor <= MU__PEERS; actor++)
            for (int way = 0; way < SPEAKER_WAYS; way++) {
                speaker_message(s, kind, actor, (enum speaker_fields)way);
                said++;
            }
    }
    return said;
}

TEST(test_each_message_without_the_right)
{
    static const struct sender senders[] = {
        {"observe", "client", 7001, MU__RIGHT_OBSERVE},
        {"use", "client", 7002, MU__RIGHT_USE},
        {"operate", "client", 7003, MU__RIGHT_OPERATE},
        {"task", "client", 7004, MU__RIGHT_OPERATE},
        {"key", "client", 7005, MU__RIGHT_OPERATE},
        {"task", "evaluator", 0, MU__RIGHT_TASK},
        {"key", "ps", 77, MU__RIGHT_TASK},
    };

    for (size_t i = 0; i < sizeof senders / sizeof senders[0]; i++)
        for (size_t task = 0; task < AT_WORK_TASKS; task++) {
            const struct sender *sender = &senders[i];
            struct speaker s;

            speaker_open(&s, at_work_file(sender->key), sender->type, sender->index,
                         task);
            if (!speaker_run(&s, &s.is_linked, SPEAKER_SOON_MS))
                fail_msg("%s as %s: not linked to %s: %s", sender->key, sender->type,
                         at_work_tasks[task], s.refused);
            assert_true(say_all_beyond(&s, sender) > 100);
            speaker_settle(&s);
            expect_nothing_heard(&s);
            speaker_close(&s);
        }
    at_work_is_unharmed();
    (void)cli_expect(&at_work.run, NULL, "/job:client/task:7001 at 127.0.0.1:");
    (void)cli_expect(&at_work.run, NULL, ", which needs the right \"");
}

/* That it is the right, and not how it was said, shows one who has it. */
TEST(test_the_same_with_the_right)
{
    struct speaker s;

    speaker_open(&s, at_work_file("use"), "client", 7100, 0);
    assert_true(speaker_run(&s, &s.is_linked, SPEAKER_SOON_MS));
    speaker_message(&s, MU__ROOM_REQUEST, MU__SUPERVISOR, SPEAKER_NONE);
    speaker_settle(&s);
    speaker_message(&s, MU__SCHEDULE, MU__SUPERVISOR, SPEAKER_REQUIRED);
    for (int i = 0; s.heard[MU__RESOLVED] == 0; i++) {
        assert_true(i < 1000);
        speaker_settle(&s);
    }
    if (s.code != 0)
        fail_msg("%u: %s", (unsigned)s.code, s.words);
    assert_int_equal(access(at_work_file("touched"), F_OK), 0);
    speaker_close(&s);
    assert_int_equal(unlink(at_work_file("touched")), 0);
}

/* ---- whom one says to be ---- */

TEST(test_forged_identities)
{
    static const struct {
        const char *key;
        const char *type;
        uint32_t index;
        const char *words;
    } rows[] = {
        {"observe", "worker", 0, "it has proven the right \"observe\", and says to be"},
        {"operate", "chief", 0, "it has proven the right \"operate\", and says to be"},
        {"operate", "worker", 99, "it has proven the right \"operate\", and says to be"},
        {"use", "offer", 1, "it has proven the right \"use\", and says to be"},
        {"task", "chief", 0, "is already played by"},
        {"task", "worker", 0, "is already played by"},
        {"key", "ps", 0, "is already played by"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t task = 0; task < AT_WORK_TASKS; task++) {
            struct speaker s;

            /* Tasks that have no link to each other cannot know who is there. */
            if ((strcmp(rows[i].type, "worker") == 0 && task == 2 && i == 5) ||
                (strcmp(rows[i].type, "ps") == 0 && task == 3))
                continue;
            speaker_open(&s, at_work_file(rows[i].key), rows[i].type, rows[i].index,
                         task);
            assert_true(speaker_run(&s, &s.is_refused, SPEAKER_SOON_MS));
            assert_false(s.is_linked);
            if (strstr(s.refused, rows[i].words) == NULL)
                fail_msg("row %zu, %s: %s", i, at_work_tasks[task], s.refused);
            expect_nothing_heard(&s);
            speaker_close(&s);
        }
    at_work_is_unharmed();
}

/* As the process of a task that lives, to the chief. */
static void pretend_to_be(size_t task, uint64_t incarnation)
{
    bool is_server = task == 3;
    struct speaker s;

    speaker_open(&s, at_work_file("task"), is_server ? "ps" : "worker",
                 is_server ? 0 : (uint32_t)task - 1, 0);
    s.incarnation = incarnation;
    assert_true(speaker_run(&s, &s.is_down, SPEAKER_SOON_MS));
    assert_false(s.is_linked);
    speaker_close(&s);
}

/* Lines about peers are one a second, whoever they are about. */
static bool is_second_worker_logged(void)
{
    cli_read(&at_work.run);
    return strstr(at_work.run.text, "dropped a second connection of /job:worker") != NULL;
}

/* With the incarnations of those that live, many times: nobody's link ends. */
TEST(test_incarnations_of_the_living)
{
    uint64_t incarnations[AT_WORK_TASKS];

    for (size_t task = 0; task < AT_WORK_TASKS; task++) {
        struct speaker s;

        speaker_open(&s, at_work_file("observe"), "client", 7200, task);
        assert_true(speaker_run(&s, &s.is_linked, SPEAKER_SOON_MS));
        incarnations[task] = s.peer;
        speaker_close(&s);
    }
    for (int round = 0; round < 20 || !is_second_worker_logged(); round++) {
        assert_true(round < 1000);
        for (size_t task = 1; task < AT_WORK_TASKS; task++)
            pretend_to_be(task, incarnations[task]);
    }
    at_work_is_unharmed();
    cli_read(&at_work.run);
    for (size_t task = 0; task < AT_WORK_TASKS; task++) {
        char words[64];

        (void)snprintf(words, sizeof words, "%s is lost", at_work_tasks[task]);
        assert_null(strstr(at_work.run.text, words));
    }
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return tests_run(begin, finish);
}
