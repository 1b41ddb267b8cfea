/* Clocks in the actor of a parameter server: requests, the fill of a learner, and members
 * that are lost. */
#include "actors/ps/stream.h"

#include "actors/keep.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- Members without a link ---- */

static bool is_linked(const struct ps *ps, uint64_t incarnation)
{
    if (incarnation == ps->incarnation)
        return true;
    for (uint32_t i = 0; i < ps->nodes_count; i++)
        if (ps->nodes[i].incarnation == incarnation)
            return true;
    return false;
}

static void arm_clocks(struct mu__ctx *ctx, struct ps *ps)
{
    if (ps->clock_timer == 0)
        ps->clock_timer = mu__timer_set(ctx, CLOCK_AWAY_MS / 4, PS_CLOCKS);
}

static void watch_member(struct mu__ctx *ctx, struct ps *ps,
                         struct mu__clock_member *member)
{
    if (is_linked(ps, member->incarnation)) {
        member->away_ms = 0;
        return;
    }
    member->away_ms = mu__now_ms(ctx) + 1; /* never 0 */
    arm_clocks(ctx, ps);
}

void mu__ps_watch_clocks(struct mu__ctx *ctx, struct ps *ps, struct partition *p)
{
    for (struct mu__clock *clock = mu__clocks_first(&p->clocks); clock != NULL;
         clock = mu__clocks_next(clock))
        for (struct mu__clock_member *member = mu__clock_first(clock); member != NULL;
             member = mu__clock_next(member))
            watch_member(ctx, ps, member);
}

/* ---- Requests ---- */

static void answer_passed(struct mu__ctx *ctx, struct partition *p,
                          const struct mu__clock_outcome *outcome)
{
    const struct mu__clock_passed body = {
        .token = outcome->token, .step = outcome->step, .minimum = outcome->minimum};

    mu__stream_note(p, outcome->step + outcome->minimum);
    mu__ps_answer(ctx, p, outcome->waiter, MU__CLOCK_PASSED, &body, sizeof body);
}

static void refuse_step(struct mu__ctx *ctx, struct partition *p, mu__pid to,
                        uint64_t token, const mu_error *error)
{
    const struct mu__clock_passed body = {.token = token,
                                          .code = (uint32_t)-error->code,
                                          .message = mu__view_str(error->message)};

    mu__stream_note(p, body.code);
    mu__ps_answer(ctx, p, to, MU__CLOCK_PASSED, &body, sizeof body);
}

static void apply_step(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                       const struct mu__clock_set *body, mu__pid from)
{
    const struct mu__clock_step step = {
        .name = body->name,
        .task = body->task,
        .member = body->member,
        .incarnation = body->incarnation,
        .staleness = body->staleness,
        .step = body->step,
        .waiter = from,
        .token = body->token,
    };
    struct mu__clock_outcome outcome;
    mu_error error;

    if (mu__clocks_set(&p->clocks, &step, &error, &outcome) != 0) {
        refuse_step(ctx, p, from, body->token, &error);
        return;
    }
    if (p->role == SERVING && outcome.joined != NULL)
        watch_member(ctx, ps, outcome.joined);
    if (outcome.waits)
        mu__stream_note(p, outcome.step + outcome.minimum);
    else
        answer_passed(ctx, p, &outcome);
}

static void apply_leave(struct mu__ctx *ctx, struct partition *p,
                        const struct mu__clock_set *body, mu__pid from)
{
    const struct mu__clock_outcome outcome = {.waiter = from, .token = body->token};

    mu__clocks_leave(&p->clocks, body->member, (enum mu__clock_leave)body->leaves);
    if (body->token != 0)
        answer_passed(ctx, p, &outcome);
}

void mu__ps_apply_clock_set(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                            const struct mu__msg *msg, mu__pid from)
{
    const struct mu__clock_set *body = (const void *)msg->body;
    struct mu__clock_outcome outcome;

    if (body->leaves == MU__CLOCK_STAYS)
        apply_step(ctx, ps, p, body, from);
    else
        apply_leave(ctx, p, body, from);
    while (mu__clocks_next_passed(&p->clocks, &outcome))
        answer_passed(ctx, p, &outcome);
}

/* A primary that may have been replaced answers nothing; the client asks again. */
void mu__ps_on_clock_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct ps *ps = state;
    const struct mu__clock_get *body = mu__body(msg);
    struct partition *p = ps->partitions[body->partition];
    struct mu__clock_state reply = {.token = body->token};
    const struct mu__clock *clock;
    char text[MU__CLOCK_TEXT_SIZE] = "";

    if (p == NULL || p->role != SERVING || p->generation != body->generation ||
        p->ready || mu__ps_is_cut_off(ps, p))
        return;
    clock = mu__clocks_find(&p->clocks, body->name);
    if (clock != NULL) {
        reply.minimum = clock->minimum;
        mu__clock_slowest_text(clock, text, sizeof text);
    }
    reply.slowest = mu__view_str(text);
    mu__ps_answer(ctx, p, msg->from, MU__CLOCK_STATE, &reply, sizeof reply);
}

/* ---- Filling ---- */

static bool put_fill_clock(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                           const struct mu__clock *clock,
                           const struct mu__clock_member *member, mu__fill_put_fn put)
{
    struct mu__fill_clock body = {
        .partition = p->view.partition,
        .view = p->view.number,
        .name = mu__view_str(clock->name),
        .staleness = clock->staleness,
        .minimum = clock->minimum,
    };

    if (member != NULL) {
        body.member = member->id;
        body.task = mu__view_str(member->task);
        body.incarnation = member->incarnation;
        body.step = member->step;
    }
    return put(ctx, ps, p, MU__FILL_CLOCK, &body, sizeof body);
}

