/* The user's simulator, as a program that links libmuster-sim and libmuster has it. */
#include "tests/support/test.h"

#include <muster/sim.h>

#include <stdbool.h>

/* ---- Actors: a counter, and one that has it count ---- */

struct counter {
    int64_t count;
};

static int add_one(mu_actor *self, void *state, const mu_value *args)
{
    struct counter *counter = state;

    (void)args;
    counter->count++;
    mu_actor_log(self, "counted to %d", (int)counter->count);
    mu_actor_reply(self, mu_value_int(counter->count));
    return 0;
}

static int refuse(mu_actor *self, void *state, const mu_value *args)
{
    (void)state;
    (void)args;
    return mu_actor_fail(self, -MU_EPRECONDITION, "it is refused");
}

static const mu_actor_method counter_methods[] = {
    {"add", add_one}, {"refuse", refuse}, {NULL, NULL}};
static const mu_actor_type counter_type = {
    .name = "counter",
    .state_size = sizeof(struct counter),
    .methods = counter_methods,
};

/* Of the story that is told. */
static struct {
    mu_address counter;
    unsigned begun; /* starts of workers */
    int64_t wanted; /* additions that were asked for, */
    int64_t sure;   /* and those that were answered */
    unsigned looked;
    int chance; /* that is not the simulator's */
    bool is_unsteady;
} now;

/* Calls again whatever the error says: what has perhaps run is done twice. */
static void ask_counter(mu_actor *self)
{
    (void)mu_actor_call(self, &now.counter, "add", NULL, 300, 1);
}

static int begin_asking(mu_actor *self, void *state, const mu_value *args)
{
    (void)state;
    (void)args;
    return mu_actor_timer(self, 20, 0);
}

static void hear_counter(mu_actor *self, void *state, const mu_notice *notice)
{
    (void)state;
    if (notice->kind == MU_NOTICE_TIMER && now.wanted < 40) {
        now.wanted++;
        ask_counter(self);
    } else if (notice->kind == MU_NOTICE_ANSWER && notice->error != NULL) {
        ask_counter(self);
    } else if (notice->kind == MU_NOTICE_ANSWER) {
        now.sure++;
        if (now.is_unsteady)
            (void)mu_actor_timer(self, 20 + (uint64_t)(now.chance++ % 7), 0);
        else
            (void)mu_actor_timer(self, 20, 0);
    }
}

static const mu_actor_type asker_type = {
    .name = "asker",
    .start = begin_asking,
    .notice = hear_counter,
};

static const mu_actor_type *const types[] = {&counter_type, &asker_type, NULL};

static void begin_worker(mu_sim *sim, const char *task, void *user)
{
    mu_address asker;

    (void)user;
    now.begun++;
    if (now.begun == 1)
        assert_int_equal(mu_sim_spawn(sim, task, "asker", NULL, NULL, &asker), 0);
}

static int64_t count_of(mu_sim *sim)
{
    const struct counter *counter = mu_sim_state(sim, &now.counter);

    return counter == NULL ? -1 : counter->count;
}

static void add_tasks(mu_sim *sim)
{
    const int chance = now.chance;
    const bool is_unsteady = now.is_unsteady;

    memset(&now, 0, sizeof now);
    now.chance = chance;
    now.is_unsteady = is_unsteady;
    mu_sim_add(sim, "chief:0", types, NULL, NULL);
    mu_sim_add(sim, "worker:0", types, begin_worker, NULL);
    mu_sim_add(sim, "other_type:0-2", types, NULL, NULL);
    mu_sim_spawn(sim, "chief:0", "counter", NULL, NULL, &now.counter);
}

/* ---- A story by hand ---- */

static int set_up(void **state)
{
    mu_sim *sim = mu_sim_new(7);

    assert_non_null(sim);
    now.is_unsteady = false;
    mu_sim_calm(sim);
    add_tasks(sim);
    assert_null(mu_sim_failure(sim));
    *state = sim;
    return 0;
}

static int tear_down(void **state)
{
    mu_sim_free(*state);
    return 0;
}

static int has_ten(mu_sim *sim, void *user)
{
    (void)user;
    return count_of(sim) == 10;
}

static int never(mu_sim *sim, void *user)
{
    (void)sim;
    (void)user;
    return 0;
}

