/* A server with a journal, over its restarts: what was answered is there, once. */
#include "actors/ps/server.h"
#include "sim/world/storage.h"
#include "tests/support/replicas.h"

/* Server 0 has a journal, and is the primary. */
static struct sim_storage *begin_journal(struct fixture *f)
{
    struct sim_storage *storage = sim_storage_new("server.journal", 5);

    net_crash(f->servers[0]);
    f->servers[0]->arg = storage;
    net_start(f->servers[0]);
    net_settle(&f->net);
    return storage;
}

static struct sim_storage *begin_one(struct fixture *f)
{
    struct sim_storage *storage = begin_journal(f);

    change_view(f, f->servers[0], NULL, NULL);
    open_variable(f, f->servers[0]);
    return storage;
}

static void crash(struct net_process *server)
{
    net_crash(server);
    sim_storage_crash((struct sim_storage *)server->arg);
}

/* The chief gives the partition back to its new process. */
static void restart(struct fixture *f, struct net_process *server)
{
    crash(server);
    net_start(server);
    net_settle(&f->net);
    change_view(f, server, NULL, NULL);
}

static void end_journal(struct fixture *f, struct sim_storage *storage)
{
    net_crash(f->servers[0]);
    sim_storage_free(storage);
}

TEST_ON(test_what_was_answered_is_there_again, struct fixture *f, set_up, tear_down)
{
    struct sim_storage *storage = begin_one(f);

    for (int i = 0; i < 3; i++)
        assert_int_equal(need_answer(f, add_once(f, f->servers[0]))->code, 0);
    restart(f, f->servers[0]);
    assert_int_equal(f->restored, 1);
    assert_int_equal(f->former, 2);
    assert_content(f, f->servers[0], 3);
    assert_int_equal(need_answer(f, add_once(f, f->servers[0]))->code, 0);
    restart(f, f->servers[0]);
    assert_content(f, f->servers[0], 4);
    end_journal(f, storage);
}

/* What was on two servers is read, as soon as the new view is in the file. */
TEST_ON(test_a_strict_primary_with_a_journal_reads, struct fixture *f, set_up, tear_down)
{
    struct sim_storage *storage = begin_journal(f);

    f->strict = true;
    begin_two(f);
    assert_int_equal(need_answer(f, add_once(f, f->servers[0]))->code, 0);
    net_crash(f->servers[1]);
    change_view(f, f->servers[0], NULL, NULL);
    assert_content(f, f->servers[0], 1);
    end_journal(f, storage);
}

/* Whatever of the last records is in the file: they were answered. */
TEST_ON(test_no_answer_comes_before_the_flush, struct fixture *f, set_up, tear_down)
{
    struct sim_storage *storage = begin_one(f);
    uint64_t write;
    uint64_t read;

    sim_storage_fail(storage, SIM_STORAGE_FLUSH, 1000, -MU_EUNAVAILABLE);
    write = add_once(f, f->servers[0]);
    read = post_read(f, f->servers[0]);
    net_run_for(&f->net, 500);
    assert_null(answer_to(f, write));
    assert_null(answer_to(f, read));
    sim_storage_fail(storage, SIM_STORAGE_FLUSH, 0, 0);
    net_run_for(&f->net, 500);
    assert_int_equal(need_answer(f, write)->code, 0);
    assert_int_equal(need_answer(f, read)->data[0], 1);
    end_journal(f, storage);
}

TEST_ON(test_one_batch_is_flushed_once, struct fixture *f, set_up, tear_down)
{
    struct sim_storage *storage = begin_one(f);
    struct mu__var_write write;
    uint64_t flushes = storage->counts[SIM_STORAGE_FLUSH];

    for (int i = 0; i < 5; i++) {
        struct mu__msg *msg = mu__msg_heap(MU__VAR_WRITE, sizeof write);

        assert_non_null(msg);
        write = write_of(f, ++f->effect);
        memcpy(msg->body, &write, sizeof write);
        msg->from = (mu__pid){f->servers[0]->numbers[f->client - f->net.processes],
                              MU__VARIABLES};
        msg->to.actor = MU__PS;
        assert_int_equal(mu__kernel_deliver(f->servers[0]->kernel, msg), 0);
    }
    net_turn(f->servers[0]);
    net_settle(&f->net);
    assert_int_equal(need_answer(f, write.token)->code, 0);
    assert_int_equal(storage->counts[SIM_STORAGE_FLUSH], flushes + 1);
    assert_content(f, f->servers[0], 5);
    end_journal(f, storage);
}

