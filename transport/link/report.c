/* Reports on links: log lines, reasons for failing, counters, and a view of each link. */
#include "transport/link/internal.h"

#include "runtime/base/printable.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAITING_MAX_MS = 60000 };

static const char *const state_names[MU__LINK_STATES_COUNT] = {
    "resting", "dialling", "greeting", "up", "parting"};

/* ---- log lines and texts ---- */

enum { LINE_BYTES = MU__LINK_REASON_BYTES + MU__LINK_URL_BYTES + 192 };

static void write_link_line(const struct mu__links *links, enum mu__log_level level,
                            const char *line)
{
    char shown[LINE_BYTES];

    mu__printable(line, shown, sizeof shown);
    links->config.world->ops->log(links->config.world, level, "links", shown);
}

void mu__links_log(const struct mu__links *links, enum mu__log_level level,
                   const char *format, ...)
{
    char line[LINE_BYTES];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    write_link_line(links, level, line);
}

/* `line` has LINE_BYTES. */
static void write_limited(const struct mu__links *links, enum mu__log_level level,
                          char *line, uint64_t hidden)
{
    size_t used = strlen(line);

    if (hidden > 0)
        (void)snprintf(line + used, LINE_BYTES - used,
                       " (%" PRIu64 " more lines about peers were left out)", hidden);
    write_link_line(links, level, line);
}

void mu__links_log_limited(struct mu__links *links, enum mu__log_level level,
                           const char *format, ...)
{
    char line[LINE_BYTES];
    uint64_t hidden = 0;
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (mu__log_limit_show_line(&links->peers_log, line, mu__links_now(links), &hidden))
        write_limited(links, level, line, hidden);
}

void mu__links_log_peer(struct mu__links *links, enum mu__log_level level,
                        const char *address, const char *format, ...)
{
    char line[LINE_BYTES];
    uint64_t hidden = 0;
    va_list args;

    if (!mu__log_limit_show(&links->peers_log, address, mu__links_now(links), &hidden))
        return;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    write_limited(links, level, line, hidden);
}

char *mu__link_copy(const char *words, size_t bytes_max)
{
    size_t size = strnlen(words, bytes_max - 1);
    char *copy = malloc(size + 1);

    if (copy == NULL)
        return NULL;
    memcpy(copy, words, size);
    copy[size] = '\0';
    return copy;
}

void mu__link_keep_words(char **at, const char *words)
{
    char *copy = words[0] == '\0' ? NULL : mu__link_copy(words, MU__LINK_REASON_BYTES);

    free(*at);
    *at = copy;
}

/* Whether the first attempt has had no answer for MU__LINK_ANSWER_MS. */
static bool is_unanswered(const struct mu__links *links, const struct mu__link *link)
{
    return (link->state == MU__LINK_DIALLING || link->state == MU__LINK_GREETING) &&
           link->why == NULL &&
           mu__links_now(links) >= link->times.since_ms + MU__LINK_ANSWER_MS;
}

/* The wire's error of the present attempt; NULL: nothing is known. */
static const char *wire_words(const struct mu__links *links, const struct mu__link *link)
{
    const char *words = link->state != MU__LINK_DIALLING
                            ? NULL
                            : links->wire->ops->last_error(links->wire, link->connection);

    return words == NULL && is_unanswered(links, link) ? "nothing has answered yet"
                                                       : words;
}

/* Why a link is not up: the wire's error, or else why the last attempt ended. */
static const char *get_missing_reason(const struct mu__links *links,
                                      const struct mu__link *link)
{
    const char *words = wire_words(links, link);

    return words == NULL ? mu__link_words(link->why) : words;
}

/* ---- missing tasks ---- */

void mu__link_note_waiting(struct mu__links *links, struct mu__link *link,
                           uint64_t now_ms)
{
    const char *why = get_missing_reason(links, link);

    if (!mu__link_is_retained(link) || link->left || links->leaving ||
        now_ms < link->missing.note_ms)
        return;
    mu__links_log(links, MU__LOG_WARN,
                  "waiting for /job:%s/task:%" PRIu32 " at %s for %" PRIu64 " s (%s%s%s)",
                  link->type, link->index, link->url,
                  (now_ms - link->missing.since_ms) / 1000, state_names[link->state],
                  why[0] == '\0' ? "" : "; ", why);
    link->missing.note_ms = now_ms + link->missing.step_ms;
    if (link->missing.step_ms < WAITING_MAX_MS)
        link->missing.step_ms *= 2;
}

void mu__link_report_failing(struct mu__links *links, struct mu__link *link)
{
    const char *words = wire_words(links, link);

    if (!mu__link_is_retained(link) || words == NULL ||
        strncmp(words, mu__link_words(link->reported_error), MU__LINK_REASON_BYTES - 1) ==
            0)
        return;
    link->retry.is_lost = false;
    mu__link_keep_words(&link->reported_error, words);
    links->upcalls.trouble(links->upcalls.owner, link->type, link->index, words);
}

/* ---- counters and views ---- */

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
    uint64_t now_ms = mu__links_now(links);

    for (const struct mu__link *link = mu__links_first(links); link != NULL;
         link = mu__links_next(link)) {
        bool is_up = link->state == MU__LINK_UP;
        const struct mu__link_view view = {
            .type = link->type,
            .index = link->index,
            .url = link->url,
            .state = state_names[link->state],
            .why = is_up ? "" : get_missing_reason(links, link),
            .for_ms = now_ms - (is_up ? link->times.since_ms : link->missing.since_ms),
            .node = link->node,
            .is_retained = mu__link_is_retained(link),
            .is_taken = link->missing.taken_since_ms != 0,
        };

        if (link->state != MU__LINK_PARTING)
            visit(user, &view);
    }
}
