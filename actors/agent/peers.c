#include "actors/agent/peers.h"

#include "actors/keep.h"
#include "actors/messages.h"
#include "actors/packing.h"

#include <stdlib.h>

enum { TEXT_BYTES = 512 };

struct peers {
    struct mu__peers_config config;
    struct mu__call *calls; /* pending, of operation ALL */
    uint64_t token_last;
};

/* ---- this node's links ---- */

/* A list that is being filled; `failed`: memory ran out. */
struct listing {
    mu_value *list;
    bool failed;
};

/* A peer's text may not be UTF-8, even if only because it was cut: bytes beyond ASCII are
 * replaced then. */
static mu_value *text_value(const char *text)
{
    mu_value *value = mu_value_string(text);
    char plain[TEXT_BYTES];
    size_t i;

    if (value != NULL)
        return value;
    for (i = 0; i + 1 < sizeof plain && text[i] != '\0'; i++)
        plain[i] = (signed char)text[i] < ' ' ? '?' : text[i];
    plain[i] = '\0';
    return mu_value_string(plain);
}

static mu_value *task_map(const struct mu__peer *peer)
{
    mu_value *map = mu_value_map();

    if (map == NULL)
        return NULL;
    if (mu_value_set(map, "type", text_value(peer->type)) == 0 &&
        mu_value_set(map, "index", mu_value_int(peer->index)) == 0 &&
        mu_value_set(map, "address", text_value(peer->address)) == 0)
        return map;
    mu_value_free(map);
    return NULL;
}

static mu_value *peer_map(const struct mu__peer *peer)
{
    mu_value *map = task_map(peer);

    if (map == NULL)
        return NULL;
    if (mu_value_set(map, "state", text_value(peer->state)) == 0 &&
        mu_value_set(map, "why", text_value(peer->why)) == 0 &&
        mu_value_set(map, "for_ms", mu_value_int((int64_t)peer->for_ms)) == 0 &&
        mu_value_set(map, "dialled", mu_value_bool(peer->is_dialled)) == 0)
        return map;
    mu_value_free(map);
    return NULL;
}

static void append_peer_map(void *user, const struct mu__peer *peer)
{
    struct listing *listing = user;

    if (!listing->failed && mu_value_append(listing->list, peer_map(peer)) != 0)
        listing->failed = true;
}

/* NULL when out of memory. */
static mu_value *own_peers(const struct peers *p)
{
    struct listing listing = {.list = mu_value_list()};

    if (listing.list == NULL)
        return NULL;
    p->config.each(p->config.owner, append_peer_map, &listing);
    if (!listing.failed)
        return listing.list;
    mu_value_free(listing.list);
    return NULL;
}

static void on_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__peers_get *pending = mu__body(msg);
    mu_value *list = own_peers(state);
    struct mu__msg *answer = list == NULL ? NULL : mu__msg_new(ctx, MU__PEERS_REPORT);
    struct mu__peers_report *body;

    if (answer != NULL) {
        body = mu__body(answer);
        body->token = pending->token;
        answer->backing = mu__pack_value(list, &body->peers);
        if (answer->backing != NULL)
            (void)mu__send(ctx, msg->from, answer);
        else
            mu__msg_free(ctx, answer);
    }
    if (answer == NULL)
        mu__log(ctx, MU__LOG_ERROR, "out of memory: a request for peers has no answer");
    mu_value_free(list);
}

/* ---- requests to other nodes ---- */

/* Requests for one call, while the links are visited. */
struct get_round {
    struct mu__ctx *ctx;
    struct peers *peers;
    struct mu__peers_call *call;
    bool failed;
};

static void request_peer(void *user, const struct mu__peer *peer)
{
    struct get_round *round = user;
    struct mu__peers_call *call = round->call;
    const struct mu__peers_get body = {.token = round->peers->token_last + 1};
    uint32_t *nodes;
    int rv;

    if (round->failed || peer->node == 0)
        return;
    nodes = realloc(call->nodes, (call->requests_count + 1) * sizeof *nodes);
    if (nodes != NULL)
        call->nodes = nodes;
    if (nodes == NULL || mu_value_append(call->found, task_map(peer)) != 0) {
        round->failed = true;
        return;
    }
    rv = mu__send_body(round->ctx, (mu__pid){peer->node, MU__PEERS}, MU__PEERS_GET, &body,
                       sizeof body);
    round->failed = rv == -MU_ENOMEM;
    round->peers->token_last = body.token;
    nodes[call->requests_count++] = rv == 0 ? peer->node : 0;
    call->missing += rv == 0;
}

static void finish_peers_call(struct mu__ctx *ctx, struct peers *p,
                              struct mu__peers_call *call, int code)
{
    struct mu__call **at = &p->calls;

