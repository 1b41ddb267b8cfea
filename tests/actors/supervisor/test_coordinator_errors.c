/* Errors of closures: which are raised, when, and what they say. */
#include "tests/support/story.h"

enum what {
    OF_FUNCTION,
    OF_FUNCTION_SERVER_WORDS, /* the words of a failing server, and nothing else */
    OF_SERVER,
    OF_SERVER_SILENT, /* the same without a word */
    WITH_STACK,
    WITH_LINES
};

/* Fails in the way that its argument says. */
static int run_break(mu_run *run, void *user)
{
    const mu_error server = {
        .code = -MU_EUNAVAILABLE,
        .kind = MU_ERROR_SERVER,
        .task = "/job:ps/task:3",
        .message = "/job:ps/task:3 is lost",
    };
    mu_error silent = server;

    note_run(user, "break", number_of(run));
    silent.message[0] = '\0';
    switch (number_of(run)) {
    case OF_FUNCTION_SERVER_WORDS:
        return mu_run_fail(run, -MU_EINVALID, "%s", server.message);
    case OF_SERVER:
        return mu_run_fail_with(run, &server);
    case OF_SERVER_SILENT:
        return mu_run_fail_with(run, &silent);
    case WITH_STACK:
        mu_run_log(run, "not this line");
        mu_run_set_stack_trace(run, "at main\nat loss");
        break;
    case WITH_LINES:
        mu_run_log(run, "step 1");
        mu_run_log(run, "step 2");
        break;
    default:
        break;
    }
    return mu_run_fail(run, -MU_EINVALID, "the data is bad");
}

static const struct cluster_function own[] = {{"break", run_break, 0}};

#define OWN .functions = own, .functions_count = 1

/* Two workers, a window of one. The first closure fails at 180; the other worker is busy
 * until 1170. A join that is asked for at 300 is over when the busy one has ended, with
 * the error that came first; those that were queued have never run. */
TEST(test_raised_once)
{
    struct cluster *cluster = BEGIN(.workers = 2, .window = 1);
    struct cluster_closure *closures[5];
    struct cluster_call *call;

    NEEDS_LONG_TURNS(cluster);
    open_at(cluster->chief);
    closures[0] = cluster_schedule(cluster->chief, "fail");
    run_for(cluster, 5);
    set_work_ms(cluster, 1000);
    closures[1] = cluster_schedule(cluster->chief, "square");
    schedule(cluster->chief, "fail", 3, closures + 2);
    run_until(cluster, 175);
    set_work_ms(cluster, 1000);
    run_until(cluster, 300);
    call = cluster_ask(cluster->chief, MU__CLIENT_JOIN, -1);
    assert_int_equal(cluster_wait(call), -MU_EINVALID);
    assert_string_equal(call->of.call.error.message, "bad 0");

    /* What ran has ended: worker/0 began `fail 2` at 190 and was asked to stop. */
    assert_true(call->done_ms >= 1185);
    for (size_t i = 0; i < 5; i++)
        assert_true(is_resolved(closures[i]));
    assert_int_equal(cluster->runs[3] + cluster->runs[4], 0);
    assert_int_equal(join(cluster->chief), 0);
    end(cluster);
}

/* Threads that wait for room and for the end, when a closure fails: each may have lost
 * closures, so each gets the error; a thread that comes later does not. */
TEST(test_raised_to_all_that_wait)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 1, .queue_max = 2);
    struct cluster_closure *closures[2];
    struct cluster_call *calls[5];

    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    schedule(cluster->chief, "fail", 2, closures);
    run_for(cluster, 100);
    for (size_t i = 0; i < 5; i++)
        calls[i] = i < 2 ? cluster_admit(cluster->chief, 1, -1)
                         : cluster_ask(cluster->chief, MU__CLIENT_JOIN, -1);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(cluster_wait(calls[i]), -MU_EINVALID);
        assert_string_equal(calls[i]->of.call.error.message, "bad 0");
        assert_int_equal(calls[i]->done_ms, calls[0]->done_ms);
    }
    assert_true(is_resolved(closures[1]));
    assert_int_equal(join(cluster->chief), 0);
    end(cluster);
}

