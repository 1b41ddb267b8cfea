/* Requests about tasks, and requests that wait for tasks.
 *
 * Ten thousand tasks may wait for the same set: requests about one set are a group,
 * which counts its connected tasks, so that a change of a state costs time by groups, not
 * by requests. The content of a group's answers is packed once. They are sent in the next
 * tick, for all changes until then. */
#include "actors/coordination/task_requests.h"
#include "actors/coordination/barriers/barrier_requests.h"
#include "actors/coordination/names/coord_names.h"
#include "actors/coordination/replies.h"
#include "actors/coordination/roster.h"
#include "actors/coordination/tasks.h"
#include "actors/packing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    WATCH_PAUSE_MS = 50, /* between two answers to the watches of one set */
    NAMED_MAX = 5        /* tasks that are named in a message */
};

/* ---- answers ---- */

static struct group *first_group(const struct coordination *c)
{
    return MU__LIST_FIRST(&c->requests->groups, struct group, link);
}

static struct group *next_group(const struct group *group)
{
    return MU__LIST_NEXT(group, struct group, link);
}

static struct pending_request *first_in_group(const struct group *group)
{
    return MU__LIST_FIRST(&group->requests, struct pending_request, in_group);
}

static struct pending_request *next_in_group(const struct pending_request *pending)
{
    return MU__LIST_NEXT(pending, struct pending_request, in_group);
}

static struct pending_request *first_task_request(const struct mu__roster_task *task)
{
    return MU__LIST_FIRST(&task->requests, struct pending_request, of_task);
}

static struct pending_request *next_of_task(const struct pending_request *pending)
{
    return MU__LIST_NEXT(pending, struct pending_request, of_task);
}

/* The request with the next deadline. */
static struct pending_request *first_due_pending(const struct coord_requests *rs)
{
    return MU__LIST_FIRST(&rs->due, struct pending_request, by_due);
}

static void drop_pending_request(struct coord_requests *rs,
                                 struct pending_request *pending)
{
    mu__coord_group_unlist(rs, pending);
    free(pending);
}

static void answer_pending_request(struct mu__ctx *ctx, struct coordination *c,
                                   struct pending_request *pending, const mu_error *error)
{
    mu__coord_answer(ctx, c, pending->request.node, pending->request.token, error);
    drop_pending_request(c->requests, pending);
}

/* The packed content of a group, made for the first answer. */
struct packed {
    struct mu__buf *buf;
    struct mu__packed content;
};

static void answer_packed(struct mu__ctx *ctx, struct coordination *c,
                          struct pending_request *pending, struct packed *packed)
{
    if (packed->buf == NULL) {
        mu_value *value =
            mu__coord_group_content_of(ctx, c, pending->group,
                                       pending->request.kind == COORD_REQUEST_WAIT
                                           ? MU__TASKS_WAIT
                                           : MU__TASKS_STATES);

        packed->buf = value == NULL ? NULL : mu__pack_value(value, &packed->content);
        mu_value_free(value);
    }
    mu__coord_answer_packed(ctx, c, pending->request.node,
                            &(struct mu__tasks_answer){
                                .token = pending->request.token,
                                .version = pending->group->version,
                                .content = packed->content,
                            },
                            packed->buf);
    drop_pending_request(c->requests, pending);
}

static bool is_request_ready(const struct pending_request *pending, bool watches_too)
{
    const struct group *group = pending->group;

    if (pending->request.kind == COORD_REQUEST_WATCH)
        return watches_too && group->version != pending->request.version;
    return pending->request.kind != COORD_REQUEST_LEAVE &&
           group->connected == group->total;
}

/* Answer the requests that are ready; true: a watch is ready before WATCH_PAUSE_MS are
 * over. */
static bool settle_group(struct mu__ctx *ctx, struct coordination *c, struct group *group)
{
    uint64_t now_ms = mu__coord_clock(ctx, c);
    bool watches_too =
        group->answered_ms == 0 || now_ms - group->answered_ms >= WATCH_PAUSE_MS;
    struct packed packed[COORD_REQUEST_LEAVE] = {{0}};
    struct pending_request *next;
    bool later = false;

    for (struct pending_request *pending = first_in_group(group); pending != NULL;
         pending = next) {
        enum coord_request_kind kind = pending->request.kind;

        next = next_in_group(pending);
        later = later || (kind == COORD_REQUEST_WATCH && !watches_too &&
                          is_request_ready(pending, true));
        if (!is_request_ready(pending, watches_too))
            continue;
        if (kind == COORD_REQUEST_WATCH)
            group->answered_ms = now_ms;
        if (kind == COORD_REQUEST_REGISTER)
            answer_pending_request(ctx, c, pending, NULL);
        else
            answer_packed(ctx, c, pending, &packed[kind]);
    }
    for (int kind = 0; kind < COORD_REQUEST_LEAVE; kind++)
        mu__buf_unref(packed[kind].buf);
    return later;
}

