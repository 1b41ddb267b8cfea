/* The system's look-ups of names, which hang until the test lets them go: the
 * getaddrinfo of a program that includes this takes the place of the C library's. */
#ifndef MU_TESTS_REAL_HANGING_DNS_H
#define MU_TESTS_REAL_HANGING_DNS_H

#include <muster/error.h>

#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>

static struct hanging_dns {
    pthread_mutex_t lock;       /* guards all */
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

static inline void dns_wait(const unsigned *counter, unsigned count)
{
    (void)pthread_mutex_lock(&dns.lock);
    while (*counter < count)
        (void)pthread_cond_wait(&dns.changed, &dns.lock);
    (void)pthread_mutex_unlock(&dns.lock);
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
