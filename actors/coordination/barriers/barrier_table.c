#include "actors/coordination/barriers/barrier_table.h"

#include "actors/coordination/barriers/barrier_names.h"
#include "actors/packing.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- outcomes ---- */

static struct mu__barrier_seat *seat_of(const struct mu__barrier *barrier, uint32_t slot)
{
    uintptr_t index = (uintptr_t)mu__map_get(&barrier->by_slot, (uint64_t)slot + 1);

    return index == 0 ? NULL : &barrier->seats[index - 1];
}

struct mu__barrier_seat *mu__barrier_seat(const struct mu__barrier *barrier,
                                          uint32_t slot)
{
    struct mu__barrier_seat *seat = seat_of(barrier, slot);

    return seat != NULL && (seat->past & 1) != 0 ? seat : NULL;
}

const struct mu__barrier_outcome *mu__barrier_outcome(const struct mu__barrier *barrier,
                                                      uint64_t generation)
{
    const struct mu__barrier_outcome *at = barrier->outcomes;

    while (at != NULL && at->generation != generation)
        at = at->next;
    return at;
}

/* Whether a task took part in a generation before the present one. Of those of a former
 * host this is not known: every task counts that has not arrived here since. */
static bool took_part(const struct mu__barrier *barrier,
                      const struct mu__barrier_seat *seat, uint64_t generation)
{
    uint64_t begun = barrier->running ? barrier->generation : barrier->generation - 1;

    if (generation < barrier->read_end)
        return seat == NULL || seat->incarnation == 0;
    if (seat == NULL || begun - generation > MU__BARRIER_OUTCOMES_MAX)
        return false;
    return (seat->past >> (begun - generation) & 1) != 0;
}

/* Whether an earlier incarnation took part, and not this one. Who has never arrived here
 * may have been at a former host: at what that one read, or held, which is a success. */
static bool is_later_incarnation(const struct mu__barrier *barrier,
                                 const struct mu__barrier_seat *seat,
                                 const struct mu__barrier_arrival *arrival,
                                 const struct mu__barrier_outcome *outcome)
{
    if (seat == NULL || seat->incarnation == 0)
        return (outcome->generation < barrier->read_end || outcome->code == 0) &&
               outcome->revision < arrival->since;
    return seat->incarnation != arrival->incarnation;
}

/* Whether an outcome is not for younger processes. */
static bool is_quiet_outcome(const struct mu__barriers *barriers,
                             const struct mu__barrier_outcome *outcome)
{
    return barriers->quiet_revision != 0 && outcome->revision <= barriers->quiet_revision;
}

/* The outcome of a generation, if it is for this arrival: its task took part, in the same
 * incarnation, and has not arrived at a later generation since. A later incarnation gets
 * the outcome of the last generation only, and not when it begins anew. */
static const struct mu__barrier_outcome *known_outcome(
    const struct mu__barriers *barriers, const struct mu__barrier *barrier,
    const struct mu__barrier_seat *seat, const struct mu__barrier_arrival *arrival,
    uint64_t generation)
{
    const struct mu__barrier_outcome *outcome = mu__barrier_outcome(barrier, generation);

    if (outcome == NULL || !took_part(barrier, seat, generation))
        return NULL;
    if (!is_later_incarnation(barrier, seat, arrival, outcome))
        return seat != NULL && generation < seat->generation ? NULL : outcome;
    if (is_quiet_outcome(barriers, outcome) || arrival->anew || arrival->is_held ||
        barrier->running || generation + 1 != barrier->generation)
        return NULL;
    return outcome;
}

bool mu__barrier_is_late(const struct mu__barriers *barriers,
                         const struct mu__barrier *barrier,
                         const struct mu__barrier_arrival *arrival)
{
    const struct mu__barrier_outcome *last = barrier->outcomes;

    return !barrier->running && barrier->read_end == barrier->generation &&
           arrival->generation + 1 == barrier->generation && last->code == 0 &&
           last->revision < arrival->since && !is_quiet_outcome(barriers, last) &&
           !arrival->anew;
}

void mu__barrier_renew(struct mu__barrier *barrier, uint64_t revision)
{
    barrier->outcomes->revision = revision;
}

