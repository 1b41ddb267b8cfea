/* The view service and the coordination service that records its views: in a process of
 * its own, or nowhere. */
#include "actors/agent/agent.h"
#include "actors/coordination/coordination.h"
#include "actors/views/views.h"
#include "tests/support/net.h"
#include "tests/support/test.h"
#include "tests/support/views/reporter.h"

#include <stdio.h>

enum { SERVERS = 3, CHIEFS = 2, GRACE_MS = 20, RECOVERY_MS = 1000, START_MS = 500 };

/* ---- The fixture ---- */

struct recording_net {
    struct net net;
    struct net_process *host;
    struct net_process *servers[SERVERS];
    struct net_process *chiefs[CHIEFS]; /* the second one does not run at first */
    struct mu__agent_shared shared[CHIEFS];
};

static int spawn_host(struct net_process *p)
{
    static char task[] = "/job:worker/task:0";
    const struct mu__coordination_config config = {
        .store = &mu__store_memory,
        .store_location = "",
        .cluster_name = "views",
        .task = task,
        .incarnation = p->incarnation,
        .tasks = "chief:0-1",
        .recoverable = "all",
        .suspect_ms = 60000,
        .dead_ms = 120000,
        .reconnect_ms = 120000,
        .lease_ms = 1000,
    };

    return mu__spawn(p->kernel, &mu__coordination, MU__COORDINATION, &config, NULL);
}

static int spawn_agent(struct net_process *p, struct mu__agent_shared *shared)
{
    const struct mu__agent_config config = {
        .hosts = "worker:0",
        .address = "",
        .tasks = "chief:0-1",
        .type = p->type,
        .index = p->index,
        .incarnation = p->incarnation,
        .heartbeat_ms = 100,
        .dead_ms = 120000,
        .registers_at_once = true,
        .shared = shared,
    };

    return mu__spawn(p->kernel, &mu__agent, MU__AGENT, &config, NULL);
}

static int spawn_chief(struct net_process *p)
{
    struct recording_net *f = (struct recording_net *)p->net;
    const struct mu__views_options options = {
        .table = {SERVERS, 1, GRACE_MS, RECOVERY_MS}, .agent = &f->shared[p->index]};
    int rv;

    memset(&f->shared[p->index], 0, sizeof f->shared[p->index]);
    rv = spawn_agent(p, &f->shared[p->index]);
    return rv == 0 ? mu__spawn(p->kernel, &mu__views, MU__VIEWS, &options, NULL) : rv;
}

static int set_up_unstarted(void **state)
{
    struct recording_net *f = calloc(1, sizeof *f);

    if (f == NULL)
        return -1;
    net_init(&f->net, 1);
    f->host = net_add(&f->net, "worker", 0, spawn_host);
    for (uint32_t i = 0; i < SERVERS; i++)
        f->servers[i] = net_add(&f->net, "ps", i, view_reporter_spawn);
    for (uint32_t i = 0; i < CHIEFS; i++)
        f->chiefs[i] = net_add(&f->net, "chief", i, spawn_chief);
    f->chiefs[1]->incarnation = 100; /* the service knows agents by these */
    *state = f;
    return 0;
}

static void start_but_host(struct recording_net *f)
{
    for (uint32_t i = 0; i < SERVERS; i++)
        net_start(f->servers[i]);
    net_start(f->chiefs[0]);
}

static int set_up(void **state)
{
    int rv = set_up_unstarted(state);
    struct recording_net *f = *state;

    if (rv != 0)
        return rv;
    net_start(f->host);
    start_but_host(f);
    net_run_for(&f->net, START_MS);
    return 0;
}

static int tear_down(void **state)
{
    struct recording_net *f = *state;

    net_done(&f->net);
    free(f);
    return 0;
}

static const void *views_of(const struct net_process *chief)
{
    return mu__actor_state(chief->kernel, (mu__pid){MU__NODE_SELF, MU__VIEWS});
}

static struct mu__view_totals totals_of(const struct net_process *chief)
{
    struct mu__view_totals totals;

    mu__views_totals(views_of(chief), &totals);
    return totals;
}

static void assert_served(struct recording_net *f, struct net_process *chief)
{
    const struct mu__view_totals totals = totals_of(chief);

    assert_int_equal(totals.placed, MU__PARTITIONS);
    assert_int_equal(totals.without_primary, 0);
    assert_int_equal(totals.lost, 0);
    mu__views_each(views_of(chief), view_reporter_check, &f->net);
}

static uint32_t sets_of(const struct recording_net *f)
{
    uint32_t sets = 0;

    for (uint32_t i = 0; i < SERVERS; i++)
        if (f->servers[i]->kernel != NULL)
            sets += view_reporter_of(f->servers[i])->sets;
    return sets;
}

