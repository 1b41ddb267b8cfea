/* How a link comes up. Whoever needs the peer dials it, says HELLO, and is answered on
 * the same connection:
 *
 *     who dials      DIALLING --connected, say HELLO--> GREETING --HELLO--> UP
 *     who accepts        (no link) or RESTING, DIALLING --HELLO, say HELLO--> UP
 *
 * The epoch of a link is its connection: what comes over another one, or after its end,
 * is not the link's.
 *
 * Both may dial at once. The connection stays that was dialled by the node with the lower
 * incarnation, and both know that by a HELLO of the other, before a link is up: the lower
 * one, which waits for an answer to its own HELLO, hangs up on the other's; the higher
 * one answers it, and gives up its own. Who has not said HELLO yet answers, whoever is
 * lower: it may be that only the peer can reach it, and not the other way round.
 *
 * The process that is reached may be another task: the address was the peer's before, or
 * the name has several machines. A HELLO names the task that it is for, and another task
 * refuses it. After a refusal or no answer the link goes on with the next address of the
 * name, and it rests when all of them were tried.
 *
 * A task is one process, and two processes have one link. While a link to a task is up, a
 * HELLO of another incarnation is refused, and both are named; the refused process tries
 * again, and is accepted once the former one has hung up or fallen silent. A HELLO of the
 * same incarnation is dropped, since anybody may say so; if it is that process, which has
 * lost the link before this node has, it comes again, and is let in when the end of the
 * former connection was seen. */
#include "transport/link/proof.h"

#include "runtime/kernel/peer_process.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void mu__links_connected(struct mu__links *links, uint32_t connection)
{
    struct mu__link *link = mu__map_get(&links->index.by_connection, connection);

    if (link == NULL || link->state != MU__LINK_DIALLING)
        return;
    if (links->wire->ops->address_number != NULL)
        link->retry.address_number = links->wire->ops->address_number(
            links->wire, connection, &link->retry.addresses_count);
    mu__link_move(links, link, MU__LINK_GREETING);
    mu__link_say_hello(links, link);
}

/* ---- what is known of the peer ---- */

static bool is_to(const struct mu__link *link, const struct mu__hello *hello)
{
    return link->index == hello->index && mu__view_is(hello->type, link->type);
}

/* Clients are not in the cluster spec, so several may share an index: they are
 * distinguished by incarnation. */
struct mu__link *mu__link_up_to(const struct mu__links *links,
                                const struct mu__greeting *greeting)
{
    const struct mu__hello *hello = greeting->hello;
    struct mu__link *link = mu__link_first(links, hello->type, hello->index);

    while (link != NULL &&
           (!is_to(link, hello) || link->state != MU__LINK_UP ||
            (mu__link_is_client(hello->type) && !mu__link_is_retained(link) &&
             link->peer.incarnation != greeting->header->from)))
        link = mu__link_next(link);
    return link;
}

/* Give a link of mu__links_dial_any the name of the task that has answered. */
static int name_link_task(struct mu__links *links, struct mu__link *link,
                          const struct mu__hello *hello)
{
    mu__link_unkey(links, link);
    mu__view_copy(hello->type, link->type, sizeof link->type);
    link->index = hello->index;
    return mu__link_enkey(links, link);
}

/* A peer without an address has the one where it was seen, for messages. */
static int keep_address(struct mu__link *link, const struct mu__greeting *greeting)
{
    char text[MU__LINK_URL_BYTES];

    mu__link_keep_words(&link->peer.url, "");
    mu__view_copy(greeting->hello->address, text, sizeof text);
    if (text[0] == '\0')
        (void)snprintf(text, sizeof text, "%s", greeting->seen_at);
    if (strcmp(text, link->url) == 0)
        return 0;
    link->peer.url = mu__link_copy(text, sizeof text);
    return link->peer.url != NULL ? 0 : -MU_ENOMEM;
}

/* For messages and the status. What there is no memory for is not known. */
static void keep_process(struct mu__link *link, const struct mu__hello *hello)
{
    char text[64];

    mu__view_copy(hello->software, text, sizeof text);
    mu__link_keep_words(&link->peer.software, text);
    mu__view_copy(hello->host, text, sizeof text);
    mu__link_keep_words(&link->peer.host, text);
    link->peer.pid = hello->pid;
}

bool mu__links_process(const struct mu__links *links, uint32_t node,
                       struct mu__process *ret_process)
{
    const struct mu__link *link = mu__map_get(&links->index.by_node, node);

