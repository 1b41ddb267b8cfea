/* The store over real etcd servers, which are killed and started again: that the one of
 * the simulator answers as they do, elections, fencing, and an etcd that is away. */
#include "actors/coordination/store/etcd_store.h"
#include "actors/messages.h"
#include "resolver/engine/uv/http_client.h"
#include "runtime/kernel/kernel.h"
#include "runtime/uv/loop_world.h"
#include "tests/real/etcd.h"
#include "tests/real/nodes.h"
#include "tests/support/etcd_rows.h"

#include <cjson/cJSON.h>

enum {
    HOLDERS = 2,
    LEASE_MS = 2000, /* the shortest that etcd grants */
    TICK_MS = 50,
    WAIT_MS = 30000 /* after which a test fails: far more than anything takes */
};

static uint64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- The holders: a loop, a kernel with one actor, and its store ---- */

struct fixture;

struct holder {
    struct fixture *fixture;
    uv_loop_t loop;
    struct mu__world_uv *world;
    struct mu__http_client *http;
    struct mu__kernel *kernel;
    mu__pid pid;
    struct mu__store *store;
    const char *name;
    bool runs;
    bool held;
    unsigned times_lost;
    uint64_t epoch;
    uint64_t number;
    uint64_t committed;
    uint64_t records;       /* that were read */
    uint64_t bytes;         /* of their values */
    uint64_t last_revision; /* the highest among them */
    bool http_closed;
    bool world_closed;
    /* A request of the test's own. */
    struct mu__http_request request;
    bool request_done;
};

struct fixture {
    struct etcd *server; /* all tests have the same one */
    char place[64];
    char cluster_name[16]; /* and each its own cluster */
    struct holder holders[HOLDERS];
    char log[1 << 16];
};

static void up_reading(void *owner)
{
    struct holder *h = owner;

    h->records = 0;
    h->bytes = 0;
    h->last_revision = 0;
}

static int up_visit(void *owner, struct mu__msg *record)
{
    struct holder *h = owner;
    const struct mu__store_change *change = mu__body(record);

    if (record->kind != MU__STORE_CHANGE)
        return 0;
    h->records++;
    h->bytes += change->value.size;
    if (change->revision > h->last_revision)
        h->last_revision = change->revision;
    return 0;
}

static void up_held(void *owner, struct mu__ctx *ctx, uint64_t epoch, uint64_t number)
{
    struct holder *h = owner;

    (void)ctx;
    assert_true(!h->held && epoch > h->epoch);
    h->held = true;
    h->epoch = epoch;
    h->number = number;
}

static void up_committed(void *owner, struct mu__ctx *ctx, uint64_t sequence)
{
    struct holder *h = owner;

    (void)ctx;
    assert_true(h->held && sequence > h->committed);
    h->committed = sequence;
}

static void up_lost(void *owner, struct mu__ctx *ctx, const char *reason)
{
    struct holder *h = owner;

    (void)ctx;
    assert_true(h->held && reason[0] != '\0');
    h->held = false;
    h->times_lost++;
}

static int actor_init(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct holder *h = *(struct holder *const *)arg;
    const struct mu__store_config config = {
        .location = h->fixture->place,
        .cluster_name = h->fixture->cluster_name,
        .task = h->name,
        .incarnation = mu__random(ctx) | 1,
        .schema = &mu__messages,
        .pool = mu__kernel_pool(ctx->kernel),
        .http = mu__http_client_door(h->http),
        .lease_ms = LEASE_MS,
        .up = {h, up_visit, up_held, up_committed, up_lost, up_reading, NULL},
    };

    *(struct holder **)state = h;
    assert_int_equal(mu__store_etcd.open(&config, NULL, &h->store), 0);
    h->store->ops->start(h->store, ctx);
    assert_true(mu__timer_set(ctx, TICK_MS, 0) != 0);
    return 0;
}

static void actor_tick(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct holder *h = *(struct holder **)state;

    (void)msg;
    h->store->ops->tick(h->store, ctx);
    assert_true(mu__timer_set(ctx, TICK_MS, 0) != 0);
}

static void actor_heard(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct holder *h = *(struct holder **)state;
    const struct mu__http_done *body = mu__body(msg);

    if (body->request == &h->request)
        h->request_done = true;
    else
        assert_true(h->store->ops->heard(h->store, ctx, body->request));
}

static void actor_done(struct mu__ctx *ctx, void *state)
{
    struct holder *h = *(struct holder **)state;

    h->store->ops->close(h->store, ctx);
    h->store = NULL;
    h->held = false;
}

