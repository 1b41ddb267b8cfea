/* Nodes that know each other by name only: the name's address changes while a node is
 * restarted, and the link comes back at the new one; or it has two, and one is silent. In
 * a network and a file system of the test's own, where this machine's DNS server is the
 * test's. */
#define _GNU_SOURCE /* unshare */

#include "tests/real/machine.h"

#include "transport/wire/uv/probe.h"

#include <netdb.h>
#include <uv.h>

/* One silent address has HOLDUP_MS alone: up before that has not waited for it. */
enum { PORT_CHIEF = 7001, PORT_WORKER = 7002, HOLDUP_MS = 10000, FILLS = 4 };

/* ---- Nodes ---- */

struct fixture {
    struct dnsmasq dnsmasq;
    struct nodes nodes;
};

static void write_hosts(char *out, size_t size, const char *chief, const char *worker)
{
    (void)snprintf(out, size, "127.0.0.1 ready.test\n%s chief.test\n%s worker.test\n",
                   chief, worker);
}

/* Until the system says so too. */
static void wait_for_address(const char *name, const char *address)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    char text[INET_ADDRSTRLEN] = "";

    for (int i = 0; i < SOON_MS && strcmp(text, address) != 0; i++) {
        struct addrinfo *found = NULL;

        if (getaddrinfo(name, NULL, &hints, &found) == 0)
            (void)inet_ntop(
                AF_INET,
                &((const struct sockaddr_in *)(const void *)found->ai_addr)->sin_addr,
                text, sizeof text);
        if (found != NULL)
            freeaddrinfo(found);
        nodes_pause();
    }
    assert_string_equal(text, address);
}

static void change(struct fixture *f, const char *chief, const char *worker)
{
    char hosts[256];

    write_hosts(hosts, sizeof hosts, chief, worker);
    dnsmasq_change(&f->dnsmasq, hosts);
    wait_for_address("chief.test", chief);
    wait_for_address("worker.test", worker);
}

static unsigned count_log(struct nodes *nodes, const char *words)
{
    const char *at;
    unsigned count = 0;

    (void)pthread_mutex_lock(&nodes->log.lock);
    for (at = nodes->log.text; (at = strstr(at, words)) != NULL; at++)
        count++;
    (void)pthread_mutex_unlock(&nodes->log.lock);
    return count;
}

/* Until the line has been said so often. */
static void wait_count(struct nodes *nodes, const char *words, unsigned count)
{
    for (int i = 0; i < SOON_MS && count_log(nodes, words) < count; i++)
        nodes_pause();
    if (count_log(nodes, words) < count)
        fail_msg("\"%s\" was not said %u times; the log:\n%s", words, count,
                 nodes->log.text);
}

static bool listens(const char *host, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool answered;

    address.sin_port = htons((uint16_t)port);
    assert_int_equal(inet_pton(AF_INET, host, &address.sin_addr), 1);
    answered = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    (void)close(fd);
    return answered;
}

static int open_fixture(void **state)
{
    static struct fixture f;
    char hosts[256];
    mu_error error = {0};

    write_hosts(hosts, sizeof hosts, "127.0.0.2", "127.0.0.4");
    dnsmasq_open(&f.dnsmasq, 53, "no-round-robin\n", hosts);
    nodes_init(&f.nodes, 1, 0);
    mu_cluster_free(f.nodes.cluster);
    f.nodes.cluster = NULL;
    (void)snprintf(f.nodes.json, sizeof f.nodes.json,
                   "{\"chief\":[\"chief.test:%d\"],\"worker\":[\"worker.test:%d\"]}",
                   (int)PORT_CHIEF, (int)PORT_WORKER);
    assert_int_equal(mu_cluster_parse(f.nodes.json, strlen(f.nodes.json), "test", &error,
                                      &f.nodes.cluster),
                     0);
    *state = &f;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;

    nodes_done(&f->nodes);
    dnsmasq_close(&f->dnsmasq);
    return 0;
}

#define CHIEF_SEES "/job:chief/task:0 links: /job:worker/task:0 is up"
#define WORKER_SEES "/job:worker/task:0 links: /job:chief/task:0 is up"

