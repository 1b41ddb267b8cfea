/* Names and texts of the codes, and mu_error_set. */
#include "runtime/base/text.h"
#include "runtime/message/arguments.h"

#include <muster/error.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct code {
    int number;
    const char *name;
    const char *words;
};

static const struct code codes[] = {{MU_CODE_OK, "OK", "no error"},
#define CODE_ROW(name, number, words) {MU_##name, #name, words},
                                    MU_ERRORS(CODE_ROW)
#undef CODE_ROW
};

/* The row of a code, with or without its minus sign; of EUNKNOWN when there is none. */
static const struct code *find_code(int code)
{
    const struct code *unknown = NULL;

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (codes[i].number == code || -codes[i].number == code)
            return &codes[i];
        if (codes[i].number == MU_EUNKNOWN)
            unknown = &codes[i];
    }
    return unknown;
}

const char *mu_strerror(int code)
{
    return find_code(code)->words;
}

const char *mu_err_name(int code)
{
    return find_code(code)->name;
}

/* A text that did not fit ends in "...", and not in the middle of a UTF-8 character. */
static void end_with_dots(char *text, size_t size)
{
    size_t end = size - sizeof "...";

    while (end > 0 && ((unsigned char)text[end] & 0xC0) == 0x80)
        end--;
    memcpy(text + end, "...", sizeof "...");
}

int mu_error_set(mu_error *error, int code, const char *format, ...)
{
    char message[sizeof error->message];
    va_list arguments;
    int length;

    if (error == NULL)
        return code;

    /* Written into another array first: the arguments may be parts of `error`, as when a
     * prefix is added to an older message. */
    va_start(arguments, format);
    length = vsnprintf(message, sizeof message, format == NULL ? "" : format, arguments);
    va_end(arguments);
    if (length < 0)
        message[0] = '\0';
    else if ((size_t)length >= sizeof message)
        end_with_dots(message, sizeof message);
    mu__make_utf8(message);

    *error = (mu_error){.code = code};
    memcpy(error->message, message, strlen(message) + 1);
    return code;
}
