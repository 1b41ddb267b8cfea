#include "node/route.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char scheme[] = "tcp://";

/* "tcp://[::1]:80" -> "::1" and "80". */
static int split(const char *url, char *host, size_t size, const char **ret_port)
{
    const char *at = url + sizeof scheme - 1;
    const char *colon = strrchr(url, ':');
    size_t length;

    if (strncmp(url, scheme, sizeof scheme - 1) != 0 || colon < at)
        return -1;
    length = (size_t)(colon - at);
    if (length > 1 && at[0] == '[' && at[length - 1] == ']') {
        at++;
        length -= 2;
    }
    if (length >= size)
        return -1;
    memcpy(host, at, length);
    host[length] = '\0';
    *ret_port = colon + 1;
    return 0;
}

/* Connecting a datagram socket picks the way, and with it our end's address. */
static void look(const struct addrinfo *info, char *ret_url)
{
    struct sockaddr_storage own;
    socklen_t size = sizeof own;
    char host[64];
    int fd = socket(info->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return;
    if (connect(fd, info->ai_addr, info->ai_addrlen) == 0 &&
        getsockname(fd, (struct sockaddr *)&own, &size) == 0 &&
        getnameinfo((struct sockaddr *)&own, size, host, sizeof host, NULL, 0,
                    NI_NUMERICHOST) == 0 &&
        strchr(host, '%') == NULL)
        (void)snprintf(ret_url, MU__ROUTE_BYTES,
                       info->ai_family == AF_INET6 ? "tcp://[%s]:0" : "tcp://%s:0", host);
    (void)close(fd);
}

void mu__route(const char *url, char *ret_url)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM};
    struct addrinfo *all;
    const char *port;
    char host[256];

    ret_url[0] = '\0';
    if (split(url, host, sizeof host, &port) != 0 ||
        getaddrinfo(host, port, &hints, &all) != 0)
        return;
    look(all, ret_url);
    freeaddrinfo(all);
}
