/* Tasks that may host the service, and the one that is followed: the leader with the
 * highest epoch. */
#include "actors/agent/call_handlers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

mu__pid mu__agent_service(const struct agent *a)
{
    return (mu__pid){a->hosts.followed->node, MU__COORDINATION};
}

static struct agent_host *first_host(const struct agent *a)
{
    return MU__LIST_FIRST(&a->hosts.linked, struct agent_host, linked_node);
}

static struct agent_host *next_linked_host(const struct agent_host *host)
{
    return MU__LIST_NEXT(host, struct agent_host, linked_node);
}

/* ---- texts for messages ---- */

void mu__agent_host_words(struct mu__ctx *ctx, const struct agent *a, char *out,
                          size_t size)
{
    const struct agent_host *first = first_host(a);
    unsigned long long lost_ms =
        a->hosts.lost_ms == 0 ? 0 : mu__now_ms(ctx) - a->hosts.lost_ms;

    if (!a->registration.is_requested)
        (void)snprintf(out, size, "this task is not registered");
    else if (a->hosts.followed != NULL && a->registration.registered)
        (void)snprintf(out, size, "%s, which hosts the service, is connected",
                       a->hosts.followed->task);
    else if (a->hosts.followed != NULL)
        (void)snprintf(out, size,
                       "%s, which hosts the service, is connected, and has %s%s",
                       a->hosts.followed->task,
                       a->registration.refusal[0] == '\0' ? "not registered this task yet"
                                                          : "not registered this task: ",
                       a->registration.refusal);
    else if (first != NULL)
        (void)snprintf(out, size, "%s is connected, but does not host the service%s%s",
                       first->task, first->reason[0] == '\0' ? "" : ": ", first->reason);
    else if (a->hosts.lost_ms != 0)
        (void)snprintf(out, size,
                       "%s, which hosts the service, is not connected since %llu ms: %s",
                       a->hosts.lost_task, lost_ms,
                       a->hosts.reported_error[0] == '\0' ? a->hosts.lost_reason
                                                          : a->hosts.reported_error);
    else
        (void)snprintf(out, size, "%s, which hosts the service, was never connected%s%s",
                       a->hosts.first_words,
                       a->hosts.reported_error[0] == '\0' ? "" : ": ",
                       a->hosts.reported_error);
}

void mu__agent_name_first_host(struct agent *a)
{
    const struct mu__task_range *first = &a->hosts.set.ranges[0];

    (void)snprintf(a->hosts.first_task, sizeof a->hosts.first_task, "/job:%s/task:%u",
                   first->type, first->first);
    (void)snprintf(a->hosts.first_words, sizeof a->hosts.first_words, "%.63s%s%.200s",
                   a->hosts.first_task, a->config.address[0] == '\0' ? "" : " at ",
                   a->config.address);
}

/* ---- hosts ---- */

static struct agent_host *find_host(const struct agent *a, uint32_t node)
{
    struct agent_host *host = first_host(a);

    while (host != NULL && host->node != node)
        host = next_linked_host(host);
    return host;
}

static struct agent_host *add_linked_host(struct agent *a, uint32_t node,
                                          const char *type, uint32_t index)
{
    struct agent_host *host;

    if (a->hosts.linked_count == AGENT_HOSTS_MAX)
        return NULL;
    host = calloc(1, sizeof *host);
    if (host == NULL)
        return NULL;
    host->node = node;
    (void)snprintf(host->task, sizeof host->task, "/job:%.15s/task:%u", type, index);
    mu__list_prepend(&a->hosts.linked, &host->linked_node);
    a->hosts.linked_count++;
    return host;
}

/* Follow the leader with the highest epoch. Another leader, epoch or store begins a new
 * session. */