/* ---- Recording ---- */

TEST_ON(test_views_are_told_once_recorded, struct recording_net *f, set_up, tear_down)
{
    assert_served(f, f->chiefs[0]);
    assert_int_equal(f->net.counts[MU__KEY_PUT], 1);
    net_crash(f->servers[0]);
    net_run_to_frame(&f->net, MU__KEY_DONE);
    assert_int_equal(f->net.counts[MU__KEY_PUT], 2);
    assert_int_equal(sets_of(f), 2);
    net_settle(&f->net);
    assert_int_equal(sets_of(f), 6);
    net_run_for(&f->net, GRACE_MS);
    assert_served(f, f->chiefs[0]);
}

/* The chief's predecessor knew of it, and it is not there to report. */
TEST_ON(test_a_dead_primary_is_replaced, struct recording_net *f, set_up, tear_down)
{
    net_crash(f->chiefs[0]);
    net_crash(f->servers[0]);
    net_start(f->chiefs[0]);
    net_run_for(&f->net, START_MS);
    assert_int_equal(totals_of(f->chiefs[0]).placed, MU__PARTITIONS);
    net_run_for(&f->net, RECOVERY_MS);
    assert_served(f, f->chiefs[0]);
    net_start(f->servers[0]);
    net_settle(&f->net);
    assert_served(f, f->chiefs[0]);
    assert_int_equal(totals_of(f->chiefs[0]).filling, totals_of(f->chiefs[0]).degraded);
}

/* The same with what is there only because nobody had heard of it. */
TEST_ON(test_what_nobody_heard_of_is_in_force, struct recording_net *f, set_up, tear_down)
{
    uint32_t sets;

    net_crash(f->servers[0]);
    net_run_for(&f->net, GRACE_MS - 1);
    sets = sets_of(f);
    f->net.now_ms++;
    net_run_to_frame(&f->net, MU__KEY_DONE);
    net_crash(f->chiefs[0]);
    assert_int_equal(sets_of(f), sets);
    net_start(f->servers[0]);
    net_start(f->chiefs[0]);
    net_run_for(&f->net, START_MS);
    assert_served(f, f->chiefs[0]);
    assert_true(totals_of(f->chiefs[0]).filling > MU__PARTITIONS / 2);
}

TEST_ON(test_a_lost_store_is_filled_again, struct recording_net *f, set_up, tear_down)
{
    net_restart(f->host);
    net_crash(f->servers[0]);
    net_run_for(&f->net, 2 * START_MS);
    assert_served(f, f->chiefs[0]);
    net_crash(f->chiefs[0]);
    net_crash(f->servers[1]);
    net_start(f->servers[0]);
    net_start(f->chiefs[0]);
    net_run_for(&f->net, START_MS + RECOVERY_MS);
    assert_int_equal(totals_of(f->chiefs[0]).placed, MU__PARTITIONS);
    assert_int_equal(totals_of(f->chiefs[0]).lost, 0);
}

/* Nothing is recorded: nobody can tell whether the primary has gone on alone. */
TEST_ON(test_without_a_store_that_is_a_loss, struct recording_net *f, set_up, tear_down)
{
    net_crash(f->host);
    net_crash(f->chiefs[0]);
    net_crash(f->servers[0]);
    net_start(f->servers[0]);
    net_start(f->host);
    net_start(f->chiefs[0]);
    net_run_for(&f->net, START_MS);
    assert_in_range(totals_of(f->chiefs[0]).lost, 80, 90);
}

/* ---- A service that does not answer ---- */

TEST_ON(test_views_wait_for_the_service, struct recording_net *f, set_up, tear_down)
{
    uint32_t sets = sets_of(f);

    net_link_down(f->chiefs[0], f->host);
    net_crash(f->servers[0]);
    sets -= 1;
    net_run_for(&f->net, 30000);
    assert_int_equal(sets_of(f), sets);
    assert_in_range(totals_of(f->chiefs[0]).without_primary, 80, 90);
    net_link_up(f->chiefs[0], f->host);
    net_run_for(&f->net, START_MS);
    assert_served(f, f->chiefs[0]);
}

TEST_ON(test_at_first_they_wait_for_a_while, struct recording_net *f, set_up_unstarted,
        tear_down)
{
    start_but_host(f);
    net_run_for(&f->net, RECOVERY_MS - 1);
    assert_int_equal(totals_of(f->chiefs[0]).placed, 0);
    net_run_for(&f->net, 1);
    assert_served(f, f->chiefs[0]);
    net_start(f->host);
    net_run_for(&f->net, START_MS);
    net_crash(f->chiefs[0]);
    net_crash(f->servers[0]);
    net_start(f->chiefs[0]);
    net_run_for(&f->net, START_MS + RECOVERY_MS);
    assert_served(f, f->chiefs[0]);
}

