/* Sweeps that the policies of tables ask for, as records. */
#include "actors/ps/tables/tables.h"

#include "actors/ps/tables/table_set.h"

/* False: no record can be written now. */
static bool record_sweep(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                         uint64_t table, const struct mu__table_bound *bound)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__TABLE_SWEEP);
    struct mu__table_sweep *body;
    bool is_written;

    if (msg == NULL)
        return false;
    body = mu__body(msg);
    body->table = table;
    body->reason = bound->reason;
    body->score = bound->score;
    body->id = bound->id;
    is_written = mu__ps_begin_deferred(ctx, ps, p, msg);
    mu__msg_free(ctx, msg);
    return is_written;
}

/* False: later. */
static bool sweep_partition(struct mu__ctx *ctx, struct ps *ps, struct partition *p)
{
    const struct mu__table_set *set = mu__store_tables(p->store);
    struct mu__table_bound bound;
    uint64_t table;

    while (mu__tables_sweep_due(set, &table, &bound))
        if (!record_sweep(ctx, ps, p, table, &bound))
            return false;
    return true;
}

void mu__ps_sweep_tables(struct mu__ctx *ctx, struct ps *ps)
{
    if (!ps->sweeps_due)
        return;
    ps->sweeps_due = false;
    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        struct partition *p = ps->partitions[i];
        struct mu__table_set *set = p == NULL ? NULL : mu__store_tables(p->store);

        if (set == NULL || !set->may_sweep || p->role != SERVING)
            continue;
        set->may_sweep = !sweep_partition(ctx, ps, p);
        ps->sweeps_due |= set->may_sweep;
    }
}

void mu__ps_apply_table_sweep(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                              const struct mu__msg *msg, mu__pid from)
{
    const struct mu__table_sweep *body = (const void *)msg->body;
    const struct mu__table_bound bound = {body->reason, body->score, body->id};
    struct mu__table_set *set = mu__store_tables(p->store);
    uint64_t removed = mu__tables_sweep(set, body->table, &bound);

    (void)ctx;
    (void)ps;
    (void)from;
    mu__stream_note(p, removed + mu__tables_sample(set, body->table));
}
