/* Where the client of the parameter servers sends what it is asked for: partitions that
 * get another server or another generation while calls are under way, and what servers
 * and others say of them. */
#include "actors/ps/store_snapshots.h"
#include "tests/support/packed_rule.h"
#include "tests/support/test.h"
#include "tests/support/var_net.h"

/* ---- Calls while partitions move ---- */

enum { GRACE_MS = 100 }; /* until the chief has given up a server that is gone */

/* What happens to server 0, on which shard 0 is, and the backup of another shard. */
static void crash(struct var_net *f)
{
    net_crash(f->servers[0]);
}

static void restart(struct var_net *f)
{
    net_crash(f->servers[0]);
    net_start(f->servers[0]);
}

static void cut(struct var_net *f)
{
    net_link_down(f->alice, f->servers[0]);
    net_link_up(f->alice, f->servers[0]);
}

/* It was gone before, and is filled: its primaries begin another generation. */
static void come_back(struct var_net *f)
{
    net_start(f->servers[0]);
}

static const struct fate {
    void (*before)(struct var_net *f);
    void (*happens)(struct var_net *f);
} fates[] = {{NULL, crash}, {NULL, restart}, {NULL, cut}, {crash, come_back}};

static const int operations[] = {MU__VARIABLE_OPEN, MU__VARIABLE_READ,
                                 MU__VARIABLE_ASSIGN, MU__VARIABLE_ADD,
                                 MU__VARIABLE_APPLY};

/* Contents of the variable: before, what is written, and both added. */
struct contents {
    float *first;
    float *written;
    float *sum;
    float *read;
};

static const float *expected_of(const struct contents *c, int operation)
{
    if (operation == MU__VARIABLE_ADD || operation == MU__VARIABLE_APPLY)
        return c->sum;
    return operation == MU__VARIABLE_READ ? c->first : c->written;
}

static void begin(struct var_net *f, struct var_request *r, int operation,
                  const struct contents *c)
{
    if (operation == MU__VARIABLE_OPEN)
        *r = var_request_of(&f->net, "v", var_large);
    else
        *r = var_opened(f->alice, "v", var_large, c->first);
    var_aim(r);
    r->call.source = c->written;
    r->call.target = c->read;
    r->call.rule = packed_momentum(-1, 0.5);
    var_post(f->alice, r, operation, VAR_NEVER);
}

/* False when the call is over before it happens. */
static bool check_call(const struct contents *c, const struct fate *fate, int operation,
                       int events)
{
    struct var_request r;
    struct var_net *f;
    void *state;
    bool in_time;

    assert_int_equal(var_set_up_copies(&state), 0);
    f = state;
    if (fate->before != NULL)
        fate->before(f);
    net_run_for(&f->net, GRACE_MS);
    begin(f, &r, operation, c);
    for (int i = 0; i < events && !r.done; i++)
        (void)net_step(&f->net);
    in_time = !r.done;
    fate->happens(f);
    net_run_for(&f->net, GRACE_MS);
    if (!r.done || r.call.call.code != 0)
        fail_msg("operation %d, fate %d, %d events: %s", operation, (int)(fate - fates),
                 events, r.done ? r.call.call.error.message : "no end");
    if (operation == MU__VARIABLE_READ)
        assert_memory_equal(c->read, c->first, VAR_LARGE_COUNT * sizeof *c->read);
    var_assert_reads(f->alice, &r, expected_of(c, operation));
    assert_int_equal(var_tear_down(&state), 0);
    return in_time;
}

/* Whenever it happens in a call of several pieces: the call goes on, and counts once. */
TEST(test_calls_go_on)
{
    const struct contents c = {
        var_numbers(VAR_LARGE_COUNT, 1), var_numbers(VAR_LARGE_COUNT, 7),
        var_numbers(VAR_LARGE_COUNT, 0), var_numbers(VAR_LARGE_COUNT, 0)};
    int moments = 0;

    for (size_t i = 0; i < VAR_LARGE_COUNT; i++)
        c.sum[i] = c.first[i] + c.written[i];
    for (size_t o = 0; o < sizeof operations / sizeof operations[0]; o++)
        for (size_t i = 0; i < sizeof fates / sizeof fates[0]; i++)
            for (int events = 0; check_call(&c, &fates[i], operations[o], events);
                 events += 1 + events / 4)
                moments++;
    assert_true(moments > 5 * 4 * 5);
    free(c.first);
    free(c.written);
    free(c.sum);
    free(c.read);
}

