#include "tests/support/users/bees.h"

#include "tests/support/test.h"

#include <inttypes.h>

enum {
    TIMEOUT_MAX = 2000,
    SLACK_MS = 6000, /* a process may stand still */
    BURST = MU__ACTOR_WINDOW + 50
};

struct hive *hive;

/* What a bee has in its actor's state: who it is, and answers that it owes. */
struct bee_state {
    struct bee *bee;
    mu_reply *owed[8];
    uint64_t owed_call[8];
};

uint64_t hive_draw(uint64_t min, uint64_t max)
{
    return sim_between(&hive->random, min, max);
}

static uint64_t now_of(mu_actor *self)
{
    (void)self;
    return sim_now_ms(hive->cluster->sim);
}

/* One that has not ended, mostly. */
static struct bee *any_bee(void)
{
    unsigned last = hive->bees_count - 1;
    struct bee *bee = &hive->bees[hive_draw(0, last)];

    for (int i = 0; i < 3 && !bee->alive; i++)
        bee = &hive->bees[hive_draw(last > 20 ? last - 20 : 0, last)];
    return bee;
}

/* Tokens say what they are of, in the upper half. */
enum { OF_CALL = 1, OF_WATCH = 2, OF_TIMER = 3, OF_ACT = 4, OF_REPLY = 5, OF_WORK = 6 };

static uint64_t token_of(uint64_t what, uint64_t number)
{
    return what << 32 | number;
}

/* ---- What a bee does in a turn ---- */

/* What one turn has sent, for the model if it ends well. */
struct told {
    uint32_t sent[BEES_MAX];
};

static void note_refused(struct bee *bee, int rv)
{
    if (rv != -MU_EAGAIN)
        return;
    bee->refused = true;
    hive->reached[FULL]++;
}

static void send_notes(mu_actor *self, struct bee *bee, struct told *told, unsigned count)
{
    struct bee *to = any_bee();
    int rv = 0;

    for (unsigned i = 0; i < count && rv == 0; i++) {
        mu_value *args = mu_value_list();
        uint32_t number = bee->sent[to->number] + told->sent[to->number] + 1;

        (void)mu_value_append(args, mu_value_int(bee->number));
        (void)mu_value_append(args, mu_value_int(number));
        rv = mu_actor_send(self, &to->address, "note", args);
        mu_value_free(args);
        if (rv == 0)
            told->sent[to->number]++;
    }
    note_refused(bee, rv);
}

static int make_call(mu_actor *self, struct bee *bee, const mu_address *to,
                     const char *method, mu_value *args, bool cycle)
{
    uint64_t number = hive->calls_count + 1;
    uint64_t timeout_ms = hive_draw(1, TIMEOUT_MAX);
    int rv = -MU_EEXHAUSTED;

    if (number < CALLS_MAX) {
        (void)mu_value_append(args, mu_value_int((int64_t)number));
        rv = mu_actor_call(self, to, method, args, (int64_t)timeout_ms,
                           token_of(OF_CALL, number));
    }
    mu_value_free(args);
    note_refused(bee, rv);
    if (rv != 0)
        return rv;
    hive->calls_count++;
    hive->calls[number] = (struct call){.from = bee->number + 1,
                                        .begun_ms = now_of(self),
                                        .timeout_ms = timeout_ms,
                                        .cycle = cycle};
    hive->reached[REMOTE] += to->incarnation != bee->address.incarnation;
    return 0;
}

static void call_one(mu_actor *self, struct bee *bee)
{
    (void)make_call(self, bee, &any_bee()->address, "work", mu_value_list(), false);
}

/* Through some bees, perhaps twice through one. */
static void call_path(mu_actor *self, struct bee *bee)
{
    unsigned length = (unsigned)hive_draw(1, 4);
    unsigned path[4];
    mu_value *args = mu_value_list();
    mu_value *rest = mu_value_list();
    bool cycle = false;

    for (unsigned i = 0; i < length; i++) {
        path[i] = any_bee()->number;
        for (unsigned j = 0; j < i; j++)
            cycle = cycle || path[j] == path[i];
    }
    for (unsigned i = 1; i < length; i++)
        (void)mu_value_append(rest, mu_value_int(path[i]));
    (void)mu_value_append(args, rest);
    (void)make_call(self, bee, &hive->bees[path[0]].address, "path", args, cycle);
}

static void watch_one(mu_actor *self, struct bee *bee)
{
    struct bee *who = any_bee();
    unsigned number = hive->watched_count + 1;

    if (number >= WATCHES_MAX ||
        mu_actor_monitor(self, &who->address, token_of(OF_WATCH, number)) != 0)
        return;
    hive->watched_count++;
    hive->watched[number] = (struct watched){.by = bee->number, .who = who->number};
}

