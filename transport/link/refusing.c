/* Refusing a HELLO: the reasons, and the link that says them. greeting.c has the rest of
 * the handshake. */
#include "transport/link/proof.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- processes ---- */

/* Describe a process: "URL (host H, pid P, incarnation I)". */
static const char *describe_process(const char *url, const char *host, uint64_t pid,
                                    uint64_t incarnation, char *out, size_t size)
{
    int used = snprintf(out, size, "%s (", url);

    if (used > 0 && (size_t)used < size && host[0] != '\0')
        used += snprintf(out + used, size - (size_t)used, "host %s, ", host);
    if (used > 0 && (size_t)used < size && pid != 0)
        used += snprintf(out + used, size - (size_t)used, "pid %" PRIu64 ", ", pid);
    if (used > 0 && (size_t)used < size)
        (void)snprintf(out + used, size - (size_t)used, "incarnation %016" PRIx64 ")",
                       incarnation);
    return out;
}

/* Describe the sender of a HELLO: its address, or where it was seen; `full`: and its
 * process. */
static const char *sender_of(const struct mu__greeting *greeting, bool full, char *out,
                             size_t size)
{
    const struct mu__hello *hello = greeting->hello;
    char url[MU__LINK_URL_BYTES];
    char host[64];

    mu__view_copy(hello->address, url, sizeof url);
    if (url[0] == '\0')
        (void)snprintf(url, sizeof url, "%s",
                       greeting->seen_at[0] == '\0' ? "no address" : greeting->seen_at);
    mu__view_copy(hello->host, host, sizeof host);
    if (full)
        return describe_process(url, host, hello->pid, greeting->header->from, out, size);
    (void)snprintf(out, size, "%s", url);
    return out;
}

static const char *describe_up_process(const struct mu__link *link, char *out,
                                       size_t size)
{
    const char *url = mu__link_address(link);

    return describe_process(url[0] == '\0' ? "no address" : url,
                            mu__link_words(link->peer.host), link->peer.pid,
                            link->peer.incarnation, out, size);
}

static const char *describe_self(const struct mu__links *links, char *out, size_t size)
{
    return describe_process(links->own.address, links->own.host, links->config.pid,
                            links->config.incarnation, out, size);
}

/* ---- refusing ---- */

/* Why a process is refused. */
struct refusal {
    const char *reason;
    bool taken; /* another process plays its task */
};

/* The level of the log line: a second process of a task, which tries again every
 * second, is warned of once. */
static enum mu__log_level refusal_level(struct mu__links *links, uint64_t incarnation,
                                        bool taken)
{
    bool is_named = taken && links->refused_twin == incarnation;

    if (taken)
        links->refused_twin = incarnation;
    return links->config.only != NULL || is_named ? MU__LOG_DEBUG : MU__LOG_WARN;
}

/* Write " (from 10.0.0.7)", where a HELLO came from, unless `message` has it already. */
static void write_source_host(const struct mu__greeting *greeting, const char *message,
                              char *out, size_t size)
{
    const char *colon = strrchr(greeting->seen_at, ':');
    char host[sizeof greeting->seen_at];

    (void)snprintf(host, sizeof host, "%.*s",
                   colon == NULL ? (int)strlen(greeting->seen_at)
                                 : (int)(colon - greeting->seen_at),
                   greeting->seen_at);
    out[0] = '\0';
    if (host[0] != '\0' && strstr(message, host) == NULL)
        (void)snprintf(out, size, " (from %s)", host);
}

static void log_refusal(struct mu__links *links, const struct mu__greeting *greeting,
                        const struct refusal *refusal)
{
    static const char by_client[] = " (`muster check` or another client, no task)";
    bool is_client = mu__link_is_client(greeting->hello->type);
    char who[MU__LINK_WHO_BYTES];
    char from[96];
    char type[16];

    mu__view_copy(greeting->hello->type, type, sizeof type);
    (void)sender_of(greeting, refusal->taken, who, sizeof who);
    write_source_host(greeting, who, from, sizeof from);
    mu__links_log_limited(links,
                          refusal_level(links, greeting->header->from, refusal->taken),
                          "refused /job:%s/task:%" PRIu32 "%s at %s%s: %s", type,
                          greeting->hello->index, is_client ? by_client : "", who, from,
                          refusal->reason);
}

/* A link that has the connection, and nothing to do but to say why. NULL: out of memory,
 * or too many are refused at a time. */
