/* Messages about names, of offices and to them. */
#include "actors/coordination/keys/keys.h"
#include "actors/coordination/names/coord_names.h"
#include "actors/coordination/replies.h"
#include "actors/coordination/tasks.h"
#include "actors/keep.h"
#include "actors/packing.h"
#include "runtime/message/pool.h"

#include "muster/actor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table ---- */

struct coord_name *mu__coord_name_find(struct coordination *c, struct mu__view text)
{
    return (struct coord_name *)(void *)mu__text_map_find(&c->names->names, text);
}

struct coord_name *mu__coord_name_get(struct coordination *c, struct mu__view text)
{
    struct coord_name *name = mu__coord_name_find(c, text);

    if (name != NULL)
        return name;
    name = c->names->count < COORD_NAMES_MAX ? calloc(1, sizeof *name) : NULL;
    if (name == NULL)
        return NULL;
    mu__view_copy(text, name->text, sizeof name->text);
    name->named.text = mu__view_str(name->text);
    if (mu__text_map_add(&c->names->names, &name->named) != 0) {
        free(name);
        return NULL;
    }
    c->names->count++;
    return name;
}

static struct name_follower *first_follower(const struct coord_name *name)
{
    return MU__LIST_FIRST(&name->followers, struct name_follower, node);
}

void mu__coord_name_free(struct coordination *c, struct coord_name *name)
{
    while (!mu__list_is_empty(&name->followers))
        free(MU__LIST_ENTRY(mu__list_pop(&name->followers), struct name_follower, node));
    mu__text_map_remove(&c->names->names, &name->named);
    c->names->count--;
    mu__buf_unref(name->definition.backing);
    free(name);
}

static void review_name(struct coordination *c, struct coord_name *name)
{
    if (!name->is_made && mu__list_is_empty(&name->followers))
        mu__coord_name_free(c, name);
}

/* ---- news ---- */

static bool is_kept_name(const struct coord_name *name)
{
    return (name->definition.flags & MU_ACTOR_KEPT) != 0;
}

/* A kept actor is called by its name. */
static struct mu__msg *make_name_news(struct mu__ctx *ctx, struct mu__view text,
                                      const struct coord_name *name, const char *message)
{
    const struct name_host *owner = name == NULL ? NULL : name->owner;
    struct mu__msg *msg = mu__pool_get(mu__kernel_pool(ctx->kernel), MU__NAME_NEWS,
                                       sizeof(struct mu__name_news) + text.size +
                                           strlen(message) + MU__NAME_TYPE_MAX);
    struct mu__name_news *body;
    uint8_t *at;

    if (msg == NULL)
        return NULL;
    body = mu__body(msg);
    body->name = text;
    body->message = mu__view_str(message);
    at = mu__pack_view((uint8_t *)(body + 1), &body->name);
    at = mu__pack_view(at, &body->message);
    if (name == NULL)
        return msg;
    body->state = name->state;
    body->epoch = name->epoch;
    body->code = (uint32_t)-name->code;
    if (name->state != MU__NAME_RUNS)
        return msg;
    body->task_type = mu__view_str(owner->type);
    (void)mu__pack_view(at, &body->task_type);
    body->index = owner->index;
    body->incarnation = owner->incarnation;
    body->actor = is_kept_name(name) ? 0 : name->actor;
    return msg;
}

void mu__coord_name_answer(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                           uint64_t token, const struct coord_name *name,
                           const mu_error *error)
{
    struct mu__msg *msg =
        make_name_news(ctx, mu__view_str(name->text), error == NULL ? name : NULL,
                       error == NULL ? name->why : error->message);
    struct mu__name_news *body = msg == NULL ? NULL : mu__body(msg);

    if (msg == NULL)
        return;
    body->token = token;
    if (error != NULL)
        body->code = (uint32_t)-error->code;
    mu__coord_send(ctx, c, node, msg);
}

static void refuse_name_request(struct mu__ctx *ctx, struct coordination *c,
                                uint32_t node, uint64_t token, struct mu__view text,
                                const mu_error *error)
{
    struct mu__msg *msg = make_name_news(ctx, text, NULL, error->message);
    struct mu__name_news *body = msg == NULL ? NULL : mu__body(msg);

    if (msg == NULL)
        return;
    body->token = token;
    body->code = (uint32_t)-error->code;
    mu__coord_send(ctx, c, node, msg);
}

/* Nodes that are gone are forgotten here. */
void mu__coord_name_news(struct mu__ctx *ctx, struct coordination *c,
                         struct coord_name *name)
{
    struct name_follower *next;

