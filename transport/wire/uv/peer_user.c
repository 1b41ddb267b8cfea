/* The user at the other end of a unix socket, as the system knows it. */
#define _GNU_SOURCE /* struct ucred */
#include "transport/wire/uv/internal.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

bool mu__peer_is_user(const union mu__stream *stream, char *ret_why, size_t size)
{
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t peer_size = sizeof peer;
    uv_os_fd_t fd;

    if (uv_fileno(&stream->handle, &fd) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) != 0) {
        (void)snprintf(ret_why, size, "the system does not say whose process it is");
        return false;
    }
    if (peer.uid == geteuid() || peer.uid == 0)
        return true;
    (void)snprintf(ret_why, size,
                   "it is a process of user %lu, and this node one of user %lu: a unix "
                   "socket is for one user",
                   (unsigned long)peer.uid, (unsigned long)geteuid());
    return false;
}