static struct mu__link *refusing_link(struct mu__links *links,
                                      const struct mu__greeting *greeting,
                                      const struct refusal *refusal)
{
    struct mu__link *link;
    char type[16];

    mu__view_copy(greeting->hello->type, type, sizeof type);
    link = mu__link_new(links, type, greeting->hello->index, "", MU__LINK_PARTING);
    if (link == NULL)
        return NULL;
    link->times.since_ms = mu__links_now(links);
    mu__link_keep_words(&link->why, refusal->reason);
    link->peer.incarnation = greeting->header->from;
    link->missing.taken_since_ms = refusal->taken ? mu__links_now(links) + 1 : 0;
    return link;
}

/* Say why, over the same connection, and leave the hanging up to the peer: the end of the
 * connection could overtake the reason. A link that has dialled goes on without it. */
static void refuse_greeting(struct mu__links *links, const struct mu__greeting *greeting,
                            const struct refusal *refusal)
{
    struct mu__link *dialled = greeting->dialled;
    struct mu__link *link = refusing_link(links, greeting, refusal);

    log_refusal(links, greeting, refusal);
    if (dialled != NULL && link != NULL)
        mu__link_let_go(links, dialled);
    if (link == NULL) {
        links->wire->ops->hangup(links->wire, greeting->connection);
    } else if (mu__link_connect(links, link, greeting->connection) != 0) {
        mu__link_free(links, link);
    } else {
        mu__link_say_refuse(links, link);
    }
    if (dialled != NULL)
        mu__link_try_elsewhere(links, dialled, refusal->reason, MU__LINK_RETRY_MAX_MS);
}

/* Whether the sender's task left the cluster, or has moved. */
static bool is_barred(const struct mu__links *links, const struct mu__greeting *greeting,
                      char *why, size_t size)
{
    const struct mu__hello *hello = greeting->hello;
    const char *words = mu__barred_why(&links->barred, hello->type, hello->index,
                                       greeting->header->from, hello->address);

    if (words != NULL)
        (void)snprintf(why, size, "%s", words);
    return words != NULL;
}

/* Whether a HELLO is for another task, or one of another task answers: the dialled name
 * has several machines, or the address was another task's before. */
static bool is_wrong_destination(const struct mu__links *links,
                                 const struct mu__greeting *greeting, char *why,
                                 size_t size)
{
    const struct mu__hello *hello = greeting->hello;
    const struct mu__link *dialled = greeting->dialled;
    char expected[16];

    if (dialled != NULL && dialled->origin != MU__LINK_RETAINED_ANY &&
        (dialled->index != hello->index || !mu__view_is(hello->type, dialled->type))) {
        mu__view_copy(hello->type, expected, sizeof expected);
        (void)snprintf(why, size,
                       "/job:%s/task:%" PRIu32 " was dialled, and /job:%s/task:%" PRIu32
                       " answers",
                       dialled->type, dialled->index, expected, hello->index);
        return true;
    }
    if (hello->expected_type.size == 0 ||
        (mu__view_is(hello->expected_type, links->own.task_type) &&
         hello->expected_index == links->config.task_index))
        return false;
    mu__view_copy(hello->expected_type, expected, sizeof expected);
    (void)snprintf(why, size,
                   "task /job:%s/task:%" PRIu32 " is not here, but /job:%s/task:%" PRIu32,
                   expected, hello->expected_index, links->own.task_type,
                   links->config.task_index);
    return true;
}

/* Whether the version, the cluster or the task type cannot be accepted; writes why. */
static bool is_unfit(const struct mu__links *links, const struct mu__frame_header *header,
                     const struct mu__hello *hello, char *why, size_t size)
{
    char cluster[64];

    mu__view_copy(hello->cluster, cluster, sizeof cluster);
    if (header->version != MU__FRAME_VERSION) {
        (void)snprintf(why, size,
                       "protocol version %u, but /job:%s/task:%" PRIu32
                       " speaks version %u",
                       header->version, links->own.task_type, links->config.task_index,
                       MU__FRAME_VERSION);
        return true;
    }
    if (!mu__view_is(hello->cluster, links->own.cluster_name)) {
        (void)snprintf(why, size,
                       "cluster name \"%s\", but /job:%s/task:%" PRIu32
                       " belongs to cluster \"%s\"",
                       cluster, links->own.task_type, links->config.task_index,
                       links->own.cluster_name);
        return true;
    }
    if (links->config.only != NULL && !mu__view_is(hello->type, links->config.only)) {
        (void)snprintf(why, size, "%s", links->config.only_why);
        return true;
    }
    return false;
}