    for (struct name_follower *at = first_follower(name); at != NULL; at = next) {
        next = MU__LIST_NEXT(at, struct name_follower, node);
        if (mu__coord_peer(c, at->at) != NULL) {
            mu__coord_name_answer(ctx, c, at->at, 0, name, NULL);
            continue;
        }
        mu__list_remove(&name->followers, &at->node);
        free(at);
    }
}

static bool follow_name(struct coord_name *name, uint32_t node)
{
    struct name_follower *at = first_follower(name);

    while (at != NULL && at->at != node)
        at = MU__LIST_NEXT(at, struct name_follower, node);
    if (at != NULL)
        return true;
    at = calloc(1, sizeof *at);
    if (at == NULL)
        return false;
    at->at = node;
    mu__list_append(&name->followers, &at->node);
    return true;
}

/* ---- NAME_MAKE, NAME_FIND ---- */

static void define_name(struct coord_name *name, const struct coord_peer *peer,
                        const struct mu__name_make *body)
{
    struct name_definition *definition = &name->definition;

    *definition = (struct name_definition){
        .flags = body->flags & ~(unsigned)MU_ACTOR_NEW,
        .mailbox_max = body->mailbox_max,
        .mailbox_bytes_max = body->mailbox_bytes_max,
        .limits = {body->policy,
                   body->restarts < MU__NAME_RESTARTS_MAX ? body->restarts
                                                          : MU__NAME_RESTARTS_MAX,
                   body->within_ms},
        .maker = peer->incarnation,
        .maker_token = body->token,
    };
    mu__view_copy(body->type, definition->type, sizeof definition->type);
    mu__view_copy(body->task_type, definition->task_type, sizeof definition->task_type);
}

static int make_name(struct mu__ctx *ctx, struct coordination *c, struct coord_name *name,
                     const struct coord_peer *peer, const struct mu__name_make *body,
                     mu_error *ret_error)
{
    uint64_t revision = 0;
    int rv;

    if ((body->flags & MU_ACTOR_KEPT) != 0 && c->config.kept == NULL)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "%s cannot keep actors: its option store is not a journal",
                            c->config.task);
    define_name(name, peer, body);
    if (body->args.head_size > 0) {
        name->definition.backing = mu__pack_copy(&body->args, &name->definition.args);
        if (name->definition.backing == NULL)
            return mu_error_set(ret_error, -MU_ENOMEM, "%s is out of memory",
                                c->config.task);
    }
    name->state = MU__NAME_WAITS;
    name->is_born = false;
    name->made = mu__coord_next_revision(c);
    rv = mu__coord_name_write(ctx, c, name, ret_error, &revision);
    if (rv != 0) {
        mu__buf_unref(name->definition.backing);
        name->definition.backing = NULL;
        name->state = MU__NAME_UNKNOWN;
        return rv;
    }
    name->is_made = true;
    name->epoch = revision;
    name->code = 0;
    name->why[0] = '\0';
    name->history = (struct mu__name_history){0};
    name->restarts = 0;
    mu__coord_name_wait(c, name, mu__coord_clock(ctx, c));
    return 0;
}

/* Whether a name that was made is what the message wants. */
static int check_made(const struct coord_name *name, const struct coord_peer *peer,
                      const struct mu__name_make *body, mu_error *ret_error)
{
    const struct name_definition *definition = &name->definition;

    if (name->is_stopping)
        return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                            "the actor \"%s\" is being stopped", name->text);
    if (!mu__view_is(body->type, definition->type))
        return mu_error_set(ret_error, -MU_EEXISTS,
                            "the actor \"%s\" is of type \"%s\", not \"%.*s\"",
                            name->text, definition->type, (int)body->type.size,
                            (const char *)body->type.data);
    if (is_kept_name(name) != ((body->flags & MU_ACTOR_KEPT) != 0))
        return mu_error_set(ret_error, -MU_EEXISTS, "the actor \"%s\" is %s", name->text,
                            is_kept_name(name) ? "kept" : "not kept");
    if ((body->flags & MU_ACTOR_NEW) != 0 && (definition->maker != peer->incarnation ||
                                              definition->maker_token != body->token))
        return mu_error_set(ret_error, -MU_EEXISTS, "the actor \"%s\" is there already",
                            name->text);
    return 0;
}

