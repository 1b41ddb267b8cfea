#include "cli/options/settings.h"

#include <stdlib.h>
#include <string.h>

int cli_setting_split(const struct cmd_options *options, const char *text,
                      mu_error *ret_error, char **ret_key, const char **ret_value)
{
    const char *equals = strchr(text, '=');
    char origin[64];

    if (equals == NULL || equals == text)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: expected KEY=VALUE, got \"%.200s\"",
                            cmd_origin(options, CMD_FLAG_SET, origin, sizeof origin),
                            text);
    *ret_value = equals + 1;
    *ret_key = strndup(text, (size_t)(equals - text));
    return *ret_key != NULL ? 0
                            : mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
}

int cli_settings_check(const struct cmd_options *options, mu_error *ret_error)
{
    const struct cmd_value *settings = &options->values[CMD_FLAG_SET];

    for (size_t i = 0; i < settings->items_count; i++) {
        const char *value;
        char *key;
        int rv = cli_setting_split(options, settings->items[i], ret_error, &key, &value);

        if (rv != 0)
            return rv;
        free(key);
    }
    return 0;
}
