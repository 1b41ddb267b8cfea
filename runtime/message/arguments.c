#include "runtime/message/arguments.h"

#include <string.h>

int mu__refuse_null(mu_error *ret_error, const char *call, const char *names,
                    unsigned number)
{
    for (; number > 1; number--)
        names = strchr(names, ',') + 2;
    return mu_error_set(ret_error, -MU_EINVALID, "%s: argument %.*s is NULL", call,
                        (int)strcspn(names, ","), names);
}