/* The link that is up to the task of a sender, who comes over another connection; NULL:
 * there is none. Whom mu__links_dial_any reaches may have another link, too. */
static struct mu__link *other_up(const struct mu__links *links,
                                 const struct mu__greeting *greeting)
{
    if (greeting->dialled != NULL && greeting->dialled->origin == MU__LINK_RETAINED_ANY)
        return NULL;
    return mu__link_up_to(links, greeting);
}

/* Whether another process plays the sender's task: this one, or one whose link is up. */
static bool is_twin(struct mu__links *links, const struct mu__greeting *greeting,
                    char *why, size_t size)
{
    const struct mu__hello *hello = greeting->hello;
    char who[MU__LINK_WHO_BYTES];
    const struct mu__link *link;

    if (mu__link_is_client(hello->type))
        return false;
    if (mu__view_is(hello->type, links->own.task_type) &&
        hello->index == links->config.task_index) {
        (void)snprintf(why, size, "task /job:%s/task:%" PRIu32 " is already played by %s",
                       links->own.task_type, links->config.task_index,
                       describe_self(links, who, sizeof who));
        return true;
    }
    link = other_up(links, greeting);
    if (link == NULL)
        return false;
    (void)snprintf(why, size, "task /job:%s/task:%" PRIu32 " is already played by %s",
                   link->type, link->index, describe_up_process(link, who, sizeof who));
    return true;
}

/* ---- a second connection ---- */

/* Whether a HELLO says to be a process whose link is up: anybody can know its
 * incarnation. If it is that process, which connects anew, the end of its former
 * connection will be seen, or its silence; it tries again, and is let in then. */
static bool is_double(const struct mu__links *links, const struct mu__greeting *greeting)
{
    const struct mu__link *up = other_up(links, greeting);

    return up != NULL && up->peer.incarnation == greeting->header->from;
}

/* The one of two dials that gave way may be heard after the other, if not much later: no
 * news. */
static bool is_late_dial(const struct mu__links *links,
                         const struct mu__greeting *greeting)
{
    const struct mu__link *up = other_up(links, greeting);

    return !mu__wire_is_accepted(up->connection) &&
           links->config.incarnation < greeting->header->from &&
           mu__links_now(links) < up->times.since_ms + links->config.silence_ms;
}

static void drop_double(struct mu__links *links, const struct mu__greeting *greeting)
{
    char who[MU__LINK_WHO_BYTES];
    char from[96];
    char type[16];

    links->counters.doubles++;
    mu__view_copy(greeting->hello->type, type, sizeof type);
    (void)sender_of(greeting, true, who, sizeof who);
    write_source_host(greeting, who, from, sizeof from);
    if (!is_late_dial(links, greeting))
        mu__links_log_limited(links, MU__LOG_WARN,
                              "dropped a second connection of /job:%s/task:%" PRIu32
                              " at %s%s: the first one is up",
                              type, greeting->hello->index, who, from);
    if (greeting->dialled != NULL)
        mu__link_try_elsewhere(links, greeting->dialled, "another link to it is up",
                               MU__LINK_RETRY_MAX_MS);
    else
        links->wire->ops->hangup(links->wire, greeting->connection);
}

/* ---- all reasons ---- */

bool mu__link_refuse_hello(struct mu__links *links, const struct mu__greeting *greeting)
{
    const struct mu__hello *hello = greeting->hello;
    char why[MU__LINK_REASON_BYTES];
    struct refusal refusal = {.reason = why};
    bool is_refused = is_unfit(links, greeting->header, hello, why, sizeof why) ||
                      mu__link_is_unproven(&greeting->proof, hello, why, sizeof why) ||
                      is_barred(links, greeting, why, sizeof why);
    bool is_second = !is_refused && is_double(links, greeting);

    if (!is_refused && !is_second)
        refusal.taken = is_twin(links, greeting, why, sizeof why);
    is_refused = is_refused || refusal.taken ||
                 is_wrong_destination(links, greeting, why, sizeof why);
    if (is_refused)
        refuse_greeting(links, greeting, &refusal);
    else if (is_second)
        drop_double(links, greeting);
    return is_refused || is_second;
}