TEST_ON(test_time_passes_and_actors_act, mu_sim *sim, set_up, tear_down)
{
    mu_value *value = NULL;
    int64_t number = 0;

    assert_int_equal(mu_sim_now_ms(sim), 0);
    assert_int_equal(count_of(sim), -1);
    assert_int_equal(mu_sim_run_to(sim, has_ten, NULL, 5000), 0);
    assert_int_equal(count_of(sim), 10);
    assert_true(mu_sim_now_ms(sim) < 1000);
    assert_int_equal(mu_sim_run_to(sim, never, NULL, 1000), -MU_EDEADLINE);
    assert_int_equal(mu_sim_now_ms(sim), 1000);
    assert_int_equal(mu_sim_run_until(sim, 5000), 0);
    assert_int_equal(mu_sim_now_ms(sim), 5000);
    assert_int_equal(count_of(sim), 40);
    assert_int_equal(mu_sim_request(sim, "other_type:1", &now.counter, "add", NULL, 1000,
                                    NULL, &value),
                     0);
    assert_int_equal(mu_value_get_int(value, &number), 0);
    assert_int_equal(number, 41);
    mu_value_free(value);
    assert_true(mu_sim_random(sim, 3, 5) >= 3);
    assert_non_null(strstr(mu_sim_trace(sim), "counted to 41"));
    assert_string_equal(mu_sim_trace(sim), "");
}

TEST_ON(test_errors_of_calls_do_not_fail_a_story, mu_sim *sim, set_up, tear_down)
{
    mu_error error = {0};

    assert_int_equal(mu_sim_request(sim, "chief:0", &now.counter, "refuse", NULL, 1000,
                                    &error, NULL),
                     -MU_EPRECONDITION);
    assert_non_null(strstr(error.message, "it is refused"));
    assert_int_equal(mu_sim_request(sim, "chief:0", &now.counter, "no", NULL, 1000,
                                    &error, NULL),
                     -MU_ENOTFOUND);
    assert_null(mu_sim_failure(sim));
}

TEST_ON(test_a_task_crashes_and_starts_again, mu_sim *sim, set_up, tear_down)
{
    mu_address actor;
    mu_error error = {0};

    mu_sim_fault(sim, MU_SIM_CRASH, "worker:0", NULL, 200, 0);
    mu_sim_fault(sim, MU_SIM_RESTART, "worker:0", NULL, 500, 0);
    mu_sim_fault(sim, MU_SIM_CRASH, "other_type:0", NULL, 600, 100);
    mu_sim_run_until(sim, 300);
    assert_int_equal(now.begun, 1);
    assert_int_equal(mu_sim_spawn(sim, "worker:0", "asker", NULL, NULL, &actor),
                     -MU_EUNAVAILABLE);
    assert_int_equal(mu_sim_request(sim, "worker:0", &now.counter, "add", NULL, 100,
                                    &error, NULL),
                     -MU_EUNAVAILABLE);
    assert_string_equal(error.message, "worker:0 does not run");
    mu_sim_run_until(sim, 550);
    assert_int_equal(now.begun, 2);
    assert_int_equal(mu_sim_spawn(sim, "worker:0", "counter", NULL, NULL, &actor), 0);
    mu_sim_run_until(sim, 650);
    assert_non_null(mu_sim_state(sim, &actor));
    assert_int_equal(mu_sim_spawn(sim, "other_type:0", "asker", NULL, NULL, &actor),
                     -MU_EUNAVAILABLE);
    mu_sim_run_until(sim, 750);
    assert_int_equal(mu_sim_spawn(sim, "other_type:0", "asker", NULL, NULL, &actor), 0);
    assert_null(mu_sim_failure(sim));
}

TEST_ON(test_who_asks_may_crash_or_stand_still, mu_sim *sim, set_up, tear_down)
{
    mu_error error = {0};

    mu_sim_run_until(sim, 100);
    mu_sim_fault(sim, MU_SIM_PAUSE, "chief:0", NULL, 100, 1000);
    mu_sim_fault(sim, MU_SIM_CRASH, "other_type:0", NULL, 200, 100);
    assert_int_equal(mu_sim_request(sim, "other_type:0", &now.counter, "add", NULL, 5000,
                                    &error, NULL),
                     -MU_ECLOSED);
    mu_sim_fault(sim, MU_SIM_PAUSE, "other_type:1", NULL, 300, 600000);
    mu_sim_run_until(sim, 301);
    assert_int_equal(mu_sim_request(sim, "other_type:1", &now.counter, "add", NULL, 5000,
                                    &error, NULL),
                     -MU_EUNAVAILABLE);
    assert_string_equal(error.message,
                        "the call of add has not ended a minute after its time: "
                        "other_type:1 stands still");
    assert_null(mu_sim_failure(sim));
}

