/* `muster status`: prints the chief's status, with --watch each second. */
#include "cli/chief_client.h"
#include "cli/output/print_json.h"
#include "cli/output/table.h"
#include "cli/verbs.h"

#include "muster/coordination.h"
#include "muster/node.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    LINE_WIDTH = 88,
    MISSING_SHOWN = 100,
    WATCH_S = 1,
    HOST_TIMEOUT_MS = 200 /* timeout of registering, if the chief hosts the service */
};

static bool is_same_task(const mu_value *map, const char *type, int index)
{
    return strcmp(cmd_map_text(map, "type"), type) == 0 &&
           cmd_map_number(map, "index") == index;
}

/* ---- the list of tasks, completed by the chief and missing tasks ---- */

static mu_value *task_value(const char *type, int index, const char *address,
                            const char *state)
{
    mu_value *map = mu_value_map();

    (void)mu_value_set(map, "type", mu_value_string(type));
    (void)mu_value_set(map, "index", mu_value_int(index));
    (void)mu_value_set(map, "address", mu_value_string(address));
    (void)mu_value_set(map, "state", mu_value_string(state));
    return map;
}

static int compare_tasks(const void *a, const void *b)
{
    const mu_value *one = *(const mu_value *const *)a;
    const mu_value *two = *(const mu_value *const *)b;
    int types = strcmp(cmd_map_text(one, "type"), cmd_map_text(two, "type"));
    int64_t indices = cmd_map_number(one, "index") - cmd_map_number(two, "index");

    return types != 0 ? types : (indices > 0) - (indices < 0);
}

/* Sort by type, then index. Takes ownership of `list`. */
static mu_value *sort_tasks(mu_value *list)
{
    size_t count = mu_value_count(list);
    const mu_value **items = calloc(count + 1, sizeof *items);
    mu_value *sorted = items == NULL ? NULL : mu_value_list();

    for (size_t i = 0; items != NULL && i < count; i++)
        items[i] = mu_value_at(list, i);
    if (items != NULL)
        qsort(items, count, sizeof *items, compare_tasks);
    for (size_t i = 0; sorted != NULL && i < count; i++)
        (void)mu_value_append(sorted, mu_value_ref(items[i]));
    free(items);
    mu_value_free(list);
    return sorted;
}

/* Tasks by name: those in the list already, and for how long workers have been
 * missing. */
struct known {
    mu_value *listed;
    mu_value *missing_ms;
};

static void index_known_tasks(struct known *known, const mu_value *status,
                              const mu_value *list)
{
    const mu_value *missing = mu_value_find(status, "workers_missing");
    char name[CMD_TASK_BYTES];

    *known = (struct known){mu_value_map(), mu_value_map()};
    for (size_t i = 0; i < mu_value_count(list); i++) {
        const mu_value *task = mu_value_at(list, i);

        cmd_task_name(name, cmd_map_text(task, "type"),
                      (int)cmd_map_number(task, "index"));
        (void)mu_value_set(known->listed, name, mu_value_int(1));
    }
    for (size_t i = 0; i < mu_value_count(missing); i++) {
        const mu_value *one = mu_value_at(missing, i);

        (void)mu_value_set(known->missing_ms, cmd_map_text(one, "task"),
                           mu_value_int(cmd_map_number(one, "for_ms")));
    }
}

static void add_missing(struct known *known, mu_value *list, const char *type, int index,
                        const char *address)
{
    const mu_value *for_ms;
    mu_value *map;
    char name[CMD_TASK_BYTES];

    cmd_task_name(name, type, index);
    if (mu_value_find(known->listed, name) != NULL)
        return;
    map = task_value(type, index, address, "missing");
    for_ms = mu_value_find(known->missing_ms, name);
    if (for_ms != NULL)
        (void)mu_value_set(map, "for_ms", mu_value_ref(for_ms));
    (void)mu_value_append(list, map);
    (void)mu_value_set(known->listed, name, mu_value_int(1));
}

/* Add the tasks of the cluster spec, if it is known, and the workers that the chief waits
 * for. */
