/* Settings of a plugin, which `muster run --set key=value` gives to all tasks: a row
 * each, checked when the plugin is loaded. */
#ifndef EXAMPLES_SETTINGS_H
#define EXAMPLES_SETTINGS_H

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <muster.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exactly one of the two pointers is not NULL. */
struct setting {
    const char *name;
    uint64_t *whole;
    double *number;
    double low;
    double high;
};

static inline bool setting_parse_whole(const char *text, const struct setting *row)
{
    unsigned long long whole;
    char *end;

    errno = 0;
    whole = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0 ||
        (double)whole < row->low || (double)whole > row->high)
        return false;
    *row->whole = whole;
    return true;
}

static inline bool setting_parse_number(const char *text, const struct setting *row)
{
    double number;
    char *end;

    number = strtod(text, &end);
    if (end == text || *end != '\0' || !(number >= row->low && number <= row->high))
        return false;
    *row->number = number;
    return true;
}

/* Read those that are given; the others stay as they are. Returns 0; -MU_EINVALID, with
 * the setting, its value and what was expected in *ret_error. */
static inline int settings_take(const mu_node *node, const struct setting *rows,
                                size_t count, mu_error *ret_error)
{
    for (const struct setting *row = rows; row < rows + count; row++) {
        const char *text = mu_node_get_setting(node, row->name);

        if (text == NULL || (row->whole != NULL ? setting_parse_whole(text, row)
                                                : setting_parse_number(text, row)))
            continue;
        return mu_error_set(ret_error, -MU_EINVALID,
                            "setting %s is \"%.80s\", expected a %s from %.12g to %.12g",
                            row->name, text,
                            row->whole != NULL ? "whole number" : "number", row->low,
                            row->high);
    }
    return 0;
}

/* The same for a plugin that says on stderr what is wrong. */
static inline int settings_take_or_say(const mu_node *node, const char *plugin,
                                       const struct setting *rows, size_t count)
{
    mu_error error;
    int rv = settings_take(node, rows, count, &error);

    if (rv != 0)
        (void)fprintf(stderr, "%s: %s\n", plugin, error.message);
    return rv;
}

/* Open the file that the setting `trace` names, to append to it; -1: there is none. */
static inline int settings_open_trace(const mu_node *node, const char *plugin,
                                      int *ret_trace)
{
    const char *path = mu_node_get_setting(node, "trace");

    *ret_trace = -1;
    if (path == NULL)
        return 0;
    *ret_trace = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (*ret_trace >= 0)
        return 0;
    (void)fprintf(stderr, "%s: %s: %s\n", plugin, path, strerror(errno));
    return -MU_EINVALID;
}

#endif
