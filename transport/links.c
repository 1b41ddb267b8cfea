/* How a link comes up, seen from one side:
 *
 *      DIALLING --out_up, say HELLO--> GREETING --their HELLO--> UP
 *
 * The peer's HELLO may also come first (it dialled us): it is remembered, and the link is
 * up as soon as ours is said. A HELLO whose `to` is not our incarnation asks for ours;
 * one that names it answers ours. So two nodes that dial each other at the same moment
 * say at most two HELLOs each, and never go on answering.
 *
 * A link lives from one dial to the next, and each HELLO says which life it is of. What
 * the peer sends names our life: with delays enough, a connection of its former life may
 * be taken for one of the present, and what still comes over it must not be believed.
 *
 * Who is reached may be somebody else: another task, at an address that was the peer's,
 * or a name that leads to several machines. HELLO says whom it is for, and is refused
 * then. After a refusal or no answer the link goes on with the next address of the name,
 * and it rests when all of them were tried.
 *
 * Going down always starts over with a fresh outgoing connection, because nobody can tell
 * whether the old one leads to the peer's old life or its new one. */
#include "transport/links.h"

#include "runtime/codec.h"
#include "runtime/map.h"
#include "transport/barred.h"
#include "transport/chains.h"
#include "transport/outbox.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RETRY_FIRST_MS = 100,   /* before dialling again after a link went down; doubles */
    RETRY_MAX_MS = 5000,
    REFUSAL_MS = 1000,      /* how long a refused peer's refusal may take to be sent */
    WAITING_FIRST_MS = 3000, /* when a missing task is named in the log; doubles */
    WAITING_MAX_MS = 60000,
    URL_BYTES_MAX = 256,
    REASON_BYTES_MAX = 512
};

enum state {
    RESTING,    /* will be dialled again at retry_ms */
    DIALLING,
    GREETING,
    UP,
    REFUSING,   /* there only to say why the peer is refused, or was hung up on */
    STATES_COUNT
};

static const char *const state_names[STATES_COUNT] = {
    "resting", "dialling", "greeting", "up", "refusing"};

struct link {
    struct mu__chained chained; /* by task, or by url: see key_of; first, so that it is
                                   the link */
    struct link *next;          /* of all links */
    struct link *prev;
    struct link *dirty_next;    /* of links with something to send */
    struct link *dirty_prev;
    bool dirty;
    bool keep;                  /* asked for with mu__links_dial */
    bool any;                   /* with mu__links_dial_any: whoever answers */
    bool heard;                 /* their HELLO has come, on `in` */
    enum state state;
    char type[16];
    uint32_t index;
    char *url;
    char *says;                 /* its address as of its HELLO; NULL: `url` */
    char *why;                  /* the last reason for not being up; NULL: none */
    char *told;                 /* the wire's reason that the owner knows already */
    uint32_t out;               /* 0: none */
    uint32_t in;                /* 0: none */
    uint32_t node;              /* while up */
    uint64_t peer;              /* incarnation, once heard */
    uint32_t life;              /* of our side: one for each dial */
    uint32_t peer_life;         /* of the peer's side, once heard */
    uint64_t heard_ms;
    uint64_t said_ms;
    uint64_t since_ms;          /* of the present state */
    uint64_t retry_ms;
    uint32_t backoff_ms;
    uint32_t place;             /* that this life has reached; as of the wire */
    unsigned places_count;
    struct mu__dial_tried *tried;   /* addresses of its name where it was not found, since
                                       it was up or rested for all; NULL: none */
    uint64_t missing_since_ms;
    uint64_t waiting_note_ms;   /* when the log says next that it is missing */
    uint32_t waiting_step_ms;
    struct mu__outbox outbox;
    struct mu__buf *assembling; /* a large record whose pieces are coming in */
    uint64_t assembling_total;
};

struct mu__links {
    char cluster_name[64];
    char task_type[16];
    char address[URL_BYTES_MAX];
    struct mu__links_config config;
    struct mu__links_upcalls upcalls;
    struct mu__wire *wire;
    struct link *first;
    struct link *dirty;
    struct mu__map by_out;
    struct mu__map by_in;
    struct mu__map by_node;
    struct mu__map by_life;
    struct mu__chains chains;
    struct mu__barred barred;
    uint32_t links_count;       /* without those that are REFUSING */
    uint32_t refusing_count;
    uint32_t out_next;
    uint32_t node_next;
    uint32_t life_next;
    uint64_t tick_ms;           /* the last one */
    bool leaving;
    struct mu__links_counters counters;
};

/* ---- small helpers ---- */

static uint64_t now(const struct mu__links *links)
{
    return links->config.world->ops->now_ms(links->config.world);
}

static void say(const struct mu__links *links, enum mu__log_level level,
                const char *format, ...) MU_PRINTF(3, 4);

static void say(const struct mu__links *links, enum mu__log_level level,
                const char *format, ...)
{
    char line[REASON_BYTES_MAX + URL_BYTES_MAX + 128];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    links->config.world->ops->log(links->config.world, level, "links", line);
}

static struct mu__outbox_route route_of(const struct mu__links *links,
                                        const struct link *link)
{
    return (struct mu__outbox_route){links->wire, link->out, links->config.incarnation,
                                     link->heard ? link->peer : 0, link->peer_life};
}

static void set_state(const struct mu__links *links, struct link *link, enum state state)
{
    link->state = state;
    link->since_ms = now(links);
}

static void mark_dirty(struct mu__links *links, struct link *link)
{
    if (link->dirty)
        return;
    link->dirty = true;
    link->dirty_prev = NULL;
    link->dirty_next = links->dirty;
    if (links->dirty != NULL)
        links->dirty->dirty_prev = link;
    links->dirty = link;
}

static void undirty(struct mu__links *links, struct link *link)
{
    if (!link->dirty)
        return;
    *(link->dirty_prev == NULL ? &links->dirty : &link->dirty_prev->dirty_next) =
        link->dirty_next;
    if (link->dirty_next != NULL)
        link->dirty_next->dirty_prev = link->dirty_prev;
    link->dirty = false;
}

/* A copy of at most `bytes_max` bytes, its end included; NULL when out of memory. */
static char *copy_of(const char *words, size_t bytes_max)
{
    size_t size = strnlen(words, bytes_max - 1);
    char *copy = malloc(size + 1);

    if (copy == NULL)
        return NULL;
    memcpy(copy, words, size);
    copy[size] = '\0';
    return copy;
}

