/* A coordination service on hosts that are processes of their own, and workers in this
 * process that use it without a pause: for tests that kill the hosts. */
#ifndef MUSTER_TESTS_REAL_SERVICE_H
#define MUSTER_TESTS_REAL_SERVICE_H

#include "tests/real/cli.h"
#include "tests/real/nodes.h"
#include "tests/real/slow.h"

#include <inttypes.h>
#include <stdatomic.h>

enum { SERVICE_HOSTS_MAX = 3, SERVICE_WORKERS = 3, SERVICE_LEASE_MS = 2000 * SLOW };

/* The words of a host that has begun to lead. */
#define SERVICE_LEADS " leads: epoch "

struct service {
    struct nodes nodes;
    struct cli hosts[SERVICE_HOSTS_MAX]; /* chief 0, ps 0, ps 1 */
    int hosts_count;
    const char *hosts_set;
    char folder[64];
    char store[256];
    mu_node *workers[SERVICE_WORKERS];
};

static inline void service_start_host(struct service *s, int i)
{
    static const char *const tasks[] = {"chief:0", "ps:0", "ps:1"};

    cli_start(&s->hosts[i], NULL, "node", "--cluster", s->nodes.json, "--task", tasks[i],
              "--service-hosts", s->hosts_set, "--store", s->store, "--lease-ms",
              slow_text(2000), "--heartbeat-ms", "200", "--silence-ms", "4000", NULL);
}

static inline void service_kill_host(struct service *s, int i)
{
    cli_kill(&s->hosts[i], SIGKILL);
    cli_expect_code(&s->hosts[i], 128 + SIGKILL);
}

static inline mu_node *service_open_worker(struct service *s, int i)
{
    mu_node_options options;

    nodes_options(&s->nodes, "worker", i, &options);
    options.service_hosts = s->hosts_set;
    s->workers[i] = nodes_open_with(&s->nodes, &options);
    return s->workers[i];
}

/* `store` is what --store is given; the hosts run, and all workers are registered. */
static inline void service_open(struct service *s, int hosts_count, const char *store)
{
    mu_error error = {0};

    s->hosts_count = hosts_count;
    s->hosts_set = hosts_count == 1 ? "chief:0" : "chief:0,ps:0-1";
    (void)snprintf(s->store, sizeof s->store, "%s", store);
    nodes_init(&s->nodes, SERVICE_WORKERS, hosts_count - 1);
    for (int i = 0; i < hosts_count; i++)
        service_start_host(s, i);
    for (int i = 0; i < SERVICE_WORKERS; i++)
        (void)service_open_worker(s, i);
    for (int i = 0; i < SERVICE_WORKERS; i++)
        check(mu_agent_register(s->workers[i], 0, SOON_MS, &error), &error);
}

static inline void service_close(struct service *s)
{
    nodes_done(&s->nodes);
    for (int i = 0; i < s->hosts_count; i++)
        if (!s->hosts[i].ended) {
            cli_kill(&s->hosts[i], SIGKILL);
            (void)cli_wait(&s->hosts[i]);
        }
}

/* Which host leads, by the last that has said so; waits until one says it behind what it
 * had said when the caller remembered the sizes (NULL: from the beginning). */
static inline int service_leader(struct service *s, const size_t *said)
{
    uint64_t deadline_ms = cli_now_ms() + CLI_SOON_MS;

    while (cli_now_ms() < deadline_ms) {
        for (int i = 0; i < s->hosts_count; i++) {
            const struct cli *host = &s->hosts[i];

            if (host->ended)
                continue;
            cli_read(&s->hosts[i]);
            if (strstr(host->text + (said == NULL ? 0 : said[i]), SERVICE_LEADS))
                return i;
        }
        cli_pause();
    }
    fail_msg("no host leads");
    return -1;
}

static inline void service_said(struct service *s, size_t said[SERVICE_HOSTS_MAX])
{
    for (int i = 0; i < s->hosts_count; i++) {
        if (!s->hosts[i].ended)
            cli_read(&s->hosts[i]);
        said[i] = s->hosts[i].ended ? 0 : s->hosts[i].size;
    }
}

/* ---- Crews: a thread for each worker, in rounds ---- */

struct crew {
    struct service *service;
    unsigned rounds;
    unsigned increments;               /* in each round */
    unsigned hold_at;                  /* the last worker does not come to its barrier */
    atomic_bool holds;                 /* as long as this is set */
    atomic_uint done[SERVICE_WORKERS]; /* rounds */
    atomic_uint failed;
    mu_error errors[SERVICE_WORKERS];
    pthread_t threads[SERVICE_WORKERS];
};

struct crew_member {
    struct crew *crew;
    int index;
};

/* A key that is not there yet, by itself; or, every second time, in one transaction with
 * two counters. */