/* The client has not heard of it, and sends it again to the next process. */
TEST_ON(test_what_is_sent_again_counts_once, struct fixture *f, set_up, tear_down)
{
    struct sim_storage *storage = begin_one(f);
    uint64_t effect;

    fence(f, f->servers[0], 77);
    assert_int_equal(need_answer(f, post_effect(f, f->servers[0], 77, 3))->code, 0);
    assert_int_equal(need_answer(f, add_once(f, f->servers[0]))->code, 0);
    restart(f, f->servers[0]);
    assert_int_equal(need_answer(f, post_write(f, f->servers[0], f->effect))->code, 0);
    effect = post_effect(f, f->servers[0], 77, 3);
    assert_int_equal(need_answer(f, effect)->code, 0);
    assert_content(f, f->servers[0], 2);
    effect = post_effect(f, f->servers[0], 66, 4);
    assert_int_equal(need_answer(f, effect)->code, MU_EABORTED);
    end_journal(f, storage);
}

/* ---- Views ---- */

/* Its backup has taken over. */
TEST_ON(test_what_another_has_taken_over_is_dropped, struct fixture *f, set_up, tear_down)
{
    struct sim_storage *storage = begin_journal(f);

    begin_two(f);
    (void)add_once(f, f->servers[0]);
    crash(f->servers[0]);
    change_view(f, f->servers[1], NULL, NULL);
    (void)add_once(f, f->servers[1]);
    net_start(f->servers[0]);
    net_settle(&f->net);
    assert_int_equal(f->restored, 1);
    change_view(f, f->servers[1], NULL, f->servers[0]);
    net_run_for(&f->net, 100);
    assert_int_equal(f->news, MU__REPLICA_LEVEL);
    change_view(f, f->servers[1], f->servers[0], NULL);
    (void)add_once(f, f->servers[1]);
    net_crash(f->servers[1]);
    change_view(f, f->servers[0], NULL, NULL);
    assert_content(f, f->servers[0], 3);
    end_journal(f, storage);
}

/* It hears of a view in which its former process was the primary still. */
TEST_ON(test_an_older_view_takes_nothing_away, struct fixture *f, set_up, tear_down)
{
    struct sim_storage *storage = begin_one(f);
    struct mu__partition_view view = {.primary = replica_of(f->servers[0]),
                                      .learner = replica_of(f->servers[1])};

    (void)add_once(f, f->servers[0]);
    crash(f->servers[0]);
    net_start(f->servers[0]);
    net_settle(&f->net);
    view.number = ++f->number;
    set_view(f, f->servers[0], view);
    change_view(f, f->servers[0], NULL, NULL);
    assert_content(f, f->servers[0], 1);
    restart(f, f->servers[0]);
    assert_content(f, f->servers[0], 1);
    end_journal(f, storage);
}

/* It is in the file when that was written anew. */
TEST_ON(test_a_promoted_backup_is_journaled, struct fixture *f, set_up, tear_down)
{
    struct sim_storage *storage = begin_journal(f);

    change_view(f, f->servers[1], f->servers[0], NULL);
    open_as(f, f->servers[1], &large);
    (void)add_once(f, f->servers[1]);
    net_crash(f->servers[1]);
    change_view(f, f->servers[0], NULL, NULL);
    for (int i = 0; i < 20; i++) {
        (void)add_once(f, f->servers[0]);
        net_run_for(&f->net, 7);
    }
    f->answers_count = 0;
    assert_content(f, f->servers[0], 21);
    restart(f, f->servers[0]);
    assert_int_equal(f->restored, 1);
    assert_content(f, f->servers[0], 21);
    assert_int_equal(need_answer(f, post_write(f, f->servers[0], f->effect))->code, 0);
    assert_content(f, f->servers[0], 21);
    end_journal(f, storage);
}

