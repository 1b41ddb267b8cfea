/* Named closures with functions that were sent by content, over restarts of the chief:
 * per-worker values that are shared, and that the journal keeps. */
#include "actors/coordination/store/journal.h"
#include "actors/coordination/store/journal_scan.h"
#include "actors/ps/variable_store.h"
#include "actors/supervisor/state/sent_bodies.h"
#include "actors/worker/function_run.h"
#include "tests/support/journal_story.h"

enum { ITEMS = 4 };

static unsigned loads; /* of all values, on all workers */

struct loaded {
    int64_t factor;
};

/* What was sent, on this worker. */
static int run_load(mu_run *run, void *user)
{
    struct loaded *loaded = malloc(sizeof *loaded);

    (void)user;
    assert_non_null(loaded);
    loads++;
    loaded->factor = number_of(run);
    mu_run_return_object(run, loaded, free);
    return 0;
}

static int64_t item(mu_run *run, size_t i)
{
    int64_t number = -1;

    (void)mu_value_get_int(mu_value_at(mu_run_args(run), i), &number);
    return number;
}

/* [what was loaded, a number]: their product; adds 1 to the item of that number. */
static int run_apply(mu_run *run, void *user)
{
    struct cluster_task *task = user;
    struct cluster *cluster = task->cluster;
    const struct loaded *loaded = mu_run_object(run, mu_value_at(mu_run_args(run), 0));
    const struct mu__effect write = {
        .operation = MU__WRITE_ADD,
        .partition = mu__partition_of(mu__view_str(CLUSTER_COUNTER), 0),
        .variable = cluster->counter.ids[0],
        .size = ITEMS * sizeof(int64_t),
    };
    int64_t data[ITEMS] = {0};
    int rv = 0;

    if (loaded == NULL)
        return mu_run_fail(run, -MU_EINVALID, "it was not loaded");
    note_run(task, "apply", item(run, 1));
    data[item(run, 1) % ITEMS] = 1;
    if (cluster->counter.ids[0] != 0)
        rv = cluster->options.effects_add(&run->effects, &write, data);
    if (rv == 0)
        mu_run_return(run, mu_value_int(loaded->factor * item(run, 1)));
    return rv;
}

static int run_break(mu_run *run, void *user)
{
    (void)user;
    (void)mu_run_set_error_data(run, "all of it", 9);
    return mu_run_fail(run, -MU_ERANGE, "number %lld is out of range",
                       (long long)number_of(run));
}

static const struct cluster_function own[] = {
    {"load", run_load, 0}, {"apply", run_apply, 0}, {"break", run_break, 0}};

#define OWN .functions = own, .functions_count = 3, .effects_add = mu__effects_add
#define ONCE(closure_name) ASK(.name = closure_name, .flags = MU_CLOSURE_EFFECT_ONCE)

static struct cluster *begin_counting(struct sim_storage **ret_storage, unsigned workers,
                                      unsigned clients)
{
    struct cluster *cluster = BEGIN_WITH(ret_storage, .workers = workers, .servers = 1,
                                         .clients = clients, .window = 1, OWN);

    loads = 0;
    for (unsigned i = 0; i < clients; i++)
        open_at(cluster->clients[i]);
    assert_int_equal(
        cluster_wait(cluster_counter_open(cluster->clients[0], ITEMS, 10000)), 0);
    return cluster;
}

static struct mu__held *sent(struct cluster_task *task, int64_t factor)
{
    struct cluster_call *call =
        cluster_per_worker_shared(task, "load", mu_value_int(factor), 10000);

    assert_int_equal(cluster_wait(call), 0);
    return cluster_per_worker_made(call);
}

static struct cluster_closure *apply(struct cluster_task *task, struct mu__held *body,
                                     int64_t number, const struct cluster_ask *ask)
{
    mu_value *list = mu_value_list();

    (void)mu_value_append(list, mu__reference_to(body));
    (void)mu_value_append(list, mu_value_int(number));
    return cluster_schedule_args(task, "apply", list, ask);
}

