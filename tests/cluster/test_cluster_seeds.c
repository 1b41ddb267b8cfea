/* Clusters of one to fifty workers under faults that all follow from a seed: some hundred
 * closures each, scheduled by the chief and by clients, while processes crash, stand
 * still and lose each other, functions hang and queues are full. In some runs the chief
 * crashes too: what its program and its clients had scheduled ends with it, and everybody
 * starts over. Then everything heals, and everything must come to its end.
 *
 * What must be is said in tests/sim/cluster.h, and looked for after every event. Run by
 * hand for more seeds or others: test_cluster_seeds FIRST COUNT. */
#include "actors/messages.h"
#include "tests/sim/changing.h"
#include "tests/sim/chaos.h"
#include "tests/sim/cluster.h"
#include "tests/sim/mending.h"
#include "tests/sim/random.h"
#include "tests/sim/storage.h"
#include "tests/sim/twins.h"
#include "tests/support/seeds.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    SEEDS = 2000,
    EVENTS_MAX = 20 * 1000 * 1000,  /* of a seed; the usual is some ten thousand */
    PROGRAMS_MAX = 3,
    NAMES_MAX = 60,             /* closures with names, in a run with a journal */
    LIVELY_MAX = 10,            /* workers of a cluster with quick heartbeats */
    CHAOS_MS = 12 * 1000,       /* all of these: virtual time */
    HEALED_MS = 300 * 1000,
    REST_MS = 10 * 1000,
    STUCK_MIN_MS = 30 * 1000,
    STUCK_MAX_MS = 600 * 1000,
    ITEMS = 256,                /* closures that write have a key below it */
    QUEUE_WIDE = 4096,          /* a queue that is never full here */
    BURST_MAX = 12,
    SUM_BYTES_MAX = 512,        /* of the arguments of one */
    PAUSE_MAX_MS = 250
};

struct run;

/* Rare places: how often runs came there. */
enum reached {
    KEPT,
    WITH_INPUTS,
    RECOMPUTED,
    RELEASED,
    CANCELLED,
    DRAINED,
    JOURNALS,                   /* chiefs that read one */
    KNOWN,                      /* names that had finished in a former life */
    NOT_WRITTEN,
    BACKUPS,
    STUCK,
    FENCES,                     /* chiefs of runs that write */
    ADDED, REMOVED, MOVED,      /* workers, as chiefs learned of it */
    OF_TYPE,                    /* closures for tasks of one type alone */
    WAITED,                     /* looks at clients whose closures had no room */
    RECALLED,
    HANGS_RECALLED,             /* the same, in runs where functions hang */
    REFUSED,                    /* damaged files that a chief did not start over */
    TIGHT,                      /* times that a disk had no room, also over restarts */
    TWINS_TOLD,                 /* second processes that heard that they are */
    TOOK_OVER,                  /* first ones that did: they had stood still */
    REACHED
};

static const char *const reached_words[REACHED] = {
    [KEPT] = "results kept",        [WITH_INPUTS] = "closures with inputs",
    [RECOMPUTED] = "seen being computed again",
    [RECALLED] = "given back by workers",
    [HANGS_RECALLED] = "of these where functions hang",
    [REFUSED] = "damaged files refused",
    [TIGHT] = "disks without room",
    [TWINS_TOLD] = "second processes told to end",
    [TOOK_OVER] = "tasks taken over",
    [RELEASED] = "released",        [CANCELLED] = "cancelled one by one",
    [DRAINED] = "workers that left",
    [JOURNALS] = "journals read",   [KNOWN] = "names known to a later chief",
    [NOT_WRITTEN] = "journal errors raised",
    [BACKUPS] = "backups",          [STUCK] = "stuck runs given up",
    [FENCES] = "chiefs of runs that write",
    [ADDED] = "workers added",      [REMOVED] = "removed",
    [MOVED] = "moved",
    [OF_TYPE] = "closures for one type alone",
    [WAITED] = "looks at closures that waited for room",
};

