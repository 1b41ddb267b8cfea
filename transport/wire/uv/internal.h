/* Shared by the files of the libuv wire: streams.c owns everything, accepting.c listens,
 * in.c has one incoming connection, out.c one outgoing. */
#ifndef MU_TRANSPORT_WIRE_UV_INTERNAL_H
#define MU_TRANSPORT_WIRE_UV_INTERNAL_H

#include "transport/wire/tls/endpoint.h"
#include "transport/wire/unproven.h"
#include "transport/wire/url.h"
#include "transport/wire/uv/streams.h"

#include "runtime/base/list.h"
#include "runtime/base/map.h"
#include "runtime/uv/blocking.h"

/* The SP protocol: a greeting, then messages with their length before them. */
enum {
    MU__SP_GREETING_BYTES = 8,
    MU__SP_PUSH = 0x50,
    MU__SP_PULL = 0x51,
    MU__SP_HEADER_MAX = 9,      /* 8 over tcp; over ipc a byte 1 stands before it */
    MU__SP_HEADROOM = 16        /* before a frame's bytes: room for its header */
};

enum { MU__PEER_BYTES = 64 };       /* an address, for messages */
enum { MU__PEER_USER_BYTES = 128 };

enum { MU__WIRE_SCRATCH_BYTES = 256 << 10, MU__WIRE_PLAIN_BYTES = 16 << 10 };

/* A stream of either kind. */
union mu__stream {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
};

struct mu__accepting {
    int fd;                         /* that listens */
    uv_poll_t poll;                 /* of it; stopped during a pause */
    uv_timer_t pause;
    uv_timer_t sweep;               /* until the oldest unproven one must go */
    uint64_t short_said_ms;         /* 0: never */
    struct mu__unproven unproven;
};

struct mu__wire_uv {
    struct mu__wire door;           /* first: operations cast */
    uv_loop_t *loop;
    struct mu__blocking_jobs *blocking_jobs;    /* look-ups of names */
    struct mu__wire_events events;
    void *owner;
    struct mu__url url;             /* that it listens at */
    char text[280];                 /* the same, with the real port */
    struct mu__accepting accepting;
    uv_prepare_t before_poll;       /* both call burst_end, once for all that happened */
    uv_check_t after_poll;
    uv_idle_t resume;               /* reads on after pauses */
    const struct mu__tls_source *tls;   /* borrowed; NULL: everything is plain and open */
    struct mu__map ins;             /* struct in, by number */
    struct mu__map outs;            /* struct out, by number */
    struct mu__list paused_ins;
    uint32_t in_next;
    bool news;                      /* there were events since the last burst_end */
    bool closing;
    unsigned holds;                 /* handles and requests that must end first */
    void (*closed)(void *arg);
    void *closed_arg;
    uint8_t scratch[MU__WIRE_SCRATCH_BYTES];
    uint8_t plain[MU__WIRE_PLAIN_BYTES];    /* of one record of TLS */
};

/* The wire is freed when the last hold is dropped. */
void mu__wire_uv_hold(struct mu__wire_uv *wire);
void mu__wire_uv_drop_hold(struct mu__wire_uv *wire);

/* Make a stream ready for use on the loop. */
int mu__stream_init(uv_loop_t *loop, bool ipc, union mu__stream *stream);

void mu__greeting_write(uint8_t *out, uint8_t protocol);
bool mu__greeting_is(const uint8_t *greeting, uint8_t protocol);

/* Send what TLS has to say, as much as the system takes; the rest follows. Negative: the
 * connection can say no more. */
int mu__tls_flush(struct mu__tls *tls, uv_stream_t *stream);

/* Whether the other end of a unix socket is a process of this one's user, or of root;
 * otherwise `ret_why` says whose it is. */
bool mu__peer_is_user(const union mu__stream *stream, char *ret_why, size_t size);

/* Memory of frames to send: mu__buf with headroom. */
struct mu__buf *mu__frame_buffer(struct mu__wire *door, size_t capacity);

/* The frame itself if it has headroom, else a copy that has; NULL when out of memory. */
struct mu__buf *mu__frame_with_headroom(struct mu__buf *frame);

/* Read on from paused connections in the loop's next iteration. */
void mu__wire_uv_resume_later(struct mu__wire_uv *wire);

/* Accept connections at `fd`, which listens; it is taken when 0 is returned. `close` is
 * for a wire that has been opened. */
int mu__accepting_open(struct mu__wire_uv *wire, int fd);
void mu__accepting_close(struct mu__wire_uv *wire);

/* A connection is there that has not proven itself; it is going to have a TLS session.
 * Either may end another one. */
void mu__accepting_wait(struct mu__wire_uv *wire, struct mu__unproven_entry *entry,
                        const struct mu__source *source);
void mu__accepting_begin_session(struct mu__wire_uv *wire,
                                 struct mu__unproven_entry *entry);

/* "10.0.0.1:5000", "unix". */
void mu__address_words(const struct sockaddr *address, char *out, size_t size);

/* "10.0.0.1". */
void mu__source_words(const struct mu__source *source, char *out, size_t size);

/* A connection was accepted as `fd`, which is taken. */
void mu__in_accept(struct mu__wire_uv *wire, int fd, const struct mu__source *source);

/* End one that has not proven itself. */
void mu__in_end(struct mu__unproven_entry *entry, const char *reason);
void mu__in_member(struct mu__wire *door, uint32_t number);
void mu__in_drop(struct mu__wire *door, uint32_t number);
void mu__in_hold(struct mu__wire *door, uint32_t number, bool is_held);
void mu__in_proof(struct mu__wire *door, uint32_t number, struct mu__proof *ret_proof);
void mu__in_peer(struct mu__wire *door, uint32_t number, char *ret_address, size_t size);
bool mu__in_is_near(struct mu__wire *door, uint32_t number);
void mu__in_drop_all(struct mu__wire_uv *wire);
void mu__in_resume_paused(struct mu__wire_uv *wire);

int mu__out_dial(struct mu__wire *door, uint32_t number, const char *url);
void mu__out_avoid(struct mu__wire *door, uint32_t number,
                   const struct mu__dial_tried *tried);
enum mu__right mu__out_own_right(struct mu__wire *door, uint32_t number);
void mu__out_show(struct mu__wire *door, uint32_t number, enum mu__right right);
uint32_t mu__out_address(struct mu__wire *door, uint32_t number, unsigned *ret_count);
void mu__out_hangup(struct mu__wire *door, uint32_t number);
int mu__out_send(struct mu__wire *door, uint32_t number, struct mu__buf *frame);
const char *mu__out_last_error(struct mu__wire *door, uint32_t number);
void mu__out_hangup_all(struct mu__wire_uv *wire);

#endif