/* One that died before that has nothing to give back. */
TEST_ON(test_a_backup_is_not_restored, struct fixture *f, set_up, tear_down)
{
    struct sim_storage *storage = begin_journal(f);

    change_view(f, f->servers[1], f->servers[0], NULL);
    open_variable(f, f->servers[1]);
    (void)add_once(f, f->servers[1]);
    restart(f, f->servers[0]);
    assert_int_equal(f->restored, 0);
    end_journal(f, storage);
}

/* ---- Handed over ---- */

/* Server 0, with one write, to server 1, which has no journal. */
static struct sim_storage *begin_handed_over(struct fixture *f)
{
    struct sim_storage *storage = begin_journal(f);
    struct mu__partition_view view;

    begin_two(f);
    (void)add_once(f, f->servers[0]);
    view = next_view(f, f->servers[0], f->servers[1], NULL);
    view.handover = true;
    set_view(f, f->servers[0], view);
    set_view(f, f->servers[1], view);
    net_settle(&f->net);
    change_view(f, f->servers[1], f->servers[0], NULL);
    return storage;
}

/* The next primary crashes before its journal has what it got: the former one has it in
 * its own, and crashes, too. */
TEST_ON(test_who_handed_over_goes_on_with_its_journal, struct fixture *f, set_up,
        tear_down)
{
    struct sim_storage *storage = begin_handed_over(f);

    (void)add_once(f, f->servers[1]);
    f->answers_count = 0;
    assert_content(f, f->servers[1], 2);
    net_crash(f->servers[1]);
    change_view(f, f->servers[0], NULL, NULL);
    (void)add_once(f, f->servers[0]);
    restart(f, f->servers[0]);
    assert_int_equal(f->restored, 1);
    assert_content(f, f->servers[0], 3);
    assert_int_equal(need_answer(f, post_write(f, f->servers[0], f->effect))->code, 0);
    assert_content(f, f->servers[0], 3);
    end_journal(f, storage);
}

TEST_ON(test_who_handed_over_acknowledges_what_is_flushed, struct fixture *f, set_up,
        tear_down)
{
    struct sim_storage *storage = begin_handed_over(f);
    uint64_t write;

    sim_storage_fail(storage, SIM_STORAGE_FLUSH, 1000, -MU_EUNAVAILABLE);
    write = add_once(f, f->servers[1]);
    net_run_for(&f->net, 500);
    assert_null(answer_to(f, write));
    sim_storage_fail(storage, SIM_STORAGE_FLUSH, 0, 0);
    net_run_for(&f->net, 500);
    assert_int_equal(need_answer(f, write)->code, 0);
    end_journal(f, storage);
}

/* Its next process gives it back, if the next primary is lost. */
TEST_ON(test_who_handed_over_may_get_it_back, struct fixture *f, set_up, tear_down)
{
    struct sim_storage *storage = begin_handed_over(f);
    struct mu__partition_view view;

    (void)add_once(f, f->servers[1]);
    view = next_view(f, f->servers[1], f->servers[0], NULL);
    crash(f->servers[0]);
    net_start(f->servers[0]);
    net_settle(&f->net);
    set_view(f, f->servers[0], view);
    net_crash(f->servers[1]);
    change_view(f, f->servers[0], NULL, NULL);
    assert_content(f, f->servers[0], 2);
    end_journal(f, storage);
}

/* It lives, and hears that the backup has taken over: what it has stays, and it takes
 * nothing more, as it may have more than the backup. */
TEST_ON(test_a_primary_that_was_taken_for_dead_is_set_aside, struct fixture *f, set_up,
        tear_down)
{
    struct sim_storage *storage = begin_journal(f);
    uint64_t write;

    begin_two(f);
    (void)add_once(f, f->servers[0]);
    change_view(f, f->servers[1], f->servers[0], NULL);
    write = add_once(f, f->servers[1]);
    change_view(f, f->servers[1], f->servers[0], NULL);
    net_run_for(&f->net, 100);
    assert_null(answer_to(f, write));
    assert_int_equal(f->news, 0);
    net_crash(f->servers[1]);
    change_view(f, f->servers[0], NULL, NULL);
    assert_content(f, f->servers[0], 1);
    end_journal(f, storage);
}