/* ---- timeouts ---- */

static bool is_group_task_missing(void *user, const struct mu__roster_task *task)
{
    const struct group *group = user;

    return task->state != MU__TASK_CONNECTED && mu__coord_group_has(group, task);
}

static bool is_not_leaving(void *user, const struct mu__roster_task *task)
{
    (void)user;
    return mu__coord_shares_fate(task) && !task->leaving && !task->left;
}

/* Cached, since many requests of a group may be due at the same time. */
static const char *missing_of(struct coordination *c, struct group *group,
                              uint64_t now_ms)
{
    struct coord_requests *rs = c->requests;

    if (rs->missing_group == group && rs->missing_ms == now_ms &&
        rs->missing_version == c->roster->version)
        return rs->missing_text;
    rs->missing_group = group;
    rs->missing_ms = now_ms;
    rs->missing_version = c->roster->version;
    (void)mu__roster_describe(c->roster, now_ms, is_group_task_missing, group, NAMED_MAX,
                              rs->missing_text, sizeof rs->missing_text);
    return rs->missing_text;
}

static void describe_missing_tasks(struct coordination *c,
                                   const struct pending_request *pending, uint64_t now_ms,
                                   mu_error *ret_error)
{
    const char *what = pending->request.kind == COORD_REQUEST_REGISTER ? "have registered"
                                                                       : "are connected";
    struct group *group = pending->group;

    (void)mu_error_set(ret_error, -MU_EDEADLINE,
                       "%" PRIu64 " of %" PRIu64 " tasks %s after %" PRIu64
                       " ms; missing: %s",
                       group->connected, group->total, what, now_ms - pending->since_ms,
                       missing_of(c, group, now_ms));
}

static void describe_not_leaving(struct coordination *c,
                                 const struct pending_request *pending, uint64_t now_ms,
                                 mu_error *ret_error)
{
    char missing_text[320];
    uint32_t missing = mu__roster_describe(c->roster, now_ms, is_not_leaving, NULL,
                                           NAMED_MAX, missing_text, sizeof missing_text);

    (void)mu_error_set(ret_error, -MU_EDEADLINE,
                       "the others have not left after %" PRIu64 " ms; %" PRIu32
                       " are missing: %s",
                       now_ms - pending->since_ms, missing, missing_text);
}

static void describe_unchanged(const struct pending_request *pending, uint64_t now_ms,
                               mu_error *ret_error)
{
    const char *tasks = pending->group->text;

    (void)mu_error_set(ret_error, -MU_EDEADLINE,
                       "no state of %" PRIu64 " tasks (%.100s) has changed for %" PRIu64
                       " ms: their version is %" PRIu64 " still",
                       pending->group->total,
                       tasks == NULL || tasks[0] == '\0' ? "all" : tasks,
                       now_ms - pending->since_ms, pending->group->version);
}

static void expire_pending_request(struct mu__ctx *ctx, struct coordination *c,
                                   struct pending_request *pending)
{
    uint64_t now_ms = mu__coord_clock(ctx, c);
    struct mu__roster_task *task = pending->task;
    enum coord_request_kind kind = pending->request.kind;
    mu_error error;

    if (kind == COORD_REQUEST_LEAVE)
        describe_not_leaving(c, pending, now_ms, &error);
    else if (kind == COORD_REQUEST_WATCH)
        describe_unchanged(pending, now_ms, &error);
    else
        describe_missing_tasks(c, pending, now_ms, &error);
    answer_pending_request(ctx, c, pending, &error);
    if (kind == COORD_REQUEST_LEAVE)
        mu__coord_leave_update(c, task);
    if (kind == COORD_REQUEST_REGISTER && mu__coord_shares_fate(task)) {
        (void)snprintf(error.task, sizeof error.task, "%s", task->name);
        mu__coord_fail(ctx, c, task, &error, COORD_FAILED);
    }
}

