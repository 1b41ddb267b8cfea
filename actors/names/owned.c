/* The names that a node owns: its lease, and their actors. The lease is renewed from the
 * loop that the actors run on, and counts from when the renewal was sent: when it can be
 * over by this node's clock, no turn of theirs begins any more. */
#include "actors/keeper/kept_state.h"
#include "actors/names/name_rules.h"
#include "actors/names/naming.h"
#include "actors/names/owner_marks.h"
#include "actors/packing.h"
#include "actors/user/actions.h"
#include "actors/user/looking.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reports ---- */

static void report_state(struct office *office, const char *name, uint64_t epoch,
                         uint32_t actor, enum mu__name_end end, const mu_error *why)
{
    const char *words = why == NULL ? "" : why->message;
    struct mu__msg *msg =
        mu__naming_msg(office, MU__NAME_STATE, sizeof(struct mu__name_state),
                       strlen(name) + strlen(words));
    struct mu__name_state *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->name = mu__view_str(name);
    body->epoch = epoch;
    body->actor = actor;
    body->end = end;
    body->code = why == NULL ? 0 : (uint32_t)-why->code;
    body->message = mu__view_str(words);
    (void)mu__pack_view(mu__pack_view((uint8_t *)(body + 1), &body->name),
                        &body->message);
    mu__naming_post(office, msg);
}

/* ---- the lease ---- */

bool mu__naming_holds(struct office *office)
{
    return mu__now_ms(&office->ctx) < office->names->lease_until_ms;
}

static void end_owned(struct office *office)
{
    mu_error error;

    (void)mu_error_set(&error, -MU_EUNAVAILABLE,
                       "this node's lease of names may be over: the coordination service "
                       "has not answered");
    for (struct name_owned *owned =
             MU__LIST_FIRST(&office->names->owned, struct name_owned, node);
         owned != NULL; owned = MU__LIST_NEXT(owned, struct name_owned, node))
        mu__actor_end(owned->actor, &error);
}

/* Those that there is no room for are left out. */
static uint32_t list_loads(const struct office *office, char out[MU__NAME_LOADS_MAX])
{
    size_t used = 0;

    for (const struct name_owned *owned =
             MU__LIST_FIRST(&office->names->owned, struct name_owned, node);
         owned != NULL; owned = MU__LIST_NEXT(owned, struct name_owned, node)) {
        const mu_actor *actor = owned->actor;
        int size;

        if (actor->mail_count == 0)
            continue;
        size = snprintf(out + used, MU__NAME_LOADS_MAX - used,
                        "%" PRIu32 " %" PRIu64 " %s\n", actor->mail_count,
                        mu__oldest_mail_ms(actor), owned->text);
        if (size < 0 || (size_t)size >= MU__NAME_LOADS_MAX - used)
            break;
        used += (size_t)size;
    }
    return (uint32_t)used;
}

static void send_hold(struct office *office)
{
    struct naming *names = office->names;
    uint64_t now_ms = mu__now_ms(&office->ctx);
    char loads[MU__NAME_LOADS_MAX];
    uint32_t size = list_loads(office, loads);
    struct mu__msg *msg =
        mu__naming_msg(office, MU__NAME_HOLD, sizeof(struct mu__name_hold), size);
    struct mu__name_hold *body;

    names->hold_due_ms = now_ms + (names->lease_ms == 0 ? 100 : names->lease_ms / 4);
    mu__naming_arm(office, names->hold_due_ms);
    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->sent_ms = now_ms;
    body->loads = (struct mu__view){loads, size};
    (void)mu__pack_view((uint8_t *)(body + 1), &body->loads);
    mu__naming_post(office, msg);
}

void mu__naming_on_hold(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__name_hold *body = mu__body(msg);
    struct office *office = state;
    struct naming *names = office->names;
    uint64_t now_ms = mu__now_ms(ctx);

    if (msg->from.node != names->service || msg->from.actor != MU__COORDINATION ||
        body->sent_ms > now_ms)
        return;
    names->lease_ms = body->lease_ms;
    if (body->sent_ms + mu__name_own_lease(body->lease_ms) > names->lease_until_ms)
        names->lease_until_ms = body->sent_ms + mu__name_own_lease(body->lease_ms);
    if (!mu__list_is_empty(&names->owned))
        mu__naming_arm(office, names->lease_until_ms);
}

/* ---- types ---- */

static size_t list_types(const struct office *office, char *out, size_t size)
{
    const struct mu__text_node *node = mu__text_map_next(&office->types, NULL);
    size_t used = 0;

    for (; node != NULL; node = mu__text_map_next(&office->types, node)) {
        if (used + node->text.size + 1 > size)
            break;
        memcpy(out + used, node->text.data, node->text.size);
        used += node->text.size;
        out[used++] = '\n';
    }
    return used;
}

