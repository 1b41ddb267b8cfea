/* Settings: one row each, checked when the plugin is loaded. */
#include "plugin_digits.h"

#include "../settings.h"

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
    const struct setting rows[] = {
        {"steps", &s.steps, NULL, 1, 100000000},
        {"batch", &s.batch, NULL, 1, DIGITS_TRAIN_ROWS},
        {"seed", &s.seed, NULL, 0, 1000000000},
        {"rate", NULL, &s.rate, 0, 10},
        {"momentum", NULL, &s.momentum, 0, 0.999},
        {"target", NULL, &s.target, 0, 1},
        {"slow_ms", &s.slow_ms, NULL, 0, 10000},
    };
    int rv = settings_take(node, rows, sizeof rows / sizeof rows[0], ret_error);

    if (rv == 0)
        *ret_settings = s;
    return rv;
}
