/* A file that is written on a thread of its own, so that no loop waits for the disk: the
 * next content of a file_storage. All calls are of one thread, the loop's. Codes are
 * errno's; 0 is success. */
#ifndef MU_RUNTIME_RENEWAL_UV_H
#define MU_RUNTIME_RENEWAL_UV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mu__renewal;

/* `file` is empty, and stays the caller's. */
int mu__renewal_start(int file, struct mu__renewal **ret_renewal);

/* Takes a copy. Waits only when the thread is MU__RENEWAL_BYTES_MAX behind. */
enum { MU__RENEWAL_BYTES_MAX = 64 << 20 };
int mu__renewal_append(struct mu__renewal *renewal, const void *data, size_t size);
bool mu__renewal_is_busy(struct mu__renewal *renewal);

/* When all that was appended when it was first called is on the disk, and the thread has
 * written all but a little: writes that little, and returns 0 with the size of the file.
 * EAGAIN: not yet. */
int mu__renewal_finish(struct mu__renewal *renewal, bool sync, uint64_t *ret_length);

/* The thread closes `file` and ends; -1: it just ends. */
void mu__renewal_stop(struct mu__renewal *renewal, int file);

/* Wait for that, and free it. NULL is fine. */
void mu__renewal_free(struct mu__renewal *renewal);

#endif
