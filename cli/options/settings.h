/* The settings for plugins of `muster node` and `muster run`: --set KEY=VALUE. */
#ifndef MUSTER_CLI_SETTINGS_H
#define MUSTER_CLI_SETTINGS_H

#include "cli/options/options.h"

/* One setting split in two: `ret_value` points into `text`, the caller frees `ret_key`.
 * -MU_EINVALID with the flag or variable that it comes from. */
int cli_setting_split(const struct cmd_options *options, const char *text,
                      mu_error *ret_error, char **ret_key, const char **ret_value);

/* Whether all of them can be split, before anything starts. */
int cli_settings_check(const struct cmd_options *options, mu_error *ret_error);

#endif
