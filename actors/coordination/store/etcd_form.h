/* The two forms of a transaction that only the holder can make: for etcd's gRPC
 * interface, and for its JSON gateway. */
#ifndef MU_ACTORS_STORE_ETCD_FORM_H
#define MU_ACTORS_STORE_ETCD_FORM_H

#include "actors/coordination/store/etcd_grpc.h"
#include "runtime/kernel/kernel.h"

struct etcd_store;

/* The parts of a fenced transaction, in the order of building. */
struct etcd_form {
    void (*begin)(struct mu__build *body);
    void (*compare)(struct mu__build *body, enum mu__etcd_target target,
                    struct mu__view key, uint64_t number);
    void (*then)(struct mu__build *body);
    void (*put)(struct mu__build *body, struct mu__view key, struct mu__view value,
                uint64_t lease);
    void (*remove)(struct mu__build *body, struct mu__view key, struct mu__view end);
    void (*end)(struct mu__build *body, struct mu__view leader);
};

/* The form of the body of `main`. */
const struct etcd_form *mu__etcd_form(const struct etcd_store *store);

/* Choose the form of the next body of `main`. */
void mu__etcd_choose_form(struct etcd_store *store, struct mu__ctx *ctx);

/* Takes the answer of a transaction that went by gRPC: true when it was applied. Else the
 * gateway is used for a while, and what `main` has is built again for it. */
bool mu__etcd_grpc_applied(struct etcd_store *store, struct mu__ctx *ctx);

#endif
