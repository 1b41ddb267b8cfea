/* The two forms of a transaction that only the holder can make.
 *
 * By gRPC a put costs etcd a tenth of what it costs through the JSON gateway. Only its
 * success is read: after anything else (a comparison that failed, an error, an etcd
 * behind something that has no HTTP/2) the same transaction is sent to the gateway, whose
 * answer says why. Each may be sent twice anyhow. */
#include "actors/coordination/store/etcd_form.h"

#include "actors/coordination/store/internal.h"

#include <string.h>

enum { GATEWAY_MS = 10000 }; /* how long the gateway is used then */

static void json_end(struct mu__build *body, struct mu__view leader)
{
    mu__etcd_txn_else(body);
    mu__etcd_txn_range(body, leader);
    mu__etcd_txn_end(body);
}

static void grpc_then(struct mu__build *body)
{
    (void)body;
}

static void grpc_end(struct mu__build *body, struct mu__view leader)
{
    (void)leader;
    mu__etcd_grpc_end(body);
}

static const struct etcd_form json_form = {
    mu__etcd_txn_begin, mu__etcd_txn_compare, mu__etcd_txn_then,
    mu__etcd_txn_put,   mu__etcd_txn_delete,  json_end,
};

static const struct etcd_form grpc_form = {
    mu__etcd_grpc_begin, mu__etcd_grpc_compare, grpc_then,
    mu__etcd_grpc_put,   mu__etcd_grpc_delete,  grpc_end,
};

const struct etcd_form *mu__etcd_form(const struct etcd_store *store)
{
    return store->main.grpc ? &grpc_form : &json_form;
}

void mu__etcd_choose_form(struct etcd_store *store, struct mu__ctx *ctx)
{
    store->main.grpc =
        store->phase == ETCD_HOLDING && mu__now_ms(ctx) >= store->grpc_due_ms;
}

bool mu__etcd_grpc_applied(struct etcd_store *store, struct mu__ctx *ctx)
{
    const struct mu__http_request *http = &store->main.http;

    if (http->code == 0 && http->status == 200 && strcmp(http->header, "0") == 0 &&
        http->answer != NULL &&
        mu__etcd_grpc_succeeded(http->answer->data, http->answer->size))
        return true;
    mu__log(ctx, MU__LOG_DEBUG,
            "etcd at %s did not apply a transaction sent by gRPC (%s): it goes to the "
            "JSON gateway",
            store->endpoints.list[store->main.endpoint].url,
            http->code != 0 ? http->error.message : http->header);
    store->grpc_due_ms = mu__now_ms(ctx) + GATEWAY_MS;
    mu__build_done(&store->main.body);
    return false;
}