static void expect_counter(struct cluster *cluster, const int64_t wanted[ITEMS])
{
    assert_int_equal(cluster_wait(cluster_counter_read(cluster->clients[0], 10000)), 0);
    for (int i = 0; i < ITEMS; i++)
        assert_int_equal(cluster->counter.items[i], wanted[i]);
}

/* How many records of a kind the file has. */
static unsigned records(const struct sim_storage *storage, unsigned kind)
{
    struct mu__journal_scan scan;
    struct mu__journal_piece piece;
    unsigned count = 0;
    mu_error error;

    assert_int_equal(mu__journal_scan_begin(&scan, storage->content, storage->size,
                                            "journal", &error),
                     0);
    do {
        mu__journal_scan_next(&scan, &piece);
        count +=
            piece.kind == MU__JOURNAL_RECORD && mu__journal_piece_message(&piece) == kind;
    } while (piece.kind == MU__JOURNAL_RECORD);
    return count;
}

/* a has finished, b runs and c is queued when the chief dies. Nobody schedules them
 * again: b and c are run all the same, and each is counted once. The program, which comes
 * back later, gets all three without another run. */
TEST(test_goes_on)
{
    static const char *const names[] = {"a", "b", "c"};
    struct sim_storage *storage;
    struct cluster *cluster = begin_counting(&storage, 1, 1);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closures[3];
    struct mu__held *body = sent(client, 7);
    unsigned loaded;

    set_work_ms(cluster, 100);
    for (int i = 0; i < 3; i++)
        closures[i] = apply(client, body, i, ONCE(names[i]));
    run_for(cluster, 280);
    assert_int_equal(cluster_result(closures[0]), 0);
    assert_false(is_resolved(closures[1]));
    assert_int_equal(records(storage, MU__JOURNAL_BODY), 1);
    loaded = loads;
    (void)sim_trace(cluster->sim);
    restart_chief(cluster);
    run_for(cluster, 1000);
    assert_null(strstr(sim_trace(cluster->sim), "runs apply 0"));
    assert_int_equal(loads, loaded + 1);
    assert_int_equal(join(client), -MU_EUNAVAILABLE);
    mu__held_unref(body);
    expect_counter(cluster, (const int64_t[]){1, 1, 1, 0});

    body = sent(client, 7);
    (void)sim_trace(cluster->sim);
    for (int i = 0; i < 3; i++)
        closures[i] = apply(client, body, i, ONCE(names[i]));
    assert_int_equal(join(client), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(cluster_result(closures[i]), 7 * i);
    assert_null(strstr(sim_trace(cluster->sim), "runs apply"));
    expect_counter(cluster, (const int64_t[]){1, 1, 1, 0});
    mu__held_unref(body);
    end_with(cluster, storage);
}

/* What was sent is one value for all that send the same: to two programs, and to the one
 * that comes back while a closure of the journal uses it. Who else has it may go. */
TEST(test_shared)
{
    struct sim_storage *storage;
    struct cluster *cluster = begin_counting(&storage, 1, 3);
    struct cluster_closure *closure;
    struct mu__held *bodies[4];

    for (int i = 0; i < 3; i++)
        bodies[i] = sent(cluster->clients[i], 7);
    bodies[3] = sent(cluster->clients[0], 8);
    assert_int_equal(bodies[1]->number, bodies[0]->number);
    assert_int_equal(bodies[2]->number, bodies[0]->number);
    assert_int_not_equal(bodies[3]->number, bodies[0]->number);
    run_for(cluster, 100);
    assert_int_equal(loads, 2);
    sim_crash(cluster->clients[2]->node);
    mu__held_unref(bodies[0]);
    run_for(cluster, 1000);
    closure = apply(cluster->clients[1], bodies[1], 3, NULL);
    assert_int_equal(join(cluster->clients[1]), 0);
    assert_int_equal(cluster_result(closure), 21);

    set_work_ms(cluster, 1000);
    (void)apply(cluster->clients[1], bodies[1], 2, ONCE("n"));
    run_for(cluster, 100);
    restart_chief(cluster);
    (void)join(cluster->clients[1]);
    mu__held_unref(bodies[1]);
    bodies[1] = sent(cluster->clients[1], 7);
    closure = apply(cluster->clients[1], bodies[1], 2, ONCE("n"));
    assert_int_equal(join(cluster->clients[1]), 0);
    assert_int_equal(cluster_result(closure), 14);
    assert_int_equal(loads, 3);
    for (int i = 1; i < 4; i++)
        mu__held_unref(bodies[i]);
    end_with(cluster, storage);
}

/* The file has each of them once, and after a compaction those alone that closures under
 * way use. */
TEST(test_dropped_when_no_closure_uses_them)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    struct sim_storage *storage;
    struct cluster *cluster = begin_counting(&storage, 1, 1);
    struct cluster_task *client = cluster->clients[0];
    struct mu__held *bodies[2];
    struct cluster_closure *closure;

    for (int i = 0; i < 2; i++)
        bodies[i] = sent(client, 7 + i);
    for (int i = 0; i < 2; i++)
        (void)apply(client, bodies[i], i, ONCE(names[i]));
    assert_int_equal(join(client), 0);
    assert_int_equal(records(storage, MU__JOURNAL_BODY), 2);
    set_work_ms(cluster, 10000);
    (void)apply(client, bodies[1], 1, ONCE(names[2]));
    run_for(cluster, 100);
    assert_int_equal(records(storage, MU__JOURNAL_BODY), 2);
    assert_int_equal(cluster_wait(cluster_forget(client, 1000)), 0);
    run_for(cluster, 2000);
    assert_int_equal(records(storage, MU__JOURNAL_BODY), 1);

    /* One that was dropped is written again with the next closure that uses it. */
    closure = apply(client, bodies[0], 3, ONCE(names[3]));
    run_for(cluster, 100);
    assert_int_equal(records(storage, MU__JOURNAL_BODY), 2);
    restart_chief(cluster);
    run_for(cluster, 1000);
    assert_int_equal(status_number(cluster->chief, "closures", "forgotten"), 0);
    (void)join(client);
    for (int i = 0; i < 2; i++)
        mu__held_unref(bodies[i]);
    bodies[0] = sent(client, 7);
    closure = apply(client, bodies[0], 3, ONCE(names[3]));
    assert_int_equal(join(client), 0);
    assert_int_equal(cluster_result(closure), 21);
    run_for(cluster, 20000);
    expect_counter(cluster, (const int64_t[]){1, 2, 0, 1});
    mu__held_unref(bodies[0]);
    end_with(cluster, storage);
}

