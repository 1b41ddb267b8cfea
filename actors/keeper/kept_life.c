/* The life of a kept actor here: it is fenced, loaded, runs, and ends. */
#include "actors/keep.h"
#include "actors/keeper/kept_state.h"
#include "actors/names/naming.h"

#include "runtime/message/arguments.h"
#include "runtime/message/codec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct kept *mu__kept_find(const struct office *office, struct mu__view name)
{
    return (struct kept *)mu__text_map_find(&office->kept.owned, name);
}

/* ---- the keeper ---- */

static bool is_keeper(const struct kept *kept, const struct peer *peer)
{
    return peer->number != 0 && peer->index == kept->own.keeper_index &&
           strcmp(peer->type, kept->own.keeper_type) == 0;
}

static bool is_kept_here(const struct kept *kept)
{
    const struct mu__actors_config *config = &kept->office->config;

    return config->index == kept->own.keeper_index &&
           strcmp(config->type, kept->own.keeper_type) == 0;
}

/* Its node; false: it is not linked. */
static bool find_keeper(const struct kept *kept, uint32_t *ret_node)
{
    *ret_node = MU__NODE_SELF;
    if (is_kept_here(kept))
        return true;
    for (struct peer *peer = MU__LIST_FIRST(&kept->office->peers_all, struct peer, node);
         peer != NULL; peer = MU__LIST_NEXT(peer, struct peer, node))
        if (is_keeper(kept, peer)) {
            *ret_node = peer->number;
            return true;
        }
    return false;
}

void mu__kept_report(struct kept *kept, struct mu__msg *msg)
{
    struct mu__ctx *ctx = &kept->office->ctx;
    uint32_t node;

    if (find_keeper(kept, &node))
        (void)mu__send(ctx, (mu__pid){node, MU__KEEPER}, msg);
    else
        mu__msg_free(ctx, msg);
}

static void report_fence(struct kept *kept)
{
    const struct mu__keep_fence body = {.name = kept->named.text,
                                        .epoch = kept->own.epoch,
                                        .number = kept->own.made,
                                        .owner = kept->office->config.incarnation,
                                        .is_born = kept->own.is_born};
    struct mu__ctx *ctx = &kept->office->ctx;
    struct mu__msg *msg = mu__msg_backed(ctx, MU__KEEP_FENCE, &body, sizeof body, NULL);

    if (msg != NULL && mu__msg_keep(mu__kernel_schema(ctx->kernel), msg) == 0)
        mu__kept_report(kept, msg);
    else
        mu__msg_free(ctx, msg);
}

static void drop_loaded(struct kept *kept)
{
    while (kept->loaded.first != NULL) {
        struct mu__msg *msg = kept->loaded.first;

        kept->loaded.first = msg->next;
        mu__msg_free(&kept->office->ctx, msg);
    }
    kept->loaded.last = NULL;
    kept->loaded.count = 0;
    kept->loaded.all = 0;
}

static void report_to_keeper(struct kept *kept)
{
    if (kept->phase == KEPT_LOADING) {
        drop_loaded(kept);
        report_fence(kept);
    } else {
        mu__kept_report_items(kept);
    }
}

void mu__kept_again(struct kept *kept)
{
    kept->is_again = true;
    mu__kept_arm(kept->office);
}

bool mu__kept_is_born(const struct kept *kept)
{
    return kept->own.is_born;
}

const mu_value *mu_actor_args(const mu_actor *self)
{
    MU__REQUIRE_OR(NULL, self);

    return self->kept == NULL ? NULL : self->kept->args;
}

/* ---- beginning ---- */

void mu__kept_load(struct kept *kept)
{
    kept->phase = KEPT_LOADING;
    kept->is_held = true;
    report_to_keeper(kept);
}

/* Its first mail is START, which a later life has no use for. */
static int make_actor(struct kept *kept)
{
    struct office *office = kept->office;
    struct mail *start = mu__mail_new(office, MAIL_START);
    mu_actor_options options;
    int rv = start == NULL ? -MU_ENOMEM
                           : mu__actors_read_options(kept->own.options, NULL, &options);

    if (rv == 0)
        rv = mu__actor_new(office, kept->own.type, NULL, &options, &kept->actor);
    if (rv != 0) {
        if (start != NULL)
            mu__mail_free(office, start);
        return rv;
    }
    kept->actor->kept = kept;
    kept->is_held = true;
    start->actor = kept->actor->number;
    start->value = kept->args == NULL ? NULL : mu_value_ref(kept->args);
    mu__mail_put(kept->actor, start);
    return 0;
}

static struct kept *kept_new(struct office *office, const struct mu__kept_own *own)
{
    size_t size = strlen(own->name);
    struct kept *kept = calloc(1, sizeof *kept + size + 1);

    if (kept == NULL)
        return NULL;
    memcpy(kept->name, own->name, size);
    kept->named.text = mu__view_str(kept->name);
    kept->office = office;
    kept->own = *own;
    kept->args = own->args == NULL ? NULL : mu_value_ref(own->args);
    mu__map_seed(&kept->windows, office->peers.seed);
    if (mu__text_map_add(&office->kept.owned, &kept->named) == 0) {
        kept->is_listed = true;
        return kept;
    }
    mu_value_free(kept->args);
    free(kept);
    return NULL;
}

