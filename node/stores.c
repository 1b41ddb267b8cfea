#include "node/stores.h"

#include "actors/coordination/store/etcd_store.h"

const struct mu__store_kind *const mu__stores[] = {
    &mu__store_memory,
    &mu__store_journal,
    &mu__store_etcd,
    NULL,
};
