/* Sources of a test: a function that answers one request, at once. */
#ifndef MU_TESTS_FAKE_SOURCES_H
#define MU_TESTS_FAKE_SOURCES_H

#include "resolver/engine/exchange.h"

struct fake_sources {
    struct mu__sources base; /* first: operations cast */

    /* Fill in exchange->answer. */
    void (*answer)(struct fake_sources *fake, struct mu__exchange *exchange);
};

static inline void fake_sources_answer(struct mu__sources *base,
                                       struct mu__exchange *const *batch, size_t count,
                                       uint64_t end_ms)
{
    struct fake_sources *fake = (struct fake_sources *)base;

    (void)end_ms;
    for (size_t i = 0; i < count; i++) {
        if (!batch[i]->is_sent)
            continue;
        fake->answer(fake, batch[i]);
        mu__exchange_answered(batch[i]);
    }
}

/* There is no query above them: nothing pauses. */
static inline enum mu__pause fake_sources_pause(struct mu__sources *base, uint64_t due_ms,
                                                bool may_hurry)
{
    (void)base;
    (void)due_ms;
    (void)may_hurry;
    return MU__PAUSE_STOPPED;
}

static inline uint64_t fake_sources_zero(struct mu__sources *base)
{
    (void)base;
    return 0;
}

static inline void fake_sources_init(struct fake_sources *fake,
                                     void (*answer)(struct fake_sources *fake,
                                                    struct mu__exchange *exchange))
{
    static const struct mu__sources_ops ops = {fake_sources_answer, fake_sources_pause,
                                               fake_sources_zero, fake_sources_zero};

    *fake = (struct fake_sources){{&ops}, answer};
}

#endif