/* Thousands of links are up, and have none of these; so each has memory of its own. Out
 * of memory there are no words. */
static void keep_words(char **at, const char *words)
{
    char *copy = words[0] == '\0' ? NULL : copy_of(words, REASON_BYTES_MAX);

    free(*at);
    *at = copy;
}

static const char *words_of(const char *words)
{
    return words == NULL ? "" : words;
}

static void drop_words(char **at)
{
    free(*at);
    *at = NULL;
}

/* Where the peer of a link that has heard says that it is. */
static const char *address_of(const struct link *link)
{
    return link->says == NULL ? link->url : link->says;
}

/* ---- life of a link ---- */

/* What a link is found by: its task; one that refuses a peer, by where that peer is, so
 * that it is not refused twice at a time. Nobody searches one that is parting. */
static uint64_t key_of(const struct link *link)
{
    if (link->state != REFUSING)
        return mu__task_key(mu__view_str(link->type), link->index);
    return UINT64_C(1) << 63 | mu__view_hash(mu__view_str(link->url));
}

/* The same, behind `link` in its chain. The caller compares. */
static struct link *next_in_chain(const struct link *link)
{
    return (struct link *)link->chained.next;
}

static struct link *first_of_task(const struct mu__links *links, struct mu__view type,
                                  uint32_t index)
{
    return (struct link *)mu__chains_first(&links->chains, mu__task_key(type, index));
}

static uint32_t *counter_of(struct mu__links *links, enum state state)
{
    return state == REFUSING ? &links->refusing_count : &links->links_count;
}

static void enlist(struct mu__links *links, struct link *link)
{
    link->next = links->first;
    if (links->first != NULL)
        links->first->prev = link;
    links->first = link;
    ++*counter_of(links, link->state);
}

static void unlist(struct mu__links *links, struct link *link)
{
    *(link->prev == NULL ? &links->first : &link->prev->next) = link->next;
    if (link->next != NULL)
        link->next->prev = link->prev;
    --*counter_of(links, link->state);
}

static void link_free_memory(struct link *link)
{
    free(link->url);
    free(link->says);
    free(link->why);
    free(link->told);
    free(link->tried);
    free(link);
}

/* Beyond a bound: of links, or of words. */
static bool is_too_much(struct mu__links *links, const char *type, const char *url,
                        enum state state)
{
    const struct link *link;

    return *counter_of(links, state) >= MU__LINKS_MAX || strlen(url) >= URL_BYTES_MAX ||
           strlen(type) >= sizeof link->type;
}

static struct link *link_new(struct mu__links *links, const char *type, uint32_t index,
                             const char *url, enum state state)
{
    struct link *link;

    if (is_too_much(links, type, url, state))
        return NULL;
    link = calloc(1, sizeof *link);
    if (link == NULL)
        return NULL;
    memcpy(link->type, type, strlen(type) + 1);
    link->url = copy_of(url, URL_BYTES_MAX);
    link->index = index;
    link->state = state;
    link->missing_since_ms = now(links);
    link->waiting_step_ms = WAITING_FIRST_MS;
    link->waiting_note_ms = link->missing_since_ms + WAITING_FIRST_MS;
    if (link->url == NULL ||
        mu__chains_add(&links->chains, key_of(link), &link->chained) != 0) {
        link_free_memory(link);
        return NULL;
    }
    enlist(links, link);
    return link;
}

static void hang_up(struct mu__links *links, struct link *link)
{
    if (link->out != 0) {
        (void)mu__map_remove(&links->by_out, link->out);
        links->wire->ops->hangup(links->wire, link->out);
        link->out = 0;
    }
    if (link->in != 0) {
        (void)mu__map_remove(&links->by_in, link->in);
        links->wire->ops->drop(links->wire, link->in);
        link->in = 0;
    }
    undirty(links, link);
    mu__outbox_clear(&link->outbox);
    mu__buf_unref(link->assembling);
    link->assembling = NULL;
    link->heard = false;
    link->peer = 0;
    link->peer_life = 0;
}

static void end_life(struct mu__links *links, struct link *link)
{
    if (link->life != 0)
        (void)mu__map_remove(&links->by_life, link->life);
    link->life = 0;
}

static void link_free(struct mu__links *links, struct link *link)
{
    unlist(links, link);
    mu__chains_remove(&links->chains, &link->chained);
    hang_up(links, link);
    end_life(links, link);
    mu__outbox_done(&link->outbox);
    link_free_memory(link);
}

static int begin_life(struct mu__links *links, struct link *link)
{
    uint32_t life = ++links->life_next;
    int rv = mu__map_set(&links->by_life, life, link);

    if (rv != 0)
        return rv;
    end_life(links, link);
    link->life = life;
    return 0;
}

static int dial(struct mu__links *links, struct link *link)
{
    uint32_t out = ++links->out_next;
    int rv = begin_life(links, link);

    link->place = 0;
    if (rv == 0)
        rv = mu__map_set(&links->by_out, out, link);
    if (rv != 0)
        return rv;
    link->out = out;
    set_state(links, link, link->state == REFUSING ? REFUSING : DIALLING);
    rv = links->wire->ops->dial(links->wire, out, link->url);
    if (rv != 0) {
        (void)mu__map_remove(&links->by_out, out);
        link->out = 0;
        return rv;
    }
    if (link->tried != NULL)
        links->wire->ops->avoid(links->wire, out, link->tried);
    return 0;
}

static void rest(struct mu__links *links, struct link *link)
{
    uint32_t spread;

    if (link->backoff_ms == 0)
        link->backoff_ms = RETRY_FIRST_MS;
    spread = (uint32_t)(links->config.world->ops->random(links->config.world) %
                        (link->backoff_ms / 2 + 1));
    link->retry_ms = now(links) + link->backoff_ms / 2 + spread;
    if (link->backoff_ms < RETRY_MAX_MS)
        link->backoff_ms *= 2;
    set_state(links, link, RESTING);
}

