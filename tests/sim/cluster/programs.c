#include "tests/sim/cluster/programs.h"

#include "actors/messages.h"
#include "runtime/base/byte_order.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ITEMS = 256, /* closures that write have a key below it */
    BURST_MAX = 12,
    SUM_BYTES_MAX = 512, /* of the arguments of one */
    PAUSE_MAX_MS = 250
};

static uint64_t draw(struct program *program, uint64_t min, uint64_t max)
{
    return sim_between(&program->random, min, max);
}

static bool chance(struct program *program, unsigned percent)
{
    return sim_chance(&program->random, percent);
}

static void drop_session(struct program *program)
{
    program->task->session->over = true;
    program->task->session = NULL;
}

static void take_open(struct program *program, int code)
{
    if (code == -MU_EDEADLINE)
        drop_session(program);
    else if (code != 0)
        cluster_break(program->task->cluster, "OPEN: %s", mu_strerror(code));
    program->failed_mark = 0;
    program->names_next = 0;
}

static bool may_be_raised(const struct program *program, int code)
{
    switch (-code) {
    case 0:
    case MU_EINVALID:
    case MU_EABORTED:
    case MU_EUNAVAILABLE:
        return true;
    case MU_EDEADLINE:
        return program->asks;
    case MU_EEXHAUSTED:
        return program->run->plan.full_disk;
    default:
        return false;
    }
}

/* JOIN and RAISE: an error is raised when something had failed since the last one, and
 * only after everything is resolved. */
static void take_verdict(struct program *program, int code)
{
    struct cluster *cluster = program->task->cluster;
    const struct mu__session *shared = &program->task->session->shared;
    uint64_t failed = cluster_count(&shared->failed);

    if (code == -MU_EDEADLINE && program->call->of.call.error.function[0] == '\0')
        return; /* the wait is over, and not a closure's time */
    if (cluster_count(&shared->scheduled) != cluster_count(&shared->resolved))
        cluster_break(cluster, "join: %" PRIu64 " scheduled, %" PRIu64 " resolved",
                      cluster_count(&shared->scheduled),
                      cluster_count(&shared->resolved));
    if (code == 0 && failed != program->failed_mark)
        cluster_break(cluster, "join: 0, but %" PRIu64 " have failed", failed);
    if (!may_be_raised(program, code))
        cluster_break(cluster, "join: %s", program->call->of.call.error.message);
    if (code == -MU_EUNAVAILABLE && program->task == cluster->chief &&
        program->call->of.call.error.kind == MU_ERROR_CHIEF)
        cluster_break(cluster, "the chief's own program lost the chief");
    program->failed_mark = failed;
    program->raised += code != 0;
    program->task->session->troubled = program->task->session->troubled || code != 0;
    program->given_up += code == -MU_EABORTED;
    program->chief_lost += code == -MU_EUNAVAILABLE;
    program->not_written += code == -MU_EEXHAUSTED;
}

static void take_status(struct program *program, int code)
{
    mu_value *status = program->call->of.client.status;

    if (code == 0)
        cluster_check_status(program->task->cluster, status);
    else if (code != -MU_EDEADLINE && code != -MU_EUNAVAILABLE)
        cluster_break(program->task->cluster, "STATUS: %s", mu_strerror(code));
    mu_value_free(status);
    program->call->of.client.status = NULL;
}

static const char *draw_function(struct program *program)
{
    static const char *const names[] = {"square", "square", "square", "square",
                                        "square", "quick",  "patient"};

    if (!program->run->plan.journal && chance(program, 2))
        return "fail";
    return names[draw(program, 0, sizeof names / sizeof names[0] - 1)];
}

/* Both types that run closures have a task that comes back when all has healed. */
static const char *draw_type(struct program *program)
{
    if (!program->run->plan.types || !chance(program, 60))
        return NULL;
    program->run->reached[OF_TYPE]++;
    return chance(program, 70) ? "gpu" : "worker";
}

/* Another way to the same end: none of it may change what a closure comes to, but for
 * those that are too late. */
static struct cluster_ask draw_ask(struct program *program, const char *type)
{
    const struct cluster_options *options = &program->task->cluster->options;
    unsigned workers =
        type == NULL || strcmp(type, "worker") == 0 ? options->workers : options->gpus;
    struct cluster_ask ask = {.flags = chance(program, 20) ? MU__CLOSURE_NO_BACKUP : 0,
                              .worker_type = type};