/* ---- Programs ---- */

/* A closure that the chief's program schedules under a name, in each of its lives, until
 * it has finished. */
struct named {
    char name[16];
    int64_t key;                /* negative: it was never scheduled */
    bool writes;
    bool seen;                  /* finished, in whatever life */
    struct cluster_closure *closure;    /* the last one */
};

/* What the chief's program or a client does: bursts of closures, and now and then a
 * question. A step happens every so often; one that finds a call unanswered waits. */
struct program {
    struct run *run;
    struct cluster_task *task;
    struct sim_random random;
    uint64_t goal;              /* closures to schedule, over all sessions */
    bool waits;                 /* for room, before it schedules */
    bool asks;                  /* has wishes about how closures are run */
    uint64_t scheduled;
    uint64_t failed_mark;       /* how many had failed when an error was raised last */
    struct cluster_call *call;  /* that it waits for */
    bool opens;                 /* the call opens the counter */
    uint64_t raised;            /* errors; of these: */
    uint64_t given_up;
    uint64_t chief_lost;
    uint64_t not_written;       /* by the journal */
    struct named names[NAMES_MAX];
    unsigned names_count;
    unsigned names_next;        /* to be scheduled in this session */
    struct cluster_per_worker *mine;
    struct cluster_call *leaves;        /* of the worker that is to leave */
    struct cluster_task *leaving;
    bool finished;
};

/* What is drawn beside the cluster's options. */
struct plan {
    uint64_t chaos_ms;
    uint64_t healed_ms;         /* for what is left after all chaos */
    unsigned stuck_percent;
    bool chief_crashes;
    bool asks;
    bool writes;
    bool keeps;                 /* results, and per-worker values */
    bool cancels;               /* closures one by one */
    bool drains;
    bool journal;
    bool full_disk;             /* for a while */
    bool changes;               /* of the cluster */
    bool mixed;                 /* functions are now quick, now slow */
    bool types;                 /* closures for tasks of one type alone */
    unsigned hurt_percent;      /* of the chief's crashes that damage its journal */
    bool tight;                 /* there is no room on its disk now and then */
    unsigned twins;             /* second processes of tasks */
};

struct run {
    struct cluster *cluster;
    struct plan plan;
    struct program programs[PROGRAMS_MAX];
    size_t programs_count;
    bool counter_ready;         /* the chief has opened it */
    struct sim_storage *journal;
    struct cluster_changing changing;
    struct cluster_mending mending;
    struct cluster_twins twins;
    uint64_t *reached;          /* the verdict's */
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
        return;     /* the wait is over, and not a closure's time */
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
    unsigned workers = type == NULL || strcmp(type, "worker") == 0 ? options->workers
                                                                   : options->gpus;
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
static struct cluster_closure *
draw_closure(struct program *program, bool (*fits)(const struct cluster_closure *closure))
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

    return closure != NULL &&
           (closure->session->troubled || closure->session->closing ||
            closure->cancelled || closure->future->error != NULL ||
            !closure->session->over);
}

static void schedule_name(struct program *program, struct named *named)
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
        named->writes = named->writes && program->run->counter_ready &&
                        cluster->key_next < ITEMS;
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
        schedule_name(program, named);
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

static bool all_names_finished(const struct program *program)
{
    for (unsigned i = 0; i < program->names_count; i++)
        if (!has_finished(&program->names[i]) ||
            program->names[i].closure->session != program->task->session)
            return false;
    return true;
}

static void draw_names(struct program *program)
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
    const mu_cluster *known = cluster->chief->spec != NULL ? cluster->chief->spec
                                                           : cluster->spec;
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
        mu_value_free(call->of.call.operation == MU__CLIENT_STATUS
                          ? call->of.client.status
                          : NULL);
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

