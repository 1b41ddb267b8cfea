#include "cli/options/options.h"
#include "cli/output/json.h"
#include "cli/verbs.h"

#include "muster.h"

#include <stdio.h>

int cmd_version(struct cmd_options *options)
{
    cJSON *map;

    if (cmd_number(options, CMD_FLAG_OUTPUT) == 0) {
        (void)printf("muster %s\n", mu_version());
        return CMD_FINE;
    }
    map = cJSON_CreateObject();
    (void)cJSON_AddStringToObject(map, "version", mu_version());
    return cmd_json_print(map) == 0 ? CMD_FINE : CMD_FAILED;
}
