/* Accepting connections, and ending those that do not prove themselves.
 *
 * The system gives the lowest free number to a descriptor: the number of the next one
 * tells how many there are at least. The last ones are kept back for members: for
 * connections to them, and for files. Where only those are left, a new connection takes
 * the place of the oldest unproven one, which had a moment to prove itself; where there
 * is none, nothing is accepted for a while, and connections wait in the system's
 * queue. */
#define _GNU_SOURCE /* accept4 */

#include "transport/wire/uv/internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    AT_ONCE = 16, /* accepted before connections are read again */
    PAUSE_MS = 100,
    CHANCE_MS = 20,        /* to prove itself, where descriptors are short */
    SHORT_SAID_MS = 60000, /* between reports that descriptors are short */
    RESERVE_MIN = 16,
    RESERVE_MAX = 256 /* the reserve is an eighth of all, in these bounds */
};

/* ---- addresses ---- */

void mu__address_words(const struct sockaddr *address, char *out, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "";
    bool is_v6 = address->sa_family == AF_INET6;

    (void)snprintf(out, size, "%s", address->sa_family == AF_UNIX ? "unix" : "");
    if (address->sa_family == AF_UNIX || uv_ip_name(address, host, sizeof host) != 0)
        return;
    (void)snprintf(out, size, is_v6 ? "[%s]:%u" : "%s:%u", host,
                   (unsigned)ntohs(is_v6 ? ((struct sockaddr_in6 *)address)->sin6_port
                                         : ((struct sockaddr_in *)address)->sin_port));
}

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

static bool is_mapped(const struct mu__source *source)
{
    return memcmp(source->bytes, mapped, sizeof mapped) == 0;
}

void mu__source_words(const struct mu__source *source, char *out, size_t size)
{
    if (is_mapped(source))
        (void)uv_inet_ntop(AF_INET, source->bytes + sizeof mapped, out, size);
    else
        (void)uv_inet_ntop(AF_INET6, source->bytes, out, size);
}

static void source_of(const struct sockaddr *address, struct mu__source *ret_source)
{
    static const uint8_t itself[16] = {[15] = 1};

    *ret_source = (struct mu__source){.is_limited = false};
    if (address->sa_family == AF_INET) {
        memcpy(ret_source->bytes, mapped, sizeof mapped);
        memcpy(ret_source->bytes + sizeof mapped,
               &((struct sockaddr_in *)address)->sin_addr, 4);
    } else if (address->sa_family == AF_INET6) {
        memcpy(ret_source->bytes, &((struct sockaddr_in6 *)address)->sin6_addr, 16);
    } else {
        return;
    }
    ret_source->is_limited = is_mapped(ret_source)
                                 ? ret_source->bytes[sizeof mapped] != 127
                                 : memcmp(ret_source->bytes, itself, 16) != 0;
}

/* ---- those that wait ---- */

static void on_unproven_sweep(uv_timer_t *timer);

static void schedule_unproven_sweep(struct mu__wire_uv *wire)
{
    const struct mu__unproven_entry *oldest =
        mu__unproven_oldest(&wire->accepting.unproven);
    uint64_t now_ms = uv_now(wire->loop);
    uint64_t due_ms;

    if (oldest == NULL || uv_is_active((uv_handle_t *)&wire->accepting.sweep))
        return;
    due_ms = oldest->since_ms + MU__UNPROVEN_MS;
    (void)uv_timer_start(&wire->accepting.sweep, on_unproven_sweep,
                         due_ms > now_ms ? due_ms - now_ms : 1, 0);
}

static void on_unproven_sweep(uv_timer_t *timer)
{
    struct mu__wire_uv *wire = timer->data;
    struct mu__unproven_entry *entry;

    while ((entry = mu__unproven_overdue(&wire->accepting.unproven,
                                         uv_now(wire->loop))) != NULL)
        mu__connection_end(entry, "it has not proven itself in time");
    schedule_unproven_sweep(wire);
}

void mu__accepting_wait(struct mu__wire_uv *wire, struct mu__unproven_entry *entry,
                        const struct mu__source *source)
{
    struct mu__unproven_entry *oldest =
        mu__unproven_add(&wire->accepting.unproven, entry, source, uv_now(wire->loop));

    if (oldest != NULL)
        mu__connection_end(oldest,
                           "too many others came that had not proven themselves either");
    schedule_unproven_sweep(wire);
}

void mu__accepting_begin_session(struct mu__wire_uv *wire,
                                 struct mu__unproven_entry *entry)
{
    struct mu__unproven_entry *oldest =
        mu__unproven_add_session(&wire->accepting.unproven, entry);

    if (oldest != NULL)
        mu__connection_end(oldest, "too many other TLS handshakes began");
}

/* ---- descriptors ---- */

static void on_acceptable(uv_poll_t *poll, int status, int events);

static void accept_on(struct mu__wire_uv *wire)
{
    (void)uv_poll_start(&wire->accepting.poll, UV_READABLE, on_acceptable);
}

static void on_pause_over(uv_timer_t *timer)
{
    accept_on(timer->data);
}

static rlim_t limit_of_descriptors(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) != 0 ? RLIM_INFINITY : limit.rlim_cur;
}

static rlim_t reserve_of(rlim_t limit)
{
    rlim_t reserve = limit / 8;

    return reserve < RESERVE_MIN   ? RESERVE_MIN
           : reserve > RESERVE_MAX ? RESERVE_MAX
                                   : reserve;
}

