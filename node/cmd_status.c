/* `muster status`: asks the chief, as a client of its own, and prints what it says. */
#include "node/cmd.h"
#include "node/cmd_json.h"
#include "node/cmd_log.h"
#include "node/cmd_route.h"
#include "node/cmd_spec.h"
#include "node/cmd_table.h"
#include "resolver/cluster.h"

#include "muster/node.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    INDEX_FIRST = 100000,   /* of our client: far above those of real ones */
    INDEX_COUNT = 900000,
    CLOSE_MS = 500
};

struct question {
    const struct cmd_options *options;
    struct cmd_log log;
    mu_cluster *spec;       /* the whole cluster, NULL when unknown */
    mu_cluster *chief;      /* the chief alone */
    const char *address;
    int own_index;
    mu_value *status;
};

/* ---- reading the status ---- */

static int64_t number_of(const mu_value *map, const char *key)
{
    int64_t number = 0;

    (void)mu_value_get_int(mu_value_find(map, key), &number);
    return number;
}

static const char *text_of(const mu_value *map, const char *key)
{
    const char *text = "";
    size_t size;

    (void)mu_value_get_string(mu_value_find(map, key), &text, &size);
    return text;
}

static bool is_task(const mu_value *map, const char *type, int index)
{
    return strcmp(text_of(map, "type"), type) == 0 && number_of(map, "index") == index;
}

/* ---- completing it: the chief itself, without us, and who is missing ---- */

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

static bool has_task(const mu_value *list, const char *type, int index)
{
    for (size_t i = 0; i < mu_value_count(list); i++)
        if (is_task(mu_value_at(list, i), type, index))
            return true;
    return false;
}

static int compare_tasks(const void *a, const void *b)
{
    const mu_value *one = *(const mu_value *const *)a;
    const mu_value *two = *(const mu_value *const *)b;
    int types = strcmp(text_of(one, "type"), text_of(two, "type"));
    int64_t indices = number_of(one, "index") - number_of(two, "index");

    return types != 0 ? types : (indices > 0) - (indices < 0);
}

/* By type, then index. Takes `list`. */
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

static mu_value *complete_tasks(const struct question *q, const mu_value *tasks)
{
    mu_value *list = mu_value_list();
    const char *type;
    const char *address;
    int index;

    (void)mu_value_append(list, task_value("chief", 0, q->address, "up"));
    for (size_t i = 0; i < mu_value_count(tasks); i++)
        if (!is_task(mu_value_at(tasks, i), "client", q->own_index))
            (void)mu_value_append(list, mu_value_ref(mu_value_at(tasks, i)));
    for (size_t i = 0; mu_cluster_task_at(q->spec, i, &type, &index, &address) == 0; i++)
        if (strcmp(type, "client") != 0 && !has_task(list, type, index))
            (void)mu_value_append(list, task_value(type, index, address, "missing"));
    return sort_tasks(list);
}

/* A copy with the tasks completed; the rest is shared. */
static mu_value *complete_status(const struct question *q)
{
    mu_value *map = mu_value_map();

    (void)mu_value_set(map, "chief", mu_value_string(q->address));
    for (size_t i = 0; i < mu_value_count(q->status); i++) {
        const char *key = mu_value_key(q->status, i);
        const mu_value *item = mu_value_at(q->status, i);

        (void)mu_value_set(map, key,
                           strcmp(key, "tasks") == 0 ? complete_tasks(q, item)
                                                     : mu_value_ref(item));
    }
    return map;
}

/* ---- tables ---- */

static void cell_count(struct cmd_table *table, unsigned column, const mu_value *map,
                       const char *key)
{
    if (mu_value_find(map, key) != NULL)
        cmd_table_cell(table, column, "%" PRId64, number_of(map, key));
}

static void cell_duration(struct cmd_table *table, unsigned column, const mu_value *map,
                          const char *key)
{
    int64_t ms = number_of(map, key);

    if (mu_value_find(map, key) == NULL)
        return;
    if (ms < 10000)
        cmd_table_cell(table, column, "%" PRId64 " ms", ms);
    else if (ms < 600000)
        cmd_table_cell(table, column, "%" PRId64 " s", ms / 1000);
    else
        cmd_table_cell(table, column, "%" PRId64 " min", ms / 60000);
}

static void task_row(struct cmd_table *table, const mu_value *map)
{
    cmd_table_row(table);
    cmd_table_cell(table, 0, "/job:%s/task:%" PRId64, text_of(map, "type"),
                   number_of(map, "index"));
    cmd_table_cell(table, 1, "%s", text_of(map, "address"));
    cmd_table_cell(table, 2, "%s", text_of(map, "state"));
    cell_duration(table, 3, map, "for_ms");
    cell_count(table, 4, map, "in_flight");
    cell_count(table, 5, map, "finished");
    cell_count(table, 6, map, "failed");
}