/* What each kind says of itself in the trace when its time comes. */
TEST_ON(test_each_kind_of_fault_happens, mu_sim *sim, set_up, tear_down)
{
    static const struct {
        int kind;
        const char *other;
        const char *words;
    } rows[] = {
        {MU_SIM_PAUSE, NULL, "pause worker:0 for 40 ms"},
        {MU_SIM_CUT, "chief:0", "cut worker:0 -> chief:0"},
        {MU_SIM_CUT_HALF, "chief:0", "cut half worker:0 -> chief:0 for 40 ms"},
        {MU_SIM_BLOCK, "chief:0", "block worker:0 -> chief:0 for 40 ms"},
        {MU_SIM_PARTITION, NULL, "partition worker:0"},
        {MU_SIM_SLOW, NULL, "slow worker:0 for 40 ms"},
        {MU_SIM_SLOW_LINK, "chief:0", "slow link worker:0 -> chief:0 for 40 ms"},
        {MU_SIM_CRASH_MIDWAY, NULL, "crash midway worker:0 for 40 ms"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(mu_sim_fault(sim, rows[i].kind, "worker:0", rows[i].other,
                                      100 + 100 * i, 40),
                         0);
    (void)mu_sim_trace(sim);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mu_sim_run_until(sim, 190 + 100 * i);
        assert_non_null(strstr(mu_sim_trace(sim), rows[i].words));
    }
    assert_int_equal(now.begun, 2);
    assert_null(mu_sim_failure(sim));
}

static void look_for_five(mu_sim *sim, void *user)
{
    now.looked++;
    if (count_of(sim) == 5)
        mu_sim_fail(sim, "there are %s", (const char *)user);
}

TEST_ON(test_a_check_stops_time, mu_sim *sim, set_up, tear_down)
{
    uint64_t failed_ms;

    mu_sim_check(sim, look_for_five, "five");
    assert_int_equal(mu_sim_run_until(sim, 5000), -MU_EABORTED);
    assert_string_equal(mu_sim_failure(sim), "there are five");
    assert_true(now.looked > 10);
    failed_ms = mu_sim_now_ms(sim);
    assert_true(failed_ms < 1000);
    assert_int_equal(mu_sim_run_until(sim, 5000), -MU_EABORTED);
    assert_int_equal(mu_sim_now_ms(sim), failed_ms);
    mu_sim_fail(sim, "another");
    assert_string_equal(mu_sim_failure(sim), "there are five");
}

/* ---- Mistakes of a story ---- */

static void wait_within(mu_sim *sim, void *user)
{
    (void)user;
    mu_sim_run_until(sim, 10);
}

static void ask_within(mu_sim *sim, void *user)
{
    (void)user;
    mu_sim_request(sim, "chief:0", &now.counter, "add", NULL, 1000, NULL, NULL);
}

static void set_chaos_twice(mu_sim *sim)
{
    mu_sim_chaos(sim, 0, 0, 0, 100);
    mu_sim_chaos(sim, 0, 0, 0, 100);
}

#define MISTAKE(name, call)                \
    static void name(mu_sim *sim)          \
    {                                      \
        mu_address address = {.index = 0}; \
                                           \
        (void)address;                     \
        (void)(call);                      \
    }

MISTAKE(add_nothing, mu_sim_add(sim, NULL, types, NULL, NULL))
MISTAKE(add_no_task, mu_sim_add(sim, "worker", types, NULL, NULL))
MISTAKE(add_backwards, mu_sim_add(sim, "worker:3-2", types, NULL, NULL))
MISTAKE(add_late, mu_sim_add(sim, "worker:7", types, NULL, NULL))
MISTAKE(calm_late, mu_sim_calm(sim))
MISTAKE(spawn_nowhere, mu_sim_spawn(sim, "worker:9", "counter", NULL, NULL, &address))
MISTAKE(spawn_nobody, mu_sim_spawn(sim, "worker:0", "no", NULL, NULL, &address))
MISTAKE(spawn_null, mu_sim_spawn(sim, "worker:0", NULL, NULL, NULL, &address))
MISTAKE(ask_nobody, mu_sim_request(sim, "worker:0", NULL, "add", NULL, 100, NULL, NULL))
MISTAKE(ask_nothing,
        mu_sim_request(sim, "worker:0", &address, NULL, NULL, 100, NULL, NULL))
MISTAKE(ask_without_time,
        mu_sim_request(sim, "worker:0", &address, "add", NULL, 0, NULL, NULL))
MISTAKE(chaos_of_no_kind, mu_sim_chaos(sim, MU_SIM_RESTART, 0, 0, 100))
MISTAKE(chaos_of_the_past, mu_sim_chaos(sim, 0, 0, 0, 0))
MISTAKE(spare_no_kind, mu_sim_spare(sim, "worker:0", MU_SIM_RESTART))
MISTAKE(spare_nobody, mu_sim_spare(sim, NULL, MU_SIM_CRASH))
MISTAKE(fault_of_no_kind, mu_sim_fault(sim, 3, "worker:0", NULL, 100, 100))
MISTAKE(fault_of_nobody, mu_sim_fault(sim, MU_SIM_CRASH, "ps:0", NULL, 100, 100))
MISTAKE(fault_without_other, mu_sim_fault(sim, MU_SIM_CUT, "worker:0", NULL, 100, 0))
MISTAKE(fault_with_other, mu_sim_fault(sim, MU_SIM_PAUSE, "worker:0", "chief:0", 9, 9))
MISTAKE(fault_without_end, mu_sim_fault(sim, MU_SIM_PAUSE, "worker:0", NULL, 100, 0))
MISTAKE(run_to_nothing, mu_sim_run_to(sim, NULL, NULL, 100))
MISTAKE(wait_in_check, (mu_sim_check(sim, wait_within, NULL), mu_sim_run_until(sim, 10)))
MISTAKE(ask_in_check, (mu_sim_check(sim, ask_within, NULL), mu_sim_run_until(sim, 10)))

static const struct {
    void (*make)(mu_sim *sim);
    const char *words;
} mistakes[] = {
    {add_nothing, "mu_sim_add: \"\" is no task: expected \"worker:1\" or \"worker:0-2\""},
    {add_no_task, "mu_sim_add: \"worker\" is no task"},
    {add_backwards, "mu_sim_add: \"worker:3-2\" is no task"},
    {add_late, "mu_sim_add: worker:7 is added after time has passed"},
    {calm_late, "mu_sim_calm: time has passed"},
    {spawn_nowhere, "mu_sim_spawn: there is no task \"worker:9\""},
    {spawn_nobody, "mu_sim_spawn: /job:worker/task:0 has no actors of type \"no\""},
    {spawn_null, "mu_sim_spawn: the type or ret_address is NULL"},
    {ask_nobody, "mu_sim_request: the address or the method is NULL"},
    {ask_nothing, "mu_sim_request: the address or the method is NULL"},
    {ask_without_time, "mu_sim_request: timeout_ms is 0, expected 1 to 86400000"},
    {chaos_of_no_kind, "mu_sim_chaos: kinds is 0x200, which has unknown ones"},
    {chaos_of_the_past, "mu_sim_chaos: until_ms is 0, and it is 0"},
    {set_chaos_twice, "mu_sim_chaos: it is called for the second time"},
    {spare_no_kind, "mu_sim_spare: kinds is 0x200, which has unknown ones"},
    {spare_nobody, "mu_sim_spare: there is no task \"\""},
    {fault_of_no_kind, "mu_sim_fault: kind is 0x3, expected one of enum mu_sim_kind"},
    {fault_of_nobody, "mu_sim_fault: there is no task \"ps:0\""},
    {fault_without_other, "mu_sim_fault: cut is between two tasks, and `other` is NULL"},
    {fault_with_other, "mu_sim_fault: pause is of one task, and `other` is not NULL"},
    {fault_without_end, "mu_sim_fault: for_ms of pause is 0"},
    {run_to_nothing, "mu_sim_run_to: done is NULL"},
    {wait_in_check, "mu_sim_run_until: time cannot pass within a check"},
    {ask_in_check, "mu_sim_request: time cannot pass within a check"},
};

TEST(test_mistakes_fail_with_words)
{
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        mu_sim *sim = mu_sim_new(1);

        assert_non_null(sim);
        add_tasks(sim);
        mistakes[i].make(sim);
        assert_non_null(mu_sim_failure(sim));
        if (strstr(mu_sim_failure(sim), mistakes[i].words) == NULL)
            assert_string_equal(mu_sim_failure(sim), mistakes[i].words);
        assert_int_equal(mu_sim_run_until(sim, 100), -MU_EABORTED);
        mu_sim_free(sim);
    }
}

