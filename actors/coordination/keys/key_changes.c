/* Key-values of the coordination service: changes.
 *
 * A change is made in memory, written to the store with its result, and answered; the
 * answer waits until both are safe. A request that is repeated, by the same incarnation
 * with the same token, gets the same answer, also from the next host, which has read
 * both. The result of a refused change is written only when this host is not certain to
 * hold the store: the refusal must then wait for a commit, as a change does.
 *
 * Reads are in key_reads.c and key_watches.c. */
#include "actors/coordination/keys/internal.h"
#include "actors/coordination/keys/key_map.h"
#include "actors/coordination/keys/keys.h"
#include "actors/coordination/replies.h"
#include "actors/coordination/request_results.h"
#include "actors/coordination/roster.h"
#include "actors/coordination/tasks.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EPOCH_SHIFT = 24,
    RECORD_BYTES = 128 /* of a record beside its key and value, at most, about */
};

/* A rewritten store begins with a deletion of this key, whose record carries the present
 * revision: that may be higher than those of all keys. */
#define KEY_REVISION MU__KEYS_OWN "/revision"

/* ---- Errors ---- */

int mu__coord_key_error(mu_error *error, int code, struct mu__view key,
                        const char *reason)
{
    return mu_error_set(error, code, "key \"%.*s\" %s",
                        key.size > 200 ? 200 : (int)key.size, (const char *)key.data,
                        reason);
}

int mu__coord_key_admit(const struct coordination *c, mu_error *ret_error)
{
    if (c->commits.later_count < COORD_LATER_REQUESTS)
        return 0;
    return mu_error_set(ret_error, -MU_EEXHAUSTED,
                        "rejected: %" PRIu32 " answers wait already for the store of %s",
                        c->commits.later_count, c->config.task);
}

void mu__coord_key_send_refusal(struct mu__ctx *ctx, struct coordination *c,
                                uint32_t node, int code, struct mu__msg *msg)
{
    if (code == -MU_EEXHAUSTED)
        mu__coord_send_now(ctx, node, msg);
    else
        mu__coord_send(ctx, c, node, msg);
}

void mu__coord_key_refuse(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                          uint64_t token, const mu_error *error)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__KEY_DONE);
    struct mu__key_done *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->token = token;
    body->code = (uint32_t)-error->code;
    body->message = mu__view_str(error->message);
    mu__coord_back(msg, &body->message, NULL);
    mu__coord_key_send_refusal(ctx, c, node, error->code, msg);
}

struct mu__roster_task *mu__coord_key_requester(
    struct mu__ctx *ctx, struct coordination *c, uint32_t node, mu_error *ret_error)
{
    struct mu__roster_task *task = mu__coord_requester(ctx, c, node, 0);

    if (task != NULL && task->incarnation != 0)
        return task;
    task = mu__roster_at_node(c->roster, node);
    /* The agent was not told of the loss: it registers again and repeats its request. */
    if (task != NULL && task->lost)
        (void)mu_error_set(ret_error, -MU_EUNAVAILABLE, "%s: it must register again",
                           task->failure.error.message);
    /* Not with the error's own code: with -MU_EUNAVAILABLE the request is repeated. */
    else if (task != NULL && task->state == MU__TASK_FAILED)
        (void)mu_error_set(ret_error, -MU_EABORTED, "this task is in error: %s",
                           task->failure.error.message);
    else
        (void)mu_error_set(ret_error, -MU_EUNAVAILABLE,
                           "this task is not registered at %s", c->config.task);
    return NULL;
}

/* ---- Changes: in memory, in the store, and to gets and watches ---- */

static bool are_keys_persistent(const struct coordination *c)
{
    return c->config.store->lasting;
}

static void note_records(struct coordination *c)
{
    c->records = mu__key_values_count(c->keys->kv) + mu__results_count(c->keys->results);
}

static int write_change(struct mu__ctx *ctx, struct coordination *c,
                        const struct mu__key_value *entry, bool deleted)
{
    struct mu__msg *record = c->keys->change;

    *(struct mu__store_change *)mu__body(record) = (struct mu__store_change){
        .revision = entry->revision,
        .key = entry->key,
        .value = entry->value,
        .deleted = deleted,
        .owner = entry->owner,
    };
    return mu__coord_write(ctx, c, record);
}