/* What it has cannot be taken over: it says so. */
TEST_ON(test_who_is_set_aside_takes_nothing_over, struct fixture *f, set_up, tear_down)
{
    struct sim_storage *storage = begin_journal(f);
    struct mu__partition_view view;

    begin_two(f);
    change_view(f, f->servers[1], f->servers[0], NULL);
    assert_int_equal(f->news, 0);
    view = next_view(f, f->servers[1], f->servers[0], NULL);
    view.handover = true;
    set_view(f, f->servers[1], view);
    set_view(f, f->servers[0], view);
    net_settle(&f->net);
    assert_int_equal(f->news, MU__REPLICA_DIVERGED);
    assert_int_equal(f->news_number, view.number);
    end_journal(f, storage);
}

/* Half of an assign: 7 to the first two elements, or 8 to the others. Returns the token.
 */
static uint64_t assign_half(struct fixture *f, struct net_process *server,
                            uint64_t transfer, bool second)
{
    static const int64_t halves[2][ELEMENTS / 2] = {{7, 7}, {8, 8}};
    const struct mu__var_write write = {.token = ++f->token,
                                        .variable = f->variable,
                                        .operation = MU__WRITE_ASSIGN,
                                        .transfer = transfer,
                                        .offset = second ? sizeof halves[0] : 0,
                                        .data = {halves[second], sizeof halves[0]},
                                        .partition = PARTITION,
                                        .generation = f->generation};

    say(f->client, MU__VARIABLES, server, MU__VAR_WRITE, &write);
    net_settle(&f->net);
    return write.token;
}

/* With a named backup that is dead no record is written: what clients have begun is
 * forgotten, and the file has the partition soon. Each chief hears of that. */
TEST_ON(test_a_primary_that_is_alone_writes_its_journal, struct fixture *f, set_up,
        tear_down)
{
    struct sim_storage *storage = begin_journal(f);

    change_view(f, f->servers[1], f->servers[0], NULL);
    open_variable(f, f->servers[1]);
    (void)add_once(f, f->servers[1]);
    change_view(f, f->servers[0], f->servers[1], NULL);
    (void)assign_half(f, f->servers[0], 50, false);
    assert_int_equal(f->spare_number, 0);
    net_crash(f->servers[1]);
    net_run_for(&f->net, 100);
    assert_int_equal(f->spare_number, f->number);
    f->spare_number = 0;
    net_crash(f->chief);
    net_start(f->chief);
    net_settle(&f->net);
    assert_int_equal(f->spare_number, f->number);
    restart(f, f->servers[0]);
    assert_content(f, f->servers[0], 1);
    end_journal(f, storage);
}

/* ---- Written anew ---- */

static void add_many(struct fixture *f, struct net_process *server, int count)
{
    for (int i = 0; i < count; i++) {
        (void)add_once(f, server);
        f->answers_count = 0;
        net_run_for(&f->net, 3);
    }
}

TEST_ON(test_a_large_journal_is_written_anew, struct fixture *f, set_up, tear_down)
{
    struct sim_storage *storage;

    f->spare_bytes = 1 << 16;
    storage = begin_one(f);
    add_many(f, f->servers[0], 2000);
    assert_true(storage->size < 3 << 16);
    assert_content(f, f->servers[0], 2000);
    restart(f, f->servers[0]);
    assert_content(f, f->servers[0], 2000);
    assert_int_equal(need_answer(f, post_write(f, f->servers[0], 100))->code, 0);
    assert_content(f, f->servers[0], 2000);
    end_journal(f, storage);
}

/* Whoever waits for a variable, or makes one, begins anew then. */
TEST_ON(test_a_snapshot_waits_for_no_client, struct fixture *f, set_up, tear_down)
{
    struct sim_storage *storage;
    struct mu__var_open waiting = small;
    uint64_t generation;

    f->spare_bytes = 1 << 16;
    storage = begin_one(f);
    waiting.name = (struct mu__view){"absent", 6};
    waiting.existing = true;
    say_open(f, f->servers[0], waiting);
    net_settle(&f->net);
    generation = f->generation;
    add_many(f, f->servers[0], 2000);
    assert_true(f->generation > generation);
    assert_true(f->generation < mu__generation_of(f->number + 1));
    assert_true(storage->size < 3 << 16);
    restart(f, f->servers[0]);
    assert_content(f, f->servers[0], (int64_t)f->effect);
    end_journal(f, storage);
}

