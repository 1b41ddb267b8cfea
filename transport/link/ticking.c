/* The timers of links: heartbeats, silence, handshakes that are not answered, dialling
 * again. */
#include "transport/link/internal.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    PARTING_MS = 1000, /* a PARTING link is closed after this time */
    LOOK_MS = 2        /* after a lost link was dialled: whether it is refused; doubles */
};

void mu__links_hasten(struct mu__links *links, uint64_t due_ms)
{
    if (due_ms < links->due_ms)
        links->due_ms = due_ms;
}

uint64_t mu__links_due_ms(const struct mu__links *links)
{
    return links->due_ms;
}

/* All links are checked twice in a heartbeat. A link that has sent nothing for three
 * quarters of a heartbeat pings, so a peer hears from it about once in a heartbeat. */
static uint64_t tick_step_ms(const struct mu__links *links)
{
    return (links->config.heartbeat_ms + 1) / 2;
}

/* The next check of an attempt: when it counts as unanswered, or `next_ms` if that is
 * earlier. */
static uint64_t next_look_ms(const struct mu__link *link, uint64_t now_ms,
                             uint64_t next_ms)
{
    uint64_t answer_ms = link->times.since_ms + MU__LINK_ANSWER_MS;

    return now_ms < answer_ms && answer_ms < next_ms ? answer_ms : next_ms;
}

/* The same for one whose connection is being made: soon again if the link was lost. */
static uint64_t dialling_look_ms(struct mu__links *links, struct mu__link *link,
                                 uint64_t now_ms)
{
    uint64_t next_ms = next_look_ms(link, now_ms, now_ms + links->config.heartbeat_ms);
    uint64_t passed_ms = now_ms - link->times.since_ms;
    uint64_t soon_ms = now_ms + (passed_ms < LOOK_MS ? LOOK_MS : passed_ms);

    return link->retry.is_lost && soon_ms < next_ms ? soon_ms : next_ms;
}

/* When a peer showed last that it lives: by what it sent, or, while that is not read, by
 * what it took. */
static uint64_t alive_ms(const struct mu__link *link)
{
    const struct mu__link_times *times = &link->times;

    return link->backlog.is_unread && times->taken_ms > times->heard_ms ? times->taken_ms
                                                                        : times->heard_ms;
}

/* Returns when the link is to be checked next. The link may be freed. */
static uint64_t tick_link(struct mu__links *links, struct mu__link *link, uint64_t now_ms)
{
    const struct mu__links_config *config = &links->config;
    char why[MU__LINK_REASON_BYTES];

    if (link->state != MU__LINK_UP && link->state != MU__LINK_PARTING)
        mu__link_note_waiting(links, link, now_ms);
    switch (link->state) {
    case MU__LINK_UP:
        if (now_ms >= alive_ms(link) + config->silence_ms) {
            (void)snprintf(why, sizeof why, "%s for %" PRIu64 " ms",
                           link->backlog.is_unread
                               ? "it does not read what it asked for: silent"
                               : "silent",
                           now_ms - alive_ms(link));
            mu__link_go_down(links, link, why);
            return now_ms;
        }
        if (now_ms - link->times.said_ms >=
            config->heartbeat_ms - config->heartbeat_ms / 4)
            mu__link_say(links, link, MU__FRAME_PING, NULL);
        return now_ms + tick_step_ms(links);
    case MU__LINK_RESTING:
        if (now_ms < link->retry.due_ms)
            return link->retry.due_ms;
        if (mu__link_dial(links, link) != 0)
            mu__link_rest(links, link);
        return dialling_look_ms(links, link, now_ms);
    case MU__LINK_GREETING:
        if (now_ms >= link->times.since_ms + config->silence_ms) {
            mu__link_try_elsewhere(links, link, "it does not answer the handshake", 0);
            return now_ms;
        }
        mu__link_report_failing(links, link);
        return next_look_ms(link, now_ms, link->times.since_ms + config->silence_ms);
    case MU__LINK_PARTING:
        if (now_ms >= link->times.since_ms + PARTING_MS) {
            mu__link_free(links, link);
            return now_ms + config->heartbeat_ms;
        }
        return link->times.since_ms + PARTING_MS;
    default:
        mu__link_report_failing(links, link);
        return dialling_look_ms(links, link, now_ms);
    }
}

/* After a time in which this process itself stood still, no peer counts as silent:
 * nothing was read. */
static void forgive_pause(struct mu__links *links, uint64_t now_ms)
{
    uint64_t pause_ms = now_ms - links->tick_ms;

    if (links->tick_ms == 0 || pause_ms < links->config.silence_ms / 2 ||
        pause_ms < 2 * (uint64_t)links->config.heartbeat_ms)
        return;
    mu__links_log(links, MU__LOG_WARN, "this process stood still for %" PRIu64 " ms",
                  pause_ms);
    for (struct mu__link *link = mu__links_first(links); link != NULL;
         link = mu__links_next(link)) {
        if (link->state == MU__LINK_UP)
            link->times.heard_ms = now_ms;
        link->times.since_ms = now_ms;
        link->times.taken_ms = now_ms;
    }
}

uint64_t mu__links_tick(struct mu__links *links, uint64_t now_ms)
{
    uint64_t next_ms = now_ms + links->config.heartbeat_ms;
    struct mu__link *next;

    forgive_pause(links, now_ms);
    links->tick_ms = now_ms;
    links->due_ms = UINT64_MAX;
    for (struct mu__link *link = mu__links_first(links); link != NULL; link = next) {
        uint64_t requested_ms;

        next = mu__links_next(link);
        requested_ms = tick_link(links, link, now_ms);
        if (requested_ms < next_ms)
            next_ms = requested_ms;
    }
    mu__links_hasten(links, next_ms);
    if (links->due_ms <= now_ms)
        links->due_ms = now_ms + 1;
    return links->due_ms;
}
