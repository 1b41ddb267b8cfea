#include "actors/ps/clocks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED_MAX = 3 }; /* members that a text names */

/* ---- Finding ---- */

static struct mu__clock *find_clock(const struct mu__clocks *clocks, struct mu__view name)
{
    struct mu__clock *clock = mu__clocks_first(clocks);

    while (clock != NULL && !mu__view_is(name, clock->name))
        clock = mu__clocks_next(clock);
    return clock;
}

const struct mu__clock *mu__clocks_find(const struct mu__clocks *clocks,
                                        struct mu__view name)
{
    return find_clock(clocks, name);
}

static struct mu__clock_member *find_in_clock(const struct mu__clock *clock, uint64_t id)
{
    struct mu__clock_member *member = mu__clock_first(clock);

    while (member != NULL && member->id != id)
        member = mu__clock_next(member);
    return member;
}

static struct mu__clock_member *find_in_all(const struct mu__clocks *clocks, uint64_t id)
{
    struct mu__clock_member *member = NULL;

    for (struct mu__clock *clock = mu__clocks_first(clocks);
         clock != NULL && member == NULL; clock = mu__clocks_next(clock))
        member = find_in_clock(clock, id);
    return member;
}

/* ---- Clocks ---- */

static void free_clock(struct mu__clocks *clocks, struct mu__clock *clock)
{
    mu__list_remove(&clocks->list, &clock->node);
    clocks->count--;
    free(clock);
}

struct mu__clock *mu__clocks_put(struct mu__clocks *clocks, struct mu__view name,
                                 uint64_t staleness, uint64_t minimum)
{
    struct mu__clock *clock = find_clock(clocks, name);

    if (clock != NULL)
        return clock;
    clock = calloc(1, sizeof *clock + name.size + 1);
    if (clock == NULL)
        return NULL;
    memcpy(clock->name, name.data, name.size);
    clock->staleness = staleness;
    clock->minimum = minimum;
    mu__list_append(&clocks->list, &clock->node);
    clocks->count++;
    return clock;
}

/* Of those whose members were all lost, the oldest. */
static void make_clock_room(struct mu__clocks *clocks)
{
    struct mu__clock *clock = mu__clocks_first(clocks);

    while (clock != NULL && clock->count > 0)
        clock = mu__clocks_next(clock);
    if (clock != NULL && clocks->count >= MU__CLOCKS_MAX)
        free_clock(clocks, clock);
}

/* ---- The minimum ---- */

static bool is_ahead(const struct mu__clock_member *member)
{
    const struct mu__clock *clock = member->clock;

    return member->step > clock->minimum &&
           member->step - clock->minimum > clock->staleness;
}

static void let_through(struct mu__clocks *clocks, const struct mu__clock *clock)
{
    for (struct mu__clock_member *member = mu__clock_first(clock); member != NULL;
         member = mu__clock_next(member))
        if (member->token != 0 && !is_ahead(member))
            mu__list_append(&clocks->passed, &member->passed);
}

/* After the last of the slowest members has gone on, or left. */
static void raise_minimum(struct mu__clocks *clocks, struct mu__clock *clock)
{
    const struct mu__clock_member *member = mu__clock_first(clock);

    clock->minimum = member->step;
    clock->slowest = 0;
    for (; member != NULL; member = mu__clock_next(member)) {
        if (member->step < clock->minimum) {
            clock->minimum = member->step;
            clock->slowest = 0;
        }
        clock->slowest += member->step == clock->minimum;
    }
    let_through(clocks, clock);
}

static void set_step(struct mu__clocks *clocks, struct mu__clock_member *member,
                     uint64_t step)
{
    struct mu__clock *clock = member->clock;
    bool was_slowest = member->step == clock->minimum;

    member->step = step;
    if (was_slowest && --clock->slowest == 0)
        raise_minimum(clocks, clock);
}

/* ---- Members ---- */

