/* The message table as data: what the codec, the trace and the fuzzer read. */
#include "actors/messages.h"

MU__SYSTEM_MESSAGES(MU__DESCRIBE_FIELDS)
MU__MESSAGES(MU__DESCRIBE_FIELDS)

static const struct mu__row rows[MU__KINDS_END] = {
    MU__SYSTEM_MESSAGES(MU__DESCRIBE_ROW)
    MU__MESSAGES(MU__DESCRIBE_ROW)
};

const struct mu__schema mu__messages = {rows, MU__KINDS_END};
