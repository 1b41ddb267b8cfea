/* Per-worker values: each worker has an item of its own, given by the program or built
 * there by a function (builds.h). */
#include "actors/supervisor/actions.h"
#include "actors/supervisor/builds.h"
#include "actors/supervisor/handlers.h"
#include "actors/supervisor/inputs.h"
#include "actors/supervisor/roles.h"
#include "runtime/message/unpack.h"

#include <string.h>

struct per_worker *mu__sup_per_worker_find(const struct supervisor *s, uint64_t number)
{
    if ((number & MU__PER_WORKER_BIT) == 0)
        return NULL;
    return mu__map_get(&s->per_worker.by_number, number);
}

/* Expected: a list for the workers of type "worker", or a map of such lists by type. */
static int check_items(const struct supervisor *s, const mu_value *values,
                       mu_error *ret_error)
{
    if (mu_value_type(values) == MU_VALUE_LIST)
        return 0;
    if (mu_value_type(values) != MU_VALUE_MAP)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "per-worker values: expected a list with one item for each "
                            "worker, or a map of such lists by task type");
    for (size_t i = 0; i < mu_value_count(values); i++) {
        const char *type = mu_value_key(values, i);

        if (!mu__worker_types_has(&s->config.types, type))
            return mu_error_set(ret_error, -MU_EINVALID,
                                "per-worker values: \"%.64s\" is no type of tasks that "
                                "run closures (option worker_types of the chief)",
                                type);
        if (mu_value_type(mu_value_at(values, i)) != MU_VALUE_LIST)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "per-worker values: expected a list for type \"%.64s\"",
                                type);
    }
    return 0;
}

const mu_value *mu__sup_per_worker_item(const struct supervisor *s,
                                        const mu_value *values,
                                        const struct mu__member_worker *worker)
{
    const char *type = mu__sup_role_name(s, worker->role);

    if (mu_value_type(values) == MU_VALUE_MAP)
        return mu_value_at(mu_value_find(values, type), worker->index);
    return strcmp(type, MU__WORKER_TYPES) == 0 ? mu_value_at(values, worker->index)
                                               : NULL;
}

static int read_make(struct supervisor *s, const struct mu__per_worker_make *body,
                     struct per_worker *made, mu_error *ret_error)
{
    char why[128] = "out of memory";

    if (body->function.size > 0) {
        made->function = mu__names_take(&s->functions, body->function);
        if (body->args.head_size > 0)
            made->backing = mu__pack_copy(&body->args, &made->args);
        if (made->function == MU__NAME_NONE ||
            (body->args.head_size > 0 && made->backing == NULL))
            return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
        return 0;
    }
    if (mu__value_unpack(&body->args, why, sizeof why, &made->values) != 0)
        return mu_error_set(ret_error, -MU_EDATALOSS, "the values cannot be read: %s",
                            why);
    return check_items(s, made->values, ret_error);
}

static void per_worker_free(struct supervisor *s, struct per_worker *pw)
{
    mu__sent_bodies_remove(&s->journal.bodies, &pw->sent);
    mu__names_release(&s->functions, pw->function);
    mu_value_free(pw->values);
    mu__buf_unref(pw->backing);
    mu__free_array(pw->builds);
    mu__free_array(pw->holders);
    mu__free_array(pw);
}

void mu__sup_send_item(struct mu__ctx *ctx, const struct supervisor *s,
                       const struct per_worker *pw,
                       const struct mu__member_worker *worker)
{
    const mu_value *item = mu__sup_per_worker_item(s, pw->values, worker);
    struct mu__packed content = {0};
    struct mu__buf *backing = item == NULL ? NULL : mu__pack_value(item, &content);

    if (backing != NULL)
        mu__sup_send_input(ctx, worker->node, pw->number, &content, backing);
    mu__buf_unref(backing);
}

