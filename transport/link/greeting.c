/* How a link comes up, seen from one side:
 *
 *      DIALLING --out_up, say HELLO--> GREETING --HELLO with our epoch--> UP
 *
 * Each dial begins an epoch of the link. Its number is drawn so that nobody can guess it,
 * and goes out in our HELLO. A HELLO with our epoch in its header answers ours: who sent
 * it has heard us, at the address that was dialled. Only such a one brings a link up, and
 * frames without the epoch are dropped. So a peer that says to be at another's address,
 * or to be a process whose incarnation it knows, is heard by nobody; and with long
 * delays, what comes from a former epoch is not taken for the present one's.
 *
 * A HELLO without our epoch requests ours: we dial its sender, or say HELLO again if
 * that has happened, with the sender's epoch. A side that has heard an answer answers it,
 * unless it has said the peer's epoch before. So nodes do not answer for ever.
 *
 * The process that is reached may be another task: the address was the peer's before, or
 * the name has several machines. A HELLO names the task that it is for, and another task
 * refuses it. After a refusal or no answer the link goes on with the next address of the
 * name, and it rests when all of them were tried.
 *
 * A task is one process. While a link to it is up, a HELLO of another incarnation is
 * refused, and both are named; the refused process tries again, and is accepted once the
 * former one has hung up or fallen silent. A HELLO of the same incarnation over another
 * connection is dropped, since anybody may say so; if it is that process, it comes again,
 * and is let in when the end of the former connection was seen. The second process of a
 * task that has the first one's address is refused at the URL where it listens. That URL
 * is also dialled when the process at the address fell silent and still holds its port (a
 * process that is stopped, say).
 *
 * Two nodes see the end of a link at different times. A dial of one in between may be a
 * new beginning for the other, which then ends its own side again; where frames take
 * about as long as the pause before a dial, that could go on for ever. So a link that
 * was lost soon after it came up, twice in a row or more often, rests longer each time,
 * and a HELLO does not cut that rest short: nothing of a former epoch is under way any
 * more then. Later rests, after dials in vain, can be cut short as always: of two nodes
 * that both rest for long, the first to dial wakes the other.
 *
 * A link that went down always begins with a new outgoing connection, because the old one
 * may lead to the peer's old process or its new one. */
#include "transport/link/proof.h"

#include "runtime/kernel/peer_process.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- coming up ---- */

static void come_up(struct mu__links *links, struct mu__link *link)
{
    uint32_t node = links->next.node + 1;

    if (mu__map_set(&links->index.by_node, node, link) != 0) {
        mu__link_go_down(links, link, "out of memory");
        return;
    }
    links->next.node = node;
    link->node = node;
    link->retry.backoff_ms = 0;
    link->missing.taken_since_ms = 0;
    link->left = false;
    if (link->retry.detour == NULL)
        mu__links_not_silent(links, link->url);
    mu__link_keep_words(&link->why, "");
    mu__link_keep_words(&link->reported_error, "");
    if (link->retry.tried != NULL)
        link->retry.tried->count = 0;
    links->counters.links_up++;
    mu__link_is_back(links, link);
    mu__link_move(links, link, MU__LINK_UP);
    mu__links_log(links, mu__link_news_level(link), "/job:%s/task:%" PRIu32 " is up at "
                  "%s", link->type, link->index,
                  link->retry.detour == NULL ? link->url : link->retry.detour);
    links->upcalls.up(links->upcalls.owner, node, link->type, link->index,
                      link->peer.incarnation, link->url);
}

void mu__links_out_up(struct mu__links *links, uint32_t out)
{
    struct mu__link *link = mu__map_get(&links->index.by_out, out);

    if (link == NULL)
        return;
    if (link->state == MU__LINK_REFUSING) {
        mu__link_say_refuse(links, link);
        return;
    }
    if (link->state != MU__LINK_DIALLING)
        return;
    if (links->wire->ops->address_number != NULL)
        link->retry.address_number = links->wire->ops->address_number(
            links->wire, out, &link->retry.addresses_count);
    mu__link_move(links, link, MU__LINK_GREETING);
    mu__link_say_hello(links, link);
}

/* ---- which link a HELLO is for ---- */

/* The link whose dial a frame answers, by the epoch in it; NULL: there is none. */
static struct mu__link *answered(const struct mu__links *links,
                             const struct mu__frame_header *header)
{
    return header->epoch == 0 ? NULL : mu__map_get(&links->index.by_epoch, header->epoch);
}

static bool is_to(const struct mu__link *link, const struct mu__hello *hello)
{
    return link->index == hello->index && mu__view_is(hello->type, link->type);
}

