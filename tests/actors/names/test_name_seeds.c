/* Names in a whole cluster whose processes crash, stand still and lose each other, from a
 * seed. What must be, looked for at each message and at the end:
 *
 *   - once an owner has acted, no owner of a lower epoch acts any more, and an epoch has
 *     one owner;
 *   - once an actor has heard an owner, it hears no former one;
 *   - a call runs once at most, and not at all when its error says so, also later; it
 * ends by its limit;
 *   - what one actor sends to a name arrives in order at each owner;
 *   - a name that has had an owner, and was not stopped, is known to the end, though the
 *     service's host crashes and its store is a journal, or etcd, which two hosts share;
 *   - in the end every name that was made has an owner that answers, or an error that
 *     says why it has none. */
#include "actors/coordination/names/coord_names.h"
#include "actors/names/naming.h"
#include "actors/user/actions.h"
#include "sim/world/chaos.h"
#include "sim/world/random.h"
#include "tests/sim/cluster/lasting.h"
#include "tests/sim/verdict.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    SEEDS = 100,
    WORKERS = 3,
    BEGIN_MS = 1000,
    BUSY_MS = 8000,
    CALM_MS = 20000,
    NAMES = 4,
    CALLERS_MAX = 64,
    CALLS_MAX = 1 << 14,
    TIMEOUT_MOST = 3000,
    SLACK_MS = BUSY_MS + 6000, /* a process may stand still, again and again */
    LAST_MS = 8000
};

enum reached {
    ANSWERED,
    RAN_NO,
    RAN_MAYBE,
    MOVED,
    BROKEN,
    FAILED,
    STOPPED,
    DRAINED,
    RELAYED,
    DROPPED,
    HOSTS,
    REACHED
};

static const char *const reached_words[REACHED] = {
    "calls answered",         "calls that ran not",
    "calls that perhaps ran", "owners after another",
    "owners that died",       "calls of names that failed",
    "names stopped",          "tasks drained",
    "relayed calls seen",     "messages of former owners",
    "hosts after another",
};

struct known_call {
    unsigned name;
    uint64_t begun_ms;
    uint64_t timeout_ms;
    unsigned ran;
    bool ended;
    bool not_run;
    bool is_last;
};

/* One name, as the model sees it. */
struct known_name {
    char text[16];
    uint64_t epoch; /* the highest that has acted */
    uint64_t incarnation;
    uint32_t number;
    unsigned seen[CALLERS_MAX]; /* the last call of each caller at this owner */
};

struct story {
    struct cluster *cluster;
    struct sim_random random;
    struct known_name names[NAMES];
    struct known_call calls[CALLS_MAX];
    unsigned calls_count;
    unsigned callers;
    unsigned lives[CLUSTER_TASKS_MAX];
    unsigned lasting;  /* 0: the store keeps nothing, so the chief lives; 1: a journal; 2:
                          an etcd that two hosts share */
    uint64_t leader;   /* the process whose service led last */
    unsigned islander; /* this task dials nobody: the chief relays its calls. 0: none */
    bool over;
    uint64_t *reached;
};

static struct story *story;

static uint64_t draw(uint64_t min, uint64_t max)
{
    return sim_between(&story->random, min, max);
}

/* ---- owners ---- */

static void note_owner(const mu_actor *self, struct known_name *name)
{
    const struct name_owned *owned = self->owned;
    uint64_t incarnation = self->office->config.incarnation;

    if (owned->epoch < name->epoch)
        cluster_break(story->cluster, "%s acts at epoch %" PRIu64 " after %" PRIu64,
                      name->text, owned->epoch, name->epoch);
    if (owned->epoch == name->epoch &&
        (name->incarnation != incarnation || name->number != self->number))
        cluster_break(story->cluster, "%s has two owners of epoch %" PRIu64, name->text,
                      name->epoch);
    if (owned->epoch <= name->epoch)
        return;
    story->reached[MOVED] += name->epoch != 0;
    name->epoch = owned->epoch;
    name->incarnation = incarnation;
    name->number = self->number;
    memset(name->seen, 0, sizeof name->seen);
}

