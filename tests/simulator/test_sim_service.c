/* Actors with names, and kept ones, in the user's simulator. */
#include "tests/support/test.h"

#include <muster/sim.h>

enum { CALLS = 60, TIMEOUT_MS = 60000 };

/* ---- A counter that may be kept ---- */

static int replay(void *state, const mu_value *record)
{
    int64_t number = 0;
    int rv = mu_value_get_int(record, &number);

    *(int64_t *)state += number;
    return rv;
}

static int add(mu_actor *self, void *state, const mu_value *args)
{
    int rv = mu_actor_record(self, args);

    if (rv == -MU_EPRECONDITION)
        rv = replay(state, args);
    mu_actor_reply(self, mu_value_int(*(int64_t *)state));
    return rv;
}

static int save(void *state, mu_value **ret_saved)
{
    *ret_saved = mu_value_int(*(int64_t *)state);
    return *ret_saved == NULL ? -MU_ENOMEM : 0;
}

static int load(mu_actor *self, void *state, const mu_value *saved, unsigned version)
{
    (void)self;
    (void)version;
    return mu_value_get_int(saved, state);
}

static const mu_actor_method methods[] = {{"add", add}, {NULL, NULL}};
static const mu_actor_type counter_type = {
    .name = "counter",
    .state_size = sizeof(int64_t),
    .methods = methods,
    .save = save,
    .load = load,
    .replay = replay,
};
static const mu_actor_type *const types[] = {&counter_type, NULL};

static const mu_address total = {.name = "total"};

static int spawn_total(mu_sim *sim, unsigned flags)
{
    mu_actor_options options;
    mu_address address;
    int rv;

    mu_actor_options_init(&options);
    options.name = "total";
    options.flags = flags;
    options.restarts = 64;
    options.restarts_within_ms = 1000;
    rv = mu_sim_spawn(sim, "chief:0", "counter", NULL, &options, &address);
    if (rv == 0)
        assert_true(mu_address_equal(&address, &total));
    return rv;
}

/* The answer; -1: it was an error, in `ret_error`. */
static int64_t add_one_more(mu_sim *sim, mu_error *ret_error)
{
    mu_value *one = mu_value_int(1);
    mu_value *answer = NULL;
    int64_t number = -1;

    if (mu_sim_request(sim, "chief:0", &total, "add", one, TIMEOUT_MS, ret_error,
                       &answer) == 0)
        assert_int_equal(mu_value_get_int(answer, &number), 0);
    mu_value_free(one);
    mu_value_free(answer);
    return number;
}

static mu_sim *begin_calm(void)
{
    mu_sim *sim = mu_sim_new(1);

    mu_sim_calm(sim);
    mu_sim_add(sim, "chief:0", NULL, NULL, NULL);
    mu_sim_add(sim, "worker:0-1", types, NULL, NULL);
    assert_int_equal(mu_sim_service(sim, "chief:0"), 0);
    return sim;
}

/* ---- tests ---- */

TEST(test_a_named_actor_begins_anew_elsewhere)
{
    mu_sim *sim = begin_calm();
    mu_error error = {0};

    mu_sim_fault(sim, MU_SIM_CRASH, "worker:0", NULL, 3000, 0);
    assert_null(mu_sim_state(sim, &total));
    assert_int_equal(spawn_total(sim, 0), 0);
    assert_int_equal(add_one_more(sim, &error), 1);
    assert_int_equal(add_one_more(sim, &error), 2);
    assert_int_equal(*(const int64_t *)mu_sim_state(sim, &total), 2);
    mu_sim_run_until(sim, 6000);
    assert_int_equal(add_one_more(sim, &error), 1);
    assert_null(mu_sim_failure(sim));
    mu_sim_free(sim);
}

TEST(test_a_kept_actor_goes_on_elsewhere)
{
    mu_sim *sim = begin_calm();
    mu_error error = {0};

    mu_sim_fault(sim, MU_SIM_CRASH, "worker:0", NULL, 3000, 0);
    mu_sim_fault(sim, MU_SIM_CRASH, "chief:0", NULL, 6000, 500);
    assert_int_equal(spawn_total(sim, MU_ACTOR_KEPT), 0);
    assert_int_equal(add_one_more(sim, &error), 1);
    mu_sim_run_until(sim, 3001);
    assert_int_equal(add_one_more(sim, &error), 2);
    mu_sim_run_until(sim, 6501);
    assert_int_equal(add_one_more(sim, &error), 3);
    assert_int_equal(*(const int64_t *)mu_sim_state(sim, &total), 3);
    assert_null(mu_sim_failure(sim));
    mu_sim_free(sim);
}

/* Who calls is spared; owners and the host of the service are not. */
static int tell_of_counting(mu_sim *sim, void *user)
{
    mu_error error = {0};

    (void)user;
    mu_sim_add(sim, "chief:0", NULL, NULL, NULL);
    mu_sim_add(sim, "host:0", NULL, NULL, NULL);
    mu_sim_add(sim, "worker:0-2", types, NULL, NULL);
    mu_sim_service(sim, "host:0");
    mu_sim_spare(sim, "chief:0", MU_SIM_CRASH | MU_SIM_CRASH_MIDWAY);
    mu_sim_chaos(sim, 0, 100, 500, 6000);
    spawn_total(sim, MU_ACTOR_KEPT);
    for (int64_t i = 1; i <= CALLS && mu_sim_failure(sim) == NULL; i++) {
        int64_t number = add_one_more(sim, &error);

        if (number != i)
            mu_sim_fail(sim, "addition %d was answered with %d: %s", (int)i, (int)number,
                        error.message);
    }
    return 0;
}