static void answer_make(struct mu__ctx *ctx, mu__pid to, uint64_t token, uint64_t number,
                        const mu_error *error)
{
    struct mu__per_worker_made body = {
        .token = token, .input = number, .code = (uint32_t)-error->code};

    if (error->code != 0)
        body.message = mu__view_str(error->message);
    (void)mu__send_body(ctx, to, MU__PER_WORKER_MADE, &body, sizeof body);
}

static int add_value_holder(struct per_worker *pw, mu__pid client)
{
    if (!mu__grow_for_one((void **)&pw->holders, &pw->holders_room, pw->holders_count,
                          sizeof *pw->holders))
        return -MU_ENOMEM;
    pw->holders[pw->holders_count++] = client;
    return 0;
}

/* Of that number, held by the client, and among all values. */
static struct per_worker *per_worker_new(struct supervisor *s, uint64_t number,
                                         mu__pid client,
                                         const struct mu__per_worker_make *body,
                                         mu_error *ret_error)
{
    struct per_worker *pw = NULL;

    if (!mu__grow_array((void **)&pw, 1, sizeof *pw)) {
        (void)mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
        return NULL;
    }
    *pw = (struct per_worker){
        .number = number,
        .is_shared = body->by_content && body->function.size > 0,
        .function = MU__NAME_NONE,
        .sent.bytes = (uint64_t)body->args.head_size + body->args.tail_size,
    };
    if (read_make(s, body, pw, ret_error) == 0) {
        if (add_value_holder(pw, client) == 0 &&
            mu__map_set(&s->per_worker.by_number, number, pw) == 0) {
            mu__list_append(&s->per_worker.all, &pw->node);
            return pw;
        }
        (void)mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    }
    per_worker_free(s, pw);
    return NULL;
}

static bool is_same_content(const struct mu__packed *a, const struct mu__packed *b)
{
    return a->head_size == b->head_size && a->tail_size == b->tail_size &&
           (a->head_size == 0 || memcmp(a->head, b->head, a->head_size) == 0) &&
           (a->tail_size == 0 || memcmp(a->tail, b->tail, a->tail_size) == 0);
}

static bool has_same_bytes(struct mu__view a, struct mu__view b)
{
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

/* NULL: there is none. */
static struct per_worker *find_shared(const struct supervisor *s,
                                      const struct mu__per_worker_make *body)
{
    for (struct per_worker *pw = first_value(s); pw != NULL; pw = next_value(pw))
        if (pw->is_shared && is_same_content(&pw->args, &body->args) &&
            has_same_bytes(mu__names_view(&s->functions, pw->function), body->function))
            return pw;
    return NULL;
}

void mu__sup_on_per_worker_make(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    const struct mu__per_worker_make *body = mu__body(msg);
    struct per_worker *pw = body->by_content ? find_shared(s, body) : NULL;
    bool is_new = pw == NULL;
    mu_error error = {.code = 0};

    /* The value is removed when its client leaves, which therefore must be known. */
    if (mu__sup_client(s, msg->from) == NULL)
        (void)mu_error_set(&error, -MU_EEXHAUSTED, "the chief has too many clients");
    else if (is_new)
        pw = per_worker_new(s, MU__PER_WORKER_BIT | (s->per_worker.next + 1), msg->from,
                            body, &error);
    else if (add_value_holder(pw, msg->from) != 0)
        (void)mu_error_set(&error, -MU_ENOMEM, "out of memory");
    answer_make(ctx, msg->from, body->token, error.code != 0 ? 0 : pw->number, &error);
    if (error.code != 0 || !is_new)
        return;
    s->per_worker.next++;
    mu__sup_builds_make(ctx, s, pw);
}

/* ---- In the journal ---- */

/* Holds what was restored while the journal is read. */
static const mu__pid reader = {0};

int mu__sup_per_worker_restore(struct supervisor *s,
                               const struct mu__journal_body *record)
{
    const struct mu__per_worker_make body = {
        .function = record->function, .args = record->args, .by_content = true};
    uint64_t number = record->number | MU__PER_WORKER_BIT;
    struct per_worker *pw = mu__sup_per_worker_find(s, number);
    mu_error error;

    if (pw == NULL)
        pw = per_worker_new(s, number, reader, &body, &error);
    if (pw == NULL)
        return -MU_ENOMEM;
    mu__sent_bodies_add(&s->journal.bodies, &pw->sent, 0, true);
    if ((number & ~MU__PER_WORKER_BIT) > s->per_worker.next)
        s->per_worker.next = number & ~MU__PER_WORKER_BIT;
    return 0;
}

void mu__sup_per_worker_restored(struct mu__ctx *ctx, struct supervisor *s)
{
    mu__sup_per_worker_client_lost(ctx, s, reader);
}

struct sent_body *mu__sup_per_worker_content(void *owner, uint64_t number,
                                             struct mu__journal_body *record)
{
    const struct supervisor *s = owner;
    struct per_worker *pw = mu__sup_per_worker_find(s, number);

    record->function = mu__names_view(&s->functions, pw->function);
    record->args = pw->args;
    return &pw->sent;
}

/* ---- Releasing ---- */

void mu__sup_per_worker_release(struct mu__ctx *ctx, struct supervisor *s,
                                struct per_worker *pw, mu__pid client)
{
    for (uint32_t i = 0; i < pw->holders_count; i++)
        if (mu__pid_equal(pw->holders[i], client)) {
            pw->holders[i] = pw->holders[--pw->holders_count];
            mu__sup_per_worker_remove_unused(ctx, s, pw);
            return;
        }
}

static void forget_holder(struct per_worker *pw, mu__pid client)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < pw->holders_count; i++)
        if (!mu__pid_equal(pw->holders[i], client))
            pw->holders[left++] = pw->holders[i];
    pw->holders_count = left;
}

