/* Settings: one row each, checked when the plugin is loaded. */
#include "plugin_ctr.h"

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
        .lines = 400000,
        .held = 20000,
        .batch = 512,
        .parts = 4,
        .seed = 1,
        .rate = 0.05,
        .l1 = 6,
        .l2 = 1,
        .factor_rate = 0.05,
        .gap = 0.005,
        .data = mu_node_get_setting(node, "data"),
        .checkpoint = mu_node_get_setting(node, "checkpoint"),
        .checkpoint_each = 1000,
        .curve = mu_node_get_setting(node, "curve"),
    };
    const struct row rows[] = {
        {"factors", &s.factors, NULL, 0, CTR_DIM_MAX},
        {"lines", &s.lines, NULL, 1, 1e9},
        {"held", &s.held, NULL, 1, 1e6},
        {"planted", &s.planted, NULL, 0, 1},
        {"batch", &s.batch, NULL, 1, 65536},
        {"parts", &s.parts, NULL, 1, 64},
        {"sync", &s.sync, NULL, 0, 1},
        {"sum", &s.sum, NULL, 0, 1},
        {"checkpoint_each", &s.checkpoint_each, NULL, 1, 1e9},
        {"seed", &s.seed, NULL, 0, 1e9},
        {"slow_ms", &s.slow_ms, NULL, 0, 10000},
        {"rate", NULL, &s.rate, 0, 10},
        {"l1", NULL, &s.l1, 0, 1000},
        {"l2", NULL, &s.l2, 0, 1000},
        {"factor_rate", NULL, &s.factor_rate, 0, 10},
        {"gap", NULL, &s.gap, -1, 1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int rv = read_row(node, &rows[i], ret_error);

        if (rv != 0)
            return rv;
    }
    *ret_settings = s;
    return 0;
}
