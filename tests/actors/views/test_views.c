/* The view service of a chief, and what it says to servers that only report what they
 * hear. */
#include "actors/views/drains.h"
#include "actors/views/views.h"
#include "muster/error.h"
#include "tests/support/net.h"
#include "tests/support/test.h"
#include "tests/support/views/reporter.h"

enum { SERVERS = 3, GRACE_MS = 20, RECOVERY_MS = 1000 };

/* ---- The fixture ---- */

struct views_net {
    struct net net;
    struct net_process *chief;
    struct net_process *servers[SERVERS];
    struct net_process *worker;
};

static int spawn_chief(struct net_process *p)
{
    static const struct mu__views_options config = {
        .table = {SERVERS, 1, GRACE_MS, RECOVERY_MS}};

    return mu__spawn(p->kernel, &mu__views, MU__VIEWS, &config, NULL);
}

static int spawn_nothing(struct net_process *p)
{
    (void)p;
    return 0;
}

static int set_up(void **state)
{
    struct views_net *f = calloc(1, sizeof *f);

    if (f == NULL)
        return -1;
    net_init(&f->net, 1);
    f->chief = net_add(&f->net, "chief", 0, spawn_chief);
    for (uint32_t i = 0; i < SERVERS; i++)
        f->servers[i] = net_add(&f->net, "ps", i, view_reporter_spawn);
    f->worker = net_add(&f->net, "worker", 0, spawn_nothing);
    for (size_t i = 0; i < f->net.processes_count; i++)
        net_start(&f->net.processes[i]);
    net_settle(&f->net);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct views_net *f = *state;

    net_done(&f->net);
    free(f);
    return 0;
}

static const struct view_reporter *server_at(const struct views_net *f, uint32_t task)
{
    return view_reporter_of(f->servers[task]);
}

static const void *views_of(const struct views_net *f)
{
    return mu__actor_state(f->chief->kernel, (mu__pid){MU__NODE_SELF, MU__VIEWS});
}

static struct mu__view_totals totals_of(const struct views_net *f)
{
    struct mu__view_totals totals;

    mu__views_totals(views_of(f), &totals);
    return totals;
}

struct check {
    struct net *net;
    uint32_t count;
};

static void check_view(void *user, const struct mu__partition_view *view)
{
    struct check *check = user;

    view_reporter_check(check->net, view);
    check->count++;
}

static void assert_all_heard(struct views_net *f)
{
    struct check check = {&f->net, 0};

    mu__views_each(views_of(f), check_view, &check);
    assert_int_equal(check.count, MU__PARTITIONS);
}

/* ---- Tests ---- */

TEST_ON(test_all_are_told_once, struct views_net *f, set_up, tear_down)
{
    const struct mu__view_totals totals = totals_of(f);

    assert_int_equal(totals.placed, MU__PARTITIONS);
    assert_int_equal(totals.degraded, 0);
    assert_all_heard(f);
    for (uint32_t i = 0; i < SERVERS; i++)
        assert_int_equal(server_at(f, i)->sets, 1);
}

TEST_ON(test_a_short_break_is_none, struct views_net *f, set_up, tear_down)
{
    net_link_down(f->chief, f->servers[0]);
    net_run_for(&f->net, GRACE_MS - 1);
    net_link_up(f->chief, f->servers[0]);
    net_run_for(&f->net, GRACE_MS * 5);
    assert_int_equal(totals_of(f).degraded, 0);
    for (uint32_t i = 0; i < SERVERS; i++)
        assert_int_equal(server_at(f, i)->sets, 1);
    assert_true(server_at(f, 0)->empty_sets > 0); /* it may serve again */
}