static void release_some(struct program *program)
{
    struct cluster_closure *closure = draw_closure(program, is_kept);

    if (program->mine != NULL && chance(program, 20))
        cluster_release_mine(program->mine);
    if (closure == NULL)
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

    program->opens = run->plan.writes && !run->counter_ready &&
                     program->task == run->cluster->chief;
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
    } else if (!all_names_finished(program)) {
        if (program->names_next == program->names_count)
            program->names_next = 0;
        schedule_names(program);
    } else {
        program->finished = true;
    }
}

static void step(struct sim *sim, void *arg)
{
    struct program *program = arg;

    if (program->call != NULL && program->call->done)
        take_answer(program);
    if (program->call == NULL && sim_alive(program->task->node))
        go_on(program);
    if (!program->finished)
        sim_at(sim, sim_now_ms(sim) + draw(program, 1, PAUSE_MAX_MS), step, program);
}

/* ---- The cluster changes ---- */

/* As the chief learns of it. */
static void count_changes(void *user, struct cluster_task *task, const mu_cluster *before,
                          const mu_cluster *after)
{
    struct run *run = user;
    static const enum reached places[] = {
        [MU__CHANGE_ADDED] = ADDED,
        [MU__CHANGE_REMOVED] = REMOVED,
        [MU__CHANGE_MOVED] = MOVED,
    };
    struct mu__changes changes;

    if (task != run->cluster->chief || !sim_alive(task->node))
        return;
    assert_int_equal(mu__changes_find(before, after, &changes), 0);
    for (size_t i = 0; i < changes.count; i++)
        run->reached[places[changes.rows[i].kind]]++;
    mu__changes_done(&changes);
}

/* ---- Runs ---- */

struct verdict {
    uint64_t digest;
    uint64_t closures;
    uint64_t runs;
    uint64_t retried;
    uint64_t cancelled;
    uint64_t raised;
    uint64_t given_up;
    uint64_t chief_lost;
    uint64_t chief_lives;
    uint64_t reached[REACHED];
    uint64_t events_max;
    struct sim_counters counters;
    char broken[256];
};

/* Small ones often: there is most to be seen where few are left. */
static unsigned draw_workers(struct sim_random *random)
{
    uint64_t percent = sim_between(random, 0, 99);

    if (percent < 70)
        return (unsigned)sim_between(random, 1, 6);
    if (percent < 90)
        return (unsigned)sim_between(random, 7, 16);
    return (unsigned)sim_between(random, 17, 50);
}

/* Heartbeats are most of what there is to simulate in a wide cluster, and in one that
 * waits for minutes: they come less often there. */
static void draw_pulse(struct cluster_options *options, struct sim_random *random,
                       bool waits)
{
    bool lively = sim_chance(random, 70) && options->workers <= LIVELY_MAX && !waits;

    options->heartbeat_ms = lively ? 100 : 1000;
    options->silence_ms = lively ? 500 : 5000;
}

/* What the chief does on top, and what must not change what closures come to. */
static mu_node_options draw_supervisor(struct sim_random *random)
{
    return (mu_node_options){
        .backup_percent =
            sim_chance(random, 30) ? (unsigned)sim_between(random, 100, 400) : 0,
.watchdog_ms = sim_chance(random, 20) ? (unsigned)sim_between(random, 100, 10000) : 0,
.start_delay_ms = sim_chance(random, 10) ? (unsigned)sim_between(random, 1, 300) : 0,
        .start_delay_max_ms = 1000,
        .measure = sim_chance(random, 20),
.recovery_ms = sim_chance(random, 15) ? (unsigned)sim_between(random, 200, 4000) : 0,
    };
}

static struct cluster_options draw_options(struct sim_random *random)
{
    static const unsigned windows[] = {0, 0, 1, 3};
    static const unsigned attempts[] = {3, 10, 1000};

    return (struct cluster_options){
        .workers = draw_workers(random),
        .servers = (unsigned)sim_between(random, 0, sim_chance(random, 80) ? 2 : 5),
        .clients = (unsigned)sim_between(random, 0, 2),
        .threads = (unsigned)sim_between(random, 1, 4),
        .window = windows[sim_between(random, 0, 3)],
        .adaptive = sim_chance(random, 50),
        .attempts_max = attempts[sim_between(random, 0, 2)],
        .queue_max = sim_chance(random, 15) ? (unsigned)sim_between(random, 1, 40)
                                            : QUEUE_WIDE,
        .node = draw_supervisor(random),
        .effects_add = mu__effects_add,
    };
}

