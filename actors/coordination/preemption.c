/* Preemption: a task, or its machine, will be stopped. All tasks report the step they
 * have reached and begin no other; all stop at one more than the largest of these.
 *
 *          a notice         all have reported        the next notice
 *     NONE ----------> RUNNING ---------------> OVER ----------------> RUNNING ...
 *       '--> EARLY -------^  15 minutes before the preemption
 *
 * A round is written into a store that lasts before any message of it is sent, and so is
 * its end: the next host goes on with it, or repeats its outcome. */
#include "actors/coordination/internal.h"
#include "actors/coordination/job_runs.h"
#include "actors/packing.h"

#include "actors/coordination/barriers/barrier_requests.h"
#include "actors/coordination/keys/key_map.h"
#include "actors/coordination/keys/keys.h"
#include "actors/coordination/preemption.h"
#include "actors/coordination/replies.h"
#include "actors/coordination/roster.h"
#include "actors/coordination/tasks.h"
#include "muster/coordination.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char mu__coord_preempt_record_name[] = "preemption";

enum {
    ROUND_MS = 3 * 60 * 1000, /* a round takes no longer */
    MISSING_NAMED_MAX = 3,
    NOTICES_MAX = 4096 /* of one round */
};

/* ---- voters ---- */

/* NULL: out of memory. */
static struct voter *voter_of(const struct coordination *c,
                              const struct mu__roster_task *task)
{
    struct coord_preempt *p = c->preempt;
    uint32_t size = c->roster->count;

    if (task->slot >= p->voters_size) {
        if (!mu__grow_array((void **)&p->voters, size, sizeof *p->voters))
            return NULL;
        memset(p->voters + p->voters_size, 0,
               (size - p->voters_size) * sizeof *p->voters);
        p->voters_size = size;
    }
    return &p->voters[task->slot];
}

static bool is_vote_missing(const struct voter *voter)
{
    return voter->requested && !voter->reported;
}

/* A voter that was requested already may have missed the message: it is sent again. */
static void request_step(struct mu__ctx *ctx, struct coordination *c,
                         const struct mu__roster_task *task)
{
    struct voter *voter = voter_of(c, task);

    if (voter == NULL) {
        mu__log(ctx, MU__LOG_ERROR, "out of memory: %s is not asked for its step",
                task->name);
        return;
    }
    if (voter->incarnation == task->incarnation && voter->reported)
        return;
    if (!is_vote_missing(voter))
        c->preempt->missing++;
    *voter = (struct voter){.incarnation = task->incarnation, .requested = true};
    if (task->link.up)
        mu__coord_preempt_send_request(ctx, c, task->link.node);
}

static void request_all_steps(struct mu__ctx *ctx, struct coordination *c)
{
    for (uint32_t i = 0; i < c->roster->count; i++)
        if (c->roster->tasks[i]->state == MU__TASK_CONNECTED)
            request_step(ctx, c, c->roster->tasks[i]);
}

/* End the round, and send its outcome to all tasks that were requested. */
static void finish_round(struct mu__ctx *ctx, struct coordination *c)
{
    struct coord_preempt *p = c->preempt;

    p->phase = ROUND_OVER;
    if (p->error.code == 0)
        mu__log(ctx, MU__LOG_INFO,
                "round %" PRIu64 " of preemption: all stop at step %" PRIu64
                ", since %s is about to be preempted",
                p->round, p->step, p->task);
    else
        mu__log(ctx, MU__LOG_WARN, "%s", p->error.message);
    mu__coord_preempt_write_record(ctx, c);
    for (uint32_t i = 0; i < p->voters_size; i++) {
        const struct mu__roster_task *task = c->roster->tasks[i];

        if (p->voters[i].requested && task->link.up &&
            task->incarnation == p->voters[i].incarnation)
            mu__coord_preempt_send_outcome(ctx, c, task->link.node);
    }
    mu__coord_preempt_answer_notices(ctx, c);
}

/* After a change of host, live tasks may not have registered here yet. A task that has
 * registered, and is not connected any more, is not waited for. */
