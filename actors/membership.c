#include "actors/membership.h"

#include <assert.h>
#include <stdlib.h>

void mu__membership_done(struct mu__membership *members)
{
    free(members->workers);
    free(members->loads);
    *members = (struct mu__membership){0};
}

struct mu__member_worker *mu__membership_get(const struct mu__membership *members,
                                             uint32_t number)
{
    if (number == 0 || number >= members->workers_size ||
        !members->workers[number].present)
        return NULL;
    return &members->workers[number];
}

struct mu__member_worker *mu__membership_by_node(const struct mu__membership *members,
                                                 uint32_t node)
{
    for (uint32_t i = 1; i < members->workers_size; i++)
        if (members->workers[i].present && members->workers[i].node == node)
            return &members->workers[i];
    return NULL;
}

/* ---- lists by load ---- */

static void leave_list(struct mu__membership *members, struct mu__member_worker *worker)
{
    if (!worker->waiting)
        return;
    worker->waiting = false;
    if (worker->prev == 0)
        members->loads[worker->load] = worker->next;
    else
        members->workers[worker->prev].next = worker->next;
    if (worker->next != 0)
        members->workers[worker->next].prev = worker->prev;
}

static void join_list(struct mu__membership *members, struct mu__member_worker *worker)
{
    uint32_t first;

    if (worker->load >= worker->window || worker->load_bytes > MU__WORKER_BYTES_MAX)
        return;
    first = members->loads[worker->load];
    worker->waiting = true;
    worker->prev = 0;
    worker->next = first;
    if (first != 0)
        members->workers[first].prev = worker->number;
    members->loads[worker->load] = worker->number;
    if (worker->load < members->lowest)
        members->lowest = worker->load;
}

uint32_t mu__membership_pick(struct mu__membership *members)
{
    while (members->lowest < members->loads_size) {
        uint32_t number = members->loads[members->lowest];

        if (number != 0)
            return number;
        members->lowest++;
    }
    return 0;
}

void mu__membership_load(struct mu__membership *members, uint32_t number, uint64_t bytes)
{
    struct mu__member_worker *worker = &members->workers[number];

    leave_list(members, worker);
    worker->load++;
    worker->load_bytes += bytes;
    join_list(members, worker);
}

void mu__membership_unload(struct mu__membership *members, uint32_t number,
                           uint64_t bytes)
{
    struct mu__member_worker *worker = &members->workers[number];

    assert(worker->load > 0 && worker->load_bytes >= bytes);
    leave_list(members, worker);
    worker->load--;
    worker->load_bytes -= bytes;
    join_list(members, worker);
}

/* ---- joining and leaving ---- */

static uint32_t free_number(struct mu__membership *members)
{
    struct mu__member_worker *workers;
    uint32_t number;
    uint32_t size;

    for (uint32_t i = 1; i < members->workers_size; i++)
        if (!members->workers[i].present)
            return i;
    number = members->workers_size == 0 ? 1 : members->workers_size;
    size = members->workers_size == 0 ? 8 : members->workers_size * 2;
    workers = realloc(members->workers, size * sizeof *workers);
    if (workers == NULL)
        return 0;
    for (uint32_t i = members->workers_size; i < size; i++)
        workers[i] = (struct mu__member_worker){0};
    members->workers = workers;
    members->workers_size = size;
    return number;
}

static bool make_loads(struct mu__membership *members, uint32_t window)
{
    uint32_t *loads;

    if (window <= members->loads_size)
        return true;
    loads = realloc(members->loads, window * sizeof *loads);
    if (loads == NULL)
        return false;
    for (uint32_t i = members->loads_size; i < window; i++)
        loads[i] = 0;
    members->loads = loads;
    members->loads_size = window;
    return true;
}

uint32_t mu__membership_add(struct mu__membership *members, uint32_t node, uint32_t index,
                            uint32_t threads, uint32_t window)
{
    uint32_t number = free_number(members);

    assert(window > 0 && window <= MU__WINDOW_MAX);
    if (number == 0 || !make_loads(members, window))
        return 0;
    members->workers[number] = (struct mu__member_worker){
        .present = true,
        .number = number,
        .node = node,
        .index = index,
        .threads = threads,
        .window = window,
    };
    members->count++;
    join_list(members, &members->workers[number]);
    return number;
}

void mu__membership_remove(struct mu__membership *members, uint32_t number)
{
    leave_list(members, &members->workers[number]);
    members->workers[number].present = false;
    members->count--;
}