static void draw_journal(struct plan *plan, struct cluster_options *options,
                         struct sim_random *random)
{
    plan->journal = plan->chief_crashes && sim_chance(random, 60);
    if (!plan->journal)
        return;
    plan->full_disk = sim_chance(random, 25);
    options->attempts_max = 1000;
}

static struct plan draw_plan(struct sim_random *random,
                             const struct cluster_options *options)
{
    bool wide = options->workers > LIVELY_MAX;
    bool stuck = sim_chance(random, 15);

    return (struct plan){
        .chaos_ms = wide ? CHAOS_MS / 3 : CHAOS_MS,
        .healed_ms = HEALED_MS + (stuck ? STUCK_MAX_MS : 0),
        .stuck_percent = stuck ? (unsigned)sim_between(random, 1, 3) : 0,
        .chief_crashes = sim_chance(random, 25),
        .asks = sim_chance(random, 50),
        .writes = sim_chance(random, 50) && options->servers > 0,
        .keeps = sim_chance(random, 40),
        .cancels = sim_chance(random, 30),
        .drains = sim_chance(random, 25),
    };
}

static void add_program(struct run *run, struct cluster_task *task,
                        struct sim_random *random)
{
    struct program *program = &run->programs[run->programs_count];

    *program = (struct program){
        .run = run,
        .task = task,
        .random = sim_stream(sim_draw(random), run->programs_count),
        .goal = sim_between(random, 50, 200),
        .waits = sim_chance(random, 30),
        .asks = run->plan.asks,
    };
    if (run->plan.journal && task == run->cluster->chief)
        draw_names(program);
    run->programs_count++;
    sim_at(run->cluster->sim, 1 + sim_between(random, 0, 500), step, program);
}

/* Tasks start in any order, some late. */
static void start_task(struct sim *sim, void *arg)
{
    struct cluster_task *task = arg;

    (void)sim;
    if (!sim_alive(task->node))
        cluster_start(task);
}

static void spare_crashes(struct cluster_task *task)
{
    sim_chaos_spare(task->node, SIM_FAULT_CRASH);
    sim_chaos_spare(task->node, SIM_FAULT_CRASH_MIDWAY);
}

/* Of the run that goes on now: its own stream, since a run that is repeated draws the
 * same. */
static struct sim_random mixed;

static uint64_t draw_mixed_us(const struct mu__work *work)
{
    (void)work;
    if (sim_chance(&mixed, 80))
        return sim_between(&mixed, 10, 500);
    return sim_chance(&mixed, 70) ? sim_between(&mixed, 1000, 20000)
                                  : sim_between(&mixed, 100000, 600000);
}

/* Servers have no backup: what was written would die with them. */
static void draw_world(struct run *run)
{
    struct sim_settings *settings = sim_settings(run->cluster->sim);

    sim_settings_draw(run->cluster->sim);
    settings->stuck_percent = run->plan.stuck_percent;
    settings->stuck = (struct sim_range){STUCK_MIN_MS * UINT64_C(1000),
                                         STUCK_MAX_MS * UINT64_C(1000)};
    settings->stuck_until_us = run->plan.chaos_ms * 1000;
    if (run->plan.mixed)
        settings->work_us = draw_mixed_us;
    if (!run->plan.chief_crashes)
        spare_crashes(run->cluster->chief);
    for (unsigned i = 0; run->plan.writes && i < run->cluster->options.servers; i++)
        spare_crashes(run->cluster->servers[i]);
}

static void journal_dies(struct mu__storage *storage)
{
    sim_storage_die_after((struct sim_storage *)storage, 0);
}

static void journal_is_gone(struct mu__storage *storage)
{
    sim_storage_crash((struct sim_storage *)storage);
}