/* More of them than the journal keeps: the closure that is one too many says so, and runs
 * when others have finished. */
TEST(test_full)
{
    static char names[MU__SENT_BODIES_MAX + 1][16];
    static struct mu__held *bodies[MU__SENT_BODIES_MAX + 1];
    struct sim_storage *storage;
    struct cluster *cluster =
        BEGIN_WITH(&storage, .workers = 1, .clients = 1, .queue_max = 8192, OWN);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closure = NULL;

    loads = 0;
    open_at(client);
    set_work_ms(cluster, 1);
    for (int i = 0; i <= MU__SENT_BODIES_MAX; i++)
        bodies[i] = sent(client, i);
    run_for(cluster, 20000);
    assert_int_equal(loads, MU__SENT_BODIES_MAX + 1);
    set_work_ms(cluster, 10000);
    for (int i = 0; i <= MU__SENT_BODIES_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "c%d", i);
        closure = apply(client, bodies[i], 2, ASK(.name = names[i]));
    }
    run_for(cluster, 200);
    assert_int_equal(error_of(closure)->code, -MU_EEXHAUSTED);
    assert_int_equal(error_of(closure)->kind, MU_ERROR_LIMIT);
    assert_string_equal(
        error_of(closure)->message,
        "the journal keeps at most 4096 functions and shared values of closures under "
        "way, with 268435456 bytes together: there is no room for one more until "
        "closures have finished");
    set_work_ms(cluster, 1);
    assert_int_equal(join(client), -MU_EEXHAUSTED);
    closure = apply(client, bodies[MU__SENT_BODIES_MAX], 2,
                    ASK(.name = names[MU__SENT_BODIES_MAX]));
    assert_int_equal(join(client), 0);
    assert_int_equal(cluster_result(closure), 2 * MU__SENT_BODIES_MAX);
    for (int i = 0; i <= MU__SENT_BODIES_MAX; i++)
        mu__held_unref(bodies[i]);
    end_with(cluster, storage);
}