/* ---- What is said of partitions ---- */

/* `to` hears from an actor of `from` that it serves shard 0 of "v". */
static void say_serves(struct net_process *from, uint32_t actor, struct net_process *to,
                       uint64_t generation)
{
    struct mu__msg *msg = mu__msg_heap(MU__SERVES, sizeof(struct mu__serves));
    const struct mu__numbered entry = {mu__partition_of(mu__view_str("v"), 0),
                                       mu__generation_of(generation)};
    uint8_t bytes[MU__NUMBERED_BYTES];

    assert_non_null(msg);
    (void)mu__numbered_put(bytes, &entry);
    ((struct mu__serves *)mu__body(msg))->partitions =
        (struct mu__view){bytes, sizeof bytes};
    msg->from = (mu__pid){to->numbers[from - from->net->processes], actor};
    msg->to.actor = MU__VARIABLES;
    net_deliver(to, msg);
}

static int read_code(struct var_net *f, struct var_request *r, int64_t timeout_ms)
{
    float data[4];

    r->call.target = data;
    return var_ask(f->alice, r, MU__VARIABLE_READ, timeout_ms);
}

TEST_ON(test_who_is_not_believed, struct var_net *f, var_set_up_copies, var_tear_down)
{
    struct var_request r = var_opened(f->alice, "v", var_four, var_ones);

    var_aim(&r);
    say_serves(f->servers[1], MU__PS, f->alice, 0); /* older; */
    say_serves(f->servers[1], MU__PS, f->alice, 1);
    say_serves(f->bob, MU__PS, f->alice, 100);               /* no server; */
    say_serves(f->servers[1], MU__VARIABLES, f->alice, 100); /* another actor of one */
    assert_int_equal(read_code(f, &r, 1000), 0);

    say_serves(f->servers[1], MU__PS, f->alice, 100);
    assert_int_equal(read_code(f, &r, 300), -MU_EDEADLINE);
    var_assert_fails(&r, -MU_EDEADLINE,
                     "variable v: read: /job:ps/task:1 (tcp://ps1:1) has not answered "
                     "for 0.3 s");
    say_serves(f->servers[0], MU__PS, f->alice, 101);
    say_serves(f->servers[1], MU__PS, f->alice, 100);
    assert_int_equal(read_code(f, &r, 300), -MU_EDEADLINE);
    assert_string_equal(r.call.call.error.task, "/job:ps/task:0");
}

/* What is told again, and of a link that was down: the same generation will do. */
TEST_ON(test_told_again, struct var_net *f, var_set_up_copies, var_tear_down)
{
    struct var_request r = var_opened(f->alice, "v", var_four, var_ones);
    uint64_t reads = f->net.counts[MU__VAR_READ];

    var_aim(&r);
    var_begin(f->alice, &r, MU__VARIABLE_VERSION, 0);
    net_link_down(f->bob, f->servers[0]);
    net_link_up(f->bob, f->servers[0]);
    net_settle(&f->net);
    assert_true(r.done);
    assert_int_equal(f->net.counts[MU__VAR_READ] - reads, 1);
    net_link_down(f->alice, f->servers[0]);
    var_begin(f->alice, &r, MU__VARIABLE_VERSION, 0);
    net_link_up(f->alice, f->servers[0]);
    net_settle(&f->net);
    assert_true(r.done);
    assert_int_equal(r.call.call.code, 0);
}

/* ---- Partitions that nobody serves ---- */

static void stop_all(struct var_net *f)
{
    for (size_t i = 0; i < f->net.processes_count; i++)
        if (f->net.processes[i].kernel != NULL)
            net_crash(&f->net.processes[i]);
}

