#include "actors/supervisor/state/membership.h"

#include "actors/packing.h"

#include <assert.h>
#include <stdlib.h>

enum {
    LOOKS_MAX = 64,
    REFILL_FROM = 16 /* a smaller window is refilled one by one */
};

void mu__membership_done(struct mu__membership *members)
{
    free(members->workers);
    for (uint32_t role = 0; role < members->roles; role++)
        free(members->by_role[role].first);
    mu__map_done(&members->by_node);
    mu__map_done(&members->by_id);
    *members = (struct mu__membership){0};
}

/* The maps hold pointers; here these are numbers of workers. */
static int map_set(struct mu__map *map, uint64_t key, uint32_t number)
{
    return mu__map_set(map, key, (void *)(uintptr_t)number);
}

static uint32_t map_get(const struct mu__map *map, uint64_t key)
{
    return (uint32_t)(uintptr_t)mu__map_get(map, key);
}

/* The key in `by_id`. */
static uint64_t make_worker_key(struct mu__worker_id id)
{
    return ((uint64_t)id.role << 32 | id.index) + 1;
}

struct mu__member_worker *mu__membership_by_node(const struct mu__membership *members,
                                                 uint32_t node)
{
    return node == 0 ? NULL
                     : mu__membership_get(members, map_get(&members->by_node, node));
}

/* ---- Lists by load ---- */

static void leave_load_list(struct mu__membership *members,
                            struct mu__member_worker *worker)
{
    if (!worker->waiting)
        return;
    worker->waiting = false;
    if (worker->prev == 0)
        members->by_role[worker->role].first[worker->load] = worker->next;
    else
        members->workers[worker->prev].next = worker->next;
    if (worker->next != 0)
        members->workers[worker->next].prev = worker->prev;
}

/* Whether the threads have less work than `part_us` each. */
static bool has_spare_time(const struct mu__member_worker *worker, uint32_t part_us)
{
    return worker->load < mu__member_threads(worker) ||
           worker->load_us < (uint64_t)mu__member_soon_free_threads(worker) * part_us;
}

bool mu__membership_has_room(const struct mu__member_worker *worker)
{
    return worker->present && worker->holds == 0 && worker->load < worker->window &&
           worker->load_bytes <= MU__WORKER_BYTES_MAX &&
           (worker->time_us == 0 || has_spare_time(worker, worker->time_us));
}

/* Whether a worker is offered to closures. */
static bool is_worker_open(const struct mu__membership *members,
                           struct mu__member_worker *worker)
{
    if (!mu__membership_has_room(worker)) {
        worker->full = worker->window >= REFILL_FROM;
        worker->filled_turn = members->turn;
        return false;
    }
    if (worker->full && worker->filled_turn != members->turn &&
        worker->load > mu__member_threads(worker) &&
        (worker->load > worker->window / 2 ||
         (worker->time_us != 0 && !has_spare_time(worker, worker->time_us / 2))))
        return false;
    worker->full = false;
    return true;
}

static void join_list(struct mu__membership *members, struct mu__member_worker *worker)
{
    struct mu__load_lists *lists;
    uint32_t first;

    if (!is_worker_open(members, worker))
        return;
    lists = &members->by_role[worker->role];
    first = lists->first[worker->load];
    worker->waiting = true;
    worker->prev = 0;
    worker->next = first;
    if (first != 0)
        members->workers[first].prev = worker->number;
    lists->first[worker->load] = worker->number;
    if (worker->load < lists->lowest)
        lists->lowest = worker->load;
}

/* The first of the lowest load; 0: there is none. */
static inline uint32_t first_least_loaded(struct mu__load_lists *lists)
{
    while (lists->lowest < lists->size) {
        uint32_t number = lists->first[lists->lowest];

        if (number != 0)
            return number;
        lists->lowest++;
    }
    return 0;
}

uint32_t mu__membership_pick_role(struct mu__membership *members, uint32_t role)
{
    return first_least_loaded(&members->by_role[role]);
}

static uint32_t pick_of_all(struct mu__membership *members)
{
    uint32_t best = 0;

    for (uint32_t role = 0; role < members->roles; role++) {
        uint32_t number = first_least_loaded(&members->by_role[role]);

        if (number != 0 &&
            (best == 0 || members->workers[number].load < members->workers[best].load))
            best = number;
    }
    return best;
}

