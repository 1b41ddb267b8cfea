/* Clients, and a closure's way from SCHEDULE into its queue. */
#include "actors/supervisor/actions.h"
#include "actors/supervisor/handlers.h"
#include "actors/supervisor/inputs.h"
#include "actors/supervisor/journaling.h"
#include "actors/supervisor/roles.h"
#include "actors/supervisor/unread.h"

enum { CLIENTS_MAX = 4096, SLOTS_FIRST = 256, COPY_SLACK_BYTES = 512 };

/* ---- Clients ---- */

static bool client_is(const struct supervisor_client *client, mu__pid pid)
{
    return client->present && mu__pid_equal(client->pid, pid);
}

static struct supervisor_client *client_new(struct supervisor *s, mu__pid pid)
{
    struct supervisor_client *client;
    uint32_t i;

    for (i = 0; i < s->clients.count; i++)
        if (!s->clients.items[i].present && s->clients.items[i].closures == 0)
            break;
    if (i == CLIENTS_MAX)
        return NULL;
    if (i == s->clients.count &&
        !mu__grow_array((void **)&s->clients.items, i + 1, sizeof *s->clients.items))
        return NULL;
    if (i == s->clients.count)
        s->clients.items[s->clients.count++] = (struct supervisor_client){.closures = 0};
    client = &s->clients.items[i];
    *client = (struct supervisor_client){.pid = pid, .present = true};
    mu__map_seed(&client->tokens, s->functions.secret); /* clients choose the
                                                           tokens */
    return client;
}

static struct supervisor_client *find_last_client(const struct supervisor *s, mu__pid pid)
{
    return s->clients.last < s->clients.count &&
                   client_is(&s->clients.items[s->clients.last], pid)
               ? &s->clients.items[s->clients.last]
               : NULL;
}

struct supervisor_client *mu__sup_find_client(struct supervisor *s, mu__pid pid)
{
    struct supervisor_client *last = find_last_client(s, pid);

    if (last != NULL)
        return last;
    for (uint32_t i = 0; i < s->clients.count; i++)
        if (client_is(&s->clients.items[i], pid)) {
            s->clients.last = i;
            return &s->clients.items[i];
        }
    return NULL;
}

struct supervisor_client *mu__sup_client(struct supervisor *s, mu__pid pid)
{
    struct supervisor_client *client = find_last_client(s, pid);

    if (client == NULL)
        client = mu__sup_find_client(s, pid);
    return client != NULL ? client : client_new(s, pid);
}

bool mu__sup_is_awaited(const struct supervisor *s, const struct mu__closure *closure)
{
    const struct closure_extra *extra = mu__sup_extra(s, closure);

    return s->clients.items[closure->client].present ||
           (closure->marks & MU__MARK_RESOLVED) != 0 ||
           (extra != NULL && extra->number != 0);
}

/* ---- Walking over a client's closures ---- */

typedef void (*visit_fn)(struct mu__ctx *ctx, struct supervisor *s,
                         struct mu__closure *closure);

static void visit_list(struct mu__ctx *ctx, struct supervisor *s, uint32_t list,
                       uint32_t client, visit_fn visit)
{
    struct mu__closure *closure = mu__closures_first(&s->closures, list);

    while (closure != NULL) {
        struct mu__closure *next = mu__closures_next(&s->closures, closure);

        if (closure->client == client && (closure->marks & MU__MARK_RESOLVED) == 0)
            visit(ctx, s, closure);
        closure = next;
    }
}

/* Every closure of a client that is not in flight. `visit` may remove it. */
static void visit_waiting(struct mu__ctx *ctx, struct supervisor *s, uint32_t client,
                          visit_fn visit)
{
    for (uint32_t list = MU__LIST_QUEUES; list < mu__sup_waiting_lists(s); list++)
        visit_list(ctx, s, list, client, visit);
    for (uint32_t i = 1; i < s->worker_states.size; i++)
        visit_list(ctx, s, mu__list_affine(i), client, visit);
}

static void visit_in_flight(struct mu__ctx *ctx, struct supervisor *s, uint32_t client,
                            visit_fn visit)
{
    for (uint32_t i = 1; i < s->worker_states.size; i++)
        visit_list(ctx, s, mu__list_in_flight(i), client, visit);
}

/* Closures in the journal go on without a client. */
static void forget_client_closure(struct mu__ctx *ctx, struct supervisor *s,
                                  struct mu__closure *closure)
{
    const struct closure_extra *extra = mu__sup_extra(s, closure);

