/* Messages that nobody should have sent change nothing. */
#include "tests/support/story.h"

/* The chief has two workers, nodes 1 and 2; the second has the first closure, which has
 * the first id, in its first attempt. Results of anything else are nobody's. */
TEST(test_forged_results)
{
    static const uint64_t first = UINT64_C(1) << 32;
    static const struct {
        mu__pid from;
        struct mu__result result;
    } rows[] = {
        {{1, MU__WORKER}, {.closure = UINT64_C(1) << 32, .attempt = 1}},
        {{3, MU__WORKER}, {.closure = UINT64_C(1) << 32, .attempt = 1}},
        {{0, MU__CLIENT}, {.closure = UINT64_C(1) << 32, .attempt = 1}},
        {{2, MU__WORKER}, {.closure = UINT64_C(1) << 32, .attempt = 2}},
        {{2, MU__WORKER}, {.closure = UINT64_C(1) << 32, .attempt = 0}},
        {{2, MU__WORKER}, {.closure = UINT64_C(2) << 32, .attempt = 1}},
        {{2, MU__WORKER}, {.closure = 0, .attempt = 1}},
        {{2, MU__WORKER}, {.closure = UINT64_MAX, .attempt = 1, .code = 13}},
    };
    const size_t count = sizeof rows / sizeof rows[0];
    struct cluster *cluster = BEGIN(.workers = 2);
    const struct mu__result good = {.closure = first, .attempt = 1, .code = MU_EABORTED};
    struct cluster_closure *closure;

    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    closure = cluster_schedule(cluster->chief, "square");
    run_for(cluster, 50);
    for (size_t i = 0; i < count; i++)
        forge(cluster->chief, rows[i].from, MU__SUPERVISOR, MU__RESULT, &rows[i].result,
              sizeof rows[i].result);
    run_for(cluster, 50);
    assert_int_equal(mu_remote_value_state(closure->future), MU_REMOTE_NOT_READY);
    assert_int_equal(status_number(cluster->chief, "closures", "stale_results"), count);

    /* That it is the rows, and not the way they came, shows the one that is right. */
    forge(cluster->chief, (mu__pid){2, MU__WORKER}, MU__SUPERVISOR, MU__RESULT, &good,
          sizeof good);
    run_for(cluster, 50);
    assert_int_equal(mu_remote_value_state(closure->future), MU_REMOTE_READY);
    assert_int_equal(closure->future->error->code, -MU_EABORTED);
    assert_int_equal(join(cluster->chief), -MU_EABORTED);
    assert_int_equal(status_number(cluster->chief, "closures", "in_flight"), 0);
    end(cluster);
}

/* A client takes answers of its chief alone, each once. Its chief is node 1. */
TEST(test_forged_answers)
{
    static const struct {
        mu__pid from;
        struct mu__resolved answer;
    } rows[] = {
        {{2, MU__SUPERVISOR}, {.token = 1, .attempt = 1}},
        {{1, MU__WORKER}, {.token = 1, .attempt = 1}},
        {{0, MU__CLIENT}, {.token = 1, .attempt = 1}},
        {{1, MU__SUPERVISOR}, {.token = 0, .attempt = 1}},
        {{1, MU__SUPERVISOR}, {.token = 2, .attempt = 1}},
        {{1, MU__SUPERVISOR}, {.token = 1 << 20, .attempt = 1}},
        {{1, MU__SUPERVISOR}, {.token = UINT64_MAX, .attempt = 1}},
        {{1, MU__SUPERVISOR}, {.token = (UINT64_C(1) << 32) + 1, .attempt = 1}},
    };
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    const struct mu__resolved good = {.token = 1, .attempt = 1, .code = MU_EABORTED};
    struct cluster_closure *closure;

    set_work_ms(cluster, 1000);
    open_at(client);
    closure = cluster_schedule(client, "square");
    run_for(cluster, 50);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        forge(client, rows[i].from, MU__CLIENT, MU__RESOLVED, &rows[i].answer,
              sizeof rows[i].answer);
    run_for(cluster, 50);
    assert_int_equal(mu_remote_value_state(closure->future), MU_REMOTE_NOT_READY);
    expect_counts(client, 0, 0, 0);

    /* The right one is taken, and the supervisor's own, later, is not. */
    forge(client, (mu__pid){1, MU__SUPERVISOR}, MU__CLIENT, MU__RESOLVED, &good,
          sizeof good);
    run_for(cluster, 3000);
    expect_counts(client, 0, 1, 0);
    assert_int_equal(join(client), -MU_EABORTED);
    end(cluster);
}

/* The place of a closure that is resolved is the next one's: so a client's memory follows
 * what is outstanding. Places count from 1 in what the client says and hears. */
TEST(test_places)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    const struct mu__resolved first = {.token = 1, .attempt = 1, .code = MU_EABORTED};
    struct cluster_closure *closure;

    open_at(client);
    for (int i = 0; i < 50; i++) {
        (void)cluster_schedule(client, "square");
        assert_int_equal(join(client), 0);
    }
    closure = cluster_schedule(client, "square");
    run_for(cluster, 5);
    forge(client, (mu__pid){1, MU__SUPERVISOR}, MU__CLIENT, MU__RESOLVED, &first,
          sizeof first);
    run_for(cluster, 1);
    assert_int_equal(mu_remote_value_state(closure->future), MU_REMOTE_READY);
    assert_int_equal(join(client), -MU_EABORTED);
    end(cluster);
}

/* A worker that offers itself twice is one worker; nobody else can offer himself. */
TEST(test_forged_offers)
{
    const struct mu__register offer = {.threads = 4};
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1);
    struct cluster_closure *closures[8];

    for (uint32_t node = 0; node < 5; node++)
        forge(cluster->chief, (mu__pid){node, MU__WORKER}, MU__SUPERVISOR, MU__REGISTER,
              &offer, sizeof offer);
    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 8, closures);
    run_for(cluster, 50);
    assert_int_equal(status_number(cluster->chief, "closures", "in_flight"), 4);
    assert_int_equal(status_number(cluster->chief, "closures", "queued"), 4);
    assert_int_equal(join(cluster->chief), 0);
    end(cluster);
}

TEST_PROGRAM()
