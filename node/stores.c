#include "node/stores.h"

const struct mu__store_kind *const mu__stores[] = {
    &mu__store_memory,
    &mu__store_journal,
    NULL,
};