/* The chief dies in each of the storage's operations in turn, from the compaction's first
 * on, while a closure is scheduled: each is counted once in the end. */
TEST(test_crash_in_a_compaction_loses_nothing)
{
    enum { LOADED = 4, OPERATIONS = 80 };
    static char names[OPERATIONS][16];
    struct sim_storage *storage;
    struct cluster *cluster = begin_counting(&storage, 1, 1);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closures[OPERATIONS];
    struct mu__held *body;
    unsigned died = 0;
    int64_t wanted[ITEMS] = {0};

    set_work_ms(cluster, 50);
    for (unsigned i = 0; i < OPERATIONS; i++) {
        sim_crash(cluster->chief->node);
        sim_storage_die_after(storage, LOADED + i);
        cluster_start(cluster->chief);
        run_for(cluster, 100);
        (void)join(client);
        if (!storage->dead) {
            body = sent(client, 7);
            (void)snprintf(names[i], sizeof names[i], "c%u", i);
            (void)apply(client, body, i, ONCE(names[i]));
            for (int ms = 0; ms < 300 && !storage->dead; ms++)
                run_for(cluster, 1);
            mu__held_unref(body);
        }
        died += storage->dead;
        restart_chief(cluster);
        (void)join(client);
    }
    assert_true(died > OPERATIONS / 2);
    (void)join(client);
    body = sent(client, 7);
    for (unsigned i = 0; i < OPERATIONS; i++) {
        (void)snprintf(names[i], sizeof names[i], "c%u", i);
        closures[i] = apply(client, body, i, ONCE(names[i]));
        wanted[i % ITEMS]++;
    }
    assert_int_equal(join(client), 0);
    for (unsigned i = 0; i < OPERATIONS; i++)
        assert_int_equal(cluster_result(closures[i]), 7 * i);
    expect_counter(cluster, wanted);
    mu__held_unref(body);
    end_with(cluster, storage);
}

/* A kept result is with its worker alone: a closure that uses one beside what was sent is
 * not for the next chief, and cannot have its effects once. */
TEST(test_other_inputs)
{
    struct sim_storage *storage;
    struct cluster *cluster = begin_counting(&storage, 1, 1);
    struct cluster_task *client = cluster->clients[0];
    struct mu__held *body = sent(client, 7);
    struct cluster_closure *kept =
        apply(client, body, 2, ASK(.flags = MU_CLOSURE_PIN_RESULT));
    struct cluster_closure *closure;
    mu_value *list = mu_value_list();

    run_for(cluster, 100);
    (void)mu_value_append(list, mu__reference_to(body));
    (void)mu_value_append(list, cluster_reference(kept));
    closure = cluster_schedule_args(client, "apply", mu_value_ref(list), ONCE("x"));
    assert_int_equal(join(client), -MU_EINVALID);
    assert_string_equal(
        error_of(closure)->message,
        "with a journal, a named closure whose inputs only workers keep (results, "
        "per-worker values) cannot have its effects once: the next chief would not know "
        "its number");
    closure = cluster_schedule_args(client, "apply", list, ASK(.name = "x"));
    assert_int_equal(join(client), 0);
    assert_int_equal(cluster_result(closure), 98);
    assert_int_equal(records(storage, MU__JOURNAL_BODY), 0);
    mu__held_unref(body);
    end_with(cluster, storage);
}

