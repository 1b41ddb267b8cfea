#include "actors/names/relays.h"

#include "actors/packing.h"
#include "actors/user/actions.h"
#include "runtime/message/codec.h"
#include "runtime/message/pool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    RELAY_WAY = MU__ACTORS, /* credit for what is relayed is that of the office itself */
    RELAY_SPARE_SHARE = 8   /* of the time that is left; the host's answer says more than
                               that of who waits for it, so it is to come before */
};

/* ---- who calls ---- */

bool mu__relay_is_needed(struct office *office, struct name_entry *entry)
{
    const struct naming *names = office->names;
    mu_error error = {.code = 0};

    if (entry->is_relayed || entry->state != MU__NAME_RUNS ||
        entry->routed_epoch == entry->epoch)
        return entry->is_relayed;
    entry->routed_epoch = entry->epoch;
    entry->is_relayed = entry->owner.incarnation != office->config.incarnation &&
                        names->has_service &&
                        mu__peer_of_node(office, names->service) != NULL &&
                        mu__peer_reach(office, &entry->owner, &error) == NULL &&
                        error.code == -MU_EUNAVAILABLE;
    return entry->is_relayed;
}

static uint64_t relay_timeout_ms(int64_t timeout_ms)
{
    int64_t spare_ms = timeout_ms / RELAY_SPARE_SHARE;

    return (uint64_t)(timeout_ms - (spare_ms < 50 ? spare_ms : 50));
}

static struct mu__msg *pack_relay(struct office *office, const struct name_entry *entry,
                                  const char *method, const mu_value *args,
                                  const struct pending_call *call)
{
    struct mu__msg *msg =
        mu__naming_msg(office, MU__ACTOR_RELAY,
                       sizeof(struct mu__actor_relay) + strlen(entry->text),
                       strlen(method));
    struct mu__actor_relay *body;

    if (msg == NULL)
        return NULL;
    body = mu__body(msg);
    body->name = mu__view_str(entry->text);
    body->method = mu__view_str(method);
    (void)mu__pack_view(mu__pack_view((uint8_t *)(body + 1), &body->name), &body->method);
    if (call != NULL) {
        body->call = call->id;
        body->timeout_ms = relay_timeout_ms(call->timeout_ms);
    }
    if (args == NULL)
        return msg;
    msg->backing = mu__pack_to_send(args, true, &body->args);
    if (msg->backing != NULL)
        return msg;
    mu__msg_free(&office->ctx, msg);
    return NULL;
}

int mu__relay_make(struct office *office, const struct name_entry *entry,
                   const char *method, const mu_value *args, uint32_t bytes,
                   struct pending_call *call, uint32_t waits, mu_error *ret_error,
                   struct mail **ret_mail)
{
    struct peer *service = office->names->has_service
                               ? mu__peer_of_node(office, office->names->service)
                               : NULL;
    struct mail *mail;
    int rv;

    if (service == NULL)
        return mu_error_set(ret_error, -MU_EAGAIN,
                            "the coordination service is not connected");
    rv = mu__way_take(service, RELAY_WAY, bytes, waits);
    if (rv != 0)
        return mu_error_set(ret_error, rv, "too many messages are relayed");
    mail = mu__mail_new(office, OUT_REMOTE);
    if (mail != NULL)
        mail->msg = pack_relay(office, entry, method, args, call);
    if (mail == NULL || mail->msg == NULL) {
        mu__way_untake(office, service, RELAY_WAY, bytes);
        if (mail != NULL)
            mu__mail_free(office, mail);
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a message");
    }
    mail->peer = service;
    mail->actor = RELAY_WAY;
    mail->bytes = bytes;
    mail->call = call;
    if (call != NULL) {
        call->peer = service;
        call->to.number = RELAY_WAY;
    }
    *ret_mail = mail;
    return 0;
}

/* ---- who relays ---- */

static void free_relay(struct office *office, struct relay *relay)
{
    const struct mail taken = {
        .actor = RELAY_WAY, .bytes = relay->bytes, .from_node = relay->answer.node};

    mu__way_taken(office, &taken);
    if (relay->peer != NULL)
        mu__list_remove(&relay->peer->relays, &relay->node);
    free(relay);
}

