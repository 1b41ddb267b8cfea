/* One link from its creation to its end: it is dialled, rests, goes down, and begins
 * again, or is freed. greeting.c has the handshake, by which it comes up. */
#include "transport/link/internal.h"

#include "runtime/base/sip_hash.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RETRY_FIRST_MS = 100,       /* before a link that went down is dialled; doubles */
    STABLE_MS = 1000,           /* a link that was up for so long has come up well */
    EARLY_LOSSES_MAX = 6,       /* that are counted */
    WAITING_FIRST_MS = 3000     /* when a missing task is named in the log; doubles */
};

/* ---- states ---- */

#define TO(state) (1U << MU__LINK_##state)

/* From each state, those that may follow. A link is made RESTING or REFUSING; it may end
 * in any state. */
static const unsigned moves[MU__LINK_STATES_COUNT] = {
    [MU__LINK_RESTING] = TO(RESTING) | TO(DIALLING),
    [MU__LINK_DIALLING] = TO(GREETING) | TO(RESTING),
    [MU__LINK_GREETING] = TO(UP) | TO(RESTING),
    [MU__LINK_UP] = TO(PARTING) | TO(RESTING),
    [MU__LINK_REFUSING] = TO(REFUSING),
    [MU__LINK_PARTING] = 0,
};