/* Both connections go; a kept link will be dialled again, another one is freed. */
static void go_down(struct mu__links *links, struct link *link, const char *reason)
{
    bool was_up = link->state == UP;
    uint32_t node = link->node;

    if (was_up) {
        (void)mu__map_remove(&links->by_node, node);
        links->counters.links_up--;
        link->node = 0;
        say(links, MU__LOG_INFO, "/job:%s/task:%" PRIu32 " is lost: %s", link->type,
            link->index, reason);
    }
    hang_up(links, link);
    link->missing_since_ms = now(links);
    link->waiting_step_ms = WAITING_FIRST_MS;
    link->waiting_note_ms = link->missing_since_ms + WAITING_FIRST_MS;
    if (link->keep && !links->leaving) {
        keep_words(&link->why, reason);
        rest(links, link);
    } else {
        link_free(links, link);
    }
    if (was_up)
        links->upcalls.down(links->upcalls.owner, node, reason);
}

/* Whether the name of a link has an address that was not tried in this round; who was
 * reached last is not the peer. Out of memory there is none. */
static bool has_further(const struct mu__links *links, struct link *link)
{
    if (!link->keep || links->leaving || link->place == 0)
        return false;
    if (link->tried == NULL && link->places_count > 1)
        link->tried = calloc(1, sizeof *link->tried);
    return link->tried != NULL &&
           mu__dial_tried_add(link->tried, link->place, link->places_count);
}

/* Whoever was reached is not the peer: at once to the next address of the name, or, when
 * that was the last one, after a pause of `pause_ms` at least. */
static void try_elsewhere(struct mu__links *links, struct link *link, const char *reason,
                          uint32_t pause_ms)
{
    bool further = has_further(links, link);

    if (!further && link->backoff_ms < pause_ms)
        link->backoff_ms = pause_ms;
    go_down(links, link, reason);
    if (further && dial(links, link) != 0)
        rest(links, link);
}

/* ---- frames of the protocol ---- */

/* A record of the protocol's own table, on the stack. */
union record {
    struct mu__msg msg;
    unsigned char bytes[sizeof(struct mu__msg) + sizeof(struct mu__hello) +
                        sizeof(struct mu__refuse) + sizeof(struct mu__bye)];
};

static void say_frame(struct mu__links *links, struct link *link, uint8_t type,
                      const struct mu__msg *msg)
{
    const struct mu__outbox_route route = route_of(links, link);

    if (mu__outbox_control(&link->outbox, &route, type, msg) != 0)
        say(links, MU__LOG_ERROR, "out of memory: nothing said to /job:%s/task:%" PRIu32,
            link->type, link->index);
    link->said_ms = now(links);
    mark_dirty(links, link);
}

static void say_hello(struct mu__links *links, struct link *link)
{
    union record record = {.msg = {.kind = MU__FRAME_HELLO}};
    struct mu__hello hello = {
        .cluster = mu__view_str(links->cluster_name),
        .type = mu__view_str(links->task_type),
        .index = links->config.task_index,
        .address = mu__view_str(links->address),
        .software = mu__view_str("muster"),
        .life = link->life,
    };

    if (!link->any) {
        hello.wanted_type = mu__view_str(link->type);
        hello.wanted_index = link->index;
    }
    memcpy(record.msg.body, &hello, sizeof hello);
    say_frame(links, link, MU__FRAME_HELLO, &record.msg);
}

static void say_refuse(struct mu__links *links, struct link *link)
{
    union record record = {.msg = {.kind = MU__FRAME_REFUSE}};
    struct mu__refuse refuse = {mu__view_str(links->task_type), links->config.task_index,
                                mu__view_str(words_of(link->why))};

    memcpy(record.msg.body, &refuse, sizeof refuse);
    say_frame(links, link, MU__FRAME_REFUSE, &record.msg);
}

static void say_bye(struct mu__links *links, struct link *link, const char *reason)
{
    union record record = {.msg = {.kind = MU__FRAME_BYE}};
    struct mu__bye bye = {mu__view_str(reason)};

    memcpy(record.msg.body, &bye, sizeof bye);
    say_frame(links, link, MU__FRAME_BYE, &record.msg);
}

/* ---- coming up ---- */

static void come_up(struct mu__links *links, struct link *link)
{
    uint32_t node = links->node_next + 1;

    if (mu__map_set(&links->by_node, node, link) != 0) {
        go_down(links, link, "out of memory");
        return;
    }
    links->node_next = node;
    link->node = node;
    link->backoff_ms = 0;
    drop_words(&link->why);
    drop_words(&link->told);
    if (link->tried != NULL)
        link->tried->count = 0;
    links->counters.links_up++;
    set_state(links, link, UP);
    say(links, MU__LOG_INFO, "/job:%s/task:%" PRIu32 " is up at %s", link->type,
        link->index, link->url);
    links->upcalls.up(links->upcalls.owner, node, link->type, link->index, link->peer,
                      link->url);
}

void mu__links_out_up(struct mu__links *links, uint32_t out)
{
    struct link *link = mu__map_get(&links->by_out, out);

    if (link == NULL)
        return;
    if (link->state == REFUSING) {
        say_refuse(links, link);
        return;
    }
    if (link->state != DIALLING)
        return;
    if (links->wire->ops->place != NULL)
        link->place = links->wire->ops->place(links->wire, out, &link->places_count);
    set_state(links, link, GREETING);
    say_hello(links, link);
    if (link->heard)
        come_up(links, link);
}

void mu__links_out_down(struct mu__links *links, uint32_t out, const char *reason)
{
    struct link *link = mu__map_get(&links->by_out, out);
    char why[REASON_BYTES_MAX];

    if (link == NULL)
        return;
    if (link->state == DIALLING) {
        keep_words(&link->why, reason);
        return;     /* the wire tries again */
    }
    (void)snprintf(why, sizeof why, "connection to it broke: %s", reason);
    go_down(links, link, why);
}

void mu__links_in_down(struct mu__links *links, uint32_t in, const char *reason)
{
    struct link *link = mu__map_get(&links->by_in, in);
    char why[REASON_BYTES_MAX];

    if (link == NULL)
        return;
    (void)snprintf(why, sizeof why, "its connection broke: %s", reason);
    go_down(links, link, why);
}

/* ---- HELLO ---- */

static bool is_client(struct mu__view type)
{
    return mu__view_is(type, "client");
}