/* A hash of one arrival, of 62 bits. */
static uint64_t mark_of(uint64_t incarnation, uint64_t token)
{
    uint64_t mark = (incarnation ^ token * UINT64_C(0x9e3779b97f4a7c15)) *
                    UINT64_C(0xff51afd7ed558ccd);

    return (mark ^ mark >> 32) >> 2;
}

/* The outcome that a former host had for this very arrival; NULL: none is known. */
static const struct mu__barrier_outcome *joined_outcome(
    const struct mu__barrier *barrier, const struct mu__barrier_arrival *arrival)
{
    uint64_t mark = mark_of(arrival->incarnation, arrival->token);

    for (const struct mu__barrier_outcome *at = barrier->outcomes; at != NULL;
         at = at->next)
        for (uint32_t i = 0; i < at->joined_count; i++)
            if (at->joined[i] == mark)
                return at;
    return NULL;
}

/* ---- arriving ---- */

static bool is_other_set(const struct mu__barrier *barrier,
                         const struct mu__barrier_arrival *arrival)
{
    const char *set = barrier->of_all ? arrival->all : barrier->set;

    return barrier->set != NULL && !(barrier->of_all && arrival->of_all) &&
           strcmp(set, arrival->set) != 0;
}

static enum mu__arrived mark_arrival(struct mu__barrier *barrier,
                                     const struct mu__barrier_arrival *arrival,
                                     uint64_t *ret_token)
{
    struct mu__barrier_seat *seat = mu__barrier_seat(barrier, arrival->slot);
    bool is_again;

    if (seat == NULL || is_other_set(barrier, arrival))
        return MU__ARRIVED_DIFFERENT;
    is_again = seat->arrived && seat->incarnation == arrival->incarnation;
    if (is_again && seat->token != arrival->token)
        *ret_token = seat->token;
    if (barrier->arrived == 0)
        barrier->first = arrival->slot;
    barrier->arrived += !seat->arrived;
    seat->arrived = true;
    seat->incarnation = arrival->incarnation;
    seat->token = arrival->token;
    seat->awaited = arrival->generation;
    seat->generation = barrier->generation;
    return barrier->arrived == barrier->expected ? MU__ARRIVED_LAST : MU__ARRIVED_WAITS;
}

static enum mu__arrived arrive_late(
    const struct mu__barriers *barriers, struct mu__barrier *barrier,
    const struct mu__barrier_seat *seat, const struct mu__barrier_arrival *arrival,
    uint64_t generation, const struct mu__barrier_outcome **ret_outcome)
{
    const struct mu__barrier_outcome *outcome;

    if (!barrier->running && generation + 1 == barrier->generation &&
        is_other_set(barrier, arrival))
        return MU__ARRIVED_DIFFERENT;
    outcome = known_outcome(barriers, barrier, seat, arrival, generation);
    if (outcome == NULL)
        return MU__ARRIVED_SLOW;
    *ret_outcome = outcome;
    return MU__ARRIVED_AGAIN;
}

/* Whether the task took part in no generation that is over, from the named one on. In
 * those of a former host only processes of that time took part. */
static bool missed_nothing(const struct mu__barrier *barrier,
                           const struct mu__barrier_seat *seat,
                           const struct mu__barrier_arrival *arrival, uint64_t generation)
{
    return (generation >= barrier->read_end || barrier->read_revision < arrival->since) &&
           (seat == NULL || generation >= seat->over_end);
}

/* Whether an arrival for a former generation joins the present one. */
static bool may_join_generation(const struct mu__barrier *barrier,
                                const struct mu__barrier_seat *seat,
                                const struct mu__barrier_arrival *arrival,
                                uint64_t generation)
{
    return arrival->recoverable || arrival->anew ||
           missed_nothing(barrier, seat, arrival, generation);
}