/* Of two that are due together the first cancels the second. */
static void set_two_timers(mu_actor *self, struct bee *bee)
{
    unsigned number = hive->timed_count + 1;
    uint64_t delay_ms = hive_draw(0, 50);

    if (number + 1 >= TIMERS_MAX)
        return;
    if (mu_actor_timer(self, delay_ms, token_of(OF_TIMER, number)) != 0)
        return;
    hive->timed_count++;
    hive->timed[number] = (struct timed){.bee = bee->number};
    if (mu_actor_timer(self, delay_ms, token_of(OF_TIMER, number + 1)) != 0)
        return;
    hive->timed_count++;
    hive->timed[number].other = number + 1;
    hive->timed[number + 1] = (struct timed){.bee = bee->number};
}

static int do_work(void *arg)
{
    return (int)(intptr_t)arg;
}

static void do_something(mu_actor *self, struct bee *bee, struct told *told)
{
    unsigned what = (unsigned)hive_draw(0, 99);

    if (what < 35)
        send_notes(self, bee, told, (unsigned)hive_draw(1, 6));
    else if (what < 36 && hive_draw(0, 9) == 0)
        send_notes(self, bee, told, BURST);
    else if (what < 70)
        call_one(self, bee);
    else if (what < 80)
        call_path(self, bee);
    else if (what < 86)
        watch_one(self, bee);
    else if (what < 92)
        set_two_timers(self, bee);
    else if (what < 94)
        (void)mu_actor_work(self, do_work, (void *)(intptr_t)7, token_of(OF_WORK, 7));
    else if (what < 96)
        hive_spawn(bee->task, self);
    else if (what < 97)
        (void)mu_actor_stop(self, &any_bee()->address, (int)hive_draw(0, 1));
}

/* A turn of several things, which may fail at its end. What it has sent counts then for
 * nothing; calls, monitors and timers were begun for nothing. */
static int act(mu_actor *self, void *state, const mu_value *args)
{
    struct bee *bee = ((struct bee_state *)state)->bee;
    struct told told = {{0}};
    unsigned calls = hive->calls_count;
    unsigned watched = hive->watched_count;
    unsigned timed = hive->timed_count;
    unsigned bees = hive->bees_count;

    (void)args;
    for (uint64_t i = hive_draw(1, 3); i > 0 && !hive->over; i--)
        do_something(self, bee, &told);
    if (hive_draw(0, 4) == 0) {
        hive->reached[FAILED_TURNS]++;
        while (hive->calls_count > calls)
            hive->calls[hive->calls_count--].from = 0;
        hive->watched_count = watched;
        hive->timed_count = timed;
        for (unsigned i = bees; i < hive->bees_count; i++)
            hive->bees[i].alive = false;
        return -MU_EABORTED;
    }
    for (unsigned i = 0; i < BEES_MAX; i++) {
        bee->sent[i] += told.sent[i];
        hive->reached[SENT] += told.sent[i];
    }
    return 0;
}

/* ---- What it hears ---- */

static int take_note(mu_actor *self, void *state, const mu_value *args)
{
    struct bee *bee = ((struct bee_state *)state)->bee;
    int64_t from = 0;
    int64_t number = 0;
    const struct bee *sender;

    (void)self;
    assert_int_equal(mu_value_get_int(mu_value_at(args, 0), &from), 0);
    assert_int_equal(mu_value_get_int(mu_value_at(args, 1), &number), 0);
    sender = &hive->bees[from];
    if (number <= bee->seen[from] || number > sender->sent[bee->number])
        cluster_break(hive->cluster,
                      "bee %u has note %" PRId64 " of bee %" PRId64
                      " after %u, and %u were sent",
                      bee->number, number, from, bee->seen[from],
                      sender->sent[bee->number]);
    if (sender->address.incarnation == bee->address.incarnation &&
        number != bee->seen[from] + 1)
        cluster_break(hive->cluster, "bee %u lost notes of its own process", bee->number);
    bee->seen[from] = (uint32_t)number;
    return 0;
}

static struct call *begin_method(const mu_value *number_value)
{
    int64_t number = 0;
    struct call *call;

    assert_int_equal(mu_value_get_int(number_value, &number), 0);
    call = &hive->calls[number];
    if (call->from == 0)
        cluster_break(hive->cluster, "call %" PRId64 " of a failed turn runs", number);
    if (++call->ran > 1)
        cluster_break(hive->cluster, "call %" PRId64 " runs twice", number);
    if (call->not_run)
        cluster_break(hive->cluster, "call %" PRId64 " runs, and was said not to",
                      number);
    return call;
}

