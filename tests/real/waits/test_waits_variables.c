/* Calls that need a parameter server, tried while it is never there, absent, stopped or
 * gone in the middle (waits.h). */
#include "tests/real/waits.h"

#include <muster/checkpoint.h>
#include <muster/clock.h>

#include <uv.h>

enum { LOST_MS = 3000 };

/* ---- The server, the chief that places partitions, and those who need them ---- */

struct own {
    char folder[64];
    struct cli chief;
};

static void start_server(struct waits_scene *scene, unsigned peer)
{
    (void)peer;
    cli_start(&scene->peers[0], NULL, "node", "--cluster", scene->json, "--task", "ps:0",
              "--heartbeat-ms", "200", "--silence-ms", "2000", NULL);
}

static void open_client(struct waits_scene *scene, struct waits_env *env)
{
    mu_node_options options;

    waits_name(env, "client", (int)env->number);
    waits_options(scene, env, &options);
    options.server_lost_ms = LOST_MS;
    options.service_hosts = "none";
    waits_open_with(env, &options);
}

static void begin(struct waits_scene *scene)
{
    struct own *own = calloc(1, sizeof *own);

    assert_non_null(own);
    cli_folder(own->folder, sizeof own->folder);
    cli_start(&own->chief, NULL, "node", "--cluster", scene->json, "--task", "chief:0",
              "--heartbeat-ms", "200", "--silence-ms", "2000", NULL);
    scene->own = own;
}

static void end(struct waits_scene *scene)
{
    struct own *own = scene->own;
    char command[128];

    cli_kill(&own->chief, SIGKILL);
    (void)cli_wait(&own->chief);
    (void)snprintf(command, sizeof command, "rm -r %s", own->folder);
    assert_int_equal(system(command), 0);
    free(own);
}

/* ---- Before ---- */

static const float ones[4] = {1, 1, 1, 1};

static int open_variable(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    static const uint64_t dims[1] = {4};
    const mu_variable_spec spec = {
        .name = env->task, .dtype = MU_F32, .rank = 1, .dims = dims};

    return mu_variable_open(env->node, &spec, timeout_ms, error, &env->variable);
}

/* A server that was never up is waited for: this one was. */
static int reach(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    const mu_variable_spec spec = {.name = "reached", .dtype = MU_F32};
    mu_variable *variable = NULL;
    int rv = mu_variable_open(env->node, &spec, timeout_ms, error, &variable);

    mu_variable_close(variable);
    return rv;
}

static int save(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_checkpoint_options options;
    char name[32];

    mu_checkpoint_options_init(&options);
    (void)snprintf(name, sizeof name, "of-%u", env->number);
    options.directory = ((struct own *)env->scene->own)->folder;
    options.name = name;
    options.timeout_ms = timeout_ms;
    return mu_checkpoint_save(&options, 1, &env->variable, 1, NULL, error, NULL);
}

static int have_checkpoint(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    int rv = open_variable(env, timeout_ms, error);

    return rv != 0 ? rv : save(env, timeout_ms, error);
}

/* ---- The calls ---- */

static int read_it(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    float data[4];

    return mu_variable_read(env->variable, data, sizeof data, timeout_ms, error);
}

static int read_cached(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    float data[4];

    return mu_variable_read_cached(env->variable, data, sizeof data, 0, timeout_ms,
                                   error);
}

static int read_together(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    float data[4];
    void *buffer = data;

    return mu_variables_read(&env->variable, &buffer, 1, timeout_ms, error);
}

static int version(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_variable_version(env->variable, timeout_ms, error, &env->version);
}

static int assign(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_variable_assign(env->variable, ones, sizeof ones, timeout_ms, error);
}

static int add(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_variable_add(env->variable, ones, sizeof ones, timeout_ms, error);
}

static const mu_rows four = {.count = 4};

static int read_rows(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    float data[4];

    return mu_variable_read_rows(env->variable, &four, data, sizeof data, timeout_ms,
                                 error);
}