/* The link whose very dial a frame answers; NULL: there is none. */
static struct link *answered(const struct mu__links *links,
                             const struct mu__frame_header *header)
{
    return header->life == 0 ? NULL : mu__map_get(&links->by_life, header->life);
}

/* The link that a HELLO is of. Clients have no place in the cluster spec, so several may
 * share an index: they are told apart by incarnation. */
static struct link *link_of(struct mu__links *links, const struct mu__hello *hello,
                            const struct mu__frame_header *header)
{
    struct link *link = answered(links, header);

    if (link != NULL && link->any)
        return link;
    link = first_of_task(links, hello->type, hello->index);
    for (; link != NULL; link = next_in_chain(link)) {
        if (!mu__view_is(hello->type, link->type) || link->index != hello->index)
            continue;
        if (!is_client(hello->type) || link->keep || link->peer == header->from)
            return link;
    }
    return NULL;
}

/* The link by which somebody is told already why he is refused; NULL: none. */
static struct link *refusing_link(const struct mu__links *links, const char *url)
{
    uint64_t key = UINT64_C(1) << 63 | mu__view_hash(mu__view_str(url));
    struct link *link = (struct link *)mu__chains_first(&links->chains, key);

    while (link != NULL && strcmp(link->url, url) != 0)
        link = next_in_chain(link);
    return link;
}

/* He has come to us by another address of this node, or looks for another task. */
static void refuse_again(struct mu__links *links, struct link *link, uint32_t life,
                         const char *reason)
{
    bool is_connected = link->said_ms != 0;

    keep_words(&link->why, reason);
    link->peer_life = life;
    if (!is_connected)
        return;
    link->since_ms = now(links);
    say_refuse(links, link);
}

/* Dial back once, to say why. Bounded by the number of links. */
static void refuse(struct mu__links *links, const struct mu__hello *hello, uint32_t in,
                   const char *reason)
{
    char type[16];
    char url[URL_BYTES_MAX];
    struct link *link;

    mu__view_copy(hello->type, type, sizeof type);
    mu__view_copy(hello->address, url, sizeof url);
    say(links, links->config.only == NULL ? MU__LOG_WARN : MU__LOG_DEBUG,
        "refused /job:%s/task:%" PRIu32 "%s at %s: %s", type, hello->index,
        is_client(hello->type) ? " (`muster check` or another client, no task)" : "", url,
        reason);
    links->wire->ops->drop(links->wire, in);
    link = refusing_link(links, url);
    if (link != NULL) {
        refuse_again(links, link, hello->life, reason);
        return;
    }
    link = link_new(links, type, hello->index, url, REFUSING);
    if (link == NULL)
        return;
    keep_words(&link->why, reason);
    link->peer_life = hello->life;
    if (link->why == NULL || dial(links, link) != 0)
        link_free(links, link);
}

/* Its task left the cluster, or is elsewhere now. */
static bool is_barred(const struct mu__links *links,
                      const struct mu__frame_header *header,
                      const struct mu__hello *hello, char *why, size_t size)
{
    const char *words = mu__barred_why(&links->barred, hello->type, hello->index,
                                       header->from, hello->address);

    if (words != NULL)
        (void)snprintf(why, size, "%s", words);
    return words != NULL;
}

/* Whether somebody else was dialled, and this node was found at that address: a name that
 * leads to several machines, an address that was another task's before. */
static bool is_misled(const struct mu__links *links, const struct mu__hello *hello,
                      char *why, size_t size)
{
    char wanted[16];

    if (hello->wanted_type.size == 0 ||
        (mu__view_is(hello->wanted_type, links->task_type) &&
         hello->wanted_index == links->config.task_index))
        return false;
    mu__view_copy(hello->wanted_type, wanted, sizeof wanted);
    (void)snprintf(why, size,
                   "task /job:%s/task:%" PRIu32 " is not here, but /job:%s/task:%" PRIu32,
                   wanted, hello->wanted_index, links->task_type,
                   links->config.task_index);
    return true;
}

/* Writes why a HELLO cannot be accepted; false when it can. */
static bool is_unfit(const struct mu__links *links, const struct mu__frame_header *header,
                     const struct mu__hello *hello, char *why, size_t size)
{
    char cluster[64];

    mu__view_copy(hello->cluster, cluster, sizeof cluster);
    if (header->version != MU__FRAME_VERSION) {
        (void)snprintf(why, size,
                       "protocol version %u, but /job:%s/task:%" PRIu32
                       " speaks version %u",
                       header->version, links->task_type, links->config.task_index,
                       MU__FRAME_VERSION);
        return true;
    }
    if (!mu__view_is(hello->cluster, links->cluster_name)) {
        (void)snprintf(why, size,
                       "cluster name \"%s\", but /job:%s/task:%" PRIu32
                       " belongs to cluster \"%s\"",
                       cluster, links->task_type, links->config.task_index,
                       links->cluster_name);
        return true;
    }
    if (links->config.only != NULL && !mu__view_is(hello->type, links->config.only)) {
        (void)snprintf(why, size, "%s", links->config.only_why);
        return true;
    }
    if (mu__view_is(hello->type, links->task_type) && !is_client(hello->type) &&
        hello->index == links->config.task_index) {
        (void)snprintf(why, size,
                       "task /job:%s/task:%" PRIu32 " is already played by %s",
                       links->task_type, links->config.task_index, links->address);
        return true;
    }
    return is_misled(links, hello, why, size);
}

/* Whether another process plays the peer's task: one that is up, at another address. A
 * restarted task is at its old one, or its old life is found to be lost. */
static bool is_twin(struct mu__links *links, const struct mu__frame_header *header,
                    const struct mu__hello *hello, char *why, size_t size)
{
    const struct link *link = link_of(links, hello, header);

    if (link == NULL || link->state != UP || link->peer == header->from ||
        mu__view_is(hello->address, address_of(link)))
        return false;
    (void)snprintf(why, size, "task /job:%s/task:%" PRIu32 " is already played by %s",
                   link->type, link->index, address_of(link));
    return true;
}

/* The peer's HELLO has come on `in`. */
static void bind_in(struct mu__links *links, struct link *link, uint32_t in,
                    const struct mu__frame_header *header)
{
    if (mu__map_set(&links->by_in, in, link) != 0) {
        links->wire->ops->drop(links->wire, in);
        return;
    }
    link->in = in;
    link->heard = true;
    link->peer = header->from;
    link->heard_ms = now(links);
    if (link->state == RESTING && dial(links, link) != 0) {
        go_down(links, link, "cannot be dialled");
        return;
    }
    if (link->state != GREETING)
        return;
    if (header->to != links->config.incarnation)
        say_hello(links, link);
    come_up(links, link);
}

