/* Log lines about requests that have waited for long. */
#include "actors/agent/call_handlers.h"

#include <stdio.h>

enum { NOTE_FIRST_MS = 5000, NOTE_STEP_MAX_MS = 60000 };

void mu__agent_on_wait_note(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__wait_note *body = mu__body(msg);
    char words[MU__ERROR_TEXT_MAX + 1];

    if (msg->from.node != MU__NODE_SELF &&
        (!mu__agent_is_from_host(a, msg) ||
         mu__agent_find_request(a, body->token) == NULL))
        return;
    mu__view_copy(body->message, words, sizeof words);
    mu__log(ctx, MU__LOG_WARN, "waiting: %s", words);
}

/* `count`: all requests that wait for long, the first one included. */
static void log_waiting_requests(struct mu__ctx *ctx, struct agent *a,
                                 struct mu__agent_request *first, unsigned count)
{
    char name[AGENT_WORDS_MAX];
    char host[AGENT_WORDS_MAX];
    char more[48] = "";

    mu__agent_request_name(first, name, sizeof name);
    mu__agent_host_words(ctx, a, host, sizeof host);
    if (count > 1)
        (void)snprintf(more, sizeof more, "; so do %u others", count - 1);
    mu__log(ctx, MU__LOG_WARN, "waiting: %s %s for %llu s: %s%s", name, first->kind->late,
            (unsigned long long)((mu__now_ms(ctx) - first->since_ms) / 1000), host, more);
}

/* Only open requests: of all others the host itself names the missing tasks. */
void mu__agent_wait_log_tick(struct mu__ctx *ctx, struct agent *a)
{
    struct mu__agent_request *first = NULL;
    uint64_t now_ms = mu__now_ms(ctx);
    uint64_t waited_ms;
    unsigned count = 0;

    if (now_ms < a->heartbeat.wait_log_ms)
        return;
    a->heartbeat.wait_log_ms = now_ms + NOTE_FIRST_MS;
    for (struct mu__agent_request *at = agent_first_request(a); at != NULL;
         at = agent_next_request(at)) {
        if (!at->kind->is_open || at->kind->make_message == NULL ||
            now_ms - at->since_ms < NOTE_FIRST_MS)
            continue;
        if (first == NULL || at->since_ms < first->since_ms)
            first = at;
        count++;
    }
    if (first == NULL)
        return;
    log_waiting_requests(ctx, a, first, count);
    waited_ms = now_ms - first->since_ms;
    a->heartbeat.wait_log_ms =
        now_ms + (waited_ms < NOTE_STEP_MAX_MS ? waited_ms : NOTE_STEP_MAX_MS);
}