/* On the path of every closure. Most clusters have one role. */
uint32_t mu__membership_pick(struct mu__membership *members)
{
    return members->roles > 1 ? pick_of_all(members)
                              : first_least_loaded(&members->by_role[0]);
}

/* The roles that a search goes through: from `first` up to `end`, exclusive. */
struct roles {
    uint32_t first;
    uint32_t end;
    uint32_t lowest; /* load of their workers, */
    uint32_t size;   /* and one more than the highest */
};

static struct roles roles_of(const struct mu__membership *members, uint32_t role)
{
    struct roles roles = {.end = members->roles, .lowest = UINT32_MAX};

    if (role != MU__ROLE_ANY)
        roles = (struct roles){role, role + 1, UINT32_MAX, 0};
    for (uint32_t i = roles.first; i < roles.end; i++) {
        const struct mu__load_lists *lists = &members->by_role[i];

        if (lists->lowest < roles.lowest)
            roles.lowest = lists->lowest;
        if (lists->size > roles.size)
            roles.size = lists->size;
    }
    return roles;
}

uint32_t mu__membership_pick_fitting(const struct mu__membership *members, uint32_t role,
                                     bool (*fits)(const struct mu__member_worker *worker,
                                                  const void *arg),
                                     const void *arg)
{
    const struct roles roles = roles_of(members, role);
    unsigned left = LOOKS_MAX;

    for (uint32_t load = roles.lowest; load < roles.size; load++)
        for (uint32_t i = roles.first; i < roles.end; i++) {
            const struct mu__load_lists *lists = &members->by_role[i];
            uint32_t number = load < lists->size ? lists->first[load] : 0;

            for (; number != 0 && left > 0; left--) {
                if (fits(&members->workers[number], arg))
                    return number;
                number = members->workers[number].next;
            }
        }
    return 0;
}

void mu__membership_hold(struct mu__membership *members, uint32_t number, unsigned hold)
{
    leave_load_list(members, &members->workers[number]);
    members->workers[number].holds |= (uint8_t)hold;
}

void mu__membership_release(struct mu__membership *members, uint32_t number,
                            unsigned hold)
{
    struct mu__member_worker *worker = &members->workers[number];

    leave_load_list(members, worker);
    worker->holds &= (uint8_t)~hold;
    join_list(members, worker);
}

void mu__membership_step_back(struct mu__membership *members, uint32_t number)
{
    struct mu__member_worker *worker = &members->workers[number];
    uint32_t *first = &members->by_role[worker->role].first[worker->load];
    uint32_t before = worker->next;

    if (!worker->waiting || *first != number || before == 0)
        return;
    for (unsigned i = 0; i < LOOKS_MAX && members->workers[before].next != 0; i++)
        before = members->workers[before].next;
    *first = worker->next;
    members->workers[worker->next].prev = 0;
    worker->prev = before;
    worker->next = members->workers[before].next;
    if (worker->next != 0)
        members->workers[worker->next].prev = number;
    members->workers[before].next = number;
}

void mu__membership_load(struct mu__membership *members, uint32_t number, uint64_t bytes,
                         uint32_t cost_us)
{
    struct mu__member_worker *worker = &members->workers[number];

    leave_load_list(members, worker);
    worker->load++;
    members->load++;
    worker->load_bytes += bytes;
    worker->load_us += cost_us;
    members->crowded += worker->load == mu__member_threads(worker) + 1;
    join_list(members, worker);
}

static inline void discharge_worker(struct mu__member_worker *worker,
                                    struct mu__charge charge)
{
    assert(worker->load_us >= charge.cost_us);
    assert(charge.stage == MU__STAGE_SENT || worker->begun > 0);
    assert(charge.stage != MU__STAGE_LASTING || worker->lasting > 0);
    worker->load_us -= charge.cost_us;
    worker->begun -= charge.stage != MU__STAGE_SENT;
    worker->lasting -= charge.stage == MU__STAGE_LASTING;
}