static void drop_data(struct mu__session *session, uint32_t number, mu_value *data)
{
    const void *bytes = NULL;
    size_t size = 0;

    (void)session;
    assert_int_equal(number, 1);
    assert_int_equal(mu_value_get_bytes(data, &bytes, &size), 0);
    assert_int_equal(size, 9);
    assert_memory_equal(bytes, "all of it", 9);
    mu_value_free(data);
}

/* Whoever has joined a closure that fails gets the whole of its error. */
TEST(test_error_of_a_joined_one_is_whole)
{
    struct sim_storage *storage;
    struct cluster *cluster = BEGIN_WITH(&storage, .workers = 1, .clients = 2, OWN);
    struct cluster_closure *closures[2];

    for (int i = 0; i < 2; i++) {
        open_at(cluster->clients[i]);
        cluster->clients[i]->session->shared.keep_data = drop_data;
        closures[i] = call_with(cluster->clients[i], "break", 9, ASK(.name = "b"));
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(join(cluster->clients[i]), -MU_ERANGE);
    for (int i = 0; i < 2; i++) {
        const mu_error *error = error_of(closures[i]);

        assert_int_equal(error->kind, MU_ERROR_FUNCTION);
        assert_string_equal(error->message, "number 9 is out of range");
        assert_string_equal(error->task, "/job:worker/task:0");
        assert_string_equal(error->function, "break");
        assert_int_not_equal(error->data, 0);
    }
    end_with(cluster, storage);
}

static void write_without_body(struct sim_storage *storage)
{
    static const uint8_t inputs[8] = {3, 0, 0, 0, 0, 0, 0, 0x80};
    struct mu__pool pool = {0};
    struct mu__journal *journal = NULL;
    struct mu__msg *msg =
        mu__pool_get(&pool, MU__JOURNAL_SCHEDULED, sizeof(struct mu__journal_scheduled));
    struct mu__journal_scheduled *body = mu__body(msg);

    assert_int_equal(mu__journal_open(&storage->base, &mu__messages, &pool, NULL, NULL,
                                      NULL, NULL, &journal),
                     0);
    body->number = 1;
    body->name = mu__view_str("x");
    body->function = mu__view_str("apply");
    body->inputs = (struct mu__view){inputs, sizeof inputs};
    assert_int_equal(mu__journal_append(journal, msg, NULL), 0);
    assert_int_equal(mu__journal_flush(journal, NULL), 0);
    mu__pool_put(&pool, msg);
    mu__journal_close(journal);
    mu__pool_done(&pool);
}

/* A closure whose function was lost when a damaged file was repaired: the chief says
 * which closure that is, and leaves it to the program. */
TEST(test_lost_by_a_repair)
{
    struct sim_storage *storage;
    struct cluster *cluster = BEGIN_WITH(&storage, .workers = 1, .clients = 1, OWN);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closure;
    struct mu__held *body;

    open_at(client);
    sim_crash(cluster->chief->node);
    sim_storage_set(storage, NULL, 0);
    write_without_body(storage);
    cluster_start(cluster->chief);
    run_for(cluster, 1000);
    assert_non_null(strstr(
        sim_trace(cluster->sim),
        "closure \"x\" is not run again: the journal has lost its function; its program "
        "may schedule it again"));
    assert_int_equal(status_number(cluster->chief, "closures", "queued"), 0);
    (void)join(client);
    body = sent(client, 7);
    closure = apply(client, body, 3, ASK(.name = "x"));
    assert_int_equal(join(client), 0);
    assert_int_equal(cluster_result(closure), 21);
    mu__held_unref(body);
    end_with(cluster, storage);
}

TEST_PROGRAM()