/* After a failure the service does not lead until the store has been read again. */
static void announce_change(struct mu__ctx *ctx, struct coordination *c,
                            const struct mu__key_value *entry, bool deleted)
{
    if (are_keys_persistent(c))
        (void)write_change(ctx, c, entry, deleted);
}

/* Always a new revision, also after deletions, which a shared store forgets with their
 * keys: the epoch of a shared store grows with each written batch, and no batch has 2^24
 * changes. */
uint64_t mu__coord_next_revision(const struct coordination *c)
{
    uint64_t least = c->config.store->shared ? c->epoch << EPOCH_SHIFT : 0;

    return (c->revision > least ? c->revision : least) + 1;
}

/* A change without room in the store is refused before it is made; so is one that leaves
 * no room for a rewrite, with which deletions make room. */
int mu__coord_key_check_room(struct mu__ctx *ctx, struct coordination *c,
                             const struct mu__roster_task *task, uint64_t bytes,
                             mu_error *ret_error)
{
    const struct mu__store_ops *ops = c->store->ops;
    int rv = 0;

    if (strcmp(task->type, MU__CLIENT_TYPE) == 0)
        rv = mu__key_values_check_last_eighth(c->keys->kv, ret_error);
    if (rv != 0)
        return rv;
    if (!are_keys_persistent(c) || ops->reserve == NULL)
        return 0;
    bytes += mu__key_values_bytes(c->keys->kv) + RECORD_BYTES * c->records;
    return ops->reserve(c->store, ctx, bytes, ret_error);
}

static int check_change_room(struct mu__ctx *ctx, struct coordination *c,
                             const struct mu__key_value *entry, struct coord_change *a)
{
    return mu__coord_key_check_room(
        ctx, c, a->task, (uint64_t)entry->key.size + entry->value.size, &a->error);
}

void mu__coord_key_changed(struct mu__ctx *ctx, struct coordination *c,
                           const struct mu__key_value *entry)
{
    note_records(c);
    announce_change(ctx, c, entry, false);
    mu__coord_reads_changed(ctx, c, entry);
}

int mu__coord_key_put(struct mu__ctx *ctx, struct coordination *c,
                      struct mu__key_value *entry, uint64_t revision, mu_error *ret_error)
{
    bool is_quiet = revision == c->revision;
    int rv;

    entry->revision = revision;
    entry->backing = NULL;
    rv = mu__key_values_put(c->keys->kv, entry, ret_error);
    if (rv != 0)
        return rv;
    c->revision = entry->revision;
    note_records(c);
    announce_change(ctx, c, entry, false);
    if (!is_quiet)
        mu__coord_reads_changed(ctx, c, entry);
    return 0;
}

void mu__coord_key_delete(struct mu__ctx *ctx, struct coordination *c,
                          const struct mu__key_value *entry)
{
    char copy[MU__KEY_MAX];
    struct mu__key_value removed = {.revision = mu__coord_next_revision(c),
                                    .key = {copy, entry->key.size}};

    assert(entry->key.size <= sizeof copy);
    memcpy(copy, entry->key.data, entry->key.size);
    (void)mu__key_values_remove(c->keys->kv, entry->key);
    c->revision = removed.revision;
    note_records(c);
    announce_change(ctx, c, &removed, true);
    mu__coord_reads_deleted(ctx, c, removed.key, removed.revision);
}

uint64_t mu__coord_keys_drop(struct mu__ctx *ctx, struct coordination *c,
                             struct mu__view key)
{
    struct mu__key_value entry;
    uint64_t count = 0;

    if (mu__key_values_find(c->keys->kv, key, &entry)) {
        mu__coord_key_delete(ctx, c, &entry);
        count++;
    }
    while (mu__key_values_next(c->keys->kv, key, true, &entry) &&
           mu__key_is_below(entry.key, key)) {
        mu__coord_key_delete(ctx, c, &entry);
        count++;
    }
    return count;
}

/* ---- Once ---- */

