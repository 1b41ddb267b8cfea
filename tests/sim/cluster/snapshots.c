#include "tests/sim/cluster/snapshots.h"

#include "actors/ps/store_snapshots.h"
#include "actors/ps/windows.h"

#include <inttypes.h>
#include <string.h>

enum { TIMEOUT_MS = 3000, PAUSE_MAX_MS = 120, CLOSE_PERCENT = 5, PIECE_BYTES = 100 };

/* ---- What is asked ---- */

static struct cluster_call *ask_variable(struct cluster_snapshots *s, int operation,
                                         unsigned variable)
{
    const struct mu__variable_call call = {
        .call = {.operation = operation, .timeout_ms = TIMEOUT_MS},
        .name = s->counts->counted[variable].name,
        .shape = &s->counts->shape,
        .servers_count = s->counts->cluster->options.servers,
        .ids = s->ids[variable],
        .target = s->items[variable],
        .snapshot = operation == MU__VARIABLE_OPEN ? NULL : &s->asked,
    };

    return cluster_variable(s->task, &call);
}

static struct cluster_call *take_snapshot(struct cluster_snapshots *s)
{
    uint8_t *at = s->wanted;

    s->shard = (uint32_t)sim_between(&s->random, 0, s->counts->shape.shards - 1);
    for (unsigned i = 0; i < s->counts->count; i++)
        at = mu__snapshot_id_put(at, s->ids[i][s->shard]);
    s->asked = (struct mu__snapshot_call){
        .partition = cluster_counts_partition(s->counts, s->shard),
        .bytes = {s->wanted, (uint32_t)(at - s->wanted)}};
    memcpy(s->before, s->counts->counted, sizeof s->before);
    return ask_variable(s, MU__VARIABLE_SNAPSHOT, 0);
}

static uint64_t shard_bytes(const struct cluster_snapshots *s)
{
    uint64_t offset;
    uint64_t bytes;

    mu__shape_shard(&s->counts->shape, s->shard, &offset, &bytes);
    return bytes;
}

static struct cluster_call *read_part(struct cluster_snapshots *s)
{
    bool is_variable = s->part < s->counts->count;
    struct mu__variable_call call = {
        .call = {.operation = MU__VARIABLE_SNAPSHOT_READ, .timeout_ms = TIMEOUT_MS},
        .name = s->counts->counted[0].name,
        .shape = &s->counts->shape,
        .servers_count = s->counts->cluster->options.servers,
        .target = is_variable ? (void *)s->items[s->part] : s->windows,
        .snapshot = &s->asked,
    };

    s->asked.id = is_variable ? s->ids[s->part][s->shard] : 0;
    s->asked.piece_bytes = PIECE_BYTES;
    s->asked.size = (uint32_t)(is_variable ? shard_bytes(s) : s->windows_bytes);
    return cluster_variable(s->task, &call);
}

static struct cluster_call *close_snapshot(struct cluster_snapshots *s)
{
    s->reads = false;
    s->aborted++;
    return ask_variable(s, MU__VARIABLE_SNAPSHOT_CLOSE, 0);
}

/* ---- What must be ---- */

static uint64_t number_at(const uint8_t *at)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < 8; i++)
        number |= (uint64_t)at[i] << (8 * i);
    return number;
}

/* How many writes of programs the windows know. */
static uint64_t count_numbers(const struct cluster_snapshots *s)
{
    uint64_t count = 0;

    for (uint64_t at = 0, bytes; at < s->windows_bytes; at += bytes) {
        uint64_t base = number_at(s->windows + at + 16);

        bytes = mu__windows_entry_bytes(s->windows + at, s->windows_bytes - at);
        if (bytes == 0) {
            cluster_break(s->counts->cluster, "the windows of a snapshot are malformed");
            return 0;
        }
        if (number_at(s->windows + at) != 0)
            continue;
        count += base > 0 ? base - 1 : 0;
        for (uint64_t i = MU__WINDOW_HEAD_BYTES; i < bytes; i++)
            count += (uint64_t)__builtin_popcount(s->windows[at + i]);
    }
    return count;
}

static void break_snapshot(struct cluster_snapshots *s, const char *what, int64_t number)
{
    cluster_break(s->counts->cluster,
                  "a snapshot of partition %" PRIu32 " at record %" PRIu64
                  ": %s (%" PRId64 ")",
                  s->asked.partition, s->snapshot.record, what, number);
}

