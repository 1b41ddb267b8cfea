/* Shared by the files of the libuv wire: streams.c owns everything, accepting.c listens,
 * dials.c and dialling.c connect, connection.c has one connection, reading.c and
 * writing.c what goes over it. */
#ifndef MU_TRANSPORT_WIRE_UV_INTERNAL_H
#define MU_TRANSPORT_WIRE_UV_INTERNAL_H

#include "transport/wire/sp.h"
#include "transport/wire/tls/endpoint.h"
#include "transport/wire/unproven.h"
#include "transport/wire/url.h"
#include "transport/wire/uv/streams.h"

#include "runtime/base/list.h"
#include "runtime/base/map.h"
#include "runtime/uv/blocking.h"

enum {
    MU__SP_HEADER_MAX = 9 + MU__SP_PREFACE_BYTES, /* before each frame; 1 less over tcp */
    MU__SP_HEADROOM = 32 /* before a frame's bytes: room for it */
};

enum { MU__PEER_BYTES = 64 }; /* an address, for messages */
enum { MU__PEER_USER_BYTES = 128 };

enum { MU__WIRE_SCRATCH_BYTES = 256 << 10, MU__WIRE_PLAIN_BYTES = 16 << 10 };

/* A stream of either kind. */
union mu__stream {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
};

struct mu__dialling;

/* The attempt that a connection came from. */
struct mu__connecting {
    struct mu__dialling *dialling; /* NULL: it has won, or is being closed */
    unsigned which;
    uv_connect_t request;
    uint8_t heard[MU__SP_GREETING_BYTES];
    unsigned heard_size;
    uint8_t *records;  /* of TLS, as they come, until it has won; else NULL */
    bool has_answered; /* something has come, in TLS */
};

/* The incoming side of a connection. */
struct mu__reading {
    uint8_t head[MU__SP_HEADER_MAX];
    unsigned head_size;
    struct mu__buf *frame;         /* being filled */
    uint32_t frame_size;           /* when it is complete */
    struct mu__sp_preface preface; /* of it */
    struct mu__sp_taken taken;
    uint8_t *left; /* read, but not delivered because of a pause */
    size_t left_size;
    struct mu__list_node node; /* in wire->paused, while `paused` */
    bool greeted;
    bool paused;
    bool held;          /* by the links: nothing is read */
    bool expects_large; /* the last frame was large */
};

/* A connection to another node, dialled or accepted. */
struct mu__connection {
    union mu__stream stream;  /* first: handles cast */
    struct mu__wire_uv *wire; /* NULL: while it is dialled */
    struct mu__tls *tls;      /* NULL: plain, or its ClientHello has not come */
    uint32_t number;
    bool is_ipc;
    bool is_secured;                    /* it speaks TLS */
    bool is_member;                     /* the links have accepted its HELLO */
    bool is_closing;                    /* no event comes any more */
    bool is_blocked;                    /* `writable` follows */
    bool is_broken;                     /* out of memory in the middle of a frame */
    struct mu__unproven_entry unproven; /* if it was accepted */
    struct mu__connecting connecting;   /* if it was dialled */
    uint32_t address_number;            /* the same: of the address that it leads to */
    unsigned addresses_count;
    uv_write_t greeting_request;
    uint8_t greeting[MU__SP_GREETING_BYTES];
    struct mu__reading in;
};

struct mu__accepting {
    int fd;         /* that listens; -1: nobody can connect */
    uv_poll_t poll; /* of it; stopped during a pause */
    uv_timer_t pause;
    uv_timer_t sweep;       /* until the oldest unproven one must go */
    uint64_t short_said_ms; /* 0: never */
    struct mu__unproven unproven;
};