/* To the caller: [name, epoch]. */
static void say_epoch(mu_actor *self, const struct known_call *call, const mu_value *to)
{
    mu_value *args = mu_value_list();
    mu_address caller;

    assert_int_equal(mu_value_get_actor(to, &caller), 0);
    (void)mu_value_append(args, mu_value_int(call->name));
    (void)mu_value_append(args, mu_value_int((int64_t)self->owned->epoch));
    (void)mu_actor_send(self, &caller, "hear", args);
    mu_value_free(args);
}

/* [call, caller, its address] */
static int work(mu_actor *self, void *state, const mu_value *args)
{
    int64_t number = 0;
    int64_t caller = 0;
    struct known_call *call;
    struct known_name *name;

    (void)state;
    assert_int_equal(mu_value_get_int(mu_value_at(args, 0), &number), 0);
    assert_int_equal(mu_value_get_int(mu_value_at(args, 1), &caller), 0);
    call = &story->calls[number];
    name = &story->names[call->name];
    note_owner(self, name);
    if (++call->ran > 1)
        cluster_break(story->cluster, "call %" PRId64 " runs twice", number);
    if (call->not_run)
        cluster_break(story->cluster, "call %" PRId64 " runs, and was said not to",
                      number);
    if (number <= name->seen[caller])
        cluster_break(story->cluster, "call %" PRId64 " comes behind %u", number,
                      name->seen[caller]);
    name->seen[caller] = (unsigned)number;
    say_epoch(self, call, mu_value_at(args, 2));
    mu_actor_reply(self, mu_value_int(number));
    return 0;
}

static int breaks(mu_actor *self, void *state, const mu_value *args)
{
    const mu_error error = {.code = -MU_EDATALOSS, .message = "broken"};

    (void)state;
    (void)args;
    story->reached[BROKEN]++;
    return mu_actor_die(self, &error);
}

static const mu_actor_method owner_methods[] = {
    {"work", work}, {"break", breaks}, {NULL, NULL}};

static const mu_actor_type owner_type = {
    .name = "owner", .state_size = 1, .methods = owner_methods};

/* ---- callers ---- */

struct caller {
    unsigned number;
    int64_t epochs[NAMES]; /* of the owners that it has heard */
};

static mu_address address_of(unsigned name)
{
    mu_address address = {.number = 0};

    (void)snprintf(address.name, sizeof address.name, "%s", story->names[name].text);
    return address;
}

static void make_call(mu_actor *self, const struct caller *caller, unsigned name,
                      uint64_t timeout_ms, bool is_last)
{
    const mu_address to = address_of(name);
    unsigned number = story->calls_count + 1;
    const mu_address self_address = mu__actor_address(self->office, self->number);
    mu_value *args = mu_value_list();
    int rv = -MU_EEXHAUSTED;

    (void)mu_value_append(args, mu_value_int(number));
    (void)mu_value_append(args, mu_value_int(caller->number));
    (void)mu_value_append(args, mu_value_actor(&self_address));
    if (number < CALLS_MAX)
        rv = mu_actor_call(self, &to, "work", args, (int64_t)timeout_ms, number);
    mu_value_free(args);
    if (rv != 0)
        return;
    story->calls_count++;
    story->calls[number] =
        (struct known_call){.name = name,
                            .begun_ms = sim_now_ms(story->cluster->sim),
                            .timeout_ms = timeout_ms,
                            .is_last = is_last};
}

static void want_name(mu_actor *self, unsigned name)
{
    mu_actor_options options;
    mu_address address;

    mu_actor_options_init(&options);
    options.name = story->names[name].text;
    options.restarts = name == 0 ? 1 : 60;
    options.restart = name == 1 ? MU_RESTART_ALWAYS : MU_RESTART_FAILED;
    (void)mu_actor_spawn(self, "owner", NULL, &options, &address);
}

