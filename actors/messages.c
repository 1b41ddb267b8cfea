/* The message table as data: what the codec, the trace and the fuzzer read. */
#include "actors/messages.h"

#define FIELD(name, need, type, field, bound)                               \
    {#field, (uint32_t)offsetof(struct mu__##name, field), (uint32_t)(bound), \
     MU__FIELD_##type, MU__NEED_##need},

#define FIELDS_OF(number, NAME, name, FIELDS, travels)                      \
    static const struct mu__field name##_fields[] = {FIELDS(FIELD, name)};

MU__SYSTEM_MESSAGES(FIELDS_OF)
MU__MESSAGES(FIELDS_OF)

#define ROW(number, NAME, name, FIELDS, travels)                            \
    [number] = {#name, name##_fields,                                       \
                sizeof name##_fields / sizeof name##_fields[0],             \
                sizeof(struct mu__##name), travels},

static const struct mu__row rows[MU__KINDS_END] = {
    MU__SYSTEM_MESSAGES(ROW)
    MU__MESSAGES(ROW)
};

const struct mu__schema mu__messages = {rows, MU__KINDS_END};
