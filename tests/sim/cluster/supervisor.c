/* What the parts of the supervisor say of each other must agree at any moment. */
#include "tests/sim/cluster.h"

#include "actors/supervisor/actions.h"
#include "actors/supervisor/begun.h"
#include "actors/supervisor/builds.h"
#include "actors/supervisor/recall.h"
#include "actors/supervisor/roles.h"
#include "sim/world/inner.h"

#include <inttypes.h>

/* Longer than processes stand still and links are cut, which hold up all that is said. */
enum { WAITING_MAX_MS = 15000 };

/* What was counted over all closures. */
struct sums {
    uint64_t count;
    uint64_t pinned;
    uint64_t named; /* of the journal: above any bound after a restart */
    uint64_t bytes; /* of those that are not done */
    uint64_t extras;
    uint64_t effects;  /* numbers given out, and not settled */
    uint64_t resolved; /* kept ones: no client's any more */
};

static void add_closure(struct cluster *cluster, const struct supervisor *s,
                        const struct mu__closure *closure, struct sums *sums)
{
    const struct closure_extra *extra = mu__sup_extra(s, closure);

    sums->count++;
    sums->resolved += (closure->marks & MU__MARK_RESOLVED) != 0;
    if (closure->list == MU__LIST_PINNED)
        sums->pinned++;
    else
        sums->bytes += mu__closure_bytes(closure);
    /* Those of the journal may remember another chief's. */
    if (closure->crashes > s->counts.workers_lost &&
        (extra == NULL || extra->number == 0))
        cluster_break(cluster,
                      "closure %" PRIu64 " has been lost %d times, of %" PRIu64
                      " workers",
                      mu__closure_id(closure), closure->crashes, s->counts.workers_lost);
    if (extra == NULL)
        return;
    sums->extras++;
    sums->named += extra->number != 0;
    sums->effects += extra->effect != 0 && (closure->marks & MU__MARK_RESOLVED) == 0;
    if (extra->closure != mu__closure_id(closure))
        cluster_break(cluster,
                      "the supervisor has words about closure %" PRIu64
                      " for closure %" PRIu64,
                      extra->closure, mu__closure_id(closure));
}

static void add_lists(struct cluster *cluster, const struct supervisor *s,
                      struct sums *sums)
{
    for (uint32_t list = 0; list < s->closures.lists_count; list++) {
        const struct mu__closure *closure = mu__closures_first(&s->closures, list);
        uint32_t count = 0;

        for (; closure != NULL; closure = mu__closures_next(&s->closures, closure)) {
            add_closure(cluster, s, closure, sums);
            count++;
        }
        if (count != mu__closures_count(&s->closures, list))
            cluster_break(cluster,
                          "list %" PRIu32 " of the supervisor has %" PRIu32
                          " closures, counted as %" PRIu32,
                          list, count, mu__closures_count(&s->closures, list));
    }
}

/* What its attempts are expected to take, and which are known to have begun, is what was
 * noted of each. */
static void check_time(struct cluster *cluster, const struct supervisor *s,
                       const struct mu__member_worker *worker)
{
    const struct worker_state *worker_state = &s->worker_states.items[worker->number];
    const struct mu__closure *closure =
        mu__closures_first(&s->closures, mu__list_in_flight(worker->number));
    uint64_t load_us = 0;
    uint32_t begun = 0;
    uint32_t lasting = 0;

    for (; closure != NULL; closure = mu__closures_next(&s->closures, closure)) {
        const struct mu__charge charge = mu__sup_charge(closure).charge;

        load_us += charge.cost_us;
        begun += charge.stage != MU__STAGE_SENT;
        lasting += charge.stage == MU__STAGE_LASTING;
    }
    for (uint32_t i = 0; i < worker_state->abandoned_count; i++) {
        const struct mu__charge charge = worker_state->abandoned[i].charge;

        load_us += charge.cost_us;
        begun += charge.stage != MU__STAGE_SENT;
        lasting += charge.stage == MU__STAGE_LASTING;
    }
    for (uint32_t i = 0; i < s->backups.count; i++) {
        bool has_begun;

        closure = mu__closures_find(&s->closures, s->backups.closures[i]);
        has_begun = closure != NULL &&
                    mu__sup_extra(s, closure)->backup.worker == worker->number &&
                    mu__sup_extra(s, closure)->backup.begun;
        begun += has_begun;
        lasting += has_begun;
    }
    if (load_us != worker->load_us || begun != worker->begun ||
        lasting != worker->lasting)
        cluster_break(cluster,
                      "worker %" PRIu32 " has %" PRIu64 " us, %" PRIu32
                      " begun and %" PRIu32 " lasting, but its attempts %" PRIu64
                      " us, %" PRIu32 " and %" PRIu32,
                      worker->index, worker->load_us, worker->begun, worker->lasting,
                      load_us, begun, lasting);
}