/* ---- notes ---- */

static bool needs_note(const struct pending_request *pending)
{
    return pending->request.kind == COORD_REQUEST_REGISTER ||
           pending->request.kind == COORD_REQUEST_WAIT;
}

/* All requests of a group that have waited long get their notes at the same time. */
static void log_waiting_group(struct mu__ctx *ctx, struct coordination *c,
                              struct group *group)
{
    uint64_t now_ms = mu__coord_clock(ctx, c);
    uint64_t since_ms = now_ms;
    bool is_due = group->note_ms != 0 && now_ms >= group->note_ms;
    bool waits = false;
    mu_error error;

    if (group->note_ms > now_ms)
        return;
    for (struct pending_request *at = first_in_group(group); at != NULL;
         at = next_in_group(at)) {
        if (!needs_note(at))
            continue;
        waits = true;
        if (at->since_ms < since_ms)
            since_ms = at->since_ms;
        if (!is_due || now_ms - at->since_ms < COORD_NOTE_FIRST_MS)
            continue;
        describe_missing_tasks(c, at, now_ms, &error);
        mu__coord_note(ctx, at->request.node, at->request.token, error.message);
    }
    group->note_ms = waits ? mu__coord_note_next(since_ms, now_ms) : 0;
}

void mu__coord_requests_tick(struct mu__ctx *ctx, struct coordination *c)
{
    struct coord_requests *rs = c->requests;
    uint64_t now_ms = mu__coord_clock(ctx, c);
    struct group *next;

    rs->due_ms = UINT64_MAX;
    for (struct group *group = first_group(c); group != NULL; group = next_group(group)) {
        if (!group->due)
            continue;
        group->due = settle_group(ctx, c, group);
        if (group->due)
            rs->due_ms =
                mu__coord_earlier(rs->due_ms, group->answered_ms + WATCH_PAUSE_MS);
    }
    while (first_due_pending(rs) != NULL && first_due_pending(rs)->due_ms <= now_ms)
        expire_pending_request(ctx, c, first_due_pending(rs));
    for (struct group *group = first_group(c); group != NULL; group = next_group(group)) {
        log_waiting_group(ctx, c, group);
        if (group->note_ms != 0)
            rs->due_ms = mu__coord_earlier(rs->due_ms, group->note_ms);
    }
    for (struct group *group = first_group(c); group != NULL; group = next) {
        next = next_group(group);
        mu__coord_group_group_drop(rs, group);
    }
}

uint64_t mu__coord_requests_due_ms(const struct coordination *c)
{
    const struct pending_request *first = first_due_pending(c->requests);

    return mu__coord_earlier(c->requests->due_ms,
                             first == NULL ? UINT64_MAX : first->due_ms);
}

/* ---- the cluster changes ---- */

static int change_set(struct mu__task_set *set, const struct mu__roster_task *task,
                      bool is_in)
{
    return is_in ? mu__task_set_add(set, task->type, task->index)
                 : mu__task_set_remove(set, task->type, task->index);
}

int mu__coord_requests_cluster(struct coordination *c, const struct mu__roster_task *task)
{
    struct group *all = c->requests->all;
    int rv = change_set(&all->set, task, task->coordinated);

    if (rv != 0)
        return rv;
    all->total = c->roster->coordinated;
    all->connected = c->roster->connected;
    all->version = c->roster->version;
    all->due = true;
    c->requests->missing_group = NULL;
    c->requests->due_ms = 0;
    return 0;
}

static void end_group_waits(struct mu__ctx *ctx, struct coordination *c,
                            struct group *group, const mu_error *error)
{
    struct pending_request *next;

    for (struct pending_request *pending = first_in_group(group); pending != NULL;
         pending = next) {
        next = next_in_group(pending);
        if (pending->request.kind == COORD_REQUEST_WAIT)
            answer_pending_request(ctx, c, pending, error);
    }
}

static void end_waits_for(struct mu__ctx *ctx, struct coordination *c,
                          struct group *group, const struct mu__roster_task *task)
{
    mu_error error;

    (void)mu_error_set(&error, -MU_ENOTFOUND,
                       "waited for %s, which was removed from the cluster", task->name);
    error.kind = MU_ERROR_WORKER;
    (void)snprintf(error.task, sizeof error.task, "%s", task->name);
    end_group_waits(ctx, c, group, &error);
}