static bool awaits_registration(struct mu__ctx *ctx, const struct coordination *c)
{
    uint64_t until_ms = c->preempt->led_ms + c->config.dead_ms;

    if (c->roster->connected == c->roster->coordinated ||
        mu__coord_clock(ctx, c) >= until_ms)
        return false;
    for (uint32_t i = 0; i < c->roster->count; i++)
        if (c->roster->tasks[i]->coordinated && !c->roster->tasks[i]->seen)
            return true;
    return false;
}

static void finish_when_complete(struct mu__ctx *ctx, struct coordination *c)
{
    struct coord_preempt *p = c->preempt;

    if (p->phase != ROUND_RUNNING || p->missing > 0)
        return;
    if (awaits_registration(ctx, c))
        return;
    p->step = 0;
    for (uint32_t i = 0; i < p->voters_size; i++)
        if (p->voters[i].reported && p->voters[i].counts && p->voters[i].step >= p->step)
            p->step = p->voters[i].step + 1;
    finish_round(ctx, c);
}

/* ---- rounds ---- */

static void run_preemption_round(struct mu__ctx *ctx, struct coordination *c)
{
    struct coord_preempt *p = c->preempt;

    p->phase = ROUND_RUNNING;
    p->begun_ms = mu__coord_clock(ctx, c);
    p->step = 0;
    p->error.code = 0;
    p->missing = 0;
    if (p->voters_size > 0)
        memset(p->voters, 0, p->voters_size * sizeof *p->voters);
    mu__log(ctx, MU__LOG_INFO,
            "round %" PRIu64 " of preemption: %s is about to be preempted (%s)", p->round,
            p->task, p->reason);
    mu__coord_preempt_write_record(ctx, c);
    request_all_steps(ctx, c);
    finish_when_complete(ctx, c);
}

/* Read the record of a former host: a round that has not ended goes on, an early one
 * begins now, since its remaining time is not known. */
static void resume_former_round(struct mu__ctx *ctx, struct coordination *c)
{
    struct coord_preempt *p = c->preempt;
    char key[MU__RUN_KEY_MAX];
    struct mu__key_value entry;

    if (p->is_read || !c->leads)
        return;
    p->is_read = true;
    p->led_ms = mu__coord_clock(ctx, c);
    p->noticed_ms = p->led_ms;
    (void)mu__coord_run_key(c, mu__coord_preempt_record_name, key);
    if (!mu__coord_keys_get_own(c, key, &entry))
        return;
    if (!mu__coord_preempt_read_record(p, entry.value)) {
        mu__log(ctx, MU__LOG_WARN, "key \"%s\" is no record of a round of preemption",
                key);
        p->phase = ROUND_NONE;
        p->round = 0;
        return;
    }
    /* The outcome is for processes of the closed host's time alone. */
    if (p->phase == ROUND_OVER && entry.revision <= mu__coord_run(c)->quiet_revision) {
        p->phase = ROUND_NONE;
        return;
    }
    if (p->phase == ROUND_EARLY)
        p->round++;
    if (p->phase != ROUND_OVER)
        run_preemption_round(ctx, c);
}

static bool is_repeated_notice(const struct coord_preempt *p,
                               const struct mu__roster_task *task, uint64_t token)
{
    return p->by == task->incarnation && p->token == token && p->by != 0;
}

static struct preempt_notice *find_notice(
    const struct coord_preempt *p, const struct mu__roster_task *task, uint64_t token)
{
    struct preempt_notice *at = p->notices;

    while (at != NULL && (at->task != task || at->incarnation != task->incarnation ||
                          at->token != token))
        at = at->next;
    return at;
}

/* Add a notice, to be answered with the round. False: it was refused; too many wait. */
static bool add_notice(struct mu__ctx *ctx, struct coordination *c,
                       const struct mu__roster_task *task,
                       const struct mu__preempt_notice *body)
{
    struct coord_preempt *p = c->preempt;
    struct preempt_notice *notice =
        p->notices_count < NOTICES_MAX ? malloc(sizeof *notice) : NULL;
    mu_error error;

    if (notice == NULL) {
        (void)mu_error_set(&error, -MU_EEXHAUSTED,
                           "%" PRIu32 " notices of preemption wait already",
                           p->notices_count);
        mu__coord_answer(ctx, c, task->link.node, body->token, &error);
        return false;
    }
    *notice = (struct preempt_notice){
        .next = p->notices,
        .task = task,
        .token = body->token,
        .incarnation = task->incarnation,
    };
    if (body->timeout_ms != 0 && body->timeout_ms < UINT32_MAX) {
        notice->due_ms = mu__coord_clock(ctx, c) + body->timeout_ms;
        p->notices_due_ms = mu__coord_earlier(p->notices_due_ms, notice->due_ms);
    }
    p->notices = notice;
    p->notices_count++;
    return true;
}