static void unlist_kept(struct kept *kept)
{
    if (kept->is_listed)
        mu__text_map_remove(&kept->office->kept.owned, &kept->named);
    kept->is_listed = false;
}

static void kept_free(struct kept *kept)
{
    mu__kept_drop_held(kept);
    mu__kept_drop_items(kept);
    drop_loaded(kept);
    mu__kept_windows_done(kept);
    unlist_kept(kept);
    mu_value_free(kept->args);
    free(kept);
}

int mu__kept_own(struct office *office, const struct mu__kept_own *own,
                 mu_error *ret_error)
{
    struct kept *kept;

    if (own->name[0] == '\0' || strlen(own->name) > MU__KEPT_NAME_MAX || own->epoch == 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a kept actor has a name of 1 to %d bytes and an epoch",
                            MU__KEPT_NAME_MAX);
    if (mu__kept_find(office, mu__view_str(own->name)) != NULL)
        return mu_error_set(ret_error, -MU_EEXISTS, "\"%s\" is owned here already",
                            own->name);
    kept = kept_new(office, own);
    if (kept == NULL || make_actor(kept) != 0) {
        if (kept != NULL)
            kept_free(kept);
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a kept actor");
    }
    kept->own.options = NULL;
    mu__kept_load(kept);
    return 0;
}

/* ---- the end ---- */

void mu__kept_fail(struct kept *kept, const mu_error *error)
{
    mu_actor *actor = kept->actor;

    if (kept->is_cut)
        return;
    kept->phase = KEPT_LIVE; /* it waits for nothing */
    kept->is_cut = true;
    unlist_kept(kept); /* the next life may begin here */
    mu__kept_drop_held(kept);
    mu__actor_end(actor, error);
    mu__actor_poke(actor);
}

void mu__kept_disown(struct office *office, const char *name)
{
    struct kept *kept = mu__kept_find(office, mu__view_str(name));

    if (kept != NULL)
        mu__kept_fail(kept, NULL);
}

void mu__kept_actor_done(mu_actor *actor)
{
    struct kept *kept = actor->kept;
    struct mu__kept_own own = kept->own;

    if (own.news != NULL)
        own.news(own.owner, kept->name, MU__KEPT_ENDED, actor->why);
    actor->kept = NULL;
    kept_free(kept);
}

/* ---- what is loaded ---- */

static int refuse_loaded(const struct kept *kept, int code, const char *why,
                         mu_error *error)
{
    return mu_error_set(error, code, "\"%s\" cannot be loaded: %s", kept->name, why);
}

static int load_one(struct kept *kept, const struct mu__keep_item *item, mu_error *error)
{
    const mu_actor_type *type = kept->own.type;
    mu_actor *actor = kept->actor;
    bool is_whole = item->kind == MU__KEPT_SNAPSHOT;
    mu_value *value = NULL;
    char why[128] = "out of memory";
    int rv;

    if (item->kind == MU__KEPT_ANSWER)
        return kept->has_windows || mu__kept_window_load(kept, item) == 0
                   ? 0
                   : refuse_loaded(kept, -MU_ENOMEM, why, error);
    if (is_whole ? type->load == NULL : type->replay == NULL)
        return refuse_loaded(
            kept, -MU_EDATALOSS,
            is_whole ? "its type has no `load`" : "its type has no `replay`", error);
    rv = mu__value_unpack(&item->value, why, sizeof why, &value);
    if (rv == 0) {
        rv = is_whole ? type->load(actor, actor->state, value, item->version)
                      : type->replay(actor->state, value);
        (void)mu_error_set(error, rv, "\"%s\" cannot be loaded: its type returned %s",
                           kept->name, mu_err_name(rv));
    } else {
        (void)refuse_loaded(kept, rv, why, error);
    }
    mu_value_free(value);
    kept->records += !is_whole;
    return rv;
}

static bool has_state(const struct kept *kept)
{
    const struct mu__msg *msg = kept->loaded.first;

    while (msg != NULL && ((const struct mu__keep_item *)(const void *)msg->body)->kind ==
                              MU__KEPT_ANSWER)
        msg = msg->next;
    return msg != NULL;
}

static bool is_snapshot(const struct mu__msg *msg)
{
    return ((const struct mu__keep_item *)(const void *)msg->body)->kind ==
           MU__KEPT_SNAPSHOT;
}

/* In a turn of the actor. */
int mu__kept_take_loaded(struct kept *kept, mu_error *error)
{
    const mu_actor_type *type = kept->own.type;
    int rv = 0;

    kept->records = 0;
    if (has_state(kept) && !is_snapshot(kept->loaded.first) && type->load != NULL)
        rv = type->load(kept->actor, kept->actor->state, NULL, type->version);
    if (rv != 0)
        return refuse_loaded(kept, rv, "its type's `load` failed", error);
    for (struct mu__msg *msg = kept->loaded.first; msg != NULL && rv == 0;
         msg = msg->next)
        rv = load_one(kept, mu__body(msg), error);
    return rv;
}

