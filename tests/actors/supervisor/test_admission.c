/* The chief's room and its clients: who may send how much, who waits where. */
#include "actors/supervisor/internal.h"
#include "tests/support/story.h"

enum { MANY = 1000 };

static struct cluster_closure **get_closures(size_t count)
{
    struct cluster_closure **closures = calloc(count, sizeof *closures);

    assert_non_null(closures);
    return closures;
}

static int64_t at_chief(struct cluster *cluster)
{
    return status_number(cluster->chief, "closures", "queued") +
           status_number(cluster->chief, "closures", "in_flight");
}

/* Three clients with a thousand closures each, and a chief that takes a hundred: all of
 * them finish, and while all have some to do each gets a third. */
TEST(test_three_clients_of_a_small_chief)
{
    struct cluster *cluster =
        BEGIN(.workers = 4, .clients = 3, .queue_max = 100, .window = 8);
    struct cluster_closure **closures[3];
    uint64_t finished[3];

    for (int i = 0; i < 3; i++) {
        closures[i] = get_closures(MANY);
        open_at(cluster->clients[i]);
        schedule(cluster->clients[i], "square", MANY, closures[i]);
    }
    while (cluster_count(&cluster->clients[0]->session->shared.finished) < MANY / 2)
        run_for(cluster, 50);
    for (int i = 0; i < 3; i++)
        finished[i] = cluster_count(&cluster->clients[i]->session->shared.finished);
    for (int i = 1; i < 3; i++)
        assert_in_range(finished[i], MANY / 2 - 150, MANY / 2 + 150);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(join(cluster->clients[i]), 0);
        expect_squares(closures[i], MANY);
        expect_counts(cluster->clients[i], MANY, 0, 0);
        free(closures[i]);
    }
    end(cluster);
}

/* Two places for the chief and three clients, all with much to do: they take turns. */
TEST(test_fewer_places_than_clients)
{
    struct cluster *cluster = BEGIN(.workers = 2, .clients = 3, .queue_max = 2);
    struct cluster_task *tasks[4] = {cluster->chief, cluster->clients[0],
                                     cluster->clients[1], cluster->clients[2]};
    struct cluster_closure *closures[4][100];

    for (int i = 0; i < 4; i++) {
        open_at(tasks[i]);
        schedule(tasks[i], "square", 100, closures[i]);
    }
    run_for(cluster, 1500);
    for (int i = 0; i < 4; i++)
        assert_in_range(cluster_count(&tasks[i]->session->shared.finished), 5, 95);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(join(tasks[i]), 0);
        expect_squares(closures[i], 100);
    }
    end(cluster);
}

/* What an idle client was allowed goes to one that has need of it, but for an eighth of
 * its part; when it has work again it gets its part back. */
TEST(test_idle_client_lends_its_part)
{
    struct cluster *cluster =
        BEGIN(.workers = 1, .window = 1, .clients = 2, .queue_max = 64);
    struct cluster_closure *closures[2][100];

    set_work_ms(cluster, 200);
    open_at(cluster->clients[0]);
    open_at(cluster->clients[1]);
    run_for(cluster, 50);
    schedule(cluster->clients[0], "square", 100, closures[0]);
    run_for(cluster, 200);
    assert_in_range(cluster_sent(cluster->clients[0]), 55, 60);
    schedule(cluster->clients[1], "square", 100, closures[1]);
    run_for(cluster, 10000);
    assert_in_range(cluster_sent(cluster->clients[1]), 30, 34);
    assert_in_range(cluster_sent(cluster->clients[0]), 30, 34);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(join(cluster->clients[i]), 0);
        expect_squares(closures[i], 100);
    }
    end(cluster);
}

/* A client that is lost leaves its room to the others, although what it had in flight
 * ends only later. */
