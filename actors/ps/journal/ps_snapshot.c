/* The journal is written anew, beside its use: what each partition holds, as a learner
 * gets it, and what comes meanwhile. */
#include "actors/ps/journal/ps_journal.h"
#include "actors/ps/journal/store_walk.h"
#include "actors/ps/tables/tables.h"

#include <stdlib.h>

enum {
    STEP_BYTES = 1 << 20,
    HANDED_ON_MS = 5000 /* in which the next primary has its own snapshot */
};

bool mu__ps_snapshot_is_due(const struct ps *ps)
{
    const struct ps_journal *journal = &ps->journal;

    return journal->is_behind || journal->snapshot.is_requested ||
           mu__journal_bytes(journal->file) >=
               2 * ps->bytes_used + journal->snapshot.spare_bytes;
}

/* ---- One partition ---- */

static bool put_snapshot(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                         uint16_t kind, const void *body, size_t size)
{
    (void)ctx;
    (void)p;
    return mu__ps_journal_put_new(ps, kind, body, size);
}

static bool is_quiet(const struct partition *p)
{
    return p->staging.batches == 0 && mu__store_is_quiet(p->store);
}

/* Requests under way are begun anew by their clients. False: not now. */
static bool become_quiet(struct mu__ctx *ctx, struct ps *ps, struct partition *p)
{
    if (!is_quiet(p) && p->role != BACKING)
        mu__ps_renew_generation(ctx, ps, p);
    return is_quiet(p);
}

static void put_new_view(struct ps *ps, const struct mu__partition_view *view,
                         enum mu__ps_held held)
{
    uint8_t bytes[MU__VIEW_BYTES];
    const struct mu__ps_view body = {{bytes, sizeof bytes}, (uint32_t)held};

    (void)mu__views_put(bytes, view);
    (void)mu__ps_journal_put_new(ps, MU__PS_VIEW, &body, sizeof body);
}

/* All but the content, in one turn. A failure shows at the end. */
static void begin_snapshot_of(struct mu__ctx *ctx, struct ps *ps, struct partition *p)
{
    struct ps_snapshot *snapshot = &ps->journal.snapshot;
    struct mu__store_shard shard;

    put_new_view(ps, &p->view, MU__PS_HELD_EMPTY);
    p->is_in_snapshot = mu__fill_put_windows(ctx, ps, p, put_snapshot);
    snapshot->ids = mu__store_ids(p->store, &snapshot->ids_count);
    if (snapshot->ids == NULL || !p->is_in_snapshot) {
        snapshot->has_failed = true;
        return;
    }
    for (uint32_t i = 0; i < snapshot->ids_count; i++)
        if (mu__store_shard(p->store, snapshot->ids[i], &shard))
            (void)mu__fill_put_shard(ctx, ps, p, &shard, put_snapshot);
    snapshot->at = 0;
    snapshot->rows = (struct mu__table_cursor){.table = 0};
    snapshot->offset = 0;
    snapshot->slots = false;
}

static void end_snapshot_of(struct ps *ps, const struct partition *p)
{
    struct ps_snapshot *snapshot = &ps->journal.snapshot;

    if (p != NULL) {
        const struct mu__fill_end body = {p->view.partition, p->view.number, p->record,
                                          p->sum};

        (void)mu__ps_journal_put_new(ps, MU__FILL_END, &body, sizeof body);
    }
    free(snapshot->ids);
    snapshot->ids = NULL;
    snapshot->partition++;
}

/* The next bytes of a shard; false: there are none. */
static bool describe_next_bytes(struct ps_snapshot *snapshot,
                                const struct mu__store_shard *shard,
                                struct mu__fill_data *body)
{
    const uint8_t *from;
    uint64_t left;

    if (snapshot->offset >= shard->bytes && !snapshot->slots) {
        snapshot->slots = true;
        snapshot->offset = 0;
    }
    from = snapshot->slots ? shard->slots : shard->data;
    left = snapshot->slots ? shard->slots_bytes : shard->bytes;
    if (snapshot->offset >= left)
        return false;
    left -= snapshot->offset;
    body->variable = shard->id;
    body->slots = snapshot->slots;
    body->offset = snapshot->offset;
    body->data.data = from + snapshot->offset;
    body->data.size = left < FILL_PIECE_BYTES ? (uint32_t)left : FILL_PIECE_BYTES;
    snapshot->offset += body->data.size;
    return true;
}

/* Rows of tables, behind the shards. */
static uint32_t put_next_rows(struct ps *ps, const struct partition *p)
{
    struct mu__table_cursor *cursor = &ps->journal.snapshot.rows;
    struct mu__fill_rows body;
    uint32_t bytes = 0;

    do {
        if (!mu__ps_next_rows(p, cursor, &body))
            return bytes;
        (void)mu__ps_journal_put_new(ps, MU__FILL_ROWS, &body, sizeof body);
        bytes += body.rows.size;
    } while (cursor->is_within);
    return bytes;
}

/* Of the partition; returns how many. A shard that was removed meanwhile is left out. */
static uint32_t put_next_bytes(struct ps *ps, const struct partition *p)
{
    struct ps_snapshot *snapshot = &ps->journal.snapshot;
    struct mu__fill_data body = {.partition = p->view.partition, .view = p->view.number};
    struct mu__store_shard shard;

    for (; snapshot->at < snapshot->ids_count; snapshot->at++) {
        if (mu__store_shard(p->store, snapshot->ids[snapshot->at], &shard) &&
            describe_next_bytes(snapshot, &shard, &body)) {
            (void)mu__ps_journal_put_new(ps, MU__FILL_DATA, &body, sizeof body);
            return body.data.size;
        }
        snapshot->offset = 0;
        snapshot->slots = false;
    }
    return put_next_rows(ps, p);
}