TEST(test_too_many_tasks_and_types_are_refused)
{
    const mu_actor_type *twice[] = {&counter_type, &counter_type, NULL};
    mu_sim *sim = mu_sim_new(1);

    mu_sim_add(sim, "worker:0-64", types, NULL, NULL);
    assert_string_equal(mu_sim_failure(sim), "mu_sim_add: more than 64 tasks");
    mu_sim_free(sim);
    sim = mu_sim_new(1);
    mu_sim_run_until(sim, 1);
    assert_string_equal(mu_sim_failure(sim), "there is no task: mu_sim_add comes first");
    mu_sim_free(sim);
    sim = mu_sim_new(1);
    mu_sim_add(sim, "worker:0", twice, NULL, NULL);
    mu_sim_run_until(sim, 1);
    assert_non_null(strstr(mu_sim_failure(sim), "are registered already"));
    mu_sim_free(sim);
    sim = mu_sim_new(1);
    mu_sim_add(sim, "worker:0", types, NULL, NULL);
    mu_sim_add(sim, "worker:0", types, NULL, NULL);
    assert_non_null(mu_sim_failure(sim));
    mu_sim_free(sim);
}

TEST(test_null_is_refused_everywhere)
{
    mu_address address = {.index = 0};
    mu_error error = {0};
    char *words = NULL;

    mu_sim_free(NULL);
    mu_sim_words_free(NULL);
    mu_sim_fail(NULL, "x");
    assert_null(mu_sim_failure(NULL));
    assert_null(mu_sim_state(NULL, &address));
    assert_int_equal(mu_sim_now_ms(NULL), 0);
    assert_int_equal(mu_sim_random(NULL, 4, 9), 4);
    assert_string_equal(mu_sim_trace(NULL), "");
    assert_int_equal(mu_sim_add(NULL, "worker:0", types, NULL, NULL), -MU_EINVALID);
    assert_int_equal(mu_sim_calm(NULL), -MU_EINVALID);
    assert_int_equal(mu_sim_service(NULL, "a:0"), -MU_EINVALID);
    assert_int_equal(mu_sim_spawn(NULL, "a:0", "b", NULL, NULL, &address), -MU_EINVALID);
    assert_int_equal(mu_sim_request(NULL, "a:0", &address, "b", NULL, 1, NULL, NULL),
                     -MU_EINVALID);
    assert_int_equal(mu_sim_run_until(NULL, 1), -MU_EINVALID);
    assert_int_equal(mu_sim_run_to(NULL, never, NULL, 1), -MU_EINVALID);
    assert_int_equal(mu_sim_check(NULL, wait_within, NULL), -MU_EINVALID);
    assert_int_equal(mu_sim_chaos(NULL, 0, 0, 0, 1), -MU_EINVALID);
    assert_int_equal(mu_sim_spare(NULL, "a:0", 1), -MU_EINVALID);
    assert_int_equal(mu_sim_fault(NULL, 1, "a:0", NULL, 1, 1), -MU_EINVALID);
    assert_int_equal(mu_sim_try(1, NULL, NULL, &error, &words), -MU_EINVALID);
    assert_string_equal(error.message, "mu_sim_try: story is NULL");
    assert_int_equal(mu_sim_main(NULL, NULL, 1, 0, NULL), 2);
}

