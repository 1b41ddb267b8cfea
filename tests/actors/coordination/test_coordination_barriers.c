/* Barriers and who is alive, in virtual time: what all are told, when, and in which
 * words. The host answers at once; tasks are suspect after 300 ms of silence and dead
 * after 900, or after 600 with a broken link. */
#include "tests/support/service/barriers.h"

#include <time.h>

#define expect_three(t, words)       \
    do {                             \
        expect_said((t)->w0, words); \
        expect_said((t)->w1, words); \
        expect_said((t)->w2, words); \
    } while (0)

/* ---- all well ---- */

TEST(test_all_arrive)
{
    struct three t = THREE(.seed = 1);

    service_run_until(t.s, 100);
    assert_int_equal(arrive(t.w1, "sync", 0, "", 0), 2);
    service_run_until(t.s, 250);
    (void)arrive(t.w0, "sync", 0, "", 0);
    expect_three(&t, "");
    service_run_until(t.s, 310);
    (void)arrive(t.w2, "sync", 0, "", 0);
    expect_three(&t, "[  310] barrier_passed token=2\n");
    /* The next generation of the same name. */
    (void)arrive(t.w2, "sync", 1, "", 0);
    (void)arrive(t.w0, "sync", 1, "", 0);
    service_run_until(t.s, 400);
    (void)arrive(t.w1, "sync", 1, "", 0);
    expect_three(&t, "[  400] barrier_passed token=3 generation=1\n");
    service_end(t.s);
}

/* Without a limit, too: after five seconds, and then each time that it has doubled. */
TEST(test_who_waits_for_long_hears_who_is_missing)
{
    struct three t = THREE(.seed = 1);

    service_run_until(t.s, 100);
    (void)arrive(t.w1, "slow", 0, "worker:0-1", 0);
    service_run_until(t.s, 5099);
    expect_three(&t, "");
    service_run_until(t.s, 10099);
    expect_said(t.w1, "[ 5100] wait_note token=2 message=\"barrier \"slow\": 1 of 2 "
                      "tasks arrived in 5000 ms, /job:worker/task:1 first; missing: "
                      "/job:worker/task:0 (last heard 100 ms ago)\"\n");
    service_run_until(t.s, 10100);
    expect_said(t.w1, "[10100] wait_note token=2 message=\"barrier \"slow\": 1 of 2 "
                      "tasks arrived in 10000 ms, /job:worker/task:1 first; missing: "
                      "/job:worker/task:0 (last heard 100 ms ago)\"\n");
    expect_said(t.w0, "");
    service_run_until(t.s, 11000);
    (void)arrive(t.w0, "slow", 0, "worker:0-1", 0);
    expect_said(t.w0, "[11000] barrier_passed token=2\n");
    expect_said(t.w1, "[11000] barrier_passed token=2\n");
    service_end(t.s);
}

TEST(test_sets)
{
    struct three t = THREE(.seed = 1);

    (void)arrive(t.w0, "alone", 0, "worker:0", 0);
    expect_said(t.w0, "[    0] barrier_passed token=2\n");
    /* Some; and all, whether they are named or not, in whatever form. */
    (void)arrive(t.w0, "two", 0, "worker:0,worker:2", 0);
    (void)arrive(t.w2, "two", 0, "worker:2, /job:worker/task:0", 0);
    expect_said(t.w0, "[    0] barrier_passed token=3\n");
    expect_said(t.w2, "[    0] barrier_passed token=2\n");
    (void)arrive(t.w0, "all", 0, "", 0);
    (void)arrive(t.w1, "all", 0, "worker:0-2", 0);
    (void)arrive(t.w2, "all", 0, "worker:2,worker:0-1", 0);
    expect_said(t.w0, "[    0] barrier_passed token=4\n");
    expect_said(t.w1, "[    0] barrier_passed token=2\n");
    expect_said(t.w2, "[    0] barrier_passed token=3\n");
    service_end(t.s);
}

