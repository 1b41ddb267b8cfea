/* Transactions for etcd's gRPC interface, which costs etcd a tenth of what its JSON
 * gateway does. A body has the frame of gRPC around a message of protobuf; it goes by
 * HTTP/2. Pure: runtime/kernel/http.h carries them.
 *
 * Only the answer "all comparisons held" is read here. Whoever gets another one sends the
 * transaction to the gateway (runtime/document/etcd.h), whose answer says why. */
#ifndef MU_ACTORS_STORE_ETCD_GRPC_H
#define MU_ACTORS_STORE_ETCD_GRPC_H

#include "runtime/document/etcd.h"

#define MU__ETCD_GRPC_TXN "/etcdserverpb.KV/Txn"

/* A transaction is built in this order: begin, comparisons, the operations for when all
 * comparisons hold, end. */
void mu__etcd_grpc_begin(struct mu__build *body);
void mu__etcd_grpc_compare(struct mu__build *body, enum mu__etcd_target target,
                           struct mu__view key, uint64_t number);
void mu__etcd_grpc_put(struct mu__build *body, struct mu__view key, struct mu__view value,
                       uint64_t lease);
void mu__etcd_grpc_delete(struct mu__build *body, struct mu__view key,
                          struct mu__view end);
void mu__etcd_grpc_end(struct mu__build *body);

/* Whether an answer says that all comparisons held. False, too, for what is no answer to
 * a transaction. The status of gRPC, in the trailer "grpc-status", is the caller's to
 * check. */
bool mu__etcd_grpc_succeeded(const void *answer, size_t size);

#endif