/* Every error is there to be listed: the first, and those that came after it. */
TEST(test_all_are_kept)
{
    struct cluster *cluster = BEGIN(.workers = 2);
    struct cluster_closure *closures[4];
    struct mu__error_entry *at;
    unsigned count = 0;
    bool seen[4] = {false};

    open_at(cluster->chief);
    schedule(cluster->chief, "fail", 4, closures);
    run_for(cluster, 200);
    assert_int_equal(join(cluster->chief), -MU_EINVALID);
    expect_counts(cluster->chief, 0, 4, 0);
    at = atomic_load(&cluster->chief->session->shared.errors);
    while (at != NULL) {
        struct mu__error_entry *next = at->next;

        assert_string_equal(at->error.function, "fail");
        assert_int_equal(at->error.kind, MU_ERROR_FUNCTION);
        seen[at->error.message[4] - '0'] = true;
        count++;
        mu__free_array(at);
        at = next;
    }
    atomic_store(&cluster->chief->session->shared.errors, NULL);
    assert_int_equal(count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_true(seen[i]);
    end(cluster);
}

/* What an error is, field by field: where it came from is not only in its words. */
TEST(test_fields)
{
    static const struct {
        enum what what;
        int code;
        enum mu_error_kind kind;
        const char *task;
        const char *message;
        const char *detail;
    } rows[] = {
        {OF_FUNCTION, -MU_EINVALID, MU_ERROR_FUNCTION, "/job:worker/task:0",
         "the data is bad", ""},
        {WITH_STACK, -MU_EINVALID, MU_ERROR_FUNCTION, "/job:worker/task:0",
         "the data is bad", "at main\nat loss"},
        {WITH_LINES, -MU_EINVALID, MU_ERROR_FUNCTION, "/job:worker/task:0",
         "the data is bad", "step 1\nstep 2"},
        {OF_SERVER, -MU_EUNAVAILABLE, MU_ERROR_SERVER, "/job:ps/task:3",
         "/job:ps/task:3 is lost", ""},
    };
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1, OWN);

    open_at(cluster->clients[0]);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cluster_closure *closure =
            call_with(cluster->clients[0], "break", rows[i].what, NULL);
        mu_error error = raised(cluster->clients[0]);

        assert_int_equal(error.code, rows[i].code);
        assert_int_equal(error.kind, rows[i].kind);
        assert_string_equal(error.task, rows[i].task);
        assert_string_equal(error.message, rows[i].message);
        assert_string_equal(error.detail, rows[i].detail);
        assert_string_equal(error.function, "break");
        assert_int_equal(error.attempt, 1);
        assert_int_not_equal(error.closure, 0);
        assert_int_equal(error.closure, error_of(closure)->closure);
    }
    end(cluster);
}

/* The same words with another code and task are another thing; a server's failure is one
 * without any words. (Why it is tried nine times: test_coordinator_retries.c.) */
TEST(test_words_decide_nothing)
{
    static const struct {
        enum what what;
        uint64_t retried;
        int code;
    } rows[] = {
        {OF_FUNCTION_SERVER_WORDS, 0, -MU_EINVALID},
        {OF_SERVER, 8, -MU_EUNAVAILABLE},
        {OF_SERVER_SILENT, 8, -MU_EUNAVAILABLE},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cluster *cluster = BEGIN(.workers = 3, .node.server_failures = 2, OWN);
        struct cluster_closure *closure;

        open_at(cluster->chief);
        closure = call_with(cluster->chief, "break", rows[i].what, NULL);
        assert_int_equal(join(cluster->chief), rows[i].code);
        assert_int_equal(error_of(closure)->attempt, rows[i].retried + 1);
        assert_int_equal(retried(cluster->chief), rows[i].retried);
        end(cluster);
    }
}

/* A closure whose input failed fails with that input's error, as its own kind; one that
 * uses this one in turn says the same words again, not words around words. */
