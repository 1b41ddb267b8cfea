/* Memory that is missing anywhere on the way of a key: what was asked fails or is not
 * answered, what was answered is there, nothing leaks, and the service goes on. */
#include "actors/coordination/coordination.h"
#include "actors/coordination/keys/key_map.h"
#include "actors/coordination/keys/txn.h"
#include "actors/coordination/request_results.h"
#include "actors/messages.h"
#include "actors/packing.h"
#include "tests/support/bare_world.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"

enum { NODE = 5, TOKENS = 64, FILE_BYTES = 1 << 16, FAULTS_MAX = 2000 };

/* ---- A file that needs no memory ---- */

struct file {
    struct mu__storage base; /* first */
    uint8_t content[FILE_BYTES];
    size_t size;
};

static int file_load(struct mu__storage *storage, uint64_t offset, uint32_t bytes_max,
                     mu_error *ret_error, struct mu__buf **ret_content)
{
    struct file *file = (struct file *)storage;
    struct mu__buf *content = NULL;

    assert_true(offset == 0 && file->size < bytes_max);
    if (file->size > 0) {
        content = mu__buf_new(file->size);
        if (content == NULL)
            return mu_error_set(ret_error, -MU_ENOMEM, "no memory");
        memcpy(content->data, file->content, file->size);
        content->size = (uint32_t)file->size;
    }
    *ret_content = content;
    return 0;
}

static int file_append(struct mu__storage *storage, const void *data, size_t size,
                       mu_error *ret_error)
{
    struct file *file = (struct file *)storage;

    (void)ret_error;
    assert_true(file->size + size <= FILE_BYTES);
    memcpy(file->content + file->size, data, size);
    file->size += size;
    return 0;
}

static int file_flush(struct mu__storage *storage, mu_error *ret_error)
{
    assert_non_null(storage);
    (void)ret_error;
    return 0;
}

static int file_replace(struct mu__storage *storage, const void *data, size_t size,
                        mu_error *ret_error)
{
    ((struct file *)storage)->size = 0;
    return file_append(storage, data, size, ret_error);
}

static const struct mu__storage_ops file_ops = {
    .load = file_load,
    .append = file_append,
    .flush = file_flush,
    .replace = file_replace,
};

/* ---- The world: nothing leaves it, time is the test's ---- */

struct world {
    struct bare_world bare; /* first */
    struct mu__kernel *kernel;
    bool registered;
    bool answered[TOKENS]; /* with code 0 */
    int64_t numbers[TOKENS];
    uint32_t sizes[TOKENS]; /* of values */
};

static int world_transmit(struct mu__world *world, struct mu__msg *msg)
{
    struct world *w = (struct world *)world;
    const struct mu__key_done *done = mu__body(msg);

    if (msg->kind == MU__TASKS_ANSWER)
        w->registered = ((const struct mu__tasks_answer *)mu__body(msg))->code == 0;
    if (msg->kind == MU__KEY_DONE && done->code == 0) {
        assert_true(done->token < TOKENS);
        w->answered[done->token] = true;
        w->numbers[done->token] = done->number;
        w->sizes[done->token] = done->value.size;
    }
    mu__pool_put(mu__kernel_pool(w->kernel), msg);
    return 0;
}

static const struct mu__world_ops world_ops = BARE_WORLD_OPS(world_transmit);

/* The messages of the test itself are made before the fault is armed again. */
static void tell(struct world *w, uint16_t kind, const void *body, size_t size)
{
    long armed = fault_countdown;
    struct mu__msg *msg;

    fault_countdown = -1;
    msg = mu__msg_heap(kind, size);
    assert_non_null(msg);
    memcpy(msg->body, body, size);
    msg->from = (mu__pid){NODE, MU__AGENT};
    msg->to = (mu__pid){MU__NODE_SELF, MU__COORDINATION};
    (void)mu__kernel_deliver(w->kernel, msg);
    fault_countdown = armed;
    for (int i = 0; i < 3; i++)
        mu__kernel_turn(w->kernel);
}