/* A worker's load is what it has in flight, backups there, and what it has not answered
 * though nobody waits for it. */
static void check_worker(struct cluster *cluster, const struct supervisor *s,
                         const struct mu__member_worker *worker)
{
    const struct worker_state *worker_state = &s->worker_states.items[worker->number];
    uint32_t load = mu__closures_count(&s->closures, mu__list_in_flight(worker->number)) +
                    worker_state->abandoned_count;

    for (uint32_t i = 0; i < s->backups.count; i++) {
        const struct mu__closure *closure =
            mu__closures_find(&s->closures, s->backups.closures[i]);

        load +=
            closure != NULL && mu__sup_extra(s, closure)->backup.worker == worker->number;
    }
    if (load != worker->load)
        cluster_break(cluster,
                      "worker %" PRIu32 " has a load of %" PRIu32 ", but %" PRIu32
                      " attempts",
                      worker->index, worker->load, load);
    check_time(cluster, s, worker);
    if (s->config.window != 0 &&
        worker->load > worker->window + worker_state->abandoned_count + s->backups.count)
        cluster_break(cluster,
                      "worker %" PRIu32 " has a load of %" PRIu32
                      " with a window of %" PRIu32,
                      worker->index, worker->load, worker->window);
    if (worker->load == 0 && worker->load_bytes != 0)
        cluster_break(cluster,
                      "worker %" PRIu32 " has nothing, but %" PRIu64 " bytes of it",
                      worker->index, worker->load_bytes);
}

/* A worker that is away builds nothing; one that is held for its builds has some that are
 * to be waited for. Returns how many of them take long. */
static uint32_t check_builds(struct cluster *cluster, const struct supervisor *s,
                             uint32_t number)
{
    const struct mu__member_worker *worker = mu__membership_get(&s->members, number);
    uint32_t awaited = 0;
    uint32_t slow = 0;

    for (const struct per_worker *pw = first_value(s); pw != NULL; pw = next_value(pw)) {
        const struct build *build = number < pw->builds_size ? &pw->builds[number] : NULL;

        if (pw->losses > s->config.attempts_max + 2 * s->members.workers_size)
            cluster_break(cluster, "%" PRIu32 " workers were lost under one build",
                          pw->losses);
        if (build == NULL)
            continue;
        slow += build->state == SLOW;
        awaited += build->state == WAITING || (build->state == UNDER_WAY && build->first);
        if (worker == NULL && build->state != ABSENT)
            cluster_break(cluster, "worker number %" PRIu32 " is away, and builds",
                          number);
    }
    if (worker != NULL && (worker->holds & MU__HOLD_BUILD) != 0 && awaited == 0 &&
        slow < worker->threads)
        cluster_break(cluster, "worker %" PRIu32 " is held for builds that there are not",
                      worker->index);
    return slow;
}

static void check_all_builds(struct cluster *cluster, const struct supervisor *s)
{
    uint32_t slow = 0;

    for (uint32_t i = 1; i < s->members.workers_size; i++)
        slow += check_builds(cluster, s, i);
    if (slow != s->per_worker.slow_builds)
        cluster_break(cluster, "%" PRIu32 " builds take long, counted as %" PRIu32, slow,
                      s->per_worker.slow_builds);
}

static uint64_t free_extras(const struct supervisor *s)
{
    uint64_t count = 0;

    for (uint32_t at = s->extras.free; at != 0;
         at = mu__closure_extras_at(&s->extras, at - 1)->next_free)
        count++;
    return count;
}

