#include "transport/wire/unproven.h"

#include <string.h>

enum {
    GROUP = 8,
    GROUPS = MU__UNPROVEN_SOURCES / GROUP,
    TOKEN = 1000, /* thousandths */
    FULL = MU__UNPROVEN_BURST * TOKEN
};

void mu__unproven_init(struct mu__unproven *unproven, uint64_t seed)
{
    *unproven = (struct mu__unproven){.seed = seed};
}

/* ---- tokens ---- */

static uint64_t mix_source_bits(uint64_t bits)
{
    bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
    return bits ^ bits >> 31;
}

static struct mu__source_tokens *group_of(struct mu__unproven *unproven,
                                          const uint8_t bytes[16])
{
    uint64_t halves[2];

    memcpy(halves, bytes, sizeof halves);
    return unproven->sources +
           mix_source_bits(mix_source_bits(halves[0] ^ unproven->seed) ^ halves[1]) %
               GROUPS * GROUP;
}

/* An IPv6 address comes with a network of 64 bits: all of it counts as one. */
static void network_of(const struct mu__source *source, uint8_t bytes[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    memcpy(bytes, source->bytes, 16);
    if (memcmp(bytes, mapped, sizeof mapped) != 0)
        memset(bytes + 8, 0, 8);
}

/* NULL: not remembered. */
static struct mu__source_tokens *find_tokens(struct mu__unproven *unproven,
                                             const uint8_t bytes[16])
{
    struct mu__source_tokens *group = group_of(unproven, bytes);

    for (int i = 0; i < GROUP; i++)
        if (group[i].used && memcmp(group[i].bytes, bytes, 16) == 0)
            return &group[i];
    return NULL;
}

static struct mu__source_tokens *new_tokens(struct mu__unproven *unproven,
                                            const uint8_t bytes[16], uint64_t now_ms)
{
    struct mu__source_tokens *group = group_of(unproven, bytes);
    struct mu__source_tokens *oldest = &group[0];

    for (int i = 0; i < GROUP && oldest->used; i++)
        if (!group[i].used || group[i].at_ms < oldest->at_ms)
            oldest = &group[i];
    *oldest =
        (struct mu__source_tokens){.at_ms = now_ms, .thousandths = FULL, .used = true};
    memcpy(oldest->bytes, bytes, 16);
    return oldest;
}

static void refill_tokens(struct mu__source_tokens *tokens, uint64_t now_ms)
{
    uint64_t more = (now_ms - tokens->at_ms) * MU__UNPROVEN_PER_SECOND;

    tokens->at_ms = now_ms;
    tokens->thousandths =
        more >= FULL - tokens->thousandths ? FULL : tokens->thousandths + (uint32_t)more;
}

bool mu__unproven_admits(struct mu__unproven *unproven, const struct mu__source *source,
                         uint64_t now_ms)
{
    struct mu__source_tokens *tokens;
    uint8_t bytes[16];

    if (!source->is_limited)
        return true;
    network_of(source, bytes);
    tokens = find_tokens(unproven, bytes);
    if (tokens == NULL)
        tokens = new_tokens(unproven, bytes, now_ms);
    refill_tokens(tokens, now_ms);
    if (tokens->thousandths < TOKEN)
        return false;
    tokens->thousandths -= TOKEN;
    return true;
}

/* NULL: the address is not limited, or not remembered. */
static struct mu__source_tokens *tokens_of(struct mu__unproven *unproven,
                                           const struct mu__source *source)
{
    uint8_t bytes[16];

    if (!source->is_limited)
        return NULL;
    network_of(source, bytes);
    return find_tokens(unproven, bytes);
}

static uint32_t thousandths_of(uint64_t us)
{
    uint64_t thousandths = us * TOKEN / MU__UNPROVEN_TOKEN_US;

    return thousandths > FULL ? FULL : (uint32_t)thousandths;
}

/* A connection has proven itself. */
static void give_token_back(struct mu__unproven *unproven,
                            const struct mu__unproven_entry *entry)
{
    struct mu__source_tokens *tokens = tokens_of(unproven, &entry->source);
    uint32_t more = TOKEN + thousandths_of(entry->spent_us);

    if (tokens != NULL)
        tokens->thousandths =
            more >= FULL - tokens->thousandths ? FULL : tokens->thousandths + more;
    unproven->spent_us -=
        entry->spent_us < unproven->spent_us ? entry->spent_us : unproven->spent_us;
}

/* ---- processor time ---- */

bool mu__unproven_has_time(struct mu__unproven *unproven, uint64_t now_ms)
{
    uint64_t less = (now_ms - unproven->spent_at_ms) * (MU__UNPROVEN_SECOND_US / 1000);

    unproven->spent_at_ms = now_ms;
    unproven->spent_us -= less < unproven->spent_us ? less : unproven->spent_us;
    return unproven->spent_us < MU__UNPROVEN_BURST_US;
}

void mu__unproven_spend(struct mu__unproven *unproven, struct mu__unproven_entry *entry,
                        uint64_t us)
{
    struct mu__source_tokens *tokens = tokens_of(unproven, &entry->source);
    uint32_t less = thousandths_of(us);

    entry->spent_us += us;
    unproven->spent_us += us;
    if (tokens != NULL)
        tokens->thousandths -= less < tokens->thousandths ? less : tokens->thousandths;
}

/* ---- entries ---- */

struct mu__unproven_entry *mu__unproven_add(struct mu__unproven *unproven,
                                            struct mu__unproven_entry *entry,
                                            const struct mu__source *source,
                                            uint64_t now_ms)
{
    entry->source = *source;
    entry->since_ms = now_ms;
    entry->is_listed = true;
    mu__list_append(&unproven->entries, &entry->listed);
    unproven->count++;
    return unproven->count > MU__UNPROVEN_MAX ? mu__unproven_oldest(unproven) : NULL;
}

struct mu__unproven_entry *mu__unproven_add_session(struct mu__unproven *unproven,
                                                    struct mu__unproven_entry *entry)
{
    entry->has_session = true;
    mu__list_append(&unproven->sessions, &entry->in_session);
    unproven->sessions_count++;
    return unproven->sessions_count <= MU__UNPROVEN_SESSIONS_MAX
               ? NULL
               : MU__LIST_FIRST(&unproven->sessions, struct mu__unproven_entry,
                                in_session);
}

void mu__unproven_remove(struct mu__unproven *unproven, struct mu__unproven_entry *entry)
{
    if (!entry->is_listed)
        return;
    entry->is_listed = false;
    mu__list_remove(&unproven->entries, &entry->listed);
    unproven->count--;
    if (!entry->has_session)
        return;
    entry->has_session = false;
    mu__list_remove(&unproven->sessions, &entry->in_session);
    unproven->sessions_count--;
}

void mu__unproven_prove(struct mu__unproven *unproven, struct mu__unproven_entry *entry)
{
    if (!entry->is_listed)
        return;
    give_token_back(unproven, entry);
    mu__unproven_remove(unproven, entry);
}

struct mu__unproven_entry *mu__unproven_oldest(const struct mu__unproven *unproven)
{
    return MU__LIST_FIRST(&unproven->entries, struct mu__unproven_entry, listed);
}

struct mu__unproven_entry *mu__unproven_overdue(const struct mu__unproven *unproven,
                                                uint64_t now_ms)
{
    struct mu__unproven_entry *oldest = mu__unproven_oldest(unproven);

    return oldest != NULL && now_ms - oldest->since_ms >= MU__UNPROVEN_MS ? oldest : NULL;
}
