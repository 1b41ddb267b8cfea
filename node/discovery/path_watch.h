/* Notices that a file changes, or what is in a folder. Loop thread only. */
#ifndef MU_NODE_PATH_WATCH_H
#define MU_NODE_PATH_WATCH_H

#include <stdbool.h>
#include <uv.h>

struct mu__path_watch {
    uv_fs_event_t event;        /* comes first; `data` is its owner's */
    char path[512];             /* what was asked for; "": nothing yet */
    char name[256];             /* the file's in the folder that is watched; "": any */
    bool is_on;
    bool is_stale;              /* what is watched has moved, or is another one by now */
    void (*changed)(void *owner);
    void *owner;
};

void mu__path_watch_init(struct mu__path_watch *watch, uv_loop_t *loop,
                         void (*changed)(void *owner), void *owner);

/* To be called before each look: it begins, and begins anew where a folder came, went, or
 * is another one, or the path is another one; else it does nothing. Where it cannot be
 * done, or the path is too long, nothing is noticed: whoever watches looks from time to
 * time, too. */
void mu__path_watch_start(struct mu__path_watch *watch, const char *path);

/* Nothing is noticed until it begins again. */
void mu__path_watch_stop(struct mu__path_watch *watch);

#endif
