/* Snapshots of a partition at its primary: a prefix of its records, copied before it
 * changes, until it was read. */
#include "actors/ps/store_snapshots.h"
#include "actors/ps/stream.h"
#include "actors/ps/windows.h"
#include "tests/support/replicas.h"

enum { RUNS = 7 }; /* the origin of their effects */

static struct mu__snapshot_opened opened;
static char refusal[128];
static uint8_t windows[4096];
static uint32_t windows_size;

static void on_snapshot_opened(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)ctx;
    (void)state;
    opened = *(const struct mu__snapshot_opened *)mu__body(msg);
    (void)snprintf(refusal, sizeof refusal, "%.*s", (int)opened.message.size,
                   (const char *)opened.message.data);
    (void)add_answer(msg->kind, opened.token, opened.code);
}

static void on_any_data(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__var_data *body = mu__body(msg);

    if (body->data.size <= sizeof fixture->answers[0].data) {
        on_data(ctx, state, msg);
        return;
    }
    (void)add_answer(msg->kind, body->token, body->code);
    assert_true(body->data.size <= sizeof windows);
    windows_size = body->data.size;
    memcpy(windows, body->data.data, body->data.size);
}

static const struct mu__handler snapshot_handlers[] = {
    {MU__VAR_OPENED, on_opened},   {MU__VAR_DATA, on_any_data},
    {MU__VAR_WRITTEN, on_written}, {MU__EFFECT_WRITTEN, on_effect_written},
    {MU__SERVES, on_serves},       {MU__SNAPSHOT_OPENED, on_snapshot_opened},
};

static const struct mu__behavior snapshot_client = {
    .name = "client",
    .handlers = snapshot_handlers,
    .handlers_count = sizeof snapshot_handlers / sizeof snapshot_handlers[0],
};

static int spawn_snapshot_client(struct net_process *p)
{
    return mu__spawn(p->kernel, &snapshot_client, MU__VARIABLES, NULL, NULL);
}

/* One copy of a small shard fits, and two snapshots. */
static const struct mu__store_limits tight = {.bytes_max = 1 << 24,
                                              .variables_max = 16,
                                              .waiting_max = 16,
                                              .transfers_node_max = 4,
                                              .copies_max = 8 * ELEMENTS + 24,
                                              .snapshots_max = 2};

static int spawn_tight_server(struct net_process *p)
{
    const struct mu__ps_config config = {.index = p->index,
                                         .incarnation = p->incarnation,
                                         .leader = "chief",
                                         .limits = &tight};

    return mu__spawn(p->kernel, &mu__ps, MU__PS, &config, NULL);
}

static int set_up_snapshots(void **state)
{
    static struct fixture f;

    memset(&f, 0, sizeof f);
    fixture = &f;
    net_init(&f.net, 1);
    for (uint32_t i = 0; i < SERVERS; i++)
        f.servers[i] =
            net_add(&f.net, "ps", i, i == 2 ? spawn_tight_server : spawn_server);
    f.client = net_add(&f.net, "worker", 0, spawn_snapshot_client);
    f.chief = net_add(&f.net, "chief", 0, spawn_chief);
    for (size_t i = 0; i < f.net.processes_count; i++)
        net_start(&f.net.processes[i]);
    net_settle(&f.net);
    *state = &f;
    return 0;
}

static int tear_down_snapshots(void **state)
{
    net_done(&((struct fixture *)*state)->net);
    return 0;
}

/* ---- What is said ---- */

static uint64_t post_snapshot(struct fixture *f, struct net_process *server,
                              const uint64_t *ids, size_t count)
{
    uint8_t bytes[4 * MU__SNAPSHOT_ID_BYTES];
    struct mu__snapshot_open body = {
        .token = ++f->token, .partition = PARTITION, .generation = f->generation};
    uint8_t *at = bytes;

    for (size_t i = 0; i < count; i++)
        at = mu__snapshot_id_put(at, ids[i]);
    body.ids = (struct mu__view){bytes, (uint32_t)(at - bytes)};
    say(f->client, MU__VARIABLES, server, MU__SNAPSHOT_OPEN, &body);
    net_settle(&f->net);
    return body.token;
}