/* A task that is not of the coordinated jobs takes part where it is named. */
TEST(test_guest)
{
    struct three t = THREE(.seed = 1);
    struct service_agent *guest;

    (void)arrive(t.w0, "guest", 0, "client:3,worker:0", 0);
    expect_said(t.w0, "[    0] barrier_passed token=2 code=3 message=\"barrier "
                      "\"guest\": /job:client/task:3 is not known to the cluster\" "
                      "task=\"/job:worker/task:0\" stays=yes\n");
    guest = service_task(t.s, "client", 3);
    (void)arrive(t.w0, "guest", 0, "client:3,worker:0", 0);
    (void)arrive(guest, "guest", 0, "client:3,worker:0", 0);
    expect_said(t.w0, "[    0] barrier_passed token=3\n");
    expect_said(guest, "[    0] barrier_passed token=2\n");
    (void)arrive(guest, "all", 0, "", 0);
    expect_said(guest, "[    0] barrier_passed token=3 code=3 message=\"barrier \"all\": "
                       "/job:client/task:3 is not one of its tasks\" "
                       "task=\"/job:client/task:3\" stays=yes\n");
    service_end(t.s);
}

TEST(test_again)
{
    struct three t = THREE(.seed = 1);

    for (int i = 0; i < 2; i++) {
        (void)arrive(t.w0, "sync", (uint64_t)i, "", 0);
        (void)arrive(t.w1, "sync", (uint64_t)i, "", 0);
        (void)arrive(t.w2, "sync", (uint64_t)i, "", 0);
    }
    (void)service_text(t.w0);
    service_run_until(t.s, 50);
    (void)arrive(t.w0, "sync", 1, "", 0);
    arrive_again(t.w0, 3, "sync", 1);
    expect_said(t.w0, "[   50] barrier_passed token=4 generation=1\n"
                      "[   50] barrier_passed token=3 generation=1\n");
    service_end(t.s);
}

/* ---- wrong arrivals ---- */

TEST(test_other_participants)
{
    struct three t = THREE(.seed = 1);

    (void)arrive(t.w0, "sync", 0, "worker:0-1", 0);
    service_run_until(t.s, 80);
    (void)arrive(t.w1, "sync", 0, "", 0);
#define WORDS                                                                       \
    "[   80] barrier_passed token=2 code=3 message=\"barrier \"sync\": "            \
    "/job:worker/task:1 names other tasks (worker:0-2) than the first participant " \
    "(worker:0-1)\" task=\"/job:worker/task:1\"\n"

    expect_said(t.w0, WORDS);
    expect_said(t.w1, WORDS);
#undef WORDS

    /* Once it is over, such a call is wrong alone. */
    (void)arrive(t.w0, "sync", 1, "worker:0-1", 0);
    (void)arrive(t.w1, "sync", 1, "worker:0-1", 0);
    (void)service_text(t.w0);
    (void)service_text(t.w1);
    (void)arrive(t.w1, "sync", 1, "", 0);
    expect_said(t.w0, "");
    expect_said(t.w1, "[   80] barrier_passed token=4 code=3 message=\"barrier \"sync\": "
                      "/job:worker/task:1 names other tasks (worker:0-2) than the first "
                      "participant (worker:0-1)\" task=\"/job:worker/task:1\" stays=yes "
                      "generation=2\n");
    service_end(t.s);
}

TEST(test_not_among_them)
{
    struct three t = THREE(.seed = 1);

    (void)arrive(t.w0, "sync", 0, "worker:0-1", 0);
    (void)arrive(t.w2, "sync", 0, "worker:0-1", 0);
    expect_said(t.w0, "[    0] barrier_passed token=2 code=3 message=\"barrier \"sync\": "
                      "/job:worker/task:2 is not one of its tasks\" "
                      "task=\"/job:worker/task:2\"\n");
    expect_said(t.w2, "[    0] barrier_passed token=2 code=3 message=\"barrier \"sync\": "
                      "/job:worker/task:2 is not one of its tasks\" "
                      "task=\"/job:worker/task:2\"\n");
    (void)arrive(t.w0, "done", 0, "worker:0", 0);
    (void)service_text(t.w0);
    (void)arrive(t.w2, "done", 0, "worker:0", 0);
    expect_said(t.w0, "");
    expect_said(t.w2, "[    0] barrier_passed token=3 code=3 message=\"barrier \"done\": "
                      "/job:worker/task:2 is not one of its tasks\" "
                      "task=\"/job:worker/task:2\" stays=yes generation=1\n");
    service_end(t.s);
}