    if (extra != NULL && extra->number != 0) {
        mu__sup_disown(ctx, s, closure);
        mu__sup_own(s, &s->clients.items[0], closure);
    } else if (mu__list_worker(closure->list) == 0) {
        mu__sup_resolve_error(ctx, s, closure, -MU_ECANCELLED, MU_ERROR_OTHER, "");
    }
}

/* The client's closures are dropped; those in flight end when their workers answer. */
void mu__sup_forget_client(struct mu__ctx *ctx, struct supervisor *s,
                           struct supervisor_client *client)
{
    uint32_t number = (uint32_t)(client - s->clients.items);

    client->present = false;
    mu__free_array(client->slots);
    client->slots = NULL;
    client->slots_count = 0;
    mu__map_done(&client->tokens);
    mu__sup_room_leave(ctx, s, client);
    visit_waiting(ctx, s, number, forget_client_closure);
    visit_in_flight(ctx, s, number, forget_client_closure);
    mu__sup_inputs_client_lost(ctx, s, client->pid);
    mu__sup_unread_drop(ctx, s, client);
}

/* Closures in the journal stay there for the next worker, without a client. */
static void fail_waiting(struct mu__ctx *ctx, struct supervisor *s,
                         struct mu__closure *closure)
{
    const struct closure_extra *extra = mu__sup_extra(s, closure);

    if (extra == NULL || extra->number == 0) {
        mu__sup_resolve_error(ctx, s, closure, -MU_EUNAVAILABLE, MU_ERROR_WORKER,
                              s->worker_states.none_left);
        return;
    }
    mu__sup_refuse(ctx, s->clients.items[closure->client].pid, closure->token,
                   -MU_EUNAVAILABLE, MU_ERROR_WORKER, s->worker_states.none_left);
    forget_client_closure(ctx, s, closure);
}

void mu__sup_fail_waiting(struct mu__ctx *ctx, struct supervisor *s)
{
    for (uint32_t i = 1; i < s->clients.count; i++)
        if (s->clients.items[i].present)
            visit_waiting(ctx, s, i, fail_waiting);
}

void mu__sup_fault(struct mu__ctx *ctx, struct supervisor *s, int code, uint32_t kind,
                   const char *task, const char *text)
{
    const struct mu__fault body = {
        .code = (uint32_t)-code,
        .error_kind = kind,
        .task = mu__view_str(task),
        .message = mu__view_str(text),
    };

    for (uint32_t i = 0; i < s->clients.count; i++)
        if (s->clients.items[i].present)
            (void)mu__send_body(ctx, s->clients.items[i].pid, MU__FAULT, &body,
                                sizeof body);
}

void mu__sup_drop_extra(struct mu__ctx *ctx, struct supervisor *s,
                        struct mu__closure *closure)
{
    struct closure_extra *extra = mu__sup_extra(s, closure);

    if (extra == NULL)
        return;
    mu__timer_cancel(ctx, extra->timer);
    mu__sup_drop_inputs(ctx, s, extra);
    mu__closure_extras_release(&s->extras, closure);
}

/* ---- Scheduling ---- */

/* Arguments stay where they came from, unless that is much larger than they are: one
 * small closure must not keep a whole frame of them alive. */
static bool keep_args(struct mu__closure *closure, struct mu__msg *msg,
                      const struct mu__packed *args)
{
    uint64_t size = (uint64_t)args->head_size + args->tail_size;
    struct mu__packed copied;
    struct mu__buf *copy;

    if (msg->backing != NULL && msg->backing->capacity <= 2 * size + COPY_SLACK_BYTES) {
        mu__closure_set_args(closure, args, msg->backing);
        return true;
    }
    if (size == 0)
        return true;
    copy = mu__pack_copy(args, &copied);
    if (copy == NULL)
        return false;
    mu__closure_set_args(closure, &copied, copy);
    mu__buf_unref(copy);
    return true;
}

/* Room for a client's tokens up to this one. Clients use tokens again, which are
 * therefore small: an array of twice the allowed closures suffices. */
static bool reserve_token_slot(struct supervisor_client *client, uint64_t token)
{
    uint64_t most = 2 * client->room.shares[MU__BOUND_CLOSURES].allowed;
    uint32_t count = client->slots_count == 0 ? SLOTS_FIRST : client->slots_count;

    if (token <= client->slots_count)
        return true;
    if (token > SLOTS_FIRST && token > most)
        return false;
    while (count < token)
        count *= 2;
    return mu__grow_zeroed((void **)&client->slots, &client->slots_count, count,
                           sizeof *client->slots);
}

/* Out of memory: the client cannot cancel the closure or ask about it. */
static void note_token(struct supervisor_client *client,
                       const struct mu__closure *closure)
{
    if (closure->token == 0)
        return;
    if (reserve_token_slot(client, closure->token))
        client->slots[closure->token - 1] = closure->index + 1;
    else
        (void)mu__map_set(&client->tokens, closure->token,
                          (void *)((uintptr_t)closure->index + 1));
}

