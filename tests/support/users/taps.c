#include "tests/support/users/taps.h"

#include "tests/support/test.h"

#include <inttypes.h>

enum { TIMEOUT_MAX = 2000, BYTES_LARGE = MU__STREAM_BYTES / 3 };

struct taps *taps;

struct tap_state {
    struct tap *tap;
};

/* Tokens say what they are of, in the upper half. */
enum { OF_FLOW = 1, OF_GIVE = 2, OF_RESUME = 3, OF_ACT = 4 };

static uint64_t token_of(uint64_t what, uint64_t number)
{
    return what << 32 | number;
}

static uint64_t draw(uint64_t min, uint64_t max)
{
    return sim_between(&taps->random, min, max);
}

static struct flow *flow_of(const mu_value *value, int64_t *ret_number)
{
    assert_int_equal(mu_value_get_int(value, ret_number), 0);
    return &taps->flows[*ret_number];
}

/* ---- who gives ---- */

static mu_value *make_item(int64_t number, uint32_t item)
{
    static const char bytes[BYTES_LARGE];
    mu_value *value = mu_value_list();

    (void)mu_value_append(value, mu_value_int(number));
    (void)mu_value_append(value, mu_value_int(item));
    if (draw(0, 199) == 0)
        (void)mu_value_append(value, mu_value_bytes(bytes, sizeof bytes));
    return value;
}

static int give_one(struct flow *flow, int64_t number)
{
    mu_value *item = make_item(number, flow->given + 1);
    int rv = mu_stream_give(flow->stream, item);

    mu_value_free(item);
    if (rv != 0)
        return rv;
    flow->given++;
    if (flow->given - flow->seen > flow->ahead)
        cluster_break(taps->cluster, "flow %" PRId64 " has %u items under way of %u",
                      number, flow->given - flow->seen, flow->ahead);
    return 0;
}

static void give_items(struct flow *flow, int64_t number)
{
    int rv = 0;

    for (uint64_t i = draw(1, 12); i > 0 && rv == 0 && flow->given < flow->total; i--)
        rv = give_one(flow, number);
    flow->blocked = rv == -MU_EAGAIN;
    taps->reached[REFUSED] += flow->blocked;
}

static void end_flow(struct flow *flow, int code)
{
    const mu_error error = {.code = code, .message = "the flow's own"};

    assert_int_equal(mu_stream_end(flow->stream, code == 0 ? NULL : &error), 0);
    flow->stream = NULL;
    flow->ended = true;
    flow->code = code;
    flow->blocked = false;
}

/* Begins one; now and then it fails, with what it has given already. */
static int begin_flow(mu_actor *self, void *state, const mu_value *args)
{
    int64_t number;
    struct flow *flow = flow_of(args, &number);

    (void)state;
    flow->stream =
        mu_actor_stream(self, flow->ahead, token_of(OF_FLOW, (uint64_t)number));
    if (flow->stream != NULL && draw(0, 1) == 0)
        give_items(flow, number);
    if (flow->stream == NULL || draw(0, 9) == 0 ||
        mu_actor_timer(self, draw(0, 30), token_of(OF_GIVE, (uint64_t)number)) != 0) {
        taps->reached[FAILED_METHODS]++;
        flow->stream = NULL;
        flow->given = 0;
        flow->blocked = false;
        flow->failed = true;
        return -MU_EDATALOSS;
    }
    flow->begun = true;
    taps->reached[BEGUN]++;
    return 0;
}

/* A turn that may fail. */
static int push(mu_actor *self, void *state, const mu_value *args)
{
    int64_t number;
    struct flow *flow = flow_of(args, &number);
    uint32_t before = flow->given;

    (void)self;
    (void)state;
    if (flow->stream == NULL)
        return 0;
    give_items(flow, number);
    if (draw(0, 3) == 0) {
        flow->given = before;
        taps->reached[FAILED_TURNS]++;
        return -MU_EABORTED;
    }
    if (flow->given == flow->total && !flow->lasts)
        end_flow(flow, draw(0, 4) == 0 ? -MU_ERANGE : 0);
    return 0;
}