static void closure_row(struct cmd_table *table, const mu_value *map)
{
    cmd_table_row(table);
    cmd_table_cell(table, 0, "%" PRIx64, (uint64_t)number_of(map, "closure"));
    cmd_table_cell(table, 1, "%s", text_of(map, "function"));
    cmd_table_cell(table, 2, "%s", text_of(map, "task"));
    cmd_table_cell(table, 3, "%" PRId64, number_of(map, "attempt"));
    cell_duration(table, 4, map, "for_ms");
}

static void metric_row(struct cmd_table *table, const mu_value *map)
{
    double number = 0;

    (void)mu_value_get_float(mu_value_find(map, "number"), &number);
    cmd_table_row(table);
    cmd_table_cell(table, 0, "%s", text_of(map, "name"));
    cmd_table_cell(table, 1, "%g", number);
    cmd_table_cell(table, 2, "%" PRId64, number_of(map, "step"));
    cell_duration(table, 3, map, "age_ms");
}

static void shard_row(struct cmd_table *table, int64_t ps, const mu_value *map)
{
    const mu_value *dims = mu_value_find(map, "dims");
    char text[CMD_CELL_BYTES] = "";
    size_t used = 0;

    for (size_t i = 0; i < mu_value_count(dims) && used < sizeof text; i++) {
        int64_t dim = 0;

        (void)mu_value_get_int(mu_value_at(dims, i), &dim);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%" PRId64,
                                 i == 0 ? "" : "x", dim);
    }
    cmd_table_row(table);
    cmd_table_cell(table, 0, "/job:ps/task:%" PRId64, ps);
    cmd_table_cell(table, 1, "%s", text_of(map, "name"));
    cmd_table_cell(table, 2, "%" PRId64 " of %" PRId64, number_of(map, "shard"),
                   number_of(map, "shards"));
    cmd_table_cell(table, 3, "%s", text_of(map, "dtype"));
    cmd_table_cell(table, 4, "%s", text);
    cell_count(table, 5, map, "bytes");
    cell_count(table, 6, map, "version");
}

/* A server's part: one row for each shard that it has. */
static void server_row(struct cmd_table *table, const mu_value *map)
{
    const mu_value *shards = mu_value_find(map, "variables");

    for (size_t i = 0; i < mu_value_count(shards); i++) {
        const mu_value *shard = mu_value_at(shards, i);

        if (mu_value_find(shard, "left_out") != NULL) {
            cmd_table_row(table);
            cmd_table_cell(table, 0, "/job:ps/task:%" PRId64, number_of(map, "ps"));
            cmd_table_cell(table, 1, "and %" PRId64 " more",
                           number_of(shard, "left_out"));
        } else {
            shard_row(table, number_of(map, "ps"), shard);
        }
    }
}

static void print_list(const mu_value *list, const char *title, const char *heads,
                       void (*row)(struct cmd_table *table, const mu_value *map))
{
    struct cmd_table table;

    cmd_table_init(&table, heads);
    for (size_t i = 0; i < mu_value_count(list); i++)
        row(&table, mu_value_at(list, i));
    cmd_table_print(&table, title);
    cmd_table_done(&table);
}

static void print_closures(const mu_value *closures)
{
    (void)printf("\nclosures\n ");
    for (size_t i = 0; i < mu_value_count(closures); i++) {
        const char *key = mu_value_key(closures, i);

        (void)printf(" %s %" PRId64 "%s", key, number_of(closures, key),
                     i + 1 < mu_value_count(closures) ? "," : "\n");
    }
}

static void print_text(const mu_value *status)
{
    (void)printf("chief at %s\n", text_of(status, "chief"));
    print_list(mu_value_find(status, "tasks"), "tasks",
               "TASK|ADDRESS|STATE|FOR|IN FLIGHT|FINISHED|FAILED", task_row);
    print_closures(mu_value_find(status, "closures"));
    print_list(mu_value_find(status, "in_flight"), "longest in flight, of each worker",
               "CLOSURE|FUNCTION|TASK|ATTEMPT|FOR", closure_row);
    print_list(mu_value_find(status, "variables"), "variables",
               "TASK|VARIABLE|SHARD|DTYPE|DIMS|BYTES|VERSION", server_row);
    print_list(mu_value_find(status, "metrics"), "metrics", "NAME|NUMBER|STEP|AGE",
               metric_row);
    if (number_of(status, "servers_missing") > 0)
        (void)printf("\n%" PRId64 " parameter servers did not answer in time\n",
                     number_of(status, "servers_missing"));
}