/* ---- Seeds ---- */

/* The asker repeats what has perhaps run, and it is said that it must not. */
static int tell_of_counting(mu_sim *sim, void *user)
{
    (void)user;
    add_tasks(sim);
    mu_sim_run_until(sim, 100);
    mu_sim_spare(sim, "chief:0", MU_SIM_CRASH | MU_SIM_CRASH_MIDWAY);
    mu_sim_chaos(sim, MU_SIM_CUT | MU_SIM_PAUSE | MU_SIM_SLOW, 150, 50, 4000);
    mu_sim_run_until(sim, 8000);
    if (count_of(sim) > now.wanted)
        mu_sim_fail(sim, "%d additions, and %d were asked for", (int)count_of(sim),
                    (int)now.wanted);
    return 0;
}

static size_t lines_with(const char *text, const char *words)
{
    size_t count = 0;

    for (const char *at = strstr(text, words); at != NULL; at = strstr(at + 1, words))
        count++;
    return count;
}

TEST(test_a_seed_that_fails_is_told_in_its_shortest_form)
{
    mu_error error = {0};
    char *words = NULL;
    uint64_t seed = 0;
    int rv = 0;

    now.is_unsteady = false;
    while (rv == 0 && seed < 50)
        rv = mu_sim_try(++seed, tell_of_counting, NULL, &error, &words);
    assert_int_equal(rv, -MU_EABORTED);
    assert_non_null(words);
    print_message("%s", words);
    assert_non_null(strstr(error.message, "additions, and "));
    assert_non_null(strstr(words, "the shortest story that fails, with 1 of "));
    assert_int_equal(lines_with(words, "the connection of "), 1);
    assert_int_equal(lines_with(words, " ms: "), 2);
    assert_non_null(strstr(words, "were asked for\n"));
    mu_sim_words_free(words);
}

