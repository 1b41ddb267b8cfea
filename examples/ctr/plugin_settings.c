/* Settings: one row each, checked when the plugin is loaded. */
#include "plugin_ctr.h"

#include "../settings.h"

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
    const struct setting rows[] = {
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
    int rv = settings_take(node, rows, sizeof rows / sizeof rows[0], ret_error);

    if (rv == 0)
        *ret_settings = s;
    return rv;
}
