#include "actors/coordination/job_runs.h"

#include "actors/coordination/barriers/barrier_requests.h"
#include "actors/coordination/keys/key_map.h"
#include "actors/coordination/keys/keys.h"
#include "actors/coordination/replies.h"
#include "actors/coordination/roster.h"
#include "actors/coordination/tasks.h"
#include "actors/packing.h"

#include "muster/admin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIRECTORY MU__KEYS_OWN "/run"

/* Keys of programs, and of the view service, that belong to one run. */
static const char *const run_directories[] = {"muster/distribute", MU__KEY_PREEMPTION,
                                              MU__KEY_PARTITIONS};

enum { RUN_DIRECTORIES = sizeof run_directories / sizeof run_directories[0] };

struct coord_runs {
    struct mu__store_runs store_runs;
    struct mu__store_run none; /* before it leads */
    char requested[MU__RUN_NAME_MAX + 1];
};

/* ---- records in the store ---- */

static uint64_t get_run_wall_ms(struct mu__ctx *ctx, const struct coordination *c)
{
    return c->config.wall_ms == NULL ? mu__now_ms(ctx) : c->config.wall_ms();
}

static bool are_runs_persistent(const struct coordination *c)
{
    return c->config.store->lasting;
}

static void make_run_key(uint64_t number, char out[MU__RUN_KEY_MAX])
{
    (void)snprintf(out, MU__RUN_KEY_MAX, DIRECTORY "/%" PRIu64, number);
}

static int write_run(struct mu__ctx *ctx, struct coordination *c,
                     const struct mu__store_run *run)
{
    char key[MU__RUN_KEY_MAX];
    char text[MU__RUN_TEXT_MAX];
    int rv;

    if (!are_runs_persistent(c))
        return 0;
    make_run_key(run->number, key);
    rv = mu__coord_keys_put_quietly(ctx, c, key, text, mu__store_run_write(run, text));
    if (rv != 0)
        mu__log(ctx, MU__LOG_ERROR, "run \"%s\" cannot be stored: %s", run->name,
                mu_strerror(rv));
    return rv;
}

/* The number in "_muster/run/NUMBER", and whether a longer path follows it; 0: it is no
 * number. */
static uint64_t parse_run_number(struct mu__view key, bool *ret_more)
{
    const char *at = (const char *)key.data + sizeof DIRECTORY;
    const char *end = (const char *)key.data + key.size;
    uint64_t number = 0;

    for (; at < end && *at >= '0' && *at <= '9' && number < UINT64_MAX / 16; at++)
        number = number * 10 + (uint64_t)(*at - '0');
    *ret_more = at < end && *at == '/';
    return at == end || *at == '/' ? number : 0;
}

static void read_runs(struct mu__ctx *ctx, struct coordination *c)
{
    struct mu__key_value entry = {.key = mu__view_str(DIRECTORY)};
    bool more;

    c->runs->store_runs.count = 0;
    while (mu__coord_keys_next_own(c, entry.key, &entry) &&
           mu__key_is_below(entry.key, mu__view_str(DIRECTORY))) {
        struct mu__store_run run = {.number = parse_run_number(entry.key, &more)};

        if (run.number == 0 || more)
            continue;
        if (mu__store_run_read(entry.value, &run) != 0) {
            mu__log(ctx, MU__LOG_WARN, "key \"%.*s\" is no record of a run",
                    (int)entry.key.size, (const char *)entry.key.data);
            (void)snprintf(run.name, sizeof run.name, "run-%" PRIu64, run.number);
            run.state = MU__RUN_ABANDONED;
        }
        mu__store_runs_add(&c->runs->store_runs, &run);
    }
}

static bool is_stored_run(const struct coordination *c, uint64_t number)
{
    const struct mu__store_runs *store_runs = &c->runs->store_runs;

    for (unsigned i = 0; i < store_runs->count; i++)
        if (store_runs->runs[i].number == number)
            return true;
    return false;
}