static void check_sums(struct cluster *cluster, const struct supervisor *s,
                       const struct sums *sums)
{
    uint64_t clients = 0;
    uint64_t numbers = s->effects.last + 1 - s->effects.window.base;

    for (uint32_t i = 0; i < s->clients.count; i++)
        clients += s->clients.items[i].closures;
    if (sums->count != s->closures.count)
        cluster_break(cluster,
                      "the supervisor's lists have %" PRIu64 " closures of %" PRIu32,
                      sums->count, s->closures.count);
    if (sums->count - sums->pinned >
        (uint64_t)s->config.queue_max + sums->named + sums->resolved)
        cluster_break(cluster,
                      "the supervisor holds %" PRIu64 " closures, of at most %" PRIu32,
                      sums->count - sums->pinned, s->config.queue_max);
    if (sums->bytes != s->counts.args_bytes)
        cluster_break(cluster, "arguments have %" PRIu64 " bytes, counted as %" PRIu64,
                      sums->bytes, s->counts.args_bytes);
    if (sums->extras + free_extras(s) != (uint64_t)mu__closure_extras_count(&s->extras))
        cluster_break(cluster,
                      "%" PRIu64 " closures have more, %" PRIu64 " are free, of %" PRIu32,
                      sums->extras, free_extras(s), mu__closure_extras_count(&s->extras));
    /* Nobody's own place counts as one. */
    if (clients != sums->count - sums->resolved + 1)
        cluster_break(cluster, "clients have %" PRIu64 " closures, there are %" PRIu64,
                      clients - 1, sums->count - sums->resolved);
    if (sums->effects > numbers)
        cluster_break(cluster,
                      "%" PRIu64 " closures may write, %" PRIu64 " numbers are out",
                      sums->effects, numbers);
}

static void check_rest(struct cluster *cluster, const struct supervisor *s,
                       const struct sums *sums)
{
    if (sums->count != sums->pinned || s->counts.args_bytes != 0)
        cluster_break(cluster,
                      "the supervisor holds %" PRIu64 " closures with %" PRIu64
                      " bytes when nothing is under way",
                      sums->count - sums->pinned, s->counts.args_bytes);
    if (s->effects.window.base != s->effects.last + 1)
        cluster_break(cluster, "effects from %" PRIu64 " to %" PRIu64 " are not settled",
                      s->effects.window.base, s->effects.last);
    if (s->backups.count != 0 || s->pinned.unused != NULL)
        cluster_break(cluster, "%" PRIu32 " backups are left", s->backups.count);
    for (uint32_t i = 1; i < s->members.workers_size; i++) {
        const struct mu__member_worker *worker = mu__membership_get(&s->members, i);

        if (worker != NULL && worker->load != 0)
            cluster_break(cluster,
                          "worker %" PRIu32 " has %" PRIu32
                          " attempts that nobody waits for",
                          worker->index, worker->load);
    }
}

/* What each client holds is what it has; nothing is counted twice or forgotten. */
static void check_held(struct cluster *cluster, const struct supervisor *s)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < s->clients.count; i++) {
        const struct supervisor_client *client = &s->clients.items[i];
        uint64_t closures = client->closures - (i == 0);

        bytes += client->room.shares[MU__BOUND_BYTES].held;
        if (client->room.shares[MU__BOUND_CLOSURES].held != closures)
            cluster_break(cluster,
                          "client %" PRIu32 " of the chief has %" PRIu64
                          " closures, and holds room for %" PRIu64,
                          i, closures, client->room.shares[MU__BOUND_CLOSURES].held);
    }
    if (s->closures.lists[MU__LIST_PINNED].count == 0 && s->pinned.by_number.count == 0 &&
        bytes > s->counts.args_bytes)
        cluster_break(cluster, "clients hold room for %" PRIu64 " bytes of %" PRIu64,
                      bytes, s->counts.args_bytes);
}

/* What could run at once elsewhere does not wait behind something long. */
static void check_waiting(struct cluster *cluster, const struct supervisor *s,
                          const struct mu__member_worker *worker, uint64_t now_ms)
{
    const struct mu__closure *closure =
        mu__closures_first(&s->closures, mu__list_in_flight(worker->number));

    for (; closure != NULL; closure = mu__closures_next(&s->closures, closure))
        if (closure->extra == 0 && closure->marks == 0 && closure->crashes == 0 &&
            (uint32_t)now_ms - closure->started_ms > WAITING_MAX_MS)
            cluster_break(cluster,
                          "closure %" PRIu64 " waits at worker %" PRIu32 " for %" PRIu32
                          " ms, and another has had nothing to do",
                          mu__closure_id(closure), worker->index,
                          (uint32_t)now_ms - closure->started_ms);
}

