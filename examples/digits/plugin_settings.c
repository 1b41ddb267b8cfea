/* Settings: one row each, checked when the plugin is loaded. */
#include "plugin_digits.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/* Exactly one of the two pointers is not NULL. */
struct row {
    const char *name;
    uint64_t *whole;
    double *number;
    double low;
    double high;
};

static bool parse_whole(const char *text, const struct row *row)
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

static bool parse_number(const char *text, const struct row *row)
{
    double number;
    char *end;

    number = strtod(text, &end);
    if (end == text || *end != '\0' || !(number >= row->low && number <= row->high))
        return false;
    *row->number = number;
    return true;
}

static int read_row(const mu_node *node, const struct row *row, mu_error *ret_error)
{
    const char *text = mu_node_get_setting(node, row->name);

    if (text == NULL ||
        (row->whole != NULL ? parse_whole(text, row) : parse_number(text, row)))
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "setting %s is \"%.80s\", expected a %s from %.12g to %.12g",
                        row->name, text, row->whole != NULL ? "whole number" : "number",
                        row->low, row->high);
}

int settings_read(const mu_node *node, mu_error *ret_error, struct settings *ret_settings)
{
    struct settings s = {
        .steps = 3000,
        .batch = 32,
        .seed = 1,
        .rate = 0.03,
        .momentum = 0.5,
        .target = 0.95,
        .slow_ms = 0,
    };
    const struct row rows[] = {
        {"steps", &s.steps, NULL, 1, 100000000},
        {"batch", &s.batch, NULL, 1, DIGITS_TRAIN_ROWS},
        {"seed", &s.seed, NULL, 0, 1000000000},
        {"rate", NULL, &s.rate, 0, 10},
        {"momentum", NULL, &s.momentum, 0, 0.999},
        {"target", NULL, &s.target, 0, 1},
        {"slow_ms", &s.slow_ms, NULL, 0, 10000},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int rv = read_row(node, &rows[i], ret_error);

        if (rv != 0)
            return rv;
    }
    *ret_settings = s;
    return 0;
}