/* Array entries may stay: mu__sup_closure_at checks what it finds. */
void mu__sup_forget_token(struct supervisor_client *client,
                          const struct mu__closure *closure)
{
    if ((uintptr_t)mu__map_get(&client->tokens, closure->token) ==
        (uintptr_t)closure->index + 1)
        (void)mu__map_remove(&client->tokens, closure->token);
}

/* The index of the closure + 1; 0: there is none with that token. */
static uint32_t find_token(const struct supervisor_client *client, uint64_t token)
{
    uint32_t found =
        token == 0 || token > client->slots_count ? 0 : client->slots[token - 1];

    if (found == 0 && token != 0)
        found = (uint32_t)(uintptr_t)mu__map_get(&client->tokens, token);
    return found;
}

void mu__sup_adopt(struct supervisor *s, struct supervisor_client *client,
                   struct mu__closure *closure, uint64_t token)
{
    mu__sup_own(s, client, closure);
    closure->token = token;
    client->scheduled++;
    note_token(client, closure);
}

/* NULL: out of memory. */
static struct mu__closure *add_scheduled_closure(
    struct supervisor *s, struct supervisor_client *client, struct mu__msg *msg)
{
    struct mu__schedule *body = mu__body(msg);
    uint64_t size = (uint64_t)body->args.head_size + body->args.tail_size;
    uint32_t function = mu__names_take(&s->functions, body->function);
    struct mu__closure *closure =
        function == MU__NAME_NONE ? NULL : mu__closures_add(&s->closures);

    if (s->functions.added)
        mu__function_times_forget(&s->times, function);
    if (closure == NULL || !keep_args(closure, msg, &body->args)) {
        mu__names_release(&s->functions, function);
        if (closure != NULL)
            mu__closures_remove(&s->closures, closure);
        return NULL;
    }
    s->counts.args_bytes += size;
    s->counts.scheduled++;
    closure->function = function;
    closure->marks = body->drop_result ? MU__MARK_DROP_RESULT : 0;
    mu__sup_adopt(s, client, closure, body->token);
    return closure;
}

void mu__sup_refuse(struct mu__ctx *ctx, mu__pid to, uint64_t token, int code,
                    uint32_t kind, const char *text)
{
    const struct mu__resolved body = {
        .token = token,
        .code = (uint32_t)-code,
        .error_kind = kind,
        .message = mu__view_str(text),
    };

    (void)mu__send_body(ctx, to, MU__RESOLVED, &body, sizeof body);
}

static bool has_schedule_options(const struct mu__schedule *body)
{
    return (body->flags | body->priority | body->attempts_max | body->worker |
            body->not_worker | body->name.size | body->inputs.size |
            body->worker_type.size) != 0 ||
           (body->deadline_ms | body->run_timeout_ms) != 0;
}

