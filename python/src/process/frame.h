/* Messages between a worker and its executor processes: a value each, over a stream
 * socket. Large arrays are passed in shared memory (one memfd for a message).
 *
 * Request and response alternate: one message is on the way at a time. */
#ifndef MUSTER_PYTHON_FRAME_H
#define MUSTER_PYTHON_FRAME_H

#include "extension.h"

enum { MUPY_SHARED_BYTES = 1 << 16 }; /* least bytes of an array in shared memory */

struct mupy_frame {
    unsigned char *data;
    size_t size;
    size_t room;
    int shared; /* memfd of the large arrays; -1: none yet */
    uint64_t shared_bytes;
    bool failed; /* out of memory */
};

/* Keys of maps with one item that stand for an array in shared memory, and for an object
 * that the worker keeps. The keys end with a random secret of the worker, so that a
 * program's own map is not mistaken for one. frame_secret() of the module sets it
 * first. */

void mupy_frame_begin(struct mupy_frame *frame);
void mupy_frame_list(struct mupy_frame *frame, uint64_t count);
void mupy_frame_int(struct mupy_frame *frame, int64_t number);
void mupy_frame_text(struct mupy_frame *frame, const char *text);

/* Write a value; `run` (may be NULL) is the run that its references belong to. */
void mupy_frame_value(struct mupy_frame *frame, const mu_value *value, mu_run *run);

void mupy_frame_free(struct mupy_frame *frame);

/* Decode a received frame; `shared` is the memory of its arrays, -1: none. Returns 0, or
 * -ENOMEM, also for an invalid frame. */
int mupy_frame_read(const unsigned char *data, size_t size, int shared,
                    mu_value **ret_value);

/* ---- socket.c ---- */

/* Called whenever nothing was transferred for the socket's timeout; false: give up. NULL:
 * never give up. */
struct mupy_patience {
    bool (*goes_on)(void *user);
    void *user;
};

/* Send a frame and free it. Returns 0, -EPIPE (also when `patience` gave up), or another
 * -errno. */
int mupy_frame_send(struct mupy_frame *frame, int socket,
                    const struct mupy_patience *patience);

/* Receive the next value. Returns 0, -EPIPE at the end or when `patience` gave up, or
 * another -errno. `ret_shared` NULL: arrays are copied out of the shared memory; else it
 * is set to the memory's descriptor, which the caller closes, or -1. */
int mupy_frame_receive(int socket, const struct mupy_patience *patience,
                       mu_value **ret_value, int *ret_shared);

/* From now on, large arrays of Python objects that this thread converts to values go into
 * this frame (NULL: into the values); returns the previous frame. */
struct mupy_frame *mupy_frame_share(struct mupy_frame *frame);

/* Put a large array into that frame, and return the map for it. NULL without an
 * exception: there is no such frame, or the array is small; with one: out of memory. */
mu_value *mupy_frame_take(const struct mupy_array *array);

/* From now on, maps with the keys above that this thread converts to objects stand for
 * arrays in the memory `shared`. MUPY_NOT_SHARED ends that; returns the previous
 * memory. */
enum { MUPY_NOT_SHARED = -2 };
int mupy_frame_open(int shared);

/* The object that a map with one of the keys above stands for; NULL without an exception:
 * it is an ordinary map. */
PyObject *mupy_frame_object(const mu_value *map);

#endif