    if (chance(program, 50))
        ask.priority = (unsigned)draw(program, 1, MU__PRIORITIES);
    if (chance(program, 5))
        ask.deadline_ms = draw(program, 1, 5000);
    if (chance(program, 10))
        ask.run_timeout_ms = draw(program, 20, 5000);
    if (chance(program, 10))
        ask.attempts_max = (unsigned)draw(program, 1, 5);
    if (chance(program, 10))
        ask.worker = (unsigned)draw(program, 1, workers);
    else if (workers > 1 && chance(program, 10))
        ask.not_worker = (unsigned)draw(program, 1, workers);
    return ask;
}

/* Some closures write, as long as there are items for their keys. */
static bool draws_write(struct program *program)
{
    return program->run->counter_ready && chance(program, 50) &&
           program->task->cluster->key_next < ITEMS;
}

/* One of the session's closures, from a place that is drawn; NULL when there is none that
 * `fits`. */
static struct cluster_closure *draw_closure(
    struct program *program, bool (*fits)(const struct cluster_closure *closure))
{
    const struct cluster_session *session = program->task->session;
    size_t first = draw(program, 0, session->closures_count);

    for (size_t i = 0; i < session->closures_count; i++) {
        struct cluster_closure *closure =
            session->closures[(first + i) % session->closures_count];

        if (closure->future != NULL && fits(closure))
            return closure;
    }
    return NULL;
}

static bool is_kept(const struct cluster_closure *closure)
{
    return cluster_kept(closure) != 0;
}

static bool is_under_way(const struct cluster_closure *closure)
{
    return closure->state == MU_REMOTE_NOT_READY && closure->ask.name == NULL;
}

/* With what is there: kept results, which are squares, and a per-worker value. False when
 * nothing is there. Only the chief's own program is sure to mean the present chief. */
static bool schedule_sum(struct program *program, const struct cluster_ask *ask)
{
    struct cluster_input inputs[CLUSTER_INPUTS_MAX];
    const struct cluster_closure *kept = NULL;
    size_t count = 0;

    /* Its inputs must not be let go of before the chief has heard of it. */
    if (!cluster_has_room(program->task, BURST_MAX, BURST_MAX * SUM_BYTES_MAX))
        return false;
    if (program->mine != NULL && program->mine->value != NULL &&
        program->mine->life == sim_lives(program->task->node) && chance(program, 50))
        inputs[count++] =
            (struct cluster_input){program->mine->value->held.number, CLUSTER_MINE};
    while (count < CLUSTER_INPUTS_MAX && chance(program, 60)) {
        kept = draw_closure(program, is_kept);
        if (kept == NULL)
            break;
        inputs[count++] =
            (struct cluster_input){cluster_kept(kept), cluster_square(kept->key)};
        if (count > 1 && inputs[count - 2].number == inputs[count - 1].number)
            count--;
    }
    if (count == 0)
        return false;
    (void)cluster_sum(program->task, ask, inputs, count);
    program->run->reached[WITH_INPUTS]++;
    return true;
}

/* Results that are kept are computed again when they are lost, which no wish may keep
 * from succeeding. */
static bool schedule_keeping(struct program *program)
{
    struct cluster_ask ask = {.flags = chance(program, 60) ? MU__CLOSURE_KEEP : 0};

    if (!program->run->plan.keeps || !chance(program, 40))
        return false;
    ask.worker_type = draw_type(program);
    if (program->task == program->run->cluster->chief && chance(program, 50) &&
        schedule_sum(program, &ask))
        return true;
    ask.flags = MU__CLOSURE_KEEP;
    (void)cluster_schedule_with(program->task, "square", &ask);
    program->run->reached[KEPT]++;
    return true;
}

static void schedule_one(struct program *program)
{
    const char *function = draw_function(program);
    struct cluster_ask ask = {.flags = MU__CLOSURE_ONCE};

    program->scheduled++;
    if (draws_write(program)) {
        ask.worker_type = draw_type(program);
        (void)cluster_write(program->task, &ask);
        return;
    }
    if (schedule_keeping(program))
        return;
    if (chance(program, 10)) {
        cluster_schedule_dropped(program->task, function);
        return;
    }
    ask = (struct cluster_ask){.worker_type = draw_type(program)};
    if (program->asks && chance(program, 50))
        ask = draw_ask(program, ask.worker_type);
    (void)cluster_schedule_with(program->task, function, &ask);
}

/* No more at once than there is room for when ROOM says so. */
static uint64_t burst_max(const struct program *program)
{
    uint64_t room = program->task->cluster->options.queue_max / 8 + 1;

    return program->waits && room < BURST_MAX ? room : BURST_MAX;
}