static struct link *link_for_hello(struct mu__links *links, const struct mu__hello *hello,
                                   const struct mu__frame_header *header)
{
    struct link *link = link_of(links, hello, header);
    uint64_t incarnation = header->from;
    char type[16];
    char url[URL_BYTES_MAX];

    /* Another incarnation, or the same one over a new connection: the old one has gone,
     * even though its end was not seen yet. */
    if (link != NULL && link->heard) {
        bool keep = link->keep;

        go_down(links, link,
                link->peer == incarnation ? "it connected anew" : "it was restarted");
        if (!keep)
            link = NULL;
    }
    if (link != NULL)
        return link;
    mu__view_copy(hello->type, type, sizeof type);
    mu__view_copy(hello->address, url, sizeof url);
    link = link_new(links, type, hello->index, url, RESTING);
    if (link != NULL && dial(links, link) != 0) {
        say(links, MU__LOG_WARN,
            "/job:%s/task:%" PRIu32 " says its address is \"%s\", which cannot be "
            "dialled", type, hello->index, url);
        link_free(links, link);
        link = NULL;
    }
    return link;
}

/* Whoever answers is that task from now on. */
static bool call(struct mu__links *links, struct link *link,
                 const struct mu__hello *hello)
{
    mu__chains_remove(&links->chains, &link->chained);
    mu__view_copy(hello->type, link->type, sizeof link->type);
    link->index = hello->index;
    if (mu__chains_add(&links->chains, key_of(link), &link->chained) == 0)
        return true;
    go_down(links, link, "out of memory");
    return false;
}

static bool keep_address(struct link *link, struct mu__view address)
{
    char text[URL_BYTES_MAX];

    drop_words(&link->says);
    mu__view_copy(address, text, sizeof text);
    if (strcmp(text, link->url) == 0)
        return true;
    link->says = copy_of(text, sizeof text);
    return link->says != NULL;
}

static void on_hello(struct mu__links *links, uint32_t in,
                     const struct mu__frame_header *header, struct mu__msg *msg)
{
    struct mu__hello *hello = (void *)msg->body;
    char why[REASON_BYTES_MAX];
    struct link *link;

    if (mu__map_get(&links->by_in, in) != NULL)
        return;     /* said twice on one connection: the answer to a question */
    if (links->leaving) {
        links->wire->ops->drop(links->wire, in);
        return;
    }
    if (is_unfit(links, header, hello, why, sizeof why) ||
        is_barred(links, header, hello, why, sizeof why) ||
        is_twin(links, header, hello, why, sizeof why)) {
        refuse(links, hello, in, why);
        return;
    }
    link = link_for_hello(links, hello, header);
    if (link == NULL) {
        links->wire->ops->drop(links->wire, in);
        return;
    }
    if ((link->any && !call(links, link, hello)) ||
        !keep_address(link, hello->address)) {
        links->wire->ops->drop(links->wire, in);
        return;
    }
    link->peer_life = hello->life;
    bind_in(links, link, in, header);
}

/* Who refuses may be another task than the one that was dialled. A link may be up by the
 * peer's own HELLO when ours, of the same life, is refused: then it leads to somebody
 * else. */
static struct link *refused_link(struct mu__links *links,
                                 const struct mu__frame_header *header,
                                 const struct mu__refuse *refusal)
{
    struct link *link = answered(links, header);

    if (link != NULL && link->state != REFUSING)
        return link;
    link = first_of_task(links, refusal->type, refusal->index);
    while (link != NULL && (link->state == UP || link->index != refusal->index ||
                            !mu__view_is(refusal->type, link->type)))
        link = next_in_chain(link);
    return link;
}

static void on_refuse(struct mu__links *links, const struct mu__frame_header *header,
                      struct mu__msg *msg)
{
    struct mu__refuse *refusal = (void *)msg->body;
    struct link *link = refused_link(links, header, refusal);
    char reason[REASON_BYTES_MAX];
    char why[REASON_BYTES_MAX];

    mu__view_copy(refusal->reason, reason, sizeof reason);
    if (link == NULL) {
        say(links, MU__LOG_WARN, "refused by somebody who plays %.*s %" PRIu32 ": %s",
            (int)refusal->type.size, (const char *)refusal->type.data, refusal->index,
            reason);
        return;
    }
    (void)snprintf(why, sizeof why, "it refused us: %.480s", reason);
    say(links, MU__LOG_WARN, "/job:%s/task:%" PRIu32 ": %s", link->type, link->index,
        why);
    links->upcalls.trouble(links->upcalls.owner, link->type, link->index, why);
    try_elsewhere(links, link, why, RETRY_MAX_MS);
}

/* ---- frames ---- */

static void bad_frame(struct mu__links *links, uint32_t in, const char *what)
{
    struct link *link = mu__map_get(&links->by_in, in);
    char why[REASON_BYTES_MAX];

    (void)snprintf(why, sizeof why, "bad bytes: %s", what);
    if (link != NULL) {
        go_down(links, link, why);
        return;
    }
    say(links, MU__LOG_WARN, "dropped a connection: %s", why);
    links->wire->ops->drop(links->wire, in);
}

static int deliver_records(struct mu__links *links, uint32_t in, struct mu__buf *frame,
                           size_t offset, uint32_t count)
{
    char why[128] = "";

    for (uint32_t i = 0; i < count; i++) {
        struct link *link = mu__map_get(&links->by_in, in);
        struct mu__msg *msg;

        if (link == NULL)
            return 0;   /* went down while its messages were delivered */
        if (mu__decode(links->config.schema, links->config.pool, frame, &offset, why,
                       sizeof why, &msg) != 0) {
            bad_frame(links, in, why);
            return -MU_EDATALOSS;
        }
        if (msg == NULL)
            continue;
        links->counters.messages_in++;
        msg->from.node = link->node;
        links->upcalls.deliver(links->upcalls.owner, msg);
    }
    if (offset != frame->size) {
        bad_frame(links, in, "bytes behind the last record");
        return -MU_EDATALOSS;
    }
    return 0;
}