static int assign_rows(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_variable_assign_rows(env->variable, &four, ones, sizeof ones, timeout_ms,
                                   error);
}

static int add_rows(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    static const int64_t list[4] = {3, 2, 1, 0};
    const mu_rows rows = {.count = 4, .list = list};

    return mu_variable_add_rows(env->variable, &rows, ones, sizeof ones, timeout_ms,
                                error);
}

static int update_rows(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    const mu_rows rows = {.count = 4};

    return mu_variable_update_rows(env->variable, MU_ROWS_MAX, &rows, ones, sizeof ones,
                                   timeout_ms, error);
}

static int apply(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    const mu_optimizer optimizer = mu_optimizer_make(MU_OPTIMIZER_SGD, 1);

    return mu_variable_apply(env->variable, ones, sizeof ones, &optimizer, timeout_ms,
                             error);
}

/* How one ended that nobody waits for. */
struct later_end {
    uv_sem_t ended;
    mu_error error;
};

static void note_end(void *user, int code, const mu_error *error)
{
    struct later_end *end = user;

    end->error.code = code;
    if (error != NULL)
        end->error = *error;
    uv_sem_post(&end->ended);
}

static int await_end(struct later_end *end, int rv, mu_error *error)
{
    if (rv == 0) {
        uv_sem_wait(&end->ended);
        *error = end->error;
        rv = end->error.code;
    }
    uv_sem_destroy(&end->ended);
    return rv;
}

static int request_and_wait(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    float data[4];
    const mu_variable_request request = {.operation = MU_VARIABLE_READ,
                                         .target = data,
                                         .bytes = sizeof data,
                                         .timeout_ms = timeout_ms};

    return mu_variable_request_wait(env->variable, &request, error);
}

static int begin_request(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    const mu_variable_request request = {.operation = MU_VARIABLE_ADD,
                                         .source = ones,
                                         .bytes = sizeof ones,
                                         .timeout_ms = timeout_ms};
    struct later_end end;

    (void)uv_sem_init(&end.ended, 0);
    return await_end(
        &end, mu_variable_request_async(env->variable, &request, note_end, &end, error),
        error);
}

static int open_clock(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_clock_open(env->node, env->task, 0, timeout_ms, error, &env->clock);
}

static int tick(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_clock_tick(env->clock, timeout_ms, error, NULL);
}

static int minimum(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_clock_minimum(env->clock, timeout_ms, error, &env->version);
}

static int open_table(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    const mu_table_spec spec = {.name = env->task, .dim = 4};

    return mu_table_open(env->node, &spec, timeout_ms, error, &env->table);
}

static const uint64_t id = 7;

static int look_up(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    float row[4];

    return mu_table_lookup(env->table, &id, 1, row, timeout_ms, error);
}

static int look_up_as(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    float row[4];

    return mu_table_lookup_as(env->table, MU_F32, &id, 1, row, timeout_ms, error);
}

static int begin_look_up(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    struct later_end end;
    float row[4];

    (void)uv_sem_init(&end.ended, 0);
    return await_end(
        &end, mu_table_lookup_async(env->table, &id, 1, row, timeout_ms, note_end, &end),
        error);
}

static int begin_look_up_as(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    struct later_end end;
    float row[4];

    (void)uv_sem_init(&end.ended, 0);
    return await_end(&end,
                     mu_table_lookup_as_async(env->table, MU_F32, &id, 1, row, timeout_ms,
                                              note_end, &end),
                     error);
}

static int begin_push(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    struct later_end end;

    (void)uv_sem_init(&end.ended, 0);
    return await_end(&end,
                     mu_table_apply_async(env->table, &id, ones, 1, NULL, timeout_ms,
                                          note_end, &end),
                     error);
}

static int begin_push_at(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    struct later_end end;

    (void)uv_sem_init(&end.ended, 0);
    return await_end(&end,
                     mu_table_apply_at_async(env->table, 5, &id, ones, 1, NULL,
                                             timeout_ms, note_end, &end),
                     error);
}

