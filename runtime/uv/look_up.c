/* A look-up job belongs to its waiter until it is done, and to its thread once it is
 * dropped. */
#define _GNU_SOURCE /* EAI_NODATA */

#include "runtime/uv/look_up.h"

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NS_PER_MS = 1000000 };

/* A call of mu__look_up, on its stack. */
struct waiter {
    struct mu__look_up_job *look_up; /* NULL: it is done */
    unsigned timeout_ms;
    mu_error error; /* the result, when `addresses` has none */
    struct mu__addresses addresses;
};

/* ---- Results ---- */

static bool has_found_address(const struct mu__addresses *addresses,
                              const struct addrinfo *one)
{
    for (unsigned i = 0; i < addresses->count; i++)
        if (addresses->items[i].any.sa_family == one->ai_family &&
            memcmp(&addresses->items[i], one->ai_addr, one->ai_addrlen) == 0)
            return true;
    return false;
}

static void take_addrinfo(const struct addrinfo *found, struct mu__addresses *addresses)
{
    for (; found != NULL && addresses->count < MU__ADDRESSES_MAX; found = found->ai_next)
        if ((found->ai_family == AF_INET || found->ai_family == AF_INET6) &&
            !has_found_address(addresses, found))
            memcpy(&addresses->items[addresses->count++], found->ai_addr,
                   found->ai_addrlen);
}

int mu__look_up_code(int status)
{
    static const struct {
        int status;
        int code;
    } codes[] = {
        {EAI_NONAME, -MU_ENOTFOUND},
        {EAI_NODATA, -MU_ENOTFOUND},
        {EAI_ADDRFAMILY, -MU_ENOTFOUND},
        {EAI_MEMORY, -MU_ENOMEM},
    };

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].status == status)
            return codes[i].code;
    return -MU_EUNAVAILABLE;
}

static void fail_look_up(struct waiter *waiter, int status, int system_error)
{
    (void)mu_error_set(&waiter->error, mu__look_up_code(status), "%s",
                       status == EAI_SYSTEM ? strerror(system_error)
                                            : gai_strerror(status));
}

/* ---- The job ---- */

/* On a thread. */
static void run_look_up(struct mu__blocking_job *job)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct mu__look_up_job *look_up = (struct mu__look_up_job *)job;
    struct addrinfo *found = NULL;
    char port[8];

    (void)snprintf(port, sizeof port, "%u", look_up->port);
    look_up->status = getaddrinfo(look_up->name, port, &hints, &found);
    look_up->system_error = errno;
    if (look_up->status != 0)
        return;
    take_addrinfo(found, &look_up->addresses);
    freeaddrinfo(found);
}

static void on_look_up_dropped(struct mu__blocking_job *job)
{
    free(job);
}

struct mu__look_up_job *mu__look_up_job_new(const char *name, uint16_t port,
                                            void (*done)(struct mu__blocking_job *job),
                                            void *owner)
{
    size_t size = strlen(name) + 1;
    struct mu__look_up_job *look_up = calloc(1, sizeof *look_up + size);

    if (look_up == NULL)
        return NULL;
    look_up->job.pool = MU__BLOCKING_NAMES;
    look_up->job.run = run_look_up;
    look_up->job.done = done;
    look_up->job.dropped = on_look_up_dropped;
    look_up->owner = owner;
    look_up->port = port;
    memcpy(look_up->name, name, size);
    return look_up;
}

/* ---- Waiting ---- */

static void on_waiter_looked_up(struct mu__blocking_job *job)
{
    struct mu__look_up_job *look_up = (struct mu__look_up_job *)job;
    struct waiter *waiter = look_up->owner;

    waiter->look_up = NULL;
    if (look_up->status == 0)
        waiter->addresses = look_up->addresses;
    else
        fail_look_up(waiter, look_up->status, look_up->system_error);
    free(look_up);
}

static void give_up_look_up(struct waiter *waiter)
{
    unsigned others = mu__blocking_job_waits_for(&waiter->look_up->job);
    char why[80] = "";

    if (others > 0)
        (void)snprintf(why, sizeof why,
                       ": it has not begun, since %u others have not ended", others);
    (void)mu_error_set(&waiter->error, -MU_EDEADLINE, "no answer within %u ms%s",
                       waiter->timeout_ms, why);
    mu__blocking_job_drop(&waiter->look_up->job);
}

/* Takes `look_up`. */
static void wait_for_look_up(struct waiter *waiter, struct mu__look_up_job *look_up)
{
    uint64_t due_ms = uv_hrtime() / NS_PER_MS + waiter->timeout_ms;
    struct mu__blocking_jobs *jobs;

    (void)mu_error_set(&waiter->error, -MU_ENOTFOUND, "it has no address");
    if (mu__blocking_open(NULL, &jobs) != 0) {
        free(look_up);
        (void)mu_error_set(&waiter->error, -MU_ENOMEM, "out of memory");
        return;
    }
    if (mu__blocking_start(jobs, &look_up->job) == 0) {
        waiter->look_up = look_up;
        mu__blocking_wait(jobs, due_ms);
        if (waiter->look_up != NULL)
            give_up_look_up(waiter);
    } else {
        free(look_up);
        (void)mu_error_set(&waiter->error, -MU_EEXHAUSTED, "no thread can be started");
    }
    mu__blocking_close(jobs, NULL, NULL);
}

/* ---- The call ---- */

static bool is_number(const char *name, uint16_t port, struct mu__addresses *addresses)
{
    addresses->count = 1;
    return uv_ip4_addr(name, port, &addresses->items[0].v4) == 0 ||
           uv_ip6_addr(name, port, &addresses->items[0].v6) == 0;
}

int mu__look_up(const char *name, uint16_t port, unsigned timeout_ms, mu_error *ret_error,
                struct mu__addresses *ret_addresses)
{
    struct waiter waiter = {.timeout_ms = timeout_ms};
    struct mu__addresses number;
    struct mu__look_up_job *look_up;

    if (is_number(name, port, &number)) {
        *ret_addresses = number;
        return 0;
    }
    look_up = mu__look_up_job_new(name, port, on_waiter_looked_up, &waiter);
    if (look_up == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    wait_for_look_up(&waiter, look_up);
    if (waiter.addresses.count == 0) {
        if (ret_error != NULL)
            *ret_error = waiter.error;
        return waiter.error.code;
    }
    *ret_addresses = waiter.addresses;
    return 0;
}
