/* Notices that a file changes, or what is in a folder. Loop thread only. */
#ifndef MU_NODE_PATH_WATCH_H
#define MU_NODE_PATH_WATCH_H

#include <stdbool.h>
#include <uv.h>

struct mu__path_watch {
    uv_fs_event_t event; /* comes first; `data` is its owner's */
    char path[512];      /* as given to start; "": not started yet */
    char name[256];      /* of the file in the folder that is watched; "": any */
    bool is_on;
    bool is_stale; /* the watched folder was moved or replaced */
    void (*changed)(void *owner);
    void *owner;
};

void mu__path_watch_init(struct mu__path_watch *watch, uv_loop_t *loop,
                         void (*changed)(void *owner), void *owner);

/* To be called before each look at the path: begins to watch, and begins anew where the
 * path is another one, or its folder has come, gone or been replaced; else it does
 * nothing. Where watching fails, or the path is too long, no change is noticed: the owner
 * looks from time to time, too. */
void mu__path_watch_start(struct mu__path_watch *watch, const char *path);

/* Until the next start. */
void mu__path_watch_stop(struct mu__path_watch *watch);

#endif
