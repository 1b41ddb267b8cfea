#include "actors/ps/journal/ps_journal.h"

#include "runtime/base/byte_order.h"

#include <inttypes.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BODY_BYTES_MAX = 512,
    FRAME_BYTES = 64,     /* around a record, at most */
    ROOM_BYTES = 1 << 18, /* reserved beyond a record, where there is room */
    FULL_RETRY_MS = 100,  /* a full disk is not asked again before */
    STEP_EACH_MS = 1,     /* of a snapshot */
    SNAPSHOT_EACH_MS = 1000
};

void mu__ps_journal_close(struct ps *ps)
{
    mu__journal_close(ps->journal.file);
    free(ps->journal.snapshot.ids);
}

/* ---- Failures ---- */

/* Logged once, until it can be written again. */
void mu__ps_journal_failed(struct mu__ctx *ctx, struct ps *ps, const mu_error *error)
{
    struct ps_journal *journal = &ps->journal;

    if (!journal->is_failing)
        mu__log(
            ctx, MU__LOG_ERROR,
            "the journal cannot be written: %s; what changes variables waits until it "
            "can",
            error->message);
    journal->is_failing = true;
    journal->room = 0;
    journal->retry_ms = mu__now_ms(ctx) + FULL_RETRY_MS;
    mu__stream_arm(ctx, ps);
}

static void note_journal_room(struct mu__ctx *ctx, struct ps *ps)
{
    if (ps->journal.is_failing)
        mu__log(ctx, MU__LOG_INFO, "the journal can be written again");
    ps->journal.is_failing = false;
}

/* ---- Records ---- */

/* `backing` keeps what views of the body point to; it is not counted. */
static struct mu__msg *make_record_message(void *memory, uint16_t kind, const void *body,
                                           size_t size, struct mu__buf *backing)
{
    struct mu__msg *msg = memory;

    memset(msg, 0, sizeof *msg + BODY_BYTES_MAX);
    msg->kind = kind;
    msg->backing = backing;
    memcpy(msg->body, body, size);
    return msg;
}

void mu__ps_journal_put(struct ps *ps, uint16_t kind, const void *body, size_t size,
                        struct mu__buf *backing)
{
    alignas(struct mu__msg) unsigned char memory[sizeof(struct mu__msg) + BODY_BYTES_MAX];
    struct ps_journal *journal = &ps->journal;
    struct mu__msg *msg = make_record_message(memory, kind, body, size, backing);

    if (journal->is_behind) {
        if (journal->snapshot.runs)
            (void)mu__ps_journal_put_new(ps, kind, body, size);
        return;
    }
    if (mu__journal_append(journal->file, msg, &journal->error) != 0)
        journal->is_behind = true;
    journal->is_dirty = true;
}

bool mu__ps_journal_put_new(struct ps *ps, uint16_t kind, const void *body, size_t size)
{
    alignas(struct mu__msg) unsigned char memory[sizeof(struct mu__msg) + BODY_BYTES_MAX];
    mu_error error;

    return mu__journal_renew_append(ps->journal.file,
                                    make_record_message(memory, kind, body, size, NULL),
                                    &error) == 0; /* the commit says why not */
}

bool mu__ps_is_written(const struct partition *p)
{
    return p->is_journaled || p->is_in_snapshot;
}

void mu__ps_leave_journal(struct partition *p)
{
    p->is_journaled = false;
    p->journaled = UINT64_MAX;
}

/* Beyond the record, too, if there is so much. */
static bool reserve_room(struct ps_journal *journal, uint64_t bytes, mu_error *ret_error)
{
    if (bytes <= journal->room) {
        journal->room -= bytes;
        return true;
    }
    journal->room = ROOM_BYTES;
    if (mu__journal_reserve(journal->file, bytes + ROOM_BYTES, ret_error) == 0)
        return true;
    journal->room = 0;
    return mu__journal_reserve(journal->file, bytes, ret_error) == 0;
}

bool mu__ps_journal_has_room(struct mu__ctx *ctx, struct ps *ps,
                             const struct partition *p, const struct mu__msg *msg)
{
    struct ps_journal *journal = &ps->journal;
    mu_error error;

    if (journal->file == NULL || !mu__ps_is_written(p))
        return true;
    if (journal->is_behind && msg->kind == MU__CLIENT_LOST)
        return true; /* nobody waits for it; the new file begins behind it */
    if (journal->is_behind ||
        (journal->is_failing &&
         (journal->is_dirty || mu__now_ms(ctx) < journal->retry_ms)))
        return false;
    if (reserve_room(journal,
                     mu__encode_bound(mu__kernel_schema(ctx->kernel), msg) + FRAME_BYTES,
                     &error)) {
        note_journal_room(ctx, ps);
        return true;
    }
    mu__ps_journal_failed(ctx, ps, &error);
    return false;
}

