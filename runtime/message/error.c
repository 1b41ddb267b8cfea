/* The codes' words and names, and the filling of a mu_error. */
#include "runtime/message/arguments.h"
#include "runtime/message/value_layout.h"

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

/* Length of the UTF-8 character at `text`, which ends in a zero byte; 0: it is none. */
static size_t character_length(const unsigned char *text)
{
    size_t length = text[0] < 0x80 ? 1 : text[0] < 0xC2 ? 0 : text[0] < 0xE0 ? 2
                    : text[0] < 0xF0 ? 3 : text[0] < 0xF5 ? 4 : 0;

    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    if ((text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xED && text[1] > 0x9F) ||
        (text[0] == 0xF0 && text[1] < 0x90) || (text[0] == 0xF4 && text[1] > 0x8F))
        return 0;
    return length;
}

void mu__make_utf8(char *text)
{
    while (*text != '\0') {
        size_t length = character_length((const unsigned char *)text);

        if (length == 0)
            *text = '?';
        text += length == 0 ? 1 : length;
    }
}

int mu_error_set(mu_error *error, int code, const char *format, ...)
{
    char message[sizeof error->message];
    va_list arguments;
    int length;

    if (error == NULL)
        return code;

    /* Written beside `error` first: the arguments may be parts of it, as when a place is
     * put before an older message. */
    va_start(arguments, format);
    length = vsnprintf(message, sizeof message, format == NULL ? "" : format,
                       arguments);
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

int mu__refuse_null(mu_error *ret_error, const char *call, const char *names,
                    unsigned number)
{
    for (; number > 1; number--)
        names = strchr(names, ',') + 2;
    return mu_error_set(ret_error, -MU_EINVALID, "%s: argument %.*s is NULL", call,
                        (int)strcspn(names, ","), names);
}
