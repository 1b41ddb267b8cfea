/* A file that is written once and not read soon. Large pieces go to the disk past the
 * system's cache of files, which would cost a copy of each byte, and pages that programs
 * have no more; where the file system, or the piece, does not allow it, through the
 * cache. All functions that return int return 0 or an errno. */
#ifndef MU_NODE_FILES_DIRECT_FILE_H
#define MU_NODE_FILES_DIRECT_FILE_H

#include <stddef.h>
#include <stdint.h>

struct mu__direct_file {
    int cached; /* -1: it is not open */
    int direct; /* the same file; -1: only through the cache */
};

/* What goes past the cache begins and ends at multiples of this, in the file and in
 * memory. */
enum { MU__DIRECT_ALIGN = 4096 };

/* Create the file `name` in a folder. */
int mu__direct_file_create(int folder, const char *name, struct mu__direct_file *file);

/* Its size, once: the space for it is reserved where the file system can do that. */
int mu__direct_file_resize(struct mu__direct_file *file, uint64_t size);

/* Write at any offset. Past the cache goes what is between multiples of MU__DIRECT_ALIGN
 * in the file, if `data` is as far behind one as `offset` is. */
int mu__direct_file_write_at(struct mu__direct_file *file, const void *data,
                             uint64_t size, uint64_t offset);

/* All of it to the disk. */
int mu__direct_file_flush(const struct mu__direct_file *file);

void mu__direct_file_close(struct mu__direct_file *file);

#endif
