/* Transactions: changes of several keys at one moment, if their comparisons hold.
 *
 * All of it happens in one handler, so that no read comes in between, and all records are
 * in one batch of the store, which counts as a whole. Puts and increments, which may
 * fail, are made first, in memory alone, and undone when one of them fails. Then the
 * store and the readers are told of them, and deletions, which cannot fail, come last. No
 * key is changed twice, so the order of the list does not matter. */
#include "actors/coordination/keys/internal.h"
#include "actors/coordination/keys/key_map.h"
#include "actors/coordination/keys/keys.h"
#include "actors/coordination/keys/txn.h"
#include "actors/coordination/tasks.h"

#include <stdlib.h>

/* A put or an increment. */
struct planned {
    struct mu__key_value entry;  /* to be put */
    struct mu__key_value before; /* if `exists`, with a reference to its backing */
    bool exists;
    char number[MU__NUMBER_BYTES];
};

struct txn_plan {
    const struct mu__txn *txn;
    struct planned *puts;
    unsigned count;    /* of `puts` */
    unsigned made;     /* of these, in memory */
    uint64_t revision; /* of the service, before the first */
    uint64_t bytes;    /* of their keys and values */
    int64_t sum;       /* of the first increment */
    bool has_sum;
};

static int check_keys(const struct mu__txn *txn, mu_error *error)
{
    int rv = 0;

    for (unsigned i = 0; i < txn->changes_count && rv == 0; i++)
        rv = mu__coord_key_check(txn->changes[i].key, error);
    return rv;
}

/* The number of the first comparison that does not hold goes to `ret_failed`, from 1. */
static int check_comparisons(const struct coordination *c, const struct mu__txn *txn,
                             mu_error *error, int64_t *ret_failed)
{
    for (unsigned i = 0; i < txn->checks_count; i++) {
        struct mu__key_value entry;
        bool exists = mu__key_values_find(c->keys->kv, txn->checks[i].key, &entry);
        int rv = mu__txn_compare(&txn->checks[i], exists ? &entry : NULL, error);

        if (rv != 0) {
            *ret_failed = (int64_t)i + 1;
            return rv;
        }
    }
    return 0;
}

/* ---- The plan ---- */

static int plan_sum(struct txn_plan *plan, struct planned *put, int64_t by,
                    mu_error *error)
{
    int64_t sum = 0;
    int rv = mu__coord_key_sum(put->exists ? &put->before : NULL, by, error, put->number,
                               &put->entry, &sum);

    if (rv == 0 && !plan->has_sum) {
        plan->has_sum = true;
        plan->sum = sum;
    }
    return rv;
}

static int plan_put(const struct coordination *c, struct txn_plan *plan,
                    const struct mu__txn_change *change, uint64_t owner, mu_error *error)
{
    struct planned *put = &plan->puts[plan->count++];
    int rv = 0;

    put->entry.key = change->key;
    put->exists = mu__key_values_find(c->keys->kv, change->key, &put->before);
    if (put->exists && put->before.backing != NULL)
        (void)mu__buf_ref(put->before.backing);
    if (change->operation == MU_KV_INCREMENT) {
        rv = plan_sum(plan, put, change->by, error);
    } else {
        put->entry.value = change->value;
        put->entry.owner = (change->flags & MU_KV_LEASE) != 0 ? owner : 0;
    }
    plan->bytes += (uint64_t)put->entry.key.size + put->entry.value.size;
    return rv;
}

static int plan_changes(const struct coordination *c, struct txn_plan *plan,
                        uint64_t owner, mu_error *error)
{
    const struct mu__txn *txn = plan->txn;
    int rv = 0;

    if (txn->changes_count == 0)
        return 0;
    plan->puts = calloc(txn->changes_count, sizeof *plan->puts);
    if (plan->puts == NULL)
        return mu_error_set(error, -MU_ENOMEM, "no memory for a transaction");
    for (unsigned i = 0; i < txn->changes_count && rv == 0; i++)
        if (txn->changes[i].operation != MU_KV_DELETE)
            rv = plan_put(c, plan, &txn->changes[i], owner, error);
    return rv;
}