/* Answers, fails, answers later, never, or ends. */
static int work(mu_actor *self, void *state, const mu_value *args)
{
    struct bee_state *own = state;
    struct call *call = begin_method(mu_value_at(args, 0));
    const mu_error broken = {.code = -MU_EDATALOSS, .message = "broken"};
    unsigned what = (unsigned)hive_draw(0, 99);
    unsigned slot = (unsigned)hive_draw(0, 7);

    mu_actor_reply(self, mu_value_int(call - hive->calls));
    if (what < 60)
        return 0;
    if (what < 70)
        return mu_actor_fail(self, -MU_EINVALID, "refused");
    if (what < 71)
        return mu_actor_die(self, &broken);
    if (what < 95 && own->owed[slot] == NULL) {
        mu_reply *reply = mu_actor_reply_later(self);
        int rv = mu_actor_timer(self, hive_draw(1, 3000), token_of(OF_REPLY, slot));

        own->owed[slot] = rv == 0 ? reply : NULL;
        own->owed_call[slot] = (uint64_t)(call - hive->calls);
        return rv;
    }
    return 0;
}

struct passing {
    mu_reply *reply;
};

/* On to the next bee of the path. The reply waits in the token of the call. */
static int take_path(mu_actor *self, void *state, const mu_value *args)
{
    struct bee_state *own = state;
    const mu_value *path = mu_value_at(args, 0);
    mu_value *rest;
    mu_value *next;
    int64_t to = 0;
    int rv;

    if (mu_value_count(args) > 1)
        (void)begin_method(mu_value_at(args, 1));
    if (mu_value_count(path) == 0)
        return 0;
    assert_int_equal(mu_value_get_int(mu_value_at(path, 0), &to), 0);
    rest = mu_value_list();
    next = mu_value_list();
    for (size_t i = 1; i < mu_value_count(path); i++)
        (void)mu_value_append(rest, mu_value_ref(mu_value_at(path, i)));
    (void)mu_value_append(next, rest);
    rv = mu_actor_call(self, &hive->bees[to].address, "path", next, TIMEOUT_MAX,
                       (uint64_t)(uintptr_t)mu_actor_reply_later(self));
    mu_value_free(next);
    note_refused(own->bee, rv);
    return rv;
}

static const mu_actor_method methods[] = {
    {"act", act}, {"note", take_note}, {"work", work}, {"path", take_path}, {NULL, NULL}};

/* ---- Notices ---- */

static void end_call(struct bee *bee, mu_actor *self, uint64_t number,
                     const mu_notice *notice)
{
    struct call *call = &hive->calls[number];
    uint64_t took_ms = now_of(self) - call->begun_ms;
    int ran = notice->error == NULL ? MU_RAN_YES : notice->error->ran;
    int64_t value = 0;

    if (call->from != bee->number + 1 || call->ended)
        cluster_break(hive->cluster, "call %" PRIu64 " ends twice", number);
    if (took_ms > call->timeout_ms + SLACK_MS)
        cluster_break(hive->cluster,
                      "call %" PRIu64 " of at most %" PRIu64 " ms took %" PRIu64, number,
                      call->timeout_ms, took_ms);
    if (notice->error == NULL && call->cycle)
        cluster_break(hive->cluster, "call %" PRIu64 " came back, and succeeded", number);
    if (mu_value_get_int(notice->value, &value) == 0 && value != (int64_t)number)
        cluster_break(hive->cluster, "call %" PRIu64 " has the answer of %" PRId64,
                      number, value);
    if (notice->error == NULL && mu_value_type(notice->value) == MU_VALUE_INT &&
        call->ran != 1)
        cluster_break(hive->cluster, "call %" PRIu64 " is answered, and ran %u times",
                      number, call->ran);
    call->ended = true;
    if (notice->error == NULL)
        hive->reached[ANSWERED]++;
    else
        hive->reached[ran == MU_RAN_NO    ? RAN_NO
                      : ran == MU_RAN_YES ? RAN_YES
                                          : RAN_MAYBE]++;
    if (notice->error != NULL && notice->error->code == -MU_EPRECONDITION)
        hive->reached[CYCLES]++;
}

/* An error of the first method of a path says `ran` of the last one. */
static void check_ran(const struct call *call, uint64_t number, const mu_notice *notice)
{
    if (notice->error == NULL || notice->error->ran != MU_RAN_NO || call->ran == 0 ||
        strcmp(notice->error->function, "bee.path") == 0 ||
        strcmp(notice->error->function, "path") == 0)
        return;
    cluster_break(hive->cluster, "call %" PRIu64 " has run, and its error says no: %s",
                  number, notice->error->message);
}

static void on_bee_down(struct bee *bee, uint64_t number)
{
    struct watched *watched = &hive->watched[number];

    if (watched->by != bee->number || watched->fired)
        cluster_break(hive->cluster, "monitor %" PRIu64 " fires twice", number);
    watched->fired = true;
    hive->reached[DOWNS]++;
}