static int push(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_table_apply(env->table, &id, ones, 1, NULL, timeout_ms, error);
}

static int push_at(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_table_apply_at(env->table, 5, &id, ones, 1, NULL, timeout_ms, error);
}

static int expire_rows(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_table_expire(env->table, 5, timeout_ms, error);
}

static int look_up_tables(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    float row[4];
    const mu_table_ids lookup = {env->table, &id, 1, row};

    return mu_tables_lookup(&lookup, 1, timeout_ms, error);
}

static const uint64_t at_first = 0;
static const mu_table_bags bag = {
    .ids = &id, .count = 1, .offsets = &at_first, .bags = 1};

static int look_up_bags(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    float row[4];

    return mu_table_lookup_bags(env->table, &bag, row, timeout_ms, error);
}

static int push_bags(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_table_apply_bags(env->table, &bag, ones, NULL, timeout_ms, error);
}

static int begin_look_up_bags(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    struct later_end end;
    float row[4];

    (void)uv_sem_init(&end.ended, 0);
    return await_end(&end,
                     mu_table_lookup_bags_async(env->table, &bag, row, timeout_ms,
                                                note_end, &end),
                     error);
}

static int begin_push_bags(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    struct later_end end;

    (void)uv_sem_init(&end.ended, 0);
    return await_end(&end,
                     mu_table_apply_bags_async(env->table, &bag, ones, NULL, timeout_ms,
                                               note_end, &end),
                     error);
}

static int delete_row(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_table_delete(env->table, &id, 1, timeout_ms, error);
}

static int insert_row(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_table_insert(env->table, &id, ones, 1, timeout_ms, error);
}

static int get_table_stats(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_table_stats stats;

    return mu_table_get_stats(env->table, timeout_ms, error, &stats);
}

static int ignore_rows(void *user, const uint64_t *ids, const float *rows, size_t count)
{
    (void)user;
    (void)ids;
    (void)rows;
    (void)count;
    return 0;
}

static int export_table(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_table_export(env->table, ignore_rows, NULL, timeout_ms, error);
}

static int restore(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    const struct own *own = env->scene->own;
    char path[128];

    (void)snprintf(path, sizeof path, "%s/of-%u-1", own->folder, env->number);
    return mu_checkpoint_restore(env->node, path, NULL, 0, timeout_ms, error);
}

/* ---- The table ---- */

#define SERVER "/job:ps/task:0"
/* At the timeout, of a server that was there. */
#define GONE(more) WAITS_END(-MU_EUNAVAILABLE, SERVER "|not reached" more)
/* clang-format off */
#define LIMITED                                                                    \
    {WAITS_NONE, GONE("|refused"), WAITS_LATE(SERVER "|has not answered"), GONE("")}

/* Without a limit there is server_lost_ms. */
#define AWAY WAITS_SELF(-MU_EUNAVAILABLE, SERVER "|not reached for 3.")
#define UNLIMITED {WAITS_NONE, AWAY, AWAY, AWAY}
/* clang-format on */