static void schedule_burst(struct program *program)
{
    uint64_t count = draw(program, 1, burst_max(program));

    for (uint64_t i = 0; i < count && program->scheduled < program->goal; i++)
        schedule_one(program);
}

/* ---- Names ---- */

static bool has_finished(const struct named *named)
{
    return named->closure != NULL && named->closure->finished;
}

/* Whether the former attempt at it ended in a way that the journal does not go on from:
 * its name was given free, and another closure has it now, whose writes count anew. */
static bool was_given_up(const struct named *named)
{
    const struct cluster_closure *closure = named->closure;

    return closure != NULL && (closure->session->troubled || closure->session->closing ||
                               closure->cancelled || closure->future->error != NULL ||
                               !closure->session->over);
}

void program_schedule_name(struct program *program, struct named *named)
{
    struct cluster *cluster = program->task->cluster;
    struct cluster_ask ask = {
        .name = named->name,
        .flags = named->writes ? MU__CLOSURE_ONCE : 0,
        .key = named->key < 0 ? NULL : &named->key,
    };

    if (program->run->plan.types && (named - program->names) % 3 == 0)
        ask.worker_type = "gpu";

    if (named->key < 0)
        named->writes =
            named->writes && program->run->counter_ready && cluster->key_next < ITEMS;
    if (!named->seen && was_given_up(named))
        cluster->loose[named->key] = true;
    program->run->reached[KNOWN] += named->seen;
    if (named->writes)
        named->closure = cluster_write(program->task, &ask);
    else
        named->closure = cluster_schedule_with(program->task, "square", &ask);
    named->key = named->closure->key;
    if (program->run->plan.full_disk)
        cluster->loose[named->key] = true;
}

/* As a program does that begins anew: all of its names, whatever became of them. One by
 * one where the queue may be full: what is refused would cancel the others. */
static void schedule_names(struct program *program)
{
    bool is_wide = program->task->cluster->options.queue_max >= QUEUE_WIDE;
    uint64_t count = is_wide ? draw(program, 1, BURST_MAX) : 1;

    while (count > 0 && program->names_next < program->names_count) {
        struct named *named = &program->names[program->names_next++];

        if (named->closure != NULL && named->closure->session == program->task->session &&
            has_finished(named))
            continue;
        program_schedule_name(program, named);
        count--;
    }
}

/* What was once finished is never lost. */
static void look_at_names(struct program *program)
{
    for (unsigned i = 0; i < program->names_count; i++) {
        struct named *named = &program->names[i];

        if (has_finished(named)) {
            named->seen = true;
        } else if (named->seen && named->closure->state == MU_REMOTE_READY &&
                   !program->run->plan.full_disk) {
            cluster_break(program->task->cluster, "\"%s\" had finished, but fails: %s",
                          named->name, named->closure->future->error->message);
        }
    }
}

bool program_all_names_finished(const struct program *program)
{
    for (unsigned i = 0; i < program->names_count; i++)
        if (!has_finished(&program->names[i]) ||
            program->names[i].closure->session != program->task->session)
            return false;
    return true;
}

void program_draw_names(struct program *program)
{
    program->names_count = (unsigned)draw(program, 5, NAMES_MAX);
    for (unsigned i = 0; i < program->names_count; i++) {
        struct named *named = &program->names[i];

        *named = (struct named){.key = -1};
        (void)snprintf(named->name, sizeof named->name, "name %u", i);
        named->writes = program->run->plan.writes && chance(program, 60);
    }
}

/* ---- Leaving ---- */

/* The worker does as a real one: it is gone when it is told to, and comes back later. */
static void restart_left(struct sim *sim, void *arg)
{
    struct cluster_task *task = arg;

    (void)sim;
    if (!sim_alive(task->node))
        cluster_start(task);
}

static void watch_leaving(struct sim *sim, void *arg)
{
    struct program *program = arg;

    if (!program->leaves->done) {
        sim_at(sim, sim_now_ms(sim) + 10, watch_leaving, program);
        return;
    }
    if (program->leaves->of.call.code == 0 && sim_alive(program->leaving->node)) {
        sim_note(sim, MU__LOG_WARN, "%s leaves", program->leaving->name);
        program->run->reached[DRAINED]++;
        sim_crash(program->leaving->node);
        sim_at(sim, sim_now_ms(sim) + draw(program, 1, 2000), restart_left,
               program->leaving);
    }
    program->leaves = NULL;
}

