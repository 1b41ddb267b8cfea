/* The distribute coordinator without servers: local runs, and the threads of a client in
 * standalone mode. What each call is told, who meets whom, how all of it ends. */
#include "tests/real/coordination/distribute_fixture.h"

static int eval(mu_context *c, void *user)
{
    struct notes *notes = user;

    note(notes, c, "eval");
    assert_true(mu_context_is_evaluation(c));
    while (mu_context_distributed_mode(c) == 0 && mu_context_task_type(c) != NULL &&
           !mu_context_cancelled(c) && !is_task(notes->fails, c))
        uv_sleep(1);
    mu_context_return(c, mu_value_string("good"));
    return act(notes, c);
}

static int fail_without_code(mu_context *c, void *user)
{
    static const mu_error none;

    (void)user;
    return mu_context_fail_with(c, &none);
}

static int code_of(const mu_value *results, const char *name)
{
    int64_t code = 1;

    if (mu_value_get_int(mu_value_find(mu_value_find(results, name), "code"), &code) != 0)
        fail_msg("no result of %s", name);
    return (int)code;
}

static const char *text_of(const mu_value *results, const char *name, const char *key)
{
    const char *text = "";
    size_t size;

    (void)mu_value_get_string(mu_value_find(mu_value_find(results, name), key), &text,
                              &size);
    return text;
}

/* ---- local ---- */

TEST_ON(test_local, struct notes *notes, setup, teardown)
{
    static const char *const lines[] = {
        "work -:-1 n=0 chief=1 distributed=0 init=1 save=1 summary=1 barrier=0 "
        "master=\"\"",
    };
    mu_distribute_options o;
    mu_value *results = NULL;
    int64_t number = 0;

    options_of(notes, &o);
    (void)run(&o, &results);
    check_lines(notes, lines, COUNT(lines));
    assert_int_equal(mu_value_count(results), 1);
    assert_int_equal(code_of(results, "worker_fn"), 0);
    (void)mu_value_get_int(mu_value_find(mu_value_find(results, "worker_fn"), "value"),
                           &number);
    assert_int_equal(number, 99);
    assert_non_null(strstr(notes->log, "1 distribute: there is no eval function: "
                                       "nothing is evaluated"));
    mu_value_free(results);
}

TEST_ON(test_local_evaluates, struct notes *notes, setup, teardown)
{
    static const char *const lines[] = {
        "eval -:-1 n=0 chief=1 distributed=0 init=1 save=1 summary=1 barrier=0 "
        "master=\"\"",
        "work -:-1 n=0 chief=1 distributed=0 init=1 save=1 summary=1 barrier=0 "
        "master=\"\"",
    };
    mu_distribute_options o;
    mu_value *results = NULL;

    options_of(notes, &o);
    o.mode = MU_MODE_INDEPENDENT;
    o.eval = eval;
    o.strategy = mu_strategy_parameter_server();
    (void)run(&o, &results);
    check_lines(notes, lines, COUNT(lines));
    assert_string_equal(text_of(results, "eval_fn", "value"), "good");
    assert_non_null(strstr(notes->log, "there is no eval strategy"));
    mu_value_free(results);
}

static int fail_plainly(mu_context *c, void *user)
{
    (void)c;
    (void)user;
    return 7;
}

/* An error ends it: nothing is evaluated, and the result has it, too. */
TEST_ON(test_local_fails, struct notes *notes, setup, teardown)
{
    mu_distribute_options o;
    mu_value *results = NULL;
    mu_error error = {0};

    options_of(notes, &o);
    o.worker = fail_plainly;
    o.eval = eval;
    assert_int_equal(mu_distribute_run(&o, &error, &results), -MU_EUNKNOWN);
    assert_string_equal(error.message,
                        "the worker function of worker_fn ended with EUNKNOWN (-2)");
    assert_int_equal(notes->count, 0);
    assert_int_equal(code_of(results, "worker_fn"), -MU_EUNKNOWN);
    assert_string_equal(text_of(results, "worker_fn", "error"), "EUNKNOWN");
    assert_int_equal(mu_value_count(results), 1);
    mu_value_free(results);
}

