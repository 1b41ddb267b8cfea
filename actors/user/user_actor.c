/* A user's actor, as an actor of the kernel: it is poked when it has mail, and takes a
 * turn for each. */
#include "actors/keeper/hooks.h"
#include "actors/names/naming.h"
#include "actors/user/actions.h"
#include "actors/user/streams/stream_actions.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    TURNS_AT_ONCE = 8
}; /* between two looks at the clock, when the first were short */

/* What it hears. */
static void on_poke(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_actor_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

static const struct mu__handler handlers[] = {
    {MU__ACTOR_POKE, on_poke},
    {MU__TIMER, on_actor_timer},
};

/* In a node only users' actors have numbers that were not chosen. */
mu_actor *mu__actor_any(const struct office *office, uint32_t number)
{
    mu_actor *near = office->near[number % OFFICE_NEAR];

    if (near != NULL && near->number == number)
        return near;
    return number < MU__ACTOR_NAMED_MAX
               ? NULL
               : mu__actor_state(office->ctx.kernel, (mu__pid){MU__NODE_SELF, number});
}

mu_actor *mu__actor_find(const struct office *office, uint32_t number)
{
    mu_actor *actor = mu__actor_any(office, number);

    return actor == NULL || actor->ends ? NULL : actor;
}

mu_address mu__actor_address(const struct office *office, uint32_t number)
{
    mu_address address = {.index = office->config.index,
                          .number = number,
                          .incarnation = office->config.incarnation};

    mu__view_copy(mu__view_str(office->config.type), address.type, sizeof address.type);
    return address;
}

const struct actor_ties *mu__actor_ties(const mu_actor *actor)
{
    static const struct actor_ties none;

    return actor->ties == NULL ? &none : actor->ties;
}

struct actor_ties *mu__actor_ties_get(mu_actor *actor)
{
    if (actor->ties == NULL)
        actor->ties = calloc(1, sizeof *actor->ties);
    return actor->ties;
}

/* ---- making one ---- */

struct new_actor {
    struct office *office;
    const mu_actor_type *type;
    mu_actor *parent;
    const mu_actor_options *options;
    mu_actor *made;
};

static size_t user_state_size(const void *arg)
{
    return ((const struct new_actor *)arg)->type->state_size;
}

static int init_user_actor(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct new_actor *made = (struct new_actor *)arg;
    mu_actor *parent =
        (made->options->flags & MU_ACTOR_DETACHED) == 0 ? made->parent : NULL;
    struct actor_ties *ties = parent == NULL ? NULL : mu__actor_ties_get(parent);
    mu_actor *actor = state;

    if (parent != NULL && ties == NULL)
        return -MU_ENOMEM;
    actor->office = made->office;
    actor->type = made->type;
    actor->number = ctx->self.actor;
    actor->flags = made->options->flags;
    actor->mailbox_max = made->options->mailbox_max;
    actor->mailbox_bytes_max = made->options->mailbox_bytes_max;
    actor->parent = parent;
    if (ties != NULL)
        mu__list_append(&ties->children, &actor->as_child);
    mu__list_append(&made->office->actors, &actor->in_office);
    made->made = actor;
    return 0;
}

int mu__actor_new(struct office *office, const mu_actor_type *type, mu_actor *parent,
                  const mu_actor_options *options, mu_actor **ret_actor)
{
    struct new_actor made = {office, type, parent, options, NULL};
    int rv = mu__spawn(office->ctx.kernel, &mu__user_actor, 0, &made, NULL);

    if (rv == 0)
        *ret_actor = made.made;
    return rv;
}

/* ---- mail ---- */

void mu__actor_poke(mu_actor *actor)
{
    struct office *office = actor->office;
    const mu__pid pid = {MU__NODE_SELF, actor->number};

    if (!actor->is_poked &&
        mu__send(&office->ctx, pid, mu__msg_new(&office->ctx, MU__ACTOR_POKE)) == 0)
        actor->is_poked = true;
}

static bool is_held_now(const mu_actor *actor)
{
    return actor->kept != NULL && mu__kept_is_held(actor->kept);
}

static uint64_t moving_ms(const mu_actor *actor)
{
    struct mu__world *world = mu__kernel_world(actor->office->ctx.kernel);

    return world->ops->moving_ms == NULL ? 0 : world->ops->moving_ms(world);
}

static const char *name_mail(const struct mail *mail)
{
    if (mail->kind == MAIL_MESSAGE)
        return mail->method->name;
    return mail->kind == MAIL_START ? "start" : "notice";
}

static bool has_turn(const mu_actor *actor)
{
    return !actor->ends && !mu__list_is_empty(&actor->mail) && !is_held_now(actor);
}

/* Take up to `count` turns. Returns the time after them. */
static uint64_t handle_mail(mu_actor *actor, int count, uint64_t began_ms)
{
    const char *name;
    uint64_t now_ms;

    do {
        struct mail *mail = mu__mail_take(actor);

        name = name_mail(mail);
        mu__turn_take(actor, mail);
    } while (--count > 0 && has_turn(actor));
    now_ms = moving_ms(actor);
    if (now_ms - began_ms > MU__ACTOR_SLOW_MS)
        mu__log(&actor->office->ctx, MU__LOG_WARN,
                "%s.%s of actor %" PRIu32 ", or a turn just before it, took %" PRIu64
                " ms of the loop: give what blocks to mu_actor_work",
                actor->type->name, name, actor->number, now_ms - began_ms);
    return now_ms;
}

/* An owner of a name takes no turn once its lease can be over. */
__attribute__((cold)) static void end_without_lease(mu_actor *actor)
{
    mu_error error;

    (void)mu_error_set(&error, -MU_EUNAVAILABLE, "the lease of names of %s may be over",
                       actor->office->config.task);
    mu__actor_end(actor, &error);
}

static void review_lease(mu_actor *actor)
{
    if (actor->owned != NULL && !actor->ends && !mu__naming_holds(actor->office))
        end_without_lease(actor);
}

/* What a kept actor has done before leaves first. */
static void end_if_idle(struct mu__ctx *ctx, mu_actor *actor)
{
    if (actor->kept == NULL || !mu__kept_is_busy(actor->kept))
        mu__stop(ctx->kernel, ctx->self);
}

static void on_poke(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    mu_actor *actor = state;
    struct office *office = actor->office;
    uint64_t began_ms = moving_ms(actor);
    uint64_t now_ms = began_ms;
    int taken = 0;

    (void)msg;
    actor->is_poked = false;
    office->near[actor->number % OFFICE_NEAR] = actor;
    office->now_ms = mu__now_ms(&office->ctx);
    review_lease(actor);
    while (taken < MU__ACTOR_TURNS && has_turn(actor) &&
           now_ms - began_ms <= MU__ACTOR_BATCH_MS) {
        int count = taken < TURNS_AT_ONCE ? 1 : TURNS_AT_ONCE;

        now_ms = handle_mail(actor, count, now_ms);
        taken += count;
    }
    office->now_ms = 0;
    if (actor->ends) {
        end_if_idle(ctx, actor);
        return;
    }
    mu__room_review(actor);
    if (has_turn(actor))
        mu__actor_poke(actor);
}

static void on_actor_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__timer *body = mu__body(msg);
    mu_actor *actor = state;
    struct actor_timer *timer = mu__map_get(&actor->office->timers, body->token);
    mu_notice notice = {.kind = MU_NOTICE_TIMER};

    review_lease(actor);
    if (timer == NULL || actor->ends)
        return;
    if (is_held_now(actor)) {
        timer->timer = mu__timer_set(ctx, 1, timer->id);
        return;
    }
    notice.token = timer->token;
    timer->timer = 0;
    mu__actor_timer_free(actor->office, timer);
    mu__turn_notify(actor, &notice);
    if (actor->ends)
        end_if_idle(ctx, actor);
}

