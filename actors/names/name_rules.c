#include "actors/names/name_rules.h"

#include "muster/actor.h"
#include "runtime/base/text.h"

#include <string.h>

int mu__name_check(struct mu__view name, mu_error *ret_error)
{
    const uint8_t *bytes = name.data;
    bool is_fine = name.size > 0 && name.size <= MU__ACTOR_NAME_MAX &&
                   mu__utf8_valid(name.data, name.size);

    for (uint32_t i = 0; is_fine && i < name.size; i++)
        is_fine = bytes[i] >= 32 && bytes[i] != 127 && bytes[i] != '#' && bytes[i] != '/';
    if (is_fine)
        return 0;
    return mu_error_set(
        ret_error, -MU_EINVALID,
        "the name of an actor has 1 to %d bytes of UTF-8 without '#', '/' "
        "and control characters, \"%.*s\" has %u",
        MU__ACTOR_NAME_MAX, name.size > 80 ? 80 : (int)name.size,
        name.size == 0 ? "" : (const char *)name.data, name.size);
}

/* ---- where ---- */

static int compare_candidates(const struct mu__name_candidate *a,
                              const struct mu__name_candidate *b)
{
    int order = strcmp(a->type, b->type);

    return order != 0 ? order : (a->index > b->index) - (a->index < b->index);
}

bool mu__name_is_better(const struct mu__name_candidate *offer,
                        const struct mu__name_candidate *best)
{
    if (!offer->offers || offer->drains || offer->starting >= MU__NAME_STARTS_MAX)
        return false;
    if (best == NULL || offer->actors != best->actors)
        return best == NULL || offer->actors < best->actors;
    return compare_candidates(offer, best) < 0;
}

bool mu__name_types_have(struct mu__view types, struct mu__view type)
{
    const char *at = types.data;
    const char *end = types.size == 0 ? at : at + types.size;

    while (at < end) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        size_t size = (size_t)((line == NULL ? end : line) - at);

        if (size == type.size && memcmp(at, type.data, size) == 0)
            return true;
        at += size + 1;
    }
    return false;
}

/* ---- again ---- */

static bool is_to_restart(uint32_t policy, enum mu__name_end end)
{
    if (end == MU__NAME_MOVED)
        return true;
    if (policy == MU_RESTART_NEVER)
        return false;
    return policy == MU_RESTART_ALWAYS || end != MU__NAME_STOPPED;
}

static uint32_t count_recent(const struct mu__name_history *history, uint32_t within_ms,
                             uint64_t now_ms)
{
    uint32_t remembered =
        history->count < MU__NAME_RESTARTS_MAX ? history->count : MU__NAME_RESTARTS_MAX;
    uint32_t recent = 0;

    for (uint32_t i = 0; i < remembered; i++)
        recent += now_ms - history->times_ms[i] < within_ms;
    return recent;
}

/* Half of it is chance, so that many that end at once do not begin at once. */
static uint64_t get_backoff(uint32_t recent, uint64_t chance)
{
    uint64_t most_ms =
        recent > 9 ? MU__NAME_BACKOFF_MAX_MS : (uint64_t)MU__NAME_BACKOFF_MS << recent;

    if (most_ms > MU__NAME_BACKOFF_MAX_MS)
        most_ms = MU__NAME_BACKOFF_MAX_MS;
    return most_ms / 2 + chance % (most_ms / 2 + 1);
}

enum mu__name_verdict mu__name_judge(const struct mu__name_limits *limits,
                                     enum mu__name_end end, uint64_t now_ms,
                                     uint64_t chance, struct mu__name_history *history,
                                     uint64_t *ret_delay_ms)
{
    uint32_t recent = count_recent(history, limits->within_ms, now_ms);

    if (!is_to_restart(limits->policy, end))
        return end == MU__NAME_STOPPED ? MU__NAME_FORGET : MU__NAME_GIVE_UP;
    *ret_delay_ms = 0;
    if (end == MU__NAME_MOVED)
        return MU__NAME_AGAIN;
    if (recent >= limits->restarts)
        return MU__NAME_GIVE_UP;
    *ret_delay_ms = get_backoff(recent, chance);
    history->times_ms[history->count++ % MU__NAME_RESTARTS_MAX] = now_ms;
    return MU__NAME_AGAIN;
}