    if (link == NULL)
        return false;
    *ret_process = (struct mu__process){.pid = link->peer.pid};
    (void)snprintf(ret_process->version, sizeof ret_process->version, "%s",
                   mu__link_words(link->peer.software));
    (void)snprintf(ret_process->host, sizeof ret_process->host, "%s",
                   mu__link_words(link->peer.host));
    return true;
}

/* ---- coming up ---- */

static int keep_peer(struct mu__links *links, struct mu__link *link,
                     const struct mu__greeting *greeting)
{
    int rv = keep_address(link, greeting);

    if (rv != 0)
        return rv;
    keep_process(link, greeting->hello);
    link->peer.incarnation = greeting->header->from;
    mu__link_keep_proof(links, link, &greeting->proof);
    if (links->wire->ops->member != NULL)
        links->wire->ops->member(links->wire, greeting->connection);
    link->times.heard_ms = mu__links_now(links);
    return 0;
}

static void establish_link(struct mu__links *links, struct mu__link *link)
{
    const char *at = mu__link_address(link);
    uint32_t node = links->next.node + 1;

    if (mu__map_set(&links->index.by_node, node, link) != 0) {
        mu__link_go_down(links, link, "out of memory");
        return;
    }
    links->next.node = node;
    link->node = node;
    link->retry.backoff_ms = 0;
    link->retry.is_lost = false;
    link->missing.taken_since_ms = 0;
    link->left = false;
    mu__link_keep_words(&link->why, "");
    mu__link_keep_words(&link->reported_error, "");
    if (link->retry.tried != NULL)
        link->retry.tried->count = 0;
    links->counters.links_up++;
    mu__link_move(links, link, MU__LINK_UP);
    if (mu__link_is_retained(link))
        at = link->url;
    mu__links_log(links, mu__link_news_level(link), "/job:%s/task:%" PRIu32 " is up%s%s",
                  link->type, link->index, at[0] == '\0' ? "" : " at ", at);
    links->upcalls.up(links->upcalls.owner, node, link->type, link->index,
                      link->peer.incarnation, link->url);
}

/* ---- HELLO over a connection that was dialled ---- */

static void take_hello_answer(struct mu__links *links,
                              const struct mu__greeting *greeting)
{
    struct mu__link *link = greeting->dialled;

    if ((link->origin == MU__LINK_RETAINED_ANY &&
         name_link_task(links, link, greeting->hello) != 0) ||
        keep_peer(links, link, greeting) != 0)
        mu__link_go_down(links, link, "out of memory");
    else
        establish_link(links, link);
}

/* ---- HELLO over a connection that was accepted ---- */

/* The retained link, not up, to the task of the sender. */
static struct mu__link *retained_to(const struct mu__links *links,
                                    const struct mu__hello *hello)
{
    struct mu__link *link = mu__link_first(links, hello->type, hello->index);

    while (link != NULL && (!is_to(link, hello) || link->origin != MU__LINK_RETAINED ||
                            link->state == MU__LINK_UP))
        link = mu__link_next(link);
    return mu__link_is_client(hello->type) ? NULL : link;
}

/* Both have dialled: whether the connection stays that this node has dialled. */
static bool keeps_own_dial(const struct mu__links *links, const struct mu__link *link,
                           const struct mu__greeting *greeting)
{
    return link->state == MU__LINK_GREETING &&
           links->config.incarnation < greeting->header->from;
}

static struct mu__link *new_link(struct mu__links *links, const struct mu__hello *hello)
{
    char url[MU__LINK_URL_BYTES];
    char type[16];

    mu__view_copy(hello->address, url, sizeof url);
    mu__view_copy(hello->type, type, sizeof type);
    return mu__link_new(links, type, hello->index, url, MU__LINK_RESTING);
}

static void answer_hello(struct mu__links *links, struct mu__link *link,
                         const struct mu__greeting *greeting)
{
    if (mu__link_connect(links, link, greeting->connection) != 0 ||
        keep_peer(links, link, greeting) != 0) {
        mu__link_go_down(links, link, "out of memory");
        return;
    }
    mu__link_say_hello(links, link);
    establish_link(links, link);
}