TEST(test_bad_arrivals)
{
    static const struct {
        const char *name;
        uint64_t generation;
        const char *tasks;
        const char *words;
    } rows[] = {
        {"", 0, "", "barrier \"\": a name of 1 to 255 bytes"},
        {"a\nb", 0, "", "a name of 1 to 255 bytes"},
        {"a", UINT64_MAX, "", "a generation below 2^62"},
        {"a", 0, "worker", "\"worker\" is no task"},
        {"a", 0, "worker:0-9999999", "beyond the largest index"},
        {"a", 0, "worker:0-999999", "/job:worker/task:3 is not known to the cluster"},
        {"a", 0, "worker:1-2", "/job:worker/task:0 is not one of its tasks"},
    };
    struct three t = THREE(.seed = 1);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t token = arrive(t.w0, rows[i].name, rows[i].generation, rows[i].tasks, 0);
        const struct service_said *said = service_answer(t.w0, MU__BARRIER_PASSED, token);
        const struct mu__barrier_passed *body;
        char words[512];

        assert_non_null(said);
        body = (const void *)said->msg->body;
        mu__view_copy(body->message, words, sizeof words);
        if (strstr(words, rows[i].words) == NULL)
            fail_msg("\"%s\", expected \"%s\"", words, rows[i].words);
        assert_true(body->stays);
    }
    /* Nobody who is not registered is heard. */
    TELL(service_agent(t.s, "client", 9), BARRIER_ARRIVE, barrier_arrive, .token = 7,
         .name = mu__view_str("a"));
    expect_said(t.s->agents,
                "[    0] tasks_answer token=7 code=9 message=\""
                "/job:client/task:9 is not registered at /job:chief/task:0\"\n");
    service_end(t.s);
}

/* The counts of tasks that are not recoverable must be right. */
TEST(test_order)
{
    struct three t = THREE(.recoverable = "none");

    for (uint64_t i = 0; i < 3; i++) {
        (void)arrive(t.w0, "sync", i, "", 0);
        (void)arrive(t.w1, "sync", i, "", 0);
        (void)arrive(t.w2, "sync", i, "", 0);
    }
    (void)service_text(t.w0);
    (void)service_text(t.w1);
    (void)service_text(t.w2);
    (void)arrive(t.w0, "sync", 7, "", 0);
    expect_said(t.w0, "[    0] barrier_passed token=5 code=13 message=\"barrier "
                      "\"sync\": "
                      "/job:worker/task:0 is too quick: it arrives for generation 7, and "
                      "3 is next\" task=\"/job:worker/task:0\" stays=yes generation=3\n");
    (void)arrive(t.w0, "sync", 3, "", 0);
    (void)arrive(t.w1, "sync", 0, "", 0);
    expect_said(t.w0, "[    0] barrier_passed token=6 code=13 message=\"barrier "
                      "\"sync\": "
                      "/job:worker/task:1 is too slow, or was restarted: it arrives for "
                      "generation 0, and 3 runs\" task=\"/job:worker/task:1\" "
                      "generation=3\n");
    expect_said(t.w1, "[    0] barrier_passed token=5 code=13 message=\"barrier "
                      "\"sync\": "
                      "/job:worker/task:1 is too slow, or was restarted: it arrives for "
                      "generation 0, and 3 runs\" task=\"/job:worker/task:1\" stays=yes "
                      "generation=4\n");
    service_end(t.s);
}

TEST(test_calls_twice)
{
    struct three t = THREE(.seed = 1);

    (void)arrive(t.w0, "sync", 0, "", 0);
    service_run_until(t.s, 20);
    (void)arrive(t.w0, "sync", 0, "", 0);
    expect_said(t.w0, "[   20] barrier_passed token=2 code=1 message=\"this task has "
                      "called the same barrier again\" task=\"/job:worker/task:0\" "
                      "stays=yes\n");
    (void)arrive(t.w1, "sync", 0, "", 0);
    (void)arrive(t.w2, "sync", 0, "", 0);
    expect_said(t.w0, "[   20] barrier_passed token=3\n");
    service_end(t.s);
}

/* ---- limits ---- */