static int print_status(const struct question *q)
{
    mu_value *status = complete_status(q);
    int rv = 0;

    if (cmd_number(q->options, CMD_FLAG_OUTPUT) == 1)
        rv = status == NULL ? -MU_ENOMEM : cmd_json_print(cmd_json_value(status));
    else
        print_text(status);
    mu_value_free(status);
    return rv == 0 ? CMD_FINE : CMD_FAILED;
}

/* ---- asking ---- */

/* Whom to ask. A cluster spec is wanted even beside --address: it says who is missing. */
static int find_chief(struct question *q, mu_error *error)
{
    const char *given = cmd_text(q->options, CMD_FLAG_ADDRESS);
    char origin[64];
    mu_error inner;
    int rv = cmd_spec_cluster(q->options, error, &q->spec);

    if (rv != 0)
        return rv;
    q->chief = mu_cluster_new();
    if (q->chief == NULL)
        return mu_error_set(error, -MU_ENOMEM, "out of memory");
    if (given == NULL && mu_cluster_address(q->spec, "chief", 0) == NULL)
        return mu_error_set(error, -MU_EINVALID,
                            "there is no chief to ask: expected --address, or --cluster "
                            "or TF_CONFIG with a chief");
    if (given == NULL) {
        given = mu_cluster_address(q->spec, "chief", 0);
        (void)snprintf(origin, sizeof origin, "cluster.chief");
    } else {
        (void)cmd_origin(q->options, CMD_FLAG_ADDRESS, origin, sizeof origin);
    }
    rv = mu_cluster_add(q->chief, "chief", 0, given, &inner);
    if (rv != 0)
        return mu_error_set(error, rv, "%s: %s", origin, inner.message);
    q->address = mu__cluster_url(q->chief, "chief", 0);
    return 0;
}

static mu_node_options options_of(struct question *q, const char *route)
{
    const char *bind = cmd_text(q->options, CMD_FLAG_BIND);
    mu_node_options options;

    mu_node_options_init(&options);
    options.cluster = q->chief;
    options.cluster_name = cmd_text(q->options, CMD_FLAG_CLUSTER_NAME);
    options.task_type = "client";
    options.task_index = q->own_index;
    options.bind_address = bind != NULL ? bind : route[0] == '\0' ? NULL : route;
    options.advertise_address = cmd_text(q->options, CMD_FLAG_ADVERTISE);
    options.log = cmd_log_line;
    options.log_user = &q->log;
    options.log_level = q->log.level;
    return options;
}

static int ask(struct question *q, mu_error *error)
{
    char route[CMD_ROUTE_BYTES];
    mu_node_options options;
    mu_node *node;
    int rv;

    cmd_route(q->address, route);
    options = options_of(q, route);
    rv = mu_node_open(&options, error, &node);
    if (rv != 0)
        return rv == -MU_EINVALID ? CMD_USAGE : CMD_ADDRESS;
    rv = mu_node_status(node, cmd_number(q->options, CMD_FLAG_LIMIT_MS), error,
                        &q->status);
    (void)mu_node_close(node, CLOSE_MS, NULL);
    if (rv == 0)
        return CMD_FINE;
    return rv == -MU_EDEADLINE || rv == -MU_EUNAVAILABLE ? CMD_UNREACHED : CMD_FAILED;
}

static int answer(struct question *q, mu_error *error)
{
    int code = find_chief(q, error) == 0 ? ask(q, error) : CMD_USAGE;

    return code == CMD_FINE ? print_status(q) : code;
}

int cmd_status(struct cmd_options *options)
{
    struct question q = {
        .options = options,
        .own_index = INDEX_FIRST + (int)(getpid() % INDEX_COUNT),
    };
    mu_error error = {.message = "out of memory"};
    int code = CMD_USAGE;

    if (cmd_log_open(options, &error, &q.log) == 0) {
        if (options->values[CMD_FLAG_LOG_LEVEL].source == CMD_FROM_DEFAULT)
            q.log.level = MU_LOG_ERROR;
        code = answer(&q, &error);
        cmd_log_close(&q.log);
    }
    if (code != CMD_FINE)
        (void)fprintf(stderr, "muster status: %s\n", error.message);
    mu_value_free(q.status);
    mu_cluster_free(q.chief);
    mu_cluster_free(q.spec);
    return code;
}