/* ---- its end ---- */

void mu__actor_end(mu_actor *actor, const mu_error *why)
{
    if (actor->ends)
        return;
    actor->ends = true;
    actor->why = why == NULL ? NULL : mu__error_copy(why);
    mu__actor_poke(actor);
}

void mu__actor_request_stop(struct office *office, mu_actor *actor, int how)
{
    struct mail *mail = NULL;

    if (actor == NULL)
        return;
    if (how == MU_STOP_AFTER_QUEUE)
        mail = mu__mail_new(office, MAIL_STOP);
    if (mail != NULL)
        mu__mail_put(actor, mail);
    else
        mu__actor_end(actor, NULL);
}

static void refuse_mail(mu_actor *actor)
{
    while (!mu__list_is_empty(&actor->mail)) {
        struct mail *mail = mu__mail_take(actor);

        if (mail->kept != NULL) {
            mu__kept_send_away(actor->office, &mail->answer);
            mu__mail_free(actor->office, mail);
        } else if (mail->kind == MAIL_MESSAGE || mail->kind == MAIL_START)
            mu__answer_refused(actor->office, mail, actor->type, -MU_ENOTFOUND,
                               "the actor has ended");
        else
            mu__mail_free(actor->office, mail);
    }
}

/* The next life of a kept actor answers. */
static void refuse_reply(const mu_actor *actor, const mu_reply *reply)
{
    mu_error error;

    if (reply->origin.sender != 0) {
        mu__kept_send_away(actor->office, &reply->answer);
        return;
    }
    (void)mu_error_set(&error, -MU_EABORTED,
                       "the actor has ended before it answered%s%.300s",
                       actor->why == NULL ? "" : ": ",
                       actor->why == NULL ? "" : actor->why->message);
    mu__answer_error(actor->office, actor->type, reply->method->name, MU_RAN_MAYBE,
                     &error);
    mu__answer(actor->office, &reply->answer, NULL, &error);
}

