/* Types, and new actors of them. */
#include "actors/user/actions.h"

#include "actors/names/name_rules.h"
#include "actors/names/naming.h"
#include "actors/packing.h"
#include "runtime/base/text.h"
#include "runtime/message/arguments.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names and options ---- */

int mu__actors_check_name(const char *what, const char *name, mu_error *ret_error)
{
    size_t size = strlen(name);

    if (size > 0 && size <= MU__ACTOR_NAME_MAX && mu__utf8_valid(name, size) &&
        strchr(name, '#') == NULL)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "the name of an actor's %s has 1 to %d bytes of UTF-8 without "
                        "'#', \"%.80s\" has %zu",
                        what, MU__ACTOR_NAME_MAX, name, size);
}

void mu_actor_options_init_sized(mu_actor_options *options, size_t size)
{
    const mu_actor_options defaults = {.restarts = 5, .restarts_within_ms = 60000};

    mu__options_init(options, size, &defaults, sizeof defaults);
}

int mu__actors_read_options(const mu_actor_options *options, mu_error *ret_error,
                            mu_actor_options *ret_own)
{
    const unsigned known =
        MU_ACTOR_DETACHED | MU_ACTOR_REENTRANT | MU_ACTOR_NEW | MU_ACTOR_KEPT;
    int rv = MU__OPTIONS_READ(mu_actor_options, options, ret_error, ret_own);

    if (rv != 0)
        return rv;
    if ((ret_own->flags & ~known) != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "option flags of an actor is 0x%x, which has unknown flags",
                            ret_own->flags);
    if (ret_own->restart < MU_RESTART_FAILED || ret_own->restart > MU_RESTART_ALWAYS)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "option restart of an actor is %d: see enum mu_actor_restart",
                            ret_own->restart);
    if ((ret_own->flags & MU_ACTOR_KEPT) != 0 && ret_own->name == NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a kept actor has a name: option name of an actor");
    if (ret_own->name != NULL)
        rv = mu__name_check(mu__view_str(ret_own->name), ret_error);
    if (rv != 0)
        return rv;
    if (ret_own->mailbox_max == 0)
        ret_own->mailbox_max = MU__ACTOR_MAILBOX;
    if (ret_own->mailbox_bytes_max == 0)
        ret_own->mailbox_bytes_max = MU__ACTOR_MAILBOX_BYTES;
    return 0;
}

/* ---- types ---- */

struct type_entry {
    struct mu__text_node named; /* first */
    const mu_actor_type *type;
};

const mu_actor_type *mu__types_find(const struct office *office, struct mu__view name)
{
    struct mu__text_node *found = mu__text_map_find(&office->types, name);

    return found == NULL ? NULL : ((struct type_entry *)found)->type;
}

static int check_type(const mu_actor_type *type, mu_error *ret_error)
{
    int rv = type->name == NULL
                 ? mu_error_set(ret_error, -MU_EINVALID, "an actor's type has no name")
                 : mu__actors_check_name("type", type->name, ret_error);

    for (const mu_actor_method *m = type->methods;
         rv == 0 && m != NULL && m->name != NULL; m++) {
        rv = mu__actors_check_name("method", m->name, ret_error);
        if (rv == 0 && m->call == NULL)
            rv = mu_error_set(ret_error, -MU_EINVALID, "%s.%s has no function",
                              type->name, m->name);
    }
    return rv;
}

int mu__types_add(struct office *office, const mu_actor_type *type, mu_error *ret_error)
{
    struct type_entry *entry;
    int rv = check_type(type, ret_error);

    if (rv != 0)
        return rv;
    if (mu__types_find(office, mu__view_str(type->name)) != NULL)
        return mu_error_set(ret_error, -MU_EEXISTS,
                            "actors of type \"%s\" are registered already", type->name);
    entry = calloc(1, sizeof *entry);
    if (entry != NULL) {
        entry->type = type;
        entry->named.text = mu__view_str(type->name);
    }
    if (entry != NULL && mu__text_map_add(&office->types, &entry->named) == 0) {
        mu__naming_offer(office);
        return 0;
    }
    free(entry);
    return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a type of actors");
}

void mu__types_done(struct office *office)
{
    struct mu__text_node *next = mu__text_map_next(&office->types, NULL);

    while (next != NULL) {
        struct mu__text_node *entry = next;

        next = mu__text_map_next(&office->types, next);
        free(entry);
    }
    mu__text_map_done(&office->types);
}

/* ---- actors ---- */

int mu__spawn_user(struct office *office, struct mu__view type, mu_actor *parent,
                   mu_value *args, const mu_actor_options *options, mu_error *ret_error,
                   struct mail **ret_start)
{
    const mu_actor_type *found = mu__types_find(office, type);
    struct mail *start = mu__mail_new(office, MAIL_START);
    mu_actor *actor;
    int rv = start == NULL ? -MU_ENOMEM : 0;

    if (found == NULL)
        rv = mu_error_set(ret_error, -MU_ENOTFOUND,
                          "%s has no actors of type \"%.*s\": mu_node_register_actor",
                          office->config.task, (int)type.size, (const char *)type.data);
    else if (rv == 0)
        rv = mu__actor_new(office, found, parent, options, &actor);
    if (rv != 0) {
        if (start != NULL)
            mu__mail_free(office, start);
        mu_value_free(args);
        return found == NULL ? rv
                             : mu_error_set(ret_error, rv, "an actor was not made: %s",
                                            mu_strerror(rv));
    }
    start->actor = actor->number;
    start->value = args;
    *ret_start = start;
    return 0;
}

static struct mu__msg *pack_start(struct office *office, const struct pending_call *call)
{
    const struct mu__spawned_actor *spawned = call->request->spawned;
    struct mu__msg *msg = mu__msg_new(&office->ctx, MU__ACTOR_START);
    struct mu__actor_start *body;