bool mu__ps_put_clocks(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                       mu__fill_put_fn put)
{
    for (const struct mu__clock *clock = mu__clocks_first(&p->clocks); clock != NULL;
         clock = mu__clocks_next(clock)) {
        const struct mu__clock_member *member = mu__clock_first(clock);

        do {
            if (!put_fill_clock(ctx, ps, p, clock, member, put))
                return false;
            member = member == NULL ? NULL : mu__clock_next(member);
        } while (member != NULL);
    }
    return true;
}

static bool put_filled_clock(struct partition *p, const struct mu__fill_clock *body)
{
    const struct mu__clock_step step = {
        .task = body->task,
        .member = body->member,
        .incarnation = body->incarnation,
        .step = body->step,
    };
    struct mu__clock *clock =
        mu__clocks_put(&p->clocks, body->name, body->staleness, body->minimum);

    if (clock == NULL)
        return false;
    return body->member == 0 || mu__clocks_put_member(&p->clocks, clock, &step) != NULL;
}

void mu__ps_take_fill_clock(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                            const struct mu__fill_clock *body)
{
    if (put_filled_clock(p, body))
        return;
    mu__log(ctx, MU__LOG_ERROR,
            "out of memory: partition %" PRIu32 " cannot be filled with its clocks",
            p->view.partition);
    p->broken = true;
    mu__stream_mark(ps, p);
}

/* ---- Members that are lost ---- */

/* A record, so that it leaves at the replica, too. */
static void let_leave(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                      const struct mu__clock_member *member, bool left)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__CLOCK_SET);
    struct mu__clock_set *body;

    if (msg == NULL) {
        mu__log(ctx, MU__LOG_ERROR, "out of memory: a lost task stays in its clock");
        return;
    }
    mu__log(ctx, left ? MU__LOG_DEBUG : MU__LOG_WARN,
            "clock %s: %s is %s and leaves, at step %" PRIu64, member->clock->name,
            member->task, left ? "closed" : "lost", member->step);
    body = mu__body(msg);
    body->member = member->id;
    body->leaves = left ? MU__CLOCK_CLOSED : MU__CLOCK_LOST;
    mu__ps_begin(ctx, ps, p, msg);
}

/* What is asked about each member of the clocks that are served here. */
struct member_news {
    const struct mu__node_up *up;
    uint64_t down;  /* the incarnation of a process that has no link any more */
    bool left;      /* it has said goodbye */
    bool has_timed; /* some time has passed */
};

static bool is_replaced_by(const struct mu__clock_member *member,
                           const struct mu__node_up *up)
{
    char type[MU__TASK_NAME_MAX + 1];
    char task[2 * MU__TASK_NAME_MAX];

    mu__view_copy(up->type, type, sizeof type);
    (void)snprintf(task, sizeof task, "/job:%s/task:%" PRIu32, type, up->index);
    return strcmp(task, member->task) == 0;
}

/* Whether it is to leave now. */
static bool take_member_news(struct mu__ctx *ctx, struct ps *ps,
                             struct mu__clock_member *member,
                             const struct member_news *news)
{
    if (news->up != NULL && news->up->incarnation == member->incarnation) {
        member->away_ms = 0;
        return false;
    }
    if (news->up != NULL)
        return is_replaced_by(member, news->up);
    if (news->has_timed) {
        if (member->away_ms != 0)
            arm_clocks(ctx, ps);
        return member->away_ms != 0 && mu__now_ms(ctx) >= member->away_ms + CLOCK_AWAY_MS;
    }
    if (news->down != member->incarnation)
        return false;
    member->away_ms = mu__now_ms(ctx) + 1;
    arm_clocks(ctx, ps);
    return news->left;
}

static void report_to_clock(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                            struct mu__clock *clock, const struct member_news *news)
{
    struct mu__clock_member *member = mu__clock_first(clock);

    while (member != NULL) {
        struct mu__clock_member *next = mu__clock_next(member);

        if (take_member_news(ctx, ps, member, news))
            let_leave(ctx, ps, p, member, news->left);
        member = next;
    }
}

static void report_to_all_clocks(struct mu__ctx *ctx, struct ps *ps,
                                 const struct member_news *news)
{
    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        struct partition *p = ps->partitions[i];
        struct mu__clock *clock;
        struct mu__clock *next;

        if (p == NULL || p->role != SERVING)
            continue;
        for (clock = mu__clocks_first(&p->clocks); clock != NULL; clock = next) {
            next = mu__clocks_next(clock); /* it may end with its last member */
            report_to_clock(ctx, ps, p, clock, news);
        }
    }
}

void mu__ps_clocks_node_up(struct mu__ctx *ctx, struct ps *ps,
                           const struct mu__node_up *up)
{
    report_to_all_clocks(ctx, ps, &(struct member_news){.up = up});
}

void mu__ps_clocks_node_down(struct mu__ctx *ctx, struct ps *ps,
                             const struct mu__node_down *down)
{
    for (uint32_t i = 0; i < ps->nodes_count; i++)
        if (ps->nodes[i].node == down->node)
            report_to_all_clocks(ctx, ps,
                                 &(struct member_news){.down = ps->nodes[i].incarnation,
                                                       .left = down->left});
}

void mu__ps_clocks_tick(struct mu__ctx *ctx, struct ps *ps)
{
    ps->clock_timer = 0;
    report_to_all_clocks(ctx, ps, &(struct member_news){.has_timed = true});
}