static void on_name_make(struct mu__ctx *ctx, struct coordination *c,
                         const struct coord_peer *peer, const struct mu__msg *msg)
{
    const struct mu__name_make *body = (const void *)msg->body;
    struct coord_name *name;
    mu_error error;
    int rv = mu__name_check(body->name, &error);

    name = rv == 0 ? mu__coord_name_get(c, body->name) : NULL;
    if (rv == 0 && (name == NULL || !follow_name(name, peer->node)))
        rv = mu_error_set(&error, -MU_EEXHAUSTED,
                          "no room for another name of an actor: %d are known",
                          (int)COORD_NAMES_MAX);
    if (rv == 0)
        rv = name->is_made ? check_made(name, peer, body, &error)
                           : make_name(ctx, c, name, peer, body, &error);
    if (rv == 0)
        mu__coord_name_answer(ctx, c, peer->node, body->token, name, NULL);
    else
        refuse_name_request(ctx, c, peer->node, body->token, body->name, &error);
    if (name != NULL)
        review_name(c, name);
}

static void on_name_find(struct mu__ctx *ctx, struct coordination *c,
                         const struct coord_peer *peer, const struct mu__msg *msg)
{
    const struct mu__name_find *body = (const void *)msg->body;
    struct coord_name *name =
        mu__name_check(body->name, NULL) == 0 ? mu__coord_name_get(c, body->name) : NULL;

    if (name == NULL)
        return;
    if (follow_name(name, peer->node))
        mu__coord_name_answer(ctx, c, peer->node, 0, name, NULL);
    review_name(c, name);
}

/* ---- NAME_STOP ---- */

static void send_name_stop(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                           struct mu__view text, uint64_t epoch, uint32_t how)
{
    struct mu__msg *msg = mu__pool_get(mu__kernel_pool(ctx->kernel), MU__NAME_STOP,
                                       sizeof(struct mu__name_stop) + text.size);
    struct mu__name_stop *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->name = text;
    body->epoch = epoch;
    body->how = how;
    (void)mu__pack_view((uint8_t *)(body + 1), &body->name);
    mu__coord_send(ctx, c, node, msg);
}

void mu__coord_name_unmake(struct mu__ctx *ctx, struct coordination *c,
                           struct coord_name *name)
{
    uint32_t stopper = name->stopper;
    uint64_t token = name->stopper_token;

    if (name->is_waiting)
        mu__coord_name_unwait(c, name);
    mu__coord_name_delete(ctx, c, name);
    mu__buf_unref(name->definition.backing);
    name->definition = (struct name_definition){.flags = 0};
    name->is_made = name->is_stopping = false;
    mu__coord_name_drop_kept(ctx, c, mu__view_str(name->text));
    name->state = MU__NAME_UNKNOWN;
    name->code = 0;
    name->why[0] = '\0';
    name->stopper_token = 0;
    mu__coord_name_news(ctx, c, name);
    if (token != 0)
        mu__coord_name_answer(ctx, c, stopper, token, name, NULL);
    review_name(c, name);
}

/* The answer comes when there is no actor any more. */
static void on_name_stop(struct mu__ctx *ctx, struct coordination *c,
                         const struct coord_peer *peer, const struct mu__msg *msg)
{
    const struct mu__name_stop *body = (const void *)msg->body;
    struct coord_name *name = mu__coord_name_find(c, body->name);
    mu_error error;

    if (name == NULL || !name->is_made) {
        (void)mu_error_set(&error, -MU_ENOTFOUND, "no actor has the name \"%.*s\"",
                           (int)body->name.size, (const char *)body->name.data);
        refuse_name_request(ctx, c, peer->node, body->token, body->name, &error);
        return;
    }
    if (name->stopper_token != 0)
        mu__coord_name_answer(ctx, c, name->stopper, name->stopper_token, name, NULL);
    name->stopper = peer->node;
    name->stopper_token = body->token;
    if (name->owner == NULL) {
        mu__coord_name_unmake(ctx, c, name);
        return;
    }
    name->is_stopping = true;
    if (name->owner->is_up)
        send_name_stop(ctx, c, name->owner->node, mu__view_str(name->text), name->epoch,
                       body->how);
}

/* ---- of owners ---- */

/* What the process was given before, and does not have now, is lost. */
static void end_unreported(struct mu__ctx *ctx, struct coordination *c,
                           struct name_host *host)
{
    struct coord_name *next;

    for (struct coord_name *name =
             MU__LIST_FIRST(&host->names, struct coord_name, of_owner);
         name != NULL; name = next) {
        next = MU__LIST_NEXT(name, struct coord_name, of_owner);
        if (!name->is_reported)
            mu__coord_name_ended(ctx, c, name, MU__NAME_LOST, -MU_EUNAVAILABLE,
                                 "its task does not have it any more");
        else
            name->is_reported = false;
    }
}