    if (msg == NULL)
        return NULL;
    body = mu__body(msg);
    body->call = call->id;
    body->type = mu__view_str(spawned->type);
    body->timeout_ms = (uint64_t)call->timeout_ms;
    body->flags = spawned->options.flags;
    body->mailbox_max = spawned->options.mailbox_max;
    body->mailbox_bytes_max = spawned->options.mailbox_bytes_max;
    if (call->request->args == NULL)
        return msg;
    msg->backing = mu__pack_to_send(call->request->args, true, &body->args);
    if (msg->backing != NULL)
        return msg;
    mu__msg_free(&office->ctx, msg);
    return NULL;
}

/* The process that is the task now. */
static struct peer *peer_of_task(const struct office *office, const char *type,
                                 uint32_t index)
{
    for (struct peer *peer = MU__LIST_FIRST(&office->peers_all, struct peer, node);
         peer != NULL; peer = MU__LIST_NEXT(peer, struct peer, node))
        if (peer->number != 0 && peer->index == index && strcmp(peer->type, type) == 0)
            return peer;
    return NULL;
}

/* The call has begun; its peer is up. */
static int send_start(struct office *office, struct pending_call *call, struct peer *peer,
                      mu_error *ret_error)
{
    struct mu__msg *msg;

    if (mu__send_is_forbidden(&office->ctx, peer->number, MU__ACTOR_START, ret_error))
        return -MU_EPERMISSION;
    msg = pack_start(office, call);
    if (msg == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for an actor");
    call->to.incarnation = peer->incarnation;
    call->peer = peer;
    call->is_sent = true;
    mu__list_append(&peer->calls, &call->of_peer);
    mu__peer_send(office, peer, msg);
    return 0;
}

/* A task that is not linked is dialled; it may also come by itself. Until then the call
 * is to a process that is not known: incarnation 0. */
static int spawn_remote(struct office *office, struct pending_call *call,
                        mu_error *ret_error)
{
    struct peer *peer = peer_of_task(office, call->to.type, call->to.index);
    int rv = 0;

    call->to.incarnation = 0;
    if (peer == NULL && office->config.dial != NULL)
        rv = office->config.dial(office->config.owner, call->to.type, call->to.index,
                                 ret_error);
    if (rv != 0)
        return rv;
    if (mu__call_begin(office, call) != 0)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for an actor");
    rv = peer == NULL ? 0 : send_start(office, call, peer, ret_error);
    if (rv != 0)
        mu__call_unlist(office, call);
    return rv;
}

void mu__spawn_at_peer(struct office *office, struct peer *peer)
{
    struct pending_call *next;
    mu_error error;

    for (struct pending_call *call =
             MU__LIST_FIRST(&office->requests, struct pending_call, of_owner);
         call != NULL; call = next) {
        next = MU__LIST_NEXT(call, struct pending_call, of_owner);
        if (call->request == NULL || call->request->spawned == NULL ||
            call->to.incarnation != 0 || call->to.name[0] != '\0' ||
            call->to.index != peer->index || strcmp(call->to.type, peer->type) != 0)
            continue;
        if (send_start(office, call, peer, &error) != 0)
            mu__call_end(office, call, NULL, &error);
    }
}

static int spawn_here(struct office *office, struct pending_call *call,
                      mu_error *ret_error)
{
    const struct mu__spawned_actor *spawned = call->request->spawned;
    const mu_value *args = call->request->args;
    struct mail *start;
    int rv = mu__spawn_user(office, mu__view_str(spawned->type), NULL,
                            args == NULL ? NULL : mu_value_ref(args), &spawned->options,
                            ret_error, &start);

    if (rv != 0)
        return rv;
    rv = mu__call_begin(office, call);
    if (rv == 0)
        start->answer = (struct answer_to){MU__NODE_SELF, call->id};
    mu__turn_do(office, start);
    return rv == 0 ? 0 : mu_error_set(ret_error, rv, "no memory for an actor");
}

static int spawn_named(struct office *office, struct pending_call *call,
                       mu_error *ret_error)
{
    const struct mu__spawned_actor *spawned = call->request->spawned;
    struct name_wish *wish =
        mu__wish_new(spawned->type, call->request->args, &spawned->options);
    int rv = wish == NULL ? -MU_ENOMEM : mu__call_begin(office, call);

    if (rv != 0) {
        mu__wish_free(wish);
        return mu_error_set(ret_error, rv, "no memory for an actor");
    }
    mu__wish_of_thread(wish, call->id);
    rv = mu__naming_wish(office, wish, ret_error);
    if (rv != 0)
        mu__call_unlist(office, call);
    return rv;
}

void mu__spawn_for_thread(struct office *office, struct pending_call *call)
{
    const mu_actor_options *options = &call->request->spawned->options;
    const char *type = options->task_type;
    bool is_here =
        type == NULL || (strcmp(type, office->config.type) == 0 &&
                         (uint32_t)options->task_index == office->config.index);
    mu_error error;
    int rv;

    if (options->name != NULL) {
        call->to = (mu_address){.number = 0};
        mu__view_copy(mu__view_str(options->name), call->to.name, sizeof call->to.name);
        rv = spawn_named(office, call, &error);
    } else if (is_here) {
        call->to = mu__actor_address(office, 0);
        rv = spawn_here(office, call, &error);
    } else {
        call->to = (mu_address){.index = (uint32_t)options->task_index};
        mu__view_copy(mu__view_str(type), call->to.type, sizeof call->to.type);
        rv = spawn_remote(office, call, &error);
    }
    if (rv != 0)
        mu__call_end(office, call, NULL, &error);
}