static void do_something(mu_actor *self, const struct caller *caller)
{
    unsigned name = (unsigned)draw(0, NAMES - 1);
    const mu_address to = address_of(name);
    uint64_t what = draw(0, 99);

    if (what < 80) {
        make_call(self, caller, name, draw(1, TIMEOUT_MOST), false);
    } else if (what < 96) {
        want_name(self, name);
    } else if (what < 98) {
        (void)mu_actor_send(self, &to, "break", NULL);
    } else if (name == 3) {
        story->reached[STOPPED]++;
        (void)mu_actor_stop(self, &to, (int)draw(0, 1));
    }
}

static int begin_caller(mu_actor *self, void *state, const mu_value *args)
{
    int64_t number = 0;

    assert_int_equal(mu_value_get_int(args, &number), 0);
    ((struct caller *)state)->number = (unsigned)number;
    return mu_actor_timer(self, draw(1, 100), 0);
}

static void end_call(uint64_t number, const mu_notice *notice)
{
    struct known_call *call = &story->calls[number];
    uint64_t took_ms = sim_now_ms(story->cluster->sim) - call->begun_ms;
    int64_t value = 0;

    if (call->ended)
        cluster_break(story->cluster, "call %" PRIu64 " ends twice", number);
    call->ended = true;
    if (took_ms > call->timeout_ms + SLACK_MS)
        cluster_break(story->cluster, "call %" PRIu64 " of %" PRIu64 " ms took %" PRIu64,
                      number, call->timeout_ms, took_ms);
    if (notice->error == NULL) {
        story->reached[ANSWERED]++;
        if (mu_value_get_int(notice->value, &value) != 0 || value != (int64_t)number ||
            call->ran != 1)
            cluster_break(story->cluster, "call %" PRIu64 " has the answer %" PRId64,
                          number, value);
        return;
    }
    story->reached[FAILED] += notice->error->code == -MU_EDATALOSS;
    story->reached[notice->error->ran == MU_RAN_NO ? RAN_NO : RAN_MAYBE]++;
    if (notice->error->ran == MU_RAN_NO && call->ran != 0)
        cluster_break(story->cluster, "call %" PRIu64 " has run, its error says no: %s",
                      number, notice->error->message);
    call->not_run = notice->error->ran == MU_RAN_NO;
    if (call->is_last && notice->error->code == -MU_EDEADLINE)
        cluster_break(story->cluster, "%s has no owner in the end: %s",
                      story->names[call->name].text, notice->error->message);
}

static void hear(mu_actor *self, void *state, const mu_notice *notice)
{
    const struct caller *caller = state;

    if (notice->kind == MU_NOTICE_ANSWER) {
        end_call(notice->token, notice);
    } else if (notice->kind == MU_NOTICE_TIMER && !story->over) {
        do_something(self, caller);
        (void)mu_actor_timer(self, draw(1, 100), 0);
    }
}

/* [name]: the last calls. */
static int finish(mu_actor *self, void *state, const mu_value *args)
{
    int64_t name = 0;

    assert_int_equal(mu_value_get_int(args, &name), 0);
    make_call(self, state, (unsigned)name, LAST_MS, true);
    return 0;
}

/* [name, epoch]: of an owner. */
static int hear_owner(mu_actor *self, void *state, const mu_value *args)
{
    struct caller *caller = state;
    int64_t name = 0;
    int64_t epoch = 0;

    (void)self;
    assert_int_equal(mu_value_get_int(mu_value_at(args, 0), &name), 0);
    assert_int_equal(mu_value_get_int(mu_value_at(args, 1), &epoch), 0);
    if (epoch < caller->epochs[name])
        cluster_break(story->cluster,
                      "caller %u hears epoch %" PRId64 " of %s after %" PRId64,
                      caller->number, epoch, story->names[name].text,
                      caller->epochs[name]);
    caller->epochs[name] = epoch;
    return 0;
}

static const mu_actor_method caller_methods[] = {
    {"finish", finish}, {"hear", hear_owner}, {NULL, NULL}};

static const mu_actor_type caller_type = {
    .name = "caller",
    .state_size = sizeof(struct caller),
    .methods = caller_methods,
    .start = begin_caller,
    .notice = hear,
};

