/* One link from its creation to its end: it is dialled, rests, goes down, and begins
 * again, or is freed. greeting.c has the handshake, by which it comes up. */
#include "transport/link/internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RETRY_LOST_MS = 10,     /* before a link that was up is dialled: a process that has
                               ended is known by that its address refuses connections */
    RETRY_FIRST_MS = 100,   /* before a link that went down is dialled; doubles */
    STABLE_MS = 1000,       /* a link that was up for so long has come up well */
    EARLY_LOSSES_MAX = 6,   /* that are counted */
    WAITING_FIRST_MS = 3000 /* when a missing task is named in the log; doubles */
};

/* ---- states ---- */

#define TO(state) (1U << MU__LINK_##state)

/* From each state, those that may follow: UP by the peer's HELLO, in GREETING by one that
 * answers ours or came over another connection. A link is made RESTING or PARTING; it may
 * end in any state. */
static const unsigned moves[MU__LINK_STATES_COUNT] = {
    [MU__LINK_RESTING] = TO(RESTING) | TO(DIALLING) | TO(UP),
    [MU__LINK_DIALLING] = TO(GREETING) | TO(UP) | TO(RESTING),
    [MU__LINK_GREETING] = TO(UP) | TO(RESTING),
    [MU__LINK_UP] = TO(PARTING) | TO(RESTING),
    [MU__LINK_PARTING] = 0,
};

static uint32_t *counter_of(struct mu__links *links, enum mu__link_state state)
{
    return state == MU__LINK_PARTING ? &links->parting_count : &links->links_count;
}

void mu__link_move(struct mu__links *links, struct mu__link *link,
                   enum mu__link_state state)
{
    assert((moves[link->state] & 1U << state) != 0);
    --*counter_of(links, link->state);
    ++*counter_of(links, state);
    link->state = state;
    link->times.since_ms = mu__links_now(links);
}

/* ---- the index by key ---- */

int mu__link_enkey(struct mu__links *links, struct mu__link *link)
{
    uint64_t key = mu__task_key(mu__view_str(link->type), link->index);

    return mu__hash_table_add(&links->index.by_key, key, &link->hashed);
}

struct mu__link *mu__link_first(const struct mu__links *links, struct mu__view type,
                                uint32_t index)
{
    return (struct mu__link *)mu__hash_table_find(&links->index.by_key,
                                                  mu__task_key(type, index));
}

void mu__link_unkey(struct mu__links *links, struct mu__link *link)
{
    if (link->hashed.hash != 0)
        mu__hash_table_remove(&links->index.by_key, &link->hashed);
}

/* ---- all links ---- */

static void enlist_link(struct mu__links *links, struct mu__link *link)
{
    mu__list_prepend(&links->all, &link->listed);
    ++*counter_of(links, link->state);
}

static void unlist_link(struct mu__links *links, struct mu__link *link)
{
    mu__list_remove(&links->all, &link->listed);
    --*counter_of(links, link->state);
}

bool mu__links_are_too_many(struct mu__links *links, const char *type, const char *url,
                            enum mu__link_state state)
{
    const struct mu__link *link;

    return *counter_of(links, state) >= MU__LINKS_MAX ||
           strlen(url) >= MU__LINK_URL_BYTES || strlen(type) >= sizeof link->type;
}

/* ---- memory ---- */

static void link_free_memory(struct mu__link *link)
{
    free(link->url);
    free(link->peer.url);
    free(link->why);
    free(link->reported_error);
    free(link->peer.software);
    free(link->peer.host);
    free(link->retry.tried);
    free(link);
}

/* The task is missing from now on. */
static void begin_missing(const struct mu__links *links, struct mu__link *link)
{
    link->missing.since_ms = mu__links_now(links);
    link->missing.step_ms = WAITING_FIRST_MS;
    link->missing.note_ms = link->missing.since_ms + WAITING_FIRST_MS;
}

struct mu__link *mu__link_new(struct mu__links *links, const char *type, uint32_t index,
                              const char *url, enum mu__link_state state)
{
    struct mu__link *link;

    if (mu__links_are_too_many(links, type, url, state))
        return NULL;
    link = calloc(1, sizeof *link);
    if (link == NULL)
        return NULL;
    memcpy(link->type, type, strlen(type) + 1);
    link->url = mu__link_copy(url, MU__LINK_URL_BYTES);
    link->index = index;
    link->state = state;
    begin_missing(links, link);
    if (link->url == NULL ||
        (state != MU__LINK_PARTING && mu__link_enkey(links, link) != 0)) {
        link_free_memory(link);
        return NULL;
    }
    enlist_link(links, link);
    return link;
}

int mu__link_connect(struct mu__links *links, struct mu__link *link, uint32_t connection)
{
    int rv = mu__map_set(&links->index.by_connection, connection, link);

    if (rv == 0)
        link->connection = connection;
    else
        links->wire->ops->hangup(links->wire, connection);
    return rv;
}

void mu__link_let_go(struct mu__links *links, struct mu__link *link)
{
    (void)mu__map_remove(&links->index.by_connection, link->connection);
    link->connection = 0;
}

void mu__link_disconnect(struct mu__links *links, struct mu__link *link)
{
    if (link->connection != 0) {
        (void)mu__map_remove(&links->index.by_connection, link->connection);
        links->wire->ops->hangup(links->wire, link->connection);
        link->connection = 0;
    }
    mu__link_undirty(links, link);
    mu__outbox_clear(&link->outbox);
    mu__buf_unref(link->assembling.record);
    link->assembling.record = NULL;
    link->backlog = (struct mu__link_backlog){0};
    link->peer.incarnation = 0;
    link->peer.pid = 0;
    link->retry.address_number = 0;
    mu__link_keep_words(&link->peer.software, "");
    mu__link_keep_words(&link->peer.host, "");
}