static int check_clock_step(const struct mu__clock_step *request, mu_error *ret_error)
{
    if (request->name.size == 0 || request->name.size > MU__VARIABLE_NAME_MAX ||
        memchr(request->name.data, '\0', request->name.size) != NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "its name has %" PRIu32 " bytes: expected 1 to %d",
                            request->name.size, MU__VARIABLE_NAME_MAX);
    if (request->member == 0 || request->task.size == 0 ||
        request->task.size > MU__TASK_NAME_MAX)
        return mu_error_set(ret_error, -MU_EINVALID, "a member has no number or task");
    return 0;
}

static void staleness_text(uint64_t staleness, char *out, size_t size)
{
    if (staleness == UINT64_MAX)
        (void)snprintf(out, size, "unlimited");
    else
        (void)snprintf(out, size, "%" PRIu64, staleness);
}

static int check_staleness(const struct mu__clock *clock,
                           const struct mu__clock_step *request, mu_error *ret_error)
{
    char task[MU__TASK_NAME_MAX + 1];
    char own[24];
    char other[24];

    if (clock->count == 0 || clock->staleness == request->staleness)
        return 0;
    mu__view_copy(request->task, task, sizeof task);
    staleness_text(clock->staleness, own, sizeof own);
    staleness_text(request->staleness, other, sizeof other);
    return mu_error_set(ret_error, -MU_EPRECONDITION,
                        "%s has opened it with staleness %s, and %s with %s",
                        mu__clock_first(clock)->task, own, task, other);
}

static int check_clock_room(const struct mu__clocks *clocks,
                            const struct mu__clock *clock, mu_error *ret_error)
{
    if (clock == NULL && clocks->count >= MU__CLOCKS_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "there are %d clocks in its partition", MU__CLOCKS_MAX);
    if (clocks->members >= MU__CLOCK_MEMBERS_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "the clocks of its partition have %d members",
                            MU__CLOCK_MEMBERS_MAX);
    return 0;
}

struct mu__clock_member *mu__clocks_put_member(struct mu__clocks *clocks,
                                               struct mu__clock *clock,
                                               const struct mu__clock_step *request)
{
    struct mu__clock_member *member = calloc(1, sizeof *member);

    if (member == NULL)
        return NULL;
    member->clock = clock;
    member->id = request->member;
    member->incarnation = request->incarnation;
    member->step = request->step;
    mu__view_copy(request->task, member->task, sizeof member->task);
    clock->slowest += member->step == clock->minimum;
    mu__list_append(&clock->members, &member->node);
    clock->count++;
    clocks->members++;
    return member;
}

static struct mu__clock_member *add_member(struct mu__clocks *clocks,
                                           struct mu__clock *clock,
                                           const struct mu__clock_step *request)
{
    struct mu__clock_step joins = *request;

    if (joins.step < clock->minimum)
        joins.step = clock->minimum;
    if (clock->count == 0) {
        clock->staleness = joins.staleness;
        clock->minimum = joins.step;
    }
    return mu__clocks_put_member(clocks, clock, &joins);
}

static int join_clock(struct mu__clocks *clocks, const struct mu__clock_step *request,
                      mu_error *ret_error, struct mu__clock_member **ret_member)
{
    struct mu__clock *clock = find_clock(clocks, request->name);
    int rv;

    if (clock == NULL)
        make_clock_room(clocks);
    rv = check_clock_room(clocks, clock, ret_error);
    if (rv == 0 && clock != NULL)
        rv = check_staleness(clock, request, ret_error);
    if (rv != 0)
        return rv;
    clock = mu__clocks_put(clocks, request->name, request->staleness, 0);
    *ret_member = clock == NULL ? NULL : add_member(clocks, clock, request);
    return *ret_member != NULL
               ? 0
               : mu_error_set(ret_error, -MU_ENOMEM, "%s", mu_strerror(-MU_ENOMEM));
}

int mu__clocks_set(struct mu__clocks *clocks, const struct mu__clock_step *request,
                   mu_error *ret_error, struct mu__clock_outcome *ret_outcome)
{
    struct mu__clock_member *member = find_in_all(clocks, request->member);
    bool is_member = member != NULL;
    int rv = check_clock_step(request, ret_error);

    if (rv == 0 && !is_member)
        rv = join_clock(clocks, request, ret_error, &member);
    if (rv != 0)
        return rv;
    if (request->step > member->step)
        set_step(clocks, member, request->step);
    member->waiter = request->waiter;
    member->token = is_ahead(member) ? request->token : 0;
    *ret_outcome = (struct mu__clock_outcome){
        .waiter = request->waiter,
        .token = request->token,
        .step = member->step,
        .minimum = member->clock->minimum,
        .waits = is_ahead(member),
        .joined = is_member ? NULL : member,
    };
    return 0;
}