/* The survivors hear of all changes in a few messages. */
TEST_ON(test_a_dead_server_is_replaced, struct views_net *f, set_up, tear_down)
{
    net_crash(f->servers[0]);
    net_run_for(&f->net, GRACE_MS - 1);
    assert_int_equal(totals_of(f).without_primary, 86);
    net_run_for(&f->net, 1);
    assert_int_equal(totals_of(f).without_primary, 0);
    assert_int_equal(totals_of(f).filling, totals_of(f).degraded);
    assert_all_heard(f);
    for (uint32_t i = 1; i < SERVERS; i++)
        assert_in_range(server_at(f, i)->sets, 2, 5);
    assert_int_equal(totals_of(f).lost, 0);
}

/* It may have died with the primary, and its link not be down yet. */
TEST_ON(test_a_silent_backup_replaces_nobody, struct views_net *f, set_up, tear_down)
{
    f->servers[1]->deaf = true;
    net_crash(f->servers[0]);
    net_run_for(&f->net, GRACE_MS * 3);
    assert_in_range(totals_of(f).without_primary, 40, 46);
    f->servers[1]->deaf = false;
    net_link_down(f->chief, f->servers[1]);
    net_link_up(f->chief, f->servers[1]);
    net_settle(&f->net);
    assert_int_equal(totals_of(f).without_primary, 0);
    assert_int_equal(totals_of(f).lost, 0);
}

TEST_ON(test_a_restarted_chief_learns, struct views_net *f, set_up, tear_down)
{
    net_restart(f->chief);
    assert_int_equal(totals_of(f).placed, MU__PARTITIONS);
    assert_int_equal(totals_of(f).degraded, 0);
    assert_all_heard(f);
    for (uint32_t i = 0; i < SERVERS; i++)
        assert_int_equal(server_at(f, i)->views[0].number, i < 2);
}

TEST_ON(test_what_is_lost_begins_anew, struct views_net *f, set_up, tear_down)
{
    uint32_t unserved;

    net_crash(f->servers[0]);
    net_crash(f->servers[1]);
    net_run_for(&f->net, GRACE_MS);
    unserved = totals_of(f).without_primary;
    assert_in_range(unserved, 80, 90);
    net_start(f->servers[0]);
    net_start(f->servers[1]);
    net_settle(&f->net);
    assert_int_equal(totals_of(f).without_primary, 0);
    assert_int_equal(totals_of(f).lost, unserved);
    assert_all_heard(f);
}

/* A link without room is tried again. */
TEST_ON(test_a_full_link_is_no_loss, struct views_net *f, set_up, tear_down)
{
    f->servers[1]->full = true;
    net_crash(f->servers[0]);
    net_run_for(&f->net, GRACE_MS * 3);
    assert_int_equal(server_at(f, 1)->sets, 1);
    f->servers[1]->full = false;
    net_run_for(&f->net, GRACE_MS);
    assert_in_range(server_at(f, 1)->sets, 2, 3);
    assert_all_heard(f);
}

/* ---- Draining ---- */

/* In the supervisor's place, who has asked for it. */
struct asker {
    uint32_t answers;
    uint64_t token;
    int code;
};

static void on_drained(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct asker *asker = state;
    const struct mu__server_drained *body = mu__body(msg);

    (void)ctx;
    asker->answers++;
    asker->token = body->drain.token;
    asker->code = body->code;
}

static const struct mu__handler asker_handlers[] = {{MU__SERVER_DRAINED, on_drained}};

static const struct mu__behavior asker_behavior = {
    .name = "asker",
    .state_size = sizeof(struct asker),
    .handlers = asker_handlers,
    .handlers_count = 1,
};

/* Server `stuck` says nothing of what it is to move. */
static const struct asker *begin_asker(struct views_net *f, uint32_t stuck)
{
    for (uint32_t i = 0; i < SERVERS; i++)
        ((struct view_reporter *)(uintptr_t)server_at(f, i))->is_ready = i != stuck;
    assert_int_equal(
        mu__spawn(f->chief->kernel, &asker_behavior, MU__SUPERVISOR, NULL, NULL), 0);
    return mu__actor_state(f->chief->kernel, (mu__pid){MU__NODE_SELF, MU__SUPERVISOR});
}

