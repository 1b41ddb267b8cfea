#include "node/discovery/route.h"

#include "runtime/uv/look_up.h"
#include "transport/wire/url.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Connecting a datagram socket makes the system choose a route, and with it the address
 * of this end. */
static void look(const struct sockaddr *address, char *ret_url)
{
    bool is_v6 = address->sa_family == AF_INET6;
    struct sockaddr_storage own;
    socklen_t size = sizeof own;
    char host[64];
    int fd = socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return;
    if (connect(fd, address,
                is_v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in)) == 0 &&
        getsockname(fd, (struct sockaddr *)&own, &size) == 0 &&
        getnameinfo((struct sockaddr *)&own, size, host, sizeof host, NULL, 0,
                    NI_NUMERICHOST) == 0 &&
        strchr(host, '%') == NULL)
        (void)snprintf(ret_url, MU__ROUTE_BYTES, is_v6 ? "tcp://[%s]:0" : "tcp://%s:0",
                       host);
    (void)close(fd);
}

void mu__route(const char *url, char *ret_url)
{
    struct mu__addresses addresses;
    struct mu__url parts;

    ret_url[0] = '\0';
    if (mu__url_parse(url, true, &parts) == NULL && !parts.ipc &&
        mu__look_up(parts.host, parts.port, MU__ROUTE_LOOK_UP_MS, NULL, &addresses) == 0)
        look(&addresses.items[0].any, ret_url);
}