enum mu__arrived mu__barriers_arrive(struct mu__barriers *barriers,
                                     const struct mu__barrier_arrival *arrival,
                                     const struct mu__barrier_outcome **ret_outcome,
                                     uint64_t *ret_token)
{
    struct mu__barrier *barrier = mu__barriers_find(barriers, arrival->name);
    uint64_t generation = arrival->generation;
    struct mu__barrier_seat *seat;

    if (barrier == NULL)
        return MU__ARRIVED_FIRST;
    seat = seat_of(barrier, arrival->slot);
    if (seat != NULL && seat->incarnation == arrival->incarnation &&
        seat->token == arrival->token)
        generation = seat->generation;
    *ret_outcome = joined_outcome(barrier, arrival);
    if (*ret_outcome != NULL)
        return MU__ARRIVED_AGAIN;
    if (generation < barrier->generation) {
        enum mu__arrived arrived =
            arrive_late(barriers, barrier, seat, arrival, generation, ret_outcome);

        if (arrived != MU__ARRIVED_SLOW ||
            !may_join_generation(barrier, seat, arrival, generation))
            return arrived;
        generation = barrier->generation;
    }
    if (generation > barrier->generation)
        return MU__ARRIVED_QUICK;
    if (!barrier->running)
        return MU__ARRIVED_FIRST;
    return mark_arrival(barrier, arrival, ret_token);
}

bool mu__barrier_uncount(struct mu__barrier *barrier, uint32_t slot)
{
    struct mu__barrier_seat *seat = mu__barrier_seat(barrier, slot);

    if (!barrier->running || seat == NULL || !seat->arrived)
        return false;
    seat->arrived = false;
    barrier->arrived--;
    return true;
}

bool mu__barrier_may_cancel(const struct mu__barrier *barrier, uint32_t slot,
                            uint64_t incarnation, uint64_t generation)
{
    const struct mu__barrier_seat *seat = mu__barrier_seat(barrier, slot);

    return barrier->running && seat != NULL && seat->arrived &&
           seat->incarnation == incarnation &&
           (seat->awaited == generation || seat->generation == generation);
}

/* ---- beginning ---- */

static uint32_t seats_missing(const struct mu__barrier *barrier, const uint32_t *slots,
                              uint32_t count)
{
    uint32_t missing = 0;

    for (uint32_t i = 0; i < count; i++)
        missing += seat_of(barrier, slots[i]) == NULL;
    return missing;
}

static int add_seat(struct mu__barriers *barriers, struct mu__barrier *barrier,
                    uint32_t slot)
{
    uint32_t index = barrier->seats_count;

    if (seat_of(barrier, slot) != NULL)
        return 0;
    if (index == barrier->seats_size) {
        uint32_t size = index == 0 ? 4 : index * 2;

        if (!mu__grow_array((void **)&barrier->seats, size, sizeof *barrier->seats))
            return -MU_ENOMEM;
        barrier->seats_size = size;
    }
    if (mu__map_set(&barrier->by_slot, (uint64_t)slot + 1,
                    (void *)(uintptr_t)(index + 1)) != 0)
        return -MU_ENOMEM;
    barrier->seats[index] = (struct mu__barrier_seat){.slot = slot};
    barrier->seats_count++;
    barriers->seats++;
    return 0;
}

/* Take all memory that this generation will need, up to its outcome. */
static int reserve_generation(struct mu__barriers *barriers, struct mu__barrier *barrier,
                              const struct mu__barrier_arrival *arrival,
                              const uint32_t *slots, uint32_t count)
{
    size_t size = strlen(arrival->set) + 1;
    char *copy;

    for (uint32_t i = 0; i < count; i++)
        if (add_seat(barriers, barrier, slots[i]) != 0)
            return -MU_ENOMEM;
    if (barrier->spare == NULL)
        barrier->spare = calloc(1, sizeof *barrier->spare);
    copy = malloc(size);
    if (barrier->spare == NULL || copy == NULL) {
        free(copy);
        return -MU_ENOMEM;
    }
    memcpy(copy, arrival->set, size);
    free(barrier->set);
    barrier->set = copy;
    barrier->of_all = arrival->of_all;
    return 0;
}

static void seat_participants(struct mu__barrier *barrier, const uint32_t *slots,
                              uint32_t count)
{
    for (uint32_t i = 0; i < barrier->seats_count; i++) {
        barrier->seats[i].past = (uint16_t)(barrier->seats[i].past << 1);
        barrier->seats[i].arrived = false;
    }
    for (uint32_t i = 0; i < count; i++)
        seat_of(barrier, slots[i])->past |= 1;
    barrier->expected = count;
    barrier->arrived = 0;
}