/* ---- All of them ---- */

/* One that was served here before, and handed over. The next primary counts on this
 * journal until it has its own. It alone has requests begun anew: they are waited for. */
static bool is_handed_on(struct mu__ctx *ctx, const struct ps *ps,
                         const struct partition *p)
{
    uint64_t until_ms = ps->journal.snapshot.begun_ms + HANDED_ON_MS;

    return p->is_in_snapshot ||
           (p->is_journaled && (is_quiet(p) || mu__now_ms(ctx) < until_ms));
}

/* One that is not here any more is left out: its view says so behind it. */
static struct partition *find_snapshotted(struct mu__ctx *ctx, const struct ps *ps)
{
    struct partition *p = ps->partitions[ps->journal.snapshot.partition];

    if (p == NULL || p->role == LEARNING)
        return NULL;
    return p->role != BACKING || is_handed_on(ctx, ps, p) ? p : NULL;
}

/* Go to the next partition if this one is not here, or not here any more. */
static bool skip_absent(struct mu__ctx *ctx, struct ps *ps)
{
    const struct ps_snapshot *snapshot = &ps->journal.snapshot;
    const struct partition *p = find_snapshotted(ctx, ps);

    if (p != NULL && (snapshot->ids == NULL || p->is_in_snapshot))
        return false;
    end_snapshot_of(ps, NULL);
    return true;
}

/* Some bytes; false: there is nothing to do now. */
static bool go_on_with_partition(struct mu__ctx *ctx, struct ps *ps, size_t *bytes)
{
    struct ps_snapshot *snapshot = &ps->journal.snapshot;
    struct partition *p = find_snapshotted(ctx, ps);
    uint32_t put;

    if (snapshot->ids == NULL) {
        if (!become_quiet(ctx, ps, p))
            return false;
        begin_snapshot_of(ctx, ps, p);
        return true;
    }
    put = put_next_bytes(ps, p);
    if (put == 0)
        end_snapshot_of(ps, p);
    *bytes += put;
    return true;
}

static void note_snapshots(struct ps *ps, bool is_done)
{
    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        struct partition *p = ps->partitions[i];

        if (p == NULL)
            continue;
        if (is_done && p->is_in_snapshot && !p->is_journaled) {
            p->is_journaled = true;
            p->journaled = 0;
            ps->news_due = true; /* a backup is spare */
        }
        if (is_done && p->role == BACKING && !p->is_in_snapshot)
            mu__ps_leave_journal(p);
        p->is_in_snapshot = false;
    }
}

/* A failure is one of the journal only when that lacks something. */
static void finish_snapshot(struct mu__ctx *ctx, struct ps *ps, int rv,
                            const mu_error *error)
{
    struct ps_journal *journal = &ps->journal;
    struct ps_snapshot *snapshot = &journal->snapshot;

    snapshot->runs = false;
    free(snapshot->ids);
    snapshot->ids = NULL;
    note_snapshots(ps, rv == 0);
    journal->room = 0;
    if (rv == 0) {
        journal->is_behind = false;
        journal->is_dirty = true; /* what waits is released */
        return;
    }
    snapshot->is_requested = true;
    if (!journal->is_behind)
        mu__log(ctx, MU__LOG_WARN, "the journal could not be written anew: %s",
                error->message);
}

/* The views come first, so that what is not served here is known, too. */
static void begin_snapshot(struct mu__ctx *ctx, struct ps *ps)
{
    struct ps_snapshot *snapshot = &ps->journal.snapshot;
    uint8_t former[8 * MU__FORMER_MAX];
    struct mu__ps_begin body;
    mu_error error;
    int rv = mu__journal_renew_begin(ps->journal.file, &error);

    snapshot->begun_ms = mu__now_ms(ctx);
    snapshot->is_requested = false;
    snapshot->has_failed = false;
    snapshot->partition = 0;
    if (rv != 0) {
        finish_snapshot(ctx, ps, rv, &error);
        return;
    }
    snapshot->runs = true;
    body = mu__ps_journal_begin_record(ps, former);
    (void)mu__ps_journal_put_new(ps, MU__PS_BEGIN, &body, sizeof body);
    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        if (ps->newest[i].number != 0)
            put_new_view(ps, &ps->newest[i], MU__PS_HELD_NOT);
}

static void commit_snapshot(struct mu__ctx *ctx, struct ps *ps)
{
    const struct ps_snapshot *snapshot = &ps->journal.snapshot;
    mu_error error = {.code = 0};
    int rv = snapshot->has_failed
                 ? mu_error_set(&error, -MU_ENOMEM, "the server is out of memory")
                 : mu__journal_renew_commit(ps->journal.file, &error);

    if (rv != MU__STORAGE_NOT_YET)
        finish_snapshot(ctx, ps, rv, &error);
}

void mu__ps_snapshot_step(struct mu__ctx *ctx, struct ps *ps)
{
    struct ps_journal *journal = &ps->journal;
    struct ps_snapshot *snapshot = &journal->snapshot;
    size_t bytes = 0;

    if (!snapshot->runs) {
        if (mu__ps_snapshot_is_due(ps))
            begin_snapshot(ctx, ps);
        return;
    }
    while (snapshot->partition < MU__PARTITIONS)
        if (!skip_absent(ctx, ps) &&
            (bytes >= STEP_BYTES || mu__journal_renew_is_busy(journal->file) ||
             !go_on_with_partition(ctx, ps, &bytes)))
            return;
    commit_snapshot(ctx, ps);
}