static void follow_best_leader(struct mu__ctx *ctx, struct agent *a)
{
    struct agent_host *best = NULL;

    for (struct agent_host *at = first_host(a); at != NULL; at = next_linked_host(at))
        if (at->leads && (best == NULL || at->epoch > best->epoch))
            best = at;
    if (best == a->hosts.followed && (best == NULL || (best->epoch == a->hosts.epoch &&
                                                       best->store == a->hosts.store)))
        return;
    mu__agent_end_session(a);
    a->hosts.followed = best;
    a->registration.refusal[0] = '\0';
    if (best == NULL)
        return;
    a->hosts.epoch = best->epoch;
    a->hosts.store = best->store;
    mu__agent_register(ctx, a);
}

bool mu__agent_is_from_host(const struct agent *a, const struct mu__msg *msg)
{
    return a->hosts.followed != NULL && msg->from.node == a->hosts.followed->node &&
           msg->from.actor == MU__COORDINATION;
}

void mu__agent_on_here(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__service_here *body = mu__body(msg);
    struct agent_host *host = find_host(a, msg->from.node);

    if (host == NULL || msg->from.actor != MU__COORDINATION)
        return;
    host->leads = body->leads;
    host->epoch = body->epoch;
    host->store = body->store;
    mu__view_copy(body->reason, host->reason, sizeof host->reason);
    follow_best_leader(ctx, a);
}

void mu__agent_on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__node_up *body = mu__body(msg);
    char type[16];

    (void)ctx;
    mu__view_copy(body->type, type, sizeof type);
    if (!mu__task_set_has(&a->hosts.set, type, body->index))
        return;
    a->hosts.reported_error[0] = '\0';
    (void)add_linked_host(a, body->node, type, body->index);
}

static void remove_host(struct agent *a, struct agent_host *host)
{
    mu__list_remove(&a->hosts.linked, &host->linked_node);
    a->hosts.linked_count--;
    free(host);
}

void mu__agent_on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__node_down *body = mu__body(msg);
    struct agent_host *host = find_host(a, body->node);
    bool was_followed = host != NULL && host == a->hosts.followed;

    if (host == NULL)
        return;
    a->hosts.lost_ms = mu__now_ms(ctx);
    mu__view_copy(body->reason, a->hosts.lost_reason, sizeof a->hosts.lost_reason);
    (void)snprintf(a->hosts.lost_task, sizeof a->hosts.lost_task, "%s", host->task);
    if (was_followed) {
        a->hosts.followed = NULL;
        mu__agent_end_session(a);
        mu__agent_finish_resets(ctx, a);
    }
    remove_host(a, host);
    if (was_followed)
        follow_best_leader(ctx, a);
}

void mu__agent_on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__node_trouble *body = mu__body(msg);
    char type[16];
    char words[AGENT_WORDS_MAX];
    mu_error error;

    mu__view_copy(body->type, type, sizeof type);
    if (!mu__task_set_has(&a->hosts.set, type, body->index) &&
        (a->config.any == NULL || strcmp(type, a->config.any) != 0))
        return;
    mu__view_copy(body->reason, a->hosts.reported_error, sizeof a->hosts.reported_error);
    if (!body->final || a->hosts.followed != NULL)
        return;
    mu__agent_host_words(ctx, a, words, sizeof words);
    (void)mu_error_set(&error, -MU_EUNAVAILABLE, "%s", words);
    mu__agent_fail_all(ctx, a, &error, false);
}

void mu__agent_on_cluster_moved(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__cluster_change *body = mu__body(msg);
    const struct mu__task_range *first = a->hosts.set.ranges;
    char address[MU__ADDRESS_MAX + 1];

    (void)ctx;
    if (a->hosts.set.count == 0 || !mu__view_is(body->type, first->type) ||
        body->index != first->first)
        return;
    mu__view_copy(body->address, address, sizeof address);
    a->config.address = address;
    mu__agent_name_first_host(a);
    a->config.address = NULL;
}

int mu__agent_add_own_host(struct agent *a)
{
    return add_linked_host(a, MU__NODE_SELF, a->config.type, a->config.index) == NULL
               ? -MU_ENOMEM
               : 0;
}

void mu__agent_hosts_done(struct agent *a)
{
    struct agent_host *host;

    while ((host = first_host(a)) != NULL)
        remove_host(a, host);
    mu__task_set_done(&a->hosts.set);
}