static const struct mu__handler handlers[] = {
    {MU__TIMER, actor_tick},
    {MU__HTTP_DONE, actor_heard},
};

static const struct mu__behavior behavior = {
    .name = "holder",
    .state_size = sizeof(struct holder *),
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = actor_init,
    .done = actor_done,
};

static void deliver(void *owner, struct mu__msg *msg)
{
    (void)mu__kernel_deliver(((struct holder *)owner)->kernel, msg);
}

static void turn(void *owner)
{
    mu__kernel_turn(((struct holder *)owner)->kernel);
}

static int post(void *owner, struct mu__msg *msg)
{
    return mu__world_uv_post(((struct holder *)owner)->world, msg);
}

static void on_log(void *owner, enum mu__log_level level, const char *who,
                   const char *line)
{
    struct fixture *f = ((struct holder *)owner)->fixture;
    size_t size = strlen(f->log);

    (void)snprintf(f->log + size, sizeof f->log - size, "%d %s: %s\n", (int)level, who,
                   line);
}

static struct holder *holder_start(struct fixture *f, unsigned i)
{
    static const char *const names[HOLDERS] = {"/job:chief/task:0", "/job:ps/task:0"};
    struct holder *h = &f->holders[i];
    const struct mu__world_hooks hooks = {.owner = h, .deliver = deliver, .turn = turn};
    const struct mu__http_client_config http = {&h->loop, MU__HTTP_DONE, post, h};