static void send_change_result(struct mu__ctx *ctx, struct coordination *c,
                               const struct coord_change *a)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__KEY_DONE);
    struct mu__key_done *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->token = a->token;
    body->code = (uint32_t)-a->result.code;
    body->revision = a->result.revision;
    body->number = a->result.number;
    if (a->result.code != 0) {
        body->message = mu__view_str(a->error.message);
        mu__coord_back(msg, &body->message, NULL);
    }
    mu__coord_send(ctx, c, a->node, msg);
}

static void resend_change_result(struct mu__ctx *ctx, struct coordination *c,
                                 struct coord_change *a)
{
    if (a->result.code != 0)
        (void)mu_error_set(&a->error, a->result.code, "%s, as was answered before",
                           mu_strerror(a->result.code));
    send_change_result(ctx, c, a);
}

bool mu__coord_key_begin(struct mu__ctx *ctx, struct coordination *c,
                         const struct mu__msg *msg, uint64_t token, uint64_t done,
                         struct coord_change *a)
{
    enum mu__request_state state;

    a->node = msg->from.node;
    a->token = token;
    a->result = (struct mu__request_result){.token = token};
    a->task = mu__coord_key_requester(ctx, c, a->node, &a->error);
    if (a->task == NULL) {
        mu__coord_key_refuse(ctx, c, a->node, token, &a->error);
        return false;
    }
    a->agent = mu__results_agent(c->keys->results, a->task->incarnation);
    if (a->agent == NULL) {
        (void)mu_error_set(&a->error, -MU_ENOMEM, "no memory for the result of a change");
        mu__coord_key_refuse(ctx, c, a->node, token, &a->error);
        return false;
    }
    mu__results_acknowledge(a->agent, done);
    state = mu__results_find(a->agent, token, &a->result);
    if (state == MU__REQUEST_ANSWERED)
        resend_change_result(ctx, c, a);
    if (state != MU__REQUEST_NEW)
        return false;
    if (mu__coord_key_admit(c, &a->error) == 0 &&
        mu__results_reserve(a->agent, &a->error) == 0)
        return true;
    mu__coord_key_refuse(ctx, c, a->node, token, &a->error);
    return false;
}

void mu__coord_key_write_result(struct mu__ctx *ctx, struct coordination *c,
                                uint64_t agent, uint64_t done,
                                const struct mu__request_result *result)
{
    struct mu__msg *record = c->keys->result;

    *(struct mu__store_result *)mu__body(record) = (struct mu__store_result){
        .agent = agent,
        .token = result->token,
        .done = done,
        .code = (uint32_t)-result->code,
        .revision = result->revision,
        .number = result->number,
    };
    (void)mu__coord_write(ctx, c, record);
}

/* A refusal depends on the content of the store: while that is uncertain, the refusal
 * waits for a commit, as a change does. */
static bool is_result_written(struct mu__ctx *ctx, const struct coordination *c, int code)
{
    return are_keys_persistent(c) &&
           (code == 0 || !c->store->ops->may_read(c->store, ctx));
}

void mu__coord_key_end(struct mu__ctx *ctx, struct coordination *c,
                       struct coord_change *a, uint64_t done, int code)
{
    a->result.code = code;
    /* A refusal for want of room takes none: if it is asked again, it is tried again. */
    if (code != -MU_EEXHAUSTED) {
        mu__results_add(a->agent, &a->result);
        note_records(c);
        if (is_result_written(ctx, c, code))
            mu__coord_key_write_result(ctx, c, a->task->incarnation, done, &a->result);
    }
    send_change_result(ctx, c, a);
}

int mu__coord_key_check(struct mu__view key, mu_error *error)
{
    if (key.size == 0 || !mu__key_is_normal(key))
        return mu_error_set(error, -MU_EINVALID,
                            "a key is not in its normal form: it is "
                            "empty, too long, has slashes too many or control "
                            "characters");
    if (!mu__view_is(key, MU__KEYS_OWN) &&
        !mu__key_is_below(key, mu__view_str(MU__KEYS_OWN)))
        return 0;
    return mu__coord_key_error(error, -MU_EPERMISSION, key,
                               "is the service's own: keys "
                               "below " MU__KEYS_OWN " are for reading");
}

/* ---- Put ---- */