/* Count one more that the task has begun; `more` -1: one less, which never fails. */
static int count_begun(struct mu__barriers *barriers, uint32_t slot, int more,
                       mu_error *ret_error)
{
    uint64_t key = (uint64_t)slot + 1;
    uintptr_t count = (uintptr_t)mu__map_get(&barriers->begun, key);

    if (more < 0 && count == 1)
        (void)mu__map_remove(&barriers->begun, key);
    else if (more > 0 && count == MU__BARRIERS_BEGUN_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%d barriers run that this task began, as many as one task "
                            "may",
                            MU__BARRIERS_BEGUN_MAX);
    else if (mu__map_set(&barriers->begun, key, (void *)(count + (uintptr_t)more)) != 0)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a barrier");
    return 0;
}

/* From now on it is known who took part in the last generation: the seats. */
static void hold_barrier(struct mu__barrier *barrier)
{
    barrier->read_end = --barrier->generation;
    barrier->here_ms = 0;
    barrier->held = true;
}

int mu__barriers_begin(struct mu__barriers *barriers,
                       const struct mu__barrier_arrival *arrival, const uint32_t *slots,
                       uint32_t count, uint64_t timeout_ms, uint64_t now_ms,
                       mu_error *ret_error, struct mu__barrier **ret_barrier)
{
    struct mu__barrier *known = mu__barriers_find(barriers, arrival->name);
    struct mu__barrier *barrier = known;
    uint32_t seats = known == NULL ? count : seats_missing(known, slots, count);
    int rv = mu__barrier_make_room(barriers, known, seats, now_ms, ret_error);

    assert(known == NULL || !known->running);
    if (rv == 0)
        rv = count_begun(barriers, arrival->slot, 1, ret_error);
    if (rv != 0)
        return rv;
    if (known == NULL)
        barrier = mu__barrier_new_barrier(barriers, arrival->name);
    rv = barrier == NULL ? -MU_ENOMEM
                         : reserve_generation(barriers, barrier, arrival, slots, count);
    if (rv != 0)
        (void)count_begun(barriers, arrival->slot, -1, NULL);
    if (barrier == NULL)
        return mu_error_set(ret_error, rv, "no memory for a barrier");
    if (rv != 0) {
        if (known == NULL)
            mu__barrier_discard(barriers, barrier);
        return mu_error_set(ret_error, rv, "no memory for the tasks of a barrier");
    }
    if (known == NULL)
        barrier->generation = arrival->generation;
    else
        mu__barrier_unlink(&barriers->over, barrier);
    if (arrival->is_held)
        hold_barrier(barrier);
    mu__barrier_append(&barriers->running, barrier);
    seat_participants(barrier, slots, count);
    barrier->beginner = arrival->slot;
    barrier->running = true;
    barrier->since_ms = now_ms;
    barrier->note_ms = 0;
    barrier->timeout_ms = timeout_ms;
    *ret_barrier = barrier;
    return 0;
}

/* ---- other participants ---- */

int mu__barrier_join(struct mu__barriers *barriers, struct mu__barrier *barrier,
                     uint32_t slot)
{
    int rv;

    assert(barrier->running);
    if (barriers->seats == MU__BARRIER_SEATS_MAX)
        return -MU_EEXHAUSTED;
    rv = add_seat(barriers, barrier, slot);
    if (rv != 0)
        return rv;
    barrier->expected += mu__barrier_seat(barrier, slot) == NULL;
    seat_of(barrier, slot)->past |= 1;
    return 0;
}

void mu__barrier_part(struct mu__barrier *barrier, uint32_t slot)
{
    struct mu__barrier_seat *seat = mu__barrier_seat(barrier, slot);

    assert(barrier->running);
    if (seat == NULL)
        return;
    (void)mu__barrier_uncount(barrier, slot);
    seat->past &= (uint16_t)~1U;
    barrier->expected--;
}

bool mu__barrier_is_full(const struct mu__barrier *barrier)
{
    return barrier->arrived == barrier->expected;
}

