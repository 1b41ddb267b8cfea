#include "tests/support/views/reporter.h"

#include "actors/keep.h"
#include "tests/support/test.h"

static void report_views(struct mu__ctx *ctx, struct view_reporter *reporter)
{
    uint8_t bytes[MU__PARTITIONS * MU__VIEW_BYTES];
    uint8_t *end = bytes;
    struct mu__views_held body = {.views = {.data = bytes},
                                  .draining = reporter->draining};

    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        if (reporter->views[i].number != 0)
            end = mu__views_put(end, &reporter->views[i]);
    body.views.size = (uint32_t)(end - bytes);
    body.known = body.views.size > 0;
    assert_int_equal(mu__send_body(ctx, (mu__pid){reporter->chief, MU__VIEWS},
                                   MU__VIEWS_HELD, &body, sizeof body),
                     0);
}

static void on_chief_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct view_reporter *reporter = state;
    const struct mu__node_up *body = mu__body(msg);

    if (mu__view_is(body->type, "ps"))
        reporter->nodes[body->index] = body->node;
    if (!mu__view_is(body->type, "chief"))
        return;
    reporter->chief = body->node;
    report_views(ctx, reporter);
}

static void on_views_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct view_reporter *reporter = state;
    const struct mu__views_get *body = mu__body(msg);

    reporter->chief = msg->from.node;
    reporter->draining |= body->draining;
    report_views(ctx, reporter);
}

/* Whether another server's replica of a partition is lost to this one. */
static bool loses_replica(const struct view_reporter *reporter, uint32_t partition,
                          uint32_t node)
{
    const struct mu__partition_view *view = &reporter->views[partition];
    const struct mu__replica *other =
        view->backup.incarnation != 0 ? &view->backup : &view->learner;

    return view->number != 0 && view->primary.task == reporter->task &&
           other->incarnation != 0 && reporter->nodes[other->task] == node;
}

static void on_server_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct view_reporter *reporter = state;
    const struct mu__node_down *down = mu__body(msg);
    uint8_t bytes[MU__PARTITIONS * MU__NUMBERED_BYTES];
    uint8_t *end = bytes;
    struct mu__replica_news body = {.news = MU__REPLICA_LOST};

    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        if (loses_replica(reporter, i, down->node))
            end = mu__numbered_put(end,
                                   &(struct mu__numbered){i, reporter->views[i].number});
    body.partitions = (struct mu__view){bytes, (uint32_t)(end - bytes)};
    if (end > bytes)
        (void)mu__send_body(ctx, (mu__pid){reporter->chief, MU__VIEWS}, MU__REPLICA_NEWS,
                            &body, sizeof body);
}

/* What it says of a partition at once, as its primary; 0: nothing. */
static uint32_t news_of(const struct view_reporter *reporter,
                        const struct mu__partition_view *view)
{
    if (view->primary.task != reporter->task || !reporter->is_ready)
        return 0;
    if (view->handover)
        return MU__REPLICA_READY;
    if (view->learner.incarnation != 0)
        return MU__REPLICA_LEVEL;
    return view->backup.incarnation != 0 ? MU__REPLICA_SPARE : 0;
}

static void say_news(struct mu__ctx *ctx, const struct view_reporter *reporter,
                     const struct mu__partition_view *view)
{
    const struct mu__numbered entry = {view->partition, view->number};
    uint8_t bytes[MU__NUMBERED_BYTES];
    const struct mu__replica_news body = {.news = news_of(reporter, view),
                                          .learner = view->learner.incarnation != 0,
                                          .partitions = {bytes, sizeof bytes}};

    (void)mu__numbered_put(bytes, &entry);
    if (body.news != 0)
        (void)mu__send_body(ctx, (mu__pid){reporter->chief, MU__VIEWS}, MU__REPLICA_NEWS,
                            &body, sizeof body);
}

static void on_views_set(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct view_reporter *reporter = state;
    const struct mu__views_set *body = mu__body(msg);
    struct mu__partition_view view;

    reporter->sets += body->views.size > 0;
    reporter->empty_sets += body->views.size == 0;
    for (uint32_t i = 0; i < mu__views_count(body->views); i++) {
        assert_true(mu__views_at(body->views, i, &view));
        if (view.number <= reporter->views[view.partition].number)
            continue;
        reporter->views[view.partition] = view;
        say_news(ctx, reporter, &view);
    }
}

static int watch_chiefs(struct mu__ctx *ctx, void *state, const void *arg)
{
    ((struct view_reporter *)state)->task = *(const uint32_t *)arg;
    return mu__watch_nodes(ctx);
}

static const struct mu__handler handlers[] = {
    {MU__NODE_UP, on_chief_up},
    {MU__NODE_DOWN, on_server_down},
    {MU__VIEWS_GET, on_views_get},
    {MU__VIEWS_SET, on_views_set},
};

static const struct mu__behavior behavior = {
    .name = "reporter",
    .state_size = sizeof(struct view_reporter),
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = watch_chiefs,
};

int view_reporter_spawn(struct net_process *p)
{
    return mu__spawn(p->kernel, &behavior, MU__PS, &p->index, NULL);
}

const struct view_reporter *view_reporter_of(const struct net_process *p)
{
    return mu__actor_state(p->kernel, (mu__pid){MU__NODE_SELF, MU__PS});
}

static void check_member(const struct net *net, const struct mu__replica *member,
                         const struct mu__partition_view *view)
{
    for (size_t i = 0; i < net->processes_count; i++) {
        const struct net_process *p = &net->processes[i];

        if (p->kernel != NULL && strcmp(p->type, "ps") == 0 &&
            mu__replica_is(member, p->index, p->incarnation))
            assert_int_equal(view_reporter_of(p)->views[view->partition].number,
                             view->number);
    }
}

void view_reporter_check(void *user, const struct mu__partition_view *view)
{
    check_member(user, &view->primary, view);
    check_member(user, &view->backup, view);
    check_member(user, &view->learner, view);
}