TEST(test_input_error)
{
    struct cluster *cluster = BEGIN(.workers = 1, OWN);
    struct cluster_closure *first;
    struct cluster_closure *second;
    struct cluster_closure *third;
    char words[128];

    open_at(cluster->chief);
    first = call_with(cluster->chief, "break", WITH_LINES, NULL);
    second =
        cluster_schedule_args(cluster->chief, "square", cluster_reference(first), NULL);
    third =
        cluster_schedule_args(cluster->chief, "square", cluster_reference(second), NULL);
    run_for(cluster, 100);
    (void)snprintf(words, sizeof words,
                   "input closure %llu \"break\" failed: the data is bad",
                   (unsigned long long)error_of(first)->closure);
    assert_int_equal(error_of(first)->kind, MU_ERROR_FUNCTION);
    assert_int_equal(error_of(second)->kind, MU_ERROR_INPUT);
    assert_int_equal(error_of(second)->code, -MU_EINVALID);
    assert_string_equal(error_of(second)->message, words);
    assert_string_equal(error_of(second)->task, "/job:worker/task:0");
    assert_string_equal(error_of(second)->function, "square");
    assert_string_equal(error_of(second)->detail, "step 1\nstep 2");
    assert_int_equal(error_of(second)->attempt, 0);
    assert_int_equal(error_of(third)->kind, MU_ERROR_INPUT);
    assert_string_equal(error_of(third)->message, words);
    assert_string_equal(raised(cluster->chief).message, "the data is bad");
    end(cluster);
}

/* Several inputs failed: the first is told in full, the others are counted. */
TEST(test_input_errors)
{
    struct cluster *cluster = BEGIN(.workers = 1);
    struct cluster_closure *failed[3];
    struct cluster_closure *user;
    mu_value *list = mu_value_list();

    open_at(cluster->chief);
    schedule(cluster->chief, "fail", 3, failed);
    for (size_t i = 0; i < 3; i++)
        (void)mu_value_append(list, cluster_reference(failed[i]));
    user = cluster_schedule_args(cluster->chief, "square", list, NULL);
    run_for(cluster, 100);
    assert_non_null(strstr(error_of(user)->message, "\"fail\" failed: bad 0 (and 2 more "
                                                    "of its inputs failed)"));
    assert_int_equal(join(cluster->chief), -MU_EINVALID);
    end(cluster);
}

/* A worker that is lost under a closure as often as is allowed. */
TEST(test_worker_error)
{
    struct cluster *cluster = BEGIN(.workers = 1, .attempts_max = 1);
    struct cluster_closure *closure;
    mu_error error;

    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    closure = cluster_schedule(cluster->chief, "square");
    run_for(cluster, 100);
    assert_int_equal(sim_restart(cluster->workers[0]->node), 0);
    error = raised(cluster->chief);
    assert_int_equal(error.code, -MU_EABORTED);
    assert_int_equal(error.kind, MU_ERROR_WORKER);
    assert_int_equal(error.attempt, 1);
    assert_string_equal(error.task, "/job:worker/task:0");
    assert_string_equal(
        error.message,
        "function \"square\" lost its worker 1 times, last /job:worker/task:0; given up");
    assert_int_equal(closure->future->error->kind, MU_ERROR_WORKER);
    end(cluster);
}

/* An error that is its value's alone: nobody raises it, nothing is cancelled for it; of
 * the function, of an input, of a closure given up. Another one's error is raised as
 * ever. */