static void add_all_missing(const struct cmd_client *client, const mu_value *status,
                            mu_value *list)
{
    const mu_value *missing = mu_value_find(status, "workers_missing");
    struct known known;
    const char *type;
    const char *address;
    char own[16];
    int index;

    index_known_tasks(&known, status, list);
    for (size_t i = 0; mu_cluster_task_at(client->spec, i, &type, &index, &address) == 0;
         i++)
        if (strcmp(type, "client") != 0)
            add_missing(&known, list, type, index, address);
    for (size_t i = 0; i < mu_value_count(missing); i++)
        if (sscanf(cmd_map_text(mu_value_at(missing, i), "task"),
                   "/job:%15[a-z0-9_]/task:%d", own, &index) == 2)
            add_missing(&known, list, own, index, "");
    mu_value_free(known.listed);
    mu_value_free(known.missing_ms);
}

static mu_value *chief_value(const struct cmd_client *client, const mu_value *status)
{
    mu_value *map = task_value("chief", 0, client->address, "up");
    const mu_value *process = mu_value_find(status, "process");

    for (size_t i = 0; i < mu_value_count(process); i++)
        (void)mu_value_set(map, mu_value_key(process, i),
                           mu_value_ref(mu_value_at(process, i)));
    return map;
}

static mu_value *complete_tasks(const struct cmd_client *client, const mu_value *status)
{
    const mu_value *tasks = mu_value_find(status, "tasks");
    mu_value *list = mu_value_list();

    (void)mu_value_append(list, chief_value(client, status));
    for (size_t i = 0; i < mu_value_count(tasks); i++)
        if (!is_same_task(mu_value_at(tasks, i), "client", client->own_index))
            (void)mu_value_append(list, mu_value_ref(mu_value_at(tasks, i)));
    add_all_missing(client, status, list);
    return sort_tasks(list);
}

/* A copy of the status with all tasks; other items are shared. */
static mu_value *complete_status(const struct cmd_client *client, const mu_value *status)
{
    mu_value *map = mu_value_map();
    mu_value *service;

    (void)mu_value_set(map, "chief", mu_value_string(client->address));
    if (mu_agent_service(client->node, NULL, &service) == 0)
        (void)mu_value_set(map, "service", service);
    for (size_t i = 0; i < mu_value_count(status); i++) {
        const char *key = mu_value_key(status, i);

        (void)mu_value_set(map, key,
                           strcmp(key, "tasks") == 0
                               ? complete_tasks(client, status)
                               : mu_value_ref(mu_value_at(status, i)));
    }
    return map;
}

/* ---- tables ---- */

static void cell_count(struct cmd_table *table, unsigned column, const mu_value *map,
                       const char *key)
{
    if (mu_value_find(map, key) != NULL)
        cmd_table_cell(table, column, "%" PRId64, cmd_map_number(map, key));
}

static void cell_duration(struct cmd_table *table, unsigned column, const mu_value *map,
                          const char *key)
{
    char text[32];

    if (mu_value_find(map, key) != NULL)
        cmd_table_cell(table, column, "%s",
                       cmd_duration(cmd_map_number(map, key), text, sizeof text));
}

/* The state, and conditions such as "draining". */
static void cell_state(struct cmd_table *table, unsigned column, const mu_value *map)
{
    int64_t failures = cmd_map_number(map, "failures");
    char failing[48] = "";

    if (failures > 0)
        (void)snprintf(failing, sizeof failing, ", %" PRId64 " failures reported",
                       failures);
    cmd_table_cell(table, column, "%s%s%s%s", cmd_map_text(map, "state"),
                   cmd_map_bool(map, "building") ? ", building" : "",
                   cmd_map_bool(map, "draining") ? ", draining" : "", failing);
}

/* "1234 on rack7, 0.1.0" */
static void cell_process(struct cmd_table *table, unsigned column, const mu_value *map)
{
    const char *host = cmd_map_text(map, "host");
    const char *version = cmd_map_text(map, "version");

    if (mu_value_find(map, "pid") != NULL)
        cmd_table_cell(table, column, "%" PRId64 "%s%s%s%s", cmd_map_number(map, "pid"),
                       host[0] == '\0' ? "" : " on ", host,
                       version[0] == '\0' ? "" : ", ", version);
}