/* ---- processes ---- */

static struct office *office_of(const struct cluster_task *task)
{
    return mu__actor_state(task->member.kernel, (mu__pid){MU__NODE_SELF, MU__ACTORS});
}

static struct cluster_task *chief_of(struct cluster *cluster)
{
    for (unsigned i = 0; i < cluster->tasks_count; i++)
        if (strcmp(cluster->tasks[i].type, "chief") == 0)
            return &cluster->tasks[i];
    return NULL;
}

static mu_address spawn_caller(struct office *office)
{
    mu_actor_options options;
    struct mail *start;

    assert_int_equal(mu__actors_read_options(NULL, NULL, &options), 0);
    assert_int_equal(mu__spawn_user(office, mu__view_str("caller"), NULL,
                                    mu_value_int(story->callers++), &options, NULL,
                                    &start),
                     0);
    mu__turn_do(office, start);
    return mu__actor_address(office, start->actor);
}

static void note_relays(const struct office *office)
{
    for (const struct peer *peer = MU__LIST_FIRST(&office->peers_all, struct peer, node);
         peer != NULL; peer = MU__LIST_NEXT(peer, struct peer, node))
        story->reached[RELAYED] += !mu__list_is_empty(&peer->relays);
}

/* Another process leads. */
static void note_leader(const struct cluster_task *task, unsigned number)
{
    const struct coordination *c =
        mu__actor_state(task->member.kernel, (mu__pid){MU__NODE_SELF, MU__COORDINATION});
    uint64_t life = (uint64_t)sim_lives(task->node) << 8 | (number + 1);

    if (c == NULL || !c->leads || story->leader == life)
        return;
    story->reached[HOSTS] += story->leader != 0;
    story->leader = life;
}

/* New processes get their types, and a caller. */
static void look(struct sim *sim, void *arg)
{
    struct cluster *cluster = story->cluster;

    (void)sim;
    (void)arg;
    for (unsigned i = 0; i < cluster->tasks_count; i++) {
        struct cluster_task *task = &cluster->tasks[i];

        if (!task->runs || !sim_alive(task->node) || office_of(task) == NULL)
            continue;
        if (task == chief_of(cluster))
            note_relays(office_of(task));
        note_leader(task, i);
        if (story->lives[i] == sim_lives(task->node))
            continue;
        story->lives[i] = sim_lives(task->node);
        if (i != 0 && i == story->islander)
            office_of(task)->config.dial = NULL;
        assert_int_equal(mu__types_add(office_of(task), &caller_type, NULL), 0);
        if (strcmp(task->type, "worker") == 0)
            assert_int_equal(mu__types_add(office_of(task), &owner_type, NULL), 0);
        if (!story->over && story->callers < CALLERS_MAX)
            (void)spawn_caller(office_of(task));
    }
}

/* ---- the end ---- */

static void call_last(struct office *office, const mu_address *caller, unsigned name)
{
    mu_value *args = mu_value_int(name);
    struct mail *mail;

    assert_int_equal(
        mu__message_make(office, caller, "finish", args, NULL, 0, NULL, &mail), 0);
    mu_value_free(args);
    mu__turn_do(office, mail);
}

static struct coordination *leading_service(struct cluster *cluster)
{
    for (unsigned i = 0; i < cluster->tasks_count; i++) {
        const struct cluster_task *task = &cluster->tasks[i];
        struct coordination *c =
            task->runs && sim_alive(task->node)
                ? mu__actor_state(task->member.kernel,
                                  (mu__pid){MU__NODE_SELF, MU__COORDINATION})
                : NULL;

        if (c != NULL && c->leads)
            return c;
    }
    return NULL;
}

/* Only the last name is ever stopped. */
static bool is_to_be_known(unsigned name)
{
    return name + 1 < NAMES && story->names[name].epoch != 0;
}