struct mu__wire_uv {
    struct mu__wire door; /* first: operations cast */
    uv_loop_t *loop;
    struct mu__blocking_jobs *blocking_jobs; /* look-ups of names */
    struct mu__wire_events events;
    void *owner;
    struct mu__url url; /* that it listens at */
    char text[280];     /* the same, with the real port */
    struct mu__accepting accepting;
    uv_prepare_t before_poll; /* both call burst_end, once for all that happened */
    uv_check_t after_poll;
    uv_idle_t resume;                 /* reads on after pauses */
    const struct mu__tls_source *tls; /* borrowed; NULL: everything is plain and open */
    struct mu__map connections;       /* struct mu__connection, by number */
    struct mu__map dials;             /* struct mu__dial, by number */
    struct mu__list paused;           /* connections */
    uint32_t accepted_next;
    bool news; /* there were events since the last burst_end */
    bool closing;
    unsigned holds; /* handles and requests that must end first */
    void (*closed)(void *arg);
    void *closed_arg;
    uint8_t scratch[MU__WIRE_SCRATCH_BYTES];
    uint8_t plain[MU__WIRE_PLAIN_BYTES]; /* of one record of TLS */
};

/* The wire is freed when the last hold is dropped. */
void mu__wire_uv_hold(struct mu__wire_uv *wire);
void mu__wire_uv_drop_hold(struct mu__wire_uv *wire);

/* Make a stream ready for use on the loop. */
int mu__stream_init(uv_loop_t *loop, bool ipc, union mu__stream *stream);

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

/* Accept connections at `fd`, which listens, and is taken when 0 is returned; -1: accept
 * none. `close` is for a wire that has been opened. */
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

/* ---- connection.c ---- */

/* A connection was accepted as `fd`, which is taken. */
void mu__connection_accept(struct mu__wire_uv *wire, int fd,
                           const struct mu__source *source);

/* A connection that was dialled is the wire's from now on, by this number. Out of memory:
 * not 0, and it is closed. */
int mu__connection_adopt(struct mu__wire_uv *wire, struct mu__connection *connection,
                         uint32_t number);

/* Free what it has; its handle is closed. */
void mu__connection_free(struct mu__connection *connection);

/* No event of it comes any more. */
void mu__connection_close(struct mu__connection *connection);

/* It broke, or is closed because of the bytes that came over it. */
void mu__connection_lose(struct mu__connection *connection, const char *reason);
extern const char mu__connection_closed_words[];

/* End one that has not proven itself. */
void mu__connection_end(struct mu__unproven_entry *entry, const char *reason);

struct mu__connection *mu__connection_of(struct mu__wire *door, uint32_t number);
void mu__connection_close_all(struct mu__wire_uv *wire);
void mu__connection_member(struct mu__wire *door, uint32_t number);
void mu__connection_proof(struct mu__wire *door, uint32_t number,
                          struct mu__proof *ret_proof);
enum mu__right mu__connection_own_right(struct mu__wire *door, uint32_t number);
void mu__connection_peer(struct mu__wire *door, uint32_t number, char *ret_address,
                         size_t size);
uint32_t mu__connection_address(struct mu__wire *door, uint32_t number,
                                unsigned *ret_count);

/* ---- reading.c ---- */

/* Not 0: nothing can be read. */
int mu__reading_begin(struct mu__connection *connection);
void mu__reading_forget(struct mu__connection *connection);
void mu__reading_hold(struct mu__wire *door, uint32_t number, bool is_held);

/* Nothing is read until the loop's next iteration. */
void mu__reading_pause(struct mu__connection *connection);
void mu__reading_resume(struct mu__wire_uv *wire);

/* ---- writing.c ---- */

/* The length and the preface before a frame of `size` bytes; returns how many bytes. */
size_t mu__sp_header(struct mu__connection *connection, bool is_note, uint64_t size,
                     uint8_t out[MU__SP_HEADER_MAX]);
int mu__writing_send(struct mu__wire *door, uint32_t number, struct mu__buf *frame);

/* Tell the other end what was taken. It may break the connection. */
void mu__writing_note(struct mu__connection *connection);

/* ---- dials.c ---- */

int mu__dials_begin(struct mu__wire *door, uint32_t number, const char *url);
void mu__dials_avoid(struct mu__wire *door, uint32_t number,
                     const struct mu__dial_tried *tried);
const char *mu__dials_last_error(struct mu__wire *door, uint32_t number);

/* False: there is no such one. */
bool mu__dials_end(struct mu__wire_uv *wire, uint32_t number);
void mu__dials_end_all(struct mu__wire_uv *wire);

#endif