#define TELL(w, KIND, name, ...) \
    tell(w, MU__##KIND, &(struct mu__##name){__VA_ARGS__}, sizeof(struct mu__##name))
#define KEY(text) .key = mu__view_str(text)

static bool begin(struct world *w, const struct mu__store_kind *kind, struct file *file)
{
    const struct mu__coordination_config config = {
        .store = kind,
        .store_location = "x",
        .storage = &file->base,
        .cluster_name = "oom",
        .task = "/job:chief/task:0",
        .incarnation = 1,
        .tasks = "chief:0,worker:0",
        .recoverable = "all",
        .suspect_ms = 100000,
        .dead_ms = 300000,
        .reconnect_ms = 300000,
    };

    *w = (struct world){.bare = {{&world_ops}, 1}};
    if (mu__kernel_new(&w->bare.world, &mu__messages, &w->kernel) != 0) {
        w->kernel = NULL;
        return false;
    }
    return mu__spawn(w->kernel, &mu__coordination, MU__COORDINATION, &config, NULL) == 0;
}

static void meet(struct world *w)
{
    for (int i = 0; i < 3; i++)
        mu__kernel_turn(w->kernel);
    mu__kernel_node_up(w->kernel, NODE, "worker", 0, 99, "tcp://w:1");
    TELL(w, TASK_REGISTER, task_register, .token = 1);
}

/* Two counters and two leases, of which one is of the task already. */
static void tell_txn(struct world *w, uint64_t token)
{
    static struct mu__txn txn;
    long armed = fault_countdown;
    struct mu__packed packed;
    struct mu__buf *buf;
    mu_value *content;

    fault_countdown = -1;
    txn = (struct mu__txn){
        .changes =
            {{MU_KV_INCREMENT, 0, mu__view_str("t/x"), {"", 0}, 1},
             {MU_KV_PUT, MU_KV_LEASE, mu__view_str("t/l"), {"x", 1}, 0},
             {MU_KV_PUT, 0, mu__view_str("t/o"), {"a value that is longer", 22}, 0},
             {MU_KV_DELETE, 0, mu__view_str("t/gone"), {"", 0}, 0},
             {MU_KV_INCREMENT, 0, mu__view_str("t/y"), {"", 0}, 1}},
        .changes_count = 5,
    };
    content = mu__txn_write(&txn);
    buf = mu__pack_value(content, &packed);
    assert_non_null(buf);
    fault_countdown = armed;
    TELL(w, KEY_TXN, key_txn, .token = token, .done = 10, .content = packed);
    armed = fault_countdown;
    fault_countdown = -1;
    mu__buf_unref(buf);
    mu_value_free(content);
    fault_countdown = armed;
}

/* All of a transaction is there, or nothing. */
static void expect_whole(struct world *w)
{
    bool done = w->answered[16];

    TELL(w, KEY_INCREMENT, key_increment, .token = 32, .done = 10, KEY("t/x"), .by = 0);
    TELL(w, KEY_INCREMENT, key_increment, .token = 33, .done = 10, KEY("t/y"), .by = 0);
    TELL(w, KEY_GET, key_get, .token = 34, KEY("t/l"));
    TELL(w, KEY_GET, key_get, .token = 35, KEY("t/o"));
    assert_true(w->answered[32] && w->answered[33] && w->answered[35]);
    assert_int_equal(w->numbers[32], w->numbers[33]);
    assert_true(!done || w->numbers[32] == 1);
    assert_int_equal(w->answered[34], w->numbers[32] == 1);
    assert_int_equal(w->sizes[35], w->numbers[32] == 1 ? 22 : 1);
}

/* Every way that a key can go. Increments have tokens of their own: 11, 12, 13. */
static void use(struct world *w)
{
    TELL(w, KEY_GET, key_get, .token = 2, KEY("z"), .wait = true);
    TELL(w, KEY_WATCH, key_watch, .token = 3, KEY("a"), .below = true);
    TELL(w, KEY_WATCH, key_watch, .token = 4, KEY("n"));
    TELL(w, KEY_PUT, key_put, .token = 10, .done = 10, KEY("a/b"),
         .value = {"some value that is long", 23}, .flags = MU__PUT_LEASE);
    TELL(w, KEY_INCREMENT, key_increment, .token = 11, .done = 10, KEY("n"), .by = 1);
    TELL(w, KEY_INCREMENT, key_increment, .token = 12, .done = 10, KEY("n"), .by = 1);
    TELL(w, KEY_LIST, key_list, .token = 5, KEY(""));
    TELL(w, KEY_WATCH, key_watch, .token = 6, KEY(""), .below = true);
    TELL(w, KEY_PUT, key_put, .token = 14, .done = 10, KEY("z"), .value = {"x", 1});
    TELL(w, KEY_GET, key_get, .token = 7, KEY("y"));
    TELL(w, KEY_DELETE, key_delete, .token = 15, .done = 10, KEY("a"));
    TELL(w, KEY_UNWATCH, key_unwatch, .token = 6);
    TELL(w, KEY_INCREMENT, key_increment, .token = 13, .done = 10, KEY("n"), .by = 1);
    TELL(w, KEY_PUT, key_put, .token = 17, .done = 10, KEY("t/o"), .value = {"x", 1},
         .flags = MU__PUT_LEASE);
    tell_txn(w, 16);
}

/* Now there is memory. What was answered counts; asked again, each of the three counts
 * once, unless it was refused. */
static void expect_fine(struct world *w)
{
    for (int i = 0; i < 4; i++) {
        w->bare.now_ms += 1100;
        for (int k = 0; k < 3; k++)
            mu__kernel_turn(w->kernel);
    }
    mu__kernel_node_down(w->kernel, NODE, "cut", false);
    mu__kernel_node_up(w->kernel, NODE, "worker", 0, 99, "tcp://w:1");
    w->registered = false;
    TELL(w, TASK_REGISTER, task_register, .token = 20);
    assert_true(w->registered);
    for (uint64_t token = 11; token <= 13; token++)
        TELL(w, KEY_INCREMENT, key_increment, .token = token, .done = 10, KEY("n"),
             .by = 1);
    TELL(w, KEY_INCREMENT, key_increment, .token = 30, .done = 10, KEY("n"), .by = 0);
    assert_true(w->answered[30]);
    if (w->answered[17])
        expect_whole(w);
    assert_int_equal(w->numbers[30], w->answered[11] + w->answered[12] + w->answered[13]);
    if (!w->answered[14])
        return;
    TELL(w, KEY_GET, key_get, .token = 31, KEY("z"));
    assert_true(w->answered[31] && w->sizes[31] == 1);
}

static void check_every_fault(const struct mu__store_kind *kind)
{
    static struct file file;
    bool failed = true;
    long n;

    for (n = 0; failed; n++) {
        struct world w;
        bool whole;

        file.base = (struct mu__storage){&file_ops, "oom"};
        file.size = 0;
        fault_arm(n);
        whole = begin(&w, kind, &file);
        if (whole) {
            meet(&w);
            use(&w);
        }
        failed = fault_disarm();
        if (whole && (w.registered || !failed))
            expect_fine(&w);
        mu__kernel_free(w.kernel);
        assert_true(n < FAULTS_MAX);
    }
    assert_true(n > 60);
}

TEST(test_memory_store)
{
    check_every_fault(&mu__store_memory);
}

TEST(test_journal_store)
{
    check_every_fault(&mu__store_journal);
}

/* ---- The structures below ---- */

static int put(struct mu__key_values *kv, const char *key, const char *value,
               uint64_t owner)
{
    return mu__key_values_put(kv,
                              &(struct mu__key_value){.revision = 1,
                                                      .owner = owner,
                                                      .key = mu__view_str(key),
                                                      .value = mu__view_str(value)},
                              NULL);
}

/* A put that fails has changed nothing. */
static void try_put(struct mu__key_values *kv, const char *key, const char *value,
                    uint64_t owner)
{
    struct mu__key_value before = {.owner = 0};
    struct mu__key_value after = {.owner = 0};
    uint64_t count = mu__key_values_count(kv);
    uint64_t bytes = mu__key_values_bytes(kv);
    bool there = mu__key_values_find(kv, mu__view_str(key), &before);
    int rv = put(kv, key, value, owner);
    bool is_there = mu__key_values_find(kv, mu__view_str(key), &after);

    if (rv == 0) {
        assert_true(is_there && mu__view_is(after.value, value));
        assert_int_equal(after.owner, owner);
        return;
    }
    assert_int_equal(rv, -MU_ENOMEM);
    assert_int_equal(is_there, there);
    assert_int_equal(after.owner, before.owner);
    assert_int_equal(after.value.size, before.value.size);
    assert_int_equal(mu__key_values_count(kv), count);
    assert_int_equal(mu__key_values_bytes(kv), bytes);
}

TEST(test_key_values)
{
    static const char large[] = "a value that does not fit where a small one was";
    bool failed = true;
    long n;

    for (n = 0; failed; n++) {
        struct mu__key_values *kv;
        char key[8] = "k0";

        fault_arm(n);
        kv = mu__key_values_new(1, 0, 0);
        for (int i = 0; kv != NULL && i < 20; i++) {
            key[1] = (char)('0' + i);
            try_put(kv, key, "x", (uint64_t)i);
            try_put(kv, key, large, (uint64_t)(i / 2 * 3));
        }
        failed = fault_disarm();
        mu__key_values_free(kv);
        assert_true(n < FAULTS_MAX);
    }
    assert_true(n > 40);
}

TEST(test_asked)
{
    bool failed = true;
    long n;

    for (n = 0; failed; n++) {
        struct mu__results *asked;
        struct mu__results_agent *agent;

        fault_arm(n);
        asked = mu__results_new();
        for (uint64_t i = 1; asked != NULL && i <= 20; i++) {
            agent = mu__results_agent(asked, 1 + i % 2);
            if (agent == NULL || mu__results_reserve(agent, NULL) != 0)
                continue;
            mu__results_add(agent, &(struct mu__request_result){.token = i});
        }
        failed = fault_disarm();
        assert_true(failed || mu__results_count(asked) == 20);
        mu__results_free(asked);
        assert_true(n < FAULTS_MAX);
    }
    assert_true(n > 6);
}

TEST_PROGRAM()