static void status_task_row(struct cmd_table *table, const mu_value *map)
{
    cmd_table_row(table);
    cmd_table_cell(table, 0, "/job:%s/task:%" PRId64, cmd_map_text(map, "type"),
                   cmd_map_number(map, "index"));
    cmd_table_cell(table, 1, "%s", cmd_map_text(map, "address"));
    cell_state(table, 2, map);
    cell_duration(table, 3, map, "for_ms");
    cell_count(table, 4, map, "in_flight");
    cell_count(table, 5, map, "abandoned");
    cell_count(table, 6, map, "finished");
    cell_count(table, 7, map, "failed");
    cell_process(table, 8, map);
}

/* Print all connected tasks, and the first MISSING_SHOWN missing ones. */
static void print_status_tasks(const mu_value *list)
{
    struct cmd_table table;
    size_t missing = 0;

    cmd_table_init(&table, "TASK|ADDRESS|STATE|FOR|IN FLIGHT|ABANDONED|FINISHED|FAILED|"
                           "PROCESS");
    for (size_t i = 0; i < mu_value_count(list); i++) {
        const mu_value *map = mu_value_at(list, i);

        if (strcmp(cmd_map_text(map, "state"), "missing") != 0 ||
            ++missing <= MISSING_SHOWN)
            status_task_row(&table, map);
    }
    if (missing > MISSING_SHOWN) {
        cmd_table_row(&table);
        cmd_table_cell(&table, 0, "and %zu more", missing - MISSING_SHOWN);
        cmd_table_cell(&table, 2, "missing");
    }
    cmd_table_print(&table, "tasks");
    cmd_table_done(&table);
}

static void closure_row(struct cmd_table *table, const mu_value *map)
{
    cmd_table_row(table);
    cmd_table_cell(table, 0, "%" PRId64, cmd_map_number(map, "closure"));
    cmd_table_cell(table, 1, "%s", cmd_map_text(map, "function"));
    cmd_table_cell(table, 2, "%s", cmd_map_text(map, "name"));
    cmd_table_cell(table, 3, "%s", cmd_map_text(map, "task"));
    cmd_table_cell(table, 4, "%" PRId64, cmd_map_number(map, "attempt"));
    cell_duration(table, 5, map, "for_ms");
}

static void per_worker_row(struct cmd_table *table, const mu_value *map)
{
    const char *function = cmd_map_text(map, "function");

    cmd_table_row(table);
    cell_count(table, 0, map, "number");
    cmd_table_cell(table, 1, "%s", function[0] == '\0' ? "(given values)" : function);
    cell_count(table, 2, map, "users");
    cell_count(table, 3, map, "failures");
}

static void metric_row(struct cmd_table *table, const mu_value *map)
{
    double number = 0;

    (void)mu_value_get_float(mu_value_find(map, "number"), &number);
    cmd_table_row(table);
    cmd_table_cell(table, 0, "%s", cmd_map_text(map, "name"));
    cmd_table_cell(table, 1, "%g", number);
    cmd_table_cell(table, 2, "%" PRId64, cmd_map_number(map, "step"));
    cell_duration(table, 3, map, "age_ms");
}

static void shard_row(struct cmd_table *table, int64_t ps, const mu_value *map)
{
    char shape[CMD_CELL_BYTES];

    cmd_table_row(table);
    cmd_table_cell(table, 0, "/job:ps/task:%" PRId64, ps);
    cmd_table_cell(table, 1, "%s", cmd_map_text(map, "name"));
    cmd_table_cell(table, 2, "%" PRId64 " of %" PRId64, cmd_map_number(map, "shard"),
                   cmd_map_number(map, "shards"));
    cmd_table_cell(table, 3, "%s", cmd_map_text(map, "dtype"));
    cmd_table_cell(table, 4, "%s",
                   cmd_shape(mu_value_find(map, "dims"), shape, sizeof shape));
    cell_count(table, 5, map, "bytes");
    cell_count(table, 6, map, "version");
}