static inline int crew_keep(mu_node *node, const char *key, unsigned round,
                            mu_error *error)
{
    const mu_kv_check check = {.type = MU_KV_IF_ABSENT, .key = key};
    const mu_kv_change changes[] = {
        {.operation = MU_KV_INCREMENT, .key = "pair/x", .by = 1},
        {.operation = MU_KV_PUT, .key = key, .value = key, .size = strlen(key)},
        {.operation = MU_KV_INCREMENT, .key = "pair/y", .by = 1}};
    const mu_kv_transaction transaction = {&check, 1, changes, 3};

    if (round % 2 == 0)
        return mu_kv_put(node, key, key, strlen(key), 0, 0, SOON_MS, error, NULL);
    return mu_kv_transact(node, &transaction, SOON_MS, error, NULL);
}

static inline int crew_round(struct crew *crew, int index, unsigned round)
{
    mu_node *node = crew->service->workers[index];
    mu_barrier_options options;
    mu_error *error = &crew->errors[index];
    char key[64];
    int64_t number;
    int rv;

    (void)snprintf(key, sizeof key, "kept/%d/%04u", index, round);
    rv = crew_keep(node, key, round, error);
    for (unsigned i = 0; rv == 0 && i < crew->increments; i++)
        rv = mu_kv_increment(node, "sum", 1, SOON_MS, error, &number);
    while (index == SERVICE_WORKERS - 1 && round == crew->hold_at &&
           atomic_load(&crew->holds))
        nodes_pause();
    if (rv != 0)
        return rv;
    mu_barrier_options_init(&options);
    options.tasks = "worker:0-2";
    options.timeout_ms = SOON_MS;
    return mu_barrier_wait(node, "round", &options, error);
}

static inline void *crew_thread(void *arg)
{
    struct crew_member member = *(struct crew_member *)arg;
    struct crew *crew = member.crew;
    int rv = 0;

    free(arg);
    for (unsigned i = 0; rv == 0 && i < crew->rounds; i++) {
        rv = crew_round(crew, member.index, i);
        if (rv == 0)
            atomic_fetch_add(&crew->done[member.index], 1);
    }
    if (rv != 0)
        atomic_fetch_add(&crew->failed, 1);
    return NULL;
}

/* The fields that say what to do were set by the caller. */
static inline void crew_start(struct crew *crew, struct service *s)
{
    crew->service = s;
    for (int i = 0; i < SERVICE_WORKERS; i++) {
        struct crew_member *member = malloc(sizeof *member);

        assert_non_null(member);
        *member = (struct crew_member){crew, i};
        assert_int_equal(pthread_create(&crew->threads[i], NULL, crew_thread, member), 0);
    }
}

/* Until the first worker has done so many rounds. */
static inline void crew_await(struct crew *crew, unsigned rounds)
{
    uint64_t deadline_ms = cli_now_ms() + CLI_SOON_MS;

    while (atomic_load(&crew->done[0]) < rounds && atomic_load(&crew->failed) == 0) {
        assert_true(cli_now_ms() < deadline_ms);
        nodes_pause();
    }
}

static inline void crew_check_number(struct crew *crew, const char *key, unsigned wanted)
{
    mu_error error = {0};
    mu_kv_item sum = {0};

    check(mu_kv_get(crew->service->workers[0], key, SOON_MS, &error, &sum), &error);
    assert_int_equal(strtoul(sum.value, NULL, 10), wanted);
    mu_kv_item_clear(&sum);
}

/* Wait for its end: nothing that was acknowledged is lost, and nothing is there twice. */
static inline void crew_check(struct crew *crew)
{
    struct service *s = crew->service;
    mu_value *items = NULL;
    mu_error error = {0};

    for (int i = 0; i < SERVICE_WORKERS; i++)
        (void)pthread_join(crew->threads[i], NULL);
    for (int i = 0; i < SERVICE_WORKERS; i++)
        if (atomic_load(&crew->done[i]) != crew->rounds)
            fail_msg("worker %d, round %u: %s", i, atomic_load(&crew->done[i]),
                     crew->errors[i].message);
    for (int i = 0; i < SERVICE_WORKERS; i++)
        assert_int_equal(mu_agent_state(s->workers[i], NULL), MU_AGENT_CONNECTED);
    crew_check_number(crew, "sum", SERVICE_WORKERS * crew->rounds * crew->increments);
    crew_check_number(crew, "pair/x", SERVICE_WORKERS * (crew->rounds / 2));
    crew_check_number(crew, "pair/y", SERVICE_WORKERS * (crew->rounds / 2));
    check(mu_kv_list(s->workers[1], "kept", SOON_MS, &error, &items), &error);
    assert_int_equal(mu_value_count(items), SERVICE_WORKERS * crew->rounds);
    mu_value_free(items);
}

#endif
