/* Frames over the socket between a worker and its executor process. */
#define _GNU_SOURCE
#include "process/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { FIRST_BYTES = 4096 };

struct header {
    uint64_t size;
    uint64_t has_shared;
};

union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
};

static void attach_descriptor(struct msghdr *message, union control *control, int shared)
{
    struct cmsghdr *header;

    message->msg_control = control->room;
    message->msg_controllen = sizeof control->room;
    header = CMSG_FIRSTHDR(message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof shared);
    memcpy(CMSG_DATA(header), &shared, sizeof shared);
}

/* 0: continue after an error of the socket; else the code to return. */
static int check_retry(const struct mupy_patience *patience)
{
    if (errno == EINTR)
        return 0;
    if (errno != EAGAIN)
        return -errno;
    return patience == NULL || patience->goes_on(patience->user) ? 0 : -EPIPE;
}

int mupy_frame_send(struct mupy_frame *frame, int socket,
                    const struct mupy_patience *patience)
{
    struct header header = {frame->size, frame->shared >= 0};
    size_t whole = sizeof header + frame->size;
    union control control = {.room = {0}};
    size_t done = 0;
    int rv = frame->failed ? -ENOMEM : 0;

    while (rv == 0 && done < whole) {
        struct iovec parts[2] = {{&header, sizeof header}, {frame->data, frame->size}};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t n;

        if (done == 0 && frame->shared >= 0)
            attach_descriptor(&message, &control, frame->shared);
        if (done < sizeof header) {
            parts[0].iov_base = (char *)&header + done;
            parts[0].iov_len -= done;
        } else {
            parts[0].iov_len = 0;
            parts[1].iov_base = frame->data + (done - sizeof header);
            parts[1].iov_len = whole - done;
        }
        n = sendmsg(socket, &message, MSG_NOSIGNAL);
        if (n < 0)
            rv = check_retry(patience);
        done += n > 0 ? (size_t)n : 0;
    }
    mupy_frame_free(frame);
    return rv;
}

/* Receive the first part of a message, with its file descriptor. */
static ssize_t receive_first_part(int socket, const struct mupy_patience *patience,
                                  void *data, size_t room, int *ret_shared)
{
    union control control;
    struct iovec part = {data, room};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    struct cmsghdr *header;
    ssize_t n;

    while ((n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0) {
        int rv = check_retry(patience);

        if (rv != 0)
            return rv;
    }
    header = CMSG_FIRSTHDR(&message);
    if (header != NULL && header->cmsg_type == SCM_RIGHTS)
        memcpy(ret_shared, CMSG_DATA(header), sizeof *ret_shared);
    return n == 0 ? -EPIPE : n;
}

static int receive_rest(int socket, const struct mupy_patience *patience,
                        unsigned char *data, size_t done, size_t size)
{
    int rv = 0;

    while (rv == 0 && done < size) {
        ssize_t n = recv(socket, data + done, size - done, 0);

        if (n == 0)
            rv = -EPIPE;
        else if (n < 0)
            rv = check_retry(patience);
        done += n > 0 ? (size_t)n : 0;
    }
    return rv;
}

int mupy_frame_receive(int socket, const struct mupy_patience *patience,
                       mu_value **ret_value, int *ret_shared)
{
    unsigned char first[FIRST_BYTES];
    unsigned char *data = first;
    struct header header;
    int shared = -1;
    ssize_t n = receive_first_part(socket, patience, first, sizeof first, &shared);
    size_t whole;
    int rv = n < 0 ? (int)n : 0;

    if (rv == 0 && (size_t)n < sizeof header)
        rv = receive_rest(socket, patience, first, (size_t)n, sizeof header);
    if (rv == 0) {
        memcpy(&header, first, sizeof header);
        n = n < (ssize_t)sizeof header ? (ssize_t)sizeof header : n;
        whole = sizeof header + header.size;
        if (whole > sizeof first) {
            data = malloc(whole);
            rv = data == NULL ? -ENOMEM : 0;
        }
        if (rv == 0 && data != first)
            memcpy(data, first, (size_t)n);
        if (rv == 0)
            rv = receive_rest(socket, patience, data, (size_t)n, whole);
    }
    if (rv == 0)
        rv = mupy_frame_read(data + sizeof header, header.size,
                             ret_shared == NULL ? shared : -1, ret_value);
    if (data != first)
        free(data);
    if (rv == 0 && ret_shared != NULL)
        *ret_shared = shared;
    else if (shared >= 0)
        (void)close(shared);
    return rv;
}
