/* `muster resolve --list`: the resolvers and their settings. */
#include "cli/resolve/resolve.h"

#include "cli/output/print_json.h"
#include "cli/output/table.h"
#include "cli/verbs.h"
#include "resolver/engine/kind.h"
#include "resolver/kinds.h"

#include <stdio.h>

static void print_setting(const struct mu__setting_spec *spec)
{
    (void)printf("    %s", spec->name);
    if (spec->variable != NULL || spec->initial != NULL)
        (void)printf(" (%s%s%s%s)", spec->variable == NULL ? "" : spec->variable,
                     spec->variable == NULL || spec->initial == NULL ? "" : "; ",
                     spec->initial == NULL ? "" : "default ",
                     spec->initial == NULL ? "" : spec->initial);
    (void)printf(": %s\n", spec->help);
}

static void print_kind(const struct mu__resolver_kind *kind)
{
    (void)printf("%s: %s%s\n", kind->name, kind->summary,
                 kind->detect == NULL ? " (only by name)" : "");
    for (const struct mu__setting_spec *spec = kind->settings;
         spec != NULL && spec->name != NULL; spec++)
        print_setting(spec);
}

static cJSON *kind_json(const struct mu__resolver_kind *kind)
{
    cJSON *map = cJSON_CreateObject();
    cJSON *settings;

    cmd_json_add_text(map, "resolver", kind->name);
    cmd_json_add_text(map, "summary", kind->summary);
    (void)cJSON_AddBoolToObject(map, "detected", kind->detect != NULL);
    settings = cJSON_AddArrayToObject(map, "settings");
    for (const struct mu__setting_spec *spec = kind->settings;
         spec != NULL && spec->name != NULL; spec++) {
        cJSON *setting = cJSON_CreateObject();

        cmd_json_add_text(setting, "setting", spec->name);
        cmd_json_add_text(setting, "variable", spec->variable);
        cmd_json_add_text(setting, "default", spec->initial);
        cmd_json_add_text(setting, "help", spec->help);
        (void)cJSON_AddItemToArray(settings, setting);
    }
    return map;
}

int resolve_list(const struct cmd_options *options)
{
    cJSON *list;

    if (cmd_number(options, CMD_FLAG_RESOLVE_OUTPUT) != RESOLVE_JSON) {
        for (size_t i = 0; mu__resolver_kinds[i] != NULL; i++)
            print_kind(mu__resolver_kinds[i]);
        return CMD_FINE;
    }
    list = cJSON_CreateArray();
    for (size_t i = 0; mu__resolver_kinds[i] != NULL; i++)
        (void)cJSON_AddItemToArray(list, kind_json(mu__resolver_kinds[i]));
    return cmd_json_print(list) == 0 ? CMD_FINE : CMD_FAILED;
}

/* ---- the tables of docs/resolvers.md ---- */

static void print_row(const struct mu__resolver_kind *kind,
                      const struct mu__setting_spec *spec)
{
    (void)printf("| `%s` | `%s` | ", kind->name, spec->name);
    if (spec->variable != NULL)
        (void)printf("`%s`", spec->variable);
    (void)printf(" | ");
    if (spec->initial != NULL && spec->initial[0] != '\0')
        (void)printf("`%s`", spec->initial);
    (void)printf(" | ");
    cmd_print_cell(spec->help);
    (void)printf(" |\n");
}

void resolve_help(void)
{
    (void)printf("| resolver | by itself | where it looks |\n"
                 "| -------- | --------- | -------------- |\n");
    for (size_t i = 0; mu__resolver_kinds[i] != NULL; i++) {
        const struct mu__resolver_kind *kind = mu__resolver_kinds[i];

        (void)printf("| `%s` | %s | ", kind->name, kind->detect == NULL ? "no" : "yes");
        cmd_print_cell(kind->summary);
        (void)printf(" |\n");
    }
    (void)printf("\n| resolver | setting | variable | default | meaning |\n"
                 "| -------- | ------- | -------- | ------- | ------- |\n");
    for (size_t i = 0; mu__resolver_kinds[i] != NULL; i++)
        for (const struct mu__setting_spec *spec = mu__resolver_kinds[i]->settings;
             spec != NULL && spec->name != NULL; spec++)
            print_row(mu__resolver_kinds[i], spec);
}
