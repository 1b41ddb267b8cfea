/* `muster resolve --list`: the resolvers and their settings. */
#include "cli/resolve/resolve.h"

#include "cli/chief_client.h"
#include "cli/output/print_json.h"
#include "cli/output/table.h"
#include "cli/verbs.h"

#include <stdio.h>

static void print_setting(const mu_value *setting)
{
    const char *variable = cmd_map_text(setting, "variable");
    const mu_value *initial = mu_value_find(setting, "default");

    (void)printf("    %s", cmd_map_text(setting, "setting"));
    if (variable[0] != '\0' || initial != NULL)
        (void)printf(" (%s%s%s%s)", variable,
                     variable[0] == '\0' || initial == NULL ? "" : "; ",
                     initial == NULL ? "" : "default ", cmd_map_text(setting, "default"));
    (void)printf(": %s\n", cmd_map_text(setting, "help"));
}

static void print_kind(const mu_value *kind)
{
    const mu_value *settings = mu_value_find(kind, "settings");

    (void)printf("%s: %s%s\n", cmd_map_text(kind, "resolver"),
                 cmd_map_text(kind, "summary"),
                 cmd_map_bool(kind, "detected") ? "" : " (only by name)");
    for (size_t i = 0; i < mu_value_count(settings); i++)
        print_setting(mu_value_at(settings, i));
}

int resolve_list(const struct cmd_options *options)
{
    mu_value *kinds = mu_resolver_list();
    int rv = kinds == NULL ? -MU_ENOMEM : 0;

    if (cmd_number(options, CMD_FLAG_RESOLVE_OUTPUT) == RESOLVE_JSON && rv == 0)
        rv = cmd_json_print(cmd_json_value(kinds));
    else
        for (size_t i = 0; i < mu_value_count(kinds); i++)
            print_kind(mu_value_at(kinds, i));
    mu_value_free(kinds);
    return rv == 0 ? CMD_FINE : CMD_FAILED;
}

/* ---- the tables of docs/resolvers.md ---- */

static void print_setting_row(const mu_value *kind, const mu_value *setting)
{
    const char *variable = cmd_map_text(setting, "variable");
    const char *initial = cmd_map_text(setting, "default");

    (void)printf("| `%s` | `%s` | ", cmd_map_text(kind, "resolver"),
                 cmd_map_text(setting, "setting"));
    if (variable[0] != '\0')
        (void)printf("`%s`", variable);
    (void)printf(" | ");
    if (initial[0] != '\0')
        (void)printf("`%s`", initial);
    (void)printf(" | ");
    cmd_print_cell(cmd_map_text(setting, "help"));
    (void)printf(" |\n");
}

void resolve_help(void)
{
    mu_value *kinds = mu_resolver_list();

    (void)printf("| resolver | by itself | where it looks |\n"
                 "| -------- | --------- | -------------- |\n");
    for (size_t i = 0; i < mu_value_count(kinds); i++) {
        const mu_value *kind = mu_value_at(kinds, i);

        (void)printf("| `%s` | %s | ", cmd_map_text(kind, "resolver"),
                     cmd_map_bool(kind, "detected") ? "yes" : "no");
        cmd_print_cell(cmd_map_text(kind, "summary"));
        (void)printf(" |\n");
    }
    (void)printf("\n| resolver | setting | variable | default | meaning |\n"
                 "| -------- | ------- | -------- | ------- | ------- |\n");
    for (size_t i = 0; i < mu_value_count(kinds); i++) {
        const mu_value *kind = mu_value_at(kinds, i);
        const mu_value *settings = mu_value_find(kind, "settings");

        for (size_t j = 0; j < mu_value_count(settings); j++)
            print_setting_row(kind, mu_value_at(settings, j));
    }
    mu_value_free(kinds);
}