static int apply_schedule_options(struct mu__ctx *ctx, struct supervisor *s,
                                  struct mu__closure *closure,
                                  const struct mu__schedule *body, mu_error *ret_error)
{
    struct closure_extra *extra = mu__closure_extras_take(&s->extras, closure);
    int rv;

    if (extra == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    extra->options.flags = body->flags;
    extra->options.priority =
        body->priority == 0 ? MU__PRIORITY_DEFAULT : (uint8_t)(body->priority - 1);
    extra->options.attempts_max = (uint16_t)body->attempts_max;
    extra->options.worker = body->worker;
    extra->options.not_worker = body->not_worker;
    mu__sup_take_role(s, extra, body->worker_type);
    extra->options.run_timeout_ms = mu__run_timeout(body->run_timeout_ms);
    if (body->deadline_ms != 0)
        extra->deadline_ms = mu__now_ms(ctx) + body->deadline_ms;
    if (body->name.size > 0) {
        extra->name = mu__view_dup(body->name);
        if (extra->name == NULL)
            return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    }
    rv = mu__sup_check_role(s, extra, ret_error);
    if (rv == 0)
        rv = mu__sup_take_inputs(ctx, s, closure, body->inputs, ret_error);
    if (rv == 0 && extra->name != NULL && s->journal.file != NULL)
        rv = mu__sup_journal_scheduled(ctx, s, closure, ret_error);
    return rv;
}

/* Into its queue, unless it waits for inputs. */
static void begin_closure(struct mu__ctx *ctx, struct supervisor *s,
                          struct mu__closure *closure, const struct mu__schedule *body)
{
    struct closure_extra *extra;
    mu_error error;

    if (apply_schedule_options(ctx, s, closure, body, &error) != 0) {
        mu__sup_resolve_error(ctx, s, closure, error.code, (uint32_t)error.kind,
                              error.message);
        return;
    }
    extra = mu__sup_extra(s, closure);
    if (extra->deadline_ms != 0)
        mu__sup_arm(ctx, s, closure);
    if (extra->inputs.missing > 0)
        mu__sup_hold(s, closure);
    else
        mu__sup_queue_last(ctx, s, closure);
}

void mu__sup_on_schedule(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    struct mu__schedule *body = mu__body(msg);
    struct supervisor_client *client = mu__sup_client(s, msg->from);
    struct mu__closure *closure;

    if (client == NULL) {
        mu__sup_refuse(ctx, msg->from, body->token, -MU_EEXHAUSTED, MU_ERROR_LIMIT,
                       "the chief has as many clients as it may");
        return;
    }
    if (body->name.size > 0 && s->journal.file != NULL &&
        mu__sup_journal_known(ctx, s, client, body))
        return;
    if (!mu__sup_room_admits(s, client,
                             (uint64_t)body->args.head_size + body->args.tail_size)) {
        mu__sup_refuse(ctx, msg->from, body->token, -MU_EEXHAUSTED, MU_ERROR_LIMIT,
                       "the chief is full, and its client sent more than it was allowed");
        return;
    }
    if (s->worker_states.none_left[0] != '\0') {
        mu__sup_refuse(ctx, msg->from, body->token, -MU_EUNAVAILABLE, MU_ERROR_WORKER,
                       s->worker_states.none_left);
        return;
    }
    closure = add_scheduled_closure(s, client, msg);
    if (closure == NULL) {
        mu__sup_refuse(ctx, msg->from, body->token, -MU_ENOMEM, MU_ERROR_OTHER,
                       "out of memory");
        return;
    }
    if (s->watchdog.timer == 0)
        mu__sup_watchdog_watch(ctx, s);
    if (has_schedule_options(body))
        begin_closure(ctx, s, closure, body);
}

/* ---- Cancelling ---- */

static void cancel_waiting_closure(struct mu__ctx *ctx, struct supervisor *s,
                                   struct mu__closure *closure)
{
    mu__sup_resolve_error(ctx, s, closure, -MU_ECANCELLED, MU_ERROR_OTHER,
                          "cancelled before it ran, after another closure's error");
}

static void request_stop(struct mu__ctx *ctx, struct supervisor *s,
                         struct mu__closure *closure)
{
    const struct closure_extra *extra = mu__sup_extra(s, closure);
    const struct mu__member_worker *worker =
        mu__membership_get(&s->members, mu__list_worker(closure->list));

    if ((closure->marks & MU__MARK_CANCELLED) != 0)
        return;
    closure->marks |= MU__MARK_CANCELLED;
    if (worker != NULL)
        mu__sup_send_cancel(ctx, worker->node, mu__closure_id(closure), closure->attempt);
    worker = extra == NULL ? NULL : mu__membership_get(&s->members, extra->backup.worker);
    if (worker != NULL)
        mu__sup_send_cancel(ctx, worker->node, mu__closure_id(closure),
                            extra->backup.attempt);
}

void mu__sup_on_cancel_all(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    struct supervisor_client *client = mu__sup_client(s, msg->from);
    uint32_t number;

    if (client == NULL)
        return;
    number = (uint32_t)(client - s->clients.items);
    visit_waiting(ctx, s, number, cancel_waiting_closure);
    visit_in_flight(ctx, s, number, request_stop);
}

struct mu__closure *mu__sup_closure_at(struct supervisor *s, mu__pid pid, uint64_t token)
{
    const struct supervisor_client *client = mu__sup_client(s, pid);
    uint32_t found = client == NULL ? 0 : find_token(client, token);
    struct mu__closure *closure;

    if (found == 0)
        return NULL;
    closure = mu__closures_at(&s->closures, found - 1);
    return closure != NULL && closure->token == token &&
                   &s->clients.items[closure->client] == client &&
                   (closure->marks & MU__MARK_RESOLVED) == 0
               ? closure
               : NULL;
}

void mu__sup_on_cancel_closure(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    struct mu__cancel_closure *body = mu__body(msg);
    struct mu__closure *closure = mu__sup_closure_at(s, msg->from, body->token);

    if (closure == NULL)
        return;
    if (mu__list_worker(closure->list) != 0) {
        request_stop(ctx, s, closure);
        closure->marks |= MU__MARK_UNWANTED;
        return;
    }
    mu__sup_resolve_error(ctx, s, closure, -MU_ECANCELLED, MU_ERROR_OTHER,
                          "cancelled before it ran");
}