static void free_member(struct mu__clocks *clocks, struct mu__clock_member *member)
{
    mu__list_remove(&member->clock->members, &member->node);
    member->clock->count--;
    clocks->members--;
    free(member);
}

void mu__clocks_leave(struct mu__clocks *clocks, uint64_t id, enum mu__clock_leave how)
{
    struct mu__clock_member *member = find_in_all(clocks, id);
    struct mu__clock *clock = member == NULL ? NULL : member->clock;

    if (member == NULL)
        return;
    clock->slowest -= member->step == clock->minimum;
    free_member(clocks, member);
    if (clock->count > 0 && clock->slowest == 0)
        raise_minimum(clocks, clock);
    else if (clock->count == 0 && how == MU__CLOCK_CLOSED)
        free_clock(clocks, clock);
}

/* ---- Waiting ---- */

bool mu__clocks_next_passed(struct mu__clocks *clocks,
                            struct mu__clock_outcome *ret_outcome)
{
    struct mu__list_node *node = mu__list_pop(&clocks->passed);
    struct mu__clock_member *member;

    if (node == NULL)
        return false;
    member = MU__LIST_ENTRY(node, struct mu__clock_member, passed);
    *ret_outcome = (struct mu__clock_outcome){
        .waiter = member->waiter,
        .token = member->token,
        .step = member->step,
        .minimum = member->clock->minimum,
    };
    member->token = 0;
    return true;
}

/* UINT32_MAX: of all nodes. */
static void forget_waiters(struct mu__clocks *clocks, uint32_t node)
{
    for (struct mu__clock *clock = mu__clocks_first(clocks); clock != NULL;
         clock = mu__clocks_next(clock))
        for (struct mu__clock_member *member = mu__clock_first(clock); member != NULL;
             member = mu__clock_next(member))
            if (node == UINT32_MAX || member->waiter.node == node)
                member->token = 0;
}

void mu__clocks_forget_node(struct mu__clocks *clocks, uint32_t node)
{
    forget_waiters(clocks, node);
}

void mu__clocks_forget_nodes(struct mu__clocks *clocks)
{
    forget_waiters(clocks, UINT32_MAX);
}

bool mu__clocks_has_node(const struct mu__clocks *clocks, uint32_t node)
{
    for (struct mu__clock *clock = mu__clocks_first(clocks); clock != NULL;
         clock = mu__clocks_next(clock))
        for (struct mu__clock_member *member = mu__clock_first(clock); member != NULL;
             member = mu__clock_next(member))
            if (member->token != 0 && member->waiter.node == node)
                return true;
    return false;
}

/* ---- Texts and the end ---- */

void mu__clock_slowest_text(const struct mu__clock *clock, char *out, size_t size)
{
    const struct mu__clock_member *member = mu__clock_first(clock);
    uint32_t named = 0;
    size_t at = 0;

    out[0] = '\0';
    for (; member != NULL && named < NAMED_MAX; member = mu__clock_next(member)) {
        if (member->step != clock->minimum)
            continue;
        at += (size_t)snprintf(out + at, size - at, "%s%s is at step %" PRIu64,
                               named++ == 0 ? "" : ", ", member->task, clock->minimum);
    }
    if (clock->slowest > named)
        (void)snprintf(out + at, size - at, ", so are %" PRIu32 " more",
                       clock->slowest - named);
}

void mu__clocks_done(struct mu__clocks *clocks)
{
    struct mu__clock *clock;
    struct mu__clock_member *member;

    while ((clock = mu__clocks_first(clocks)) != NULL) {
        while ((member = mu__clock_first(clock)) != NULL)
            free_member(clocks, member);
        free_clock(clocks, clock);
    }
}