TEST(test_limit)
{
    struct service *s = SERVICE(.tasks = "ps:0-2,worker:0-3");
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);
    struct service_agent *w2 = service_task(s, "worker", 2);
    const char *words;

    service_run_until(s, 100);
    (void)arrive(w1, "init", 0, "", 1000);
    service_run_until(s, 150);
    /* The first who comes says the limit. */
    (void)arrive(w0, "init", 0, "", 20);
    service_run_until(s, 1099);
    expect_said(w0, "");
    service_run_until(s, 1100);
    words = "[ 1100] barrier_passed token=2 code=4 message=\"barrier \"init\": 2 of 7 "
            "tasks arrived in 1000 ms, /job:worker/task:1 first; missing: "
            "/job:ps/task:0 (never registered), /job:ps/task:1 (never registered), "
            "/job:ps/task:2 (never registered) and 2 more\" error_kind=5\n";
    expect_said(w0, words);
    expect_said(w1, words);
    expect_said(w2, "");
    /* Who comes too late hears the same; and so does who asks again. */
    service_run_until(s, 1250);
    (void)arrive(w2, "init", 0, "", 5000);
    expect_said(w2, "[ 1250] barrier_passed token=2 code=4 message=\"barrier \"init\": "
                    "2 of 7 tasks arrived in 1000 ms, /job:worker/task:1 first; missing: "
                    "/job:ps/task:0 (never registered), /job:ps/task:1 (never "
                    "registered), /job:ps/task:2 (never registered) and 2 more\" "
                    "error_kind=5\n");
    (void)arrive(w0, "init", 0, "", 0);
    assert_int_equal(w0->counts[MU__BARRIER_PASSED], 2);
    service_end(s);
}

/* Who is missing is said with when it was heard last. */
TEST(test_missing_words)
{
    struct three t = THREE(.seed = 1);

    t.w1->beats = false;
    service_run_until(t.s, 100);
    (void)arrive(t.w0, "sync", 0, "", 500);
    (void)arrive(t.w2, "sync", 0, "", 0);
    service_run_until(t.s, 700);
    expect_said(t.w0, "[  600] barrier_passed token=2 code=4 message=\"barrier "
                      "\"sync\": 2 "
                      "of 3 tasks arrived in 500 ms, /job:worker/task:0 first; missing: "
                      "/job:worker/task:1 (last heard 600 ms ago)\" error_kind=5\n");
    service_end(t.s);
}

/* A pause of the host itself counts against nobody: see mu__coord_clock. */
TEST(test_host_pause)
{
    struct three t = THREE(.seed = 1);

    (void)arrive(t.w0, "sync", 0, "", 500);
    sim_pause(t.s->hosts[0].node, 3000);
    service_run_until(t.s, 3050);
    expect_said(t.w0, "");
    (void)arrive(t.w1, "sync", 0, "", 0);
    (void)arrive(t.w2, "sync", 0, "", 0);
    expect_said(t.w0, "[ 3050] barrier_passed token=2\n");
    service_end(t.s);
}

/* ---- cancel ---- */

