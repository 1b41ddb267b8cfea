#include "actors/user/office.h"

#include "actors/client/future.h"
#include "actors/keeper/hooks.h"
#include "actors/names/naming.h"
#include "actors/names/relays.h"
#include "actors/user/actions.h"
#include "actors/user/streams/stream_actions.h"

#include <stdlib.h>

/* What it hears. */
static void on_office_end(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_office_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_actor_request(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_request_cancel(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_office_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

static const struct mu__handler handlers[] = {
    {MU__END, on_office_end},
    {MU__CALL, on_office_call},
    {MU__ACTOR_REQUEST, on_actor_request},
    {MU__ACTOR_REQUEST_CANCEL, on_request_cancel},
    {MU__ACTOR_MESSAGE, mu__remote_on_message},
    {MU__ACTOR_ANSWER, mu__remote_on_answer},
    {MU__ACTOR_RELAY, mu__relay_on_call},
    {MU__ACTOR_CANCEL, mu__remote_on_cancel},
    {MU__ACTOR_ROOM, mu__way_on_room},
    {MU__ACTOR_START, mu__remote_on_start},
    {MU__ACTOR_STOP, mu__remote_on_stop},
    {MU__ACTOR_WATCH, mu__remote_on_watch},
    {MU__ACTOR_UNWATCH, mu__remote_on_unwatch},
    {MU__ACTOR_DOWN, mu__remote_on_down},
    {MU__STREAM_BEGIN, mu__streams_on_begin},
    {MU__STREAM_ITEM, mu__streams_on_item},
    {MU__STREAM_END, mu__streams_on_end},
    {MU__STREAM_TAKEN, mu__streams_on_taken},
    {MU__STREAM_CLOSE, mu__streams_on_close},
    {MU__NAME_NEWS, mu__naming_on_news},
    {MU__NAME_START, mu__naming_on_start},
    {MU__NAME_HOLD, mu__naming_on_hold},
    {MU__NAME_STOP, mu__naming_on_stop},
    {MU__SERVICE_SESSION, mu__naming_on_session},
    {MU__DRAIN, mu__naming_on_drain},
    {MU__KEPT_CALL, mu__kept_on_call},
    {MU__KEPT_AWAY, mu__kept_on_away},
    {MU__KEPT_ITEM, mu__kept_on_item},
    {MU__KEPT, mu__kept_on_kept},
    {MU__NODE_UP, mu__peer_on_up},
    {MU__NODE_DOWN, mu__peer_on_down},
    {MU__NODE_TROUBLE, mu__peer_on_trouble},
    {MU__WORK_DONE, mu__actor_on_work_done},
    {MU__TIMER, on_office_timer},
};

/* ---- calls of threads ---- */

/* Whether an actor of another node can be stopped from here. */
static int check_stop(struct office *office, const mu_address *who, mu_error *ret_error)
{
    struct peer *peer;

    if (who->incarnation == office->config.incarnation || who->name[0] != '\0')
        return 0;
    peer = mu__peer_reach(office, who, ret_error);
    if (peer == NULL)
        return ret_error->code;
    return peer->number != 0 && mu__send_is_forbidden(&office->ctx, peer->number,
                                                      MU__ACTOR_STOP, ret_error)
               ? ret_error->code
               : 0;
}

static void stop_for_thread(struct office *office, struct mu__actors_call *call)
{
    int rv = check_stop(office, &call->address, &call->call.error);
    struct mail *mail = rv == 0 ? mu__mail_new(office, OUT_STOP) : NULL;

    if (mail == NULL) {
        if (rv == 0)
            rv =
                mu_error_set(&call->call.error, -MU_ENOMEM, "no memory to stop an actor");
        mu__call_complete(&call->call, rv);
        return;
    }
    mail->address = call->address;
    mail->code = call->how;
    mu__turn_do(office, mail);
    mu__call_complete(&call->call, 0);
}

static void on_office_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct office *office = state;
    struct mu__actors_call *call = ((struct mu__call_msg *)mu__body(msg))->call;

    (void)ctx;
    if (call->call.operation == MU__ACTORS_REGISTER)
        mu__call_complete(&call->call,
                          mu__types_add(office, call->type, &call->call.error));
    else if (call->call.operation == MU__ACTORS_STOP)
        stop_for_thread(office, call);
    else
        mu__reader_on_call(office, call);
}

/* A full mailbox is an error: a thread has no notice to wait for. */
static void refuse_request(struct office *office, struct pending_call *call,
                           mu_error *error)
{
    if (error->code == -MU_EAGAIN)
        error->code = -MU_EEXHAUSTED;
    mu__answer_error(office, NULL, call->method, MU_RAN_NO, error);
    mu__call_end(office, call, NULL, error);
}

static void on_actor_request(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct office *office = state;
    struct mu__thread_request *request =
        ((struct mu__actor_request *)mu__body(msg))->request;
    struct pending_call *call =
        mu__call_new(office, &request->to, request->method, request->timeout_ms);
    struct mail *mail;
    mu_error error;
    int rv;

    (void)ctx;
    if (call == NULL) {
        atomic_store_explicit(&request->future->state, MU_REMOTE_ABORTED,
                              memory_order_release);
        mu__held_unref(&request->future->held);
        mu_value_free(request->args);
        free(request->spawned);
        free(request);
        return;
    }
    call->request = request;
    request->future->request = call->id;
    if (request->spawned != NULL) {
        mu__spawn_for_thread(office, call);
        return;
    }
    rv = mu__message_make(office, &request->to, request->method, request->args, call, 0,
                          &error, &mail);
    if (rv == 0)
        mu__turn_do(office, mail);
    else
        refuse_request(office, call, &error);
}

static void on_request_cancel(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct office *office = state;
    uint64_t id = ((struct mu__actor_request_cancel *)mu__body(msg))->request;
    struct pending_call *call = mu__map_get(&office->calls, id);

    (void)ctx;
    if (call != NULL)
        mu__call_fail(office, call, -MU_ECANCELLED, "the call was cancelled");
}

static void on_office_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__timer *body = mu__body(msg);

    (void)ctx;
    if (body->token == OFFICE_TIMER_NAMES)
        mu__naming_on_timer(state);
    else if (body->token == OFFICE_TIMER_KEPT)
        mu__kept_on_timer(state);
    else if (body->token == OFFICE_TIMER_READERS)
        mu__reader_on_timer(state);
    else
        mu__calls_on_timer(state);
}

/* ---- its life ---- */

static int init_office(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct office *office = state;

    office->config = *(const struct mu__actors_config *)arg;
    office->ctx = *ctx;
    office->kept.owned.secret = office->kept.ways.secret = mu__secret(ctx);
    mu__map_seed(&office->peers, mu__secret(ctx));
    if (mu__naming_init(office) != 0)
        return -MU_ENOMEM;
    return mu__watch_nodes(ctx);
}

/* Actors, which need it, end with it; calls of threads are completed. */
static void end_actors(struct mu__ctx *ctx, struct office *office)
{
    while (!mu__list_is_empty(&office->actors)) {
        mu_actor *actor = MU__LIST_ENTRY(office->actors.first, mu_actor, in_office);

        mu__stop(ctx->kernel, (mu__pid){MU__NODE_SELF, actor->number});
    }
    while (!mu__list_is_empty(&office->requests))
        mu__call_fail(
            office, MU__LIST_ENTRY(office->requests.first, struct pending_call, of_owner),
            -MU_ECLOSED, "this node is closing");
    mu__readers_end(office);
}

/* The node closes. The office stays for the works that threads run; the client ends once
 * it has resolved what has ended here. */
static void on_office_end(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const mu__pid client = {MU__NODE_SELF, MU__CLIENT};
    struct mu__msg *end = mu__msg_new(ctx, MU__END);

    mu__naming_leave(state);
    end_actors(ctx, state);
    if (end != NULL)
        *(struct mu__end *)mu__body(end) = (struct mu__end){mu__view_str("")};
    if (mu__send(ctx, client, end) == -MU_ENOMEM)
        mu__stop(ctx->kernel, client);
    (void)msg;
}

static void end_office(struct mu__ctx *ctx, void *state)
{
    struct office *office = state;

    end_actors(ctx, office);
    mu__naming_done(office);
    mu__kept_ways_done(office);
    mu__peers_end(office);
    mu__calls_done(office);
    mu__map_done(&office->streams.producers);
    mu__map_done(&office->streams.consumers);
    mu__map_done(&office->timers);
    mu__map_done(&office->watches);
    mu__types_done(office);
    while (office->spare != NULL) {
        struct mail *next = (struct mail *)(void *)office->spare->node.next;

        free(office->spare);
        office->spare = next;
    }
}

const struct mu__behavior mu__actors = {
    .name = "actors",
    .state_size = sizeof(struct office),
    .mailbox_max = MU__MAILBOX_BY_SENDERS,
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init_office,
    .done = end_office,
};