void mu__link_free(struct mu__links *links, struct mu__link *link)
{
    unlist_link(links, link);
    mu__link_unkey(links, link);
    mu__link_disconnect(links, link);
    mu__outbox_done(&link->outbox);
    link_free_memory(link);
}

/* ---- dialling ---- */

/* The next number for a connection: those of the wire's own are above. */
static uint32_t next_connection(struct mu__links *links)
{
    do
        links->next.connection = (links->next.connection + 1) & (MU__WIRE_ACCEPTED - 1);
    while (links->next.connection == 0 ||
           mu__map_get(&links->index.by_connection, links->next.connection) != NULL);
    return links->next.connection;
}

int mu__link_dial(struct mu__links *links, struct mu__link *link)
{
    uint32_t connection = next_connection(links);
    int rv = links->wire->ops->dial(links->wire, connection, link->url);

    if (rv == 0)
        rv = mu__link_connect(links, link, connection);
    if (rv != 0)
        return rv;
    mu__link_move(links, link, MU__LINK_DIALLING);
    if (link->retry.tried != NULL)
        links->wire->ops->avoid(links->wire, connection, link->retry.tried);
    return 0;
}

void mu__link_rest(struct mu__links *links, struct mu__link *link)
{
    uint32_t spread;

    if (link->retry.backoff_ms == 0)
        link->retry.backoff_ms = RETRY_FIRST_MS;
    spread = (uint32_t)(links->config.world->ops->random(links->config.world) %
                        (link->retry.backoff_ms / 2 + 1));
    link->retry.due_ms = mu__links_now(links) + link->retry.backoff_ms / 2 + spread;
    mu__links_hasten(links, link->retry.due_ms);
    if (link->retry.backoff_ms < RETRY_FIRST_MS)
        link->retry.backoff_ms = RETRY_FIRST_MS;
    else if (link->retry.backoff_ms < MU__LINK_RETRY_MAX_MS)
        link->retry.backoff_ms *= 2;
    mu__link_move(links, link, MU__LINK_RESTING);
}

/* ---- going down ---- */

/* Set the back-off after a loss: short, but longer for each early loss in a row. */
static void note_loss(struct mu__links *links, struct mu__link *link)
{
    uint32_t most_ms = links->config.silence_ms / 2;

    if (mu__links_now(links) - link->times.since_ms >= STABLE_MS)
        link->retry.early_losses = 0;
    else if (link->retry.early_losses < EARLY_LOSSES_MAX)
        link->retry.early_losses++;
    if (link->retry.early_losses < 2) {
        link->retry.is_lost = !link->left;
        if (link->retry.is_lost)
            link->retry.backoff_ms = RETRY_LOST_MS;
        return;
    }
    link->retry.backoff_ms = (uint32_t)RETRY_FIRST_MS << (link->retry.early_losses - 1);
    if (link->retry.backoff_ms > most_ms)
        link->retry.backoff_ms = most_ms;
}

void mu__link_go_down(struct mu__links *links, struct mu__link *link, const char *reason)
{
    bool was_up = link->state == MU__LINK_UP;
    bool left = link->left;
    uint32_t node = link->node;

    if (was_up) {
        (void)mu__map_remove(&links->index.by_node, node);
        links->counters.links_up--;
        link->node = 0;
        note_loss(links, link);
        mu__links_log(links, left ? mu__link_news_level(link) : MU__LOG_INFO,
                      "/job:%s/task:%" PRIu32 " is %s: %s", link->type, link->index,
                      left ? "gone" : "lost", reason);
    }
    mu__link_disconnect(links, link);
    begin_missing(links, link);
    if (mu__link_is_retained(link) && !links->leaving) {
        mu__link_keep_words(&link->why, reason);
        mu__link_rest(links, link);
    } else {
        mu__link_free(links, link);
    }
    if (was_up)
        links->upcalls.down(links->upcalls.owner, node, reason, left);
}

/* Whether the name of a link has an address that was not tried in this round. The address
 * reached last is counted as tried, once. Out of memory: false. */
static bool has_further(const struct mu__links *links, struct mu__link *link)
{
    uint32_t address_number = link->retry.address_number;

    link->retry.address_number = 0;
    if (!mu__link_is_retained(link) || links->leaving || address_number == 0)
        return false;
    if (link->retry.tried == NULL && link->retry.addresses_count > 1)
        link->retry.tried = calloc(1, sizeof *link->retry.tried);
    return link->retry.tried != NULL &&
           mu__dial_tried_add(link->retry.tried, address_number,
                              link->retry.addresses_count);
}

void mu__link_try_elsewhere(struct mu__links *links, struct mu__link *link,
                            const char *reason, uint32_t pause_ms)
{
    bool further = has_further(links, link);

    if (!further && link->retry.backoff_ms < pause_ms)
        link->retry.backoff_ms = pause_ms;
    mu__link_go_down(links, link, reason);
    if (further && mu__link_dial(links, link) != 0)
        mu__link_rest(links, link);
}

void mu__links_disconnected(struct mu__links *links, uint32_t connection,
                            const char *reason)
{
    struct mu__link *link = mu__map_get(&links->index.by_connection, connection);
    char why[MU__LINK_REASON_BYTES];

    if (link == NULL)
        return;
    (void)snprintf(why, sizeof why, "its connection broke: %s", reason);
    mu__link_go_down(links, link, why);
}