/* The next turn of giving, until it has to wait. */
static void go_on_giving(mu_actor *self, const struct tap *tap, uint64_t number)
{
    struct flow *flow = &taps->flows[number];
    mu_value *args = mu_value_int((int64_t)number);

    if (flow->stream != NULL && (!flow->lasts || flow->given < flow->total)) {
        (void)mu_actor_send(self, &tap->address, "push", args);
        (void)mu_actor_timer(self, draw(0, 30), token_of(OF_GIVE, number));
    }
    mu_value_free(args);
}

static void hear_of_given(const mu_notice *notice, uint64_t number)
{
    struct flow *flow = &taps->flows[number];

    if (flow->stream == NULL) {
        cluster_break(taps->cluster, "flow %" PRIu64 " is over, and was notified",
                      number);
    } else if (notice->kind == MU_NOTICE_STREAM_ROOM) {
        flow->blocked = false;
        taps->reached[ROOMS]++;
    } else {
        taps->reached[CANCELLED]++;
        assert_int_equal(mu_stream_give(flow->stream, NULL), -MU_ECANCELLED);
        end_flow(flow, 0);
    }
}

/* ---- who reads ---- */

static void begin_reading(mu_actor *self, struct tap *tap)
{
    struct tap *from = &taps->taps[draw(0, taps->taps_count - 1)];
    uint64_t number = taps->flows_count + 1;
    struct flow *flow = &taps->flows[number];
    mu_value *args;

    if (number >= FLOWS_MAX)
        return;
    args = mu_value_int((int64_t)number);
    *flow = (struct flow){.from = from->number + 1,
                          .to = tap->number + 1,
                          .ahead = (unsigned)draw(1, 8),
                          .total = (uint32_t)draw(0, 60),
                          .lasts = draw(0, 9) == 0};
    if (flow->lasts)
        flow->total++;
    if (mu_actor_call(self, &from->address, "flow", args, (int64_t)draw(1, TIMEOUT_MAX),
                      token_of(OF_FLOW, number)) == 0)
        taps->flows_count++;
    mu_value_free(args);
}

static void close_flow(mu_actor *self, struct flow *flow, uint64_t token)
{
    assert_int_equal(mu_actor_read_stream(self, token, MU_READ_CLOSE), 0);
    flow->over = true;
    taps->reached[CLOSED]++;
}

static void pause_flow(mu_actor *self, uint64_t number)
{
    struct flow *flow = &taps->flows[number];

    if (mu_actor_timer(self, draw(0, 300), token_of(OF_RESUME, number)) != 0)
        return;
    assert_int_equal(mu_actor_read_stream(self, token_of(OF_FLOW, number), MU_READ_PAUSE),
                     0);
    flow->paused = true;
    taps->reached[PAUSES]++;
}

/* One that has items in the mailbox, perhaps. */
static void pause_any(mu_actor *self, const struct tap *tap)
{
    for (unsigned i = taps->flows_count; i > 0 && i + 40 > taps->flows_count; i--) {
        const struct flow *flow = &taps->flows[i];

        if (flow->to == tap->number + 1 && flow->seen > 0 && !flow->over &&
            !flow->paused) {
            pause_flow(self, i);
            return;
        }
    }
}

static void read_item(mu_actor *self, const mu_notice *notice, uint64_t number)
{
    struct flow *flow = &taps->flows[number];
    int64_t of = 0;
    int64_t item = 0;

    assert_int_equal(mu_value_get_int(mu_value_at(notice->value, 0), &of), 0);
    assert_int_equal(mu_value_get_int(mu_value_at(notice->value, 1), &item), 0);
    if ((uint64_t)of != number || item != flow->seen + 1 || item > flow->given)
        cluster_break(taps->cluster,
                      "item %" PRId64 " of flow %" PRId64 " comes in flow %" PRIu64
                      " behind %u of %u",
                      item, of, number, flow->seen, flow->given);
    if (flow->over || flow->paused)
        cluster_break(taps->cluster, "an item comes of flow %" PRIu64 ", which is %s",
                      number, flow->over ? "over" : "paused");
    flow->seen++;
    taps->reached[ITEMS]++;
    if ((flow->lasts && flow->seen == flow->total) || draw(0, 99) == 0) {
        close_flow(self, flow, notice->token);
    } else if (draw(0, 19) == 0) {
        pause_flow(self, number);
    }
}