/* Delete all keys below the directory but the records of remembered runs. */
static void drop_contents(struct mu__ctx *ctx, struct coordination *c)
{
    struct mu__key_value entry = {.key = mu__view_str(DIRECTORY)};
    char copy[MU__KEY_MAX];
    bool more;

    while (mu__coord_keys_next_own(c, entry.key, &entry) &&
           mu__key_is_below(entry.key, mu__view_str(DIRECTORY))) {
        uint64_t number = parse_run_number(entry.key, &more);

        memcpy(copy, entry.key.data, entry.key.size);
        entry.key.data = copy;
        if (more || !is_stored_run(c, number))
            (void)mu__coord_keys_drop(ctx, c, entry.key);
    }
}

/* ---- the present run ---- */

const struct mu__store_run *mu__coord_run(const struct coordination *c)
{
    const struct mu__store_run *present = mu__store_runs_present(&c->runs->store_runs);

    return present == NULL ? &c->runs->none : present;
}

size_t mu__coord_run_key(const struct coordination *c, const char *what,
                         char out[MU__RUN_KEY_MAX])
{
    return (size_t)snprintf(out, MU__RUN_KEY_MAX, DIRECTORY "/%" PRIu64 "/%s",
                            mu__coord_run(c)->number, what);
}

/* Whether a function of independent tasks has failed, and with it the run. */
static bool has_run_failed(const struct coordination *c)
{
    static const char end[] = "/failed";
    struct mu__view directory = mu__view_str("muster/distribute");
    struct mu__key_value entry = {.key = directory};

    while (mu__coord_keys_next_own(c, entry.key, &entry) &&
           mu__key_is_below(entry.key, directory)) {
        const char *key = entry.key.data;

        if (entry.key.size >= sizeof end &&
            memcmp(key + entry.key.size - sizeof end + 1, end, sizeof end - 1) == 0)
            return true;
    }
    return false;
}

static void end_present(struct mu__ctx *ctx, struct coordination *c, bool failed)
{
    struct mu__store_run *present = mu__store_runs_present(&c->runs->store_runs);

    if (present == NULL || mu__store_run_is_over(present))
        return;
    present->state = failed ? MU__RUN_FAILED : MU__RUN_ABANDONED;
    present->code = failed ? -MU_EABORTED : 0;
    (void)snprintf(present->message, sizeof present->message, "%s",
                   failed ? "a function has failed" : "another run was begun");
    present->ended_ms = get_run_wall_ms(ctx, c);
    (void)write_run(ctx, c, present);
}

static int begin_run(struct mu__ctx *ctx, struct coordination *c, bool failed)
{
    struct coord_runs *runs = c->runs;
    struct mu__store_run run = {.state = MU__RUN_RUNNING,
                                .started_ms = get_run_wall_ms(ctx, c)};

    end_present(ctx, c, failed);
    run.number = mu__coord_run(c)->number + 1;
    if (runs->requested[0] != '\0')
        memcpy(run.name, runs->requested, sizeof run.name);
    else
        (void)snprintf(run.name, sizeof run.name, "run-%" PRIu64, run.number);
    mu__store_runs_add(&runs->store_runs, &run);
    mu__log(ctx, MU__LOG_INFO, "run \"%s\" of the job begins", run.name);
    if (!are_runs_persistent(c))
        return 0;
    for (int i = 0; i < RUN_DIRECTORIES; i++)
        (void)mu__coord_keys_drop(ctx, c, mu__view_str(run_directories[i]));
    drop_contents(ctx, c);
    mu__coord_keys_drop_agents(ctx, c);
    return write_run(ctx, c, &run);
}

/* The same run goes on. One that has ended is only resumed by name: a host that already
 * takes part in it (`is_own`), and takes over the service, does not resume it. */
static int continue_run(struct mu__ctx *ctx, struct coordination *c, bool is_own)
{
    struct mu__store_run *present = mu__store_runs_present(&c->runs->store_runs);

    mu__log(ctx, MU__LOG_INFO, "run \"%s\" of the job goes on", present->name);
    if (present->state == MU__RUN_RUNNING || (is_own && mu__store_run_is_over(present)))
        return 0;
    present->state = MU__RUN_RUNNING;
    present->ended_ms = 0;
    present->code = 0;
    present->message[0] = '\0';
    return write_run(ctx, c, present);
}

static uint64_t own_run(const struct coordination *c)
{
    const struct mu__own_run *own = c->config.own_run;

    return own == NULL || own->store != c->number ? 0 : own->number;
}