/* Note the task to be preempted, and when. Of several notices before a round the one with
 * the shortest grace time counts. */
static void note_preempted_task(struct mu__ctx *ctx, struct coordination *c,
                                const char *task, struct mu__view reason,
                                uint64_t grace_ms)
{
    struct coord_preempt *p = c->preempt;

    (void)snprintf(p->task, sizeof p->task, "%s", task);
    mu__view_copy(reason, p->reason, sizeof p->reason);
    p->grace_ms = grace_ms;
    p->noticed_ms = mu__coord_clock(ctx, c);
    p->by = p->token = 0;
}

static void begin_next_round(struct mu__ctx *ctx, struct coordination *c)
{
    c->preempt->round++;
    run_preemption_round(ctx, c);
}

/* The preemption is far: the notices are answered now, and the round begins later. */
static void begin_early(struct mu__ctx *ctx, struct coordination *c)
{
    struct coord_preempt *p = c->preempt;

    p->phase = ROUND_EARLY;
    mu__log(ctx, MU__LOG_INFO,
            "%s is to be preempted in %" PRIu64 " s: a round of preemption "
            "begins 15 minutes before",
            p->task, p->grace_ms / 1000);
    mu__coord_preempt_write_record(ctx, c);
}

void mu__coord_preempt_key(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                           struct mu__view value)
{
    const struct mu__roster_task *task = mu__roster_at_node(c->roster, node);
    struct coord_preempt *p = c->preempt;

    resume_former_round(ctx, c);
    if (p->phase == ROUND_RUNNING)
        return;
    mu__coord_preempt_forget_notices(p);
    note_preempted_task(ctx, c, task == NULL ? "unknown" : task->name, value, 0);
    begin_next_round(ctx, c);
}

static void handle_preempt_notice(struct mu__ctx *ctx, struct coordination *c,
                                  const struct mu__roster_task *task,
                                  const struct mu__preempt_notice *body)
{
    struct coord_preempt *p = c->preempt;
    uint64_t grace_ms = body->grace_ms > UINT32_MAX ? UINT32_MAX : body->grace_ms;
    bool is_early = grace_ms > MU_PREEMPTION_EARLY_MS;

    if (p->phase == ROUND_RUNNING) {
        (void)add_notice(ctx, c, task, body);
        return;
    }
    if (p->phase != ROUND_EARLY)
        mu__coord_preempt_forget_notices(p);
    if (!add_notice(ctx, c, task, body))
        return;
    if (p->phase != ROUND_EARLY || !is_early ||
        grace_ms < mu__coord_preempt_grace_left(p, mu__coord_clock(ctx, c))) {
        note_preempted_task(ctx, c, task->name, body->reason, grace_ms);
        p->by = task->incarnation;
        p->token = body->token;
        if (!is_early) {
            begin_next_round(ctx, c);
            return;
        }
        begin_early(ctx, c);
    }
    mu__coord_preempt_answer_notices(ctx, c);
}

void mu__coord_on_preempt_notice(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__preempt_notice *body = mu__body(msg);
    const struct mu__roster_task *task =
        mu__coord_requester(ctx, c, msg->from.node, body->token);
    struct coord_preempt *p = c->preempt;
    const struct preempt_notice *known;

    if (task == NULL)
        return;
    resume_former_round(ctx, c);
    known = find_notice(p, task, body->token);
    if (known != NULL
            ? known->answered
            : is_repeated_notice(p, task, body->token) && p->phase == ROUND_OVER)
        mu__coord_answer(ctx, c, msg->from.node, body->token,
                         p->error.code == 0 ? NULL : &p->error);
    else if (known == NULL)
        handle_preempt_notice(ctx, c, task, body);
}

/* ---- reports of tasks ---- */

