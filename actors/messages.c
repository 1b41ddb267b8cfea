/* The message tables as data, for the kernel, the codec, the trace and the fuzzer. */
#include "actors/messages.h"

MU__MESSAGES(MU__DESCRIBE_FIELDS)

static const struct mu__row rows[MU__KINDS_END] = {MU__MESSAGES(MU__DESCRIBE_ROW)};

static const struct mu__local_row local[] = {MU__SYSTEM_MESSAGES(MU__DESCRIBE_LOCAL)
                                                 MU__LOCAL_MESSAGES(MU__DESCRIBE_LOCAL)};

const struct mu__schema mu__messages = {rows, MU__KINDS_END, local,
                                        sizeof local / sizeof local[0]};
