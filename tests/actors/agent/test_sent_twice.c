/* A change that was sent in a former session, whose answer was lost, may have been
 * applied, whatever becomes of it when it is sent again: in a whole cluster with the real
 * service, in virtual time.
 *
 * The worker's put is applied, and its answer is lost with the connection. It is sent
 * again when the worker has registered again, and takes so long that the service has lost
 * the task meanwhile: the service refuses it, and it is to be sent a third time. */
#include "actors/agent/requests.h"
#include "tests/support/story.h"

enum {
    BEGIN_MS = 200,
    APPLIED_MS = 215, /* and not answered yet */
    DEAD_MS = 300,    /* after which a silent task is lost, */
    SLOW = 35,        /* and a frame that takes 350 ms arrives too late */
    WITHIN_MS = 5000
};

static const struct agent *agent_of(const struct cluster_task *task)
{
    return mu__actor_state(task->member.kernel, (mu__pid){MU__NODE_SELF, MU__AGENT});
}

static struct cluster *begin(void)
{
    struct cluster *cluster = cluster_new(
        1, &(struct cluster_options){
               .hosts = "chief:0",
               .workers = 2,
               .coordination = {.suspect_ms = DEAD_MS / 2, .dead_ms = DEAD_MS},
           });

    cluster_start_all(cluster);
    assert_true(cluster_settle(cluster));
    run_until(cluster, BEGIN_MS);
    return cluster;
}

static bool is_sent_again(void *arg)
{
    const struct agent *a = agent_of(arg);
    const struct mu__agent_request *first = agent_first_request(a);

    return a->registration.registered && first != NULL &&
           first->session == a->registration.session;
}

static bool is_put_back(void *arg)
{
    const struct agent *a = agent_of(arg);
    const struct mu__agent_request *first = agent_first_request(a);

    return first != NULL && first->session == 0;
}

static bool asks_to_register(void *arg)
{
    const struct agent *a = agent_of(arg);

    return a->hosts.followed != NULL && !a->registration.registered &&
           a->registration.token != 0;
}

static void run_to(struct cluster *cluster, bool (*is_so)(void *arg),
                   struct cluster_task *task)
{
    assert_true(sim_run_to(cluster->sim, is_so, task,
                           sim_now_ms(cluster->sim) + WITHIN_MS));
}

/* Up to where the put is to be sent a third time. */
static struct cluster_call *put_refused_later(struct cluster *cluster, int64_t timeout_ms)
{
    struct cluster_task *worker = cluster->workers[0];
    struct cluster_call *call =
        cluster_key(worker, &(mu_kv_request){.operation = MU_KV_PUT,
                                             .key = "a",
                                             .value = "1",
                                             .size = 1,
                                             .timeout_ms = timeout_ms});

    run_until(cluster, APPLIED_MS);
    sim_settings(cluster->sim)->lose_percent = 100;
    sim_cut(cluster->sim, cluster->chief->node, worker->node);
    sim_cut(cluster->sim, worker->node, cluster->chief->node);
    run_to(cluster, asks_to_register, worker);
    sim_slow_link(cluster->sim, worker->node, cluster->chief->node, SLOW);
    run_to(cluster, is_sent_again, worker);
    assert_false(is_put_back(worker));
    run_to(cluster, is_put_back, worker);
    assert_false(call->done);
    assert_true(agent_of(worker)->registration.registered);
    return call;
}

static void expect_applied(struct cluster *cluster)
{
    struct cluster_call *call = cluster_key(
        cluster->workers[1],
        &(mu_kv_request){.operation = MU_KV_TRY_GET, .key = "a", .timeout_ms = 1000});

    sim_heal(cluster->sim);
    assert_int_equal(cluster_wait(call), 0);
    assert_string_equal(call->of.key.value, "1");
}

TEST(test_cancelled_when_it_is_put_back)
{
    struct cluster *cluster = begin();
    struct cluster_call *call = put_refused_later(cluster, -1);

    cluster_key_cancel(call);
    assert_int_equal(cluster_wait(call), -MU_ECANCELLED);
    assert_string_equal(call->of.call.error.message,
                        "cancelled; it may have been applied");
    expect_applied(cluster);
    end(cluster);
}

/* When it is put back in a run of this story: another one is the same up to there. */
static int64_t put_back_after_ms(void)
{
    struct cluster *cluster = begin();
    int64_t after_ms;

    (void)put_refused_later(cluster, -1);
    after_ms = (int64_t)(sim_now_ms(cluster->sim) - BEGIN_MS);
    cluster_free(cluster);
    return after_ms;
}

TEST(test_limit_when_it_is_put_back)
{
    int64_t timeout_ms = put_back_after_ms() + 1;
    struct cluster *cluster = begin();
    struct cluster_call *call = put_refused_later(cluster, timeout_ms);
    char words[64];

    (void)snprintf(words, sizeof words, "key \"a\" was not changed within %lld ms",
                   (long long)timeout_ms);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    assert_memory_equal(call->of.call.error.message, words, strlen(words));
    assert_non_null(strstr(call->of.call.error.message, "; it may have been applied"));
    expect_applied(cluster);
    end(cluster);
}

/* What was never sent, or was refused whenever it was sent, was not applied. */
TEST(test_never_sent)
{
    struct cluster *cluster = begin();
    struct cluster_task *worker = cluster->workers[0];
    struct cluster_call *call;

    sim_crash(cluster->chief->node);
    run_for(cluster, 100);
    call = cluster_key(worker, &(mu_kv_request){.operation = MU_KV_PUT,
                                                .key = "a",
                                                .value = "1",
                                                .size = 1,
                                                .timeout_ms = -1});
    run_for(cluster, 100);
    cluster_key_cancel(call);
    assert_int_equal(cluster_wait(call), -MU_ECANCELLED);
    assert_string_equal(call->of.call.error.message, "cancelled");
    cluster_start(cluster->chief);
    end(cluster);
}

TEST_PROGRAM()
