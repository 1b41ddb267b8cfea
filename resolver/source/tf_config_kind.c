/* The resolver tf_config: the environment variable TF_CONFIG. */
#include "resolver/engine/kind.h"

#include <stdio.h>
#include <string.h>

enum { VARIABLE };

static const struct mu__setting_spec settings_of[] = {
    MU__SETTING(VARIABLE, "variable", NULL, "TF_CONFIG", "the variable to read"),
    {.name = NULL},
};

static int detect(struct mu__requests *requests, const struct mu__settings *settings,
                  mu_error *ret_why)
{
    return mu__variable_detect(requests, mu__setting(requests, settings, VARIABLE),
                               ret_why);
}

/* Absent is as good as {}: a process that is alone. */
static int resolve(struct mu__requests *requests, const struct mu__settings *settings,
                   mu_error *ret_error, mu_resolution *ret_resolution)
{
    const char *text =
        mu__request_variable(requests, mu__setting(requests, settings, VARIABLE));
    mu_tf_config config;
    int rv;

    ret_resolution->alone_has_no_master = 1;
    if (text == NULL)
        return 0;
    rv = mu_tf_config_parse(text, strlen(text), ret_error, &config);
    if (rv != 0)
        return rv;
    ret_resolution->cluster = config.cluster;
    ret_resolution->task_index = config.task_index;
    ret_resolution->master_fixed = config.session_master[0] != '\0';
    (void)snprintf(ret_resolution->task_type, sizeof ret_resolution->task_type, "%s",
                   config.task_type);
    (void)snprintf(ret_resolution->rpc_layer, sizeof ret_resolution->rpc_layer, "%s",
                   config.rpc_layer);
    (void)snprintf(ret_resolution->environment, sizeof ret_resolution->environment, "%s",
                   config.environment);
    (void)snprintf(ret_resolution->master, sizeof ret_resolution->master, "%s",
                   config.session_master);
    return 0;
}

const struct mu__resolver_kind mu__resolver_tf_config = {
    .name = "tf_config",
    .summary = "the variable TF_CONFIG, as TensorFlow's tools write it",
    .settings = settings_of,
    .detect = detect,
    .resolve = resolve,
};