static int check_put(const struct mu__key_put *body, bool exists, uint64_t revision,
                     mu_error *error)
{
    if ((body->flags & MU__PUT_COMPARE) != 0 && body->revision != revision)
        return mu_error_set(error, -MU_EPRECONDITION,
                            "key \"%.*s\" has revision %" PRIu64 ", expected %" PRIu64,
                            body->key.size > 200 ? 200 : (int)body->key.size,
                            (const char *)body->key.data, revision, body->revision);
    if (!exists || (body->flags & (MU__PUT_COMPARE | MU__PUT_OVERWRITE)) != 0)
        return 0;
    return mu__coord_key_error(error, -MU_EEXISTS, body->key, "is there already");
}

static int make_put(struct mu__ctx *ctx, struct coordination *c,
                    const struct mu__key_put *body, struct coord_change *a)
{
    struct mu__key_value entry = {.revision = 0};
    int rv = mu__coord_key_check(body->key, &a->error);
    bool exists;

    if (rv == 0 && body->value.size > MU__KEY_VALUE_MAX)
        rv = mu__coord_key_error(&a->error, -MU_EEXHAUSTED, body->key,
                                 "has a value of more than 1 MiB");
    if (rv != 0)
        return rv;
    exists = mu__key_values_find(c->keys->kv, body->key, &entry);
    a->result.revision = entry.revision;
    rv = check_put(body, exists, entry.revision, &a->error);
    if (rv != 0)
        return rv;
    entry.key = body->key;
    entry.value = body->value;
    entry.owner = (body->flags & MU__PUT_LEASE) != 0 ? a->task->incarnation : 0;
    rv = check_change_room(ctx, c, &entry, a);
    if (rv == 0)
        rv = mu__coord_key_put(ctx, c, &entry, mu__coord_next_revision(c), &a->error);
    if (rv == 0)
        a->result.revision = entry.revision;
    return rv;
}

void mu__coord_on_key_put(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__key_put *body = mu__body(msg);
    struct coord_change a;
    int rv;

    if (!mu__coord_key_begin(ctx, c, msg, body->token, body->done, &a))
        return;
    rv = make_put(ctx, c, body, &a);
    mu__coord_key_end(ctx, c, &a, body->done, rv);
    if (rv == 0 && mu__view_is(body->key, MU__KEY_PREEMPTION))
        mu__coord_preempt_key(ctx, c, a.node, body->value);
}

/* ---- Increment ---- */

static int make_increment(struct mu__ctx *ctx, struct coordination *c,
                          const struct mu__key_increment *body, struct coord_change *a)
{
    struct mu__key_value before;
    struct mu__key_value entry = {.key = body->key};
    char text[MU__NUMBER_BYTES];
    int64_t sum;
    bool exists;
    int rv = mu__coord_key_check(body->key, &a->error);

    if (rv != 0)
        return rv;
    exists = mu__key_values_find(c->keys->kv, body->key, &before);
    rv = mu__coord_key_sum(exists ? &before : NULL, body->by, &a->error, text, &entry,
                           &sum);
    if (rv == 0)
        rv = check_change_room(ctx, c, &entry, a);
    if (rv == 0)
        rv = mu__coord_key_put(ctx, c, &entry, mu__coord_next_revision(c), &a->error);
    if (rv != 0)
        return rv;
    a->result.revision = entry.revision;
    a->result.number = sum;
    return 0;
}

void mu__coord_on_key_increment(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__key_increment *body = mu__body(msg);
    struct coord_change a;

    if (mu__coord_key_begin(ctx, c, msg, body->token, body->done, &a))
        mu__coord_key_end(ctx, c, &a, body->done, make_increment(ctx, c, body, &a));
}

/* ---- Delete ---- */

static int make_delete(struct mu__ctx *ctx, struct coordination *c,
                       const struct mu__key_delete *body, struct coord_change *a)
{
    int rv = mu__coord_key_check(body->key, &a->error);

    if (rv != 0)
        return rv;
    a->result.number = (int64_t)mu__coord_keys_drop(ctx, c, body->key);
    a->result.revision = c->revision;
    return 0;
}

void mu__coord_on_key_delete(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__key_delete *body = mu__body(msg);
    struct coord_change a;

    if (mu__coord_key_begin(ctx, c, msg, body->token, body->done, &a))
        mu__coord_key_end(ctx, c, &a, body->done, make_delete(ctx, c, body, &a));
}