/* What was begun before a snapshot ends in the same generation, or is begun anew. */
TEST_ON(test_a_snapshot_has_no_half_of_a_request, struct fixture *f, set_up, tear_down)
{
    struct sim_storage *storage;
    const struct answer *answer;
    uint64_t generation;

    f->spare_bytes = 1 << 16;
    storage = begin_one(f);
    generation = f->generation;
    (void)assign_half(f, f->servers[0], 50, false);
    add_many(f, f->servers[0], 1000);
    if (f->generation != generation)
        (void)assign_half(f, f->servers[0], 51, false);
    assert_int_equal(need_answer(f,
                                 assign_half(f, f->servers[0],
                                             f->generation != generation ? 51 : 50, true))
                         ->code,
                     0);
    restart(f, f->servers[0]);
    answer = need_answer(f, post_read(f, f->servers[0]));
    assert_int_equal(answer->data[0], 7);
    assert_int_equal(answer->data[ELEMENTS - 1], 8);
    end_journal(f, storage);
}

/* Who handed over has not heard yet that the next primary has its own journal. Requests
 * are under way there when the file is written anew, which is to have the partition. */
TEST_ON(test_what_was_handed_over_is_written_anew, struct fixture *f, set_up, tear_down)
{
    struct sim_storage *storage;

    f->spare_bytes = 1 << 16;
    storage = begin_handed_over(f);
    (void)assign_half(f, f->servers[1], 50, false);
    add_many(f, f->servers[1], 1000);
    net_crash(f->servers[1]);
    crash(f->servers[0]);
    net_start(f->servers[0]);
    net_settle(&f->net);
    assert_int_equal(f->restored, 1);
    end_journal(f, storage);
}

/* ---- Disks ---- */

TEST_ON(test_a_full_disk_makes_writes_wait, struct fixture *f, set_up, tear_down)
{
    struct sim_storage *storage = begin_one(f);
    uint64_t write;

    (void)add_once(f, f->servers[0]);
    sim_storage_limit(storage, storage->size + 40);
    write = add_once(f, f->servers[0]);
    net_run_for(&f->net, 1000);
    assert_null(answer_to(f, write));
    assert_null(answer_to(f, add_once(f, f->servers[0])));
    sim_storage_limit(storage, 0);
    net_run_for(&f->net, 1000);
    assert_int_equal(need_answer(f, write)->code, 0);
    restart(f, f->servers[0]);
    assert_content(f, f->servers[0], 3);
    end_journal(f, storage);
}

/* An append that fails, after the backup has got the record, leaves the file behind: it
 * is written anew, though somebody waits for a variable. */
TEST_ON(test_a_lost_record_is_written_anew, struct fixture *f, set_up, tear_down)
{
    struct sim_storage *storage = begin_one(f);
    struct mu__var_open waiting = small;
    uint64_t write;

    waiting.name = (struct mu__view){"absent", 6};
    waiting.existing = true;
    say_open(f, f->servers[0], waiting);
    net_settle(&f->net);
    sim_storage_fail(storage, SIM_STORAGE_APPEND, 1, -MU_EEXHAUSTED);
    write = add_once(f, f->servers[0]);
    assert_null(answer_to(f, write));
    (void)add_once(f, f->servers[0]);
    net_run_for(&f->net, 3000);
    assert_int_equal(need_answer(f, post_write(f, f->servers[0], 1))->code, 0);
    assert_int_equal(need_answer(f, post_write(f, f->servers[0], 2))->code, 0);
    restart(f, f->servers[0]);
    assert_content(f, f->servers[0], 2);
    end_journal(f, storage);
}

