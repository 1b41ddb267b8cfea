/* Named closures over a restart of the chief. */
#include "tests/support/journal_story.h"

static bool fragile_fails;

static int run_fragile(mu_run *run, void *user)
{
    note_run(user, "fragile", number_of(run));
    if (fragile_fails)
        return mu_run_fail(run, -MU_EINVALID, "not yet");
    mu_run_return(run, mu_value_int(7 * number_of(run)));
    return 0;
}

/* The sum of the numbers in a list. */
static int sums;

static int run_sum(mu_run *run, void *user)
{
    const mu_value *args = mu_run_args(run);
    int64_t sum = 0;
    int64_t number;

    (void)user;
    sums++;
    for (size_t i = 0; i < mu_value_count(args); i++)
        if (mu_value_get_int(mu_value_at(args, i), &number) == 0)
            sum += number;
    mu_run_return(run, mu_value_int(sum));
    return 0;
}

static const struct cluster_function own[] = {{"fragile", run_fragile, 0},
                                              {"total", run_sum, 0}};

#define OWN .functions = own, .functions_count = 2

/* Three closures of 100 ms, one after the other: a has finished and b runs when the chief
 * dies at 350. Nobody schedules them again: b and c are run all the same, a is not. The
 * program, which comes back later, gets all three without another run. */
TEST(test_goes_on)
{
    static const char *const names[] = {"a", "b", "c"};
    struct sim_storage *storage;
    struct cluster *cluster =
        BEGIN_WITH(&storage, .workers = 1, .window = 1, .clients = 1);
    struct cluster_closure *closures[3];

    set_work_ms(cluster, 100);
    open_at(cluster->clients[0]);
    for (int i = 0; i < 3; i++)
        closures[i] = named(cluster->clients[0], names[i], i);
    run_until(cluster, 350);
    expect_squares(closures, 1);
    restart_chief(cluster);
    run_for(cluster, 1000);
    assert_int_equal(error_of(closures[1])->kind, MU_ERROR_CHIEF);
    assert_int_equal(cluster->runs[0], 1);
    assert_int_equal(cluster->runs[1], 2);
    assert_int_equal(cluster->runs[2], 1);
    assert_int_equal(join(cluster->clients[0]), -MU_EUNAVAILABLE);
    (void)sim_trace(cluster->sim);
    for (int i = 0; i < 3; i++)
        closures[i] = named(cluster->clients[0], names[i], i);
    assert_int_equal(joined_after(cluster->clients[0], sim_now_ms(cluster->sim)), 20);
    expect_squares(closures, 3);
    expect_trace(cluster, "");
    assert_int_equal(status_number(cluster->chief, "closures", "queued"), 0);
    end_with(cluster, storage);
}

/* The program comes back while one of its closures runs: that run is the one. */
TEST(test_joined)
{
    struct sim_storage *storage;
    struct cluster *cluster =
        BEGIN_WITH(&storage, .workers = 1, .window = 1, .clients = 1);
    struct cluster_closure *closure;

    open_at(cluster->clients[0]);
    set_work_ms(cluster, 1000);
    (void)named(cluster->clients[0], "a", 0);
    run_until(cluster, 200);
    restart_chief(cluster);
    assert_int_equal(join(cluster->clients[0]), -MU_EUNAVAILABLE);
    closure = named(cluster->clients[0], "a", 0);
    run_for(cluster, 100);
    expect_explained(closure, "sent",
                     "for a thread of /job:worker/task:0: it was sent "
                     "there 570 ms ago, and is not known to have begun");
    assert_int_equal(join(cluster->clients[0]), 0);
    expect_squares(&closure, 1);

    /* The former chief's run, and this chief's. */
    assert_int_equal(cluster->runs[0], 2);
    end_with(cluster, storage);
}

/* Two programs schedule one name: it runs once, both hear, and the counts are right all
 * the time. The one that was first may go. */