static void free_plan(struct txn_plan *plan)
{
    for (unsigned i = 0; i < plan->count; i++)
        if (plan->puts[i].exists)
            mu__buf_unref(plan->puts[i].before.backing);
    free(plan->puts);
}

/* ---- Applying it ---- */

static void undo_puts(struct coordination *c, struct txn_plan *plan)
{
    while (plan->made > 0) {
        const struct planned *put = &plan->puts[--plan->made];

        if (put->exists)
            mu__key_values_restore(c->keys->kv, &put->before);
        else
            (void)mu__key_values_remove(c->keys->kv, put->entry.key);
    }
    c->revision = plan->revision;
}

static int apply_puts(struct coordination *c, struct txn_plan *plan, mu_error *error)
{
    plan->revision = c->revision;
    while (plan->made < plan->count) {
        struct planned *put = &plan->puts[plan->made];
        int rv;

        put->entry.revision = mu__coord_next_revision(c);
        rv = mu__key_values_put(c->keys->kv, &put->entry, error);
        if (rv != 0) {
            undo_puts(c, plan);
            return rv;
        }
        c->revision = put->entry.revision;
        plan->made++;
    }
    return 0;
}

static void apply_deletes(struct mu__ctx *ctx, struct coordination *c,
                          const struct mu__txn *txn)
{
    for (unsigned i = 0; i < txn->changes_count; i++)
        if (txn->changes[i].operation == MU_KV_DELETE)
            (void)mu__coord_keys_drop(ctx, c, txn->changes[i].key);
}

static int apply_transaction(struct mu__ctx *ctx, struct coordination *c,
                             struct txn_plan *plan, struct coord_change *a)
{
    int rv = plan_changes(c, plan, a->task->incarnation, &a->error);

    if (rv == 0 && plan->count > 0)
        rv = mu__coord_key_check_room(ctx, c, a->task, plan->bytes, &a->error);
    if (rv == 0)
        rv = apply_puts(c, plan, &a->error);
    if (rv != 0)
        return rv;
    for (unsigned i = 0; i < plan->count; i++)
        mu__coord_key_changed(ctx, c, &plan->puts[i].entry);
    apply_deletes(ctx, c, plan->txn);
    a->result.revision = c->revision;
    a->result.number = plan->sum;
    return 0;
}

static int run_transaction(struct mu__ctx *ctx, struct coordination *c,
                           const struct mu__txn *txn, struct coord_change *a)
{
    struct txn_plan plan = {.txn = txn};
    int rv = check_keys(txn, &a->error);

    if (rv == 0)
        rv = check_comparisons(c, txn, &a->error, &a->result.number);
    if (rv == 0)
        rv = apply_transaction(ctx, c, &plan, a);
    free_plan(&plan);
    return rv;
}

/* A put of MU__KEY_PREEMPTION gives notice of a preemption. */
static void note_preemption(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                            const struct mu__txn *txn)
{
    for (unsigned i = 0; i < txn->changes_count; i++)
        if (txn->changes[i].operation == MU_KV_PUT &&
            mu__view_is(txn->changes[i].key, MU__KEY_PREEMPTION))
            mu__coord_preempt_key(ctx, c, node, txn->changes[i].value);
}

void mu__coord_on_key_txn(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__key_txn *body = mu__body(msg);
    struct mu__txn *txn = NULL;
    struct coord_change a;
    int rv;

    if (!mu__coord_key_begin(ctx, c, msg, body->token, body->done, &a))
        return;
    rv = mu__txn_read(&body->content, &a.error, &txn);
    if (rv == 0)
        rv = run_transaction(ctx, c, txn, &a);
    mu__coord_key_end(ctx, c, &a, body->done, rv);
    if (rv == 0)
        note_preemption(ctx, c, a.node, txn);
    mu__txn_free(txn);
}
