/* Tasks as values: the results of the public calls mu_tasks_states and
 * mu_tasks_devices. */
#include "actors/coordination/internal.h"
#include "actors/coordination/roster.h"
#include "actors/coordination/tasks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mu_value *error_value(const mu_error *error)
{
    mu_value *map = mu_value_map();

    (void)mu_value_set(map, "code", mu_value_int(error->code));
    (void)mu_value_set(map, "name", mu_value_string(mu_err_name(error->code)));
    (void)mu_value_set(map, "message", mu_value_string(error->message));
    (void)mu_value_set(map, "task", mu_value_string(error->task));
    return map;
}

static int64_t get_elapsed_ms(uint64_t now_ms, uint64_t then_ms)
{
    return (int64_t)(now_ms - then_ms);
}

static mu_value *state_value(const struct mu__roster_task *task, uint64_t now_ms,
                             bool devices)
{
    mu_value *map = mu_value_map();
    char text[24];

    (void)mu_value_set(map, "task", mu_value_string(task->name));
    (void)mu_value_set(map, "type", mu_value_string(task->type));
    (void)mu_value_set(map, "index", mu_value_int(task->index));
    (void)mu_value_set(map, "state", mu_value_string(mu__roster_state_word(task)));
    (void)mu_value_set(map, "coordinated", mu_value_bool(task->coordinated));
    (void)mu_value_set(map, "recoverable", mu_value_bool(task->recoverable));
    if (task->incarnation != 0) {
        (void)snprintf(text, sizeof text, "%016" PRIx64, task->incarnation);
        (void)mu_value_set(map, "incarnation", mu_value_string(text));
        (void)mu_value_set(map, "heard_ms",
                           mu_value_int(get_elapsed_ms(now_ms, task->link.heard_ms)));
        (void)mu_value_set(map, "since_ms",
                           mu_value_int(get_elapsed_ms(now_ms, task->since_ms)));
        (void)mu_value_set(map, "progress", mu_value_int((int64_t)task->progress.count));
    }
    if (task->state == MU__TASK_FAILED) {
        (void)mu_value_set(map, "error", error_value(&task->failure.error));
        (void)mu_value_set(map, "reported", mu_value_bool(task->failure.self_reported));
    }
    if (devices && task->devices != NULL)
        (void)mu_value_set(map, "devices", mu_value_ref(task->devices));
    return map;
}

/* The devices that a task registered with, behind its name. */
static mu_value *devices_value(const struct mu__roster_task *task)
{
    mu_value *map = mu_value_map();

    (void)mu_value_set(map, "task", mu_value_string(task->name));
    for (size_t i = 0; i < mu_value_count(task->devices); i++)
        (void)mu_value_set(map, mu_value_key(task->devices, i),
                           mu_value_ref(mu_value_at(task->devices, i)));
    return map;
}

static int compare_listed_tasks(const void *a, const void *b)
{
    const struct mu__roster_task *const *left = a;
    const struct mu__roster_task *const *right = b;
    int order = strcmp((*left)->type, (*right)->type);

    if (order != 0)
        return order;
    return (*left)->index < (*right)->index ? -1 : (*left)->index > (*right)->index;
}

/* The tasks of a set, by type and index: the caller frees it. */
static const struct mu__roster_task **sort_listed_tasks(
    const struct coordination *c, const struct mu__task_set *set, uint32_t *ret_count)
{
    const struct mu__roster_task **tasks =
        malloc(((size_t)c->roster->count + 1) * sizeof *tasks);
    uint32_t count = 0;

    if (tasks == NULL)
        return NULL;
    for (uint32_t i = 0; i < c->roster->count; i++) {
        const struct mu__roster_task *task = c->roster->tasks[i];

        if (set == NULL || mu__task_set_has(set, task->type, task->index))
            tasks[count++] = task;
    }
    qsort(tasks, count, sizeof *tasks, compare_listed_tasks);
    *ret_count = count;
    return tasks;
}

mu_value *mu__coord_states(struct mu__ctx *ctx, const struct coordination *c,
                           const struct mu__task_set *set, enum mu__tasks_what what)
{
    uint64_t now_ms = mu__coord_clock(ctx, c);
    mu_value *list = mu_value_list();
    uint32_t count;
    const struct mu__roster_task **tasks = sort_listed_tasks(c, set, &count);
    int rv = list == NULL || tasks == NULL ? -MU_ENOMEM : 0;

    for (uint32_t i = 0; rv == 0 && i < count; i++) {
        if (what != MU__TASKS_DEVICES)
            rv = mu_value_append(list,
                                 state_value(tasks[i], now_ms, what == MU__TASKS_WAIT));
        else if (tasks[i]->state == MU__TASK_CONNECTED)
            rv = mu_value_append(list, devices_value(tasks[i]));
    }
    free(tasks);
    if (rv == 0)
        return list;
    mu_value_free(list);
    return NULL;
}