static int look_for_things(mu_context *c, void *user)
{
    mu_error error = {0};
    mu_session *session = NULL;
    mu_node *node = NULL;

    assert_null(user);
    assert_null(mu_context_cluster(c));
    assert_string_equal(mu_context_task(c), "");
    assert_int_equal(mu_context_wait_for_others(c, 0, &error), -MU_EINVALID);
    assert_string_equal(error.message,
                        "worker_fn has nobody to wait for: there is no barrier");
    assert_int_equal(mu_context_node(c, &error, &node), -MU_EPRECONDITION);
    assert_string_equal(error.message, "worker_fn has no node: it runs locally");
    assert_int_equal(mu_context_session(c, NULL, &error, &session), -MU_EPRECONDITION);
    assert_false(mu_context_cancelled(c));
    return 0;
}

TEST_ON(test_local_has_nothing, struct notes *notes, setup, teardown)
{
    mu_distribute_options o;

    options_of(notes, &o);
    o.worker = look_for_things;
    o.worker_user = NULL;
    assert_int_equal(run(&o, NULL), 0);
}

static int wait_alone(mu_context *c, void *user)
{
    (void)user;
    return mu_context_wait_for_others(c, -1, NULL);
}

TEST_ON(test_barrier_optional, struct notes *notes, setup, teardown)
{
    mu_distribute_options o;

    options_of(notes, &o);
    o.worker = wait_alone;
    assert_int_equal(mu_distribute_run(&o, NULL, NULL), -MU_EINVALID);
    o.barrier_optional = 1;
    (void)run(&o, NULL);
}

static int nest(mu_context *c, void *user)
{
    mu_error error = {0};
    mu_value *results = (mu_value *)user;
    int rv = mu_distribute_run(user, &error, &results);

    assert_int_equal(rv, -MU_EINVALID);
    assert_string_equal(error.message, "already in a context: that of worker_fn");
    assert_null(results);
    assert_ptr_equal(mu_context_current(), c);
    return 0;
}

TEST_ON(test_nesting, struct notes *notes, setup, teardown)
{
    mu_distribute_options o;

    options_of(notes, &o);
    o.worker = nest;
    o.worker_user = &o;
    assert_int_equal(run(&o, NULL), 0);
}

/* ---- standalone ---- */

TEST_ON(test_between_graph, struct notes *notes, setup, teardown)
{
    static const char *const lines[] = {
        "eval evaluator:0 n=3 chief=1 distributed=0 init=1 save=1 summary=1 barrier=0 "
        "master=\"\"",
        "work chief:0 n=3 chief=1 distributed=1 init=1 save=1 summary=1 barrier=1 "
        "master=\"grpc://c:1\" filters=/job:chief/task:0,/job:ps",
        "work worker:0 n=3 chief=0 distributed=1 init=0 save=0 summary=0 barrier=1 "
        "master=\"grpc://w:1\" filters=/job:worker/task:0,/job:ps",
        "work worker:1 n=3 chief=0 distributed=1 init=0 save=0 summary=0 barrier=1 "
        "master=\"grpc://w:2\" filters=/job:worker/task:1,/job:ps",
    };
    mu_cluster *cluster = parse("{" C "," W2 "," P "," E "}");
    mu_distribute_options o;
    mu_value *results = NULL;
    int64_t number = 0;

    options_of(notes, &o);
    o.cluster = cluster;
    o.eval = eval;
    o.strategy = o.eval_strategy = mu_strategy_parameter_server();
    notes->wait = true;
    (void)run(&o, &results);
    check_lines(notes, lines, COUNT(lines));
    assert_int_equal(mu_value_count(results), 4);
    assert_int_equal(code_of(results, "/job:worker/task:1"), 0);
    (void)mu_value_get_int(
        mu_value_find(mu_value_find(results, "/job:worker/task:1"), "value"), &number);
    assert_int_equal(number, 101);
    assert_string_equal(text_of(results, "/job:evaluator/task:0", "value"), "good");
    assert_string_equal(notes->log, "");
    mu_value_free(results);
    mu_cluster_free(cluster);
}