TEST(test_a_kept_counter_is_exact_in_each_story)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        mu_error error = {0};
        char *words = NULL;

        if (mu_sim_try(seed, tell_of_counting, NULL, &error, &words) != 0)
            fail_msg("seed %d: %s: %s", (int)seed, error.message, words);
        mu_sim_words_free(words);
    }
}

/* ---- Who calls one that has just ended for good ---- */

static int end_itself(mu_actor *self, void *state, const mu_value *args)
{
    mu_error enough;

    (void)state;
    (void)args;
    (void)mu_error_set(&enough, -MU_EABORTED, "enough");
    return mu_actor_die(self, &enough);
}

static const mu_actor_method mortal_methods[] = {
    {"add", add}, {"end", end_itself}, {NULL, NULL}};
static const mu_actor_type mortal_type = {
    .name = "mortal", .state_size = sizeof(int64_t), .methods = mortal_methods};
static const mu_actor_type *const mortal_types[] = {&mortal_type, NULL};

/* The second call of a caller, so many ms after that which ends the actor. */
enum { CALL_AGAIN = 1, ADDED };

static int end_it(mu_actor *self, void *state, const mu_value *args)
{
    int64_t delay_ms = 0;
    int rv = mu_value_get_int(args, &delay_ms);

    *(mu_reply **)state = mu_actor_reply_later(self);
    if (rv == 0)
        rv = mu_actor_send(self, &total, "end", NULL);
    return rv != 0 ? rv : mu_actor_timer(self, (uint64_t)delay_ms, CALL_AGAIN);
}

static void note(mu_actor *self, void *state, const mu_notice *notice)
{
    if (notice->token == CALL_AGAIN)
        (void)mu_actor_call(self, &total, "add", NULL, TIMEOUT_MS, ADDED);
    else if (notice->token == ADDED)
        (void)mu_reply_give(*(mu_reply **)state, NULL, notice->error);
}

static const mu_actor_method caller_methods[] = {{"end_it", end_it}, {NULL, NULL}};
static const mu_actor_type caller_type = {.name = "caller",
                                          .state_size = sizeof(mu_reply *),
                                          .methods = caller_methods,
                                          .notice = note};
static const mu_actor_type *const caller_types[] = {&caller_type, NULL};

static void call_after(int64_t delay_ms, mu_error *ret_error)
{
    mu_value *delay = mu_value_int(delay_ms);
    mu_sim *sim = mu_sim_new(1);
    mu_actor_options options;
    mu_address address;
    mu_value *answer = NULL;

    mu_sim_calm(sim);
    mu_sim_add(sim, "chief:0", caller_types, NULL, NULL);
    mu_sim_add(sim, "worker:0", mortal_types, NULL, NULL);
    mu_sim_add(sim, "host:0", NULL, NULL, NULL);
    mu_sim_service(sim, "host:0");
    mu_actor_options_init(&options);
    options.name = "total";
    options.restart = MU_RESTART_NEVER;
    mu_sim_spawn(sim, "chief:0", "mortal", NULL, &options, &address);
    mu_sim_run_until(sim, 1000);
    mu_sim_spawn(sim, "chief:0", "caller", NULL, NULL, &address);
    assert_int_not_equal(mu_sim_request(sim, "chief:0", &address, "end_it", delay,
                                        TIMEOUT_MS, ret_error, &answer),
                         0);
    assert_null(mu_sim_failure(sim));
    mu_value_free(delay);
    mu_sim_free(sim);
}

/* Whichever comes first: that it is not there, or that it is not started any more. */
TEST(test_callers_hear_why_it_is_not_started_again)
{
    for (int64_t delay_ms = 0; delay_ms < 60; delay_ms++) {
        mu_error error = {0};

        call_after(delay_ms, &error);
        assert_non_null(strstr(error.message, "enough"));
        assert_int_equal(error.ran, MU_RAN_NO);
    }
}

TEST(test_names_need_a_service)
{
    mu_sim *sim = mu_sim_new(1);

    mu_sim_add(sim, "chief:0", types, NULL, NULL);
    assert_int_equal(spawn_total(sim, 0), -MU_EABORTED);
    assert_non_null(strstr(mu_sim_failure(sim), "needs mu_sim_service"));
    mu_sim_free(sim);
}

TEST(test_there_is_one_service_from_the_beginning)
{
    mu_sim *sim = mu_sim_new(1);

    mu_sim_add(sim, "chief:0", types, NULL, NULL);
    assert_int_equal(mu_sim_service(sim, "chief:1"), -MU_EABORTED);
    assert_non_null(strstr(mu_sim_failure(sim), "there is no task \"chief:1\""));
    mu_sim_free(sim);
    sim = begin_calm();
    assert_int_equal(mu_sim_service(sim, "worker:0"), -MU_EABORTED);
    assert_non_null(strstr(mu_sim_failure(sim), "there is one already"));
    mu_sim_free(sim);
    sim = mu_sim_new(1);
    mu_sim_add(sim, "chief:0", types, NULL, NULL);
    mu_sim_run_until(sim, 1);
    assert_int_equal(mu_sim_service(sim, "chief:0"), -MU_EABORTED);
    assert_non_null(strstr(mu_sim_failure(sim), "time has passed"));
    mu_sim_free(sim);
}

TEST_PROGRAM()
