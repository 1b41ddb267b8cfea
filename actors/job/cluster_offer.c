/* Offering a cluster spec to a server that was started without one, and accepting it. */
#include "actors/job/internal.h"

#include "actors/keep.h"
#include "actors/packing.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the offering client ---- */

void mu__job_make_offer(struct mu__ctx *ctx, struct job *job, struct mu__job_call *call)
{
    mu__call_hold(ctx, &job->calls.requested, &call->call);
    for (uint32_t i = 0; i < job->peers.count; i++)
        mu__job_offer_node_up(ctx, job, job->peers.items[i].node);
}

static void send_offer(struct mu__ctx *ctx, struct job *job, struct mu__job_call *call,
                       uint32_t node)
{
    const struct mu__cluster_offer body = {
        .token = ++job->token_last,
        .cluster = call->offer.cluster,
        .type = call->offer.type,
        .index = call->offer.index,
        .config = call->offer.config,
    };

    if (mu__job_fail_forbidden(ctx, job, call, node, MU__CLUSTER_OFFER) ||
        mu__send_body(ctx, (mu__pid){node, MU__JOB}, MU__CLUSTER_OFFER, &body,
                      sizeof body) != 0)
        return;
    call->node = node;
    call->token = body.token;
}

void mu__job_offer_node_up(struct mu__ctx *ctx, struct job *job, uint32_t node)
{
    struct mu__call *next;

    for (struct mu__call *call = job->calls.requested; call != NULL; call = next) {
        next = call->next;
        if (call->operation == MU__JOB_OFFER && ((struct mu__job_call *)call)->node == 0)
            send_offer(ctx, job, (struct mu__job_call *)call, node);
    }
}

void mu__job_offer_missing(const struct job *job, struct mu__job_call *call)
{
    const char *colon = job->reported_error[0] == '\0' || call->node != 0 ? "" : ": ";

    (void)mu_error_set(&call->call.error, -MU_EDEADLINE,
                       "%s did not get its cluster spec within %" PRId64 " ms: it %s%s%s",
                       call->recipient, call->call.timeout_ms,
                       call->node != 0 ? "has not answered" : "is not connected", colon,
                       call->node != 0 ? "" : job->reported_error);
}

/* ---- the server ---- */

/* Complete a TAKE call: the offer moves to it. */
static void give_offer(struct job *job, struct mu__job_call *call)
{
    call->cluster = job->offer.cluster == NULL ? NULL : strdup(job->offer.cluster);
    if (call->cluster == NULL) {
        mu__call_complete(&call->call, mu_error_set(&call->call.error, -MU_ENOMEM,
                                                    "no memory for a cluster spec"));
        return;
    }
    memcpy(call->type, job->offer.type, sizeof call->type);
    call->index = job->offer.index;
    call->config = job->offer.config;
    job->offer.config = NULL;
    mu__call_complete(&call->call, 0);
}

void mu__job_take(struct mu__ctx *ctx, struct job *job, struct mu__job_call *call)
{
    if (job->offer.cluster != NULL)
        give_offer(job, call);
    else
        mu__call_hold(ctx, &job->calls.taking, &call->call);
}

static int store_offer(struct job *job, const struct mu__offer *offer,
                       mu_error *ret_error)
{
    char *cluster = malloc((size_t)offer->cluster.size + 1);
    char why[128];
    mu_value *config = NULL;
    int rv = cluster == NULL ? -MU_ENOMEM : 0;

    if (rv == 0 && offer->config.head_size > 0)
        rv = mu__value_unpack(&offer->config, why, sizeof why, &config);
    if (rv == -MU_ENOMEM)
        (void)mu_error_set(ret_error, rv, "no memory for a cluster spec");
    else if (rv != 0)
        rv = mu_error_set(ret_error, -MU_EINVALID, "the session config: %s", why);
    if (rv != 0) {
        free(cluster);
        return rv;
    }
    mu__view_copy(offer->cluster, cluster, (size_t)offer->cluster.size + 1);
    job->offer.cluster = cluster;
    job->offer.index = offer->index;
    job->offer.config = config;
    mu__view_copy(offer->type, job->offer.type, sizeof job->offer.type);
    return 0;
}

static bool is_stored_offer(const struct job *job, const struct mu__offer *offer)
{
    return offer->index == job->offer.index &&
           mu__view_is(offer->type, job->offer.type) &&
           mu__view_is(offer->cluster, job->offer.cluster);
}

static int check_cluster_offer(struct job *job, const struct job_peer *peer,
                               const struct mu__offer *offer, mu_error *ret_error)
{
    int rv;

    if (strcmp(peer->type, MU__OFFER_TYPE) != 0)
        return mu_error_set(ret_error, -MU_EPERMISSION,
                            "%s takes no cluster spec from /job:%s/task:%" PRIu32,
                            job->config.task, peer->type, peer->index);
    if (job->config.check == NULL)
        return mu_error_set(ret_error, -MU_EPERMISSION, "%s takes no cluster spec",
                            job->config.task);
    if (job->offer.cluster != NULL)
        return is_stored_offer(job, offer)
                   ? 0
                   : mu_error_set(ret_error, -MU_EPRECONDITION,
                                  "the server has got another cluster spec: as "
                                  "/job:%s/task:%" PRIu32,
                                  job->offer.type, job->offer.index);
    rv = job->config.check(job->config.check_owner, offer, ret_error);
    return rv == 0 && job->config.takes_offer ? store_offer(job, offer, ret_error) : rv;
}

/* The answer is sent before the TAKE call is completed, as the program may close the node
 * then. */
void mu__job_on_offer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct job *job = state;
    const struct mu__cluster_offer *body = mu__body(msg);
    const struct job_peer *peer = mu__job_peer_at(job, msg->from.node);
    const struct mu__offer offer = {body->cluster, body->type, body->index, body->config};
    mu_error error = {0};
    int rv;

    if (peer == NULL) {
        mu__job_answer(ctx, msg->from, body->token, -MU_EUNAVAILABLE,
                       MU__JOB_UNKNOWN_REQUESTER);
        return;
    }
    rv = check_cluster_offer(job, peer, &offer, &error);
    if (rv != 0)
        mu__log(ctx, MU__LOG_WARN, "an offered cluster spec is refused: %s",
                error.message);
    mu__job_answer(ctx, msg->from, body->token, rv, error.message);
    if (job->offer.cluster != NULL && job->calls.taking != NULL) {
        struct mu__call *call = job->calls.taking;

        job->calls.taking = call->next;
        mu__timer_cancel(ctx, call->timer);
        give_offer(job, (struct mu__job_call *)call);
    }
}

void mu__job_offer_done(struct job *job)
{
    free(job->offer.cluster);
    mu_value_free(job->offer.config);
}