TEST(test_lost_client_gives_its_room_back)
{
    struct cluster *cluster =
        BEGIN(.workers = 1, .window = 1, .clients = 2, .queue_max = 8);
    struct cluster_closure *closures[2][20];

    set_work_ms(cluster, 100);
    for (int i = 0; i < 2; i++) {
        open_at(cluster->clients[i]);
        schedule(cluster->clients[i], "square", 20, closures[i]);
    }
    run_for(cluster, 700);
    assert_in_range(cluster_sent(cluster->clients[1]), 3, 5);
    sim_crash(cluster->clients[0]->node);
    run_for(cluster, 1500);
    assert_int_equal(cluster_sent(cluster->clients[1]), 8);
    assert_int_equal(join(cluster->clients[1]), 0);
    expect_squares(closures[1], 20);
    end(cluster);
}

/* The next chief begins with all of its room: nothing of the former one counts. */
TEST(test_restarted_chief_begins_anew)
{
    struct cluster *cluster =
        BEGIN(.workers = 1, .window = 1, .clients = 1, .queue_max = 4);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closures[12];

    set_work_ms(cluster, 50);
    open_at(client);
    schedule(client, "square", 12, closures);
    run_for(cluster, 100);
    assert_int_equal(cluster_sent(client), 4);
    assert_int_equal(sim_restart(cluster->chief->node), 0);
    assert_int_equal(join(client), -MU_EUNAVAILABLE);
    client->session->troubled = true;
    for (int i = 0; i < 12; i++)
        assert_true(is_resolved(closures[i]));
    assert_true(cluster_settle(cluster));
    schedule(client, "square", 12, closures);
    run_for(cluster, 60);
    assert_int_equal(cluster_sent(client), 4);
    assert_int_equal(join(client), 0);
    expect_squares(closures, 12);
    end(cluster);
}

/* A coordinator that is closed and opened again: what the chief has said to the former
 * one is on its way still, and counts no more. */
TEST(test_opened_again)
{
    struct cluster *cluster =
        BEGIN(.workers = 1, .window = 1, .clients = 2, .queue_max = 8);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *others[20];
    struct cluster_closure *closures[4];

    set_work_ms(cluster, 50);
    open_at(cluster->clients[1]);
    run_for(cluster, 30);
    schedule(cluster->clients[1], "square", 20, others);
    open_at(client);
    for (int i = 0; i < 20; i++) {
        run_for(cluster, 7);
        assert_int_equal(cluster_wait(cluster_ask(client, MU__CLIENT_CLOSE, -1)), 0);
        client->session->over = true;
        open_at(client);
    }
    schedule(client, "square", 4, closures);
    assert_int_equal(join(client), 0);
    assert_int_equal(join(cluster->clients[1]), 0);
    expect_squares(closures, 4);
    expect_squares(others, 20);
    end(cluster);
}

/* ---- One that waits at its client ---- */

TEST(test_cancelled_while_it_waits)
{
    struct cluster *cluster =
        BEGIN(.workers = 1, .window = 1, .clients = 1, .queue_max = 2);
    struct cluster_closure *closures[4];

    set_work_ms(cluster, 1000);
    open_at(cluster->clients[0]);
    schedule(cluster->clients[0], "square", 4, closures);
    run_for(cluster, 100);
    cluster_cancel(closures[2]);
    run_for(cluster, 1);
    assert_int_equal(error_of(closures[2])->code, -MU_ECANCELLED);
    assert_false(is_resolved(closures[0]));
    assert_int_equal(join(cluster->clients[0]), 0);
    expect_squares(closures, 2);
    expect_squares(closures + 3, 1);
    assert_int_equal(cluster->runs[closures[2]->key], 0);
    end(cluster);
}

/* A deadline counts from scheduling: for one that never had room, and for one that had
 * little time left when it got some. */