static uint32_t *counter_of(struct mu__links *links, enum mu__link_state state)
{
    return state == MU__LINK_REFUSING || state == MU__LINK_PARTING
               ? &links->refusing_count
               : &links->links_count;
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

uint64_t mu__link_key(const struct mu__link *link)
{
    if (link->state != MU__LINK_REFUSING)
        return mu__task_key(mu__view_str(link->type), link->index);
    return UINT64_C(1) << 63 | mu__view_hash(mu__view_str(link->url));
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

static void enlist(struct mu__links *links, struct mu__link *link)
{
    mu__list_prepend(&links->all, &link->listed);
    ++*counter_of(links, link->state);
}

static void unlist(struct mu__links *links, struct mu__link *link)
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
    free(link->retry.detour);
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
    if (link->url == NULL || mu__hash_table_add(&links->index.by_key, mu__link_key(link),
                                                &link->hashed) != 0) {
        link_free_memory(link);
        return NULL;
    }
    enlist(links, link);
    return link;
}

static void hang_up(struct mu__links *links, struct mu__link *link)
{
    if (link->out != 0) {
        (void)mu__map_remove(&links->index.by_out, link->out);
        links->wire->ops->hangup(links->wire, link->out);
        link->out = 0;
    }
    if (link->in != 0) {
        (void)mu__map_remove(&links->index.by_in, link->in);
        links->wire->ops->drop(links->wire, link->in);
        link->in = 0;
    }
    mu__link_undirty(links, link);
    mu__outbox_clear(&link->outbox);
    mu__buf_unref(link->assembling.record);
    link->assembling.record = NULL;
    link->backlog = (struct mu__link_backlog){0};
    link->peer.incarnation = 0;
    link->peer.epoch = 0;
    link->peer.pid = 0;
    link->handshake.requester = 0;
    link->handshake.requester_epoch = 0;
    mu__link_keep_words(&link->peer.software, "");
    mu__link_keep_words(&link->peer.host, "");
    mu__link_keep_words(&link->retry.detour, "");
}

static void end_epoch(struct mu__links *links, struct mu__link *link)
{
    if (link->epoch != 0)
        (void)mu__map_remove(&links->index.by_epoch, link->epoch);
    link->epoch = 0;
}

void mu__link_free(struct mu__links *links, struct mu__link *link)
{
    unlist(links, link);
    mu__link_is_back(links, link);
    mu__link_unkey(links, link);
    hang_up(links, link);
    end_epoch(links, link);
    mu__outbox_done(&link->outbox);
    link_free_memory(link);
}

/* ---- dialling ---- */

/* A number that no link has, and nobody can guess. */
static uint32_t draw_epoch(struct mu__links *links)
{
    uint64_t words[2] = {links->config.incarnation, 0};
    uint32_t epoch;

    do {
        words[1] = ++links->next.epoch;
        epoch = (uint32_t)mu__sip_hash(links->secret, words, sizeof words);
    } while (epoch == 0 || mu__map_get(&links->index.by_epoch, epoch) != NULL);
    return epoch;
}

static int begin_epoch(struct mu__links *links, struct mu__link *link)
{
    uint32_t epoch = draw_epoch(links);
    int rv = mu__map_set(&links->index.by_epoch, epoch, link);

    if (rv != 0)
        return rv;
    link->former_epoch = link->epoch;
    end_epoch(links, link);
    link->epoch = epoch;
    link->handshake.said_epoch = 0;
    return 0;
}

int mu__link_dial(struct mu__links *links, struct mu__link *link)
{
    uint32_t out = ++links->next.out;
    int rv = begin_epoch(links, link);

    link->retry.address_number = 0;
    if (rv == 0)
        rv = mu__map_set(&links->index.by_out, out, link);
    if (rv != 0)
        return rv;
    link->out = out;
    mu__link_move(links, link,
                  link->state == MU__LINK_REFUSING ? MU__LINK_REFUSING
                                                   : MU__LINK_DIALLING);
    rv = links->wire->ops->dial(
        links->wire, out, link->retry.detour == NULL ? link->url : link->retry.detour);
    if (rv != 0) {
        (void)mu__map_remove(&links->index.by_out, out);
        link->out = 0;
        return rv;
    }
    if (link->retry.tried != NULL)
        links->wire->ops->avoid(links->wire, out, link->retry.tried);
    if (!mu__link_is_retained(link) && links->wire->ops->show != NULL)
        links->wire->ops->show(links->wire, out, link->peer.right);
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
    if (link->retry.backoff_ms < MU__LINK_RETRY_MAX_MS)
        link->retry.backoff_ms *= 2;
    mu__link_move(links, link, MU__LINK_RESTING);
}

/* ---- silent processes ---- */

static uint64_t hash_of(const char *url)
{
    return mu__view_hash(mu__view_str(url));
}

static void note_silent(struct mu__links *links, const struct mu__link *link)
{
    if (link->peer.incarnation == 0)
        return;
    links->silent[links->silent_next++ % MU__LINK_SILENT_MAX] =
        (struct mu__silent){hash_of(link->url), link->peer.incarnation};
}

bool mu__links_is_silent(const struct mu__links *links, const char *url,
                         uint64_t incarnation)
{
    uint64_t hash = hash_of(url);

    for (size_t i = 0; i < MU__LINK_SILENT_MAX; i++)
        if (links->silent[i].incarnation != 0 && links->silent[i].url_hash == hash &&
            links->silent[i].incarnation != incarnation)
            return true;
    return false;
}

void mu__links_not_silent(struct mu__links *links, const char *url)
{
    uint64_t hash = hash_of(url);

    for (size_t i = 0; i < MU__LINK_SILENT_MAX; i++)
        if (links->silent[i].url_hash == hash)
            links->silent[i].incarnation = 0;
}

/* ---- going down ---- */

void mu__link_go_silent(struct mu__links *links, struct mu__link *link,
                        const char *reason)
{
    note_silent(links, link);
    mu__link_go_down(links, link, reason);
}

bool mu__link_settles(struct mu__links *links, const struct mu__link *link)
{
    return mu__links_now(links) < link->retry.settles_ms;
}

/* Set the back-off after a loss: longer for each early loss in a row, but below the time
 * for which a peer in the middle of its handshake waits. */
static void note_loss(struct mu__links *links, struct mu__link *link)
{
    uint32_t most_ms = links->config.silence_ms / 2;

    if (mu__links_now(links) - link->times.since_ms >= STABLE_MS)
        link->retry.early_losses = 0;
    else if (link->retry.early_losses < EARLY_LOSSES_MAX)
        link->retry.early_losses++;
    if (link->retry.early_losses < 2)
        return;
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
    hang_up(links, link);
    begin_missing(links, link);
    if (mu__link_is_retained(link) && !links->leaving) {
        mu__link_keep_words(&link->why, reason);
        mu__link_rest(links, link);
        if (was_up && link->retry.early_losses > 1)
            link->retry.settles_ms = link->retry.due_ms;
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

void mu__links_out_down(struct mu__links *links, uint32_t out, const char *reason)
{
    struct mu__link *link = mu__map_get(&links->index.by_out, out);
    char why[MU__LINK_REASON_BYTES];

    if (link == NULL)
        return;
    if (link->state == MU__LINK_DIALLING) {
        mu__link_keep_words(&link->why, reason);
        return;     /* the wire tries again */
    }
    (void)snprintf(why, sizeof why, "connection to it broke: %s", reason);
    mu__link_go_down(links, link, why);
}

void mu__links_in_down(struct mu__links *links, uint32_t in, const char *reason)
{
    struct mu__link *link = mu__map_get(&links->index.by_in, in);
    char why[MU__LINK_REASON_BYTES];

    if (link == NULL)
        return;
    (void)snprintf(why, sizeof why, "its connection broke: %s", reason);
    mu__link_go_down(links, link, why);
}