void mu__membership_unload(struct mu__membership *members, uint32_t number,
                           uint64_t bytes, struct mu__charge charge)
{
    struct mu__member_worker *worker = &members->workers[number];

    assert(worker->load > 0 && worker->load_bytes >= bytes);
    leave_load_list(members, worker);
    members->crowded -= worker->load == mu__member_threads(worker) + 1;
    worker->load--;
    members->load--;
    worker->load_bytes -= bytes;
    discharge_worker(worker, charge);
    join_list(members, worker);
}

void mu__membership_recharge(struct mu__membership *members, uint32_t number,
                             struct mu__charge from, struct mu__charge to)
{
    struct mu__member_worker *worker = &members->workers[number];

    leave_load_list(members, worker);
    discharge_worker(worker, from);
    worker->load_us += to.cost_us;
    worker->begun += to.stage != MU__STAGE_SENT;
    worker->lasting += to.stage == MU__STAGE_LASTING;
    join_list(members, worker);
}

void mu__membership_set_time(struct mu__membership *members, uint32_t number,
                             uint32_t time_us)
{
    struct mu__member_worker *worker = &members->workers[number];

    leave_load_list(members, worker);
    worker->time_us = time_us;
    join_list(members, worker);
}

/* ---- Joining and leaving ---- */

/* A number that nobody has, given to a worker that may be away. 0: out of memory. */
static uint32_t new_number(struct mu__membership *members, struct mu__worker_id id)
{
    uint32_t number = members->unknown == 0 ? 1 : members->unknown;
    uint32_t size = members->workers_size == 0 ? 8 : members->workers_size * 2;

    while (number < members->workers_size && members->workers[number].known)
        number++;
    if ((number >= members->workers_size &&
         !mu__grow_zeroed((void **)&members->workers, &members->workers_size, size,
                          sizeof *members->workers)) ||
        map_set(&members->by_id, make_worker_key(id), number) != 0)
        return 0;
    members->unknown = number + 1;
    members->workers[number] = (struct mu__member_worker){
        .known = true, .number = number, .role = id.role, .index = id.index};
    return number;
}

uint32_t mu__membership_add(struct mu__membership *members, uint32_t node,
                            struct mu__worker_id id, uint32_t threads, uint32_t window)
{
    uint32_t number = map_get(&members->by_id, make_worker_key(id));
    struct mu__load_lists *lists = &members->by_role[id.role];

    assert(window > 0 && window <= MU__WINDOW_MAX && node != 0);
    assert(id.role < MU__WORKER_TYPES_MAX);
    if (id.role >= members->roles)
        members->roles = id.role + 1;
    if (number == 0 || members->workers[number].present)
        number = new_number(members, id);
    if (number == 0 ||
        !mu__grow_zeroed((void **)&lists->first, &lists->size, window,
                         sizeof *lists->first) ||
        map_set(&members->by_node, node, number) != 0)
        return 0;
    members->workers[number] = (struct mu__member_worker){
        .known = true,
        .present = true,
        .number = number,
        .node = node,
        .role = id.role,
        .index = id.index,
        .threads = threads,
        .window = window,
    };
    if (mu__member_threads(&members->workers[number]) > members->threads_max)
        members->threads_max = mu__member_threads(&members->workers[number]);
    members->count++;
    join_list(members, &members->workers[number]);
    return number;
}

uint32_t mu__membership_enroll(struct mu__membership *members, struct mu__worker_id id)
{
    uint32_t number = map_get(&members->by_id, make_worker_key(id));

    return number != 0 ? number : new_number(members, id);
}

uint32_t mu__membership_find(const struct mu__membership *members,
                             struct mu__worker_id id)
{
    return map_get(&members->by_id, make_worker_key(id));
}

void mu__membership_forget(struct mu__membership *members, uint32_t number)
{
    uint64_t key = make_worker_key(mu__member_id(&members->workers[number]));

    assert(!members->workers[number].present);
    members->workers[number].known = false;
    if (map_get(&members->by_id, key) == number)
        (void)mu__map_remove(&members->by_id, key);
    if (number < members->unknown)
        members->unknown = number;
}

void mu__membership_remove(struct mu__membership *members, uint32_t number)
{
    leave_load_list(members, &members->workers[number]);
    members->load -= members->workers[number].load;
    members->crowded -=
        members->workers[number].load > mu__member_threads(&members->workers[number]);
    (void)mu__map_remove(&members->by_node, members->workers[number].node);
    members->workers[number].present = false;
    members->count--;
}