static uint64_t open_snapshot(struct fixture *f, struct net_process *server)
{
    uint64_t token = post_snapshot(f, server, &f->variable, 1);

    assert_int_equal(need_answer(f, token)->code, 0);
    return token;
}

static const struct answer *read_snapshot(struct fixture *f, struct net_process *server,
                                          uint64_t snapshot, uint64_t variable,
                                          uint32_t size)
{
    const struct mu__snapshot_read body = {.token = ++f->token,
                                           .snapshot = snapshot,
                                           .variable = variable,
                                           .size = size,
                                           .partition = PARTITION,
                                           .generation = f->generation};

    say(f->client, MU__VARIABLES, server, MU__SNAPSHOT_READ, &body);
    net_settle(&f->net);
    return need_answer(f, body.token);
}

static void assert_snapshot(struct fixture *f, struct net_process *server,
                            uint64_t snapshot, int64_t expected)
{
    const struct answer *answer =
        read_snapshot(f, server, snapshot, f->variable, 8 * ELEMENTS);

    assert_int_equal(answer->code, 0);
    for (size_t i = 0; i < ELEMENTS; i++)
        assert_int_equal(answer->data[i], expected);
}

static void close_snapshot(struct fixture *f, struct net_process *server,
                           uint64_t snapshot)
{
    const struct mu__snapshot_close body = {
        .snapshot = snapshot, .partition = PARTITION, .generation = f->generation};

    say(f->client, MU__VARIABLES, server, MU__SNAPSHOT_CLOSE, &body);
    net_settle(&f->net);
}

static void open_another(struct fixture *f, struct net_process *server, const char *name)
{
    struct mu__var_open open = small;

    open.name = mu__view_str(name);
    open_as(f, server, &open);
}

/* ---- Stories ---- */

TEST_ON(test_a_snapshot_shows_no_later_write, struct fixture *f, set_up_snapshots,
        tear_down_snapshots)
{
    uint64_t snapshot;

    begin_two(f);
    (void)add_once(f, f->servers[0]);
    snapshot = open_snapshot(f, f->servers[0]);
    assert_int_equal(opened.record, 3);
    for (int i = 0; i < 3; i++)
        (void)add_once(f, f->servers[0]);
    assert_snapshot(f, f->servers[0], snapshot, 1);
    assert_content(f, f->servers[0], 4);
}

/* All that change a shard: an assign, zeros, an effect of a run, its removal. */
TEST_ON(test_each_change_is_kept_back, struct fixture *f, set_up_snapshots,
        tear_down_snapshots)
{
    static const int64_t nines[ELEMENTS] = {9, 9, 9, 9};
    const uint32_t operations[] = {MU__WRITE_ASSIGN, MU__WRITE_ZERO};
    struct mu__var_open anew = small;
    uint64_t snapshot;

    begin_two(f);
    fence(f, f->servers[0], RUNS);
    for (size_t i = 0; i < 2; i++) {
        struct mu__var_write write = write_of(f, 0);

        write.operation = operations[i];
        write.effect = write.origin = 0;
        write.data =
            i == 0 ? (struct mu__view){nines, sizeof nines} : (struct mu__view){NULL, 0};
        snapshot = open_snapshot(f, f->servers[0]);
        say(f->client, MU__VARIABLES, f->servers[0], MU__VAR_WRITE, &write);
        net_settle(&f->net);
        assert_snapshot(f, f->servers[0], snapshot, i == 0 ? 0 : 9);
    }
    snapshot = open_snapshot(f, f->servers[0]);
    (void)post_effect(f, f->servers[0], RUNS, 1);
    assert_snapshot(f, f->servers[0], snapshot, 0);
    snapshot = open_snapshot(f, f->servers[0]);
    anew.replaces = f->variable;
    say_open(f, f->servers[0], anew);
    net_settle(&f->net);
    assert_snapshot(f, f->servers[0], snapshot, 1);
}

static void add_to_both(struct fixture *f, const uint64_t ids[2])
{
    for (int i = 0; i < 2; i++) {
        f->variable = ids[i];
        (void)add_once(f, f->servers[0]);
    }
}