TEST_ON(test_chief_moves, struct fixture *f, open_fixture, close_fixture)
{
    mu_node *chief;

    (void)nodes_open(&f->nodes, "worker", 0);
    chief = nodes_open(&f->nodes, "chief", 0);
    wait_count(&f->nodes, WORKER_SEES, 1);
    wait_count(&f->nodes, CHIEF_SEES, 1);
    assert_true(listens("127.0.0.2", PORT_CHIEF));
    nodes_close(&f->nodes, chief);

    change(f, "127.0.0.3", "127.0.0.4");
    (void)nodes_open(&f->nodes, "chief", 0);
    wait_count(&f->nodes, WORKER_SEES, 2);
    wait_count(&f->nodes, CHIEF_SEES, 2);
    assert_true(listens("127.0.0.3", PORT_CHIEF));
    assert_false(listens("127.0.0.2", PORT_CHIEF));
}

TEST_ON(test_worker_moves, struct fixture *f, open_fixture, close_fixture)
{
    mu_node *worker = nodes_open(&f->nodes, "worker", 0);

    (void)nodes_open(&f->nodes, "chief", 0);
    wait_count(&f->nodes, CHIEF_SEES, 1);
    wait_count(&f->nodes, WORKER_SEES, 1);
    assert_true(listens("127.0.0.4", PORT_WORKER));
    nodes_close(&f->nodes, worker);

    change(f, "127.0.0.2", "127.0.0.5");
    (void)nodes_open(&f->nodes, "worker", 0);
    wait_count(&f->nodes, CHIEF_SEES, 2);
    wait_count(&f->nodes, WORKER_SEES, 2);
    assert_true(listens("127.0.0.5", PORT_WORKER));
    assert_false(listens("127.0.0.4", PORT_WORKER));
}

/* A name that is not there yet is looked up until it is. */
TEST_ON(test_name_comes_late, struct fixture *f, open_fixture, close_fixture)
{
    dnsmasq_change(&f->dnsmasq, "127.0.0.1 ready.test\n127.0.0.4 worker.test\n");
    for (int i = 0; i < SOON_MS; i++) {
        struct addrinfo *found = NULL;

        if (getaddrinfo("chief.test", NULL, NULL, &found) != 0)
            break;
        freeaddrinfo(found);
        nodes_pause();
    }
    (void)nodes_open(&f->nodes, "worker", 0);
    nodes_wait_log(&f->nodes, "no such host");
    change(f, "127.0.0.6", "127.0.0.4");
    (void)nodes_open(&f->nodes, "chief", 0);
    wait_count(&f->nodes, WORKER_SEES, 1);
    assert_true(listens("127.0.0.6", PORT_CHIEF));
}

/* ---- Several addresses ---- */

static struct sockaddr_in address_of(const char *host, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};

    address.sin_port = htons((uint16_t)port);
    assert_int_equal(inet_pton(AF_INET, host, &address.sin_addr), 1);
    return address;
}

