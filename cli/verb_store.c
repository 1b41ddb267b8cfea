/* `muster store ls` and `muster store clear`: the runs of a job in a store. They send
 * requests to the coordination service; with --store to a private service over that
 * store, hosted by a node in this process that accepts no other task. */
#include "cli/output/log.h"
#include "cli/output/print_json.h"
#include "cli/output/table.h"
#include "cli/service_client.h"
#include "cli/verbs.h"

#include "muster/admin.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CLOSE_MS = 1000 };

/* ---- list ---- */

static const char *time_of(const mu_value *run, const char *key, char out[32])
{
    time_t seconds = (time_t)(cmd_map_number(run, key) / 1000);
    struct tm parts;

    out[0] = '\0';
    if (seconds != 0 && gmtime_r(&seconds, &parts) != NULL)
        (void)strftime(out, 32, "%Y-%m-%d %H:%M:%SZ", &parts);
    return out;
}

static void run_row(struct cmd_table *table, const mu_value *run)
{
    char started[32];
    char ended[32];

    cmd_table_row(table);
    cmd_table_cell(table, 0, "%s%s", cmd_map_text(run, "name"),
                   cmd_map_bool(run, "present") ? " *" : "");
    cmd_table_cell(table, 1, "%s", time_of(run, "started_ms", started));
    cmd_table_cell(table, 2, "%s", time_of(run, "ended_ms", ended));
    cmd_table_cell(table, 3, "%s", cmd_map_text(run, "state"));
    if (!cmd_map_bool(run, "present"))
        return;
    cmd_table_cell(table, 4, "%" PRId64, cmd_map_number(run, "barriers"));
    cmd_table_cell(table, 5, "%s", cmd_map_bool(run, "preempted") ? "yes" : "no");
    cmd_table_cell(table, 6, "%" PRId64, cmd_map_number(run, "results"));
    cmd_table_cell(table, 7, "%" PRId64, cmd_map_number(run, "bytes"));
}

static void print_store_runs(const mu_value *store)
{
    const mu_value *runs = mu_value_find(store, "runs");
    struct cmd_table table;

    cmd_table_init(&table, "RUN|STARTED|ENDED|STATE|BARRIERS|PREEMPTED|RESULTS|BYTES");
    for (size_t i = 0; i < mu_value_count(runs); i++)
        run_row(&table, mu_value_at(runs, i));
    cmd_table_print(&table, "runs (*: the present one)");
    cmd_table_done(&table);
    for (size_t i = 0; i < mu_value_count(runs); i++) {
        const mu_value *run = mu_value_at(runs, i);

        if (cmd_map_text(run, "message")[0] != '\0')
            (void)printf("  %s: %s\n", cmd_map_text(run, "name"),
                         cmd_map_text(run, "message"));
    }
    (void)printf("keys of programs: %" PRId64 ", %" PRId64 " bytes; store %s\n",
                 cmd_map_number(store, "keys"), cmd_map_number(store, "bytes"),
                 cmd_map_text(store, "store"));
}

static int list_store_runs(struct cmd_client *client, mu_error *error)
{
    mu_value *runs;
    int rv = mu_runs_list(client->node, cmd_timeout_ms(client), error, &runs);
    int code = CMD_FINE;

    if (rv != 0)
        return cmd_exit_code(rv);
    if (!cmd_is_json(client))
        print_store_runs(runs);
    else if (cmd_json_print(cmd_json_value(runs)) != 0)
        code = CMD_FAILED;
    mu_value_free(runs);
    return code;
}

/* ---- clear ---- */

/* --run of the command line only: the environment variable names a host's own run. */
static const char *get_named_run(const struct cmd_options *o)
{
    return o->values[CMD_FLAG_RUN].source == CMD_FROM_LINE ? cmd_text(o, CMD_FLAG_RUN)
                                                           : "";
}