/* The shards of a parameter server, one row each. */
static void server_row(struct cmd_table *table, const mu_value *map)
{
    const mu_value *shards = mu_value_find(map, "variables");

    for (size_t i = 0; i < mu_value_count(shards); i++) {
        const mu_value *shard = mu_value_at(shards, i);

        if (mu_value_find(shard, "left_out") != NULL) {
            cmd_table_row(table);
            cmd_table_cell(table, 0, "/job:ps/task:%" PRId64, cmd_map_number(map, "ps"));
            cmd_table_cell(table, 1, "and %" PRId64 " more",
                           cmd_map_number(shard, "left_out"));
        } else if (mu_value_find(shard, "table") != NULL) {
            cmd_table_row(table);
            cmd_table_cell(table, 0, "/job:ps/task:%" PRId64, cmd_map_number(map, "ps"));
            cmd_table_cell(table, 1, "table %s", cmd_map_text(shard, "table"));
            cmd_table_cell(table, 2, "%" PRId64 " rows", cmd_map_number(shard, "rows"));
        } else if (mu_value_find(shard, "clock") != NULL) {
            cmd_table_row(table);
            cmd_table_cell(table, 0, "/job:ps/task:%" PRId64, cmd_map_number(map, "ps"));
            cmd_table_cell(table, 1, "clock %s", cmd_map_text(shard, "clock"));
            cmd_table_cell(table, 2, "at step %" PRId64,
                           cmd_map_number(shard, "minimum"));
        } else {
            shard_row(table, cmd_map_number(map, "ps"), shard);
        }
    }
}

static void cell_seconds(struct cmd_table *table, unsigned column, const mu_value *map,
                         const char *key)
{
    double seconds = 0;

    (void)mu_value_get_float(mu_value_find(map, key), &seconds);
    cmd_table_cell(table, column, "%.4g s", seconds);
}

/* Print the timers that have measurements. */
static void print_timers(const mu_value *timers)
{
    struct cmd_table table;

    cmd_table_init(&table, "TIMER|COUNT|MEAN|LEAST|MOST|SUM");
    for (size_t i = 0; i < mu_value_count(timers); i++) {
        const mu_value *timer = mu_value_at(timers, i);

        if (cmd_map_number(timer, "count") == 0)
            continue;
        cmd_table_row(&table);
        cmd_table_cell(&table, 0, "%s", mu_value_key(timers, i));
        cell_count(&table, 1, timer, "count");
        cell_seconds(&table, 2, timer, "mean_s");
        cell_seconds(&table, 3, timer, "min_s");
        cell_seconds(&table, 4, timer, "max_s");
        cell_seconds(&table, 5, timer, "sum_s");
    }
    cmd_table_print(&table, "timers");
    cmd_table_done(&table);
}

/* Print "queued 5, in flight 4, ...", in lines of at most LINE_WIDTH. */
static void print_closures(const mu_value *closures)
{
    size_t count = mu_value_count(closures);
    int at = 1;

    (void)printf("\nclosures\n ");
    for (size_t i = 0; i < count; i++) {
        const char *key = mu_value_key(closures, i);
        char text[CMD_CELL_BYTES];
        int length = snprintf(text, sizeof text, " %s %" PRId64 "%s", key,
                              cmd_map_number(closures, key), i + 1 < count ? "," : "");

        for (char *c = text; *c != '\0'; c++)
            *c = *c == '_' ? ' ' : *c;
        if (at + length > LINE_WIDTH) {
            (void)printf("\n ");
            at = 1;
        }
        (void)printf("%s", text);
        at += length;
    }
    (void)printf("\n");
}

static void print_service(const mu_value *service)
{
    const char *task = cmd_map_text(service, "task");

    if (task[0] != '\0')
        (void)printf("coordination service on %s, epoch %" PRId64 "\n", task,
                     cmd_map_number(service, "epoch"));
}