static void take_hello(struct mu__links *links, const struct mu__greeting *greeting)
{
    struct mu__link *link = retained_to(links, greeting->hello);

    if (link != NULL && keeps_own_dial(links, link, greeting)) {
        links->counters.crossed++;
        links->wire->ops->hangup(links->wire, greeting->connection);
        return;
    }
    if (link != NULL)
        mu__link_disconnect(links, link);
    else
        link = new_link(links, greeting->hello);
    if (link == NULL)
        links->wire->ops->hangup(links->wire, greeting->connection);
    else
        answer_hello(links, link, greeting);
}

void mu__links_hello(struct mu__links *links, uint32_t connection,
                     const struct mu__frame_header *header, struct mu__msg *msg)
{
    struct mu__greeting greeting = {
        .connection = connection, .header = header, .hello = (void *)msg->body};

    greeting.dialled = mu__map_get(&links->index.by_connection, connection);
    if (greeting.dialled != NULL && (greeting.dialled->state != MU__LINK_GREETING ||
                                     header->to != links->config.incarnation)) {
        links->counters.stale_frames++;
        return; /* it was answered, or answers somebody else */
    }
    mu__link_read_proof(links, &greeting);
    if (links->leaving || greeting.proof.right == MU__RIGHT_NONE)
        links->wire->ops->hangup(links->wire, connection);
    else if (mu__link_refuse_hello(links, &greeting))
        return;
    else if (greeting.dialled != NULL)
        take_hello_answer(links, &greeting);
    else
        take_hello(links, &greeting);
}

/* ---- REFUSE ---- */

/* That peer says that another process plays this task; `taken` is called once it has said
 * so for claim_ms. */
static void note_taken(struct mu__links *links, struct mu__link *link, const char *why)
{
    uint64_t now_ms = mu__links_now(links);
    char type[16];
    uint32_t index = link->index;

    memcpy(type, link->type, sizeof type);
    if (link->missing.taken_since_ms == 0)
        link->missing.taken_since_ms = now_ms + 1;
    if (links->config.claim_ms != 0 && links->upcalls.taken != NULL &&
        now_ms >= link->missing.taken_since_ms - 1 + links->config.claim_ms)
        links->upcalls.taken(links->upcalls.owner, type, index, why);
}

/* Whether a client is refused for good: for its cluster's name or its version, by the
 * task that it dials. Another task at that address may go, and one that is unknown waits
 * to be told its cluster; tasks start in any order, so who is no client always waits. */
static bool is_final(const struct mu__links *links, const struct mu__link *link,
                     const struct mu__refuse *refusal)
{
    if (refusal->taken || mu__view_is(refusal->type, MU__LINK_UNKNOWN) ||
        !mu__link_is_client(mu__view_str(links->own.task_type)))
        return false;
    return link->origin == MU__LINK_RETAINED_ANY ||
           (refusal->index == link->index && mu__view_is(refusal->type, link->type));
}

static void report_refusal(struct mu__links *links, const struct mu__link *link,
                           const struct mu__refuse *refusal, const char *why)
{
    const struct mu__links_upcalls *up = &links->upcalls;

    if (up->refused != NULL && is_final(links, link, refusal))
        up->refused(up->owner, link->type, link->index, why);
    else
        up->trouble(up->owner, link->type, link->index, why);
}

/* A node that has accepted a HELLO may be refused by its sender, when that has heard the
 * answer: a link that is up goes down then. */
void mu__links_refusal(struct mu__links *links, struct mu__link *link,
                       const struct mu__frame_header *header, struct mu__msg *msg)
{
    struct mu__refuse *refusal = (void *)msg->body;
    char reason[MU__LINK_REASON_BYTES];
    char why[MU__LINK_REASON_BYTES];

    if (header->to != links->config.incarnation) {
        links->counters.stale_frames++;
        return;
    }
    mu__view_copy(refusal->reason, reason, sizeof reason);
    (void)snprintf(why, sizeof why, "it refused us: %.480s", reason);
    mu__links_log(links,
                  refusal->taken && link->missing.taken_since_ms != 0 ? MU__LOG_DEBUG
                                                                      : MU__LOG_WARN,
                  "/job:%s/task:%" PRIu32 ": %s", link->type, link->index, why);
    report_refusal(links, link, refusal, why);
    if (!refusal->taken) {
        link->missing.taken_since_ms = 0;
        mu__link_try_elsewhere(links, link, why, MU__LINK_RETRY_MAX_MS);
        return;
    }
    note_taken(links, link, why);
    link->retry.backoff_ms = MU__LINK_TAKEN_RETRY_MS;
    mu__link_try_elsewhere(links, link, why, MU__LINK_TAKEN_RETRY_MS);
}
