/* The resolver tf_config: the environment variable TF_CONFIG. */
#include "resolver/engine/kind.h"
#include "runtime/base/text.h"

#include <string.h>

enum { VARIABLE };

static const struct mu__setting_spec settings_of[] = {
    MU__SETTING(VARIABLE, "variable", NULL, "TF_CONFIG", "the variable to read"),
    {.name = NULL},
};

static int detect_tf_config(const struct mu__pass *pass, mu_error *ret_why)
{
    return mu__variable_detect(pass->requests, mu__setting(pass, VARIABLE), ret_why);
}

void mu__resolution_set_config(mu_resolution *resolution, const mu_tf_config *config)
{
    resolution->cluster = config->cluster;
    resolution->task_index = config->task_index;
    resolution->master_fixed = config->session_master[0] != '\0';
    resolution->alone_has_no_master = 1;
    MU__COPY_TEXT(resolution->task_type, config->task_type);
    MU__COPY_TEXT(resolution->rpc_layer, config->rpc_layer);
    MU__COPY_TEXT(resolution->environment, config->environment);
    MU__COPY_TEXT(resolution->master, config->session_master);
}

/* Without the variable, as with {}, the process is alone. */
static int resolve_tf_config(const struct mu__pass *pass, mu_error *ret_error,
                             mu_resolution *ret_resolution)
{
    const char *text = mu__request_variable(pass->requests, mu__setting(pass, VARIABLE));
    mu_tf_config config;
    int rv;

    ret_resolution->alone_has_no_master = 1;
    if (text == NULL)
        return 0;
    rv = mu_tf_config_parse(text, strlen(text), ret_error, &config);
    if (rv == 0)
        mu__resolution_set_config(ret_resolution, &config);
    return rv;
}

const struct mu__resolver_kind mu__resolver_tf_config = {
    .name = "tf_config",
    .summary = "the variable TF_CONFIG, as TensorFlow's tools write it",
    .settings = settings_of,
    .detect = detect_tf_config,
    .resolve = resolve_tf_config,
};
