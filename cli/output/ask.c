#include "cli/output/ask.h"

#include "cli/resolve/spec.h"
#include "cli/verbs.h"
#include "node/discovery/route.h"
#include "node/node.h"
#include "resolver/spec/cluster.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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

/* One task at one address, which came from `origin`. */
static int add_asked(struct cmd_ask *ask, const char *type, int index, const char *given,
                     const char *origin, mu_error *error)
{
    mu_error inner;
    int rv = mu_cluster_add(ask->asked, type, index, given, &inner);

    if (rv != 0)
        return mu_error_set(error, rv, "%s: %s", origin, inner.message);
    ask->address = mu__cluster_url(ask->asked, type, index);
    return 0;
}

int cmd_ask_at(struct cmd_ask *ask, const char *type, int index, mu_error *error)
{
    char origin[CMD_ORIGIN_BYTES];

    return add_asked(ask, type, index, cmd_text(ask->options, CMD_FLAG_ADDRESS),
                     cmd_origin(ask->options, CMD_FLAG_ADDRESS, origin, sizeof origin),
                     error);
}

int cmd_ask_chief(struct cmd_ask *ask, mu_error *error)
{
    const char *listed = mu_cluster_address(ask->spec, "chief", 0);

    if (cmd_text(ask->options, CMD_FLAG_ADDRESS) != NULL)
        return cmd_ask_at(ask, "chief", 0, error);
    if (listed == NULL)
        return mu_error_set(error, -MU_EINVALID,
                            "there is no chief to ask: expected --address, or --cluster "
                            "or TF_CONFIG with a chief");
    return add_asked(ask, "chief", 0, listed, "cluster.chief", error);
}

/* A cluster spec is wanted even beside --address: it says who is missing. */
static int find_all(struct cmd_ask *ask, cmd_find_fn find, mu_error *error)
{
    int rv = cmd_spec_cluster(ask->options, error, &ask->spec);

    if (rv != 0)
        return rv;
    ask->asked = mu_cluster_new();
    if (ask->asked == NULL)
        return mu_error_set(error, -MU_ENOMEM, "out of memory");
    return find(ask, error);
}

static mu_node_options options_of(struct cmd_ask *ask, const char *route)
{
    const char *bind = cmd_text(ask->options, CMD_FLAG_BIND);
    mu_node_options options;

    mu_node_options_init(&options);
    options.cluster = ask->asked;
    options.cluster_name = cmd_text(ask->options, CMD_FLAG_CLUSTER_NAME);
    options.service_hosts = ask->hosts == NULL ? "none" : ask->hosts;
    options.task_type = "client";
    options.task_index = ask->own_index;
    options.bind_address = bind != NULL ? bind : route[0] == '\0' ? NULL : route;
    options.advertise_address = cmd_text(ask->options, CMD_FLAG_ADVERTISE);
    options.log = cmd_log_line;
    options.log_user = &ask->log;
    options.log_level = ask->log.level;
    return options;
}

/* Who is there is not known before it answers, so it is in no cluster. */
static int open_any(struct cmd_ask *ask, mu_node_options *options, mu_error *error)
{
    const struct mu__node_extra extra = {
        .dials_any = ask->address,
        .hosts = ask->hosts_any,
    };
    mu_cluster *none = mu_cluster_new();
    int rv;

    if (none == NULL)
        return mu_error_set(error, -MU_ENOMEM, "out of memory");
    options->cluster = none;
    rv = mu__node_open(options, &extra, error, &ask->node);
    mu_cluster_free(none);
    return rv;
}

static int ask_as_client(struct cmd_ask *ask, cmd_find_fn find, cmd_question_fn question,
                         mu_error *error)
{
    char route[MU__ROUTE_BYTES];
    mu_node_options options;
    int rv;

    if (find_all(ask, find, error) != 0)
        return CMD_USAGE;
    mu__route(ask->address, route);
    options = options_of(ask, route);
    rv = ask->hosts_any != NULL ? open_any(ask, &options, error)
                                : mu_node_open(&options, error, &ask->node);
    if (rv != 0)
        return rv == -MU_EINVALID ? CMD_USAGE : CMD_ADDRESS;
    rv = question(ask, error);
    (void)mu_node_close(ask->node, CLOSE_MS, NULL);
    return rv;
}

int cmd_ask_of(const struct cmd_options *options, cmd_find_fn find,
               cmd_question_fn question, void *user)
{
    struct cmd_ask ask = {
        .options = options,
        .user = user,
        .own_index = INDEX_FIRST + (int)(getpid() % INDEX_COUNT),
    };
    mu_error error = {.message = "out of memory"};
    int code = CMD_USAGE;

    if (cmd_log_open(options, &error, &ask.log) == 0) {
        if (options->values[CMD_FLAG_LOG_LEVEL].source == CMD_FROM_DEFAULT)
            ask.log.level = MU_LOG_ERROR;
        code = ask_as_client(&ask, find, question, &error);
        cmd_log_close(&ask.log);
    }
    if (code != CMD_FINE && error.message[0] != '\0')
        (void)fprintf(stderr, "muster %s: %s\n", options->verb->name, error.message);
    mu_cluster_free(ask.asked);
    mu_cluster_free(ask.spec);
    free(ask.hosts);
    return code;
}

int cmd_ask(const struct cmd_options *options, cmd_question_fn question)
{
    return cmd_ask_of(options, cmd_ask_chief, question, NULL);
}