static void report_short(struct mu__wire_uv *wire)
{
    uint64_t now_ms = uv_now(wire->loop);
    rlim_t limit = limit_of_descriptors();
    char words[320];

    if (wire->events.short_of == NULL ||
        (wire->accepting.short_said_ms != 0 &&
         now_ms - wire->accepting.short_said_ms < SHORT_SAID_MS))
        return;
    wire->accepting.short_said_ms = now_ms;
    (void)snprintf(words, sizeof words,
                   "descriptors are short: this process may have %llu, of which the "
                   "last %llu are kept for members and files; until some are closed, "
                   "new connections wait or take the place of unproven ones; to do: "
                   "raise the limit (`ulimit -n`; LimitNOFILE= of systemd)",
                   (unsigned long long)limit, (unsigned long long)reserve_of(limit));
    wire->events.short_of(wire->owner, words);
}

static void pause_accepting(struct mu__wire_uv *wire, uint64_t ms)
{
    (void)uv_poll_stop(&wire->accepting.poll);
    (void)uv_timer_start(&wire->accepting.pause, on_pause_over, ms, 0);
    report_short(wire);
}

static bool has_descriptors(void)
{
    rlim_t limit = limit_of_descriptors();
    int next = eventfd(0, EFD_CLOEXEC);

    if (next < 0)
        return false;
    (void)close(next);
    return limit == RLIM_INFINITY || (rlim_t)next + reserve_of(limit) < limit;
}

/* How long to wait for room for one more connection; 0: there is room. */
static uint64_t get_accept_wait_ms(struct mu__wire_uv *wire)
{
    struct mu__unproven_entry *oldest = mu__unproven_oldest(&wire->accepting.unproven);
    uint64_t age_ms = oldest == NULL ? 0 : uv_now(wire->loop) - oldest->since_ms;

    if (has_descriptors())
        return 0;
    if (oldest == NULL)
        return PAUSE_MS;
    if (age_ms < CHANCE_MS)
        return CHANCE_MS - age_ms;
    mu__connection_end(oldest, "descriptors are short, and it had not proven itself");
    report_short(wire);
    return 0;
}

/* ---- accepting ---- */

static bool is_lack(int status)
{
    return status == EMFILE || status == ENFILE || status == ENOBUFS || status == ENOMEM;
}

static void refuse_accepted(struct mu__wire_uv *wire, int fd,
                            const struct sockaddr *address)
{
    char words[MU__PEER_BYTES];

    (void)close(fd);
    if (wire->events.refused == NULL)
        return;
    mu__address_words(address, words, sizeof words);
    wire->events.refused(wire->owner, words,
                         "too many connections from there have not proven themselves");
}

/* False: there is none, or none can be accepted for now. */
static bool accept_one(struct mu__wire_uv *wire)
{
    struct sockaddr_storage storage = {.ss_family = AF_UNIX};
    struct sockaddr *address = (struct sockaddr *)&storage;
    socklen_t size = sizeof storage;
    struct mu__source source;
    uint64_t wait_ms = get_accept_wait_ms(wire);
    int fd;

    if (wait_ms > 0) {
        pause_accepting(wire, wait_ms);
        return false;
    }
    fd = accept4(wire->accepting.fd, address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        if (is_lack(errno))
            pause_accepting(wire, PAUSE_MS);
        return errno == ECONNABORTED || errno == EINTR;
    }
    source_of(address, &source);
    if (mu__unproven_admits(&wire->accepting.unproven, &source, uv_now(wire->loop)))
        mu__connection_accept(wire, fd, &source);
    else
        refuse_accepted(wire, fd, address);
    return true;
}

static void on_acceptable(uv_poll_t *poll, int status, int events)
{
    struct mu__wire_uv *wire = poll->data;

    (void)status; /* what is wrong with it, accepting tells */
    (void)events;
    for (int i = 0; i < AT_ONCE && !wire->closing && accept_one(wire); i++)
        continue;
}

/* ---- life ---- */

static void on_accepting_closed(uv_handle_t *handle)
{
    mu__wire_uv_drop_hold(handle->data);
}

int mu__accepting_open(struct mu__wire_uv *wire, int fd)
{
    struct mu__accepting *accepting = &wire->accepting;
    uint64_t seed = 0;
    int rv = uv_random(NULL, NULL, &seed, sizeof seed, 0, NULL);

    if (rv == 0 && fd >= 0)
        rv = uv_poll_init(wire->loop, &accepting->poll, fd);
    if (rv != 0)
        return rv;
    accepting->fd = fd;
    if (fd < 0)
        return 0;
    mu__unproven_init(&accepting->unproven, seed);
    accepting->poll.data = wire;
    (void)uv_timer_init(wire->loop, &accepting->pause);
    (void)uv_timer_init(wire->loop, &accepting->sweep);
    accepting->pause.data = wire;
    accepting->sweep.data = wire;
    wire->holds += 3;
    accept_on(wire);
    return 0;
}

void mu__accepting_close(struct mu__wire_uv *wire)
{
    struct mu__accepting *accepting = &wire->accepting;

    if (accepting->fd < 0)
        return;
    uv_close((uv_handle_t *)&accepting->poll, on_accepting_closed);
    uv_close((uv_handle_t *)&accepting->pause, on_accepting_closed);
    uv_close((uv_handle_t *)&accepting->sweep, on_accepting_closed);
    (void)close(accepting->fd);
}