    while (*at != NULL && *at != &call->call)
        at = &(*at)->next;
    if (*at != NULL)
        *at = call->call.next;
    mu__timer_cancel(ctx, call->call.timer);
    free(call->nodes);
    call->nodes = NULL;
    if (code != 0) {
        mu_value_free(call->found);
        call->found = NULL;
        (void)mu_error_set(&call->call.error, code, "%s",
                           code == -MU_ENOMEM ? "out of memory"
                                              : "the node is being closed");
    }
    mu__call_complete(&call->call, code);
}

static void request_all_peers(struct mu__ctx *ctx, struct peers *p,
                              struct mu__peers_call *call)
{
    struct get_round round = {.ctx = ctx, .peers = p, .call = call};

    call->requests_count = 0;
    call->missing = 0;
    call->nodes = NULL;
    call->token_first = p->token_last + 1;
    call->found = mu_value_list();
    if (call->found != NULL)
        p->config.each(p->config.owner, request_peer, &round);
    if (call->found == NULL || round.failed) {
        finish_peers_call(ctx, p, call, -MU_ENOMEM);
        return;
    }
    if (call->missing == 0)
        finish_peers_call(ctx, p, call, 0);
    else
        mu__call_hold(ctx, &p->calls, &call->call);
}

static void on_peers_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct mu__call_msg *body = mu__body(msg);
    struct mu__peers_call *call = body->call;
    struct peers *p = state;

    call->call.timer = 0;
    call->nodes = NULL;
    if (call->call.operation == MU__PEERS_ALL) {
        request_all_peers(ctx, p, call);
        return;
    }
    call->found = own_peers(p);
    finish_peers_call(ctx, p, call, call->found == NULL ? -MU_ENOMEM : 0);
}

/* A value that cannot be read counts as nil. Only the first answer counts. */
static void store_peers_answer(struct mu__peers_call *call,
                               const struct mu__peers_report *body)
{
    size_t i = (size_t)(body->token - call->token_first);
    mu_value *map = (mu_value *)mu_value_at(call->found, i);
    mu_value *peers = NULL;
    char why[128];

    if (call->nodes[i] == 0)
        return;
    call->nodes[i] = 0;
    call->missing--;
    if (mu__value_unpack(&body->peers, why, sizeof why, &peers) != 0)
        peers = mu_value_nil();
    (void)mu_value_set(map, "peers", peers);
}

static void on_peers_report(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct peers *p = state;
    const struct mu__peers_report *body = mu__body(msg);

    for (struct mu__call *call = p->calls; call != NULL; call = call->next) {
        struct mu__peers_call *pending = (struct mu__peers_call *)call;

        if (body->token < pending->token_first ||
            body->token - pending->token_first >= pending->requests_count)
            continue;
        store_peers_answer(pending, body);
        if (pending->missing == 0)
            finish_peers_call(ctx, p, pending, 0);
        return;
    }
}

/* A lost node will not answer. */
static void forget_node(struct mu__peers_call *call, uint32_t node)
{
    for (uint32_t i = 0; i < call->requests_count; i++)
        if (call->nodes[i] == node) {
            call->nodes[i] = 0;
            call->missing--;
        }
}

static void on_peers_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct peers *p = state;
    const struct mu__node_down *body = mu__body(msg);
    struct mu__call *next;

    for (struct mu__call *call = p->calls; call != NULL; call = next) {
        struct mu__peers_call *pending = (struct mu__peers_call *)call;

        next = call->next;
        forget_node(pending, body->node);
        if (pending->missing == 0)
            finish_peers_call(ctx, p, pending, 0);
    }
}

/* No request was sent to a node that comes up now, and one with trouble may yet
 * answer. */
static void on_other_news(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
}

/* The call succeeds all the same: nodes without an answer have no "peers". */
static void on_peers_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct peers *p = state;
    const struct mu__timer *body = mu__body(msg);

    for (struct mu__call *call = p->calls; call != NULL; call = call->next)
        if (call->timer == body->timer) {
            finish_peers_call(ctx, p, (struct mu__peers_call *)call, 0);
            return;
        }
}

/* ---- beginning and end ---- */

static int init_peers(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct peers *p = state;

    p->config = *(const struct mu__peers_config *)arg;
    return mu__watch_nodes(ctx);
}

static void end_peers(struct mu__ctx *ctx, void *state)
{
    struct peers *p = state;

    while (p->calls != NULL)
        finish_peers_call(ctx, p, (struct mu__peers_call *)p->calls, -MU_ECLOSED);
}

static const struct mu__handler handlers[] = {
    {MU__CALL, on_peers_call},           {MU__PEERS_GET, on_get},
    {MU__PEERS_REPORT, on_peers_report}, {MU__NODE_UP, on_other_news},
    {MU__NODE_DOWN, on_peers_node_down}, {MU__NODE_TROUBLE, on_other_news},
    {MU__TIMER, on_peers_timer},
};

const struct mu__behavior mu__peers = {
    .name = "peers",
    .state_size = sizeof(struct peers),
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init_peers,
    .done = end_peers,
};