static void fill_disk(struct sim *sim, void *arg)
{
    struct run *run = arg;

    sim_note(sim, MU__LOG_WARN, "the disk is full");
    sim_storage_fail(run->journal, SIM_STORAGE_FLUSH, 5, -MU_EEXHAUSTED);
    sim_storage_fail(run->journal, SIM_STORAGE_APPEND, 5, -MU_EEXHAUSTED);
}

static bool journal_is_damaged(struct mu__storage *storage)
{
    return sim_storage_is_hurt((struct sim_storage *)storage);
}

static bool journal_is_tight(struct mu__storage *storage)
{
    return sim_storage_is_limited((struct sim_storage *)storage);
}

static void give_journal(struct run *run, uint64_t seed, struct sim_random *random)
{
    run->journal = sim_storage_new("journal", seed);
    run->cluster->chief->journal = (struct cluster_journal){
        &run->journal->base, journal_dies, journal_is_gone, journal_is_damaged,
        journal_is_tight};
    for (unsigned i = 0; run->plan.full_disk && i < 3; i++)
        sim_at(run->cluster->sim, sim_between(random, 500, run->plan.chaos_ms), fill_disk,
               run);
}

/* Of a stream of its own, as all below: runs without it are what they were. */
static void draw_damage(struct plan *plan, uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 105);

    if (!plan->journal)
        return;
    if (sim_chance(&random, 40))
        plan->hurt_percent = (unsigned)sim_between(&random, 20, 100);
    plan->tight = plan->full_disk && sim_chance(&random, 50);
}

static void look_after_journal(struct run *run, uint64_t seed)
{
    if (run->plan.hurt_percent == 0 && !run->plan.tight)
        return;
    run->mending = (struct cluster_mending){
        .cluster = run->cluster,
        .task = run->cluster->chief,
        .storage = run->journal,
        .random = sim_stream(seed, 106),
        .until_ms = run->plan.chaos_ms,
        .hurt_percent = run->plan.hurt_percent,
        .tight = run->plan.tight,
    };
    cluster_mending_begin(&run->mending);
}

static unsigned draw_twins(const struct plan *plan, uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 107);

    return plan->changes || !sim_chance(&random, 40)
               ? 0 : (unsigned)sim_between(&random, 1, CLUSTER_TWINS_MAX);
}

/* A server that takes another one's place has nothing of what was written there. */
static struct cluster_task *choose_doubled(struct cluster_twins *twins)
{
    const struct run *run = twins->user;
    struct cluster *cluster = run->cluster;

    if (cluster->options.servers > 0 && !run->plan.writes &&
        sim_chance(&twins->random, 25))
        return cluster->servers[0];
    return cluster->workers[sim_between(&twins->random, 0,
                                        cluster->options.workers - 1)];
}

static void begin_twins(struct run *run, uint64_t seed)
{
    run->twins = (struct cluster_twins){
        .cluster = run->cluster,
        .random = sim_stream(seed, 108),
        .until_ms = run->plan.chaos_ms,
        .choose = choose_doubled,
        .user = run,
    };
    if (run->plan.twins > 0)
        cluster_twins_begin(&run->twins, run->plan.twins);
}

/* Of a stream of its own: runs without changes are what they were. */
static bool draws_changes(uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 102);

    return sim_chance(&random, 25);
}

/* Of a stream of its own, too: chiefs that have little room for many. */
static void draw_room(struct cluster_options *options, uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 103);

    if (sim_chance(&random, 25)) {
        options->queue_max = (unsigned)sim_between(&random, 1, 12);
        options->clients = (unsigned)sim_between(&random, 1, 2);
    }
    if (sim_chance(&random, 15))
        options->node.queue_bytes_max = sim_between(&random, 1, 100);
}

/* The same: tasks of a type of their own run closures beside the workers. */
static bool draw_types(struct cluster_options *options, uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 109);

    if (!sim_chance(&random, 30))
        return false;
    options->gpus = (unsigned)sim_between(&random, 1, 4);
    return true;
}

