/* The protocol of a connection between nodes on tcp and unix sockets: an SP protocol of
 * nng's that goes both ways, REQ and REP in their raw form. Both wires speak it, so nodes
 * on both mix.
 *
 *     greeting    8 bytes each way: 0 "SP" 0, the protocol in two bytes, 0 0. Who dials
 *                 is REQ, who accepts is REP
 *     message     its length in 8 bytes (on unix sockets a byte 1 before it), a preface
 *                 of 16 bytes, a frame
 *     preface     0x80, 0, 0, flags; then how many frames, in 4 bytes, and bytes of them,
 *                 in 8, have been taken from the other end on this connection
 *
 * All numbers are big-endian. The first four bytes of a preface are what REQ and REP in
 * their raw form have as the number of a request; the preface is as long as the alignment
 * of frames.
 *
 * A REP socket of nng's has a queue of 64 messages for each connection, and throws away
 * what is beyond. So a node on nng's sockets that has accepted a connection counts what
 * it sends there, and stops at a window (mu__sp_window). It says so by a flag, and its
 * peer sends a note, a message without a frame, when it has taken a part of the window.
 *
 * Pure. */
#ifndef MU_TRANSPORT_SP_H
#define MU_TRANSPORT_SP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MU__SP_GREETING_BYTES = 8,
    MU__SP_DIALS = 0x30,
    MU__SP_ACCEPTS = 0x31,
    MU__SP_PREFACE_BYTES = 16,
    MU__SP_WINDOW_FRAMES = 48,
    MU__SP_WINDOW_BYTES = 4 << 20, /* with so many under way no frame is sent */
    MU__SP_NOTE_FRAMES = MU__SP_WINDOW_FRAMES / 4,
    MU__SP_NOTE_BYTES = MU__SP_WINDOW_BYTES / 4
};

/* `protocol`: of who says it. */
void mu__sp_greeting(uint8_t *out, uint8_t protocol);
bool mu__sp_is_greeting(const uint8_t *greeting, uint8_t protocol);

struct mu__sp_preface {
    bool counts;     /* the sender has a window, and needs notes */
    bool is_note;    /* no frame follows */
    uint32_t frames; /* that it has taken; higher ones wrap to 0 */
    uint64_t bytes;
};

void mu__sp_write(uint8_t *out, const struct mu__sp_preface *preface);

/* False: it is none. */
bool mu__sp_read(const uint8_t *in, struct mu__sp_preface *ret_preface);

/* The count of what has come over a connection. Zeroed memory: nothing. */
struct mu__sp_taken {
    uint32_t frames;
    uint64_t bytes;
    uint32_t said_frames; /* in the last preface */
    uint64_t said_bytes;
    bool counts; /* the other end does */
};

/* A frame has come, after this preface. */
void mu__sp_take(struct mu__sp_taken *taken, const struct mu__sp_preface *preface,
                 size_t size);

/* The other end waits for a note. */
bool mu__sp_owes_note(const struct mu__sp_taken *taken);

/* The preface of what goes now; `counts` and `is_note` are the caller's. */
void mu__sp_say(struct mu__sp_taken *taken, struct mu__sp_preface *ret_preface);

/* The count of what was sent over a connection, and not taken yet. Zeroed memory: 0. */
struct mu__sp_window {
    uint32_t frames; /* sent */
    uint64_t bytes;
    uint32_t taken_frames;
    uint64_t taken_bytes;
};

bool mu__sp_may_send(const struct mu__sp_window *window);
void mu__sp_sent(struct mu__sp_window *window, size_t size);

/* What the other end says. False: it has taken more than was sent. */
bool mu__sp_was_taken(struct mu__sp_window *window, const struct mu__sp_preface *preface);

#endif