/* ---- Leases ---- */

void mu__coord_key_end_leases(struct mu__ctx *ctx, struct coordination *c, uint64_t owner)
{
    struct mu__key_value entry;

    while (mu__key_values_owned(c->keys->kv, owner, &entry))
        mu__coord_key_delete(ctx, c, &entry);
}

/* Whether an agent comes back is not known, so its results are kept until many others
 * have closed: when all tasks are lost at once, each may come back. */
static void forget_results(struct mu__ctx *ctx, struct coordination *c, uint64_t agent)
{
    uint32_t most = MU__RESULTS_CLOSED_MAX + c->roster->count;
    uint64_t forgotten = mu__results_agent_closed(c->keys->results, agent, most);

    note_records(c);
    if (forgotten != 0 && are_keys_persistent(c))
        mu__coord_key_write_result(ctx, c, forgotten, UINT64_MAX,
                                   &(struct mu__request_result){0});
}

void mu__coord_keys_task_ended(struct mu__ctx *ctx, struct coordination *c,
                               uint64_t incarnation)
{
    if (incarnation == 0)
        return;
    mu__coord_key_end_leases(ctx, c, incarnation);
    forget_results(ctx, c, incarnation);
}

void mu__coord_keys_task_joined(struct coordination *c, uint64_t incarnation)
{
    mu__results_agent_back(c->keys->results, incarnation);
}

/* End the leases of tasks that did not register at this host in time. */
static void prove_leases(struct mu__ctx *ctx, struct coordination *c)
{
    struct mu__map *unproved = &c->keys->unproved;

    for (uint32_t i = 0; i < c->roster->count; i++)
        if (c->roster->tasks[i]->state == MU__TASK_CONNECTED)
            (void)mu__map_remove(unproved, c->roster->tasks[i]->incarnation);
    for (size_t i = 0; i < unproved->capacity; i++)
        if (unproved->entries[i].key != 0)
            mu__coord_keys_task_ended(ctx, c, unproved->entries[i].key);
    mu__map_done(unproved);
    c->keys->proving = false;
}

void mu__coord_keys_tick(struct mu__ctx *ctx, struct coordination *c)
{
    struct coord_keys *k = c->keys;
    uint64_t now_ms = mu__coord_clock(ctx, c);

    if (!k->proving && k->unproved.count > 0) {
        k->proving = true;
        k->prove_ms = now_ms + c->config.dead_ms;
    }
    if (k->proving && now_ms >= k->prove_ms)
        prove_leases(ctx, c);
    mu__coord_reads_tick(ctx, c);
}

uint64_t mu__coord_keys_due_ms(const struct coordination *c)
{
    const struct coord_keys *k = c->keys;
    bool waits = !mu__list_is_empty(&k->reads->pages) || k->reads->held != NULL;

    return mu__coord_earlier(k->proving ? k->prove_ms : UINT64_MAX,
                             waits ? k->reads->again_ms : UINT64_MAX);
}

/* ---- The store ---- */

static int visit_change(struct coordination *c, const struct mu__store_change *body)
{
    struct coord_keys *k = c->keys;
    struct mu__key_value entry = {body->revision, body->owner, body->key, body->value,
                                  NULL};

    if (body->key.size == 0 || !mu__key_is_normal(body->key))
        return -MU_EDATALOSS;
    if (body->revision > c->revision)
        c->revision = body->revision;
    if (body->deleted) {
        (void)mu__key_values_remove(k->kv, body->key);
        return 0;
    }
    if (body->owner != 0 && mu__map_set(&k->unproved, body->owner, k) != 0)
        return -MU_ENOMEM;
    return mu__key_values_put(k->kv, &entry, NULL);
}

/* The agent is closed until it comes back, so that its results can be forgotten. None is
 * forgotten here: the bound was kept when they were written. */