/* Pieces come in order; the first one says how large the whole is. */
static const char *add_piece(struct link *link, const struct mu__piece *piece)
{
    if (piece->offset == 0) {
        if (link->assembling != NULL)
            return "a large message begins inside another one";
        if (piece->total > MU__LINK_MESSAGE_BYTES_MAX)
            return "a message larger than the limit";
        link->assembling = mu__buf_new(piece->total);
        if (link->assembling == NULL)
            return "out of memory for a large message";
        link->assembling_total = piece->total;
    }
    if (link->assembling == NULL || piece->offset != link->assembling->size ||
        piece->total != link->assembling_total || piece->data.size == 0 ||
        piece->data.size > piece->total - piece->offset)
        return "a piece that does not follow its predecessor";
    memcpy(link->assembling->data + piece->offset, piece->data.data, piece->data.size);
    link->assembling->size += piece->data.size;
    return NULL;
}

static void on_piece(struct mu__links *links, struct link *link, struct mu__msg *msg)
{
    const char *wrong = add_piece(link, (void *)msg->body);
    struct mu__buf *whole = link->assembling;

    if (wrong != NULL) {
        bad_frame(links, link->in, wrong);
        return;
    }
    if (whole->size < link->assembling_total)
        return;
    link->assembling = NULL;
    (void)deliver_records(links, link->in, whole, 0, 1);
    mu__buf_unref(whole);
}

/* A frame with one record of the protocol's table: its message, NULL after complaints. */
static struct mu__msg *protocol_record(struct mu__links *links, uint32_t in,
                                       struct mu__buf *frame, uint8_t type)
{
    size_t offset = MU__FRAME_HEADER_BYTES;
    struct mu__msg *msg = NULL;
    char why[128] = "";

    if (mu__decode(&mu__frame_messages, links->config.pool, frame, &offset, why,
                   sizeof why, &msg) != 0) {
        bad_frame(links, in, why);
        return NULL;
    }
    if (msg == NULL || msg->kind != type) {
        bad_frame(links, in, "a frame whose record is of another kind");
        mu__pool_put(links->config.pool, msg);
        return NULL;
    }
    return msg;
}

/* HELLO and REFUSE come from anybody. */
static void on_greeting_frame(struct mu__links *links, uint32_t in, struct mu__buf *frame,
                              const struct mu__frame_header *header)
{
    struct mu__msg *msg = protocol_record(links, in, frame, header->type);

    if (msg == NULL)
        return;
    if (header->type == MU__FRAME_HELLO)
        on_hello(links, in, header, msg);
    else
        on_refuse(links, header, msg);
    mu__pool_put(links->config.pool, msg);
}

static void on_record_frame(struct mu__links *links, struct link *link,
                            struct mu__buf *frame, uint8_t type)
{
    struct mu__msg *msg = protocol_record(links, link->in, frame, type);
    char why[REASON_BYTES_MAX];

    if (msg == NULL)
        return;
    if (type == MU__FRAME_PIECE) {
        on_piece(links, link, msg);
    } else {
        struct mu__bye *bye = (void *)msg->body;

        (void)snprintf(why, sizeof why, "it left: %.*s", (int)bye->reason.size,
                       (const char *)bye->reason.data);
        go_down(links, link, why);
    }
    mu__pool_put(links->config.pool, msg);
}

void mu__links_frame(struct mu__links *links, uint32_t in, struct mu__buf *frame)
{
    struct mu__frame_header header;
    struct link *link;

    links->counters.frames_in++;
    links->counters.bytes_in += frame->size;
    if (mu__frame_read(frame, &header) != 0) {
        bad_frame(links, in, "no frame of muster's");
        return;
    }
    if (header.type == MU__FRAME_HELLO || header.type == MU__FRAME_REFUSE) {
        on_greeting_frame(links, in, frame, &header);
        return;
    }
    link = mu__map_get(&links->by_in, in);
    if (link == NULL || link->state != UP || header.from != link->peer ||
        header.to != links->config.incarnation ||
        (header.life != 0 && header.life != link->life)) {
        links->counters.stale_frames++;
        return;
    }
    link->heard_ms = now(links);
    if (header.type == MU__FRAME_DATA)
        (void)deliver_records(links, in, frame, MU__FRAME_HEADER_BYTES, header.count);
    else if (header.type != MU__FRAME_PING)
        on_record_frame(links, link, frame, header.type);
}

/* ---- sending ---- */

static void send_waiting(struct mu__links *links, struct link *link)
{
    const struct mu__outbox_route route = route_of(links, link);
    uint64_t frames = 0;
    uint64_t bytes = 0;
    int rv;

    if (link->out == 0 || (link->state != UP && link->state != GREETING &&
                           link->state != REFUSING))
        return;
    rv = mu__outbox_send(&link->outbox, &route, &frames, &bytes);
    links->counters.frames_out += frames;
    links->counters.bytes_out += bytes;
    if (frames > 0)
        link->said_ms = now(links);
    if (rv == -MU_ENOMEM)
        go_down(links, link, "out of memory");
    else if (link->outbox.waiting_bytes > MU__LINK_QUEUE_BYTES_MAX &&
             !mu__outbox_has_one(&link->outbox))
        go_down(links, link, "it does not read what it is sent");
}

void mu__links_writable(struct mu__links *links, uint32_t out)
{
    struct link *link = mu__map_get(&links->by_out, out);

    if (link != NULL)
        send_waiting(links, link);
}

void mu__links_flush(struct mu__links *links)
{
    while (links->dirty != NULL) {
        struct link *link = links->dirty;

        undirty(links, link);
        send_waiting(links, link);
    }
}

int mu__links_transmit(struct mu__links *links, struct mu__msg *msg)
{
    struct link *link = mu__map_get(&links->by_node, msg->to.node);
    struct mu__outbox_route route;
    int rv = -MU_EUNAVAILABLE;

    if (link != NULL) {
        route = route_of(links, link);
        rv = mu__outbox_add(&link->outbox, &route, links->config.schema, msg);
        links->counters.messages_out++;
        mark_dirty(links, link);
    }
    mu__pool_put(links->config.pool, msg);
    return rv;
}

/* ---- time ---- */

/* What is known of why a link is not up: what the wire says of the present attempt, or
 * else why the last one ended. */