TEST(test_cancel)
{
    struct three t = THREE(.seed = 1);
    uint64_t token;

    expect_error(t.w0, cancel(t.w0, "sync", 0), -MU_EPRECONDITION,
                 "no task has arrived at a barrier of this name");
    (void)arrive(t.w0, "sync", 0, "", 0);
    (void)arrive(t.w1, "sync", 0, "", 0);
    expect_error(t.w2, cancel(t.w2, "sync", 0), -MU_EPRECONDITION,
                 "barrier \"sync\": this task has not come to generation 0");
    expect_error(t.w1, cancel(t.w1, "sync", 4), -MU_EPRECONDITION,
                 "barrier \"sync\": this task has not come to generation 4");
    service_run_until(t.s, 60);
    (void)service_text(t.w0);
    (void)service_text(t.w1);
    token = cancel(t.w0, "sync", 0);
    expect_said(t.w0, "[   60] barrier_passed token=3 code=1 message=\"barrier \"sync\": "
                      "cancelled by /job:worker/task:0\" task=\"/job:worker/task:0\"\n"
                      "[   60] tasks_answer token=4\n");
    expect_said(t.w1, "[   60] barrier_passed token=2 code=1 message=\"barrier \"sync\": "
                      "cancelled by /job:worker/task:0\" task=\"/job:worker/task:0\"\n");
    /* Asked again, because the answer was lost: it did happen. */
    TELL(t.w0, BARRIER_CANCEL, barrier_cancel, .token = token,
         .name = mu__view_str("sync"));
    expect_said(t.w0, "[   60] tasks_answer token=4\n");
    (void)arrive(t.w2, "sync", 0, "", 0);
    expect_said(t.w2, "[    0] tasks_answer token=2 code=9 message=\"barrier \"sync\": "
                      "this task has not come to generation 0\"\n"
                      "[   60] barrier_passed token=3 code=1 message=\"barrier \"sync\": "
                      "cancelled by /job:worker/task:0\" task=\"/job:worker/task:0\"\n");
    /* A name that is used again is cancelled by its generation. */
    (void)arrive(t.w0, "sync", 1, "", 0);
    expect_error(t.w0, cancel(t.w0, "sync", 0), 0, "");
    expect_error(t.w1, cancel(t.w1, "sync", 0), -MU_EPRECONDITION,
                 "barrier \"sync\": generation 0 is over");
    expect_ok(t.w0, cancel(t.w0, "sync", 1));
    (void)arrive(t.w0, "sync", 2, "worker:0", 0);
    expect_error(t.w0, cancel(t.w0, "sync", 2), -MU_EPRECONDITION,
                 "barrier \"sync\": generation 2 is over");
    service_end(t.s);
}

/* ---- participants that go ---- */

/* One that is not recoverable ends its barriers, and only those. */
TEST(test_fate)
{
    struct three t = THREE(.recoverable = "none");

    (void)arrive(t.w0, "with", 0, "", 0);
    (void)arrive(t.w0, "without", 0, "worker:0,worker:2", 0);
    service_run_until(t.s, 100);
    service_agent_crash(t.w1);
    service_run_until(t.s, 699);
    expect_said(t.w0, "");
    service_run_until(t.s, 700);
    expect_said(t.w0, "[  700] barrier_passed token=2 code=13 message=\"barrier \"with\" "
                      "needs /job:worker/task:1, which is in error: /job:worker/task:1 "
                      "is lost: its link has been down for 600 ms\" "
                      "task=\"/job:worker/task:1\" error_kind=3\n"
                      "[  700] task_error code=14 message=\"/job:worker/task:1 is "
                      "lost: its link has been down for 600 ms\" "
                      "task=\"/job:worker/task:1\"\n");
    (void)arrive(t.w2, "without", 0, "worker:0,worker:2", 0);
    expect_said(t.w0, "[  700] barrier_passed token=3\n");
    /* And one that begins with it in error ends at once. */
    (void)arrive(t.w2, "later", 0, "", 0);
    (void)service_next(t.w2, MU__TASK_ERROR);
    expect_said(t.w2, "[  700] barrier_passed token=2\n"
                      "[  700] barrier_passed token=3 code=13 message=\"barrier "
                      "\"later\" "
                      "needs /job:worker/task:1, which is in error: /job:worker/task:1 "
                      "is lost: its link has been down for 600 ms\" "
                      "task=\"/job:worker/task:1\" error_kind=3\n");
    service_end(t.s);
}

TEST(test_leaves)
{
    struct three t = THREE(.recoverable = "none");

    (void)arrive(t.w0, "sync", 0, "", 0);
    (void)arrive(t.w1, "sync", 0, "", 0);
    service_run_until(t.s, 30);
    (void)service_leave(t.w1, 0);
    expect_said(t.w0, "[   30] barrier_passed token=2 code=13 message=\"barrier \"sync\" "
                      "needs /job:worker/task:1, which has left or was reset\" "
                      "task=\"/job:worker/task:1\" error_kind=3\n");
    service_end(t.s);
}

