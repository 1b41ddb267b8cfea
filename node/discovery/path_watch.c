#include "node/discovery/path_watch.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void mu__path_watch_init(struct mu__path_watch *watch, uv_loop_t *loop,
                         void (*changed)(void *owner), void *owner)
{
    *watch = (struct mu__path_watch){.changed = changed, .owner = owner};
    (void)uv_fs_event_init(loop, &watch->event);
    watch->event.data = owner;
}

/* Whether an event is of the watched folder itself: libuv gives its name then, "" where
 * the path ends with '/'. */
static bool is_of_folder(uv_fs_event_t *event, const char *name)
{
    char path[sizeof((struct mu__path_watch *)0)->path];
    size_t size = sizeof path;
    const char *slash;

    if (uv_fs_event_getpath(event, path, &size) != 0)
        return false;
    slash = strrchr(path, '/');
    return strcmp(name, slash == NULL ? path : slash + 1) == 0;
}

static void on_path_event(uv_fs_event_t *event, const char *name, int events, int status)
{
    struct mu__path_watch *watch = (struct mu__path_watch *)event;
    bool is_other;

    if (status != 0)
        return;
    is_other =
        name == NULL || is_of_folder(event, name) || strcmp(name, watch->name) == 0;
    if (is_other && (events & UV_RENAME) != 0)
        watch->is_stale = true;
    if (is_other || watch->name[0] == '\0')
        watch->changed(watch->owner);
}

/* For a file, which may be replaced, or a path that is not there yet, the folder that it
 * is in is watched. */
void mu__path_watch_start(struct mu__path_watch *watch, const char *path)
{
    char folder[sizeof watch->path];
    const char *slash = strrchr(path, '/');
    bool is_same = strcmp(path, watch->path) == 0;
    struct stat about;

    if ((watch->is_on && !watch->is_stale && is_same) || strlen(path) >= sizeof folder)
        return;
    (void)uv_fs_event_stop(&watch->event);
    watch->is_stale = false;
    watch->name[0] = '\0';
    if (!is_same)
        (void)snprintf(watch->path, sizeof watch->path, "%s", path);
    (void)snprintf(folder, sizeof folder, "%s", path);
    if (stat(path, &about) != 0 || !S_ISDIR(about.st_mode)) {
        (void)snprintf(watch->name, sizeof watch->name, "%s",
                       slash == NULL ? path : slash + 1);
        (void)snprintf(folder, sizeof folder, "%.*s",
                       slash == NULL ? 1 : (int)(slash - path) + 1,
                       slash == NULL ? "." : path);
    }
    watch->is_on = uv_fs_event_start(&watch->event, on_path_event, folder, 0) == 0;
}

void mu__path_watch_stop(struct mu__path_watch *watch)
{
    (void)uv_fs_event_stop(&watch->event);
    watch->is_on = false;
}