/* The process dies in the middle of any operation on its file, also of a snapshot. */
TEST_ON(test_no_death_loses_what_was_answered, struct fixture *f, set_up, tear_down)
{
    struct sim_storage *storage;
    uint64_t write;

    f->spare_bytes = 1 << 12;
    storage = begin_one(f);
    for (unsigned i = 0; i < 300; i++) {
        uint64_t answered = f->effect;

        sim_storage_die_after(storage, i % 40);
        for (int k = 0; k < 30 && !storage->dead; k++) {
            write = add_once(f, f->servers[0]);
            answered = answer_to(f, write) != NULL ? f->effect : answered;
            f->answers_count = 0;
            net_run_for(&f->net, 2);
        }
        restart(f, f->servers[0]);
        assert_int_equal(f->restored, 1);
        for (uint64_t effect = answered; effect <= f->effect; effect++)
            if (effect > 0)
                (void)post_write(f, f->servers[0], effect);
        assert_content(f, f->servers[0], (int64_t)f->effect);
        f->answers_count = 0;
    }
    end_journal(f, storage);
}

/* Another process may have room for it: it is not done then, either. */
TEST_ON(test_a_refused_request_is_not_repeated, struct fixture *f, set_up, tear_down)
{
    struct mu__store_limits limits = mu__store_limits_default;
    struct mu__var_open refused = large;
    struct sim_storage *storage;

    limits.bytes_max = LARGE_BYTES / 2;
    f->limits = &limits;
    storage = begin_one(f);
    say_open(f, f->servers[0], refused);
    net_settle(&f->net);
    assert_int_equal(need_answer(f, f->token)->code, MU_EEXHAUSTED);
    (void)add_once(f, f->servers[0]);
    f->limits = NULL;
    restart(f, f->servers[0]);
    assert_content(f, f->servers[0], 1);
    refused.existing = true;
    say_open(f, f->servers[0], refused);
    net_settle(&f->net);
    assert_int_equal(need_answer(f, f->token)->code, MU_EAGAIN);
    end_journal(f, storage);
}

/* ---- What is refused ---- */

/* Why the server does not start. */
static const char *refusal(struct fixture *f, struct net_process *server)
{
    const struct mu__ps_config config = {.index = server->index,
                                         .incarnation = ++server->incarnation,
                                         .leader = "chief",
                                         .journal = (struct mu__storage *)server->arg,
                                         .cluster_name = "job",
                                         .run = f->run,
                                         .error = &f->error};
    struct mu__kernel *kernel;

    assert_int_equal(mu__kernel_new(&server->world, &mu__messages, &kernel), 0);
    assert_int_not_equal(mu__spawn(kernel, &mu__ps, MU__PS, &config, NULL), 0);
    mu__kernel_free(kernel);
    return f->error.message;
}

TEST_ON(test_the_journal_of_another_run_is_refused, struct fixture *f, set_up, tear_down)
{
    struct sim_storage *storage;

    f->run = "monday";
    storage = begin_one(f);
    crash(f->servers[0]);
    f->run = "tuesday";
    assert_string_equal(
        refusal(f, f->servers[0]),
        "server.journal is the journal of the job's run \"monday\", and this is "
        "run \"tuesday\": set MUSTER_RUN=monday to go on with that one, "
        "or remove the file");
    sim_storage_free(storage);
}

/* A file from which a repair has taken a record. */
TEST_ON(test_a_missing_record_is_refused, struct fixture *f, set_up, tear_down)
{
    struct sim_storage *storage = begin_one(f);
    uint8_t *copy;
    size_t at;
    size_t size;
    size_t end;

    (void)add_once(f, f->servers[0]);
    at = storage->size;
    (void)add_once(f, f->servers[0]);
    end = storage->size;
    (void)add_once(f, f->servers[0]);
    size = storage->size - (end - at);
    copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, storage->content, at);
    memcpy(copy + at, storage->content + end, size - at);
    crash(f->servers[0]);
    sim_storage_set(storage, copy, size);
    free(copy);
    assert_non_null(strstr(refusal(f, f->servers[0]), "server.journal: "));
    assert_int_equal(f->error.code, -MU_EDATALOSS);
    sim_storage_free(storage);
}

TEST_PROGRAM()
