/* Tables in the actor of a parameter server: what messages do to them. */
#ifndef MU_ACTORS_PS_TABLES_TABLES_H
#define MU_ACTORS_PS_TABLES_TABLES_H

#include "actors/ps/stream.h"

/* ---- frame_writes.c ---- */

/* Apply a message as record p->record, here and in the journal; others have it. */
void mu__ps_run(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                const struct mutation *mutation, const struct mu__msg *msg);

void mu__ps_on_effect_writes(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- table_requests.c ---- */

void mu__ps_on_table_lookup(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* The tables of a partition, as a part of what a learner is filled with; then rows, piece
 * by piece. False of the latter: there are no more. */
bool mu__ps_put_tables(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                       mu__fill_put_fn put);
bool mu__ps_next_rows(const struct partition *p, struct mu__table_cursor *cursor,
                      struct mu__fill_rows *ret_body);
int mu__ps_take_fill_table(struct partition *p, const struct mu__fill_table *body,
                           mu_error *ret_error);
int mu__ps_take_fill_rows(struct partition *p, const struct mu__fill_rows *body,
                          mu_error *ret_error);

/* ---- policies/sweep_records.c ---- */

/* After some pushes: the primaries here write records of the sweeps that policies of
 * tables ask for. */
void mu__ps_sweep_tables(struct mu__ctx *ctx, struct ps *ps);

/* A mutation: TABLE_SWEEP. */
void mu__ps_apply_table_sweep(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                              const struct mu__msg *msg, mu__pid from);

#endif