static void drain_server(struct views_net *f, uint32_t task, uint64_t token)
{
    struct mu__msg *msg = mu__msg_heap(MU__SERVER_DRAIN, sizeof(struct mu__server_drain));

    assert_non_null(msg);
    *(struct mu__server_drain *)mu__body(msg) =
        (struct mu__server_drain){task, {MU__NODE_SELF, MU__CLIENT}, token};
    msg->to.actor = MU__VIEWS;
    net_deliver(f->chief, msg);
    net_settle(&f->net);
}

static struct mu__view_roles roles_at(const struct views_net *f, uint32_t task)
{
    struct mu__view_roles roles = {.task = task};

    mu__views_roles(views_of(f), task, &roles);
    return roles;
}

TEST_ON(test_a_server_is_drained, struct views_net *f, set_up, tear_down)
{
    const struct asker *asker = begin_asker(f, SERVERS);

    drain_server(f, 1, 5);
    assert_int_equal(asker->answers, 1);
    assert_int_equal(asker->token, 5);
    assert_int_equal(asker->code, 0);
    assert_int_equal(roles_at(f, 1).primary, 0);
    assert_int_equal(roles_at(f, 1).backup, 0);
    assert_int_equal(totals_of(f).degraded, 0);
    drain_server(f, 1, 6);
    assert_int_equal(asker->token, 6);
}

/* Not before it has nothing: the others have not said that they have it. */
TEST_ON(test_a_drain_ends_with_the_last_partition, struct views_net *f, set_up, tear_down)
{
    const struct asker *asker = begin_asker(f, 0);

    drain_server(f, 1, 5);
    net_run_for(&f->net, RECOVERY_MS);
    assert_int_equal(asker->answers, 0);
    assert_true(roles_at(f, 1).backup > 0);
}

TEST_ON(test_no_server_to_drain, struct views_net *f, set_up, tear_down)
{
    const struct asker *asker = begin_asker(f, SERVERS);

    drain_server(f, 9, 5);
    assert_int_equal(asker->code, -MU_ENOTFOUND);
}

static void add_server(struct views_net *f, uint32_t task)
{
    struct mu__msg *msg =
        mu__msg_heap(MU__CLUSTER_ADDED, sizeof(struct mu__cluster_change));
    struct mu__cluster_change *body;

    assert_non_null(msg);
    body = mu__body(msg);
    body->type = mu__view_str("ps");
    body->index = task;
    msg->to.actor = MU__VIEWS;
    net_deliver(f->chief, msg);
}

TEST_ON(test_an_added_server_is_known, struct views_net *f, set_up, tear_down)
{
    const struct asker *asker = begin_asker(f, SERVERS);

    add_server(f, 9);
    drain_server(f, 9, 5);
    assert_int_equal(asker->answers, 1);
    assert_int_equal(asker->code, 0);
}

/* A restarted chief hears of it from the server. */
TEST_ON(test_a_drain_outlives_the_chief, struct views_net *f, set_up, tear_down)
{
    (void)begin_asker(f, SERVERS);
    drain_server(f, 1, 5);
    assert_true(server_at(f, 1)->draining);
    assert_false(server_at(f, 0)->draining);
    net_restart(f->chief);
    net_run_for(&f->net, RECOVERY_MS);
    assert_true(roles_at(f, 1).is_draining);
    assert_int_equal(roles_at(f, 1).primary + roles_at(f, 1).backup, 0);
    assert_int_equal(totals_of(f).degraded, 0);
}

/* The latest are kept. */
TEST_ON(test_many_drain_one_server, struct views_net *f, set_up, tear_down)
{
    const struct asker *asker = begin_asker(f, SERVERS);

    net_crash(f->servers[2]);
    net_settle(&f->net);
    for (uint64_t token = 1; token <= MU__VIEW_DRAINS_MAX + 1; token++)
        drain_server(f, 1, token);
    assert_int_equal(asker->answers, 1);
    assert_int_equal(asker->token, 1);
    assert_int_equal(asker->code, -MU_ECANCELLED);
}