TEST_ON(test_in_graph, struct notes *notes, setup, teardown)
{
    static const char *const lines[] = {
        "work -:-1 n=2 chief=1 distributed=1 init=1 save=1 summary=1 barrier=0 "
        "master=\"tls://w:1\"",
        "work evaluator:0 n=2 chief=1 distributed=0 init=1 save=1 summary=1 barrier=0 "
        "master=\"\"",
    };
    mu_cluster *cluster = parse("{" W2 "," P "," E "}");
    mu_distribute_options o;
    mu_value *results = NULL;

    options_of(notes, &o);
    o.cluster = cluster;
    o.rpc_layer = "tls";
    (void)run(&o, &results);
    check_lines(notes, lines, COUNT(lines));
    assert_int_equal(mu_value_count(results), 2);
    assert_int_equal(code_of(results, "worker_fn"), 0);
    assert_non_null(strstr(notes->log, "1 distribute: there is no eval function: the "
                                       "worker function stands for it\n"));
    assert_non_null(strstr(notes->log, "1 distribute: there is no eval strategy: "));
    mu_value_free(results);
    mu_cluster_free(cluster);
}

enum { ROUNDS = 50 };

/* Nobody is in a round that the others have not finished. */
static int go_round(mu_context *c, void *user)
{
    struct notes *notes = user;
    int rv = 0;

    for (int round = 0; rv == 0 && round < ROUNDS; round++) {
        atomic_fetch_add(&notes->rounds, 1);
        rv = mu_context_wait_for_others(c, SOON_MS, NULL);
        assert_true(atomic_load(&notes->rounds) >= (round + 1) * 3);
        assert_true(atomic_load(&notes->rounds) <= (round + 2) * 3);
    }
    return rv;
}

TEST_ON(test_rounds, struct notes *notes, setup, teardown)
{
    mu_cluster *cluster = parse("{" W3 "}");
    mu_distribute_options o;

    options_of(notes, &o);
    o.cluster = cluster;
    o.worker = go_round;
    o.strategy = mu_strategy_parameter_server();
    (void)run(&o, NULL);
    assert_int_equal(atomic_load(&notes->rounds), ROUNDS * 3);
    mu_cluster_free(cluster);
}

/* A task that fails before the barrier: the others do not wait for it, and hear why. */
TEST_ON(test_failure_at_the_barrier, struct notes *notes, setup, teardown)
{
    mu_cluster *cluster = parse("{" C "," W2 "," E "}");
    mu_distribute_options o;
    mu_value *results = NULL;
    mu_error error = {0};

    options_of(notes, &o);
    o.cluster = cluster;
    o.eval = eval;
    o.strategy = o.eval_strategy = mu_strategy_parameter_server();
    notes->wait = true;
    notes->timeout_ms = -1;
    notes->fails = "/job:worker/task:1";
    assert_int_equal(mu_distribute_run(&o, &error, &results), -MU_EDATALOSS);
    assert_string_equal(error.message, "/job:worker/task:1 lost it");
    assert_string_equal(error.task, "/job:worker/task:1");
    assert_int_equal(code_of(results, "/job:chief/task:0"), -MU_EDATALOSS);
    assert_int_equal(code_of(results, "/job:worker/task:0"), -MU_EDATALOSS);
    assert_string_equal(text_of(results, "/job:worker/task:0", "task"),
                        "/job:worker/task:1");
    assert_string_equal(text_of(results, "/job:worker/task:1", "message"),
                        "/job:worker/task:1 lost it");
    assert_int_equal(code_of(results, "/job:evaluator/task:0"), 0);
    mu_value_free(results);
    mu_cluster_free(cluster);
}

/* The evaluator's error counts like any other, and ends the workers' waiting. */
TEST_ON(test_evaluator_fails, struct notes *notes, setup, teardown)
{
    mu_cluster *cluster = parse("{" W2 "," E "}");
    mu_distribute_options o;
    mu_value *results = NULL;
    mu_error error = {0};

    options_of(notes, &o);
    o.cluster = cluster;
    o.eval = eval;
    o.strategy = mu_strategy_parameter_server();
    notes->wait = true;
    notes->timeout_ms = -1;
    notes->fails = "/job:evaluator/task:0";
    notes->hangs = "/job:worker/task:1";
    o.end_timeout_ms = 300;
    assert_int_equal(mu_distribute_run(&o, &error, &results), -MU_EDATALOSS);
    assert_int_equal(code_of(results, "/job:worker/task:0"), -MU_EDATALOSS);
    assert_int_equal(code_of(results, "/job:worker/task:1"), -MU_EDEADLINE);
    assert_string_equal(text_of(results, "/job:worker/task:1", "message"),
                        "/job:worker/task:1 did not come to its end within 300 ms");
    assert_non_null(strstr(notes->log, "and is left behind"));
    mu_value_free(results);
    mu_cluster_free(cluster);
    release(notes);
}