int mu__coord_runs_lead(struct mu__ctx *ctx, struct coordination *c, mu_error *ret_error)
{
    bool failed;

    read_runs(ctx, c);
    if (c->config.only_looks)
        return 0;
    failed = has_run_failed(c);
    switch (mu__store_runs_choose(&c->runs->store_runs, own_run(c), c->runs->requested,
                                  failed, ret_error)) {
    case MU__RUN_CONTINUE:
        (void)continue_run(ctx, c, own_run(c) == mu__coord_run(c)->number);
        return 0;
    case MU__RUN_BEGIN:
        (void)begin_run(ctx, c, failed);
        return 0;
    case MU__RUN_REFUSE:
        break;
    }
    return ret_error->code;
}

/* ---- admission of tasks ---- */

int mu__coord_runs_admit(const struct coordination *c, const struct coord_peer *peer,
                         const struct mu__task_register *body, mu_error *ret_error)
{
    const struct mu__store_run *run = mu__coord_run(c);

    if (c->config.only_looks || strcmp(peer->type, "client") == 0)
        return 0;
    if (body->run != 0 && are_runs_persistent(c) && body->run != run->number)
        return mu_error_set(ret_error, -MU_EABORTED,
                            "/job:%s/task:%" PRIu32 " belongs to a former run of the job "
                            "(number %" PRIu64 "), and the service is in run \"%s\" "
                            "(number %" PRIu64 "): start this task again",
                            peer->type, peer->index, body->run, run->name, run->number);
    if (body->run_name.size == 0 || mu__view_is(body->run_name, run->name) ||
        (!are_runs_persistent(c) && c->runs->requested[0] == '\0'))
        return 0;
    return mu_error_set(ret_error, -MU_EABORTED,
                        "/job:%s/task:%" PRIu32 " was started for run \"%.*s\" of the "
                        "job, and the service is in run \"%s\": start it for that one, "
                        "or begin its own (option run)",
                        peer->type, peer->index, (int)body->run_name.size,
                        (const char *)body->run_name.data, run->name);
}

uint64_t mu__coord_runs_number_for(const struct coordination *c, uint64_t run)
{
    const struct mu__store_run *present = mu__coord_run(c);

    if (!are_runs_persistent(c) || (run == 0 && mu__store_run_is_over(present)))
        return 0;
    return present->number;
}

/* ---- its end ---- */

/* Whether other tasks than this host's are connected, clients aside. `own` NULL: the
 * host's has left, or never was there. */
static bool has_other_tasks(const struct coordination *c,
                            const struct mu__roster_task *own)
{
    for (uint32_t i = 0; i < c->roster->count; i++) {
        const struct mu__roster_task *task = c->roster->tasks[i];

        if (task != own && task->state == MU__TASK_CONNECTED &&
            strcmp(task->type, "client") != 0)
            return true;
    }
    return false;
}

static void close_run(const struct coordination *c, const struct mu__roster_task *task,
                      struct mu__store_run *run)
{
    run->state = has_other_tasks(c, task) ? MU__RUN_LEFT : MU__RUN_CLOSED;
    run->quiet_revision = c->revision;
}

static void set_run_end(const struct mu__run_end *body,
                        const struct mu__roster_task *task, struct mu__store_run *run)
{
    char line[sizeof run->message];

    mu__view_copy(body->message, line, sizeof line);
    line[strcspn(line, "\r\n")] = '\0';
    run->state = body->code == 0 ? MU__RUN_ENDED : MU__RUN_FAILED;
    run->code = -(int)body->code;
    (void)snprintf(run->message, sizeof run->message, "%.170s%s%s", line,
                   line[0] == '\0' ? "ended by " : ", says ", task->name);
}

/* The chief may end a run, or, in a cluster without one, a worker. */
static bool may_end_run(const struct coordination *c, const struct mu__roster_task *task)
{
    const struct mu__task_set *all = mu__coord_requests_all(c);

    if (strcmp(task->type, "chief") == 0)
        return true;
    return strcmp(task->type, "worker") == 0 && !mu__task_set_has(all, "chief", 0);
}