static void begin(struct run *run, uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 100);
    struct cluster_options options = draw_options(&random);
    struct plan plan = draw_plan(&random, &options);
    struct cluster *cluster;
    struct sim_chaos chaos;

    draw_journal(&plan, &options, &random);
    draw_pulse(&options, &random, plan.stuck_percent > 0);
    plan.changes = draws_changes(seed);
    draw_room(&options, seed);
    plan.types = draw_types(&options, seed);
    draw_damage(&plan, seed);
    plan.twins = draw_twins(&plan, seed);
    mixed = sim_stream(seed, 104);
    plan.mixed = sim_chance(&mixed, 40);
    cluster = cluster_new(seed, &options);
    *run = (struct run){.cluster = cluster, .plan = plan, .reached = run->reached};
    if (plan.journal)
        give_journal(run, seed, &random);
    draw_world(run);
    sim_trace_level(cluster->sim, MU__LOG_DEBUG);
    for (unsigned i = 0; i < cluster->tasks_count; i++)
        sim_at(cluster->sim, sim_between(&random, 0, 1000), start_task,
               &cluster->tasks[i]);
    add_program(run, cluster->chief, &random);
    for (unsigned i = 0; i < options.clients; i++)
        add_program(run, cluster->clients[i], &random);
    if (plan.changes)
        cluster_changing_begin(&run->changing, &(struct cluster_changing){
            .cluster = cluster,
            .random = sim_stream(seed, 101),
            .until_ms = plan.chaos_ms,
            .learned = count_changes,
            .user = run,
        });
    look_after_journal(run, seed);
    begin_twins(run, seed);
    sim_run_until(cluster->sim, 1000);
    sim_chaos_draw(cluster->sim, &chaos);
    sim_chaos_start(cluster->sim, &chaos, plan.chaos_ms);
}

static bool is_over(void *arg)
{
    struct run *run = arg;
    struct sim_counters counters;

    sim_counters(run->cluster->sim, &counters);
    if (counters.events > EVENTS_MAX)
        cluster_break(run->cluster, "%" PRIu64 " events: nothing comes to an end",
                      counters.events);
    if (run->cluster->broken[0] != '\0')
        return true;
    for (size_t i = 0; i < run->programs_count; i++)
        if (!run->programs[i].finished)
            return false;
    return true;
}

/* Functions that nobody waits for any more have ended too. */
static bool is_idle(void *arg)
{
    struct run *run = arg;

    for (unsigned i = 0; i < run->cluster->tasks_count; i++)
        if (sim_works(run->cluster->tasks[i].node) > 0)
            return false;
    return true;
}

static void tell_unfinished(struct run *run)
{
    for (size_t i = 0; i < run->programs_count; i++) {
        const struct program *program = &run->programs[i];

        if (!program->finished)
            cluster_break(run->cluster, "%s has not finished: %" PRIu64 " of %" PRIu64
                          " scheduled, waits for %d", program->task->name,
                          program->scheduled, program->goal,
                          program->call == NULL ? -1 : program->call->of.call.operation);
    }
}

/* Whether every closure that wrote did so once. */
static void check_counter(struct run *run)
{
    int code = cluster_wait(cluster_counter_read(run->cluster->chief, 60000));

    if (code != 0)
        cluster_break(run->cluster, "the counter cannot be read: %s", mu_strerror(code));
    else
        cluster_check_writes(run->cluster, true);
}

/* After all is done the chief dies once more. Whatever has finished under a name is known
 * to the next one, and is not run again. */