/* ---- Others ---- */

/* What comes from a node that is no server changes nothing. */
TEST_ON(test_others_are_not_heard, struct views_net *f, set_up, tear_down)
{
    const struct mu__partition_view view = {
        .partition = 0, .number = 99, .store_id = 1, .primary = {2, 1}};
    uint8_t bytes[MU__VIEW_BYTES];
    struct mu__msg *msg = mu__msg_heap(MU__VIEWS_HELD, sizeof(struct mu__views_held));
    struct mu__views_held *body;

    assert_non_null(msg);
    (void)mu__views_put(bytes, &view);
    body = mu__body(msg);
    body->views = (struct mu__view){bytes, sizeof bytes};
    msg->from.node = f->chief->numbers[4];
    msg->to.actor = MU__VIEWS;
    net_deliver(f->chief, msg);
    net_settle(&f->net);
    assert_int_equal(server_at(f, 0)->views[0].number, 1);
    assert_all_heard(f);
}

/* ---- The status ---- */

static int64_t number_in(const mu_value *map, const char *key)
{
    int64_t number = -1;

    (void)mu_value_get_int(mu_value_find(map, key), &number);
    return number;
}

/* The sum of one number of all servers. */
static int64_t sum_of(const mu_value *status, const char *key)
{
    const mu_value *servers = mu_value_find(status, "servers");
    int64_t sum = 0;

    for (size_t i = 0; i < mu_value_count(servers); i++)
        sum += number_in(mu_value_at(servers, i), key);
    return sum;
}

TEST_ON(test_status_of_whole_partitions, struct views_net *f, set_up, tear_down)
{
    mu_value *status = mu__views_status(views_of(f));
    const mu_value *view = mu_value_at(mu_value_find(status, "views"), 4);

    assert_int_equal(number_in(status, "backups"), 1);
    assert_int_equal(number_in(status, "placed"), MU__PARTITIONS);
    assert_int_equal(number_in(status, "degraded"), 0);
    assert_int_equal(mu_value_count(mu_value_find(status, "servers")), SERVERS);
    assert_int_equal(sum_of(status, "primary"), MU__PARTITIONS);
    assert_int_equal(sum_of(status, "backup"), MU__PARTITIONS);
    assert_int_equal(sum_of(status, "learner"), 0);
    assert_int_equal(mu_value_count(mu_value_find(status, "views")), MU__PARTITIONS);
    assert_int_equal(number_in(view, "partition"), 4);
    assert_int_equal(number_in(view, "number"), 1);
    assert_int_equal(number_in(view, "primary"), 1);
    assert_int_equal(number_in(view, "learner"), -1);
    mu_value_free(status);
}

TEST_ON(test_status_of_a_loss, struct views_net *f, set_up, tear_down)
{
    mu_value *status;

    net_crash(f->servers[0]);
    net_run_for(&f->net, GRACE_MS);
    status = mu__views_status(views_of(f));
    assert_true(number_in(status, "degraded") > 100);
    assert_int_equal(number_in(status, "filling"), number_in(status, "degraded"));
    assert_int_equal(sum_of(status, "degraded"), number_in(status, "degraded"));
    assert_int_equal(sum_of(status, "learner"), number_in(status, "filling"));
    assert_int_equal(mu_value_count(mu_value_find(status, "servers")), SERVERS - 1);
    mu_value_free(status);
    net_crash(f->servers[1]);
    net_crash(f->servers[2]);
    net_start(f->servers[1]);
    net_start(f->servers[2]);
    net_settle(&f->net);
    status = mu__views_status(views_of(f));
    assert_true(number_in(status, "lost") > 0);
    assert_int_equal(sum_of(status, "lost"), number_in(status, "lost"));
    mu_value_free(status);
}

TEST_PROGRAM()