void mu__coord_on_run_end(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__run_end *body = mu__body(msg);
    uint32_t node = msg->from.node;
    bool is_host = body->closing && node == MU__NODE_SELF;
    const struct mu__roster_task *task =
        is_host ? mu__roster_at_node(c->roster, node)
                : mu__coord_requester(ctx, c, node, body->token);
    struct mu__store_run *run = mu__store_runs_present(&c->runs->store_runs);
    mu_error error;

    if (task == NULL && !is_host)
        return;
    if (!is_host && (body->closing || !may_end_run(c, task))) {
        (void)mu_error_set(&error, -MU_EPERMISSION, "%s does not lead the job",
                           task->name);
        mu__coord_answer(ctx, c, node, body->token, &error);
        return;
    }
    if (run != NULL && !c->config.only_looks && !mu__store_run_is_over(run)) {
        if (body->closing)
            close_run(c, task, run);
        else
            set_run_end(body, task, run);
        run->ended_ms = get_run_wall_ms(ctx, c);
        mu__log(ctx, MU__LOG_INFO, "run \"%s\" of the job: %s", run->name,
                mu__store_run_word(run->state));
        (void)write_run(ctx, c, run);
    }
    mu__coord_answer(ctx, c, node, body->token, NULL);
}

/* ---- showing ---- */

static bool set_run_number(mu_value *map, const char *name, uint64_t number)
{
    return mu_value_set(map, name, mu_value_int((int64_t)number)) == 0;
}

static bool set_run_text(mu_value *map, const char *name, const char *text)
{
    mu_value *value = mu_value_string(text);

    return mu_value_set(map, name, value != NULL ? value : mu_value_string("?")) == 0;
}

/* The contents of the present run. */
static bool show_contents(const struct coordination *c, mu_value *map)
{
    char key[MU__RUN_KEY_MAX];
    struct mu__key_value entry;
    uint64_t barriers;
    uint64_t results;
    uint64_t bytes;
    uint64_t result_bytes;
    bool preempted;

    (void)mu__coord_run_key(c, "barrier", key);
    mu__coord_keys_measure(c, mu__view_str(key), &barriers, &bytes);
    (void)mu__coord_run_key(c, "preemption", key);
    preempted = mu__coord_keys_get_own((struct coordination *)c, key, &entry);
    mu__coord_keys_measure(c, mu__view_str("muster/distribute"), &results, &result_bytes);
    return set_run_number(map, "barriers", barriers) &&
           mu_value_set(map, "preempted", mu_value_bool(preempted)) == 0 &&
           set_run_number(map, "results", results) &&
           set_run_number(map, "answers", mu__coord_keys_results(c)) &&
           set_run_number(map, "bytes", bytes + result_bytes);
}

static mu_value *show_run(const struct coordination *c, const struct mu__store_run *run)
{
    mu_value *map = mu_value_map();
    bool is_present = run == mu__coord_run(c);

    if (map != NULL && set_run_text(map, "name", run->name) &&
        set_run_number(map, "number", run->number) &&
        mu_value_set(map, "present", mu_value_bool(is_present)) == 0 &&
        set_run_text(map, "state", mu__store_run_word(run->state)) &&
        set_run_number(map, "started_ms", run->started_ms) &&
        set_run_number(map, "ended_ms", run->ended_ms) &&
        set_run_text(map, "error", run->code == 0 ? "" : mu_err_name(run->code)) &&
        set_run_text(map, "message", run->message) &&
        (!is_present || show_contents(c, map)))
        return map;
    mu_value_free(map);
    return NULL;
}

static bool show_all_runs(const struct coordination *c, mu_value *map)
{
    const struct mu__store_runs *store_runs = &c->runs->store_runs;
    mu_value *list = mu_value_list();
    uint64_t count;
    uint64_t bytes;
    uint64_t own;
    uint64_t own_bytes;
    uint64_t views;
    uint64_t view_bytes;
    int rv = list == NULL ? -MU_ENOMEM : 0;

    for (unsigned i = 0; i < store_runs->count && rv == 0; i++)
        rv = mu_value_append(list, show_run(c, &store_runs->runs[i]));
    if (rv != 0) {
        mu_value_free(list);
        return false;
    }
    mu__coord_keys_measure(c, mu__view_str(""), &count, &bytes);
    mu__coord_keys_measure(c, mu__view_str(MU__KEYS_OWN), &own, &own_bytes);
    mu__coord_keys_measure(c, mu__view_str(MU__KEY_PARTITIONS), &views, &view_bytes);
    return mu_value_set(map, "runs", list) == 0 &&
           set_run_text(map, "store", c->config.store->name) &&
           set_run_number(map, "keys", count - own - views) &&
           set_run_number(map, "bytes", bytes - own_bytes - view_bytes);
}

