#include "runtime/message/arguments.h"

#include <stdbool.h>
#include <string.h>

int mu__refuse_null(mu_error *ret_error, const char *call, const char *names,
                    unsigned number)
{
    for (; number > 1; number--)
        names = strchr(names, ',') + 2;
    return mu_error_set(ret_error, -MU_EINVALID, "%s: argument %.*s is NULL", call,
                        (int)strcspn(names, ","), names);
}

/* ---- options ---- */

void mu__options_init(void *options, size_t size, const void *defaults, size_t known)
{
    if (options == NULL || size < sizeof size)
        return;
    memset(options, 0, size);
    memcpy(options, defaults, size < known ? size : known);
    memcpy(options, &size, sizeof size);
}

static bool is_zero(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

int mu__options_read(const char *type, const void *options, size_t known,
                     mu_error *ret_error, void *ret_options)
{
    size_t size;

    if (options == NULL)
        return 0;
    memcpy(&size, options, sizeof size);
    if (size < sizeof size || size > MU__OPTIONS_BYTES_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: its size is %zu: expected options that were initialized "
                            "with %s_init",
                            type, size, type);
    if (size > known && !is_zero((const char *)options + known, size - known))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: an option is set beyond the %zu bytes that this library "
                            "knows: the program was compiled with a newer one",
                            type, known);
    memcpy(ret_options, options, size < known ? size : known);
    memcpy(ret_options, &known, sizeof known);
    return 0;
}