/* The report is of a round that this host does not know, or that is over. */
static void send_no_round(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                          uint64_t round)
{
    struct coord_preempt *p = c->preempt;
    mu_error error;

    (void)mu_error_set(&error, -MU_EABORTED, "round %" PRIu64 " of preemption: %s", round,
                       round > p->round
                           ? "the host of the service was lost, and its store with it"
                           : "another round has begun since");
    if (round > p->round && p->phase != ROUND_RUNNING) {
        p->round = round;
        p->phase = ROUND_NONE;
    }
    mu__coord_preempt_send_stop(ctx, c, node, round, 0, &error);
}

void mu__coord_on_preempt_step(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__preempt_step *body = mu__body(msg);
    const struct mu__roster_task *task = mu__coord_requester(ctx, c, msg->from.node, 0);
    struct coord_preempt *p = c->preempt;
    struct voter *voter;

    if (task == NULL)
        return;
    resume_former_round(ctx, c);
    if (body->round != p->round ||
        (p->phase != ROUND_RUNNING && p->phase != ROUND_OVER)) {
        send_no_round(ctx, c, msg->from.node, body->round);
        return;
    }
    if (p->phase == ROUND_OVER) {
        mu__coord_preempt_send_outcome(ctx, c, msg->from.node);
        return;
    }
    voter = voter_of(c, task);
    if (voter == NULL || body->step == UINT64_MAX)
        return;
    p->missing -= is_vote_missing(voter);
    *voter = (struct voter){
        .incarnation = task->incarnation,
        .requested = true,
        .reported = true,
        .counts = body->counts,
        .step = body->step,
    };
    finish_when_complete(ctx, c);
}

void mu__coord_preempt_task_left(struct mu__ctx *ctx, struct coordination *c,
                                 struct mu__roster_task *task)
{
    struct coord_preempt *p = c->preempt;

    if (task->slot >= p->voters_size)
        return;
    p->missing -= is_vote_missing(&p->voters[task->slot]);
    p->voters[task->slot] = (struct voter){.requested = false};
    finish_when_complete(ctx, c);
}

static bool has_voted(const struct coord_preempt *p, const struct mu__roster_task *task)
{
    return task->slot < p->voters_size && p->voters[task->slot].reported &&
           p->voters[task->slot].incarnation == task->incarnation;
}

/* A task that joins while a round runs is requested, too; so is one that joins while the
 * others go on to their stop: it gets the outcome for its report. A task that has
 * reported without getting the outcome repeats its report by itself. */
void mu__coord_preempt_task_joined(struct mu__ctx *ctx, struct coordination *c,
                                   struct mu__roster_task *task)
{
    struct coord_preempt *p = c->preempt;

    resume_former_round(ctx, c);
    if (p->phase == ROUND_RUNNING)
        request_step(ctx, c, task);
    else if (p->phase == ROUND_OVER && p->error.code == 0 && !has_voted(p, task) &&
             task->link.up &&
             mu__coord_preempt_grace_left(p, mu__coord_clock(ctx, c)) > 0)
        mu__coord_preempt_send_request(ctx, c, task->link.node);
}

/* ---- time ---- */

static bool is_voter_missing(void *user, const struct mu__roster_task *task)
{
    const struct coord_preempt *p = user;

    return task->slot < p->voters_size && is_vote_missing(&p->voters[task->slot]);
}

/* Which tasks have not reported their step. */
static void explain_late(struct mu__ctx *ctx, const struct coordination *c,
                         mu_error *ret_error)
{
    const struct coord_preempt *p = c->preempt;
    uint64_t now_ms = mu__coord_clock(ctx, c);
    char missing[256];

    if (mu__roster_describe(c->roster, now_ms, is_voter_missing, c->preempt,
                            MISSING_NAMED_MAX, missing, sizeof missing) == 0)
        (void)mu_error_set(ret_error, -MU_EDEADLINE,
                           "round %" PRIu64 " of preemption: "
                           "after %" PRIu64 " ms not all tasks have registered with this "
                           "host",
                           p->round, now_ms - p->begun_ms);
    else
        (void)mu_error_set(
            ret_error, -MU_EDEADLINE,
            "round %" PRIu64 " of preemption: "
            "after %" PRIu64
            " ms these tasks have not reported the step they have reached: %s",
            p->round, now_ms - p->begun_ms, missing);
    ret_error->kind = MU_ERROR_LIMIT;
}

