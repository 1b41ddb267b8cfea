#include "actors/coordination.h"

static const struct mu__handler handlers[] = {{0, NULL}};

const struct mu__behavior mu__coordination = {
    .name = "coordination",
    .state_size = 1,
    .handlers = handlers,
    .handlers_count = 0,
};