    *h = (struct holder){.fixture = f, .name = names[i], .runs = true};
    assert_int_equal(uv_loop_init(&h->loop), 0);
    assert_int_equal(mu__world_uv_open(&h->loop, 1, &hooks, on_log, &h->world), 0);
    assert_int_equal(mu__http_client_open(&http, NULL, &h->http), 0);
    assert_int_equal(
        mu__kernel_new(mu__world_uv_world(h->world), &mu__messages, &h->kernel), 0);
    assert_int_equal(mu__spawn(h->kernel, &behavior, 0, &h, &h->pid), 0);
    return h;
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

/* As a node does it: actors first, which say their last words. */
static void holder_stop(struct holder *h)
{
    if (h->kernel == NULL)
        return;
    mu__kernel_free(h->kernel);
    h->kernel = NULL;
    mu__http_client_close(h->http, on_closed, &h->http_closed);
    mu__world_uv_close(h->world, on_closed, &h->world_closed);
    (void)uv_run(&h->loop, UV_RUN_DEFAULT);
    assert_true(h->http_closed && h->world_closed);
    assert_int_equal(uv_loop_close(&h->loop), 0);
    mu__buf_unref(h->request.answer);
    h->runs = false;
}

/* ---- Doing ---- */

static void pump(struct fixture *f)
{
    for (unsigned i = 0; i < HOLDERS; i++)
        if (f->holders[i].runs)
            (void)uv_run(&f->holders[i].loop, UV_RUN_NOWAIT);
    nodes_pause();
}

static void pump_for(struct fixture *f, uint64_t ms)
{
    uint64_t end_ms = now_ms() + ms;

    while (now_ms() < end_ms)
        pump(f);
}

static void wait_for(struct fixture *f, bool (*done)(const struct holder *h),
                     const struct holder *h)
{
    uint64_t end_ms = now_ms() + WAIT_MS;

    while (!done(h) && now_ms() < end_ms)
        pump(f);
    if (!done(h))
        fail_msg("%s waited for too long:\n%s", h->name, f->log);
}

static bool is_held(const struct holder *h)
{
    return h->held;
}

static bool is_lost(const struct holder *h)
{
    return !h->held;
}

static bool has_answer(const struct holder *h)
{
    return h->request_done;
}

static bool may_read(struct holder *h)
{
    struct mu__ctx ctx = {h->kernel, h->pid, NULL};

    return h->store->ops->may_read(h->store, &ctx);
}

static void write_key(struct holder *h, unsigned key, uint64_t revision,
                      const void *value, uint32_t size)
{
    struct mu__pool *pool = mu__kernel_pool(h->kernel);
    struct mu__msg *msg =
        mu__pool_get(pool, MU__STORE_CHANGE, sizeof(struct mu__store_change));
    struct mu__store_change *change = mu__body(msg);
    struct mu__ctx ctx = {h->kernel, h->pid, NULL};
    char text[16];

    (void)snprintf(text, sizeof text, "k/%u", key);
    change->revision = revision;
    change->key = mu__view_str(text);
    change->value = (struct mu__view){value, size};
    assert_int_equal(h->store->ops->write(h->store, &ctx, msg), 0);
    mu__pool_put(pool, msg);
}

static void commit(struct holder *h, uint64_t sequence)
{
    struct mu__ctx ctx = {h->kernel, h->pid, NULL};

    h->store->ops->commit(h->store, &ctx, sequence, sequence);
}

/* One key with its revision; key and sequence are that, too. */
static void put(struct holder *h, uint64_t revision)
{
    write_key(h, (unsigned)revision, revision, "value", 5);
    commit(h, revision);
}

static void wait_committed(struct fixture *f, const struct holder *h, uint64_t sequence)
{
    uint64_t end_ms = now_ms() + WAIT_MS;

    while (h->committed < sequence && now_ms() < end_ms)
        pump(f);
    if (h->committed < sequence)
        fail_msg("%s has not written:\n%s", h->name, f->log);
}

static void put_safe(struct fixture *f, struct holder *h, uint64_t revision)
{
    put(h, revision);
    wait_committed(f, h, revision);
}

/* ---- Set-up ---- */

static struct etcd server;

static int group_setup(void **state)
{
    (void)state;
    etcd_open(&server);
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    etcd_close(&server);
    return 0;
}

static int setup(void **state)
{
    static unsigned number;
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    (void)signal(SIGPIPE, SIG_IGN);
    f->server = &server;
    (void)snprintf(f->place, sizeof f->place, "http://127.0.0.1:%d", server.port);
    (void)snprintf(f->cluster_name, sizeof f->cluster_name, "real/%u", ++number);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    for (unsigned i = 0; i < HOLDERS; i++)
        holder_stop(&f->holders[i]);
    free(f);
    return 0;
}

/* ---- Tests ---- */

/* The fields that differ from one etcd to another go. */
static void strip(cJSON *header)
{
    static const char *const names[] = {"cluster_id", "member_id", "raft_term"};

    for (size_t i = 0; i < 3; i++)
        cJSON_DeleteItemFromObjectCaseSensitive(header, names[i]);
}

static cJSON *parse_stripped(const struct mu__buf *answer)
{
    cJSON *root = cJSON_ParseWithLength((const char *)answer->data, answer->size);
    cJSON *result = cJSON_GetObjectItemCaseSensitive(root, "result");

    strip(cJSON_GetObjectItemCaseSensitive(root, "header"));
    /* An error is said twice before etcd 3.5. */
    cJSON_DeleteItemFromObjectCaseSensitive(root, "error");
    strip(cJSON_GetObjectItemCaseSensitive(result, "header"));
    return root;
}

static void expect_row(struct fixture *f, struct holder *h, const struct etcd_row *row)
{
    struct mu__http *door = mu__http_client_door(h->http);
    char url[128];
    cJSON *answer;
    cJSON *wanted = cJSON_Parse(row->answer);

    cJSON_DeleteItemFromObjectCaseSensitive(wanted, "error");
    (void)snprintf(url, sizeof url, "%s%s", f->place, row->path);
    mu__buf_unref(h->request.answer);
    h->request = (struct mu__http_request){.url = url,
                                           .method = "POST",
                                           .body = row->ask,
                                           .body_size = strlen(row->ask),
                                           .timeout_ms = 5000,
                                           .owner = h->pid};
    h->request_done = false;
    door->ops->send(door, &h->request);
    wait_for(f, has_answer, h);
    assert_int_equal(h->request.code, 0);
    /* "Failed precondition" is 412 to etcd 3.4 and 400 to 3.5. */
    if (row->status != 412 || h->request.status != 400)
        assert_int_equal(h->request.status, row->status);
    answer = parse_stripped(h->request.answer);
    if (wanted != NULL && !cJSON_Compare(answer, wanted, 1))
        fail_msg("%s\nanswered %.*s\nexpected %s", row->ask, (int)h->request.answer->size,
                 (const char *)h->request.answer->data, row->answer);
    cJSON_Delete(answer);
    cJSON_Delete(wanted);
}

/* The first of the tests, since they begin with an etcd that is new. The holder only
 * carries the requests: its own store is at another place, where nobody is, so that it
 * changes no revision. */
TEST_ON(test_rows, struct fixture *f, setup, teardown)
{
    struct holder *h;
    char place[sizeof f->place];

    memcpy(place, f->place, sizeof place);
    (void)snprintf(f->place, sizeof f->place, "http://127.0.0.1:1");
    h = holder_start(f, 0);
    memcpy(f->place, place, sizeof place);
    for (size_t i = 0; i < ETCD_ROWS; i++)
        expect_row(f, h, &etcd_rows[i]);
}

/* One of two holds it; when that one ends well, the other one does at once; when it is
 * just gone, after its lease. */
TEST_ON(test_election, struct fixture *f, setup, teardown)
{
    struct holder *one = holder_start(f, 0);
    struct holder *two;
    uint64_t before_ms;

    wait_for(f, is_held, one);
    two = holder_start(f, 1);
    put_safe(f, one, 1);
    pump_for(f, LEASE_MS + 500);
    assert_true(one->held && may_read(one));
    assert_true(!two->held && !may_read(two));
    before_ms = now_ms();
    holder_stop(one);
    wait_for(f, is_held, two);
    assert_true(now_ms() - before_ms < LEASE_MS);
    assert_int_equal(two->last_revision, 1);
    for (uint64_t i = 2; i < 6; i++)
        put_safe(f, two, i);
    assert_null(strstr(f->log, "did not apply")); /* nothing needed the gateway */

    one = holder_start(f, 0);
    pump_for(f, 300);
    two->runs = false;
    before_ms = now_ms();
    wait_for(f, is_held, one);
    assert_true(now_ms() - before_ms > LEASE_MS / 2);
    assert_int_equal(one->last_revision, 5);
    assert_int_equal(one->records, 5);
    assert_true(one->epoch > two->epoch);
    assert_true(one->number == two->number);
}

/* One that stood still for longer than its lease changes nothing. */
TEST_ON(test_fencing, struct fixture *f, setup, teardown)
{
    struct holder *one = holder_start(f, 0);
    struct holder *two;

    wait_for(f, is_held, one);
    put_safe(f, one, 1);
    one->runs = false;
    two = holder_start(f, 1);
    wait_for(f, is_held, two);
    put_safe(f, two, 2);
    assert_true(one->held);
    put(one, 99);
    one->runs = true;
    wait_for(f, is_lost, one);
    assert_int_equal(one->committed, 1);
    put_safe(f, two, 3);
    holder_stop(two);
    wait_for(f, is_held, one);
    assert_int_equal(one->last_revision, 3);
    assert_int_equal(one->records, 3);
}

/* What was written while etcd was away is there now; or the store was lost meanwhile,
 * since a server on a busy machine may take longer to start than the lease. */
static bool is_through(const struct holder *h)
{
    return h->committed == 21 || h->times_lost > 0;
}

/* Killed and started again soon: nothing is lost, and the holder may stay. For longer
 * than the lease: it is lost, and held again. */
TEST_ON(test_etcd_killed, struct fixture *f, setup, teardown)
{
    struct holder *h = holder_start(f, 0);
    uint64_t revision = 0;
    uint64_t epoch;

    wait_for(f, is_held, h);
    epoch = h->epoch;
    while (revision < 20)
        put_safe(f, h, ++revision);
    etcd_kill(f->server);
    put(h, ++revision);
    pump_for(f, 200);
    assert_int_equal(h->committed, 20);
    etcd_start(f->server);
    wait_for(f, is_through, h);
    wait_for(f, is_held, h);
    assert_true(h->committed == revision || h->last_revision >= 20);

    etcd_kill(f->server);
    wait_for(f, is_lost, h);
    assert_false(may_read(h));
    pump_for(f, 500);
    etcd_start(f->server);
    wait_for(f, is_held, h);
    assert_true(h->epoch > epoch);
    assert_true(h->last_revision >= 20 && h->records >= 20);
    put_safe(f, h, 100);
    assert_non_null(strstr(f->log, "answers again"));
}

/* More keys than a transaction takes, and larger ones than a request: all by one commit;
 * and read in pages. */
TEST_ON(test_large_batches, struct fixture *f, setup, teardown)
{
    struct holder *h = holder_start(f, 0);
    uint8_t *value = calloc(1, MU__KEY_VALUE_MAX);

    assert_non_null(value);
    wait_for(f, is_held, h);
    for (unsigned i = 0; i < 1000; i++)
        write_key(h, i, i + 1, "12345", 5);
    for (unsigned i = 1000; i < 1004; i++)
        write_key(h, i, i + 1, value, MU__KEY_VALUE_MAX);
    commit(h, 1);
    wait_committed(f, h, 1);
    holder_stop(h);
    h = holder_start(f, 0);
    wait_for(f, is_held, h);
    assert_int_equal(h->records, 1004);
    assert_int_equal(h->bytes, 5000 + 4 * (uint64_t)MU__KEY_VALUE_MAX);
    assert_int_equal(h->last_revision, 1004);
    free(value);
}

NEEDS_PROGRAM(needs_programs("etcd", NULL), group_setup, group_teardown)