static void check_restart(struct run *run)
{
    struct program *program = &run->programs[0];
    struct cluster *cluster = run->cluster;
    uint64_t runs = cluster->runs_count;

    if (sim_restart(program->task->node) != 0)
        cluster_break(cluster, "the chief does not start again");
    (void)cluster_wait(cluster_open(program->task, -1));
    for (unsigned i = 0; i < program->names_count; i++)
        schedule_name(program, &program->names[i]);
    if (cluster_wait(cluster_ask(program->task, MU__CLIENT_JOIN, 60000)) != 0 ||
        cluster_check(cluster)[0] != '\0')
        cluster_break(cluster, "what had finished fails after a restart");
    if (!all_names_finished(program))
        cluster_break(cluster, "what had finished is not known after a restart");
    if (runs != cluster->runs_count && !run->plan.full_disk)
        cluster_break(cluster, "%" PRIu64 " of what had finished ran again",
                      cluster->runs_count - runs);
    sim_run_until(cluster->sim, sim_now_ms(cluster->sim) + REST_MS);
}

static void count_events(const struct run *run, struct verdict *verdict)
{
    const struct cluster_session *session = run->cluster->sessions;

    sim_counters(run->cluster->sim, &verdict->counters);
    verdict->chief_lives = sim_lives(run->cluster->chief->node);
    verdict->closures = (uint64_t)run->cluster->key_next;
    verdict->runs = run->cluster->runs_count;
    for (; session != NULL; session = session->next) {
        verdict->retried += cluster_count(&session->shared.retried);
        verdict->cancelled += cluster_count(&session->shared.cancelled);
    }
    for (size_t i = 0; i < run->programs_count; i++) {
        verdict->raised += run->programs[i].raised;
        verdict->given_up += run->programs[i].given_up;
        verdict->chief_lost += run->programs[i].chief_lost;
        verdict->reached[NOT_WRITTEN] += run->programs[i].not_written;
    }
    cluster_note_supervisor(run->cluster);
    verdict->reached[RECOMPUTED] = run->cluster->recomputed;
    verdict->reached[RECALLED] = run->cluster->recalled;
    if (run->plan.stuck_percent > 0)
        verdict->reached[HANGS_RECALLED] = run->cluster->recalled;
    verdict->reached[REFUSED] = run->cluster->chief->refused;
    verdict->reached[TIGHT] = run->mending.tight_count;
    verdict->reached[TWINS_TOLD] = run->twins.told;
    verdict->reached[TOOK_OVER] = run->twins.took_over;
    verdict->reached[BACKUPS] = run->cluster->backups;
    verdict->reached[STUCK] = run->cluster->stuck;
    verdict->reached[WAITED] = run->cluster->waited;
    verdict->reached[JOURNALS] = run->plan.journal ? verdict->chief_lives : 0;
    verdict->reached[FENCES] = run->counter_ready ? verdict->chief_lives : 0;
}

static struct verdict run_seed(uint64_t seed, bool show)
{
    struct verdict verdict = {0};
    struct run run;
    struct sim *sim;

    run.reached = verdict.reached;
    begin(&run, seed);
    sim = run.cluster->sim;
    sim_run_until(sim, run.plan.chaos_ms);
    if (run.plan.changes)
        cluster_changing_end(&run.changing);
    if (!sim_run_to(sim, is_over, &run, run.plan.chaos_ms + run.plan.healed_ms))
        tell_unfinished(&run);
    if (run.cluster->broken[0] == '\0') {
        (void)sim_run_to(sim, is_idle, &run, sim_now_ms(sim) + STUCK_MAX_MS);
        sim_run_until(sim, sim_now_ms(sim) + REST_MS);
        if (run.plan.journal && run.cluster->broken[0] == '\0')
            check_restart(&run);
        if (run.counter_ready)
            check_counter(&run);
        (void)cluster_check_rest(run.cluster);
    }
    verdict.digest = sim_digest(sim);
    count_events(&run, &verdict);
    (void)snprintf(verdict.broken, sizeof verdict.broken, "%s", run.cluster->broken);
    if (show)
        fputs(sim_trace(sim), stdout);
    cluster_free(run.cluster);
    cluster_changing_free(&run.changing);
    sim_storage_free(run.journal);
    return verdict;
}

