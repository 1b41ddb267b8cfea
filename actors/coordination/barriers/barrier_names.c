/* The names of a table of barriers: which there are, and which are dropped. */
#include "actors/coordination/barriers/barrier_names.h"

#include "actors/packing.h"
#include "runtime/base/sip_hash.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash_barrier_name(const struct mu__barriers *barriers,
                                  struct mu__view name)
{
    return mu__sip_hash(barriers->secret, name.data, name.size);
}

static bool has_barrier_name(const struct mu__barrier *barrier, struct mu__view name)
{
    return barrier->name_size == name.size &&
           memcmp(barrier->name, name.data, name.size) == 0;
}

struct mu__barrier *mu__barriers_find(const struct mu__barriers *barriers,
                                      struct mu__view name)
{
    struct mu__barrier *at =
        mu__map_get(&barriers->names, hash_barrier_name(barriers, name));

    while (at != NULL && !has_barrier_name(at, name))
        at = at->chain;
    return at;
}

void mu__barrier_append(struct mu__barrier_list *list, struct mu__barrier *barrier)
{
    mu__list_append(&list->list, &barrier->link);
    list->count++;
}

void mu__barrier_unlink(struct mu__barrier_list *list, struct mu__barrier *barrier)
{
    mu__list_remove(&list->list, &barrier->link);
    list->count--;
}

void mu__barrier_outcome_free(struct mu__barrier_outcome *outcome)
{
    if (outcome != NULL)
        free(outcome->message);
    free(outcome);
}

static void free_barrier(struct mu__barrier *barrier)
{
    struct mu__barrier_outcome *next;

    for (struct mu__barrier_outcome *at = barrier->outcomes; at != NULL; at = next) {
        next = at->next;
        mu__barrier_outcome_free(at);
    }
    mu__barrier_outcome_free(barrier->spare);
    mu__free_array(barrier->seats);
    mu__map_done(&barrier->by_slot);
    free(barrier->set);
    free(barrier);
}

struct mu__barrier *mu__barrier_new_barrier(struct mu__barriers *barriers,
                                            struct mu__view name)
{
    struct mu__barrier *barrier = calloc(1, sizeof *barrier + name.size + 1);
    uint64_t key = hash_barrier_name(barriers, name);

    if (barrier == NULL)
        return NULL;
    memcpy(barrier->name, name.data, name.size);
    barrier->name_size = name.size;
    barrier->chain = mu__map_get(&barriers->names, key);
    if (mu__map_set(&barriers->names, key, barrier) != 0) {
        free(barrier);
        return NULL;
    }
    return barrier;
}

/* Take a barrier out of the table of names. */
static void unlist_barrier_name(struct mu__barriers *barriers,
                                const struct mu__barrier *barrier)
{
    uint64_t key = hash_barrier_name(barriers, mu__barrier_name(barrier));
    struct mu__barrier *at = mu__map_get(&barriers->names, key);

    if (at == barrier && at->chain == NULL) {
        (void)mu__map_remove(&barriers->names, key);
        return;
    }
    if (at == barrier) {
        /* Replacing the value of a key that is there takes no memory. */
        (void)mu__map_set(&barriers->names, key, barrier->chain);
        return;
    }
    while (at->chain != barrier)
        at = at->chain;
    at->chain = barrier->chain;
}

void mu__barrier_discard(struct mu__barriers *barriers, struct mu__barrier *barrier)
{
    unlist_barrier_name(barriers, barrier);
    barriers->seats -= barrier->seats_count;
    free_barrier(barrier);
}

static void drop_barrier(struct mu__barriers *barriers, struct mu__barrier *barrier)
{
    if (barriers->dropped != NULL)
        barriers->dropped(barriers->user, barrier);
    mu__barrier_unlink(&barriers->over, barrier);
    mu__barrier_discard(barriers, barrier);
}

uint64_t mu__barriers_forget_over(struct mu__barriers *barriers)
{
    uint64_t count = 0;

    for (; barriers->over.count > 0; count++)
        drop_barrier(barriers, mu__barrier_first(&barriers->over));
    return count;
}

static void free_barrier_list(struct mu__barrier_list *list)
{
    struct mu__barrier *next;

    for (struct mu__barrier *at = mu__barrier_first(list); at != NULL; at = next) {
        next = mu__barrier_next(at);
        free_barrier(at);
    }
    *list = (struct mu__barrier_list){.count = 0};
}

void mu__barriers_done(struct mu__barriers *barriers)
{
    free_barrier_list(&barriers->running);
    free_barrier_list(&barriers->over);
    mu__map_done(&barriers->names);
    mu__map_done(&barriers->begun);
    barriers->seats = 0;
}

int mu__barrier_make_room(struct mu__barriers *barriers, const struct mu__barrier *but,
                          uint32_t seats, uint64_t now_ms, mu_error *ret_error)
{
    uint32_t names = but == NULL;

    while (barriers->running.count + barriers->over.count + names > MU__BARRIERS_MAX ||
           barriers->seats + seats > MU__BARRIER_SEATS_MAX) {
        struct mu__barrier *oldest = mu__barrier_first(&barriers->over);

        if (oldest != NULL && oldest == but)
            oldest = mu__barrier_next(oldest);
        if (oldest == NULL || now_ms - oldest->since_ms < MU__BARRIER_KEEP_MS)
            return mu_error_set(
                ret_error, -MU_EEXHAUSTED,
                "%" PRIu32 " barriers run and %" PRIu32 " were over within the last "
                "%d s, with %" PRIu64 " places for tasks; at most %d barriers and %d "
                "places are remembered",
                barriers->running.count, barriers->over.count, MU__BARRIER_KEEP_MS / 1000,
                barriers->seats, MU__BARRIERS_MAX, MU__BARRIER_SEATS_MAX);
        drop_barrier(barriers, oldest);
    }
    return 0;
}