/* Who returns without coming is not waited for, either. */
TEST_ON(test_leaves_without_coming, struct notes *notes, setup, teardown)
{
    mu_cluster *cluster = parse("{" W3 "}");
    mu_distribute_options o;
    mu_value *results = NULL;
    mu_error error = {0};

    options_of(notes, &o);
    o.cluster = cluster;
    o.strategy = mu_strategy_parameter_server();
    notes->wait = true;
    notes->timeout_ms = -1;
    notes->leaves = "/job:worker/task:2";
    assert_int_equal(mu_distribute_run(&o, &error, &results), -MU_EABORTED);
    assert_string_equal(error.message, "/job:worker/task:2 has ended, and will not come "
                                       "to the barrier");
    assert_int_equal(code_of(results, "/job:worker/task:2"), 0);
    mu_value_free(results);
    mu_cluster_free(cluster);
}

/* The chief waits without a limit, and a worker says that it need not. */
static int end_the_chief_s_wait(mu_context *c, void *user)
{
    struct notes *notes = user;
    mu_error error = {0};
    int rv;

    if (!is_task("/job:chief/task:0", c)) {
        while (atomic_load(&notes->inside) == 0)
            uv_sleep(1);
        uv_sleep(1);
        (void)mu_error_set(&error, -MU_ECANCELLED, "interrupted");
        assert_int_equal(mu_context_abort_waits(c, &error), -MU_ECANCELLED);
        return 0;
    }
    atomic_fetch_add(&notes->inside, 1);
    rv = mu_context_wait_for_others(c, -1, &error);
    notes->seen_code = rv;
    rv = mu_context_wait_for_others(c, -1, &error);
    assert_int_equal(rv, notes->seen_code);
    assert_string_equal(error.task, "/job:worker/task:0");
    return mu_context_fail_with(c, &error);
}

TEST_ON(test_waits_are_ended_by_another_thread, struct notes *notes, setup, teardown)
{
    mu_distribute_options o;
    mu_error error = {0};
    mu_cluster *cluster = parse("{" C ",\"worker\":[\"w:1\"]}");

    options_of(notes, &o);
    o.worker = end_the_chief_s_wait;
    o.strategy = mu_strategy_parameter_server();
    o.cluster = cluster;
    assert_int_equal(mu_distribute_run(&o, &error, NULL), -MU_ECANCELLED);
    assert_string_equal(error.message, "interrupted");
    assert_int_equal(notes->seen_code, -MU_ECANCELLED);
    mu_cluster_free(cluster);
}

TEST_ON(test_barrier_limit, struct notes *notes, setup, teardown)
{
    mu_cluster *cluster = parse("{" W2 "}");
    mu_distribute_options o;
    mu_value *results = NULL;
    mu_error error = {0};

    options_of(notes, &o);
    o.cluster = cluster;
    o.strategy = mu_strategy_parameter_server();
    o.end_timeout_ms = 100;
    notes->wait = true;
    notes->timeout_ms = 50;
    notes->hangs = "/job:worker/task:0";
    assert_int_equal(mu_distribute_run(&o, &error, &results), -MU_EDEADLINE);
    assert_string_equal(error.message, "1 of 2 had come to the barrier after 50 ms; "
                                       "missing: /job:worker/task:0");
    mu_value_free(results);
    mu_cluster_free(cluster);
    release(notes);
}

/* ---- the environment ---- */

/* What fails, and does not say why, has failed. */
TEST_WITH(test_error_without_a_code, setup, teardown)
{
    mu_distribute_options options;
    mu_error error;

    options_of(*state, &options);
    options.mode = MU_MODE_LOCAL;
    options.worker = fail_without_code;
    assert_int_equal(mu_distribute_run(&options, &error, NULL), -MU_EUNKNOWN);
    assert_int_equal(error.code, -MU_EUNKNOWN);
}

TEST_PROGRAM()