static void add_up(struct verdict *sum, const struct verdict *verdict)
{
    sum->closures += verdict->closures;
    sum->runs += verdict->runs;
    sum->retried += verdict->retried;
    sum->cancelled += verdict->cancelled;
    sum->raised += verdict->raised;
    sum->given_up += verdict->given_up;
    sum->chief_lost += verdict->chief_lost;
    sum->chief_lives += verdict->chief_lives;
    for (size_t i = 0; i < REACHED; i++)
        sum->reached[i] += verdict->reached[i];
    sum->counters.events += verdict->counters.events;
    sum->events_max = verdict->counters.events > sum->events_max
                          ? verdict->counters.events
                          : sum->events_max;
    sum->counters.lives += verdict->counters.lives;
    sum->counters.stuck += verdict->counters.stuck;
    sum->counters.frames_overtaken += verdict->counters.frames_overtaken;
    sum->counters.frames_of_dead += verdict->counters.frames_of_dead;
}

/* A swarm that never comes to the rare places proves nothing about them. */
static void check_reach(const struct verdict *sum)
{
    const struct sim_counters *counters = &sum->counters;
    uint64_t count = seeds_count();

    print_message("%" PRIu64 " closures, %" PRIu64 " runs (%" PRIu64 " stuck), %" PRIu64
                  " retried, %" PRIu64 " cancelled\n", sum->closures, sum->runs,
                  counters->stuck, sum->retried, sum->cancelled);
    print_message("%" PRIu64 " processes, of these %" PRIu64 " chiefs; %" PRIu64
                  " frames overtaken, %" PRIu64 " of the dead\n", counters->lives,
                  sum->chief_lives, counters->frames_overtaken, counters->frames_of_dead);
    print_message("%" PRIu64 " errors raised, of these %" PRIu64 " given up, %" PRIu64
                  " chief lost\n", sum->raised, sum->given_up, sum->chief_lost);
    for (size_t i = 0; i < REACHED; i++)
        print_message("%" PRIu64 " %s%s", sum->reached[i], reached_words[i],
                      i + 1 < REACHED ? ", " : "\n");
    print_message("%" PRIu64 " events, at most %" PRIu64 " in a run\n",
                  counters->events, sum->events_max);
    if (count < SEEDS)
        return;
    assert_true(sum->retried > SEEDS && sum->cancelled > SEEDS);
    assert_true(counters->lives > SEEDS && sum->chief_lives > count + SEEDS / 10);
    assert_true(counters->stuck > SEEDS / 10 && counters->frames_overtaken > SEEDS / 50 &&
                counters->frames_of_dead > SEEDS / 10);
    assert_true(sum->raised > SEEDS && sum->given_up > 0 && sum->chief_lost > 0);
    for (size_t i = 0; i < REACHED; i++)
        assert_true(sum->reached[i] > SEEDS / 50);
}

static void run_one(uint64_t seed, bool show, void *sum,
                    struct seeds_verdict *ret_verdict)
{
    struct verdict verdict = run_seed(seed, show);

    if (sum != NULL)
        add_up(sum, &verdict);
    ret_verdict->digest = verdict.digest;
    (void)snprintf(ret_verdict->broken, sizeof ret_verdict->broken, "%s", verdict.broken);
}

static const struct seeds seeds = {
    .replay = "scripts/soak --seed",
    .count = SEEDS,
    .repeat_every = 40,
    .seconds_max = 30,
    .run = run_one,
};

static void test_seeds(void **state)
{
    struct verdict sum = {0};

    (void)state;
    seeds_expect_well(&seeds, &sum);
    check_reach(&sum);
}

/* 205387, 2076418: a straggler's late result had the chief drop, on that worker, the copy
 * of the result that it had sent there as an input; what ran there waited for ever. */
static void test_seeds_that_once_failed(void **state)
{
    static const uint64_t list[] = {205387, 2076418};

    (void)state;
    seeds_expect_well_again(&seeds, list, sizeof list / sizeof list[0]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seeds_that_once_failed),
        cmocka_unit_test(test_seeds),
    };

    if (!seeds_arguments(&seeds, argc, argv))
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