/* What a task says of itself is what its peers are told, also if it is recoverable. */
TEST(test_reported)
{
    struct three t = THREE(.recoverable = "all");

    (void)arrive(t.w0, "sync", 0, "", 0);
    (void)arrive(t.w1, "sync", 0, "", 0);
    service_run_until(t.s, 40);
    (void)service_report(t.w2, -MU_EDATALOSS, "shard 3 is corrupt");
#define WORDS                                                                  \
    "[   40] barrier_passed token=2 code=15 message=\"barrier \"sync\" needs " \
    "/job:worker/task:2, which is in error: shard 3 is corrupt\" "             \
    "task=\"/job:worker/task:2\"\n"

    expect_said(t.w0, WORDS);
    expect_said(t.w1, WORDS);
#undef WORDS

    (void)arrive(t.w1, "other", 0, "", 0);
    expect_said(t.w1, "[   40] barrier_passed token=3 code=15 message=\"barrier "
                      "\"other\" "
                      "needs /job:worker/task:2, which is in error: shard 3 is corrupt\" "
                      "task=\"/job:worker/task:2\"\n");
    service_end(t.s);
}

/* A recoverable one is not counted any more, and waited for. It comes back, counting from
 * 0, to the third generation. */
TEST(test_recoverable)
{
    struct three t = THREE(.seed = 1);

    for (uint64_t i = 0; i < 2; i++) {
        (void)arrive(t.w0, "sync", i, "", 0);
        (void)arrive(t.w1, "sync", i, "", 0);
        (void)arrive(t.w2, "sync", i, "", 0);
    }
    (void)service_text(t.w0);
    (void)service_text(t.w2);
    (void)arrive(t.w0, "sync", 2, "", 0);
    (void)arrive(t.w1, "sync", 2, "", 0);
    service_run_until(t.s, 100);
    service_agent_crash(t.w1);
    service_run_until(t.s, 800);
    (void)arrive(t.w2, "sync", 2, "", 0);
    expect_said(t.w0, "");
    service_run_until(t.s, 2000);
    service_agent_restart(t.w1);
    (void)service_register(t.w1, false, 0);
    t.w1->beats = true;
    expect_said(t.w0, "");
    (void)arrive(t.w1, "sync", 0, "", 0);
    expect_said(t.w0, "[ 2000] barrier_passed token=4 generation=2\n");
    expect_said(t.w1, "[ 2000] tasks_answer token=1 since=1\n"
                      "[ 2000] barrier_passed token=2 generation=2\n");
    expect_said(t.w2, "[ 2000] barrier_passed token=4 generation=2\n");
    /* It has been told which one that was, and counts with the others from now on. */
    (void)arrive(t.w0, "sync", 3, "", 0);
    (void)arrive(t.w1, "sync", 3, "", 0);
    (void)arrive(t.w2, "sync", 3, "", 0);
    expect_said(t.w1, "[ 2000] barrier_passed token=3 generation=3\n");
    service_end(t.s);
}

/* A restart that is seen before the death: the former incarnation is not counted. */
TEST(test_quick_restart)
{
    struct three t = THREE(.seed = 1);

    (void)arrive(t.w1, "sync", 0, "", 0);
    (void)arrive(t.w0, "sync", 0, "", 0);
    service_agent_restart(t.w1);
    (void)service_register(t.w1, false, 0);
    t.w1->beats = true;
    service_run_until(t.s, 100);
    (void)arrive(t.w2, "sync", 0, "", 0);
    expect_said(t.w0, "");
    expect_said(t.w1, "[    0] tasks_answer token=1 since=1\n");
    (void)arrive(t.w1, "sync", 0, "", 0);
    expect_said(t.w1, "[  100] barrier_passed token=2\n");
    expect_said(t.w0, "[  100] barrier_passed token=2\n");
    service_end(t.s);
}

/* A broken link is no death: the arrival counts, and its answer is asked for again. */
TEST(test_broken_link)
{
    struct three t = THREE(.seed = 1);

    (void)arrive(t.w0, "sync", 0, "", 0);
    (void)arrive(t.w1, "sync", 0, "", 0);
    service_link_down(t.w1, 0, "connection reset");
    service_run_until(t.s, 200);
    (void)arrive(t.w2, "sync", 0, "", 0);
    expect_said(t.w0, "[  200] barrier_passed token=2\n");
    service_run_until(t.s, 400);
    service_link_up(t.w1, 0);
    (void)service_register(t.w1, false, 0);
    arrive_again(t.w1, 2, "sync", 0);
    expect_said(t.w1, "[  400] tasks_answer token=3 since=1\n"
                      "[  400] barrier_passed token=2\n");
    service_end(t.s);
}

TEST_PROGRAM()