static const struct waits_row rows[] = {
    {"mu_variable_open",
     open_variable,
     reach,
     {WAITS_LATE(SERVER "|not reached|refused"), GONE("|refused"),
      WAITS_LATE(SERVER "|has not answered"), GONE("")},
     {WAITS_OK, AWAY, AWAY, AWAY},
     0},
    {"mu_variable_read", read_it, open_variable, LIMITED, UNLIMITED, 0},
    {"mu_variable_read_cached", read_cached, open_variable, LIMITED, UNLIMITED, 0},
    {"mu_variables_read", read_together, open_variable, LIMITED, UNLIMITED, 0},
    {"mu_variable_version", version, open_variable, LIMITED, UNLIMITED, 0},
    {"mu_variable_assign", assign, open_variable, LIMITED, UNLIMITED, 0},
    {"mu_variable_add", add, open_variable, LIMITED, UNLIMITED, 0},
    {"mu_variable_read_rows", read_rows, open_variable, LIMITED, UNLIMITED, 0},
    {"mu_variable_assign_rows", assign_rows, open_variable, LIMITED, UNLIMITED, 0},
    {"mu_variable_add_rows", add_rows, open_variable, LIMITED, UNLIMITED, 0},
    {"mu_variable_update_rows", update_rows, open_variable, LIMITED, UNLIMITED, 0},
    {"mu_variable_apply", apply, open_variable, LIMITED, UNLIMITED, 0},
    {"mu_variable_request_wait", request_and_wait, open_variable, LIMITED, UNLIMITED, 0},
    {"mu_variable_request_async", begin_request, open_variable, LIMITED, UNLIMITED, 0},
    {"mu_clock_open",
     open_clock,
     reach,
     {WAITS_LATE(SERVER "|not reached|refused"), GONE("|refused"),
      WAITS_LATE(SERVER "|has not answered"), GONE("")},
     {WAITS_OK, AWAY, AWAY, AWAY},
     0},
    {"mu_clock_tick", tick, open_clock, LIMITED, UNLIMITED, 0},
    {"mu_clock_minimum", minimum, open_clock, LIMITED, UNLIMITED, 0},
    {"mu_table_open",
     open_table,
     reach,
     {WAITS_LATE(SERVER "|not reached|refused"), GONE("|refused"),
      WAITS_LATE(SERVER "|has not answered"), GONE("")},
     {WAITS_OK, AWAY, AWAY, AWAY},
     0},
    {"mu_table_lookup", look_up, open_table, LIMITED, UNLIMITED, 0},
    {"mu_table_lookup_as", look_up_as, open_table, LIMITED, UNLIMITED, 0},
    {"mu_table_lookup_async", begin_look_up, open_table, LIMITED, UNLIMITED, 0},
    {"mu_table_lookup_as_async", begin_look_up_as, open_table, LIMITED, UNLIMITED, 0},
    {"mu_table_apply_async", begin_push, open_table, LIMITED, UNLIMITED, 0},
    {"mu_table_apply_at_async", begin_push_at, open_table, LIMITED, UNLIMITED, 0},
    {"mu_tables_lookup", look_up_tables, open_table, LIMITED, UNLIMITED, 0},
    {"mu_table_lookup_bags", look_up_bags, open_table, LIMITED, UNLIMITED, 0},
    {"mu_table_apply", push, open_table, LIMITED, UNLIMITED, 0},
    {"mu_table_apply_at", push_at, open_table, LIMITED, UNLIMITED, 0},
    {"mu_table_expire", expire_rows, open_table, LIMITED, UNLIMITED, 0},
    {"mu_table_apply_bags", push_bags, open_table, LIMITED, UNLIMITED, 0},
    {"mu_table_lookup_bags_async", begin_look_up_bags, open_table, LIMITED, UNLIMITED, 0},
    {"mu_table_apply_bags_async", begin_push_bags, open_table, LIMITED, UNLIMITED, 0},
    {"mu_table_delete", delete_row, open_table, LIMITED, UNLIMITED, 0},
    {"mu_table_insert", insert_row, open_table, LIMITED, UNLIMITED, 0},
    {"mu_table_get_stats", get_table_stats, open_table, LIMITED, UNLIMITED, 0},
    {"mu_table_export", export_table, open_table, LIMITED, UNLIMITED, 0},
    {"mu_checkpoint_save", save, open_variable, LIMITED, UNLIMITED, 0},
    {"mu_checkpoint_restore", restore, have_checkpoint, LIMITED, UNLIMITED, 0},
};

static const struct waits_kind variables = {
    .name = "variables",
    .rows = rows,
    .rows_count = sizeof rows / sizeof rows[0],
    .workers = 1,
    .servers = 1,
    .peers_count = 1,
    .log = "waiting for " SERVER,
    .start = start_server,
    .open = open_client,
    .begin = begin,
    .end = end,
};

int main(void)
{
    static const struct waits_kind *const kinds[] = {&variables};

    return waits_main(kinds, 1);
}