static void on_name_offer(struct mu__ctx *ctx, struct coordination *c,
                          struct name_host *host, const struct mu__msg *msg)
{
    const struct mu__name_offer *body = (const void *)msg->body;
    char *types = mu__view_dup(body->types);

    if (types == NULL)
        return;
    free((void *)host->types.data);
    host->types = (struct mu__view){types, body->types.size};
    host->drains = body->drains;
    host->node = msg->from.node;
    host->is_up = true;
    if (body->begins)
        end_unreported(ctx, c, host);
    c->names->placing_ms = mu__coord_clock(ctx, c);
}

static void note_started(struct mu__ctx *ctx, struct coordination *c,
                         struct coord_name *name, const struct mu__name_state *body)
{
    bool is_news = name->state != MU__NAME_RUNS || name->actor != body->actor;

    mu_error error;

    if (is_kept_name(name) && !name->is_born &&
        mu__coord_name_write_born(ctx, c, name, &error) != 0)
        mu__log(ctx, MU__LOG_WARN, "%s", error.message);
    mu__coord_name_started(name);
    name->state = MU__NAME_RUNS;
    name->actor = body->actor;
    name->is_reported = !name->owner->is_up;
    if (name->code == 0)
        name->why[0] = '\0';
    if (is_news)
        mu__coord_name_news(ctx, c, name);
}

/* Of an owner that is none any more only its end matters, which is known. */
static void on_name_state(struct mu__ctx *ctx, struct coordination *c,
                          struct name_host *host, const struct mu__msg *msg)
{
    const struct mu__name_state *body = (const void *)msg->body;
    struct coord_name *name = mu__coord_name_find(c, body->name);
    char why[COORD_NAME_WORDS];

    if (name == NULL || name->owner != host || name->epoch != body->epoch) {
        if (body->end == MU__NAME_NO_END)
            send_name_stop(ctx, c, msg->from.node, body->name, body->epoch, MU_STOP_NOW);
        return;
    }
    mu__view_copy(body->message, why, sizeof why);
    if (body->end == MU__NAME_NO_END)
        note_started(ctx, c, name, body);
    else
        mu__coord_name_ended(ctx, c, name, (enum mu__name_end)body->end, -(int)body->code,
                             why);
}

static void on_name_hold(struct mu__ctx *ctx, struct coordination *c,
                         struct name_host *host, const struct mu__msg *msg)
{
    const struct mu__name_hold *hold = (const void *)msg->body;
    const struct mu__name_hold body = {
        .sent_ms = hold->sent_ms,
        .lease_ms = (uint32_t)mu__coord_names_lease(c),
    };

    host->renewed_ms = mu__coord_clock(ctx, c);
    mu__coord_names_loads(c, host, hold->loads);
    if (!host->holds) {
        host->holds = true;
        c->names->lease_ms =
            mu__coord_earlier(c->names->lease_ms, host->renewed_ms + body.lease_ms);
        c->names->placing_ms = host->renewed_ms;
    }
    (void)mu__send_body(ctx, (mu__pid){msg->from.node, MU__ACTORS}, MU__NAME_HOLD, &body,
                        sizeof body);
}

/* ---- all ---- */

static void hear_owner(struct mu__ctx *ctx, struct coordination *c,
                       const struct coord_peer *peer, const struct mu__msg *msg)
{
    struct name_host *host =
        mu__coord_name_host(ctx, c, peer->incarnation, peer->type, peer->index);

    if (host == NULL)
        return;
    if (msg->kind == MU__NAME_OFFER)
        on_name_offer(ctx, c, host, msg);
    else if (msg->kind == MU__NAME_STATE)
        on_name_state(ctx, c, host, msg);
    else
        on_name_hold(ctx, c, host, msg);
}

/* Only a registered task is heard: another process may have taken its place. */
void mu__coord_names_hear(struct mu__ctx *ctx, struct coordination *c,
                          struct mu__msg *msg)
{
    const struct coord_peer *peer = mu__coord_peer(c, msg->from.node);

    (void)mu__body(msg);
    if (peer == NULL || mu__coord_requester(ctx, c, msg->from.node, 0) == NULL)
        return;
    mu__coord_names_read(ctx, c);
    if (msg->kind == MU__NAME_MAKE)
        on_name_make(ctx, c, peer, msg);
    else if (msg->kind == MU__NAME_FIND)
        on_name_find(ctx, c, peer, msg);
    else if (msg->kind == MU__NAME_STOP)
        on_name_stop(ctx, c, peer, msg);
    else
        hear_owner(ctx, c, peer, msg);
}