/* A listener whose queue is full says nothing to whoever comes. */
static void open_deaf(const char *host, int port, int *ret_fds)
{
    const struct sockaddr_in address = address_of(host, port);
    int on = 1;

    for (int i = 0; i <= FILLS; i++)
        ret_fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(setsockopt(ret_fds[0], SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    assert_int_equal(bind(ret_fds[0], (const struct sockaddr *)&address, sizeof address),
                     0);
    assert_int_equal(listen(ret_fds[0], 0), 0);
    for (int i = 1; i <= FILLS; i++)
        (void)connect(ret_fds[i], (const struct sockaddr *)&address, sizeof address);
}

static void close_deaf(const int *fds)
{
    for (int i = 0; i <= FILLS; i++)
        (void)close(fds[i]);
}

/* The silent one is the first. */
static void give_chief_two(struct fixture *f)
{
    dnsmasq_change(&f->dnsmasq, "127.0.0.1 ready.test\n127.0.0.8 chief.test\n"
                                "127.0.0.32 chief.test\n127.0.0.4 worker.test\n");
    for (int i = 0, count = 0; i < SOON_MS && count != 2; i++) {
        const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
        struct addrinfo *found = NULL;

        if (getaddrinfo("chief.test", NULL, &hints, &found) != 0)
            continue;
        count = 1 + (found->ai_next != NULL);
        freeaddrinfo(found);
        nodes_pause();
    }
    wait_for_address("chief.test", "127.0.0.8");
}

static mu_node *open_chief_at(struct fixture *f, const char *address)
{
    mu_node_options options;

    nodes_options(&f->nodes, "chief", 0, &options);
    options.bind_address = address;
    return nodes_open_with(&f->nodes, &options);
}

static int seven(mu_run *run, void *user)
{
    (void)user;
    mu_run_return(run, mu_value_int(7));
    return 0;
}

/* A closure has run: messages go both ways. Closes the coordinator. */
static void check_seven(mu_coordinator *coordinator)
{
    mu_remote_value *remote = NULL;
    mu_value *result = NULL;
    mu_error error = {0};
    int64_t number = 0;

    if (mu_coordinator_schedule(coordinator, "seven", NULL, SOON_MS, &error, &remote) !=
            0 ||
        mu_remote_value_fetch(remote, SOON_MS, &error, &result) != 0)
        fail_msg("%s", error.message);
    assert_int_equal(mu_value_get_int(result, &number), 0);
    assert_int_equal(number, 7);
    mu_value_free(result);
    mu_remote_value_free(remote);
    mu_coordinator_close(coordinator);
}

/* The link is up, and up again, without a wait for the silent address. */
TEST_ON(test_silent_address, struct fixture *f, open_fixture, close_fixture)
{
    uint64_t begin_ns;
    int fds[FILLS + 1];

    give_chief_two(f);
    open_deaf("127.0.0.8", PORT_CHIEF, fds);
    (void)open_chief_at(f, "tcp://127.0.0.32:7001");
    begin_ns = uv_hrtime();
    (void)nodes_open(&f->nodes, "worker", 0);
    wait_count(&f->nodes, WORKER_SEES, 1);
    nodes_close(&f->nodes, f->nodes.open[0]);
    (void)open_chief_at(f, "tcp://127.0.0.32:7001");
    wait_count(&f->nodes, WORKER_SEES, 2);
    assert_true((uv_hrtime() - begin_ns) / 1000000 < HOLDUP_MS);
    close_deaf(fds);
}

/* A node of the same cluster is at an address that was the chief's: it says who it is,
 * and the name's other address is tried. The link to that node itself stays. */
TEST_ON(test_other_task_at_an_address, struct fixture *f, open_fixture, close_fixture)
{
    mu_error error = {0};
    mu_node *worker;
    mu_node *chief;

    give_chief_two(f);
    assert_int_equal(mu_cluster_add(f->nodes.cluster, "ps", 0, "127.0.0.8:7001", &error),
                     0);
    (void)nodes_open(&f->nodes, "ps", 0);
    worker = nodes_open(&f->nodes, "worker", 0);
    wait_count(&f->nodes,
               "/job:chief/task:0: it refused us: task /job:chief/task:0 is "
               "not here, but /job:ps/task:0",
               1);
    chief = open_chief_at(f, "tcp://127.0.0.32:7001");
    wait_count(&f->nodes, WORKER_SEES, 1);
    assert_int_equal(mu_node_register_function(worker, "seven", seven, NULL, 0), 0);
    assert_int_equal(mu_node_serve(worker), 0);
    check_seven(nodes_coordinator(chief));
    wait_count(&f->nodes, "/job:worker/task:0 links: /job:ps/task:0 is up", 1);
    assert_int_equal(count_log(&f->nodes, "/job:ps/task:0 is lost"), 0);
}

/* What `muster check` says of such a name. */
TEST_ON(test_probe, struct fixture *f, open_fixture, close_fixture)
{
    struct mu__probe probes[] = {{.url = "tcp://chief.test:7001"},
                                 {.url = "tcp://chief.test:7002"}};
    int fds[FILLS + 1];
    int silent_fds[FILLS + 1];

    give_chief_two(f);
    open_deaf("127.0.0.8", PORT_CHIEF, fds);
    open_deaf("127.0.0.8", PORT_WORKER, silent_fds);
    f->nodes.insecure = 1;
    (void)open_chief_at(f, "tcp://127.0.0.32:7001");
    assert_int_equal(mu__probe_all(probes, 2, 1500, NULL), 0);
    assert_int_equal(probes[0].state, MU__PROBE_GREETS);
    assert_string_equal(probes[0].found, "127.0.0.8, 127.0.0.32");
    assert_string_equal(probes[0].at, "127.0.0.32:7001");
    assert_string_equal(probes[0].others, "127.0.0.8: no answer by then");
    assert_int_equal(probes[1].state, MU__PROBE_SILENT);
    assert_string_equal(probes[1].at, "127.0.0.8:7002");
    assert_string_equal(probes[1].others, "127.0.0.32: connection refused");
    close_deaf(fds);
    close_deaf(silent_fds);
}

int main(void)
{
    const char *missing = needs_programs("dnsmasq", NULL);
    const char *reason = missing == NULL ? machine_make_names() : missing;

    if (reason != NULL)
        return needs_skip(reason);
    return tests_run(NULL, NULL);
}