static const char *why_missing(const struct mu__links *links, const struct link *link)
{
    const char *words = link->out == 0 || link->state != DIALLING
                            ? NULL
                            : links->wire->ops->last_error(links->wire, link->out);

    return words == NULL ? words_of(link->why) : words;
}

static void note_waiting(struct mu__links *links, struct link *link, uint64_t now_ms)
{
    const char *why = why_missing(links, link);

    if (!link->keep || links->leaving || now_ms < link->waiting_note_ms)
        return;
    say(links, MU__LOG_WARN,
        "waiting for /job:%s/task:%" PRIu32 " at %s for %" PRIu64 " s (%s%s%s)",
        link->type, link->index, link->url, (now_ms - link->missing_since_ms) / 1000,
        state_names[link->state], why[0] == '\0' ? "" : "; ", why);
    link->waiting_note_ms = now_ms + link->waiting_step_ms;
    if (link->waiting_step_ms < WAITING_MAX_MS)
        link->waiting_step_ms *= 2;
}

/* Those who wait for the task are told why each attempt fails, once for each reason. */
static void tell_failing(struct mu__links *links, struct link *link)
{
    const char *words = link->out == 0
                            ? NULL
                            : links->wire->ops->last_error(links->wire, link->out);

    if (!link->keep || words == NULL ||
        strncmp(words, words_of(link->told), REASON_BYTES_MAX - 1) == 0)
        return;
    keep_words(&link->told, words);
    links->upcalls.trouble(links->upcalls.owner, link->type, link->index, words);
}

/* All links are looked at together, twice in a heartbeat. One that has said nothing for
 * nearly a heartbeat pings: so a peer does not wait much longer than that. */
static uint64_t tick_step_ms(const struct mu__links *links)
{
    return (links->config.heartbeat_ms + 1) / 2;
}

/* Returns when the link wants the next look. The link may be gone afterwards. */
static uint64_t tick_link(struct mu__links *links, struct link *link, uint64_t now_ms)
{
    const struct mu__links_config *config = &links->config;
    char why[REASON_BYTES_MAX];

    if (link->state != UP && link->state != REFUSING)
        note_waiting(links, link, now_ms);
    switch (link->state) {
    case UP:
        if (now_ms >= link->heard_ms + config->silence_ms) {
            (void)snprintf(why, sizeof why, "silent for %" PRIu64 " ms",
                           now_ms - link->heard_ms);
            go_down(links, link, why);
            return now_ms;
        }
        if (now_ms - link->said_ms >= config->heartbeat_ms - config->heartbeat_ms / 4)
            say_frame(links, link, MU__FRAME_PING, NULL);
        return now_ms + tick_step_ms(links);
    case RESTING:
        if (now_ms < link->retry_ms)
            return link->retry_ms;
        if (dial(links, link) != 0)
            rest(links, link);
        return now_ms + config->heartbeat_ms;
    case GREETING:
        if (now_ms >= link->since_ms + config->silence_ms) {
            try_elsewhere(links, link, "it does not answer the handshake", 0);
            return now_ms;
        }
        return link->since_ms + config->silence_ms;
    case REFUSING:
        if (now_ms >= link->since_ms + REFUSAL_MS) {
            link_free(links, link);
            return now_ms + config->heartbeat_ms;
        }
        return link->since_ms + REFUSAL_MS;
    default:
        tell_failing(links, link);
        if (!link->keep && now_ms >= link->since_ms + config->silence_ms) {
            say(links, MU__LOG_WARN,
                "/job:%s/task:%" PRIu32 " says its address is \"%s\", which cannot be "
                "reached", link->type, link->index, link->url);
            go_down(links, link, "its address cannot be reached");
            return now_ms + config->heartbeat_ms;
        }
        return now_ms + config->heartbeat_ms;
    }
}

/* When this process itself stood still, nobody was silent: nobody was listened to. */
static void forgive_pause(struct mu__links *links, uint64_t now_ms)
{
    uint64_t pause_ms = now_ms - links->tick_ms;

    if (links->tick_ms == 0 || pause_ms < links->config.silence_ms / 2 ||
        pause_ms < 2 * (uint64_t)links->config.heartbeat_ms)
        return;
    say(links, MU__LOG_WARN, "this process stood still for %" PRIu64 " ms", pause_ms);
    for (struct link *link = links->first; link != NULL; link = link->next) {
        if (link->state == UP)
            link->heard_ms = now_ms;
        link->since_ms = now_ms;
    }
}

uint64_t mu__links_tick(struct mu__links *links, uint64_t now_ms)
{
    uint64_t next_ms = now_ms + links->config.heartbeat_ms;
    struct link *next;

    forgive_pause(links, now_ms);
    links->tick_ms = now_ms;
    for (struct link *link = links->first; link != NULL; link = next) {
        uint64_t wanted_ms;

        next = link->next;
        wanted_ms = tick_link(links, link, now_ms);
        if (wanted_ms < next_ms)
            next_ms = wanted_ms;
    }
    return next_ms <= now_ms ? now_ms + 1 : next_ms;
}

/* ---- life ---- */

static int keep_link(struct mu__links *links, const char *type, uint32_t index,
                     const char *url, bool any)
{
    struct link *link = link_new(links, type, index, url, RESTING);
    int rv;

    if (link == NULL)
        return is_too_much(links, type, url, RESTING) ? -MU_EEXHAUSTED : -MU_ENOMEM;
    link->keep = true;
    link->any = any;
    rv = dial(links, link);
    if (rv != 0)
        link_free(links, link);
    return rv;
}

/* The next link of a task, of those that may be up; `link` NULL: the first. */
static struct link *next_of(const struct mu__links *links, const struct link *link,
                            const char *type, uint32_t index)
{
    struct link *at = link == NULL ? first_of_task(links, mu__view_str(type), index)
                                   : next_in_chain(link);

    while (at != NULL &&
           (at->any || at->index != index || strcmp(at->type, type) != 0))
        at = next_in_chain(at);
    return at;
}

int mu__links_dial(struct mu__links *links, const char *type, uint32_t index,
                   const char *url)
{
    return keep_link(links, type, index, url, false);
}

