/* muster's topology in bare nng: every process listens on one PULL socket and dials one
 * PUSH socket to each peer; both are driven by a libuv loop through nng's descriptors. */
#ifndef MUSTER_RAW_NNG_H
#define MUSTER_RAW_NNG_H

#include "bench/raw/raw.h"

#include <nng/nng.h>
#include <nng/protocol/pipeline0/pull.h>
#include <nng/protocol/pipeline0/push.h>
#include <uv.h>

static inline void raw_nng_check(int rv, const char *what)
{
    if (rv != 0)
        raw_die(what, nng_strerror(rv));
}

/* Where the sockets of one run live. `dir` is empty for tcp, and otherwise a fresh
 * directory that raw_place_done() removes. */
struct raw_place {
    char dir[64];
};

static inline void raw_place_init(struct raw_place *place, const char *transport)
{
    place->dir[0] = '\0';
    if (strcmp(transport, "ipc") != 0)
        return;
    snprintf(place->dir, sizeof place->dir, "/tmp/muster-raw-XXXXXX");
    raw_check(mkdtemp(place->dir) != NULL, "mkdtemp");
}

static inline void raw_place_done(struct raw_place *place, unsigned processes)
{
    char path[RAW_URL_MAX];

    if (place->dir[0] == '\0')
        return;
    for (unsigned i = 0; i < processes; i++) {
        snprintf(path, sizeof path, "%s/%u", place->dir, i);
        unlink(path);
    }
    rmdir(place->dir);
}

/* The receiving half: hands over one message after another until there is none, then
 * says that the turn has ended. */
struct raw_in {
    nng_socket pull;
    uv_poll_t readable;
    void (*take)(void *owner, nng_msg *msg); /* owns the message */
    void (*turn_end)(void *owner);
    void *owner;
    char url[RAW_URL_MAX];
};

static inline void raw_in_drain(uv_poll_t *handle, int status, int events)
{
    struct raw_in *in = handle->data;
    nng_msg *msg;
    int rv;

    (void)events;
    raw_check(status == 0, "poll of the receive descriptor");
    while ((rv = nng_recvmsg(in->pull, &msg, NNG_FLAG_NONBLOCK)) == 0)
        in->take(in->owner, msg);
    if (rv != NNG_EAGAIN)
        raw_nng_check(rv, "receive");
    in->turn_end(in->owner);
}

/* Listen as process number `index`; callbacks are set by the caller before the loop. */
static inline void raw_in_open(struct raw_in *in, uv_loop_t *loop,
                               const struct raw_place *place, unsigned index)
{
    nng_listener listener;
    nng_sockaddr address;
    int fd;

    raw_nng_check(nng_pull0_open(&in->pull), "open PULL");
    if (place->dir[0] != '\0')
        snprintf(in->url, sizeof in->url, "ipc://%s/%u", place->dir, index);
    else
        snprintf(in->url, sizeof in->url, "tcp://127.0.0.1:0");
    raw_nng_check(nng_listen(in->pull, in->url, &listener, 0), "listen");
    if (place->dir[0] == '\0') {
        uint8_t port[2];

        raw_nng_check(nng_listener_get_addr(listener, NNG_OPT_LOCADDR, &address),
                      "local address");
        memcpy(port, &address.s_in.sa_port, sizeof port);
        snprintf(in->url, sizeof in->url, "tcp://127.0.0.1:%u",
                 (unsigned)port[0] * 256u + port[1]);
    }
    raw_nng_check(nng_socket_get_int(in->pull, NNG_OPT_RECVFD, &fd), "RECVFD");
    raw_check(uv_poll_init(loop, &in->readable, fd) == 0, "uv_poll_init");
    in->readable.data = in;
    raw_check(uv_poll_start(&in->readable, UV_READABLE, raw_in_drain) == 0,
              "uv_poll_start");
}

/* The sending half. Takes one message at a time; while that one cannot be sent the half
 * is busy, and `ready` says when it no longer is. */
struct raw_out {
    nng_socket push;
    uv_poll_t writable;
    nng_msg *waiting;
    void (*ready)(void *owner);
    void *owner;
};

static inline bool raw_out_busy(const struct raw_out *out)
{
    return out->waiting != NULL;
}

static inline bool raw_out_try(struct raw_out *out, nng_msg *msg)
{
    int rv = nng_sendmsg(out->push, msg, NNG_FLAG_NONBLOCK);

    if (rv != NNG_EAGAIN)
        raw_nng_check(rv, "send");
    return rv == 0;
}

static inline void raw_out_writable(uv_poll_t *handle, int status, int events)
{
    struct raw_out *out = handle->data;

    (void)events;
    raw_check(status == 0, "poll of the send descriptor");
    if (!raw_out_try(out, out->waiting))
        return;
    out->waiting = NULL;
    uv_poll_stop(&out->writable);
    out->ready(out->owner);
}

static inline void raw_out_send(struct raw_out *out, nng_msg *msg)
{
    assert(!raw_out_busy(out));
    if (raw_out_try(out, msg))
        return;
    out->waiting = msg;
    raw_check(uv_poll_start(&out->writable, UV_READABLE, raw_out_writable) == 0,
              "uv_poll_start");
}

static inline void raw_out_open(struct raw_out *out, uv_loop_t *loop, const char *url,
                                unsigned send_buffer)
{
    int fd;

    raw_nng_check(nng_push0_open(&out->push), "open PUSH");
    raw_nng_check(nng_socket_set_int(out->push, NNG_OPT_SENDBUF, (int)send_buffer),
                  "SENDBUF");
    raw_nng_check(nng_dial(out->push, url, NULL, 0), "dial");
    raw_nng_check(nng_socket_get_int(out->push, NNG_OPT_SENDFD, &fd), "SENDFD");
    raw_check(uv_poll_init(loop, &out->writable, fd) == 0, "uv_poll_init");
    out->writable.data = out;
    out->waiting = NULL;
}

/* Exchange addresses with the process at the other end of `channel`. */
static inline void raw_exchange(int channel, const struct raw_in *in,
                                char ret_url[RAW_URL_MAX])
{
    raw_write_all(channel, in->url, RAW_URL_MAX);
    raw_read_all(channel, ret_url, RAW_URL_MAX);
}

#endif