void mu__relay_end(struct office *office, struct relay *relay, mu_value *value,
                   const mu_error *error)
{
    mu__answer(office, &relay->answer, value, error);
    free_relay(office, relay);
}

static void refuse_relay(struct office *office, struct relay *relay, const char *method,
                         mu_error *error)
{
    if (error->code == -MU_EAGAIN)
        error->code = -MU_EEXHAUSTED;
    mu__answer_error(office, NULL, method, MU_RAN_NO, error);
    mu__relay_end(office, relay, NULL, error);
}

/* The call that the relay makes; a send has none. */
static int begin_relay(struct office *office, struct relay *relay,
                       const struct mu__actor_relay *body, const char *method,
                       mu_error *ret_error, struct mail **ret_mail)
{
    mu_address to = {.number = 0};
    mu_value *args = NULL;
    char why[128] = "out of memory";
    int rv = 0;

    mu__view_copy(body->name, to.name, sizeof to.name);
    if (body->args.head_size > 0)
        rv = mu__value_unpack(&body->args, why, sizeof why, &args);
    if (rv != 0)
        return mu_error_set(ret_error, -MU_EDATALOSS, "the arguments cannot be read: %s",
                            why);
    if (body->call != 0) {
        relay->call = mu__call_new(office, &to, method,
                                   (int64_t)(body->timeout_ms % (UINT64_C(1) << 32)));
        if (relay->call == NULL)
            rv = mu_error_set(ret_error, -MU_ENOMEM, "no memory for a call");
        else if (body->chain.size > 0)
            relay->call->chain = mu__chain_copy(body->chain);
    }
    if (rv == 0)
        rv = mu__message_make(office, &to, method, args, relay->call, 0, ret_error,
                              ret_mail);
    mu_value_free(args);
    if (rv != 0 && relay->call != NULL)
        mu__call_free(office, relay->call);
    return rv;
}

void mu__relay_on_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__actor_relay *body = mu__body(msg);
    struct office *office = state;
    struct peer *peer = mu__peer_of_node(office, msg->from.node);
    uint32_t bytes = body->args.head_size + body->args.tail_size;
    struct relay *relay = peer == NULL ? NULL : calloc(1, sizeof *relay);
    struct mail *mail = NULL;
    char method[64];
    mu_error error;

    (void)ctx;
    if (relay == NULL)
        return;
    relay->answer = (struct answer_to){msg->from.node, body->call};
    mu__view_copy(body->method, method, sizeof method);
    if (!mu__way_arrived(peer, RELAY_WAY, bytes)) {
        (void)mu_error_set(&error, -MU_EEXHAUSTED,
                           "more messages than %s has room to relay",
                           office->config.task);
        mu__answer_error(office, NULL, method, MU_RAN_NO, &error);
        mu__answer(office, &relay->answer, NULL, &error);
        free(relay);
        return;
    }
    relay->bytes = bytes;
    if (begin_relay(office, relay, body, method, &error, &mail) != 0) {
        refuse_relay(office, relay, method, &error);
        return;
    }
    if (relay->call == NULL) {
        free_relay(office, relay);
    } else {
        relay->peer = peer;
        relay->call->relay = relay;
        mu__list_append(&peer->relays, &relay->node);
    }
    mu__turn_do(office, mail);
}

static void forget_relay(struct office *office, struct relay *relay)
{
    mu__call_forget(office, relay->call);
    free_relay(office, relay);
}

void mu__relay_cancel(struct office *office, uint32_t node, uint64_t call)
{
    struct peer *peer = mu__peer_of_node(office, node);
    struct relay *relay =
        peer == NULL ? NULL : MU__LIST_FIRST(&peer->relays, struct relay, node);

    while (relay != NULL && relay->answer.call != call)
        relay = MU__LIST_NEXT(relay, struct relay, node);
    if (relay != NULL)
        forget_relay(office, relay);
}

void mu__relays_lose(struct office *office, struct peer *peer)
{
    while (!mu__list_is_empty(&peer->relays))
        forget_relay(office, MU__LIST_FIRST(&peer->relays, struct relay, node));
}