static unsigned get_clear_mask(const struct cmd_options *o)
{
    unsigned what = 0;

    if (cmd_number(o, CMD_FLAG_ENDED) == 1)
        what |= MU_RUNS_CLEAR_ENDED;
    if (cmd_number(o, CMD_FLAG_PRESENT) == 1)
        what |= MU_RUNS_CLEAR_PRESENT;
    if (cmd_number(o, CMD_FLAG_KEYS) == 1)
        what |= MU_RUNS_CLEAR_KEYS;
    return what == 0 && get_named_run(o)[0] == '\0' ? MU_RUNS_CLEAR_ENDED : what;
}

static int clear_store_runs(struct cmd_client *client, mu_error *error)
{
    uint64_t count;
    int rv = mu_runs_clear(client->node, get_named_run(client->options),
                           get_clear_mask(client->options), cmd_timeout_ms(client), error,
                           &count);
    cJSON *map;

    if (rv != 0)
        return cmd_exit_code(rv);
    if (!cmd_is_json(client)) {
        (void)printf("%" PRIu64 "\n", count);
        return CMD_FINE;
    }
    map = cJSON_CreateObject();
    cmd_json_add_int(map, "cleared", (int64_t)count);
    return cmd_json_print(map) == 0 ? CMD_FINE : CMD_FAILED;
}

/* ---- opening a store without its service ---- */

static bool is_store_offline(const struct cmd_options *o)
{
    return o->values[CMD_FLAG_STORE].source == CMD_FROM_LINE;
}

/* A file that is absent is an error: opening the store would create it. */
static int check_store_path(const char *store, mu_error *error)
{
    static const char journal[] = "journal:";
    const char *path = store + sizeof journal - 1;

    if (strncmp(store, journal, sizeof journal - 1) != 0 ||
        access(path, R_OK | W_OK) == 0)
        return 0;
    return mu_error_set(error, -MU_ENOTFOUND,
                        "store \"%s\": there is no such file, or it may not be read and "
                        "written",
                        store);
}

static int open_offline_store(struct cmd_client *client, mu_error *error)
{
    mu_node_options options;

    mu_node_options_init(&options);
    cmd_peer_options(client->options, &options);
    options.store = cmd_text(client->options, CMD_FLAG_STORE);
    options.log = cmd_log_line;
    options.log_user = &client->log;
    options.log_level = client->log.level;
    return mu_node_open_store(&options, error, &client->node);
}

static int request_of_store(struct cmd_client *client, cmd_request_fn request,
                            mu_error *error)
{
    const char *store = cmd_text(client->options, CMD_FLAG_STORE);
    mu_error why;
    int rv = check_store_path(store, error);

    if (rv != 0)
        return CMD_USAGE;
    rv = open_offline_store(client, error);
    if (rv != 0)
        return rv == -MU_EINVALID ? CMD_USAGE : CMD_ADDRESS;
    rv = mu_agent_register(client->node, 0, cmd_timeout_ms(client), &why);
    if (rv == 0)
        rv = request(client, error);
    else
        rv =
            cmd_exit_code(mu_error_set(error, rv,
                                       "store \"%s\" is held by a host of the "
                                       "service, which is to be asked instead, or is not "
                                       "there: %s",
                                       store, why.message));
    (void)mu_node_close(client->node, CLOSE_MS, NULL);
    return rv;
}

static int request_store(const struct cmd_options *options, cmd_request_fn request)
{
    struct cmd_client client = {.options = options};
    mu_error error = {.message = ""};
    int code = CMD_USAGE;

    if (!is_store_offline(options))
        return cmd_service_request(options, request);
    if (cmd_log_open_client(options, &error, &client.log) == 0) {
        code = request_of_store(&client, request, &error);
        cmd_log_close(&client.log);
    }
    if (code != CMD_FINE && error.message[0] != '\0')
        cmd_print_error(options->verb->name, error.message);
    return code;
}

int cmd_store_ls(struct cmd_options *options)
{
    return request_store(options, list_store_runs);
}

int cmd_store_clear(struct cmd_options *options)
{
    return request_store(options, clear_store_runs);
}