TEST(test_two_clients)
{
    struct sim_storage *storage;
    struct cluster *cluster =
        BEGIN_WITH(&storage, .workers = 1, .window = 1, .clients = 3);
    struct cluster_closure *closures[3];

    set_work_ms(cluster, 1000);
    for (int i = 0; i < 3; i++) {
        open_at(cluster->clients[i]);
        closures[i] = named(cluster->clients[i], "a", 0);
    }
    run_until(cluster, 300);
    assert_int_equal(status_number(cluster->chief, "closures", "in_flight"), 1);
    assert_int_equal(status_number(cluster->chief, "closures", "scheduled"), 1);
    sim_crash(cluster->clients[0]->node);
    assert_int_equal(join(cluster->clients[1]), 0);
    assert_int_equal(join(cluster->clients[2]), 0);
    expect_squares(closures + 1, 2);
    assert_int_equal(cluster->runs[0], 1);
    (void)status_number(cluster->chief, "closures", "finished");
    end_with(cluster, storage);
}

/* What failed has not happened: its name may be scheduled anew, before and after a
 * restart. */
TEST(test_failed)
{
    struct sim_storage *storage;
    struct cluster *cluster = BEGIN_WITH(&storage, .workers = 1, .clients = 1, OWN);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closure;

    open_at(client);
    for (int i = 0; i < 2; i++) {
        fragile_fails = true;
        closure = call_with(client, "fragile", 3, ASK(.name = "f"));
        assert_int_equal(join(client), -MU_EINVALID);
        assert_int_equal(error_of(closure)->kind, MU_ERROR_FUNCTION);
        restart_chief(cluster);
    }
    fragile_fails = false;
    closure = call_with(client, "fragile", 3, ASK(.name = "f"));
    assert_int_equal(join(client), 0);
    assert_int_equal(cluster_result(closure), 21);

    /* The name is this function's. */
    closure = cluster_schedule_with(client, "square", ASK(.name = "f"));
    assert_int_equal(join(client), -MU_EEXISTS);
    assert_string_equal(error_of(closure)->message,
                        "the journal has a closure of that name with another function");
    assert_int_equal(cluster->runs[closure->key], 0);
    closure->refused = true;
    closure->key = -1;
    end_with(cluster, storage);
}

