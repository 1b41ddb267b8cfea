/* The host of the coordination service is a process of its own, is killed, and is started
 * again: with a journal nothing is lost, in memory it says so. */
#include "tests/real/service.h"

static struct service service;
static struct crew crew;

static int set_up(void **state)
{
    memset(&service, 0, sizeof service);
    memset(&crew, 0, sizeof crew);
    for (int i = 0; i < SERVICE_HOSTS_MAX; i++)
        service.hosts[i].ended = true;
    cli_folder(service.folder, sizeof service.folder);
    *state = &service;
    return 0;
}

static int tear_down(void **state)
{
    struct service *s = *state;
    char path[128];

    service_close(s);
    (void)snprintf(path, sizeof path, "%s/store", s->folder);
    cli_remove_store(path);
    return rmdir(s->folder);
}

static void restart(struct service *s)
{
    service_kill_host(s, 0);
    service_start_host(s, 0);
}

/* ---- A journal ---- */

static void open_on_journal(struct service *s)
{
    char store[128];

    (void)snprintf(store, sizeof store, "journal:%s/store", s->folder);
    service_open(s, 1, store);
}

struct waiting {
    atomic_int code; /* 1: answered well */
    char value[16];
};

static void note_value(void *user, const mu_kv_response *answer)
{
    struct waiting *waiting = user;

    if (answer->code == 0)
        (void)snprintf(waiting->value, sizeof waiting->value, "%.*s", (int)answer->size,
                       answer->value);
    atomic_store(&waiting->code, answer->code == 0 ? 1 : answer->code);
}

/* Killed again and again while everybody is at work; and once while two of three wait at
 * a barrier, and another for a key. */
TEST_ON(test_journal, struct service *s, set_up, tear_down)
{
    enum { ROUNDS = 120, HOLD_AT = 90 };
    const mu_kv_request ask = {
        .operation = MU_KV_GET, .key = "late", .timeout_ms = CLI_SOON_MS};
    struct waiting waiting = {.code = 0};
    mu_error error = {0};

    open_on_journal(s);
    assert_int_equal(mu_kv_request_async(s->workers[1], &ask, note_value, &waiting, NULL),
                     0);
    crew.rounds = ROUNDS;
    crew.increments = 5;
    crew.hold_at = HOLD_AT;
    crew.holds = true;
    crew_start(&crew, s);
    for (unsigned i = 1; i <= 3; i++) {
        crew_await(&crew, 20 * i);
        restart(s);
    }
    crew_await(&crew, HOLD_AT);
    for (int i = 0; i < 50; i++) /* the first two come to the barrier */
        nodes_pause();
    restart(s);
    atomic_store(&crew.holds, false);
    crew_check(&crew);

    assert_int_equal(atomic_load(&waiting.code), 0);
    restart(s);
    check(mu_kv_put(s->workers[0], "late", "here", 4, 0, 0, SOON_MS, &error, NULL),
          &error);
    for (int i = 0; i < SOON_MS && atomic_load(&waiting.code) == 0; i++)
        nodes_pause();
    assert_int_equal(atomic_load(&waiting.code), 1);
    assert_string_equal(waiting.value, "here");
}

/* The host is away for a while: calls say so at their limit, and changes that were
 * answered are there afterwards. */
TEST_ON(test_host_away, struct service *s, set_up, tear_down)
{
    mu_error error = {0};
    mu_kv_item item = {0};

    open_on_journal(s);
    check(mu_kv_put(s->workers[0], "a", "1", 1, 0, 0, SOON_MS, &error, NULL), &error);
    service_kill_host(s, 0);
    assert_int_equal(mu_kv_put(s->workers[0], "b", "1", 1, 0, 0, 300, &error, NULL),
                     -MU_EDEADLINE);
    assert_non_null(strstr(error.message, "/job:chief/task:0"));
    assert_non_null(strstr(error.message, "is not connected since"));
    service_start_host(s, 0);
    check(mu_kv_get(s->workers[1], "a", SOON_MS, &error, &item), &error);
    assert_string_equal(item.value, "1");
    mu_kv_item_clear(&item);
}

/* ---- Memory ---- */

static void go_on(struct service *s, int i)
{
    mu_error error = {0};

    check(mu_agent_reset(s->workers[i], SOON_MS, &error), &error);
    check(mu_agent_register(s->workers[i], 0, SOON_MS, &error), &error);
    assert_int_equal(mu_agent_state(s->workers[i], NULL), MU_AGENT_CONNECTED);
}

static void expect_error(struct service *s, int i)
{
    const char *words = "the coordination service at /job:chief/task:0 was restarted, "
                        "and has lost the keys and barriers that this task had used";
    mu_error error = {0};
    mu_kv_item item;

    for (int at = 0;
         at < SOON_MS && mu_agent_state(s->workers[i], &error) != MU_AGENT_ERROR; at++)
        nodes_pause();
    assert_int_equal(mu_agent_state(s->workers[i], &error), MU_AGENT_ERROR);
    assert_int_equal(error.code, -MU_EABORTED);
    assert_string_equal(error.message, words);
    assert_int_equal(mu_kv_try_get(s->workers[i], "a", SOON_MS, &error, &item),
                     -MU_EABORTED);
    assert_string_equal(error.message, words);
}

static void note_passed(void *user, int code, const mu_error *error)
{
    (void)error;
    atomic_store((atomic_int *)user, code == 0 ? 1 : code);
}

/* Who had used a key or a barrier is in error; who had not goes on. */
TEST_ON(test_memory, struct service *s, set_up, tear_down)
{
    mu_error error = {0};
    mu_kv_item item;
    mu_barrier_options options;
    atomic_int passed = 0;

    service_open(s, 1, "memory");
    check(mu_kv_put(s->workers[0], "a", "1", 1, 0, 0, SOON_MS, &error, NULL), &error);
    mu_barrier_options_init(&options);
    options.tasks = "worker:0-1";
    assert_int_equal(
        mu_barrier_wait_async(s->workers[0], "b", &options, note_passed, &passed), 0);
    check(mu_barrier_wait(s->workers[1], "b", &options, &error), &error);
    for (int i = 0; i < SOON_MS && atomic_load(&passed) == 0; i++)
        nodes_pause();
    assert_int_equal(atomic_load(&passed), 1);
    restart(s);
    expect_error(s, 0);
    expect_error(s, 1);
    check(mu_agent_register(s->workers[2], 0, SOON_MS, &error), &error);
    assert_int_equal(mu_agent_state(s->workers[2], NULL), MU_AGENT_CONNECTED);
    go_on(s, 0);
    go_on(s, 1);
    assert_int_equal(mu_kv_try_get(s->workers[0], "a", SOON_MS, &error, &item),
                     -MU_ENOTFOUND);
    crew.rounds = 10;
    crew.increments = 2;
    crew_start(&crew, s);
    crew_check(&crew);
}

TEST_PROGRAM()
