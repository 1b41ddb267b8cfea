/* A client reads what a partition held at one record, while work goes on; and gives the
 * windows of such a snapshot back to a partition. */
#ifndef MU_ACTORS_PS_SNAPSHOTS_H
#define MU_ACTORS_PS_SNAPSHOTS_H

#include "actors/ps/server.h"

void mu__snapshot_on_open(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__snapshot_on_read(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__snapshot_on_close(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* Open the snapshot that a message asks for; false: that has to wait. */
bool mu__snapshot_begin(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                        const struct mu__msg *msg);

/* A mutation: WINDOWS_PUT. */
void mu__snapshot_apply_windows(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                                const struct mu__msg *msg, mu__pid from);

#endif