/* Forgotten names run anew; those under way stay. */
TEST(test_forget)
{
    struct sim_storage *storage;
    struct cluster *cluster = BEGIN_WITH(&storage, .workers = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *running;
    struct cluster_closure *closure;
    size_t full;

    open_at(client);
    (void)named(client, "a", 0);
    assert_int_equal(join(client), 0);
    set_work_ms(cluster, 1000);
    running = named(client, "b", 1);
    run_for(cluster, 100);
    full = storage->flushed;
    assert_int_equal(cluster_wait(cluster_forget(client, 1000)), 0);
    assert_true(storage->flushed < full);
    closure = named(client, "b", 1);
    assert_int_equal(join(client), 0);
    expect_squares(&running, 1);
    expect_squares(&closure, 1);
    assert_int_equal(cluster->runs[1], 1);
    set_work_ms(cluster, 10);
    closure = named(client, "a", 0);
    assert_int_equal(join(client), 0);
    assert_int_equal(cluster->runs[0], 2);
    end_with(cluster, storage);
}

/* The last bytes were not written before the process died. */
static void cut_off(struct sim_storage *storage, size_t bytes)
{
    size_t size = storage->size - bytes;
    uint8_t *content = malloc(size);

    assert_non_null(content);
    memcpy(content, storage->content, size);
    sim_storage_set(storage, content, size);
    free(content);
}

/* The last record was not written to its end: all before it counts. */
TEST(test_torn_end)
{
    struct sim_storage *storage;
    struct cluster *cluster = BEGIN_WITH(&storage, .workers = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closures[2];

    open_at(client);
    closures[0] = named(client, "a", 0);
    assert_int_equal(join(client), 0);
    closures[1] = named(client, "b", 1);
    assert_int_equal(join(client), 0);
    sim_crash(cluster->chief->node);
    run_for(cluster, 100);
    cut_off(storage, 3);
    (void)sim_trace(cluster->sim);
    cluster_start(cluster->chief);
    run_for(cluster, 1);
    assert_non_null(strstr(sim_trace(cluster->sim),
                           "supervisor: the journal ended in the middle of a record: "));
    run_for(cluster, 1000);

    /* That b had finished was cut off. */
    assert_int_equal(cluster->runs[0], 1);
    assert_int_equal(cluster->runs[1], 2);
    (void)join(client);
    closures[0] = named(client, "a", 0);
    closures[1] = named(client, "b", 1);
    assert_int_equal(join(client), 0);
    expect_squares(closures, 2);
    assert_int_equal(cluster->runs[0] + cluster->runs[1], 3);
    end_with(cluster, storage);
}

/* The storage is full: every program is told so, once, and all goes on. */
TEST(test_full_storage)
{
    struct sim_storage *storage;
    struct cluster *cluster = BEGIN_WITH(&storage, .workers = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closures[4];
    mu_error error;

    open_at(client);
    sim_storage_fail(storage, SIM_STORAGE_FLUSH, 100, -MU_EEXHAUSTED);
    closures[0] = named(client, "a", 0);
    run_for(cluster, 200);
    expect_squares(closures, 1);
    error = raised(client);
    assert_int_equal(error.code, -MU_EEXHAUSTED);
    assert_int_equal(error.kind, MU_ERROR_CHIEF);
    assert_string_equal(error.task, "/job:chief/task:0");
    assert_int_equal(error.closure, 0);
    assert_non_null(strstr(error.message, "the journal cannot be written: "));
    closures[1] = named(client, "b", 1);
    closures[2] = cluster_schedule(client, "square");
    closures[3] = named(client, "a", 0);
    assert_int_equal(join(client), 0);
    expect_squares(closures, 4);
    end_with(cluster, storage);
}

/* A disk that is full for a while, with closures before, during and after: each finishes,
 * nothing is cancelled, the program hears of it once, and when there is room again the
 * journal has everything. */
TEST(test_full_disk_stops_no_closure)
{
    enum { CLOSURES = 300 };
    static char names[CLOSURES][16];
    struct sim_storage *storage;
    struct cluster *cluster = BEGIN_WITH(&storage, .workers = 2, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closures[CLOSURES];
    uint32_t runs = 0;

    open_at(client);
    sim_storage_limit(storage, storage->size + 2000);
    for (int i = 0; i < CLOSURES; i++) {
        (void)snprintf(names[i], sizeof names[i], "c%d", i);
        closures[i] = named(client, names[i], i % 4);
        if (i % 50 == 49)
            run_for(cluster, 20);
    }
    assert_int_equal(join(client), -MU_EEXHAUSTED);
    expect_squares(closures, CLOSURES);
    (void)sim_trace(cluster->sim);
    assert_int_equal(join(client), 0);
    sim_storage_limit(storage, 0);
    run_for(cluster, 1000);
    (void)named(client, "last", 1);
    assert_int_equal(join(client), 0);
    assert_non_null(strstr(sim_trace(cluster->sim), "the journal is complete again"));
    for (int i = 0; i < 4; i++)
        runs += cluster->runs[i];
    assert_int_equal(runs, CLOSURES + 1);
    restart_chief(cluster);
    run_for(cluster, 1000);
    (void)join(client);
    for (int i = 0; i < CLOSURES; i++)
        (void)named(client, names[i], i % 4);
    assert_int_equal(join(client), 0);
    for (int i = 0; i < 4; i++)
        runs -= cluster->runs[i];
    assert_int_equal(runs, 0);
    end_with(cluster, storage);
}

/* Damage in the middle: the chief does not start, and nothing of the file changes. */
TEST(test_damaged_journal)
{
    struct sim_storage *storage;
    struct cluster *cluster = BEGIN_WITH(&storage, .workers = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    static uint8_t whole[1 << 14];
    static uint8_t damaged[1 << 14];
    size_t size;

    open_at(client);
    (void)named(client, "a", 0);
    (void)named(client, "b", 1);
    assert_int_equal(join(client), 0);
    sim_crash(cluster->chief->node);
    run_for(cluster, 100);
    size = storage->size;
    assert_true(size > 12 && size < sizeof whole);
    memcpy(whole, storage->content, size);
    (void)sim_storage_damage(storage, 12);
    memcpy(damaged, storage->content, size);
    (void)sim_trace(cluster->sim);
    assert_int_equal(sim_restart(cluster->chief->node), -MU_EDATALOSS);
    assert_non_null(strstr(sim_trace(cluster->sim), " is damaged: "));
    assert_int_equal(storage->size, size);
    assert_memory_equal(storage->content, damaged, size);
    sim_storage_set(storage, whole, size);
    restart_chief(cluster);
    run_for(cluster, 1000);
    assert_int_equal(cluster->runs[0] + cluster->runs[1], 2);
    cluster_free(cluster); /* that a chief did not start stands among what broke */
    sim_storage_free(storage);
}

/* A result that would stay on its worker is in the journal instead. */
TEST(test_pinned)
{
    struct sim_storage *storage;
    struct cluster *cluster = BEGIN_WITH(&storage, .workers = 1, .clients = 1, OWN);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closure;

    fragile_fails = false;
    open_at(client);
    for (int i = 0; i < 3; i++) {
        closure = call_with(client, "fragile", 3,
                            ASK(.name = "f", .flags = MU_CLOSURE_PIN_RESULT));
        assert_int_equal(cluster_wait(cluster_fetch(closure, -1)), 0);
        assert_int_equal(cluster_result(closure), 21);
        if (i == 1)
            restart_chief(cluster);
    }
    assert_int_equal(join(client), 0);
    end_with(cluster, storage);
}

/* A closure that uses what workers keep cannot be run by a next chief, which knows
 * nothing of that: its program schedules it again. When it has finished it has finished,
 * unless the last word of that was lost. */
TEST(test_inputs)
{
    struct sim_storage *storage;
    struct cluster *cluster = BEGIN_WITH(&storage, .workers = 1, .clients = 1, OWN);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closure = NULL;

    fragile_fails = false;
    open_at(client);
    sums = 0;
    for (int i = 0; i < 4; i++) {
        struct cluster_closure *input =
            call_with(client, "fragile", 2, ASK(.flags = MU_CLOSURE_PIN_RESULT));
        mu_value *list = mu_value_list();

        run_for(cluster, 100);
        (void)mu_value_append(list, cluster_reference(input));
        (void)mu_value_append(list, mu_value_int(1));
        set_work_ms(cluster, i == 0 ? 1000 : 10);
        closure = cluster_schedule_args(client, "total", list, ASK(.name = "s"));
        run_for(cluster, 100);
        set_work_ms(cluster, 10);
        if (i == 0) {
            restart_chief(cluster);
            run_for(cluster, 2000);
            assert_int_equal(error_of(closure)->kind, MU_ERROR_CHIEF);
            assert_int_equal(join(client), -MU_EUNAVAILABLE);
        } else {
            assert_int_equal(join(client), 0);
            assert_int_equal(cluster_result(closure), 15);
            sim_crash(cluster->chief->node);
            if (i == 1)
                cut_off(storage, 3);
            cluster_start(cluster->chief);
            run_for(cluster, 500);
        }
        assert_int_equal(sums, i < 3 ? i + 1 : 3);
    }
    end_with(cluster, storage);
}

/* A named closure that writes once: the run of the former chief ends under the next one,
 * which runs it, too. */
TEST(test_effect)
{
    struct sim_storage *storage;
    struct cluster *cluster = BEGIN_WITH(&storage, .workers = 1, .servers = 1,
                                         .clients = 1, .effects_add = mu__effects_add);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closure;
    const int64_t key = 0;

    open_at(client);
    assert_int_equal(cluster_wait(cluster_counter_open(client, 4, 10000)), 0);
    set_work_ms(cluster, 1000);
    (void)cluster_write(client,
                        ASK(.name = "w", .flags = MU_CLOSURE_EFFECT_ONCE, .key = &key));
    run_for(cluster, 300);
    restart_chief(cluster);
    run_for(cluster, 3000);
    assert_int_equal(join(client), -MU_EUNAVAILABLE);
    closure = cluster_write(client, ASK(.name = "w", .flags = MU_CLOSURE_EFFECT_ONCE,
                                        .key = &key));
    assert_int_equal(join(client), 0);
    expect_squares(&closure, 1);
    assert_int_equal(cluster->runs[0], 2);
    assert_int_equal(cluster_wait(cluster_counter_read(client, 10000)), 0);
    assert_int_equal(cluster->counter.items[0], 1);
    end_with(cluster, storage);
}

static void fail_writes(struct sim_storage *storage, unsigned times)
{
    sim_storage_fail(storage, SIM_STORAGE_APPEND, times, -MU_EEXHAUSTED);
    sim_storage_fail(storage, SIM_STORAGE_FLUSH, times, -MU_EEXHAUSTED);
    sim_storage_fail(storage, SIM_STORAGE_REPLACE, times, -MU_EEXHAUSTED);
}

/* The journal is full when a closure that writes once is cancelled, so the next chief
 * runs it: servers must not take its effect for one that has had its time. */
TEST(test_effect_whose_end_was_not_written)
{
    struct sim_storage *storage;
    struct cluster *cluster =
        BEGIN_WITH(&storage, .workers = 1, .servers = 1, .window = 1, .clients = 1,
                   .effects_add = mu__effects_add);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closure;
    int64_t key = 1;

    open_at(client);
    assert_int_equal(cluster_wait(cluster_counter_open(client, 4, 10000)), 0);
    set_work_ms(cluster, 300);
    (void)cluster_write(client, ASK(.flags = MU_CLOSURE_EFFECT_ONCE, .key = &key));
    key = 0;
    closure = cluster_write(client, ASK(.name = "w", .flags = MU_CLOSURE_EFFECT_ONCE,
                                        .key = &key));
    run_for(cluster, 100);
    fail_writes(storage, 1 << 20);
    cluster_cancel(closure);
    (void)join(client);
    assert_int_equal(cluster->runs[0], 0);
    for (key = 2; key < 4; key++) {
        (void)cluster_write(client, ASK(.flags = MU_CLOSURE_EFFECT_ONCE, .key = &key));
        (void)join(client);
    }
    restart_chief(cluster);
    run_for(cluster, 3000);
    (void)join(client);
    assert_int_equal(cluster->runs[0], 1);
    assert_int_equal(cluster_wait(cluster_counter_read(client, 10000)), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(cluster->counter.items[i], 1);
    end_with(cluster, storage);
}

/* So many numbers of effects are in the journal at a time: the next ones need it. */
static void use_up_numbers(struct cluster *cluster)
{
    enum { NUMBERS = (1 << 16) - 1, BATCH = 4369 };
    struct cluster_task *client = cluster->clients[0];
    int64_t key = 0;

    for (int i = 0; i < NUMBERS / BATCH; i++) {
        for (int j = 0; j < BATCH; j++)
            (void)cluster_schedule_with(
                client, "square", ASK(.flags = MU_CLOSURE_EFFECT_ONCE, .key = &key));
        assert_int_equal(join(client), 0);
    }
}

/* The disk is full, and a closure whose effects count once needs a number that is not in
 * the journal: it is refused if it has a name, and else waits for room. Both say which
 * file, and what the system says of it. */
TEST(test_refusal_of_a_full_journal_has_its_words)
{
    struct sim_storage *storage;
    struct cluster *cluster = BEGIN_WITH(&storage, .workers = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closure;
    const char *waits_for = "";
    struct cluster_call *call;
    int64_t key = 1;
    size_t size;

    open_at(client);
    use_up_numbers(cluster);
    sim_storage_limit(storage, storage->size);
    closure = cluster_schedule_with(
        client, "square", ASK(.name = "w", .flags = MU_CLOSURE_EFFECT_ONCE, .key = &key));
    run_for(cluster, 100);
    assert_int_equal(closure->future->error->code, -MU_EEXHAUSTED);
    assert_string_equal(closure->future->error->message,
                        "the journal cannot be written, so the closure's effects could "
                        "count twice: journal: cannot write it: no space left");
    assert_string_equal(raised(client).message, closure->future->error->message);
    assert_string_equal(raised(client).message,
                        "the journal cannot be written: journal: cannot write it: no "
                        "space left; after a restart closures may run again");
    closure = cluster_schedule_with(client, "square",
                                    ASK(.flags = MU_CLOSURE_EFFECT_ONCE, .key = &key));
    run_for(cluster, 100);
    call = cluster_explain(client, closure, NULL);
    assert_int_equal(cluster_wait(call), 0);
    assert_int_equal(
        mu_value_get_string(mu_value_find(call->of.client.status, "waits_for"),
                            &waits_for, &size),
        0);
    assert_string_equal(waits_for, "for the journal, which cannot be written: journal: "
                                   "cannot write it: no space left");
    mu_value_free(call->of.client.status);
    sim_storage_limit(storage, 0);
    assert_int_equal(join(client), 0);
    end_with(cluster, storage);
}

TEST_PROGRAM()
