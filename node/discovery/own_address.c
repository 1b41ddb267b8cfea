#include "node/discovery/own_address.h"

#include "runtime/uv/look_up.h"

#include <stdio.h>
#include <string.h>
#include <uv.h>

static const char late[] =
    "this machine's own name is not looked up, since the name servers do not answer: "
    "the address of its first interface is announced";

/* ---- the address for all others ---- */

/* How good an address is for others; 0: none. */
static unsigned rank_interface(const uv_interface_address_t *interface)
{
    const struct sockaddr_in6 *v6 = &interface->address.address6;
    bool is_v6 = v6->sin6_family == AF_INET6;

    if (interface->is_internal)
        return is_v6 ? 1 : 2;
    if (is_v6)
        return IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) ? 0 : 3;
    return 4;
}

static bool is_interface_address(const uv_interface_address_t *interface,
                                 const struct sockaddr *other)
{
    const struct sockaddr_in *v4 = &interface->address.address4;
    const struct sockaddr_in6 *v6 = &interface->address.address6;

    if (v4->sin_family != other->sa_family)
        return false;
    if (other->sa_family == AF_INET)
        return memcmp(&v4->sin_addr, &((const struct sockaddr_in *)other)->sin_addr,
                      sizeof v4->sin_addr) == 0;
    return memcmp(&v6->sin6_addr, &((const struct sockaddr_in6 *)other)->sin6_addr,
                  sizeof v6->sin6_addr) == 0;
}

/* Raise the ranks of addresses that the host's name stands for. NULL, or a line for the
 * log. */
static const char *prefer_named(const uv_interface_address_t *all, int count,
                                unsigned *ranks)
{
    struct mu__addresses named;
    char name[UV_MAXHOSTNAMESIZE];
    size_t size = sizeof name;
    int rv = uv_os_gethostname(name, &size);

    if (rv == 0)
        rv = mu__look_up(name, 0, MU__OWN_LOOK_UP_MS, NULL, &named);
    if (rv != 0)
        return rv == -MU_EDEADLINE ? late : NULL;
    for (unsigned at = 0; at < named.count; at++)
        for (int i = 0; i < count; i++)
            if (ranks[i] >= 3 && ranks[i] < 8 &&
                is_interface_address(&all[i], &named.items[at].any))
                ranks[i] += 8;
    return NULL;
}

static const char *write_best(const uv_interface_address_t *all, int count, char *out)
{
    const char *words;
    unsigned ranks[64];
    int best = -1;

    count = count > 64 ? 64 : count;
    for (int i = 0; i < count; i++)
        ranks[i] = rank_interface(&all[i]);
    words = prefer_named(all, count, ranks);
    for (int i = 0; i < count; i++)
        if (ranks[i] > 0 && (best < 0 || ranks[i] > ranks[best]))
            best = i;
    if (best >= 0 && all[best].address.address4.sin_family == AF_INET)
        (void)uv_ip4_name(&all[best].address.address4, out, MU__OWN_HOST_BYTES);
    else if (best >= 0)
        (void)uv_ip6_name(&all[best].address.address6, out, MU__OWN_HOST_BYTES);
    return words;
}

const char *mu__own_host(char ret_host[MU__OWN_HOST_BYTES])
{
    uv_interface_address_t *all;
    const char *words;
    int count;

    (void)snprintf(ret_host, MU__OWN_HOST_BYTES, "127.0.0.1");
    if (uv_interface_addresses(&all, &count) != 0)
        return NULL;
    words = write_best(all, count, ret_host);
    uv_free_interface_addresses(all, count);
    return words;
}

static bool has_no_host(const char *url)
{
    return strncmp(url, "ipc://", 6) == 0 || strncmp(url, "inproc://", 9) == 0;
}

/* Schemes without hosts stay. */
static const char *without_scheme(const char *url)
{
    const char *end = strstr(url, "://");

    return end == NULL || has_no_host(url) ? url : end + 3;
}

/* The port's text in "host:port" or "[v6]:port"; NULL when there is none. */
static const char *port_of(const char *address)
{
    const char *bracket = strrchr(address, ']');
    const char *colon = strrchr(address, ':');

    return colon == NULL || (bracket != NULL && colon < bracket) ? NULL : colon + 1;
}

static bool is_any_host(const char *host, size_t size)
{
    static const char *const any[] = {"0.0.0.0", "[::]", "*"};

    for (size_t i = 0; i < sizeof any / sizeof any[0]; i++)
        if (strlen(any[i]) == size && memcmp(any[i], host, size) == 0)
            return true;
    return false;
}

/* With the scheme of `url`. */
static void write_host(const char *url, const char *host, size_t size, const char *port,
                       char *out)
{
    (void)snprintf(out, MU__OWN_ADDRESS_BYTES, "%.*s%.*s:%s",
                   (int)(without_scheme(url) - url), url, (int)size, host, port);
}

const char *mu__advertised(const char *url, const char *advertise, char *out)
{
    const char *address = without_scheme(url);
    const char *port = port_of(address);
    const char *advertised = advertise == NULL ? address : without_scheme(advertise);
    const char *said_port = port_of(advertised);
    size_t size =
        said_port == NULL ? strlen(advertised) : (size_t)(said_port - advertised) - 1;
    const char *words = NULL;
    char host[MU__OWN_HOST_BYTES + 2];

    (void)snprintf(out, MU__OWN_ADDRESS_BYTES, "%s", advertise == NULL ? url : advertise);
    if (has_no_host(url) || has_no_host(advertised) || port == NULL)
        return NULL;
    if (advertise == NULL && is_any_host(advertised, size)) {
        words = mu__own_host(host);
        size = strlen(host);
        if (strchr(host, ':') != NULL) {
            memmove(host + 1, host, size);
            host[0] = '[';
            host[++size] = ']';
            size++;
        }
        write_host(url, host, size, port, out);
    } else if (advertise != NULL && (said_port == NULL || strcmp(said_port, "0") == 0)) {
        write_host(url, advertised, size, port, out);
    }
    return words;
}
