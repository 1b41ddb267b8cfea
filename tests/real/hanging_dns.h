/* The system's look-ups of names, which hang until the test lets them go: the
 * getaddrinfo of a program that includes this takes the place of the C library's. */
#ifndef MU_TESTS_REAL_HANGING_DNS_H
#define MU_TESTS_REAL_HANGING_DNS_H

#include "tests/support/test.h"

#include <muster/error.h>

#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

enum { DNS_SOON_S = 30 };

static struct hanging_dns {
    pthread_mutex_t lock; /* guards all */
    pthread_cond_t changed;
    bool answers;
    unsigned entered;
    unsigned left;
} dns = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

MU_EXPORT int getaddrinfo(const char *restrict node, const char *restrict service,
                          const struct addrinfo *restrict hints,
                          struct addrinfo **restrict res)
{
    (void)node;
    (void)service;
    (void)hints;
    (void)res;
    (void)pthread_mutex_lock(&dns.lock);
    dns.entered++;
    (void)pthread_cond_broadcast(&dns.changed);
    while (!dns.answers)
        (void)pthread_cond_wait(&dns.changed, &dns.lock);
    dns.left++;
    (void)pthread_cond_broadcast(&dns.changed);
    (void)pthread_mutex_unlock(&dns.lock);
    return EAI_AGAIN;
}

/* Of a counter of `dns`, while threads are at work. */
static inline unsigned dns_count(const unsigned *counter)
{
    unsigned count;

    (void)pthread_mutex_lock(&dns.lock);
    count = *counter;
    (void)pthread_mutex_unlock(&dns.lock);
    return count;
}

/* By the clock that conditions go by which were told of none. */
static inline void dns_wait(const unsigned *counter, unsigned count)
{
    struct timespec end;
    unsigned last;
    int rv = 0;

    (void)clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += DNS_SOON_S;
    (void)pthread_mutex_lock(&dns.lock);
    while (*counter < count && rv == 0)
        rv = pthread_cond_timedwait(&dns.changed, &dns.lock, &end);
    last = *counter;
    (void)pthread_mutex_unlock(&dns.lock);
    if (last < count)
        fail_msg("%u of %u look-ups have %s within %d s", last, count,
                 counter == &dns.entered ? "begun" : "ended", (int)DNS_SOON_S);
}

/* Whether look-ups return, those that hang and those that come. */
static inline void dns_answer(bool answers)
{
    (void)pthread_mutex_lock(&dns.lock);
    dns.answers = answers;
    (void)pthread_cond_broadcast(&dns.changed);
    (void)pthread_mutex_unlock(&dns.lock);
}

#endif