static void send_name_offer(struct office *office, bool begins)
{
    char types[MU__NAME_OFFERS_MAX];
    size_t size = list_types(office, types, sizeof types);
    struct mu__msg *msg =
        mu__naming_msg(office, MU__NAME_OFFER, sizeof(struct mu__name_offer), size);
    struct mu__name_offer *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->types = (struct mu__view){types, (uint32_t)size};
    body->drains = office->names->drains;
    body->begins = begins;
    (void)mu__pack_view((uint8_t *)(body + 1), &body->types);
    mu__naming_post(office, msg);
    office->names->has_offered = true;
    send_hold(office);
}

void mu__naming_offer(struct office *office)
{
    if (office->names->has_service)
        send_name_offer(office, !office->names->has_offered);
}

/* Of a kept actor it is said when a later life would find it: then it has started for
 * good. */
void mu__naming_started(mu_actor *actor)
{
    (void)mu__owner_is_former(actor->office, mu__view_str(actor->owned->text),
                              actor->owned->epoch);
    if (actor->kept == NULL || mu__kept_is_born(actor->kept))
        report_state(actor->office, actor->owned->text, actor->owned->epoch,
                     actor->number, MU__NAME_NO_END, NULL);
}

/* A node without types owns nothing, and offers nothing. */
void mu__naming_begin_session(struct office *office)
{
    struct naming *names = office->names;

    names->has_offered = false;
    for (struct name_owned *owned =
             MU__LIST_FIRST(&names->owned, struct name_owned, node);
         owned != NULL; owned = MU__LIST_NEXT(owned, struct name_owned, node))
        if (owned->actor->is_started)
            mu__naming_started(owned->actor);
    if (mu__text_map_next(&office->types, NULL) != NULL)
        send_name_offer(office, true);
}

/* ---- starting ---- */

/* The last one: an actor of a former epoch may not have ended yet. */
static struct name_owned *find_owned(const struct office *office, struct mu__view name)
{
    struct name_owned *owned =
        MU__LIST_LAST(&office->names->owned, struct name_owned, node);

    while (owned != NULL && !mu__view_is(name, owned->text))
        owned = owned->node.prev == NULL
                    ? NULL
                    : MU__LIST_ENTRY(owned->node.prev, struct name_owned, node);
    return owned;
}

static void on_kept_born(void *owner, const char *name, enum mu__kept_news news,
                         const mu_error *error)
{
    const struct name_owned *owned = find_owned(owner, mu__view_str(name));

    (void)error;
    if (news == MU__KEPT_BORN && owned != NULL)
        mu__naming_started(owned->actor);
}

/* Its keeper is the host of the coordination service. */
static int make_kept(struct office *office, const struct mu__name_start *body,
                     const char *name, const mu_value *args,
                     const mu_actor_options *options, mu_error *ret_error,
                     mu_actor **ret_actor)
{
    const struct peer *service = mu__peer_of_node(office, office->names->service);
    struct mu__kept_own own = {
        .name = name,
        .epoch = body->epoch,
        .type = mu__types_find(office, body->type),
        .options = options,
        .args = args,
        .is_born = (body->flags & MU__NAME_BORN) != 0,
        .made = body->made,
        .keeper_index = service == NULL ? office->config.index : service->index,
        .news = on_kept_born,
        .owner = office,
    };
    int rv;

    mu__view_copy(mu__view_str(service == NULL ? office->config.type : service->type),
                  own.keeper_type, sizeof own.keeper_type);
    if (own.type == NULL || own.type->save == NULL || own.type->load == NULL)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "actors of type \"%.*s\" are not kept: %s has no such type, "
                            "or it has no `save` and `load`",
                            (int)body->type.size, (const char *)body->type.data,
                            office->config.task);
    mu__kept_disown(office, name);
    rv = mu__kept_own(office, &own, ret_error);
    if (rv == 0)
        *ret_actor = mu__kept_find(office, mu__view_str(name))->actor;
    return rv;
}

static int make_owned(struct office *office, const struct mu__name_start *body,
                      mu_value *args, mu_error *ret_error, struct mail **ret_start)
{
    const bool is_kept = (body->flags & MU_ACTOR_KEPT) != 0;
    const mu_actor_options given = {
        .size = sizeof given,
        .flags = body->flags & ~(MU__NAME_BORN | MU_ACTOR_KEPT),
        .mailbox_max = body->mailbox_max,
        .mailbox_bytes_max = body->mailbox_bytes_max,
    };
    struct name_owned *owned = calloc(1, sizeof *owned);
    mu_actor_options options;
    int rv = owned == NULL ? mu_error_set(ret_error, -MU_ENOMEM, "no memory for an actor")
                           : mu__actors_read_options(&given, ret_error, &options);

    if (rv != 0) {
        mu_value_free(args);
        free(owned);
        return rv;
    }
    owned->epoch = body->epoch;
    mu__view_copy(body->name, owned->text, sizeof owned->text);
    if (is_kept) {
        rv = make_kept(office, body, owned->text, args, &options, ret_error,
                       &owned->actor);
        mu_value_free(args);
    } else {
        rv = mu__spawn_user(office, body->type, NULL, args, &options, ret_error,
                            ret_start);
    }
    if (rv != 0) {
        free(owned);
        return rv;
    }
    if (!is_kept)
        owned->actor = mu__actor_find(office, (*ret_start)->actor);
    owned->actor->owned = owned;
    mu__list_append(&office->names->owned, &owned->node);
    mu__naming_arm(office, office->names->lease_until_ms);
    return 0;
}