static int visit_result(struct coordination *c, const struct mu__store_result *body)
{
    struct mu__results *results = c->keys->results;
    struct mu__request_result known;
    struct mu__results_agent *agent;
    int rv = 0;

    if (body->agent == 0)
        return -MU_EDATALOSS;
    agent = mu__results_agent(results, body->agent);
    if (agent == NULL)
        return -MU_ENOMEM;
    mu__results_acknowledge(agent, body->done);
    if (body->revision > c->revision)
        c->revision = body->revision;
    if (mu__results_find(agent, body->token, &known) == MU__REQUEST_NEW) {
        rv = mu__results_reserve(agent, NULL);
        if (rv == 0)
            mu__results_add(agent,
                            &(struct mu__request_result){body->token, body->revision,
                                                         body->number, -(int)body->code});
    }
    (void)mu__results_agent_closed(results, body->agent, UINT32_MAX);
    return rv;
}

int mu__coord_keys_visit(struct mu__ctx *ctx, struct coordination *c,
                         struct mu__msg *record)
{
    int rv = -MU_EDATALOSS;

    (void)ctx;
    if (record->kind == MU__STORE_CHANGE)
        rv = visit_change(c, mu__body(record));
    else if (record->kind == MU__STORE_RESULT)
        rv = visit_result(c, mu__body(record));
    note_records(c);
    return rv;
}

void mu__coord_keys_forget(struct coordination *c)
{
    struct coord_keys *k = c->keys;

    mu__key_values_clear(k->kv);
    mu__results_clear(k->results);
    mu__map_done(&k->unproved);
    mu__coord_reads_forget(k->reads);
    k->proving = false;
    c->revision = 0;
    note_records(c);
}

struct rewriting {
    struct mu__ctx *ctx;
    struct coordination *c;
};

static int rewrite_result(void *user, uint64_t agent, uint64_t done,
                          const struct mu__request_result *result)
{
    struct rewriting *r = user;

    if (result->code == 0)
        mu__coord_key_write_result(r->ctx, r->c, agent, done, result);
    return r->c->commits.broken ? -MU_EUNAVAILABLE : 0;
}

int mu__coord_keys_rewrite(struct mu__ctx *ctx, struct coordination *c)
{
    struct rewriting r = {ctx, c};
    struct mu__key_values *kv = c->keys->kv;
    struct mu__key_value entry;
    bool more = mu__key_values_next(kv, mu__view_str(""), false, &entry);
    int rv = write_change(ctx, c,
                          &(struct mu__key_value){.revision = c->revision,
                                                  .key = mu__view_str(KEY_REVISION)},
                          true);

    while (more && rv == 0) {
        rv = write_change(ctx, c, &entry, false);
        more = mu__key_values_next(kv, entry.key, true, &entry);
    }
    return rv == 0 ? mu__results_each(c->keys->results, rewrite_result, &r) : rv;
}

/* ---- start and end ---- */

static int make_keys(struct mu__ctx *ctx, struct coord_keys *k)
{
    k->pool = mu__kernel_pool(ctx->kernel);
    k->kv = mu__key_values_new(mu__random(ctx), 0, 0);
    k->results = mu__results_new();
    k->reads = mu__coord_reads_new(mu__random(ctx), k->pool);
    k->change = mu__msg_new(ctx, MU__STORE_CHANGE);
    k->result = mu__msg_new(ctx, MU__STORE_RESULT);
    if (k->kv == NULL || k->results == NULL || k->reads == NULL || k->change == NULL ||
        k->result == NULL)
        return -MU_ENOMEM;
    mu__results_seed(k->results, mu__secret(ctx));
    mu__map_seed(&k->unproved, mu__secret(ctx));
    return 0;
}

int mu__coord_keys_init(struct mu__ctx *ctx, struct coordination *c)
{
    c->keys = calloc(1, sizeof *c->keys);
    return c->keys == NULL ? -MU_ENOMEM : make_keys(ctx, c->keys);
}

void mu__coord_keys_done(struct coordination *c)
{
    struct coord_keys *k = c->keys;

    if (k == NULL)
        return;
    mu__coord_reads_free(k->reads);
    mu__key_values_free(k->kv);
    mu__results_free(k->results);
    mu__map_done(&k->unproved);
    mu__pool_put(k->pool, k->change);
    mu__pool_put(k->pool, k->result);
    free(k);
    c->keys = NULL;
}

void mu__coord_keys_node_down(struct mu__ctx *ctx, struct coordination *c, uint32_t node)
{
    (void)ctx;
    mu__coord_reads_node_down(c->keys->reads, node);
}