TEST(test_deadline_while_it_waits)
{
    struct cluster *cluster =
        BEGIN(.workers = 1, .window = 1, .clients = 1, .queue_max = 1);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *first;
    struct cluster_closure *waits;
    struct cluster_closure *late;

    set_work_ms(cluster, 1000);
    open_at(client);
    run_for(cluster, 50);
    first = cluster_schedule(client, "square");
    late = cluster_schedule_with(client, "square", ASK(.deadline_ms = 1500));
    waits = cluster_schedule_with(client, "square", ASK(.deadline_ms = 300));
    run_for(cluster, 299);
    assert_false(is_resolved(waits));
    run_for(cluster, 2);
    assert_int_equal(error_of(waits)->code, -MU_EDEADLINE);
    assert_int_equal(error_of(waits)->kind, MU_ERROR_LIMIT);
    assert_string_equal(
        error_of(waits)->message,
        "the closure waited until its deadline of 300 ms at its client for room at the "
        "chief: 1 of the 1 that may be there are this client's part (of 1), and all in "
        "use");
    run_for(cluster, 1180);
    assert_false(is_resolved(late));
    run_for(cluster, 40);
    assert_int_equal(error_of(late)->code, -MU_EDEADLINE);
    assert_int_equal(join(client), -MU_EDEADLINE);
    assert_int_equal(cluster_result(first), cluster_square(first->key));
    end(cluster);
}

/* The most urgent of those that wait goes first, in order among equals. */
TEST(test_most_urgent_gets_room_first)
{
    struct cluster *cluster =
        BEGIN(.workers = 1, .window = 1, .clients = 1, .queue_max = 1);
    struct cluster_task *client = cluster->clients[0];

    open_at(client);
    run_for(cluster, 50);
    (void)cluster_schedule(client, "square");
    (void)cluster_schedule_with(client, "square", ASK(.priority = 8));
    (void)cluster_schedule(client, "square");
    (void)cluster_schedule(client, "square");
    (void)cluster_schedule_with(client, "square", ASK(.priority = 1));
    assert_int_equal(join(client), 0);
    expect_trace(cluster, "[  240] sim note: worker/0 runs square 0\n"
                          "[  290] sim note: worker/0 runs square 4\n"
                          "[  340] sim note: worker/0 runs square 2\n"
                          "[  390] sim note: worker/0 runs square 3\n"
                          "[  440] sim note: worker/0 runs square 1\n");
    end(cluster);
}

TEST(test_explained_while_it_waits)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 1, .clients = 2,
                                    .queue_max = 4, .node.queue_bytes_max = 1000);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closures[3];
    struct cluster_closure *large;
    void *data = calloc(1, 900);

    assert_non_null(data);
    set_work_ms(cluster, 1000);
    open_at(client);
    open_at(cluster->clients[1]);
    run_for(cluster, 50);
    schedule(client, "square", 3, closures);
    schedule(cluster->clients[1], "square", 3, closures);
    run_for(cluster, 200);
    expect_explained(
        closures[2], "waiting",
        "at its client for room at the chief: 2 of the 4 that may be there are this "
        "client's part (of 2), and all in use");
    assert_int_equal(join(client), 0);
    assert_int_equal(join(cluster->clients[1]), 0);
    closures[0] = cluster_schedule_value(client, "weigh", mu_value_bytes(data, 400));
    large = cluster_schedule_value(client, "weigh", mu_value_bytes(data, 900));
    run_for(cluster, 100);
    expect_explained(
        large, "waiting",
        "at its client for room at the chief: it has 903 bytes of arguments, and 403 of "
        "1000 bytes are in use, this client's part of the chief's 1000");
    assert_int_equal(join(client), 0);
    assert_int_equal(cluster_result(large), 900);
    free(data);
    end(cluster);
}

/* An error of one closure cancels those that wait, too. */
TEST(test_error_cancels_those_that_wait)
{
    struct cluster *cluster =
        BEGIN(.workers = 1, .window = 1, .clients = 1, .queue_max = 2);
    struct cluster_closure *closures[6];

    open_at(cluster->clients[0]);
    closures[0] = cluster_schedule(cluster->clients[0], "fail");
    schedule(cluster->clients[0], "square", 5, closures + 1);
    assert_int_equal(join(cluster->clients[0]), -MU_EINVALID);
    for (int i = 2; i < 6; i++)
        assert_int_equal(mu_remote_value_state(closures[i]->future), MU_REMOTE_ABORTED);
    schedule(cluster->clients[0], "square", 5, closures);
    assert_int_equal(join(cluster->clients[0]), 0);
    expect_squares(closures, 5);
    end(cluster);
}