/* In the place of a request that was refused. */
static void put_nothing(struct ps *ps, const struct partition *p)
{
    const struct mu__client_lost body = {.partition = p->view.partition,
                                         .generation = p->generation,
                                         .record = p->record,
                                         .writer = MU__CLIENTS_NONE};

    mu__ps_journal_put(ps, MU__CLIENT_LOST, &body, sizeof body, NULL);
}

void mu__ps_journal_record(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                           const struct mutation *mutation, const struct mu__msg *msg)
{
    uint8_t body[MU__RECORD_BODY_MAX];

    (void)ctx;
    if (ps->journal.file == NULL || !mu__ps_is_written(p))
        return;
    if (ps->journal.is_refused) {
        put_nothing(ps, p);
        return;
    }
    mu__stream_fill_record(p, mutation, msg, body);
    mu__ps_journal_put(ps, msg->kind, body, mutation->size, msg->backing);
}

void mu__ps_journal_copy(struct ps *ps, const struct partition *p,
                         const struct mutation *mutation, const struct mu__msg *msg)
{
    if (ps->journal.file == NULL || !mu__ps_is_written(p))
        return;
    if (ps->journal.is_refused)
        put_nothing(ps, p);
    else
        mu__ps_journal_put(ps, msg->kind, (const void *)msg->body, mutation->size,
                           msg->backing);
}

/* ---- Views ---- */

static void put_ps_view(struct ps *ps, const struct mu__partition_view *view,
                        enum mu__ps_held held)
{
    uint8_t bytes[MU__VIEW_BYTES];
    const struct mu__ps_view body = {{bytes, sizeof bytes}, (uint32_t)held};

    (void)mu__views_put(bytes, view);
    mu__ps_journal_put(ps, MU__PS_VIEW, &body, sizeof body, NULL);
}

/* What is answered under a new view waits until that is flushed. */
void mu__ps_journal_view(struct mu__ctx *ctx, struct ps *ps, uint32_t partition,
                         enum mu__ps_held held)
{
    struct partition *p = ps->partitions[partition];

    (void)ctx;
    if (ps->journal.file == NULL)
        return;
    if (held == MU__PS_HELD_NOT) {
        put_ps_view(ps, &ps->newest[partition], held);
        return;
    }
    if (held == MU__PS_HELD_EMPTY)
        p->is_journaled = true;
    ps->journal.snapshot.is_requested |= !p->is_journaled;
    put_ps_view(ps, &p->view, mu__ps_is_written(p) ? held : MU__PS_HELD_NOT);
    if (p->is_journaled)
        p->journaled = 0;
}

struct mu__ps_begin mu__ps_journal_begin_record(const struct ps *ps,
                                                uint8_t former[8 * MU__FORMER_MAX])
{
    const struct ps_journal *journal = &ps->journal;

    for (uint32_t i = 0; i < journal->former_count; i++)
        mu__store_little(former + 8 * i, journal->former[i], 8);
    return (struct mu__ps_begin){
        .task = ps->index,
        .cluster = mu__view_str(journal->cluster),
        .run = mu__view_str(journal->run),
        .former = {former, 8 * journal->former_count},
    };
}

/* ---- Flushing ---- */

/* The file has all that was applied so far. */
static void release_written(struct mu__ctx *ctx, struct ps *ps)
{
    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        struct partition *p = ps->partitions[i];

        if (p == NULL || !p->is_journaled)
            continue;
        p->journaled = p->record;
        if (p->role == SERVING)
            mu__stream_release(ctx, p);
    }
}

static void plan_tick(struct mu__ctx *ctx, struct ps *ps)
{
    struct ps_journal *journal = &ps->journal;
    const struct ps_snapshot *snapshot = &journal->snapshot;
    uint64_t now_ms = mu__now_ms(ctx);
    uint64_t delay_ms = STEP_EACH_MS;

    if (journal->timer != 0 || !(snapshot->runs || mu__ps_snapshot_is_due(ps)))
        return;
    if (!snapshot->runs && snapshot->begun_ms != 0 &&
        now_ms < snapshot->begun_ms + SNAPSHOT_EACH_MS)
        delay_ms = snapshot->begun_ms + SNAPSHOT_EACH_MS - now_ms;
    journal->timer = mu__timer_set(ctx, delay_ms, PS_JOURNAL);
}

void mu__ps_journal_flush(struct mu__ctx *ctx, struct ps *ps)
{
    struct ps_journal *journal = &ps->journal;
    mu_error error;

    if (journal->file == NULL)
        return;
    if (journal->is_behind) {
        mu__ps_journal_failed(ctx, ps, &journal->error);
    } else if (journal->is_dirty) {
        if (mu__journal_flush(journal->file, &error) != 0) {
            mu__ps_journal_failed(ctx, ps, &error);
        } else {
            journal->is_dirty = false;
            release_written(ctx, ps);
        }
    }
    plan_tick(ctx, ps);
}

void mu__ps_journal_tick(struct mu__ctx *ctx, struct ps *ps)
{
    ps->journal.timer = 0;
    mu__ps_snapshot_step(ctx, ps);
}