TEST(test_own_error)
{
    struct cluster *cluster = BEGIN(.workers = 1, .attempts_max = 1);
    struct cluster_closure *failed;
    struct cluster_closure *lost;
    struct cluster_closure *good;
    struct cluster_closure *bad;

    open_at(cluster->chief);
    failed = cluster_schedule_with(cluster->chief, "fail",
                                   ASK(.flags = MU_CLOSURE_RAISE_ON_FETCH));
    good = cluster_schedule(cluster->chief, "square");
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(&good, 1);
    assert_int_equal(error_of(failed)->code, -MU_EINVALID);
    assert_int_equal(error_of(failed)->kind, MU_ERROR_FUNCTION);
    assert_null(atomic_load(&cluster->chief->session->shared.errors));
    set_work_ms(cluster, 1000);
    lost = cluster_schedule_with(cluster->chief, "square",
                                 ASK(.flags = MU_CLOSURE_RAISE_ON_FETCH));
    run_for(cluster, 100);
    assert_int_equal(sim_restart(cluster->workers[0]->node), 0);
    assert_int_equal(join(cluster->chief), 0);
    assert_int_equal(error_of(lost)->kind, MU_ERROR_WORKER);
    expect_counts(cluster->chief, 1, 2, 0);
    bad = cluster_schedule(cluster->chief, "fail");
    assert_int_equal(join(cluster->chief), -MU_EINVALID);
    assert_int_equal(error_of(bad)->code, -MU_EINVALID);
    end(cluster);
}

TEST(test_limit_error)
{
    struct cluster *cluster = BEGIN(.workers = 1);
    struct cluster_closure *closure;
    mu_error error;

    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    closure = cluster_schedule_with(cluster->chief, "square", ASK(.deadline_ms = 300));
    error = raised(cluster->chief);
    assert_int_equal(error.code, -MU_EDEADLINE);
    assert_int_equal(error.kind, MU_ERROR_LIMIT);
    assert_string_equal(error.task, "/job:chief/task:0");
    assert_string_equal(error.message, "the closure's deadline has passed: it runs on "
                                       "/job:worker/task:0 for 280 ms");
    assert_int_equal(closure->future->error->kind, MU_ERROR_LIMIT);
    end(cluster);
}

/* While a worker works, nobody is told of one that does not come back. When none is left,
 * what waits ends, and so does what comes until one is back; who waits for nothing is not
 * told. */
TEST(test_no_worker_is_left)
{
    struct cluster *cluster =
        BEGIN(.workers = 3, .clients = 2, .window = 1, .node.recovery_ms = 1000);
    struct cluster_closure *closures[2];
    struct cluster_closure *fetched;
    struct cluster_closure *late;
    mu_error error;

    open_at(cluster->clients[0]);
    open_at(cluster->clients[1]);
    closures[0] = cluster_schedule(cluster->clients[0], "square");
    closures[1] = cluster_schedule(cluster->clients[1], "square");
    run_for(cluster, 100);
    sim_crash(cluster->workers[0]->node);
    run_for(cluster, 5000);
    expect_squares(closures, 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(join(cluster->clients[i]), 0);

    sim_crash(cluster->workers[1]->node);
    run_for(cluster, 500);
    sim_crash(cluster->workers[2]->node);
    fetched = cluster_schedule_with(cluster->clients[0], "square",
                                    ASK(.flags = MU__CLOSURE_OWN_ERROR));
    closures[0] = cluster_schedule(cluster->clients[0], "square");
    run_for(cluster, 900);
    assert_false(is_resolved(fetched));
    run_for(cluster, 500);
    error = raised(cluster->clients[0]);
    assert_int_equal(error.code, -MU_EUNAVAILABLE);
    assert_int_equal(error.kind, MU_ERROR_WORKER);
    assert_string_equal(error.message, "no worker is left: /job:worker/task:2 has not "
                                       "come back within 1000 ms");
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(join(cluster->clients[i]), 0);
    assert_int_equal(error_of(fetched)->code, -MU_EUNAVAILABLE);
    assert_string_equal(error_of(fetched)->message, error.message);
    late = cluster_schedule_with(cluster->clients[1], "square",
                                 ASK(.flags = MU__CLOSURE_OWN_ERROR));
    run_for(cluster, 100);
    assert_int_equal(error_of(late)->code, -MU_EUNAVAILABLE);

    assert_int_equal(sim_restart(cluster->workers[1]->node), 0);
    run_for(cluster, 1000);
    closures[0] = cluster_schedule(cluster->clients[0], "square");
    assert_int_equal(join(cluster->clients[0]), 0);
    expect_squares(closures, 1);
    end(cluster);
}

TEST_PROGRAM()