/* ---- Bytes ---- */

/* One client has closures that need nearly all of the chief's bytes, another one a stream
 * of small ones: both get on. */
TEST(test_large_among_small)
{
    struct cluster *cluster =
        BEGIN(.workers = 2, .clients = 2, .node.queue_bytes_max = 100000);
    struct cluster_closure *large[5];
    struct cluster_closure *small[400];
    void *data = calloc(1, 90000);

    assert_non_null(data);
    set_work_ms(cluster, 20);
    open_at(cluster->clients[0]);
    open_at(cluster->clients[1]);
    for (int i = 0; i < 400; i++)
        small[i] = cluster_schedule_value(cluster->clients[1], "weigh",
                                          mu_value_bytes(data, 10000));
    run_for(cluster, 100);
    for (int i = 0; i < 5; i++)
        large[i] = cluster_schedule_value(cluster->clients[0], "weigh",
                                          mu_value_bytes(data, 90000));
    assert_int_equal(join(cluster->clients[0]), 0);
    assert_in_range(cluster_count(&cluster->clients[1]->session->shared.finished), 20,
                    350);
    assert_int_equal(join(cluster->clients[1]), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(cluster_result(large[i]), 90000);
    for (int i = 0; i < 400; i++)
        assert_int_equal(cluster_result(small[i]), 10000);
    free(data);
    end(cluster);
}

/* One place, and each closure needs all of the bytes: who has the one must get the
 * other, too. */
TEST(test_large_with_one_place)
{
    struct cluster *cluster =
        BEGIN(.workers = 1, .clients = 2, .queue_max = 1, .node.queue_bytes_max = 1000);
    struct cluster_closure *closures[2][5];
    void *data = calloc(1, 2000);

    assert_non_null(data);
    for (int i = 0; i < 2; i++)
        open_at(cluster->clients[i]);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 5; j++)
            closures[i][j] = cluster_schedule_value(cluster->clients[i], "weigh",
                                                    mu_value_bytes(data, 2000));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(join(cluster->clients[i]), 0);
        for (int j = 0; j < 5; j++)
            assert_int_equal(cluster_result(closures[i][j]), 2000);
    }
    assert_true(sim_now_ms(cluster->sim) < 10000);
    free(data);
    end(cluster);
}

/* ---- Those that do not keep to it ---- */

static struct supervisor *supervisor_of(struct cluster *cluster)
{
    return mu__actor_state(cluster->chief->member.kernel, (mu__pid){0, MU__SUPERVISOR});
}

/* As the chief knows it. */
static uint32_t node_of(struct cluster *cluster, const struct cluster_task *task)
{
    const struct supervisor *s = supervisor_of(cluster);

    for (uint32_t i = 0; i < s->nodes.count; i++)
        if (strcmp(s->nodes.items[i].address, task->address) == 0)
            return s->nodes.items[i].node;
    fail_msg("%s is not linked", task->name);
    return 0;
}

static void forge_schedule(struct cluster *cluster, const struct cluster_task *from,
                           uint64_t token)
{
    const struct mu__schedule body = {
        .token = token, .function = mu__view_str("weigh"), .drop_result = true};

    forge(cluster->chief, (mu__pid){node_of(cluster, from), MU__CLIENT}, MU__SUPERVISOR,
          MU__SCHEDULE, &body, sizeof body);
}

/* A node that sends closures without asking for room: they are refused when others have
 * it, and those do not notice. */