int mu__links_adopt(struct mu__links *links, const char *type, uint32_t index,
                    const char *url)
{
    struct link *link = next_of(links, NULL, type, index);

    mu__barred_remove(&links->barred, type, index);
    if (link == NULL || strcmp(type, "client") == 0)
        return keep_link(links, type, index, url, false);
    link->keep = true;
    return mu__links_move(links, type, index, url);
}

static void begin_parting(struct mu__links *links, struct link *link, const char *reason)
{
    mu__chains_remove(&links->chains, &link->chained);
    link->keep = false;
    links->links_count--;
    links->refusing_count++;
    set_state(links, link, REFUSING);
    say_bye(links, link, reason);
}

/* The owner hears at once that it is gone. What is left of the link says goodbye, and
 * does not hang up before the peer does: else its connections' end could come first, and
 * say nothing. */
static void part(struct mu__links *links, struct link *link, const char *reason)
{
    uint32_t node = link->node;

    if (link->state != UP) {
        link_free(links, link);
        return;
    }
    say(links, MU__LOG_INFO, "hung up on /job:%s/task:%" PRIu32 ": %s", link->type,
        link->index, reason);
    (void)mu__map_remove(&links->by_node, node);
    links->counters.links_up--;
    link->node = 0;
    if (links->refusing_count < MU__LINKS_MAX)
        begin_parting(links, link, reason);
    else
        link_free(links, link);
    links->upcalls.down(links->upcalls.owner, node, reason);
}

static void bar(struct mu__links *links, const char *type, uint32_t index,
                const struct link *life, const char *reason)
{
    if (mu__barred_add(&links->barred, type, index, life == NULL ? 0 : life->peer,
                       life == NULL ? NULL : life->url, reason) != 0)
        say(links, MU__LOG_ERROR, "out of memory: /job:%s/task:%" PRIu32
            " may link to this node although %s", type, index, reason);
}

void mu__links_hangup(struct mu__links *links, const char *type, uint32_t index,
                      const char *reason)
{
    struct link *link = next_of(links, NULL, type, index);
    struct link *next;

    bar(links, type, index, NULL, reason);
    for (; link != NULL; link = next) {
        next = next_of(links, link, type, index);
        part(links, link, reason);
    }
}

void mu__links_allow(struct mu__links *links, const char *type, uint32_t index)
{
    mu__barred_remove(&links->barred, type, index);
}

static bool is_at(const struct link *link, const char *url)
{
    return strcmp(link->url, url) == 0 ||
           (link->heard && strcmp(address_of(link), url) == 0);
}

/* Where it says that it is is where the cluster says so, too. */
static void find_at(struct link *link, const char *url)
{
    if (strcmp(link->url, url) == 0)
        return;
    free(link->url);
    link->url = link->says;
    link->says = NULL;
}

int mu__links_move(struct mu__links *links, const char *type, uint32_t index,
                   const char *url)
{
    struct link *link = next_of(links, NULL, type, index);
    char reason[REASON_BYTES_MAX];
    bool keep;

    if (strlen(url) >= URL_BYTES_MAX)
        return -MU_EEXHAUSTED;
    mu__barred_remove(&links->barred, type, index);
    if (link == NULL)
        return 0;
    if (is_at(link, url)) {
        find_at(link, url);
        return 0;
    }
    (void)snprintf(reason, sizeof reason, "the task is at %s now", url);
    keep = link->keep;
    bar(links, type, index, link, reason);
    part(links, link, reason);
    return keep ? keep_link(links, type, index, url, false) : 0;
}

int mu__links_dial_any(struct mu__links *links, const char *url)
{
    return keep_link(links, MU__LINK_UNKNOWN, 0, url, true);
}

void mu__links_leave(struct mu__links *links, const char *reason)
{
    struct link *next;

    links->leaving = true;
    for (struct link *link = links->first; link != NULL; link = next) {
        next = link->next;
        if (link->state == UP)
            say_bye(links, link, reason);
        else
            link_free(links, link);
    }
}

uint32_t mu__links_count_up(const struct mu__links *links)
{
    return links->counters.links_up;
}

void mu__links_counters(const struct mu__links *links,
                        struct mu__links_counters *ret_counters)
{
    *ret_counters = links->counters;
}

void mu__links_each(const struct mu__links *links,
                    void (*visit)(void *user, const struct mu__link_view *view),
                    void *user)
{
    uint64_t now_ms = now(links);

    for (const struct link *link = links->first; link != NULL; link = link->next) {
        bool is_up = link->state == UP;
        const struct mu__link_view view = {
            .type = link->type,
            .index = link->index,
            .url = link->url,
            .state = state_names[link->state],
            .why = is_up ? "" : why_missing(links, link),
            .for_ms = now_ms - (is_up ? link->since_ms : link->missing_since_ms),
            .node = link->node,
            .is_kept = link->keep,
        };

        if (link->state != REFUSING)
            visit(user, &view);
    }
}

int mu__links_new(const struct mu__links_config *config,
                  const struct mu__links_upcalls *upcalls, struct mu__wire *wire,
                  struct mu__links **ret_links)
{
    struct mu__links *links;

    assert(config->incarnation != 0 && config->heartbeat_ms > 0);
    if (strlen(config->cluster_name) >= sizeof links->cluster_name ||
        strlen(config->task_type) >= sizeof links->task_type ||
        strlen(config->address) >= sizeof links->address)
        return -MU_EINVALID;
    links = calloc(1, sizeof *links);
    if (links == NULL)
        return -MU_ENOMEM;
    links->config = *config;
    (void)snprintf(links->cluster_name, sizeof links->cluster_name, "%s",
                   config->cluster_name);
    (void)snprintf(links->task_type, sizeof links->task_type, "%s", config->task_type);
    (void)snprintf(links->address, sizeof links->address, "%s", config->address);
    links->config.cluster_name = links->cluster_name;
    links->config.task_type = links->task_type;
    links->config.address = links->address;
    links->upcalls = *upcalls;
    links->wire = wire;
    *ret_links = links;
    return 0;
}

void mu__links_free(struct mu__links *links)
{
    if (links == NULL)
        return;
    while (links->first != NULL)
        link_free(links, links->first);
    mu__map_done(&links->by_out);
    mu__map_done(&links->by_in);
    mu__map_done(&links->by_node);
    mu__map_done(&links->by_life);
    mu__chains_done(&links->chains);
    mu__barred_done(&links->barred);
    free(links);
}