/* Of a chief that is still reading it. */
static void print_journal(const mu_value *journal)
{
    const char *error = cmd_map_text(journal, "error");
    int64_t bytes = cmd_map_number(journal, "bytes");
    int64_t read = cmd_map_number(journal, "read_bytes");

    if (journal == NULL)
        return;
    if (error[0] != '\0')
        (void)printf("the journal cannot be used: %s\n", error);
    else
        (void)printf("starts: %" PRId64 " %% of the journal's %" PRId64 " bytes are "
                     "read; closures wait until all are\n",
                     bytes == 0 ? 100 : read * 100 / bytes, bytes);
}

static bool holds_partitions(const mu_value *server)
{
    return cmd_map_number(server, "primary") + cmd_map_number(server, "backup") +
               cmd_map_number(server, "learner") >
           0;
}

/* What is not as it should be of a server's partitions. */
static void print_server_partitions(const mu_value *server)
{
    const struct {
        int64_t count;
        const char *words;
    } rows[] = {
        {cmd_map_bool(server, "up") ? 0 : cmd_map_number(server, "primary"),
         "wait for it"},
        {cmd_map_number(server, "degraded"), "have no backup"},
        {cmd_map_number(server, "learner"), "are being copied to it"},
        {cmd_map_number(server, "lost"), "were lost with it"},
        {cmd_map_bool(server, "draining")
             ? cmd_map_number(server, "primary") + cmd_map_number(server, "backup")
             : 0,
         "leave it, as it is drained"},
    };
    bool is_first = true;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].count == 0)
            continue;
        if (is_first)
            (void)printf("  /job:ps/task:%" PRId64 ": ", cmd_map_number(server, "ps"));
        (void)printf("%s%" PRId64 " %s", is_first ? "" : ", ", rows[i].count,
                     rows[i].words);
        is_first = false;
    }
    if (!is_first)
        (void)printf("\n");
}

/* "256 partitions on 3 servers, each with a backup", and what is not as it should be. */
static void print_partitions(const mu_value *partitions)
{
    const mu_value *servers = mu_value_find(partitions, "servers");
    int64_t placed = cmd_map_number(partitions, "placed");
    int64_t degraded = cmd_map_number(partitions, "degraded");
    int64_t moving = cmd_map_number(partitions, "moving");
    size_t holders = 0;

    if (placed == 0)
        return;
    for (size_t i = 0; i < mu_value_count(servers); i++)
        holders += holds_partitions(mu_value_at(servers, i));
    (void)printf("%" PRId64 " partitions on %zu server%s, ", placed, holders,
                 holders == 1 ? "" : "s");
    if (cmd_map_number(partitions, "backups") == 0)
        (void)printf("without backups\n");
    else if (degraded == 0)
        (void)printf("each with a backup\n");
    else
        (void)printf("%" PRId64 " without a backup, of which %" PRId64
                     " are being copied\n",
                     degraded, cmd_map_number(partitions, "filling"));
    if (moving > 0)
        (void)printf("  %" PRId64 " are being moved\n", moving);
    for (size_t i = 0; i < mu_value_count(servers); i++)
        print_server_partitions(mu_value_at(servers, i));
}

static void print_status_text(const mu_value *status)
{
    int64_t silent = cmd_map_number(status, "servers_missing");
    bool insecure = cmd_map_bool(status, "insecure");

    (void)printf("chief at %s%s\n", cmd_map_text(status, "chief"),
                 insecure ? ", insecure: nothing is encrypted" : "");
    print_service(mu_value_find(status, "service"));
    print_journal(mu_value_find(status, "journal"));
    print_partitions(mu_value_find(status, "partitions"));
    print_status_tasks(mu_value_find(status, "tasks"));
    print_closures(mu_value_find(status, "closures"));
    cmd_table_print_list(mu_value_find(status, "in_flight"),
                         "longest in flight, of each worker",
                         "CLOSURE|FUNCTION|NAME|TASK|ATTEMPT|FOR", closure_row);
    cmd_table_print_list(mu_value_find(status, "per_worker"), "per-worker values",
                         "VALUE|FUNCTION|USERS|FAILURES", per_worker_row);
    cmd_table_print_list(mu_value_find(status, "variables"), "variables",
                         "TASK|VARIABLE|SHARD|DTYPE|DIMS|BYTES|VERSION", server_row);
    cmd_table_print_list(mu_value_find(status, "metrics"), "metrics",
                         "NAME|NUMBER|STEP|AGE", metric_row);
    print_timers(mu_value_find(status, "timers"));
    if (silent > 0)
        (void)printf("\n%" PRId64 " parameter server%s did not answer in time\n", silent,
                     silent == 1 ? "" : "s");
}