static void refuse_replies(mu_actor *actor)
{
    while (!mu__list_is_empty(&actor->replies)) {
        mu_reply *reply = MU__LIST_ENTRY(mu__list_pop(&actor->replies), mu_reply, node);

        refuse_reply(actor, reply);
        mu__chain_unref(reply->chain);
        free(reply);
    }
}

static void end_children(mu_actor *actor)
{
    while (!mu__list_is_empty(&actor->ties->children)) {
        mu_actor *child =
            MU__LIST_ENTRY(mu__list_pop(&actor->ties->children), mu_actor, as_child);

        child->parent = NULL;
        mu__actor_end(child, NULL);
    }
}

static void end_ties(mu_actor *actor)
{
    struct office *office = actor->office;
    mu_address address = mu__actor_address(office, actor->number);

    while (!mu__list_is_empty(&actor->ties->calls))
        mu__call_forget(office, MU__LIST_ENTRY(actor->ties->calls.first,
                                               struct pending_call, of_owner));
    end_children(actor);
    mu__watch_actor_ended(actor);
    mu__actor_timers_end(actor);
    mu__room_notify(office, &actor->ties->rooms, &address);
    free(actor->ties);
    actor->ties = NULL;
}

static void end_user_actor(struct mu__ctx *ctx, void *state)
{
    mu_actor *actor = state;
    struct office *office = actor->office;

    (void)ctx;
    if (actor->is_started)
        mu__turn_end_actor(actor);
    actor->ends = true;
    if (office->near[actor->number % OFFICE_NEAR] == actor)
        office->near[actor->number % OFFICE_NEAR] = NULL;
    if (actor->kept != NULL)
        mu__kept_actor_done(actor);
    mu__producer_actor_ended(actor); /* it may read its own stream: that is mail */
    mu__consumer_actor_ended(actor);
    refuse_mail(actor);
    refuse_replies(actor);
    if (actor->ties != NULL)
        end_ties(actor);
    mu__way_actor_ended(office, actor->number);
    if (actor->parent != NULL)
        mu__list_remove(&actor->parent->ties->children, &actor->as_child);
    mu__list_remove(&office->actors, &actor->in_office);
    if (actor->owned != NULL)
        mu__naming_ended(actor);
    free(actor->why);
}

const struct mu__behavior mu__user_actor = {
    .name = "actor",
    .state_size = sizeof(mu_actor),
    .more = user_state_size,
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init_user_actor,
    .done = end_user_actor,
};
