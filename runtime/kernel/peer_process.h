/* Which process a node is, as it says: for people who look at a status. */
#ifndef MU_RUNTIME_KERNEL_PEER_PROCESS_H
#define MU_RUNTIME_KERNEL_PEER_PROCESS_H

#include <stdint.h>

struct mu__ctx;
struct mu__kernel;

/* Texts are "" and the pid is 0 where it does not say. */
struct mu__process {
    char version[64]; /* of its software */
    char host[64];
    uint64_t pid;
};

/* To be told of a node that is up, or of this one (MU__NODE_SELF). Copied; out of memory
 * nothing is known. */
void mu__kernel_node_process(struct mu__kernel *kernel, uint32_t node,
                             const struct mu__process *process);

/* NULL: it is not known, or the node is not up. Valid while the caller's handler runs. */
const struct mu__process *mu__process_of(const struct mu__ctx *ctx, uint32_t node);

#endif