static bool is_status_watched(const struct cmd_client *client)
{
    return cmd_number(client->options, CMD_FLAG_STATUS_WATCH) == 1;
}

static int print_status_json(const struct cmd_client *client, const mu_value *status)
{
    if (status == NULL)
        return -MU_ENOMEM;
    return is_status_watched(client) ? cmd_json_line(cmd_json_value(status))
                                     : cmd_json_print(cmd_json_value(status));
}

static int print_status(const struct cmd_client *client, const mu_value *answer)
{
    mu_value *status = complete_status(client, answer);
    int rv = 0;

    if (cmd_is_json(client))
        rv = print_status_json(client, status);
    else
        print_status_text(status);
    mu_value_free(status);
    return rv == 0 && fflush(stdout) == 0 ? CMD_FINE : CMD_FAILED;
}

/* ---- watching ---- */

/* Text replaces what a terminal shows; elsewhere an empty line separates it from what was
 * printed before. */
static void begin_text(bool is_first)
{
    if (isatty(STDOUT_FILENO))
        (void)printf("\033[H\033[2J");
    else if (!is_first)
        (void)printf("\n");
}

/* Print the status each second, until a signal comes or the chief does not answer. */
static int watch_status(struct cmd_client *client, const sigset_t *signals,
                        mu_error *error)
{
    const struct timespec pause = {.tv_sec = WATCH_S};
    int code = CMD_FINE;

    while (code == CMD_FINE) {
        int number = sigtimedwait(signals, NULL, &pause);
        mu_value *status = NULL;
        int rv;

        if (number > 0) {
            error->message[0] = '\0';
            return CMD_SIGNAL + number;
        }
        rv = mu_node_status(client->node, cmd_timeout_ms(client), error, &status);
        if (rv != 0)
            return cmd_exit_code(rv);
        if (!cmd_is_json(client))
            begin_text(false);
        code = print_status(client, status);
        mu_value_free(status);
    }
    return code;
}

/* ---- the verb ---- */

/* If the chief hosts the coordination service, this client's agent registers there, and
 * must leave, or it would count as a lost task. Whether the chief hosts it is not known
 * before. */
static int request_status(struct cmd_client *client, mu_error *error)
{
    mu_value *status = NULL;
    int rv = mu_node_status(client->node, cmd_timeout_ms(client), error, &status);
    sigset_t signals;
    bool joined;
    int code;

    if (rv != 0)
        return cmd_exit_code(rv);
    if (is_status_watched(client))
        cmd_block_signals(&signals);
    joined = mu_agent_register(client->node, 0, HOST_TIMEOUT_MS, NULL) == 0;
    if (is_status_watched(client) && !cmd_is_json(client))
        begin_text(true);
    code = print_status(client, status);
    mu_value_free(status);
    if (is_status_watched(client) && code == CMD_FINE)
        code = watch_status(client, &signals, error);
    if (joined)
        (void)mu_agent_leave(client->node, CMD_LEAVE_MS, NULL);
    return code;
}

/* Target the chief, as the likely host of the coordination service. */
static int find_chief(struct cmd_client *client, mu_error *error)
{
    int rv = cmd_target_chief(client, error);

    if (rv == 0)
        client->hosts = strdup("chief:0");
    return rv;
}

int cmd_status(struct cmd_options *options)
{
    return cmd_with_client(options, find_chief, request_status, NULL);
}