/* ---- ending ---- */

void mu__barrier_describe(struct mu__barrier_outcome *outcome, const mu_error *error)
{
    size_t size = strlen(error->message) + 1;

    outcome->code = error->code;
    outcome->kind = error->kind;
    memcpy(outcome->task, error->task, sizeof outcome->task);
    outcome->message = malloc(size);
    if (outcome->message != NULL)
        memcpy(outcome->message, error->message, size);
}

static void note_seats(struct mu__barrier_outcome *outcome, struct mu__barrier *barrier)
{
    for (uint32_t i = 0; i < barrier->seats_count; i++) {
        struct mu__barrier_seat *seat = &barrier->seats[i];

        if ((seat->past & 1) != 0)
            seat->over_end = barrier->generation + 1;
        if (seat->arrived && seat->awaited != seat->generation &&
            outcome->joined_count < MU__BARRIER_JOINED_MAX)
            outcome->joined[outcome->joined_count++] =
                mark_of(seat->incarnation, seat->token);
    }
}

/* Add an outcome as the last one; the oldest of too many is freed. */
static void store_outcome(struct mu__barrier *barrier,
                          struct mu__barrier_outcome *outcome)
{
    struct mu__barrier_outcome **at = &barrier->outcomes;

    outcome->next = barrier->outcomes;
    barrier->outcomes = outcome;
    for (int i = 0; *at != NULL && i < MU__BARRIER_OUTCOMES_MAX; i++)
        at = &(*at)->next;
    mu__barrier_outcome_free(*at);
    *at = NULL;
}

const struct mu__barrier_outcome *mu__barriers_end(struct mu__barriers *barriers,
                                                   struct mu__barrier *barrier,
                                                   const mu_error *error,
                                                   uint64_t revision, uint64_t now_ms)
{
    struct mu__barrier_outcome *outcome =
        barrier->held ? barrier->outcomes : barrier->spare;

    assert(barrier->running && outcome != NULL);
    outcome->revision = revision;
    note_seats(outcome, barrier);
    if (!barrier->held) {
        assert(error != NULL || barrier->arrived == barrier->expected);
        barrier->spare = NULL;
        outcome->generation = barrier->generation;
        if (error != NULL)
            mu__barrier_describe(outcome, error);
        store_outcome(barrier, outcome);
    }
    (void)count_begun(barriers, barrier->beginner, -1, NULL);
    barrier->running = barrier->held = false;
    barrier->generation++;
    barrier->since_ms = now_ms;
    mu__barrier_unlink(&barriers->running, barrier);
    mu__barrier_append(&barriers->over, barrier);
    return outcome;
}

/* ---- checking ---- */

static bool is_barrier_consistent(const struct mu__barrier *barrier)
{
    uint32_t expected = 0;
    uint32_t arrived = 0;

    for (uint32_t i = 0; i < barrier->seats_count; i++) {
        const struct mu__barrier_seat *seat = &barrier->seats[i];

        if (seat_of(barrier, seat->slot) != seat)
            return false;
        expected += (seat->past & 1) != 0;
        arrived += seat->arrived;
        if (seat->arrived && ((seat->past & 1) == 0 || seat->incarnation == 0))
            return false;
    }
    if (expected != barrier->expected || arrived != barrier->arrived)
        return false;
    if (barrier->running)
        return barrier->spare != NULL && arrived < expected;
    return barrier->outcomes != NULL &&
           barrier->outcomes->generation + 1 == barrier->generation;
}

bool mu__barriers_check(const struct mu__barriers *barriers)
{
    const struct mu__barrier_list *lists[] = {&barriers->running, &barriers->over};
    uint64_t seats = 0;

    for (size_t i = 0; i < 2; i++) {
        uint32_t count = 0;

        for (struct mu__barrier *at = mu__barrier_first(lists[i]); at != NULL;
             at = mu__barrier_next(at)) {
            if (at->running != (i == 0) || !is_barrier_consistent(at) ||
                mu__barriers_find(barriers, mu__barrier_name(at)) != at)
                return false;
            seats += at->seats_count;
            count++;
        }
        if (count != lists[i]->count)
            return false;
    }
    return seats == barriers->seats;
}