/* There is no chief, and a server is there. */
TEST_ON(test_not_placed, struct var_net *f, var_set_up_copies, var_tear_down)
{
    struct var_request r = var_request_of(&f->net, "v", var_four);

    stop_all(f);
    net_start(f->servers[0]);
    net_start(f->alice);
    net_settle(&f->net);
    var_aim(&r);
    (void)var_ask(f->alice, &r, MU__VARIABLE_OPEN, 300);
    var_assert_fails(&r, -MU_EDEADLINE,
                     "variable v: open: /job:ps/task:0 (tcp://ps0:1) has not served its "
                     "partition for 0.3 s (the chief has not placed it)");
    assert_string_equal(r.call.call.error.task, "/job:ps/task:0");
}

/* It was served, and its server has come back empty while there is no chief. */
TEST_ON(test_not_served_any_more, struct var_net *f, var_set_up_copies, var_tear_down)
{
    struct var_request r = var_opened(f->alice, "v", var_four, var_ones);

    var_aim(&r);
    for (size_t i = 0; i < f->net.processes_count; i++)
        if (&f->net.processes[i] != f->alice)
            net_crash(&f->net.processes[i]);
    net_start(f->servers[0]);
    net_settle(&f->net);
    assert_int_equal(read_code(f, &r, 300), -MU_EDEADLINE);
    var_assert_fails(&r, -MU_EDEADLINE,
                     "variable v: read: /job:ps/task:0 (tcp://ps0:1) has not served its "
                     "partition for 0.3 s");
}

/* The snapshot has gone with the life of its client, or of its server: nobody is told
 * that it is not needed. */
TEST_ON(test_closed_without_a_server, struct var_net *f, var_set_up_copies, var_tear_down)
{
    struct var_request r = var_request_of(&f->net, "v", var_four);
    struct mu__snapshot_call snapshot = {
        .partition = mu__partition_of(mu__view_str("v"), 0), .number = 1};
    struct mu__kernel_counters counters;

    stop_all(f);
    net_start(f->alice);
    var_aim(&r);
    r.call.snapshot = &snapshot;
    assert_int_equal(var_ask(f->alice, &r, MU__VARIABLE_SNAPSHOT_CLOSE, VAR_NEVER), 0);
    mu__kernel_counters(f->alice->kernel, &counters);
    assert_int_equal(counters.dead_letters, 0);
}

/* A read of a snapshot asks for one piece after the other: what the program writes
 * meanwhile waits behind one of them at most. */
TEST_ON(test_one_piece_under_way, struct var_net *f, var_set_up, var_tear_down)
{
    enum { BYTES = 4 * sizeof(float), PIECE = 6, PIECES = 3 };
    static const float numbers[4] = {1, 2, 3, 4};
    struct var_request r = var_opened(f->alice, "v", var_four, numbers);
    uint8_t wanted[MU__SNAPSHOT_ID_BYTES];
    struct mu__snapshot_call snapshot = {.partition =
                                             mu__partition_of(mu__view_str("v"), 0),
                                         .bytes = {wanted, sizeof wanted}};
    float read[4] = {0};

    var_aim(&r);
    (void)mu__snapshot_id_put(wanted, r.ids[0]);
    r.call.snapshot = &snapshot;
    var_ask_ok(f->alice, &r, MU__VARIABLE_SNAPSHOT);
    snapshot.id = r.ids[0];
    snapshot.size = BYTES;
    snapshot.piece_bytes = PIECE;
    r.call.target = read;
    var_post(f->alice, &r, MU__VARIABLE_SNAPSHOT_READ, VAR_NEVER);
    for (uint64_t i = 1; i <= PIECES; i++) {
        net_run_to_frame(&f->net, MU__VAR_DATA);
        assert_int_equal(f->net.counts[MU__SNAPSHOT_READ], i);
        assert_false(r.done);
        assert_true(net_step(&f->net));
    }
    net_settle(&f->net);
    assert_true(r.done);
    assert_int_equal(r.call.call.code, 0);
    assert_memory_equal(read, numbers, BYTES);
}

TEST_PROGRAM()
