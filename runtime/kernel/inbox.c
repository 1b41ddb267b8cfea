/* The inbox. A push publishes the message with its release, the drain's acquire sees it;
 * that both it and the look are sequentially consistent is for a consumer that says when
 * it sleeps.
 * The consumer takes whole lists and never single messages, so a message that is pushed
 * again at the same address (the ABA case) does no harm: the push only compares. */
#include "runtime/kernel/inbox.h"

#include "muster/error.h"

#include <assert.h>

/* What a closed inbox points to. Only its address is used. */
static struct mu__msg closed_mark;

void mu__inbox_init(struct mu__inbox *inbox)
{
    atomic_init(&inbox->newest, NULL);
}

int mu__inbox_push(struct mu__inbox *inbox, struct mu__msg *msg)
{
    struct mu__msg *newest = atomic_load_explicit(&inbox->newest, memory_order_relaxed);

    assert(msg != NULL);
    do {
        if (newest == &closed_mark)
            return -MU_ECLOSED;
        msg->next = newest;
    } while (!atomic_compare_exchange_weak_explicit(
        &inbox->newest, &newest, msg, memory_order_seq_cst, memory_order_relaxed));
    return newest == NULL ? 1 : 0;
}

static struct mu__msg *reverse(struct mu__msg *newest)
{
    struct mu__msg *oldest = NULL;

    while (newest != NULL) {
        struct mu__msg *next = newest->next;

        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

struct mu__msg *mu__inbox_drain(struct mu__inbox *inbox)
{
    struct mu__msg *newest = atomic_load_explicit(&inbox->newest, memory_order_relaxed);

    if (newest == NULL)
        return NULL;
    newest = atomic_exchange_explicit(&inbox->newest, NULL, memory_order_acquire);
    assert(newest != &closed_mark);
    return reverse(newest);
}

bool mu__inbox_is_empty(const struct mu__inbox *inbox)
{
    return atomic_load(&inbox->newest) == NULL;
}

struct mu__msg *mu__inbox_close(struct mu__inbox *inbox)
{
    struct mu__msg *newest =
        atomic_exchange_explicit(&inbox->newest, &closed_mark, memory_order_acq_rel);

    assert(newest != &closed_mark);
    return reverse(newest);
}