/* The process that plays a worker, as the chief knows it; NULL: none does. */
static struct cluster_task *place_of(const struct run *run, unsigned worker)
{
    struct cluster *cluster = run->cluster;
    const mu_cluster *known =
        cluster->chief->spec != NULL ? cluster->chief->spec : cluster->spec;
    const char *address = mu_cluster_address(known, "worker", (int)worker);

    for (unsigned i = 0; address != NULL && i < cluster->tasks_count; i++)
        if (strcmp(cluster->tasks[i].address, address) == 0)
            return &cluster->tasks[i];
    return NULL;
}

/* It may have moved since: whoever plays the task now is restarted, too. */
static void restart_places(struct program *program)
{
    struct cluster *cluster = program->task->cluster;

    for (unsigned i = 0; i < cluster->tasks_count; i++) {
        struct cluster_task *task = &cluster->tasks[i];

        if (strcmp(task->type, "worker") != 0 || !sim_alive(task->node) ||
            task->index != program->leaving->index ||
            (program->run->plan.changes &&
             !cluster_changing_lists(&program->run->changing, task)))
            continue;
        sim_crash(task->node);
        sim_at(cluster->sim, sim_now_ms(cluster->sim) + 1, restart_left, task);
    }
}

/* Not more than one at a time. One that does not leave in time is restarted. */
static struct cluster_call *drain_some(struct program *program)
{
    struct run *run = program->run;
    unsigned worker = (unsigned)draw(program, 0, run->cluster->options.workers - 1);
    int64_t timeout_ms = (int64_t)draw(program, 100, 4000);

    struct cluster_task *place = place_of(run, worker);

    if (program->leaves != NULL || place == NULL || !sim_alive(place->node))
        return NULL;
    program->leaving = place;
    program->leaves =
        cluster_job(program->leaving, MU__JOB_WAIT, 0, NULL, timeout_ms + 1000);
    sim_at(run->cluster->sim, sim_now_ms(run->cluster->sim) + 10, watch_leaving, program);
    return cluster_drain(program->task, (int)worker, timeout_ms);
}

static void take_drained(struct program *program, int code)
{
    if (code == 0)
        return;
    if (code != -MU_EDEADLINE && code != -MU_ENOTFOUND && code != -MU_EUNAVAILABLE &&
        code != -MU_EEXISTS)
        cluster_break(program->task->cluster, "DRAIN: %s", mu_strerror(code));
    if (code == -MU_EDEADLINE)
        restart_places(program);
}

/* ---- Answers ---- */

static void take_asked(struct program *program, int code)
{
    if (program->call->of.client.input == 0)
        take_drained(program, code);
    else if (code == 0)
        program->mine = cluster_note_mine(program->call);
}

static void take_answer(struct program *program)
{
    const struct cluster_call *call = program->call;
    int code = call->of.call.code;

    if (program->opens) {
        program->run->counter_ready = code == 0;
        program->call = NULL;
        return;
    }
    /* The process may have died after the answer, and before this look at it. */
    if (code == -MU_ECLOSED || program->task->session == NULL) {
        mu_value_free(
            call->of.call.operation == MU__CLIENT_STATUS ? call->of.client.status : NULL);
        program->call = NULL;
        return;
    }
    switch (call->of.call.operation) {
    case MU__CLIENT_OPEN:
        take_open(program, code);
        break;
    case MU__CLIENT_CLOSE:
        if (code == 0)
            drop_session(program);
        break;
    case MU__CLIENT_STATUS:
        take_status(program, code);
        break;
    case MU__CLIENT_ROOM:
        if (code == 0)
            schedule_burst(program);
        break;
    case MU__CLIENT_REQUEST:
        take_asked(program, code);
        break;
    case MU__CLIENT_FETCH:
        if (code != 0 && code != -MU_EDEADLINE && code != -MU_EUNAVAILABLE &&
            code != -MU_EABORTED)
            cluster_break(program->task->cluster, "FETCH: %s", mu_strerror(code));
        break;
    default:
        take_verdict(program, code);
        break;
    }
    program->call = NULL;
}

static struct cluster_call *fetch_some(struct program *program)
{
    struct cluster_session *session = program->task->session;
    struct cluster_closure *closure =
        session->closures[draw(program, 0, session->closures_count - 1)];

    return closure->future == NULL
               ? NULL
               : cluster_fetch(closure, (int64_t)draw(program, 0, 2000));
}