void mu__coord_requests_removed(struct mu__ctx *ctx, struct coordination *c,
                                const struct mu__roster_task *task)
{
    for (struct group *group = first_group(c); group != NULL; group = next_group(group))
        if (group != c->requests->all && !group->guests &&
            mu__coord_group_has(group, task))
            end_waits_for(ctx, c, group, task);
}

const struct mu__task_set *mu__coord_requests_all(const struct coordination *c)
{
    return &c->requests->all->set;
}

/* ---- asking ---- */

static struct pending_request *find_pending_request(const struct mu__roster_task *task,
                                                    uint64_t token)
{
    struct pending_request *pending = first_task_request(task);

    while (pending != NULL && pending->request.token != token)
        pending = next_of_task(pending);
    return pending;
}

static int add_pending_request(struct mu__ctx *ctx, struct coordination *c,
                               struct mu__roster_task *task,
                               const struct coord_request *request, mu_error *ret_error)
{
    struct coord_requests *rs = c->requests;
    uint64_t now_ms = mu__coord_clock(ctx, c);
    struct pending_request *pending;
    struct group *group;
    int rv;

    if (rs->count == PENDING_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%d requests about tasks wait already", PENDING_MAX);
    if (task->requests_count == PENDING_OF_TASK_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%d requests about tasks of %s wait already, as many as one "
                            "task may have",
                            PENDING_OF_TASK_MAX, task->name);
    rv = mu__coord_group_group_of(c, request, ret_error, &group);
    if (rv != 0)
        return rv;
    pending = malloc(sizeof *pending);
    if (pending == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    *pending = (struct pending_request){
        .request = *request,
        .task = task,
        .group = group,
        .since_ms = now_ms,
        .due_ms = request->timeout_ms == 0 || request->timeout_ms > UINT64_MAX / 2
                      ? UINT64_MAX
                      : now_ms + request->timeout_ms,
    };
    /* Its text belongs to the message. */
    pending->request.tasks = (struct mu__view){0};
    mu__coord_group_enlist(rs, pending);
    group->due = true;
    if (is_request_ready(pending, true))
        rs->due_ms = 0;
    return 0;
}

void mu__coord_request_add(struct mu__ctx *ctx, struct coordination *c,
                           struct mu__roster_task *task,
                           const struct coord_request *request)
{
    struct pending_request *pending = find_pending_request(task, request->token);
    mu_error error;

    if (pending != NULL)
        pending->request.node = request->node;
    else if (add_pending_request(ctx, c, task, request, &error) != 0)
        mu__coord_answer(ctx, c, request->node, request->token, &error);
}

bool mu__coord_request_waits(const struct mu__roster_task *task,
                             enum coord_request_kind kind)
{
    const struct pending_request *pending = first_task_request(task);

    while (pending != NULL && pending->request.kind != kind)
        pending = next_of_task(pending);
    return pending != NULL;
}

void mu__coord_requests_answer(struct mu__ctx *ctx, struct coordination *c,
                               const struct mu__roster_task *task, int kind,
                               const mu_error *error)
{
    struct pending_request *next;

    for (struct pending_request *pending = first_task_request(task); pending != NULL;
         pending = next) {
        next = next_of_task(pending);
        if (kind < 0 || pending->request.kind == (enum coord_request_kind)kind)
            answer_pending_request(ctx, c, pending, error);
    }
}

void mu__coord_requests_drop(struct coordination *c, const struct mu__roster_task *task,
                             uint32_t node)
{
    struct pending_request *next;

    for (struct pending_request *pending = first_task_request(task); pending != NULL;
         pending = next) {
        next = next_of_task(pending);
        if (pending->request.node == node)
            drop_pending_request(c->requests, pending);
    }
}

void mu__coord_requests_changed(struct coordination *c,
                                const struct mu__roster_task *task, bool was_connected)
{
    bool is_connected = task->state == MU__TASK_CONNECTED;

    for (struct group *group = first_group(c); group != NULL; group = next_group(group)) {
        if (!mu__coord_group_has(group, task))
            continue;
        if (!group->guests)
            group->connected = group->connected + is_connected - was_connected;
        else
            group->total = c->roster->count;
        group->version = task->version;
        group->due = !mu__list_is_empty(&group->requests);
        if (group->due)
            c->requests->due_ms = 0;
    }
}

/* ---- TASKS_GET ---- */

/* STATES and DEVICES are answered at once. */
static void answer_at_once(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                           const struct mu__tasks_get *body)
{
    struct group *group = NULL;
    mu_value *content = NULL;
    mu_error error = {.code = 0};

    if (mu__coord_group_group_new(c, body->tasks, body->tasks.size == 0, &error,
                                  &group) == 0) {
        content =
            mu__coord_group_content_of(ctx, c, group, (enum mu__tasks_what)body->what);
        if (content == NULL)
            (void)mu_error_set(&error, -MU_ENOMEM, "%s is out of memory", c->config.task);
    }
    if (error.code != 0)
        mu__coord_answer(ctx, c, node, body->token, &error);
    else
        mu__coord_answer_value(ctx, c, node, body->token, group->version, content);
    mu__coord_group_group_free(group);
}

static void wait_for_tasks(struct mu__ctx *ctx, struct coordination *c,
                           struct mu__roster_task *task, uint32_t node,
                           const struct mu__tasks_get *body)
{
    bool watches = body->what == MU__TASKS_WATCH;
    const struct coord_request request = {
        .kind = watches ? COORD_REQUEST_WATCH : COORD_REQUEST_WAIT,
        .node = node,
        .token = body->token,
        /* 0: no version is known, so any one is new. */
        .version = body->version == 0 ? UINT64_MAX : body->version - 1,
        .timeout_ms = body->timeout_ms,
        .tasks = body->tasks,
    };

    mu__coord_request_add(ctx, c, task, &request);
}

void mu__coord_on_tasks_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__tasks_get *body = mu__body(msg);
    struct mu__roster_task *task =
        mu__coord_requester(ctx, c, msg->from.node, body->token);
    mu_error error;

    if (task == NULL)
        return;
    switch (body->what) {
    case MU__TASKS_STATES:
    case MU__TASKS_DEVICES:
        answer_at_once(ctx, c, msg->from.node, body);
        break;
    case MU__TASKS_WAIT:
    case MU__TASKS_WATCH:
        wait_for_tasks(ctx, c, task, msg->from.node, body);
        break;
    case MU__TASKS_ALIVE:
        mu__coord_alive(ctx, c, task, body);
        break;
    case MU__TASKS_ACTORS:
        mu__coord_answer_value(ctx, c, msg->from.node, body->token, 0,
                               mu__coord_names_list(ctx, c));
        break;
    default:
        (void)mu_error_set(&error, -MU_EINVALID, "tasks cannot be asked for %" PRIu32,
                           body->what);
        mu__coord_answer(ctx, c, msg->from.node, body->token, &error);
    }
}

/* ---- start and end ---- */

/* The group of all needs the roster. */
int mu__coord_requests_init(struct mu__ctx *ctx, struct coordination *c)
{
    mu_error error;
    int rv;

    c->requests = calloc(1, sizeof *c->requests);
    if (c->requests == NULL)
        return -MU_ENOMEM;
    rv = mu__coord_group_group_new(c, mu__view_str(c->config.tasks), false, &error,
                                   &c->requests->all);
    if (rv != 0) {
        mu__log(ctx, MU__LOG_ERROR, "coordinated jobs: %s", error.message);
        return rv;
    }
    c->requests->all->stays = true;
    mu__list_append(&c->requests->groups, &c->requests->all->link);
    c->requests->groups_count = 1;
    return 0;
}

void mu__coord_requests_forget(struct coordination *c)
{
    struct coord_requests *rs = c->requests;
    struct group *next;

    while (first_due_pending(rs) != NULL)
        drop_pending_request(rs, first_due_pending(rs));
    for (struct group *group = first_group(c); group != NULL; group = next) {
        next = next_group(group);
        group->connected = 0;
        group->due = false;
        mu__coord_group_group_drop(rs, group);
    }
}

void mu__coord_requests_stop(struct mu__ctx *ctx, struct coordination *c,
                             const mu_error *error)
{
    while (first_due_pending(c->requests) != NULL)
        answer_pending_request(ctx, c, first_due_pending(c->requests), error);
}

void mu__coord_requests_done(struct coordination *c)
{
    struct coord_requests *rs = c->requests;

    if (rs == NULL)
        return;
    mu__coord_requests_forget(c);
    mu__coord_group_group_free(rs->all);
    free(rs);
    c->requests = NULL;
}
