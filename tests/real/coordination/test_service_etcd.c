/* Three hosts of the coordination service over a real etcd: hosts are killed and stopped,
 * etcd is killed and started again. */
#include "tests/real/etcd.h"
#include "tests/real/service.h"

enum {
    ROUNDS = 160,
    TAKEN_MS = 10000 /* at most from a leader's end to the next one, beside the lease:
                        its looks at etcd, the election, and reading what is there
                        take 3000 on a machine that is not busy */
};

static struct service service;
static struct crew crew;
static struct etcd etcd;

static int set_up(void **state)
{
    char store[64];

    memset(&service, 0, sizeof service);
    memset(&crew, 0, sizeof crew);
    for (int i = 0; i < SERVICE_HOSTS_MAX; i++)
        service.hosts[i].ended = true;
    etcd_open(&etcd);
    (void)snprintf(store, sizeof store, "etcd:http://127.0.0.1:%d", etcd.port);
    service_open(&service, 3, store);
    crew.rounds = ROUNDS;
    crew.increments = 3;
    *state = &service;
    return 0;
}

static int tear_down(void **state)
{
    service_close(*state);
    etcd_close(&etcd);
    return 0;
}

/* How long it takes until another one leads. */
static int await_next_leader(struct service *s, const size_t *said, const char *what)
{
    uint64_t since_ms = cli_now_ms();
    int leader = service_leader(s, said);
    uint64_t took_ms = cli_now_ms() - since_ms;

    print_message("%s: %s leads after %" PRIu64 " ms, with a lease of %d ms\n", what,
                  leader == 0   ? "chief 0"
                  : leader == 1 ? "ps 0"
                                : "ps 1",
                  took_ms, SERVICE_LEASE_MS);
    assert_true(took_ms <= SERVICE_LEASE_MS + TAKEN_MS);
    return leader;
}

/* Twice the one that leads is killed while everybody is at work; the first is started
 * again. */
TEST_ON(test_leader_killed, struct service *s, set_up, tear_down)
{
    size_t said[SERVICE_HOSTS_MAX];
    int leader = service_leader(s, NULL);

    crew_start(&crew, s);
    for (unsigned i = 1; i <= 2; i++) {
        int next;

        crew_await(&crew, i * ROUNDS / 4);
        service_said(s, said);
        service_kill_host(s, leader);
        next = await_next_leader(s, said, "killed");
        assert_int_not_equal(next, leader);
        if (i == 1)
            service_start_host(s, leader);
        leader = next;
    }
    crew_check(&crew);
}

/* One that was stopped for longer than its lease finds that it does not lead: what it was
 * asked is asked elsewhere, and it changes nothing. */
TEST_ON(test_leader_stopped, struct service *s, set_up, tear_down)
{
    size_t said[SERVICE_HOSTS_MAX];
    int leader = service_leader(s, NULL);
    const char *words;

    crew_start(&crew, s);
    crew_await(&crew, ROUNDS / 4);
    service_said(s, said);
    cli_kill(&s->hosts[leader], SIGSTOP);
    assert_int_not_equal(await_next_leader(s, said, "stopped"), leader);
    crew_await(&crew, ROUNDS / 2);
    cli_kill(&s->hosts[leader], SIGCONT);
    words = cli_expect(&s->hosts[leader], s->hosts[leader].text + said[leader],
                       " no longer leads: ");
    assert_int_not_equal(words[0], '\n');
    crew_check(&crew);
    cli_read(&s->hosts[leader]);
    assert_null(strstr(words, SERVICE_LEADS));
}

/* Calls wait while etcd is away, and say so at their limit; what was answered is there
 * when it is back, and what was under way is done once. */
TEST_ON(test_etcd_killed, struct service *s, set_up, tear_down)
{
    mu_error error = {0};
    mu_kv_item item;

    (void)service_leader(s, NULL);
    crew_start(&crew, s);
    crew_await(&crew, ROUNDS / 4);
    etcd_kill(&etcd);
    assert_int_equal(mu_kv_put(s->workers[0], "limited", "1", 1, 0, 0, 4000, &error,
                               NULL),
                     -MU_EDEADLINE);
    print_message("etcd away: %s\n", error.message);
    assert_non_null(strstr(error.message, ": etcd at http://127.0.0.1:"));
    assert_int_equal(mu_kv_try_get(s->workers[0], "limited", 500, &error, &item),
                     -MU_EDEADLINE);
    etcd_start(&etcd);
    crew_await(&crew, ROUNDS / 2);
    etcd_kill(&etcd);
    etcd_start(&etcd);
    crew_check(&crew);
}

/* A host that begins while etcd is away says so to whoever waits for it. */
TEST_ON(test_etcd_away, struct service *s, set_up, tear_down)
{
    mu_error error = {0};
    mu_kv_item item;

    check(mu_kv_put(s->workers[0], "a", "1", 1, 0, 0, SOON_MS, &error, NULL), &error);
    etcd_kill(&etcd);
    for (int i = 0; i < s->hosts_count; i++) {
        service_kill_host(s, i);
        service_start_host(s, i);
    }
    assert_int_equal(mu_kv_get(s->workers[0], "a", 5000, &error, &item), -MU_EDEADLINE);
    print_message("%s\n", error.message);
    assert_non_null(strstr(error.message, "its store is not held yet: etcd at http://"));
    etcd_start(&etcd);
    check(mu_kv_get(s->workers[0], "a", SOON_MS, &error, &item), &error);
    mu_kv_item_clear(&item);
}

NEEDS_PROGRAM(needs_programs("etcd", NULL), NULL, NULL)