/* Two shards of a partition are of one record. */
TEST_ON(test_shards_of_a_partition_are_of_one_record, struct fixture *f, set_up_snapshots,
        tear_down_snapshots)
{
    uint64_t ids[2];
    uint64_t snapshot;

    begin_two(f);
    ids[0] = f->variable;
    open_another(f, f->servers[0], "v");
    ids[1] = f->variable;
    add_to_both(f, ids);
    add_to_both(f, ids);
    snapshot = post_snapshot(f, f->servers[0], ids, 2);
    add_to_both(f, ids);
    assert_snapshot(f, f->servers[0], snapshot, 2);
    add_to_both(f, ids);
    f->variable = ids[0];
    assert_snapshot(f, f->servers[0], snapshot, 2);
}

TEST_ON(test_a_snapshot_shows_what_is_acknowledged, struct fixture *f, set_up_snapshots,
        tear_down_snapshots)
{
    uint64_t snapshot;

    begin_two(f);
    f->servers[1]->deaf = true;
    (void)add_once(f, f->servers[0]);
    snapshot = post_snapshot(f, f->servers[0], &f->variable, 1);
    assert_null(answer_to(f, snapshot));
    change_view(f, f->servers[0], NULL, NULL);
    assert_int_equal(need_answer(f, snapshot)->code, 0);
    assert_snapshot(f, f->servers[0], snapshot, 1);
}

/* A new primary knows nothing of it, nor does the former one after a new generation. */
TEST_ON(test_a_snapshot_ends_with_its_generation, struct fixture *f, set_up_snapshots,
        tear_down_snapshots)
{
    uint64_t snapshot;

    begin_two(f);
    (void)add_once(f, f->servers[0]);
    snapshot = open_snapshot(f, f->servers[0]);
    net_crash(f->servers[0]);
    change_view(f, f->servers[1], NULL, NULL);
    assert_int_equal(
        read_snapshot(f, f->servers[1], snapshot, f->variable, 8 * ELEMENTS)->code,
        MU_EABORTED);
    snapshot = open_snapshot(f, f->servers[1]);
    assert_snapshot(f, f->servers[1], snapshot, 1);
    snapshot = open_snapshot(f, f->servers[1]);
    change_view(f, f->servers[1], NULL, f->servers[2]);
    assert_int_equal(
        read_snapshot(f, f->servers[1], snapshot, f->variable, 8 * ELEMENTS)->code,
        MU_EABORTED);
}

TEST_ON(test_what_was_read_is_not_there_any_more, struct fixture *f, set_up_snapshots,
        tear_down_snapshots)
{
    const struct answer *answer;
    uint64_t snapshot;

    begin_two(f);
    snapshot = open_snapshot(f, f->servers[0]);
    assert_snapshot(f, f->servers[0], snapshot, 0);
    answer = read_snapshot(f, f->servers[0], snapshot, f->variable, 8 * ELEMENTS);
    assert_int_equal(answer->code, MU_EABORTED);
    snapshot = open_snapshot(f, f->servers[0]);
    net_link_down(f->servers[0], f->client);
    net_link_up(f->servers[0], f->client);
    answer = read_snapshot(f, f->servers[0], snapshot, f->variable, 8 * ELEMENTS);
    assert_int_equal(answer->code, MU_EABORTED);
}

/* Of two snapshots that need a copy; the write is applied. */
TEST_ON(test_without_memory_the_snapshot_fails, struct fixture *f, set_up_snapshots,
        tear_down_snapshots)
{
    uint64_t snapshots[2];

    change_view(f, f->servers[2], NULL, NULL);
    open_variable(f, f->servers[2]);
    snapshots[0] = open_snapshot(f, f->servers[2]);
    snapshots[1] = open_snapshot(f, f->servers[2]);
    assert_int_equal(need_answer(f, add_once(f, f->servers[2]))->code, 0);
    assert_content(f, f->servers[2], 1);
    assert_snapshot(f, f->servers[2], snapshots[0], 0);
    assert_int_equal(
        read_snapshot(f, f->servers[2], snapshots[1], f->variable, 8 * ELEMENTS)->code,
        MU_EEXHAUSTED);
    snapshots[0] = open_snapshot(f, f->servers[2]);
    assert_snapshot(f, f->servers[2], snapshots[0], 1);
}