static void check_item(struct cluster_snapshots *s, uint64_t item, uint64_t numbers)
{
    int64_t sum = 0;

    for (unsigned i = 0; i < s->counts->count; i++) {
        int64_t value = s->items[i][item];

        sum += value;
        if (value < (int64_t)s->before[i].acknowledged)
            break_snapshot(s, "it lacks what was acknowledged before", value);
        if (value > (int64_t)s->after[i].begun)
            break_snapshot(s, "it has what was written later", value);
        if (i > 0 && value > s->items[i - 1][item])
            break_snapshot(s, "it has a write, and not the one before it", value);
    }
    if (sum > (int64_t)numbers)
        break_snapshot(s, "it has more writes than its windows", sum);
}

static void check_order(struct cluster_snapshots *s)
{
    struct cluster_snapshot *last = &s->last[s->shard];

    for (unsigned i = 0; i < s->counts->count; i++)
        s->snapshot.first[i] = s->items[i][0];
    if (s->snapshot.record < last->record)
        break_snapshot(s, "a former one is of a later record", (int64_t)last->record);
    if (s->snapshot.record == last->record &&
        memcmp(&s->snapshot, last, sizeof *last) != 0)
        break_snapshot(s, "a former one of the same record is another", 0);
    *last = s->snapshot;
}

static void check_snapshot(struct cluster_snapshots *s)
{
    uint64_t numbers = count_numbers(s);

    for (uint64_t i = 0; i < shard_bytes(s) / sizeof(int64_t); i++)
        check_item(s, i, numbers);
    check_order(s);
    s->reads = false;
    s->taken++;
}

/* ---- Answers ---- */

static void begin_reading(struct cluster_snapshots *s)
{
    s->reads = true;
    s->part = 0;
    s->windows_bytes = s->asked.windows_bytes;
    s->snapshot =
        (struct cluster_snapshot){.record = s->asked.record, .sum = s->asked.sum};
    memcpy(s->after, s->counts->counted, sizeof s->after);
    if (s->windows_bytes > sizeof s->windows)
        break_snapshot(s, "its windows are large", (int64_t)s->windows_bytes);
}

static void take_code(struct cluster_snapshots *s, int operation, int code)
{
    switch (operation) {
    case MU__VARIABLE_OPEN:
        s->opened += code == 0;
        break;
    case MU__VARIABLE_SNAPSHOT:
        if (code == 0)
            begin_reading(s);
        break;
    case MU__VARIABLE_SNAPSHOT_READ:
        s->part++;
        if (code != 0)
            s->call = close_snapshot(s);
        else if (s->part == s->counts->count + (s->windows_bytes > 0))
            check_snapshot(s);
        break;
    default:
        break;
    }
}

static void take_answer(struct cluster_snapshots *s)
{
    const struct mu__call *call = &s->call->of.call;
    int code = call->code;

    s->call = NULL;
    if (code != 0 && code != -MU_EDEADLINE && code != -MU_EUNAVAILABLE &&
        code != -MU_ECLOSED && code != -MU_EABORTED)
        cluster_break(s->counts->cluster, "a snapshot: operation %d: %s: %s",
                      call->operation, mu_strerror(code), call->error.message);
    take_code(s, call->operation, code);
}

static void ask_next(struct cluster_snapshots *s)
{
    if (s->life != sim_lives(s->task->node)) {
        s->reads = false;
        s->opened = 0;
    }
    s->life = sim_lives(s->task->node);
    if (s->opened < s->counts->count)
        s->call = ask_variable(s, MU__VARIABLE_OPEN, s->opened);
    else if (!s->reads)
        s->call = take_snapshot(s);
    else
        s->call =
            sim_chance(&s->random, CLOSE_PERCENT) ? close_snapshot(s) : read_part(s);
}

static void step_snapshots(struct sim *sim, void *arg)
{
    struct cluster_snapshots *s = arg;
    bool is_over = sim_now_ms(sim) >= s->until_ms && !s->reads;

    if (s->call != NULL && s->call->done)
        take_answer(s);
    if (s->call == NULL && sim_alive(s->task->node) && !is_over)
        ask_next(s);
    if (s->call != NULL || !is_over)
        sim_at(sim, sim_now_ms(sim) + sim_between(&s->random, 1, PAUSE_MAX_MS),
               step_snapshots, s);
}

void cluster_snapshots_begin(struct cluster_snapshots *s)
{
    sim_at(s->counts->cluster->sim,
           sim_now_ms(s->counts->cluster->sim) + sim_between(&s->random, 1, PAUSE_MAX_MS),
           step_snapshots, s);
}