void mu__coord_on_runs_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__runs_get *body = mu__body(msg);
    uint32_t node = msg->from.node;
    mu_value *map;

    if (mu__coord_requester(ctx, c, node, body->token) == NULL)
        return;
    map = mu_value_map();
    if (map != NULL && !show_all_runs(c, map)) {
        mu_value_free(map);
        map = NULL;
    }
    mu__coord_answer_value(ctx, c, node, body->token, 0, map);
}

/* ---- clearing ---- */

static void forget_stored_run(struct mu__ctx *ctx, struct coordination *c,
                              uint64_t number)
{
    char key[MU__RUN_KEY_MAX];

    make_run_key(number, key);
    if (are_runs_persistent(c))
        (void)mu__coord_keys_delete_own(ctx, c, key);
    mu__store_runs_remove(&c->runs->store_runs, number);
}

static uint64_t clear_history(struct mu__ctx *ctx, struct coordination *c)
{
    struct mu__store_runs *store_runs = &c->runs->store_runs;
    uint64_t count = 0;

    for (; store_runs->count > 1; count++)
        forget_stored_run(ctx, c, store_runs->runs[0].number);
    return count;
}

static uint64_t clear_present(struct mu__ctx *ctx, struct coordination *c)
{
    uint64_t count =
        mu__coord_barriers_forget_over(ctx, c) + mu__coord_preempt_forget_over(ctx, c);

    for (int i = 0; i < RUN_DIRECTORIES; i++)
        count += mu__coord_keys_drop(ctx, c, mu__view_str(run_directories[i]));
    return count;
}

static int clear_named(struct mu__ctx *ctx, struct coordination *c, struct mu__view name,
                       uint64_t *ret_count, mu_error *ret_error)
{
    char text[MU__RUN_NAME_MAX + 1];
    const struct mu__store_run *run;

    mu__view_copy(name, text, sizeof text);
    run = mu__store_runs_find(&c->runs->store_runs, text);
    if (run == NULL)
        return mu_error_set(ret_error, -MU_ENOTFOUND, "the store knows no run \"%s\"",
                            text);
    if (run == mu__coord_run(c)) {
        *ret_count += clear_present(ctx, c);
        return 0;
    }
    forget_stored_run(ctx, c, run->number);
    ++*ret_count;
    return 0;
}

void mu__coord_on_runs_clear(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__runs_clear *body = mu__body(msg);
    uint32_t node = msg->from.node;
    mu_error error = {.code = 0};
    uint64_t count = 0;

    if (mu__coord_requester(ctx, c, node, body->token) == NULL)
        return;
    if (body->name.size > 0 && clear_named(ctx, c, body->name, &count, &error) != 0) {
        mu__coord_answer(ctx, c, node, body->token, &error);
        return;
    }
    if ((body->what & MU_RUNS_CLEAR_ENDED) != 0)
        count += clear_history(ctx, c);
    if ((body->what & MU_RUNS_CLEAR_PRESENT) != 0)
        count += clear_present(ctx, c);
    if ((body->what & MU_RUNS_CLEAR_KEYS) != 0)
        count += mu__coord_keys_drop_others(ctx, c);
    mu__coord_answer_value(ctx, c, node, body->token, count, mu_value_nil());
}

/* ---- start and end ---- */

int mu__coord_runs_init(struct mu__ctx *ctx, struct coordination *c)
{
    (void)ctx;
    c->runs = calloc(1, sizeof *c->runs);
    if (c->runs == NULL)
        return -MU_ENOMEM;
    if (c->config.run != NULL)
        (void)snprintf(c->runs->requested, sizeof c->runs->requested, "%s",
                       c->config.run);
    return 0;
}

void mu__coord_runs_done(struct coordination *c)
{
    free(c->runs);
    c->runs = NULL;
}
