#include "runtime/uv/renewal.h"

#include "runtime/uv/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BUSY_BYTES = 1 << 20,
    SYNC_BYTES = 8 << 20, /* so much is not on the disk at most, so that nobody who
                             writes has to wait for it */
    FIRST_BYTES = 1 << 16
};

struct chunk {
    uint8_t *data;
    size_t size;
    size_t room;
};

struct mu__renewal {
    pthread_t thread;
    int file;
    pthread_mutex_t lock; /* guards all that follows */
    pthread_cond_t work;  /* for the thread */
    pthread_cond_t room;  /* for who appends */
    struct chunk filling; /* what was appended since the thread took the last */
    bool writing;         /* the thread has a chunk */
    bool sync_requested;
    bool synced;
    bool finished; /* the thread takes nothing more */
    bool stopped;
    int failed;
    int closed_file; /* closed by the thread at its end; -1: none */

    /* The thread's, and the loop's once nothing is being written. */
    uint64_t length;
    size_t unsynced;
    struct chunk taken;
};

static int write_chunk(struct mu__renewal *r, const struct chunk *chunk)
{
    size_t done = 0;

    while (done < chunk->size) {
        ssize_t written = pwrite(r->file, chunk->data + done, chunk->size - done,
                                 (off_t)(r->length + done));

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : EIO;
        done += (size_t)written;
    }
    r->length += done;
    r->unsynced += done;
    return 0;
}

static int sync_file(struct mu__renewal *r)
{
    r->unsynced = 0;
    return fdatasync(r->file) != 0 ? errno : 0;
}

/* One chunk, or what was not synced. Without the lock. */
static int work_once(struct mu__renewal *r, bool syncs)
{
    int rv = write_chunk(r, &r->taken);

    if (rv == 0 && (syncs || r->unsynced >= SYNC_BYTES))
        rv = sync_file(r);
    return rv;
}

static bool has_renewal_work(const struct mu__renewal *r)
{
    return r->failed == 0 && !r->finished &&
           (r->filling.size > 0 || (r->sync_requested && !r->synced));
}

static void take_chunk(struct mu__renewal *r)
{
    struct chunk taken = r->filling;

    r->filling = r->taken;
    r->filling.size = 0;
    r->taken = taken;
    r->writing = true;
}

static void *run_renewal_thread(void *arg)
{
    struct mu__renewal *r = arg;
    int file;

    (void)pthread_mutex_lock(&r->lock);
    while (!r->stopped) {
        bool syncs = r->sync_requested && !r->synced;
        int rv;

        if (!has_renewal_work(r)) {
            (void)pthread_cond_wait(&r->work, &r->lock);
            continue;
        }
        take_chunk(r);
        (void)pthread_mutex_unlock(&r->lock);
        rv = work_once(r, syncs);
        (void)pthread_mutex_lock(&r->lock);
        r->writing = false;
        r->synced = r->synced || syncs;
        r->failed = rv;
        (void)pthread_cond_signal(&r->room);
    }
    file = r->closed_file;
    (void)pthread_mutex_unlock(&r->lock);
    if (file >= 0)
        (void)close(file);
    return NULL;
}

int mu__renewal_start(int file, struct mu__renewal **ret_renewal)
{
    struct mu__renewal *r = calloc(1, sizeof *r);
    int rv;

    if (r == NULL)
        return ENOMEM;
    r->file = file;
    r->closed_file = -1;
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_cond_init(&r->work, NULL);
    (void)pthread_cond_init(&r->room, NULL);
    rv = mu__thread_start(run_renewal_thread, r, &r->thread);
    if (rv != 0) {
        free(r);
        return rv;
    }
    *ret_renewal = r;
    return 0;
}

static bool make_chunk_room(struct chunk *chunk, size_t size)
{
    size_t room = chunk->room == 0 ? FIRST_BYTES : chunk->room;
    uint8_t *data;

    while (room < chunk->size + size)
        room *= 2;
    if (room == chunk->room)
        return true;
    data = realloc(chunk->data, room);
    if (data == NULL)
        return false;
    chunk->data = data;
    chunk->room = room;
    return true;
}

int mu__renewal_append(struct mu__renewal *r, const void *data, size_t size)
{
    int rv;

    (void)pthread_mutex_lock(&r->lock);
    while (r->failed == 0 && r->filling.size >= MU__RENEWAL_BYTES_MAX)
        (void)pthread_cond_wait(&r->room, &r->lock);
    rv = r->failed;
    if (rv == 0 && !make_chunk_room(&r->filling, size))
        rv = ENOMEM;
    if (rv == 0) {
        memcpy(r->filling.data + r->filling.size, data, size);
        r->filling.size += size;
        (void)pthread_cond_signal(&r->work);
    }
    (void)pthread_mutex_unlock(&r->lock);
    return rv;
}

bool mu__renewal_is_busy(struct mu__renewal *r)
{
    bool is_busy;

    (void)pthread_mutex_lock(&r->lock);
    is_busy = r->failed == 0 && r->filling.size >= BUSY_BYTES;
    (void)pthread_mutex_unlock(&r->lock);
    return is_busy;
}

int mu__renewal_finish(struct mu__renewal *r, bool sync, uint64_t *ret_length)
{
    int rv;

    (void)pthread_mutex_lock(&r->lock);
    r->sync_requested = true;
    rv = r->failed;
    if (rv == 0 && (!r->synced || r->writing || r->filling.size >= BUSY_BYTES))
        rv = EAGAIN;
    r->finished = rv == 0;
    (void)pthread_cond_signal(&r->work);
    (void)pthread_mutex_unlock(&r->lock);
    if (rv == 0)
        rv = write_chunk(r, &r->filling);
    if (rv == 0 && sync)
        rv = sync_file(r);
    if (rv == 0)
        *ret_length = r->length;
    return rv;
}

void mu__renewal_stop(struct mu__renewal *r, int file)
{
    (void)pthread_mutex_lock(&r->lock);
    r->stopped = true;
    r->closed_file = file;
    (void)pthread_cond_signal(&r->work);
    (void)pthread_mutex_unlock(&r->lock);
}

void mu__renewal_free(struct mu__renewal *r)
{
    if (r == NULL)
        return;
    mu__renewal_stop(r, r->closed_file);
    (void)pthread_join(r->thread, NULL);
    (void)pthread_mutex_destroy(&r->lock);
    (void)pthread_cond_destroy(&r->work);
    (void)pthread_cond_destroy(&r->room);
    free(r->filling.data);
    free(r->taken.data);
    free(r);
}