/* Without a bound of their own copies have that of contents. */
TEST_ON(test_copies_are_bounded_like_contents, struct fixture *f, set_up_snapshots,
        tear_down_snapshots)
{
    static const struct mu__snapshot_key key = {.number = 1};
    const struct mu__store_limits limits = {.bytes_max = 32, .snapshots_max = 9};
    struct mu__variable_store *store = mu__store_new(&limits, 1);

    assert_int_equal(mu__snapshot_open(store, &key,
                                       &(struct mu__snapshot_content){
                                           .extra = calloc(1, 33), .extra_bytes = 33},
                                       &f->error),
                     -MU_EEXHAUSTED);
    assert_string_equal(f->error.message, "snapshots have copies of 0 bytes, at most 32");
    assert_int_equal(mu__snapshot_open(store, &key,
                                       &(struct mu__snapshot_content){
                                           .extra = calloc(1, 32), .extra_bytes = 32},
                                       &f->error),
                     0);
    mu__store_free(store);
}

TEST_ON(test_open_snapshots_are_bounded, struct fixture *f, set_up_snapshots,
        tear_down_snapshots)
{
    uint64_t snapshot;

    change_view(f, f->servers[2], NULL, NULL);
    open_variable(f, f->servers[2]);
    snapshot = open_snapshot(f, f->servers[2]);
    (void)open_snapshot(f, f->servers[2]);
    assert_int_equal(
        need_answer(f, post_snapshot(f, f->servers[2], &f->variable, 1))->code,
        MU_EEXHAUSTED);
    assert_string_equal(refusal, "2 snapshots are open, at most 2");
    close_snapshot(f, f->servers[2], snapshot);
    snapshot = open_snapshot(f, f->servers[2]);
    assert_snapshot(f, f->servers[2], snapshot, 0);
}

/* Half of it is read from time to time: it goes on. */
TEST_ON(test_a_snapshot_that_nobody_reads_ends, struct fixture *f, set_up_snapshots,
        tear_down_snapshots)
{
    uint64_t left;
    uint64_t used;

    change_view(f, f->servers[2], NULL, NULL);
    open_variable(f, f->servers[2]);
    left = open_snapshot(f, f->servers[2]);
    used = open_snapshot(f, f->servers[2]);
    net_run_for(&f->net, SNAPSHOT_IDLE_MS);
    assert_int_equal(
        read_snapshot(f, f->servers[2], used, f->variable, 4 * ELEMENTS)->code, 0);
    net_run_for(&f->net, SNAPSHOT_IDLE_MS);
    assert_int_equal(
        read_snapshot(f, f->servers[2], left, f->variable, 4 * ELEMENTS)->code,
        MU_EABORTED);
    assert_int_equal(
        read_snapshot(f, f->servers[2], used, f->variable, 4 * ELEMENTS)->code, 0);
    (void)open_snapshot(f, f->servers[2]);
    (void)open_snapshot(f, f->servers[2]);
}

TEST_ON(test_an_unknown_shard_is_refused, struct fixture *f, set_up_snapshots,
        tear_down_snapshots)
{
    uint64_t ids[2] = {77, 78};
    uint64_t token;

    begin_two(f);
    token = post_snapshot(f, f->servers[0], ids, 1);
    assert_int_equal(need_answer(f, token)->code, MU_ENOTFOUND);
    ids[0] = ids[1] = f->variable;
    token = post_snapshot(f, f->servers[0], ids, 2);
    assert_int_equal(need_answer(f, token)->code, MU_EINVALID);
}

/* ---- Windows ---- */

static void read_windows(struct fixture *f, struct net_process *server)
{
    uint64_t snapshot = open_snapshot(f, server);

    assert_true(opened.windows > sizeof fixture->answers[0].data);
    assert_int_equal(
        read_snapshot(f, server, snapshot, 0, (uint32_t)opened.windows)->code, 0);
    assert_int_equal(windows_size, opened.windows);
}