static void check_end(struct cluster *cluster)
{
    struct coordination *c = leading_service(cluster);
    mu_address caller = spawn_caller(office_of(chief_of(cluster)));

    if (c == NULL) {
        cluster_break(cluster, "no host leads in the end");
        return;
    }
    for (unsigned i = 0; i < cluster->tasks_count; i++)
        if (sim_alive(cluster->tasks[i].node) && office_of(&cluster->tasks[i]) != NULL)
            story->reached[DROPPED] += office_of(&cluster->tasks[i])->names->dropped;
    for (unsigned i = 0; i < NAMES; i++) {
        const struct coord_name *name =
            mu__coord_name_find(c, mu__view_str(story->names[i].text));

        if (name != NULL && name->is_made)
            call_last(office_of(chief_of(cluster)), &caller, i);
        else if (is_to_be_known(i))
            cluster_break(cluster, "%s was forgotten", story->names[i].text);
    }
    sim_run_until(cluster->sim, sim_now_ms(cluster->sim) + LAST_MS + SLACK_MS);
    for (unsigned i = 1; i <= story->calls_count; i++)
        if (story->calls[i].is_last && !story->calls[i].ended)
            cluster_break(cluster, "call %u has not ended", i);
}

/* ---- runs ---- */

/* One worker is drained, in some runs. */
static void drain_one(struct cluster *cluster)
{
    struct cluster_task *task = &cluster->tasks[1];

    if (draw(0, 3) != 0 || !task->runs || !sim_alive(task->node) ||
        office_of(task) == NULL)
        return;
    story->reached[DRAINED]++;
    mu__naming_on_drain(&office_of(task)->ctx, office_of(task), NULL);
}

static struct lasting make_cluster(uint64_t seed)
{
    const struct cluster_options options = {.workers = WORKERS, .hosts = "chief:0"};

    return story->lasting == 0 ? (struct lasting){.cluster = cluster_new(seed, &options)}
                               : lasting_new(seed, WORKERS, story->lasting == 2);
}

static void run_one(uint64_t seed, bool show, void *sum,
                    struct seeds_verdict *ret_verdict)
{
    uint64_t again[REACHED] = {0};
    struct lasting lasting;
    struct cluster *cluster;

    story = calloc(1, sizeof *story);
    assert_non_null(story);
    story->reached = sum == NULL ? again : sum;
    story->random = sim_stream(seed, 113);
    for (unsigned i = 0; i < NAMES; i++)
        (void)snprintf(story->names[i].text, sizeof story->names[i].text, "name-%u", i);
    story->islander = (unsigned)draw(0, WORKERS);
    story->lasting = (unsigned)draw(0, 2);
    lasting = make_cluster(seed);
    cluster = story->cluster = lasting.cluster;
    sim_settings_draw(cluster->sim);
    sim_settings(cluster->sim)->refuses = draw(0, 1) != 0;
    cluster_start_all(cluster);
    if (story->lasting == 0) {
        sim_chaos_spare(chief_of(cluster)->node, SIM_FAULT_CRASH);
        sim_chaos_spare(chief_of(cluster)->node, SIM_FAULT_CRASH_MIDWAY);
    }
    sim_run_until(cluster->sim, BEGIN_MS);
    sim_set_check(cluster->sim, look, NULL);
    verdict_begin_chaos(cluster, BEGIN_MS + BUSY_MS);
    sim_run_until(cluster->sim, BEGIN_MS + BUSY_MS / 2);
    drain_one(cluster);
    sim_run_until(cluster->sim, BEGIN_MS + BUSY_MS);
    story->over = true;
    sim_run_until(cluster->sim, BEGIN_MS + BUSY_MS + CALM_MS);
    check_end(cluster);
    verdict_of(cluster, show, ret_verdict);
    lasting_free(&lasting);
    free(story);
    story = NULL;
}

static const struct seeds seeds = {
    .replay = "scripts/soak --of name --seed",
    .count = SEEDS,
    .repeat_every = 40,
    .seconds_max = 30,
    .run = run_one,
};

TEST(test_seeds)
{
    seeds_expect_reached(&seeds, reached_words, REACHED);
}

SEEDS_PROGRAM(seeds)