static void drop_start(mu_actor *actor)
{
    struct mail *first = MU__LIST_FIRST(&actor->mail, struct mail, node);

    if (first != NULL && first->kind == MAIL_START)
        mu__mail_free(actor->office, mu__mail_take(actor));
}

/* All that is kept has come: the actor runs. */
static void end_loading(struct kept *kept)
{
    mu_actor *actor = kept->actor;
    mu_error error = {0};
    bool is_later = has_state(kept);

    kept->phase = KEPT_LIVE;
    if (mu__turn_load(actor, &error) != 0) {
        mu__answer_error(kept->office, actor->type, "load", MU_RAN_UNKNOWN, &error);
        mu__kept_fail(kept, &error);
        return;
    }
    drop_loaded(kept);
    kept->has_windows = true;
    if (is_later) {
        drop_start(actor);
        actor->is_started = true;
        kept->own.is_born = true;
        if (actor->owned != NULL)
            mu__naming_started(actor);
    }
    kept->is_held = false;
    mu__actor_poke(actor);
}

static bool is_from_keeper(const struct kept *kept, const struct mu__msg *msg)
{
    uint32_t node;

    return find_keeper(kept, &node) && msg->from.node == node &&
           msg->from.actor == MU__KEEPER;
}

static uint64_t loaded_number(const struct mu__msg *msg)
{
    return ((const struct mu__keep_item *)(const void *)msg->body)->number;
}

/* In the order of their numbers: a large one may come behind those after it. False: it is
 * there already. */
static bool add_loaded(struct kept *kept, struct mu__msg *msg)
{
    struct mu__msg **at = &kept->loaded.first;

    if (kept->loaded.last != NULL &&
        loaded_number(kept->loaded.last) < loaded_number(msg))
        at = &kept->loaded.last->next;
    while (*at != NULL && loaded_number(*at) < loaded_number(msg))
        at = &(*at)->next;
    if (*at != NULL && loaded_number(*at) == loaded_number(msg))
        return false;
    msg->next = *at;
    *at = msg;
    if (msg->next == NULL)
        kept->loaded.last = msg;
    kept->loaded.count++;
    return true;
}

void mu__kept_on_item(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__keep_item *body = mu__body(msg);
    struct kept *kept = mu__kept_find(state, body->name);
    struct mu__msg *own;

    if (kept == NULL || kept->actor->ends || kept->phase != KEPT_LOADING ||
        body->epoch != kept->own.epoch || !is_from_keeper(kept, msg))
        return;
    if (body->kind == MU__KEPT_END) {
        kept->loaded.all = body->number + 1;
    } else {
        own = mu__claim(ctx);
        if (mu__msg_keep(mu__kernel_schema(ctx->kernel), own) != 0 ||
            !add_loaded(kept, own)) {
            mu__msg_free(ctx, own);
            return;
        }
    }
    if (kept->loaded.all == kept->loaded.count + 1)
        end_loading(kept);
}

/* ---- what the keeper says ---- */

static void on_refused(struct kept *kept, const struct mu__kept *body)
{
    struct office *office = kept->office;
    mu_error error;

    if (body->code == MU_EEXHAUSTED || body->code == MU_ENOMEM) {
        mu__kept_again(kept);
        return;
    }
    (void)mu_error_set(&error, -(int)body->code, "\"%s\" is not kept any more: %.*s",
                       kept->name,
                       body->message.size > 300 ? 300 : (int)body->message.size,
                       body->message.size == 0 ? "" : (const char *)body->message.data);
    mu__answer_error(office, kept->own.type, NULL, MU_RAN_UNKNOWN, &error);
    mu__log(&office->ctx, MU__LOG_WARN, "%s", error.message);
    mu__kept_fail(kept, &error);
}

void mu__kept_on_kept(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__kept *body = mu__body(msg);
    struct kept *kept = mu__kept_find(state, body->name);
    bool was_born;

    (void)ctx;
    if (kept == NULL || kept->is_cut || body->epoch != kept->own.epoch ||
        !is_from_keeper(kept, msg))
        return;
    if (body->code != 0) {
        on_refused(kept, body);
        return;
    }
    kept->is_full = body->is_full;
    if (body->number > kept->number)
        return;
    was_born = kept->own.is_born;
    kept->own.is_born |= body->number > 0;
    if (!was_born && kept->own.is_born && kept->own.news != NULL)
        kept->own.news(kept->own.owner, kept->name, MU__KEPT_BORN, NULL);
    mu__kept_flushed(kept, body->number);
}

void mu__kept_keepers_report(struct office *office, const struct peer *peer)
{
    struct mu__text_node *node = NULL;

    while ((node = mu__text_map_next(&office->kept.owned, node)) != NULL) {
        struct kept *kept = (struct kept *)node;

        if (kept->is_cut || (peer == NULL ? !kept->is_again : !is_keeper(kept, peer)))
            continue;
        kept->is_again = false;
        kept->is_full &= peer == NULL; /* it may have started anew */
        report_to_keeper(kept);
    }
}