TEST(test_runs_that_differ_name_the_actor)
{
    mu_error error = {0};
    char *words = NULL;

    now.is_unsteady = true;
    assert_int_equal(mu_sim_try(1, tell_of_counting, NULL, &error, &words),
                     -MU_EDATALOSS);
    now.is_unsteady = false;
    assert_non_null(strstr(error.message, "two runs are not equal"));
    assert_non_null(strstr(error.message, "worker:0, asker"));
    assert_null(words);
}

/* Says a number of its own to one of the same node: nothing of it is on the network. */
static int say_number(mu_actor *self, void *state, const mu_value *args)
{
    mu_value *number = mu_value_int(now.chance++ % 100);
    int rv = mu_actor_send(self, &now.counter, "add", number);

    (void)state;
    (void)args;
    mu_value_free(number);
    return rv;
}

static const mu_actor_type speaker_type = {.name = "speaker", .start = say_number};
static const mu_actor_type *const local_types[] = {&counter_type, &speaker_type, NULL};

static int tell_of_one_node(mu_sim *sim, void *user)
{
    mu_address speaker;

    (void)user;
    mu_sim_add(sim, "chief:0", local_types, NULL, NULL);
    mu_sim_spawn(sim, "chief:0", "counter", NULL, NULL, &now.counter);
    mu_sim_spawn(sim, "chief:0", "speaker", NULL, NULL, &speaker);
    return mu_sim_run_until(sim, 100);
}

TEST(test_what_stays_on_a_node_counts_too)
{
    mu_error error = {0};

    assert_int_equal(mu_sim_try(1, tell_of_one_node, NULL, &error, NULL), -MU_EDATALOSS);
    assert_non_null(strstr(error.message, "chief:0, speaker"));
    assert_non_null(strstr(error.message, "start did something else the second time"));
}

static int refuse_story(mu_sim *sim, void *user)
{
    (void)user;
    add_tasks(sim);
    return -MU_ENOTFOUND;
}

static int end_well(mu_sim *sim, void *user)
{
    ++*(int *)user;
    add_tasks(sim);
    return mu_sim_run_until(sim, 500);
}

TEST(test_what_a_story_returns_is_its_verdict)
{
    mu_error error = {0};
    int runs = 0;

    assert_int_equal(mu_sim_try(1, refuse_story, NULL, &error, NULL), -MU_EABORTED);
    assert_string_equal(error.message, "at 0 ms: the story returned ENOTFOUND");
    assert_int_equal(mu_sim_try(1, end_well, &runs, &error, NULL), 0);
    assert_int_equal(runs, 2);
}

TEST(test_main_runs_the_seeds_of_its_arguments)
{
    char *argv[] = {"seeds", "5", "3", "7", NULL};
    char *wrong[] = {"seeds", "-1", NULL};
    int runs = 0;

    assert_int_equal(mu_sim_main(end_well, &runs, 10, 1, argv), 0);
    assert_int_equal(runs, 20);
    assert_int_equal(mu_sim_main(end_well, &runs, 10, 2, argv), 0);
    assert_int_equal(runs, 22);
    assert_int_equal(mu_sim_main(end_well, &runs, 10, 3, argv), 0);
    assert_int_equal(runs, 28);
    assert_int_equal(mu_sim_main(end_well, &runs, 10, 4, argv), 2);
    assert_int_equal(mu_sim_main(end_well, &runs, 10, 2, wrong), 2);
    assert_int_equal(mu_sim_main(refuse_story, NULL, 10, 1, argv), 1);
}

TEST_PROGRAM()