static void on_bee_timer(mu_actor *self, struct bee *bee, uint64_t number)
{
    struct timed *timed = &hive->timed[number];

    if (timed->bee != bee->number || timed->fired || timed->cancelled)
        cluster_break(hive->cluster, "timer %" PRIu64 " fires, and was cancelled",
                      number);
    timed->fired = true;
    if (timed->other == 0)
        return;
    mu_actor_timer_cancel(self, token_of(OF_TIMER, timed->other));
    hive->timed[timed->other].cancelled = true;
    hive->reached[CANCELLED]++;
}

static void give_owed(struct bee_state *own, uint64_t slot)
{
    mu_value *value = mu_value_int((int64_t)own->owed_call[slot]);

    assert_int_equal(mu_reply_give(own->owed[slot], value, NULL), 0);
    own->owed[slot] = NULL;
}

/* The next turn of its own. */
static void act_again(mu_actor *self, struct bee *bee)
{
    if (hive->over)
        return;
    (void)mu_actor_send(self, &bee->address, "act", NULL);
    (void)mu_actor_timer(self, hive_draw(1, 60), token_of(OF_ACT, 0));
}

static void on_notice(mu_actor *self, void *state, const mu_notice *notice)
{
    struct bee_state *own = state;
    struct bee *bee = own->bee;
    uint64_t number = notice->token & UINT32_MAX;
    uint64_t what = notice->token >> 32;

    if (notice->kind == MU_NOTICE_ROOM) {
        bee->refused = false;
    } else if (what == OF_CALL) {
        check_ran(&hive->calls[number], number, notice);
        hive->calls[number].not_run = notice->error != NULL &&
                                      notice->error->ran == MU_RAN_NO &&
                                      hive->calls[number].ran == 0;
        end_call(bee, self, number, notice);
    } else if (what == OF_WATCH) {
        on_bee_down(bee, number);
    } else if (what == OF_TIMER) {
        on_bee_timer(self, bee, number);
    } else if (what == OF_ACT) {
        act_again(self, bee);
    } else if (what == OF_REPLY) {
        give_owed(own, number);
    } else if (what == OF_WORK) {
        hive->reached[WORKS]++;
        assert_int_equal(notice->code, 7);
    } else {
        assert_int_equal(notice->kind, MU_NOTICE_ANSWER);
        (void)mu_reply_give((mu_reply *)(uintptr_t)notice->token, NULL, notice->error);
    }
}

static int begin_bee(mu_actor *self, void *state, const mu_value *args)
{
    struct bee_state *own = state;
    int64_t number = 0;

    assert_int_equal(mu_value_get_int(args, &number), 0);
    own->bee = &hive->bees[number];
    return mu_actor_timer(self, hive_draw(1, 60), token_of(OF_ACT, 0));
}

static void end_bee(mu_actor *self, void *state, const mu_error *why)
{
    struct bee_state *own = state;

    (void)self;
    (void)why;
    own->bee->alive = false;
}

const mu_actor_type bee_type = {
    .name = "bee",
    .state_size = sizeof(struct bee_state),
    .methods = methods,
    .start = begin_bee,
    .notice = on_notice,
    .stop = end_bee,
};

/* ---- Making them ---- */

struct office *hive_office(const struct cluster_task *task)
{
    return mu__actor_state(task->member.kernel, (mu__pid){MU__NODE_SELF, MU__ACTORS});
}

void hive_spawn(struct cluster_task *task, mu_actor *parent)
{
    struct bee *bee = &hive->bees[hive->bees_count];
    mu_actor_options options;
    mu_value *args;
    struct mail *start;

    if (hive->bees_count == BEES_MAX)
        return;
    mu_actor_options_init(&options);
    options.mailbox_max = (unsigned)hive_draw(0, 3) * 4;
    options.flags = hive_draw(0, 1) == 0 ? MU_ACTOR_DETACHED : 0;
    args = mu_value_int(hive->bees_count);
    *bee = (struct bee){.number = hive->bees_count, .alive = true, .task = task};
    if (parent != NULL) {
        if (mu_actor_spawn(parent, "bee", args, &options, &bee->address) == 0)
            hive->bees_count++;
    } else {
        struct office *office = hive_office(task);
        mu_actor_options own;

        assert_int_equal(mu__actors_read_options(&options, NULL, &own), 0);
        if (mu__spawn_user(office, mu__view_str("bee"), NULL, mu_value_ref(args), &own,
                           NULL, &start) == 0) {
            bee->address = mu__actor_address(office, start->actor);
            mu__turn_do(office, start);
            hive->bees_count++;
        }
    }
    mu_value_free(args);
}