/* Whether a worker has had nothing to do for as long, while nothing was queued. */
static bool was_idle(struct cluster *cluster, const struct supervisor *s, uint64_t now_ms)
{
    bool idle = false;

    for (uint32_t list = MU__LIST_QUEUES; list < MU__LIST_PINNED; list++)
        if (list != MU__LIST_HELD && mu__closures_count(&s->closures, list) > 0)
            cluster->idle_since_ms = now_ms;
    for (uint32_t i = 1; i < s->members.workers_size; i++) {
        const struct mu__member_worker *worker = mu__membership_get(&s->members, i);

        idle = idle ||
               (worker != NULL && worker->load == 0 && mu__membership_has_room(worker));
    }
    if (!idle)
        cluster->idle_since_ms = now_ms;
    return now_ms - cluster->idle_since_ms > WAITING_MAX_MS;
}

static void check_idle(struct cluster *cluster, const struct supervisor *s)
{
    uint64_t now_ms = sim_now_ms(cluster->sim) + cluster->chief->node->clock_ms;

    if (!was_idle(cluster, s, now_ms))
        return;
    for (uint32_t i = 1; i < s->members.workers_size; i++) {
        const struct mu__member_worker *worker = mu__membership_get(&s->members, i);

        if (worker != NULL)
            check_waiting(cluster, s, worker, now_ms);
    }
}

static const struct supervisor *supervisor_of(const struct cluster *cluster)
{
    return mu__actor_state(cluster->chief->member.kernel, (mu__pid){0, MU__SUPERVISOR});
}

void cluster_note_supervisor(struct cluster *cluster)
{
    const struct supervisor *s;

    if (!cluster->chief->runs)
        return;
    s = supervisor_of(cluster);
    cluster->backups += s->backups.runs;
    cluster->stuck += s->counts.stuck;
    cluster->recalled += s->recalls.returned;
}

/* With a journal a chief begins with closures that nobody had to be admitted for. */
static void check_bound(struct cluster *cluster, const struct supervisor *s,
                        enum mu__bound which)
{
    const struct mu__shares *bound = &s->admission.bounds[which];
    const char *word = which == MU__BOUND_BYTES ? "bytes" : "closures";
    uint64_t sum = 0;

    for (uint32_t i = 0; i < s->clients.count; i++) {
        const struct mu__share *share = &s->clients.items[i].room.shares[which];

        sum += mu__share_reserved(share);
        if (share->granted > share->allowed)
            cluster_break(cluster,
                          "client %" PRIu32 " of the chief was told of %" PRIu64
                          " %s, but is allowed %" PRIu64,
                          i, share->granted, word, share->allowed);
    }
    if (sum != bound->reserved)
        cluster_break(cluster,
                      "clients have %" PRIu64 " %s of the chief's room, counted "
                      "as %" PRIu64,
                      sum, word, bound->reserved);
    if (bound->reserved > bound->max && s->config.journal == NULL)
        cluster_break(cluster,
                      "clients may have %" PRIu64 " %s at the chief, whose "
                      "bound is %" PRIu64,
                      bound->reserved, word, bound->max);
}

void cluster_check_room(struct cluster *cluster)
{
    const struct supervisor *s;

    if (!cluster->chief->runs)
        return;
    s = supervisor_of(cluster);
    check_bound(cluster, s, MU__BOUND_CLOSURES);
    check_bound(cluster, s, MU__BOUND_BYTES);
}

void cluster_check_supervisor(struct cluster *cluster, bool rest)
{
    const struct supervisor *s;
    struct sums sums = {0};

    if (!cluster->chief->runs)
        return;
    s = supervisor_of(cluster);
    add_lists(cluster, s, &sums);
    check_sums(cluster, s, &sums);
    check_held(cluster, s);
    cluster->recomputed += sums.resolved - sums.pinned;
    for (uint32_t i = 1; i < s->members.workers_size; i++) {
        const struct mu__member_worker *worker = mu__membership_get(&s->members, i);

        if (worker != NULL)
            check_worker(cluster, s, worker);
    }
    check_idle(cluster, s);
    check_all_builds(cluster, s);
    if (rest)
        check_rest(cluster, s, &sums);
}
