/* The store that is etcd, over its v3 JSON gateway.
 *
 * A location is "URL[,URL...]", the addresses of one etcd cluster, "http://10.0.0.1:2379"
 * each; a path in an address comes before the gateway's own ("http://proxy/etcd"). For
 * https the certificates of the store's config are used, and for a user of etcd its user
 * and password: a token that has ended is replaced.
 *
 * Keys, below /muster/CLUSTER_NAME (with % and / in the name as %25 and %2F):
 *
 *   /leader             the holder: task, incarnation, number of its last write. With a
 *                       lease, which ends with the holder
 *   /meta/number        of the content
 *   /meta/staged        how many changes are staged, while a large batch is written
 *   /staged/KEY         the new value of KEY below; empty: it is deleted
 *   /deleted/last       the last STORE_CHANGE that deleted a key, for its revision
 *   /keys/KEY           STORE_CHANGE, as runtime/message/codec.h packs it
 *   /results/AGENT/N    STORE_RESULTs of one agent, one behind another: of tokens from
 *                       256 N on; both numbers with 16 hexadecimal digits
 *
 * Decision 0010 says why. */
#ifndef MU_NODE_STORE_ETCD_H
#define MU_NODE_STORE_ETCD_H

#include "actors/coordination/store/store.h"

/* config->lease_ms: a holder not heard for so long is replaced; etcd counts in seconds,
 * and takes none below 2. */
extern const struct mu__store_kind mu__store_etcd;

#endif