static void cancel_some(struct program *program)
{
    struct cluster_closure *closure = draw_closure(program, is_under_way);

    if (closure == NULL)
        return;
    cluster_cancel(closure);
    program->run->reached[CANCELLED]++;
}

/* Whether a sum that waits in the client names this input: the chief would hear of the
 * release first. */
static bool is_named_by_unsent(const struct program *program, uint64_t number)
{
    const struct cluster_session *session = program->task->session;

    for (size_t i = 0; i < session->closures_count; i++) {
        const struct cluster_closure *closure = session->closures[i];

        if (closure->state != MU_REMOTE_NOT_READY || cluster_was_sent(closure))
            continue;
        for (uint32_t at = 0; at < closure->inputs_size; at += 8)
            if (mu__load_little64(closure->inputs + at) == number)
                return true;
    }
    return false;
}

static void release_some(struct program *program)
{
    struct cluster_closure *closure = draw_closure(program, is_kept);

    if (program->mine != NULL && chance(program, 20) &&
        (program->mine->value == NULL ||
         !is_named_by_unsent(program, program->mine->value->held.number)))
        cluster_release_mine(program->mine);
    if (closure == NULL || is_named_by_unsent(program, cluster_kept(closure)))
        return;
    cluster_let_go(closure);
    program->run->reached[RELEASED]++;
}

static struct cluster_call *ask_more(struct program *program)
{
    const struct plan *plan = &program->run->plan;
    bool is_chief = program->task == program->run->cluster->chief;

    if (plan->cancels)
        cancel_some(program);
    if (plan->keeps && chance(program, 50))
        release_some(program);
    if (plan->keeps && is_chief && chance(program, 40) &&
        (program->mine == NULL || program->mine->value == NULL ||
         program->mine->life != sim_lives(program->task->node)))
        return cluster_ask_mine(program->task, -1);
    return plan->drains && is_chief && chance(program, 50) ? drain_some(program) : NULL;
}

static struct cluster_call *ask_some(struct program *program)
{
    struct cluster_task *task = program->task;
    int64_t timeout_ms = (int64_t)draw(program, 0, 3000);

    switch (draw(program, 0, 11)) {
    case 4:
        return ask_more(program);
    case 0:
        return cluster_ask(task, MU__CLIENT_JOIN, timeout_ms);
    case 1:
        return cluster_ask(task, MU__CLIENT_STATUS, timeout_ms);
    case 2:
        return fetch_some(program);
    case 3:
        if (!chance(program, 10))
            return NULL;
        task->session->closing = true;
        return cluster_ask(task, MU__CLIENT_CLOSE, -1);
    default:
        return NULL;
    }
}

/* The chief's program opens the counter before anybody schedules what writes. */
static bool opens_counter(struct program *program)
{
    struct run *run = program->run;

    program->opens =
        run->plan.writes && !run->counter_ready && program->task == run->cluster->chief;
    if (program->opens)
        program->call = cluster_counter_open(program->task, ITEMS, -1);
    return program->opens;
}

static void go_on(struct program *program)
{
    struct cluster_task *task = program->task;
    const struct mu__session *shared;

    if (opens_counter(program))
        return;
    if (task->session == NULL) {
        program->call = cluster_open(task, chance(program, 50) ? 2000 : -1);
        return;
    }
    shared = &task->session->shared;
    look_at_names(program);
    if (atomic_load(&shared->phase) != MU__SESSION_FINE) {
        program->call = cluster_ask(task, MU__CLIENT_RAISE, -1);
    } else if (program->names_next < program->names_count && chance(program, 50)) {
        schedule_names(program);
    } else if (program->scheduled < program->goal && program->waits) {
        program->call = cluster_ask(task, MU__CLIENT_ROOM, -1);
    } else if (program->scheduled < program->goal) {
        schedule_burst(program);
        program->call = ask_some(program);
    } else if (cluster_count(&shared->scheduled) != cluster_count(&shared->resolved)) {
        program->call = cluster_ask(task, MU__CLIENT_JOIN, -1);
    } else if (!program_all_names_finished(program)) {
        if (program->names_next == program->names_count)
            program->names_next = 0;
        schedule_names(program);
    } else {
        program->finished = true;
    }
}

void program_step(struct sim *sim, void *arg)
{
    struct program *program = arg;

    if (program->call != NULL && program->call->done)
        take_answer(program);
    if (program->call == NULL && sim_alive(program->task->node))
        go_on(program);
    if (!program->finished)
        sim_at(sim, sim_now_ms(sim) + draw(program, 1, PAUSE_MAX_MS), program_step,
               program);
}
