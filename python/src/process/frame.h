/* Messages between a worker and its executor processes: one value each, over a stream
 * socket. Large arrays are beside it in memory that both map (one memfd for a message).
 *
 * One message is under way at a time: a request, then its answer. */
#ifndef MUSTER_PYTHON_FRAME_H
#define MUSTER_PYTHON_FRAME_H

#include "extension.h"

enum { MUPY_SHARED_BYTES = 1 << 16 };   /* arrays of so many bytes and more are shared */

struct mupy_frame {
    unsigned char *data;
    size_t size;
    size_t room;
    int shared;             /* memfd of the large arrays; -1: none yet */
    uint64_t shared_bytes;
    bool failed;            /* no memory */
};

/* Maps with one key of ours stand for an array in a frame's memory, and for an object
 * that a worker keeps. The keys end with a secret of the worker, so that nobody's own map
 * is taken for one of ours. frame_secret() of the module sets it, before all else. */

void mupy_frame_begin(struct mupy_frame *frame);
void mupy_frame_list(struct mupy_frame *frame, uint64_t count);
void mupy_frame_int(struct mupy_frame *frame, int64_t number);
void mupy_frame_text(struct mupy_frame *frame, const char *text);

/* `run` (may be NULL) is the one that references are of. */
void mupy_frame_value(struct mupy_frame *frame, const mu_value *value, mu_run *run);

void mupy_frame_free(struct mupy_frame *frame);

/* The value of a frame that was received; `shared` is the memory of its arrays, -1: none,
 * -ENOMEM: or it makes no sense. */
int mupy_frame_read(const unsigned char *data, size_t size, int shared,
                    mu_value **ret_value);

/* ---- socket.c ---- */

/* Asked whenever the socket's limit is over and nothing went through it; false: give up.
 * NULL: never. */
struct mupy_patience {
    bool (*goes_on)(void *user);
    void *user;
};

/* Send it and free it; 0, -EPIPE (also when patience is over), or another -errno. */
int mupy_frame_send(struct mupy_frame *frame, int socket,
                    const struct mupy_patience *patience);

/* The next one: 0, -EPIPE at the end or when patience is over, or another -errno.
 * `ret_shared` NULL: arrays are copied out of the shared memory; else
 * it is the caller's to close, -1 when there is none. */
int mupy_frame_receive(int socket, const struct mupy_patience *patience,
                       mu_value **ret_value, int *ret_shared);

/* While values are made of Python objects on this thread, large arrays go into this frame
 * (NULL: into the values); returns the frame of before. */
struct mupy_frame *mupy_frame_share(struct mupy_frame *frame);

/* The map for an array, if there is such a frame and the array is large; NULL without an
 * exception: no; with one: out of memory. */
mu_value *mupy_frame_take(const struct mupy_array *array);

/* While Python objects are made of values on this thread, those of maps with the keys
 * above: `shared` is the memory. MUPY_NOT_SHARED ends it; returns that of before. */
enum { MUPY_NOT_SHARED = -2 };
int mupy_frame_open(int shared);

/* The object of a map with one of the keys above; NULL without an exception: it is
 * another map. */
PyObject *mupy_frame_object(const mu_value *map);

#endif