/* A good end, or one by who gives it, comes behind all items. */
static void read_end(const mu_notice *notice, uint64_t number)
{
    struct flow *flow = &taps->flows[number];
    int code = notice->error == NULL ? 0 : notice->error->code;
    bool is_own = flow->ended && code == flow->code &&
                  (code == 0 || notice->error->ran == MU_RAN_YES);

    if (flow->over || flow->paused)
        cluster_break(taps->cluster, "flow %" PRIu64 " ends, and is %s", number,
                      flow->over ? "over" : "paused");
    if (code == 0 && !is_own)
        cluster_break(taps->cluster, "flow %" PRIu64 " ends well, and was not ended",
                      number);
    if (is_own && flow->seen != flow->given)
        cluster_break(taps->cluster, "flow %" PRIu64 " ends after %u of %u items", number,
                      flow->seen, flow->given);
    if (!is_own && flow->begun && notice->error->ran == MU_RAN_NO)
        cluster_break(taps->cluster, "flow %" PRIu64 " was begun, and was said not to be",
                      number);
    flow->over = true;
    taps->reached[code == 0 ? ENDED_WELL : is_own ? ENDED_BY_ERROR : LOST]++;
}

static void resume(mu_actor *self, uint64_t number)
{
    struct flow *flow = &taps->flows[number];

    flow->paused = false;
    assert_int_equal(mu_actor_read_stream(self, token_of(OF_FLOW, number), MU_READ_GO_ON),
                     0);
}

/* ---- its life ---- */

static void act(mu_actor *self, struct tap *tap)
{
    if (taps->over)
        return;
    if (draw(0, 49) == 0)
        (void)mu_actor_stop(self, &tap->address, (int)draw(0, 1));
    else
        begin_reading(self, tap);
    if (draw(0, 1) == 0)
        pause_any(self, tap);
    (void)mu_actor_timer(self, draw(1, 200), token_of(OF_ACT, 0));
}

static void on_tap_notice(mu_actor *self, void *state, const mu_notice *notice)
{
    struct tap *tap = ((struct tap_state *)state)->tap;
    uint64_t number = notice->token & UINT32_MAX;
    uint64_t what = notice->token >> 32;

    if (notice->kind == MU_NOTICE_ITEM) {
        read_item(self, notice, number);
    } else if (notice->kind == MU_NOTICE_ANSWER) {
        read_end(notice, number);
    } else if (what == OF_FLOW) {
        hear_of_given(notice, number);
        if (notice->kind == MU_NOTICE_STREAM_ROOM)
            go_on_giving(self, tap, number);
    } else if (what == OF_GIVE) {
        if (!taps->flows[number].blocked)
            go_on_giving(self, tap, number);
    } else if (what == OF_RESUME) {
        resume(self, number);
    } else if (what == OF_ACT) {
        act(self, tap);
    }
}

static int begin_tap(mu_actor *self, void *state, const mu_value *args)
{
    int64_t number = 0;

    assert_int_equal(mu_value_get_int(args, &number), 0);
    ((struct tap_state *)state)->tap = &taps->taps[number];
    return mu_actor_timer(self, draw(1, 400), token_of(OF_ACT, 0));
}

static const mu_actor_method methods[] = {
    {"flow", begin_flow}, {"push", push}, {NULL, NULL}};

const mu_actor_type tap_type = {
    .name = "tap",
    .state_size = sizeof(struct tap_state),
    .methods = methods,
    .start = begin_tap,
    .notice = on_tap_notice,
};

/* ---- making them ---- */

struct office *taps_office(const struct cluster_task *task)
{
    return mu__actor_state(task->member.kernel, (mu__pid){MU__NODE_SELF, MU__ACTORS});
}

void taps_spawn(struct cluster_task *task)
{
    struct tap *tap = &taps->taps[taps->taps_count];
    struct office *office = taps_office(task);
    mu_actor_options options;
    struct mail *start;

    if (taps->taps_count == TAPS_MAX)
        return;
    *tap = (struct tap){.number = taps->taps_count, .task = task};
    assert_int_equal(mu__actors_read_options(NULL, NULL, &options), 0);
    assert_int_equal(mu__spawn_user(office, mu__view_str("tap"), NULL,
                                    mu_value_int(tap->number), &options, NULL, &start),
                     0);
    tap->address = mu__actor_address(office, start->actor);
    taps->taps_count++;
    mu__turn_do(office, start);
}