/* Answer the notices whose timeout is over. The round goes on. */
static void notices_late(struct mu__ctx *ctx, struct coordination *c)
{
    struct coord_preempt *p = c->preempt;
    uint64_t now_ms = mu__coord_clock(ctx, c);
    mu_error error;

    p->notices_due_ms = UINT64_MAX;
    for (struct preempt_notice *at = p->notices; at != NULL; at = at->next) {
        if (at->answered || at->due_ms == 0)
            continue;
        if (at->due_ms > now_ms) {
            p->notices_due_ms = mu__coord_earlier(p->notices_due_ms, at->due_ms);
            continue;
        }
        explain_late(ctx, c, &error);
        if (at->task->link.up && at->task->incarnation == at->incarnation)
            mu__coord_answer(ctx, c, at->task->link.node, at->token, &error);
        at->answered = true;
    }
}

void mu__coord_preempt_tick(struct mu__ctx *ctx, struct coordination *c)
{
    struct coord_preempt *p = c->preempt;
    uint64_t now_ms = mu__coord_clock(ctx, c);

    resume_former_round(ctx, c);
    if (p->phase == ROUND_EARLY &&
        mu__coord_preempt_grace_left(p, now_ms) <= MU_PREEMPTION_EARLY_MS)
        begin_next_round(ctx, c);
    if (p->phase != ROUND_RUNNING)
        return;
    if (now_ms - p->begun_ms >= ROUND_MS) {
        explain_late(ctx, c, &p->error);
        finish_round(ctx, c);
        return;
    }
    notices_late(ctx, c);
    finish_when_complete(ctx, c);
}

uint64_t mu__coord_preempt_due_ms(const struct coordination *c)
{
    const struct coord_preempt *p = c->preempt;
    uint64_t due_ms = p->begun_ms + ROUND_MS;

    if (p->phase == ROUND_EARLY)
        return p->noticed_ms + p->grace_ms - MU_PREEMPTION_EARLY_MS;
    if (p->phase != ROUND_RUNNING)
        return UINT64_MAX;
    due_ms = mu__coord_earlier(due_ms, p->notices_due_ms);
    return p->missing > 0 ? due_ms
                          : mu__coord_earlier(due_ms, p->led_ms + c->config.dead_ms);
}

bool mu__coord_preempt_agreed(const struct coordination *c, uint64_t *ret_round)
{
    const struct coord_preempt *p = c->preempt;

    if (p->phase != ROUND_OVER || p->error.code != 0)
        return false;
    *ret_round = p->round;
    return true;
}

uint64_t mu__coord_preempt_forget_over(struct mu__ctx *ctx, struct coordination *c)
{
    struct coord_preempt *p = c->preempt;
    char key[MU__RUN_KEY_MAX];

    resume_former_round(ctx, c);
    if (p->phase != ROUND_OVER)
        return 0;
    mu__coord_preempt_forget_notices(p);
    p->phase = ROUND_NONE;
    (void)mu__coord_run_key(c, mu__coord_preempt_record_name, key);
    if (c->config.store->lasting)
        (void)mu__coord_keys_delete_own(ctx, c, key);
    return 1;
}

/* ---- the service's begin and end ---- */

/* Nothing is answered: agents repeat their notices and reports. */
void mu__coord_preempt_lost(struct mu__ctx *ctx, struct coordination *c)
{
    struct coord_preempt *p = c->preempt;

    (void)ctx;
    mu__coord_preempt_forget_notices(p);
    mu__free_array(p->voters);
    *p = (struct coord_preempt){.phase = ROUND_NONE, .notices_due_ms = UINT64_MAX};
}

int mu__coord_preempt_init(struct mu__ctx *ctx, struct coordination *c)
{
    (void)ctx;
    c->preempt = calloc(1, sizeof *c->preempt);
    if (c->preempt == NULL)
        return -MU_ENOMEM;
    c->preempt->notices_due_ms = UINT64_MAX;
    return 0;
}

void mu__coord_preempt_done(struct coordination *c)
{
    if (c->preempt == NULL)
        return;
    mu__coord_preempt_forget_notices(c->preempt);
    mu__free_array(c->preempt->voters);
    free(c->preempt);
    c->preempt = NULL;
}