struct mu__link *mu__link_answered(const struct mu__links *links,
                                   const struct mu__greeting *greeting)
{
    struct mu__link *link = answered(links, greeting->header);

    if (link == NULL ||
        (link->state != MU__LINK_GREETING && link->state != MU__LINK_UP))
        return NULL;
    return link->origin == MU__LINK_RETAINED_ANY || is_to(link, greeting->hello) ? link
                                                                                 : NULL;
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

/* The link, not up, by which the sender of a HELLO is or will be dialled: a retained one,
 * or one to the address that it gives. */
static struct mu__link *link_to_dial(const struct mu__links *links,
                                     const struct mu__greeting *greeting)
{
    const struct mu__hello *hello = greeting->hello;
    struct mu__link *link = mu__link_first(links, hello->type, hello->index);
    struct mu__link *found = NULL;

    for (; link != NULL; link = mu__link_next(link)) {
        if (!is_to(link, hello))
            continue;
        if (mu__link_is_retained(link))
            return link;
        if (mu__view_is(hello->address, link->url) &&
            link->handshake.requester == greeting->header->from)
            found = link;
    }
    return found;
}

/* ---- answers ---- */

/* Give a link of mu__links_dial_any the name of the task that has answered. */
static bool name_task(struct mu__links *links, struct mu__link *link,
                      const struct mu__hello *hello)
{
    mu__link_unkey(links, link);
    mu__view_copy(hello->type, link->type, sizeof link->type);
    link->index = hello->index;
    if (mu__hash_table_add(&links->index.by_key, mu__link_key(link), &link->hashed) == 0)
        return true;
    mu__link_go_down(links, link, "out of memory");
    return false;
}

static bool keep_address(struct mu__link *link, struct mu__view address)
{
    char text[MU__LINK_URL_BYTES];

    mu__link_keep_words(&link->peer.url, "");
    mu__view_copy(address, text, sizeof text);
    if (strcmp(text, link->url) == 0)
        return true;
    link->peer.url = mu__link_copy(text, sizeof text);
    return link->peer.url != NULL;
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

/* The peer has heard our HELLO: the connection is its one, and the link is up. */
static void bind_in(struct mu__links *links, struct mu__link *link,
                    const struct mu__greeting *greeting)
{
    if ((link->origin == MU__LINK_RETAINED_ANY &&
         !name_task(links, link, greeting->hello)) ||
        !keep_address(link, greeting->hello->address) ||
        mu__map_set(&links->index.by_in, greeting->in, link) != 0) {
        links->wire->ops->drop(links->wire, greeting->in);
        return;
    }
    if (links->wire->ops->member != NULL)
        links->wire->ops->member(links->wire, greeting->in);
    keep_process(link, greeting->hello);
    link->in = greeting->in;
    link->handshake.strays = 0;
    link->peer.incarnation = greeting->header->from;
    link->peer.epoch = greeting->hello->epoch;
    mu__link_keep_proof(link, &greeting->proof);
    link->times.heard_ms = mu__links_now(links);
    if (link->handshake.said_epoch != link->peer.epoch)
        mu__link_say_hello(links, link);
    come_up(links, link);
}

/* Whether the task was adopted while this link was dialled back. */
static bool is_needless(const struct mu__links *links, const struct mu__link *link,
                        const struct mu__greeting *greeting)
{
    const struct mu__link *other = link_to_dial(links, greeting);

    return !mu__link_is_retained(link) && !mu__link_is_client(greeting->hello->type) &&
           other != NULL && mu__link_is_retained(other);
}

/* A link that is up gets another answer only from a peer that has begun again; its former
 * connection has ended, even though its end was not seen yet. It comes again. */
static void take_answer(struct mu__links *links, struct mu__link *link,
                        const struct mu__greeting *greeting)
{
    if (link->state == MU__LINK_UP) {
        mu__link_go_down(links, link, "it connected anew");
        links->wire->ops->drop(links->wire, greeting->in);
    } else if (is_needless(links, link, greeting)) {
        mu__link_free(links, link);
        links->wire->ops->drop(links->wire, greeting->in);
    } else {
        bind_in(links, link, greeting);
    }
}

/* ---- requests ---- */

/* Dial a peer where it listens, if the former process at its address fell silent and may
 * still hold the port. */
static void take_detour(struct mu__links *links, struct mu__link *link,
                        const struct mu__greeting *greeting)
{
    char url[MU__LINK_URL_BYTES];

    mu__view_copy(greeting->hello->listens, url, sizeof url);
    if (url[0] == '\0' ||
        !mu__links_is_silent(links, link->url, greeting->header->from) ||
        !mu__link_may_dial_back(links, greeting, url))
        return;
    if (link->out != 0)
        mu__link_go_down(links, link, "the process at its address fell silent");
    mu__link_keep_words(&link->retry.detour, url);
}

static struct mu__link *new_link(struct mu__links *links,
                                 const struct mu__greeting *greeting)
{
    char url[MU__LINK_URL_BYTES];
    struct mu__link *link;

    mu__view_copy(greeting->hello->address, url, sizeof url);
    link = mu__link_new_back(links, greeting, url, MU__LINK_RESTING);
    if (link == NULL)
        return NULL;
    take_detour(links, link, greeting);
    if (mu__link_dial(links, link) == 0)
        return link;
    mu__links_log_limited(links, MU__LOG_WARN,
                          "/job:%s/task:%" PRIu32
                          " says its address is \"%s\", which cannot be dialled",
                          link->type, link->index, url);
    mu__link_free(links, link);
    return NULL;
}

/* Keep a connection whose HELLO was no answer: the answer may come on it. Of many the
 * oldest is dropped. False: its HELLO was seen before. */
static bool keep_request(struct mu__links *links, uint32_t in)
{
    uint32_t *slot = &links->requests[links->requests_next % MU__LINK_REQUESTS_MAX];

    for (size_t i = 0; i < MU__LINK_REQUESTS_MAX; i++)
        if (links->requests[i] == in)
            return false;
    if (*slot != 0 && mu__map_get(&links->index.by_in, *slot) == NULL)
        links->wire->ops->drop(links->wire, *slot);
    *slot = in;
    links->requests_next++;
    return true;
}

/* Say HELLO to the sender of one: now, or when it is dialled. */
static void answer(struct mu__links *links, struct mu__link *link,
                   const struct mu__greeting *greeting)
{
    link->handshake.requester = greeting->header->from;
    link->handshake.requester_epoch = greeting->hello->epoch;
    if (link->state == MU__LINK_GREETING)
        mu__link_say_hello(links, link);
    else if (link->state == MU__LINK_RESTING && !mu__link_settles(links, link) &&
             mu__link_dial(links, link) != 0)
        mu__link_go_down(links, link, "cannot be dialled");
}

static void take_request(struct mu__links *links, const struct mu__greeting *greeting)
{
    struct mu__link *link = link_to_dial(links, greeting);

    if (!keep_request(links, greeting->in))
        return;
    if (link == NULL)
        link = new_link(links, greeting);
    else if (link->origin == MU__LINK_RETAINED)
        take_detour(links, link, greeting);
    if (link == NULL)
        links->wire->ops->drop(links->wire, greeting->in);
    else
        answer(links, link, greeting);
}

void mu__links_hello(struct mu__links *links, uint32_t in,
                     const struct mu__frame_header *header, struct mu__msg *msg)
{
    struct mu__greeting greeting = {
        .in = in, .header = header, .hello = (void *)msg->body};
    struct mu__link *link;

    if (mu__map_get(&links->index.by_in, in) != NULL)
        return;     /* it was answered */
    mu__link_read_proof(links, &greeting);
    if (links->leaving || greeting.proof.right == MU__RIGHT_NONE) {
        links->wire->ops->drop(links->wire, in);
        return;
    }
    if (mu__link_refuse_hello(links, &greeting))
        return;
    link = mu__link_answered(links, &greeting);
    if (link != NULL)
        take_answer(links, link, &greeting);
    else
        take_request(links, &greeting);
}

/* ---- REFUSE ---- */

/* Whether a link is to the task that refuses, and its HELLO of the former epoch was the
 * refused one. */
static bool is_of_refuser(const struct mu__link *link,
                          const struct mu__frame_header *header,
                          const struct mu__refuse *refusal)
{
    return link->state != MU__LINK_UP && link->index == refusal->index &&
           mu__view_is(refusal->type, link->type) &&
           header->epoch != 0 && header->epoch == link->former_epoch;
}

/* The link that a REFUSE is for. Only who has heard our HELLO knows the epoch in it, so
 * nobody else can refuse us. The refusing task may be another one than we dialled: a
 * link may even be up by the peer's own HELLO when ours, of the same epoch, is refused by
 * somebody else. A REFUSE for the HELLO of the former epoch came late, and counts only if
 * the refusing task is the one that we dialled. */
static struct mu__link *refused_link(struct mu__links *links,
                                     const struct mu__frame_header *header,
                                     const struct mu__refuse *refusal)
{
    struct mu__link *link = answered(links, header);

    if (link != NULL && !mu__link_is_ending(link))
        return link;
    link = mu__link_first(links, refusal->type, refusal->index);
    while (link != NULL && !is_of_refuser(link, header, refusal))
        link = mu__link_next(link);
    return link;
}

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

static bool is_for_another(const struct mu__links *links,
                           const struct mu__frame_header *header)
{
    return header->to != 0 && header->to != links->config.incarnation;
}

void mu__links_refusal(struct mu__links *links, uint32_t in,
                       const struct mu__frame_header *header, struct mu__msg *msg)
{
    struct mu__refuse *refusal = (void *)msg->body;
    struct mu__link *link = refused_link(links, header, refusal);
    char reason[MU__LINK_REASON_BYTES];
    char why[MU__LINK_REASON_BYTES];

    if (is_for_another(links, header)) {
        links->counters.stale_frames++;
        return;     /* for another process with the same address */
    }
    mu__view_copy(refusal->reason, reason, sizeof reason);
    if (link == NULL) {
        mu__links_log_limited(links, MU__LOG_WARN,
                              "refused by somebody who plays %.*s %" PRIu32 ": %s",
                              (int)refusal->type.size, (const char *)refusal->type.data,
                              refusal->index, reason);
        links->wire->ops->drop(links->wire, in);
        return;
    }
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