void mu__sup_per_worker_client_lost(struct mu__ctx *ctx, struct supervisor *s,
                                    mu__pid client)
{
    struct per_worker *pw = first_value(s);

    while (pw != NULL) {
        struct per_worker *next = next_value(pw);

        forget_holder(pw, client);
        mu__sup_per_worker_remove_unused(ctx, s, pw);
        pw = next;
    }
}

void mu__sup_per_worker_remove_unused(struct mu__ctx *ctx, struct supervisor *s,
                                      struct per_worker *pw)
{
    if (pw->holders_count > 0 || pw->sent.users > 0)
        return;
    for (uint32_t i = 1; i < s->members.workers_size; i++)
        if (mu__membership_get(&s->members, i) != NULL)
            mu__sup_send_drop(ctx, s->members.workers[i].node, pw->number);
    mu__sup_builds_drop(ctx, s, pw);
    mu__list_remove(&s->per_worker.all, &pw->node);
    (void)mu__map_remove(&s->per_worker.by_number, pw->number);
    per_worker_free(s, pw);
}

void mu__sup_per_worker_done(struct supervisor *s)
{
    struct mu__list_node *node;

    while ((node = mu__list_pop(&s->per_worker.all)) != NULL)
        per_worker_free(s, MU__LIST_ENTRY(node, struct per_worker, node));
    mu__map_done(&s->per_worker.by_number);
}

mu_value *mu__sup_per_worker_value(const struct supervisor *s)
{
    mu_value *list = mu_value_list();
    char name[MU__FUNCTION_NAME_MAX + 1];

    for (const struct per_worker *pw = first_value(s); pw != NULL; pw = next_value(pw)) {
        mu_value *map = mu_value_map();

        name[0] = '\0';
        if (pw->function != MU__NAME_NONE)
            mu__view_copy(mu__names_view(&s->functions, pw->function), name, sizeof name);
        (void)mu_value_set(map, "number",
                           mu_value_int((int64_t)(pw->number & ~MU__PER_WORKER_BIT)));
        (void)mu_value_set(map, "function", mu_value_string(name));
        (void)mu_value_set(map, "users", mu_value_int(pw->sent.users));
        (void)mu_value_set(map, "failures", mu_value_int(pw->failures));
        (void)mu_value_set(map, "losses", mu_value_int(pw->losses));
        (void)mu_value_append(list, map);
    }
    return list;
}