static void put_windows(struct fixture *f, struct net_process *server, int expected)
{
    const struct mu__windows_put body = {.token = ++f->token,
                                         .windows = {windows, windows_size},
                                         .partition = PARTITION,
                                         .generation = f->generation};

    say(f->client, MU__VARIABLES, server, MU__WINDOWS_PUT, &body);
    net_settle(&f->net);
    assert_int_equal(need_answer(f, body.token)->code, expected);
}

/* A partition whose servers are lost begins empty, and gets back what was applied. */
static void begin_again(struct fixture *f, struct net_process *server)
{
    set_view(f, server,
             (struct mu__partition_view){.number = ++f->number,
                                         .primary = replica_of(server)});
    net_settle(&f->net);
    open_variable(f, server);
}

TEST_ON(test_what_is_given_back_counts_once, struct fixture *f, set_up_snapshots,
        tear_down_snapshots)
{
    begin_two(f);
    fence(f, f->servers[0], RUNS);
    (void)add_once(f, f->servers[0]);
    (void)post_effect(f, f->servers[0], RUNS, 1);
    read_windows(f, f->servers[0]);
    net_crash(f->servers[0]);
    net_crash(f->servers[1]);
    begin_again(f, f->servers[2]);
    put_windows(f, f->servers[2], 0);
    fence(f, f->servers[2], RUNS);
    assert_int_equal(need_answer(f, post_effect(f, f->servers[2], RUNS, 1))->code, 0);
    (void)post_write(f, f->servers[2], f->effect);
    assert_content(f, f->servers[2], 0);
    (void)post_effect(f, f->servers[2], RUNS, 2);
    (void)add_once(f, f->servers[2]);
    assert_content(f, f->servers[2], 2);
}

/* Effects of another supervisor are other ones, whatever their numbers. */
TEST_ON(test_windows_of_another_job_count_nothing, struct fixture *f, set_up_snapshots,
        tear_down_snapshots)
{
    begin_two(f);
    fence(f, f->servers[0], RUNS);
    (void)post_effect(f, f->servers[0], RUNS, 1);
    read_windows(f, f->servers[0]);
    net_crash(f->servers[0]);
    net_crash(f->servers[1]);
    begin_again(f, f->servers[2]);
    fence(f, f->servers[2], RUNS + 1);
    put_windows(f, f->servers[2], 0);
    (void)post_effect(f, f->servers[2], RUNS + 1, 1);
    assert_content(f, f->servers[2], 1);
    fence(f, f->servers[2], RUNS + 2);
    (void)post_effect(f, f->servers[2], RUNS + 2, 1);
    assert_content(f, f->servers[2], 2);
}

/* What was applied since the snapshot stays known; the backup knows all of it, too. */
TEST_ON(test_windows_are_added_on_both_replicas, struct fixture *f, set_up_snapshots,
        tear_down_snapshots)
{
    begin_two(f);
    fence(f, f->servers[0], RUNS);
    (void)post_effect(f, f->servers[0], RUNS, 3);
    read_windows(f, f->servers[0]);
    (void)post_effect(f, f->servers[0], RUNS, 1);
    put_windows(f, f->servers[0], 0);
    net_crash(f->servers[0]);
    change_view(f, f->servers[1], NULL, NULL);
    fence(f, f->servers[1], RUNS);
    (void)post_effect(f, f->servers[1], RUNS, 1);
    (void)post_effect(f, f->servers[1], RUNS, 3);
    assert_content(f, f->servers[1], 2);
    (void)post_effect(f, f->servers[1], RUNS, 2);
    assert_content(f, f->servers[1], 3);
}

TEST_ON(test_malformed_windows_are_refused, struct fixture *f, set_up_snapshots,
        tear_down_snapshots)
{
    begin_two(f);
    memset(windows, 0xff, sizeof windows);
    windows_size = 64;
    put_windows(f, f->servers[0], MU_EINVALID);
    memset(windows, 0, sizeof windows);
    windows[8] = 1;
    windows[24] = 200;
    windows_size = 40;
    put_windows(f, f->servers[0], MU_EINVALID);
    assert_content(f, f->servers[0], 0);
}

TEST_PROGRAM()
