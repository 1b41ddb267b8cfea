#include "actors/coordination/keys/lock_queue.h"

#include <stdio.h>
#include <string.h>

/* Keys right below the lock's name; keys further down are of locks with longer names. */
static bool is_queue_key(const char *key, const char *directory)
{
    return strchr(key + strlen(directory) + 1, '/') == NULL;
}

static void note_queue_head(const mu_value *item, uint64_t revision,
                            struct mu__lock_queue *queue)
{
    const void *value = "";
    size_t size = 0;

    if (queue->first != 0 && revision > queue->first)
        return;
    queue->first = revision;
    (void)mu_value_get_bytes(mu_value_find(item, "value"), &value, &size);
    (void)snprintf(queue->holder, sizeof queue->holder, "%.*s", (int)size,
                   (const char *)value);
}

static void note_queue_key(const mu_value *item, const char *directory, uint64_t ours,
                           struct mu__lock_queue *queue)
{
    const char *key = NULL;
    size_t size = 0;
    int64_t number = 0;
    uint64_t revision;

    if (mu_value_get_string(mu_value_find(item, "key"), &key, &size) != 0 ||
        mu_value_get_int(mu_value_find(item, "revision"), &number) != 0 ||
        !is_queue_key(key, directory))
        return;
    revision = (uint64_t)number;
    queue->is_ours_there = queue->is_ours_there || revision == ours;
    if (revision >= ours)
        return;
    queue->before_count++;
    if (revision > queue->before) {
        queue->before = revision;
        (void)snprintf(queue->before_key, sizeof queue->before_key, "%s", key);
    }
    note_queue_head(item, revision, queue);
}

void mu__lock_queue_read(const mu_value *items, const char *directory, uint64_t number,
                         struct mu__lock_queue *ret_queue)
{
    *ret_queue = (struct mu__lock_queue){.before_count = 0};
    for (size_t i = 0; i < mu_value_count(items); i++)
        note_queue_key(mu_value_at(items, i), directory, number, ret_queue);
}

enum mu__lock_step mu__lock_queue_next(const struct mu__lock_queue *queue)
{
    if (!queue->is_ours_there)
        return MU__LOCK_COME;
    return queue->before == 0 ? MU__LOCK_HOLD : MU__LOCK_WAIT;
}