static int start_owned(struct office *office, const struct mu__name_start *body,
                       mu_error *ret_error)
{
    struct mail *start = NULL;
    mu_value *args = NULL;
    char why[128] = "out of memory";
    int rv = 0;

    if (!mu__naming_holds(office))
        return mu_error_set(ret_error, -MU_EUNAVAILABLE, "%s has no lease of names",
                            office->config.task);
    if (body->args.head_size > 0)
        rv = mu__value_unpack(&body->args, why, sizeof why, &args);
    if (rv != 0)
        return mu_error_set(ret_error, rv, "the arguments cannot be read: %s", why);
    rv = make_owned(office, body, args, ret_error, &start);
    if (rv == 0 && start != NULL) /* a kept actor starts when it is known what is kept */
        mu__turn_do(office, start);
    return rv;
}

/* An owner of a lower epoch is none any more. */
void mu__naming_on_start(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__name_start *body = mu__body(msg);
    struct office *office = state;
    struct name_owned *owned;
    char name[MU__ACTOR_NAME_MAX + 1];
    mu_error error;

    (void)ctx;
    if (msg->from.node != office->names->service || msg->from.actor != MU__COORDINATION)
        return;
    owned = find_owned(office, body->name);
    if (owned != NULL && owned->epoch >= body->epoch)
        return;
    if (owned != NULL)
        mu__actor_end(owned->actor, NULL);
    mu__view_copy(body->name, name, sizeof name);
    if (start_owned(office, body, &error) != 0)
        report_state(office, name, body->epoch, 0,
                     error.code == -MU_EUNAVAILABLE ? MU__NAME_LOST : MU__NAME_BROKEN,
                     &error);
}

/* ---- ending ---- */

void mu__naming_ended(mu_actor *actor)
{
    struct name_owned *owned = actor->owned;
    enum mu__name_end end = MU__NAME_STOPPED;

    if (owned->is_moved)
        end = MU__NAME_MOVED;
    else if (actor->why != NULL)
        end = MU__NAME_BROKEN;
    report_state(actor->office, owned->text, owned->epoch, actor->number, end,
                 actor->why);
    mu__list_remove(&actor->office->names->owned, &owned->node);
    actor->owned = NULL;
    free(owned);
}

void mu__naming_pass_on(const mu_actor *actor, mu_error *error)
{
    if (actor->ends && error->ran == MU_RAN_NO && actor->owned != NULL &&
        (actor->owned->is_moved || actor->why != NULL))
        error->kind = MU__ERROR_NO_ACTOR;
}

void mu__naming_on_stop(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__name_stop *body = mu__body(msg);
    struct office *office = state;
    struct name_owned *owned = find_owned(office, body->name);

    (void)ctx;
    if (msg->from.node == office->names->service && msg->from.actor == MU__COORDINATION &&
        owned != NULL && owned->epoch == body->epoch)
        mu__actor_request_stop(office, owned->actor, (int)body->how);
}

static void move_owned(struct office *office)
{
    office->names->drains = true;
    for (struct name_owned *owned =
             MU__LIST_FIRST(&office->names->owned, struct name_owned, node);
         owned != NULL; owned = MU__LIST_NEXT(owned, struct name_owned, node)) {
        owned->is_moved = true;
        mu__actor_request_stop(office, owned->actor, MU_STOP_AFTER_QUEUE);
    }
}

/* From the chief: this task is drained. Nothing new comes here before what is here goes.
 */
void mu__naming_on_drain(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct office *office = state;

    (void)ctx;
    (void)msg;
    if (office->names->drains)
        return;
    office->names->drains = true;
    if (office->names->has_offered)
        mu__naming_offer(office);
    move_owned(office);
}

void mu__naming_leave(struct office *office)
{
    move_owned(office);
}

void mu__naming_own_timer(struct office *office)
{
    struct naming *names = office->names;
    uint64_t now_ms = mu__now_ms(&office->ctx);

    if (!mu__list_is_empty(&names->owned)) {
        if (names->lease_until_ms <= now_ms)
            end_owned(office);
        else
            mu__naming_arm(office, names->lease_until_ms);
    }
    if (!names->has_offered || !names->has_service)
        return;
    if (names->hold_due_ms <= now_ms)
        send_hold(office);
    else
        mu__naming_arm(office, names->hold_due_ms);
}
