/* A snapshot is of the record that was applied last when it was opened. Its client hears
 * of it when the replica has that record, too; so what is read of it is acknowledged, and
 * need not wait. */
#include "actors/ps/stream.h"

#include "actors/ps/store_snapshots.h"
#include "actors/ps/tables/copies/set_copies.h"
#include "actors/ps/windows.h"

#include "actors/keep.h"

#include <stdlib.h>

static struct mu__snapshot_key key_of(const struct mu__msg *msg, uint64_t number)
{
    return (struct mu__snapshot_key){msg->from, number};
}

/* ---- Opening ---- */

static int open_snapshot(struct partition *p, const struct mu__msg *msg,
                         struct mu__snapshot_opened *opened, mu_error *error)
{
    const struct mu__snapshot_open *body = (const void *)msg->body;
    const struct mu__snapshot_key key = key_of(msg, body->token);
    struct mu__snapshot_content content = {.ids = body->ids,
                                           .with_slots = body->with_slots,
                                           .tables = body->tables,
                                           .marks = {body->since, body->mark}};
    uint8_t *windows = mu__windows_pack(&p->applied, &p->writers, &opened->windows);

    if (windows == NULL)
        return mu_error_set(error, -MU_ENOMEM, "the server is out of memory");
    opened->record = p->record;
    opened->sum = p->sum;
    content.extra = windows;
    content.extra_bytes = opened->windows;
    return mu__snapshot_open(p->store, &key, &content, error);
}

static void watch_snapshots(struct mu__ctx *ctx, struct ps *ps)
{
    if (ps->snapshots.timer == 0 && ps->snapshots.usage.count > 0)
        ps->snapshots.timer = mu__timer_set(ctx, SNAPSHOT_IDLE_MS, PS_SNAPSHOTS);
}

bool mu__snapshot_begin(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                        const struct mu__msg *msg)
{
    const struct mu__snapshot_open *body = (const void *)msg->body;
    struct mu__snapshot_opened reply = {.token = body->token};
    uint8_t *slots = NULL;
    uint8_t *sizes = NULL;
    mu_error error;
    int rv;

    if (p->ready || mu__ps_is_cut_off(ps, p))
        return false;
    rv = body->only_sizes ? 0 : open_snapshot(p, msg, &reply, &error);
    watch_snapshots(ctx, ps);
    if (rv == 0 && body->with_slots) {
        slots = mu__snapshot_slots_pack(p->store, body->ids, &reply.slots.size);
        reply.slots.data = slots; /* without memory for it: as if there were none */
    }
    if (rv == 0 && body->tables.size > 0) {
        sizes = mu__set_copies_sizes(mu__store_tables(p->store), body->tables,
                                     body->since, &reply.sizes.size);
        reply.sizes.data = sizes; /* without: the client gives the snapshot up */
    }
    reply.code = mu__ps_code(rv);
    reply.message = mu__ps_message_of(rv, error.message);
    mu__ps_answer(ctx, p, msg->from, MU__SNAPSHOT_OPENED, &reply, sizeof reply);
    free(sizes);
    free(slots);
    return true;
}

void mu__snapshot_on_open(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct ps *ps = state;
    const struct mu__snapshot_open *body = mu__body(msg);
    struct partition *p = mu__ps_find_serving(ps, body->partition, body->generation);

    if (p != NULL && !mu__snapshot_begin(ctx, ps, p, msg))
        mu__stream_defer(ctx, ps, p, mu__claim(ctx));
}

/* ---- Reading ---- */

void mu__snapshot_on_read(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__snapshot_read *body = mu__body(msg);
    const struct mu__snapshot_key key = key_of(msg, body->snapshot);
    const struct mu__store_read request = {body->variable, body->offset, body->size};
    struct partition *p = mu__ps_find_serving(state, body->partition, body->generation);
    struct mu__var_data reply = {.token = body->token};
    mu_error error;
    int rv;

    if (p == NULL)
        return;
    rv = mu__snapshot_read(p->store, &key, &request, &error, &reply.data);
    reply.code = mu__ps_code(rv);
    reply.message = mu__ps_message_of(rv, error.message);
    mu__ps_send(ctx, msg->from, MU__VAR_DATA, &reply, sizeof reply);
    if (rv == 0)
        mu__snapshot_taken(p->store, &key, &request);
}

void mu__snapshot_on_close(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__snapshot_close *body = mu__body(msg);
    const struct mu__snapshot_key key = key_of(msg, body->snapshot);
    struct partition *p = mu__ps_find_serving(state, body->partition, body->generation);

    (void)ctx;
    if (p != NULL)
        mu__snapshot_close(p->store, &key);
}

void mu__snapshots_tick(struct mu__ctx *ctx, struct ps *ps)
{
    ps->snapshots.timer = 0;
    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        if (ps->partitions[i] != NULL)
            mu__snapshots_drop_idle(ps->partitions[i]->store);
    watch_snapshots(ctx, ps);
}

/* ---- Giving back ---- */

void mu__snapshot_apply_windows(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                                const struct mu__msg *msg, mu__pid from)
{
    const struct mu__windows_put *body = (const void *)msg->body;
    struct mu__var_written reply = {.token = body->token};
    int rv = mu__windows_add(body->windows, &p->applied, &p->writers);

    (void)ps;
    reply.code = mu__ps_code(rv);
    reply.message = mu__ps_message_of(rv, mu_strerror(rv));
    mu__stream_note(p, reply.code);
    mu__ps_answer(ctx, p, from, MU__VAR_WRITTEN, &reply, sizeof reply);
}