static void deliver_task_error(struct recording_net *f)
{
    struct mu__msg *msg = mu__msg_heap(MU__TASK_ERROR, sizeof(struct mu__task_error));
    struct mu__task_error *body;

    assert_non_null(msg);
    body = mu__body(msg);
    body->code = MU_EABORTED;
    body->message = mu__view_str("another task has failed");
    msg->from = (mu__pid){f->chiefs[0]->numbers[0], MU__COORDINATION};
    msg->to.actor = MU__AGENT;
    net_deliver(f->chiefs[0], msg);
}

/* What other tasks do wrong does not keep a server from being replaced. */
TEST_ON(test_the_error_state_is_no_obstacle, struct recording_net *f, set_up, tear_down)
{
    deliver_task_error(f);
    assert_non_null(mu__agent_error(
        mu__actor_state(f->chiefs[0]->kernel, (mu__pid){MU__NODE_SELF, MU__AGENT})));
    net_crash(f->servers[0]);
    net_run_for(&f->net, GRACE_MS);
    assert_served(f, f->chiefs[0]);
}

/* ---- Others that change the key ---- */

static void note_done(void *user, const mu_kv_response *response)
{
    *(int *)user = response->code;
}

static void change_key(struct recording_net *f, int operation, const char *value)
{
    const mu_kv_request request = {.operation = operation,
                                   .flags = MU_KV_OVERWRITE,
                                   .key = MU__KEY_VIEWS,
                                   .value = value,
                                   .size = strlen(value),
                                   .timeout_ms = -1};
    struct mu__msg *msg;
    int code = 1;

    assert_int_equal(mu__key_request_new(&f->shared[0], &request, note_done, &code, NULL,
                                         NULL, &msg),
                     0);
    msg->to.actor = MU__AGENT;
    net_deliver(f->chiefs[0], msg);
    net_settle(&f->net);
    assert_int_equal(code, 0);
}

TEST_ON(test_nonsense_is_written_over, struct recording_net *f, set_up, tear_down)
{
    char junk[2 * MU__VIEW_BYTES + 8];

    memset(junk, 'x', sizeof junk - 1);
    junk[sizeof junk - 1] = '\0';
    change_key(f, MU_KV_PUT, junk);
    net_crash(f->servers[0]);
    net_run_for(&f->net, GRACE_MS);
    assert_served(f, f->chiefs[0]);
    assert_in_range(sets_of(f), 4, 8);
}

TEST_ON(test_a_deleted_key_is_written_again, struct recording_net *f, set_up, tear_down)
{
    change_key(f, MU_KV_DELETE, "");
    net_crash(f->servers[0]);
    net_run_for(&f->net, GRACE_MS);
    assert_served(f, f->chiefs[0]);
    assert_in_range(sets_of(f), 4, 8);
}

static void assert_same_view(void *user, const struct mu__partition_view *view)
{
    const struct mu__partition_view *other =
        &((const struct mu__partition_view *)user)[view->partition];

    assert_int_equal(view->number, other->number);
    assert_int_equal(view->primary.task, other->primary.task);
    assert_int_equal(view->backup.task, other->backup.task);
    assert_int_equal(view->learner.task, other->learner.task);
}

static void copy_view(void *user, const struct mu__partition_view *view)
{
    ((struct mu__partition_view *)user)[view->partition] = *view;
}

/* Both decide about the same loss; what one of them has not recorded nobody hears of. */
TEST_ON(test_two_chiefs_agree, struct recording_net *f, set_up, tear_down)
{
    static struct mu__partition_view views[MU__PARTITIONS];

    net_start(f->chiefs[1]);
    net_run_for(&f->net, START_MS);
    assert_served(f, f->chiefs[1]);
    for (uint32_t i = 0; i < SERVERS; i++) {
        net_crash(f->servers[i]);
        net_run_for(&f->net, GRACE_MS);
        net_start(f->servers[i]);
        net_run_for(&f->net, RECOVERY_MS);
    }
    memset(views, 0, sizeof views);
    mu__views_each(views_of(f->chiefs[0]), copy_view, views);
    mu__views_each(views_of(f->chiefs[1]), view_reporter_check, &f->net);
    mu__views_each(views_of(f->chiefs[1]), assert_same_view, views);
}

TEST_PROGRAM()