TEST(test_who_does_not_ask_harms_nobody)
{
    struct cluster *cluster =
        BEGIN(.workers = 1, .window = 1, .clients = 2, .queue_max = 8);
    struct cluster_closure *closures[20];

    open_at(cluster->clients[0]);
    run_for(cluster, 50);
    schedule(cluster->clients[0], "square", 20, closures);
    for (uint64_t i = 0; i < 100; i++)
        forge_schedule(cluster, cluster->clients[1], i + 1);
    run_for(cluster, 25);
    assert_in_range(at_chief(cluster), 1, 8);
    assert_int_equal(join(cluster->clients[0]), 0);
    expect_squares(closures, 20);
    expect_counts(cluster->clients[0], 20, 0, 0);
    end(cluster);
}

/* A client may take any number for a closure: what the chief keeps follows from how many
 * it has, and they can be cancelled by those numbers all the same. */
TEST(test_tokens_of_any_size)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 1, .clients = 1);
    struct supervisor *s = supervisor_of(cluster);
    struct mu__cancel_closure cancel = {.token = UINT64_MAX - 1};
    const struct supervisor_client *client;

    set_work_ms(cluster, 100);
    forge_schedule(cluster, cluster->clients[0], 1 << 24);
    forge_schedule(cluster, cluster->clients[0], UINT64_MAX);
    forge_schedule(cluster, cluster->clients[0], UINT64_MAX - 1);
    run_for(cluster, 20);
    client = &s->clients.items[s->clients.count - 1];
    assert_int_equal(client->closures, 3);
    assert_int_equal(client->slots_count, 0);
    assert_int_equal(client->tokens.count, 3);
    forge(cluster->chief, client->pid, MU__SUPERVISOR, MU__CANCEL_CLOSURE, &cancel,
          sizeof cancel);
    run_for(cluster, 5);
    assert_int_equal(client->closures, 2);
    run_for(cluster, 500);
    assert_int_equal(client->closures, 0);
    assert_int_equal(client->tokens.count, 0);
    end(cluster);
}

/* ---- Names ---- */

/* A client that schedules a hundred thousand functions which nobody knows keeps none of
 * the others from its own. */
TEST(test_names_of_functions_are_forgotten)
{
    enum { NAMES = 20000, AT_ONCE = 100 };
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1, .window = 64);
    const struct supervisor *s = supervisor_of(cluster);
    struct mu__schedule body = {.drop_result = true};
    struct cluster_closure *closure;
    char name[32];

    set_work_ms(cluster, 0);
    for (unsigned i = 0; i < NAMES; i++) {
        (void)snprintf(name, sizeof name, "function %u", i);
        body.token = i % AT_ONCE + 1;
        body.function = mu__view_str(name);
        forge(cluster->chief,
              (mu__pid){node_of(cluster, cluster->clients[0]), MU__CLIENT},
              MU__SUPERVISOR, MU__SCHEDULE, &body, sizeof body);
        if (i % AT_ONCE == AT_ONCE - 1)
            run_for(cluster, 60);
    }
    run_for(cluster, 1000);
    assert_true(s->functions.used <= MU__NAMES_IDLE_MAX + 1);
    open_at(cluster->chief);
    closure = cluster_schedule(cluster->chief, "square");
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(&closure, 1);
    end(cluster);
}

/* Names of numbers beyond the bound take the place of the reporter's own oldest ones. */
TEST(test_names_of_metrics_are_forgotten)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1);
    static char names[400][24];
    struct cluster_call *call;

    cluster_report(cluster->workers[0], "loss", 0.5, 1);
    run_for(cluster, 20);
    for (int i = 0; i < 400; i++) {
        (void)snprintf(names[i], sizeof names[i], "metric %d", i % 1000);
        cluster_report(cluster->clients[0], names[i], i, 1);
        run_for(cluster, 1);
    }
    run_for(cluster, 20);
    call = cluster_metric(cluster->chief, "loss");
    assert_int_equal(cluster_wait(call), 0);
    assert_true(call->of.metric.number == 0.5);
    assert_int_equal(cluster_wait(cluster_metric(cluster->chief, "metric 399")), 0);
    assert_int_equal(cluster_wait(cluster_metric(cluster->chief, "metric 0")),
                     -MU_ENOTFOUND);
    (void)sim_trace(cluster->sim);
    end(cluster);
}

TEST_PROGRAM()
