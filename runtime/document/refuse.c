#include "runtime/document/refuse.h"

#include "runtime/base/text.h"

#include <stdarg.h>
#include <stdio.h>

int mu__refuse(mu_error *ret_error, const char *text, size_t size, const char *format,
               ...)
{
    char shown[MU__QUOTE_BYTES];
    mu_error expected;
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(expected.message, sizeof expected.message, format, arguments);
    va_end(arguments);
    mu__quote(shown, sizeof shown, text, size);
    return mu_error_set(ret_error, -MU_EINVALID, "%s, got %s", expected.message, shown);
}
