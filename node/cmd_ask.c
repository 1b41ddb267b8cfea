#include "node/cmd_ask.h"

#include "node/cmd.h"
#include "node/cmd_spec.h"
#include "node/route.h"
#include "resolver/cluster.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum {
    INDEX_FIRST = 100000,   /* of our client: far above those of real ones */
    INDEX_COUNT = 900000,
    CLOSE_MS = 500
};

/* ---- answers ---- */

int64_t cmd_map_number(const mu_value *map, const char *key)
{
    int64_t number = 0;

    (void)mu_value_get_int(mu_value_find(map, key), &number);
    return number;
}

bool cmd_map_truth(const mu_value *map, const char *key)
{
    int truth = 0;

    (void)mu_value_get_bool(mu_value_find(map, key), &truth);
    return truth != 0;
}

const char *cmd_map_text(const mu_value *map, const char *key)
{
    const char *text = "";
    size_t size;

    (void)mu_value_get_string(mu_value_find(map, key), &text, &size);
    return text;
}

const char *cmd_duration(int64_t ms, char *out, size_t size)
{
    if (ms < 10000)
        (void)snprintf(out, size, "%" PRId64 " ms", ms);
    else if (ms < 600000)
        (void)snprintf(out, size, "%" PRId64 " s", ms / 1000);
    else
        (void)snprintf(out, size, "%" PRId64 " min", ms / 60000);
    return out;
}

int cmd_ask_code(int code)
{
    if (code == 0)
        return CMD_FINE;
    return code == -MU_EDEADLINE || code == -MU_EUNAVAILABLE ? CMD_UNREACHED : CMD_FAILED;
}

/* ---- asking ---- */

/* Whom to ask. A cluster spec is wanted even beside --address: it says who is missing. */
static int find_chief(struct cmd_ask *ask, mu_error *error)
{
    const char *given = cmd_text(ask->options, CMD_FLAG_ADDRESS);
    char origin[64];
    mu_error inner;
    int rv = cmd_spec_cluster(ask->options, error, &ask->spec);

    if (rv != 0)
        return rv;
    ask->chief = mu_cluster_new();
    if (ask->chief == NULL)
        return mu_error_set(error, -MU_ENOMEM, "out of memory");
    if (given == NULL && mu_cluster_address(ask->spec, "chief", 0) == NULL)
        return mu_error_set(error, -MU_EINVALID,
                            "there is no chief to ask: expected --address, or --cluster "
                            "or TF_CONFIG with a chief");
    if (given == NULL) {
        given = mu_cluster_address(ask->spec, "chief", 0);
        (void)snprintf(origin, sizeof origin, "cluster.chief");
    } else {
        (void)cmd_origin(ask->options, CMD_FLAG_ADDRESS, origin, sizeof origin);
    }
    rv = mu_cluster_add(ask->chief, "chief", 0, given, &inner);
    if (rv != 0)
        return mu_error_set(error, rv, "%s: %s", origin, inner.message);
    ask->address = mu__cluster_url(ask->chief, "chief", 0);
    return 0;
}

static mu_node_options options_of(struct cmd_ask *ask, const char *route)
{
    const char *bind = cmd_text(ask->options, CMD_FLAG_BIND);
    mu_node_options options;

    mu_node_options_init(&options);
    options.cluster = ask->chief;
    options.cluster_name = cmd_text(ask->options, CMD_FLAG_CLUSTER_NAME);
    options.task_type = "client";
    options.task_index = ask->own_index;
    options.bind_address = bind != NULL ? bind : route[0] == '\0' ? NULL : route;
    options.advertise_address = cmd_text(ask->options, CMD_FLAG_ADVERTISE);
    options.log = cmd_log_line;
    options.log_user = &ask->log;
    options.log_level = ask->log.level;
    return options;
}

static int ask_as_client(struct cmd_ask *ask, mu_error *error,
                         int (*question)(struct cmd_ask *ask, mu_error *error))
{
    char route[MU__ROUTE_BYTES];
    mu_node_options options;
    int rv;

    if (find_chief(ask, error) != 0)
        return CMD_USAGE;
    mu__route(ask->address, route);
    options = options_of(ask, route);
    rv = mu_node_open(&options, error, &ask->node);
    if (rv != 0)
        return rv == -MU_EINVALID ? CMD_USAGE : CMD_ADDRESS;
    rv = question(ask, error);
    (void)mu_node_close(ask->node, CLOSE_MS, NULL);
    return rv;
}

int cmd_ask(const struct cmd_options *options,
            int (*question)(struct cmd_ask *ask, mu_error *error))
{
    struct cmd_ask ask = {
        .options = options,
        .own_index = INDEX_FIRST + (int)(getpid() % INDEX_COUNT),
    };
    mu_error error = {.message = "out of memory"};
    int code = CMD_USAGE;

    if (cmd_log_open(options, &error, &ask.log) == 0) {
        if (options->values[CMD_FLAG_LOG_LEVEL].source == CMD_FROM_DEFAULT)
            ask.log.level = MU_LOG_ERROR;
        code = ask_as_client(&ask, &error, question);
        cmd_log_close(&ask.log);
    }
    if (code != CMD_FINE)
        (void)fprintf(stderr, "muster %s: %s\n", options->verb->name, error.message);
    mu_cluster_free(ask.chief);
    mu_cluster_free(ask.spec);
    return code;
}
