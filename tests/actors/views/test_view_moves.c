/* Moves of partitions: to servers that come back or are added, and away from those that
 * are drained. Servers say at once that a learner is level, or a primary ready. */
#include "tests/support/test.h"
#include "tests/support/views/model.h"

#include <inttypes.h>

enum {
    GRACE_MS = 20,
    RECOVERY_MS = 1000,
    ROUNDS_MAX = 1000,
    MOVES_MAX = 4, /* of each server, at a time */
    FIRST = 3      /* servers of the cluster at the start */
};

struct counts {
    uint32_t primaries[MODEL_SERVERS];
    uint32_t backups[MODEL_SERVERS];
    uint32_t moves[MODEL_SERVERS];
    uint32_t pairs[MODEL_SERVERS][MODEL_SERVERS]; /* of a primary and a backup */
    uint32_t moving;
};

static struct counts count(const struct view_model *model)
{
    struct counts counts = {.moving = 0};

    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        const struct mu__partition_view *view = mu__view_table_at(model->table, i);
        const struct mu__replica *other =
            view->learner.incarnation != 0 ? &view->learner : &view->backup;

        counts.primaries[view->primary.task]++;
        if (view->backup.incarnation != 0)
            counts.backups[view->backup.task]++;
        if (view->backup.incarnation != 0)
            counts.pairs[view->primary.task][view->backup.task]++;
        if (!view->handover && view->learner.incarnation == 0)
            continue;
        counts.moving++;
        counts.moves[view->primary.task]++;
        counts.moves[other->task]++;
    }
    return counts;
}

static void come(struct view_model *model, uint32_t task)
{
    model_start(model, task);
    model_link(model, task);
    assert_int_equal(model_report(model, task), 0);
    model_settle(model);
}

static void begin(struct view_model *model, uint32_t backups)
{
    const struct mu__view_config config = {FIRST, backups, GRACE_MS, RECOVERY_MS, NULL};

    model_init(model, &config, 1);
    for (uint32_t i = 0; i < FIRST; i++)
        come(model, i);
}

static void drain(struct view_model *model, uint32_t task)
{
    assert_true(mu__view_table_drain(model->table, task));
    model_settle(model);
}

/* What the primary of a partition has to say. */
static void say_news(struct view_model *model, uint32_t partition)
{
    const struct mu__partition_view *view = mu__view_table_at(model->table, partition);

    if (view == NULL || !model_is_up(model, &view->primary))
        return;
    if (view->backup.incarnation != 0 && !model_is_alive(model, &view->backup))
        assert_int_equal(
            model_news(model, view->primary.task, partition, MU__REPLICA_LOST), 0);
    else if (model_is_up(model, &view->learner))
        assert_int_equal(
            model_news(model, view->primary.task, partition, MU__REPLICA_LEVEL), 0);
    else if (view->handover && model_is_up(model, &view->backup))
        assert_int_equal(
            model_news(model, view->primary.task, partition, MU__REPLICA_READY), 0);
    else if (view->backup.incarnation != 0 && !view->handover)
        assert_int_equal(
            model_news(model, view->primary.task, partition, MU__REPLICA_SPARE), 0);
}

static uint64_t sum_of_numbers(const struct view_model *model)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        sum += mu__view_table_at(model->table, i)->number;
    return sum;
}

/* A copy that is there stays until another one is. */
static void check_whole(const struct view_model *model)
{
    struct counts counts = count(model);
    struct mu__view_totals totals;

    mu__view_table_totals(model->table, &totals);
    assert_int_equal(totals.degraded, 0);
    assert_int_equal(totals.lost, 0);
    assert_int_equal(totals.moving, counts.moving);
    for (uint32_t i = 0; i < MODEL_SERVERS; i++)
        assert_true(counts.moves[i] <= MOVES_MAX);
}

/* All say what they have to say, until nothing more comes of it. `whole`: meanwhile no
 * copy goes before there is another one. Returns how many views there were. */
static uint64_t finish_as(struct view_model *model, bool whole)
{
    uint64_t begun = sum_of_numbers(model);
    uint64_t last = 0;

    for (int round = 0; last != sum_of_numbers(model); round++) {
        assert_true(round < ROUNDS_MAX);
        last = sum_of_numbers(model);
        for (uint32_t i = 0; i < MU__PARTITIONS; i++)
            say_news(model, i);
        model_settle(model);
        if (whole)
            check_whole(model);
    }
    return last - begun;
}

static void finish(struct view_model *model)
{
    (void)finish_as(model, false);
}

static void finish_whole(struct view_model *model)
{
    (void)finish_as(model, true);
}

static void assert_even(const uint32_t *counts, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++)
        assert_in_range(counts[i], MU__PARTITIONS / count, MU__PARTITIONS / count + 1);
}

/* Loads of servers from number `first` on, which have all. */
static void assert_balanced(const struct view_model *model, uint32_t first,
                            uint32_t servers)
{
    struct counts counts = count(model);

    assert_int_equal(counts.moving, 0);
    assert_even(counts.primaries, first, servers);
    if (model->config.backups > 0)
        assert_even(counts.backups, first, servers);
}

/* The backups of each server are on all the others. */
static void assert_spread(const struct view_model *model, uint32_t servers)
{
    struct counts counts = count(model);
    uint32_t share = MU__PARTITIONS / servers / (servers - 1);

    for (uint32_t i = 0; i < servers; i++)
        for (uint32_t j = 0; j < servers; j++)
            if (i != j)
                assert_true(counts.pairs[i][j] > share / 3);
}

TEST(test_a_server_that_comes_back_gets_its_share)
{
    struct view_model model;

    begin(&model, 1);
    model_crash(&model, 1);
    model_pass(&model, GRACE_MS);
    come(&model, 1);
    finish(&model);
    assert_balanced(&model, 0, 3);
    assert_spread(&model, 3);
    model_done(&model);
}

TEST(test_a_server_that_is_added_gets_its_share)
{
    for (uint32_t backups = 0; backups < 2; backups++) {
        struct view_model model;

        begin(&model, backups);
        assert_int_equal(mu__view_table_added(model.table, 3, 0), 0);
        come(&model, 3);
        /* 64 primaries and backups: a copy each, and a handover, each two views */
        assert_true(finish_as(&model, true) < 64 * 8);
        assert_balanced(&model, 0, 4);
        if (backups > 0)
            assert_spread(&model, 4);
        model_done(&model);
    }
}

/* While it gives its part away it is never the only one to have it; then it has
 * nothing. */
TEST(test_a_drained_server_gives_all_away)
{
    for (uint32_t backups = 0; backups < 2; backups++) {
        struct view_model model;

        begin(&model, backups);
        drain(&model, 0);
        finish_whole(&model);
        assert_balanced(&model, 1, 2);
        assert_int_equal(count(&model).primaries[0], 0);
        assert_int_equal(count(&model).backups[0], 0);
        model_done(&model);
    }
}

/* Also of partitions that are lost, or have lost their backup. */
TEST(test_a_drained_server_gets_nothing)
{
    struct view_model model;

    begin(&model, 1);
    drain(&model, 0);
    finish(&model);
    model_crash(&model, 1);
    model_pass(&model, GRACE_MS);
    finish(&model);
    assert_int_equal(count(&model).primaries[2], MU__PARTITIONS);
    model_crash(&model, 2);
    come(&model, 2);
    come(&model, 1);
    finish(&model);
    assert_balanced(&model, 1, 2);
    model_done(&model);
}

/* A server that is not up is told when it is. */
TEST(test_a_server_without_a_link_is_drained)
{
    struct view_model model;

    begin(&model, 1);
    model_unlink(&model, 0);
    drain(&model, 0);
    assert_false(model.servers[0].draining);
    model_link(&model, 0);
    assert_int_equal(model_report(&model, 0), 0);
    model_settle(&model);
    assert_true(model.servers[0].draining);
    model_done(&model);
}

/* A new process of a drained server is like any other. */
TEST(test_a_drained_server_that_comes_back)
{
    struct view_model model;

    begin(&model, 1);
    drain(&model, 0);
    finish(&model);
    model_unlink(&model, 0);
    model_link(&model, 0);
    assert_int_equal(model_report(&model, 0), 0);
    finish(&model);
    assert_int_equal(count(&model).primaries[0], 0);
    model_crash(&model, 0);
    come(&model, 0);
    finish_whole(&model);
    assert_balanced(&model, 0, 3);
    model_done(&model);
}

/* With nobody to take them, it keeps the copies, which are no reason to wait. */
TEST(test_a_drained_server_keeps_what_nobody_takes)
{
    const struct mu__view_config config = {2, 1, GRACE_MS, RECOVERY_MS, NULL};
    struct view_model model;

    model_init(&model, &config, 1);
    come(&model, 0);
    come(&model, 1);
    drain(&model, 0);
    assert_false(mu__view_table_has_drained(model.table, 0));
    finish_whole(&model);
    assert_int_equal(count(&model).primaries[1], MU__PARTITIONS);
    assert_int_equal(count(&model).backups[0], MU__PARTITIONS);
    assert_true(mu__view_table_has_drained(model.table, 0));
    assert_int_equal(mu__view_table_added(model.table, 2, model.now_ms), 0);
    assert_false(mu__view_table_has_drained(model.table, 0));
    model_done(&model);
}

/* Its part may be back soon; then nothing has to be moved. */
TEST(test_moves_wait_for_servers)
{
    struct view_model model;

    begin(&model, 1);
    model_crash(&model, 2);
    model_pass(&model, GRACE_MS);
    finish(&model);
    model_crash(&model, 1);
    model_pass(&model, GRACE_MS);
    come(&model, 1);
    finish(&model);
    assert_int_equal(count(&model).moving, 0);
    assert_int_equal(count(&model).primaries[0], MU__PARTITIONS);
    model_pass(&model, RECOVERY_MS);
    finish_whole(&model);
    assert_balanced(&model, 0, 2);
    model_done(&model);
}

/* The first partition that is moved so. */
static const struct mu__partition_view *find_move(const struct view_model *model,
                                                  bool handover)
{
    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        const struct mu__partition_view *view = mu__view_table_at(model->table, i);

        if (handover ? view->handover : view->learner.incarnation != 0)
            return view;
    }
    fail_msg("nothing is moved");
    return NULL;
}

TEST(test_a_copy_ends_with_its_target)
{
    struct view_model model;
    struct mu__partition_view was;
    const struct mu__partition_view *view;

    begin(&model, 1);
    assert_int_equal(mu__view_table_added(model.table, 3, 0), 0);
    come(&model, 3);
    was = *find_move(&model, false);
    assert_int_equal(was.learner.task, 3);
    model_crash(&model, 3);
    model_pass(&model, GRACE_MS);
    view = mu__view_table_at(model.table, was.partition);
    assert_true(mu__replica_is(&view->primary, was.primary.task, 1));
    assert_true(mu__replica_is(&view->backup, was.backup.task, 1));
    assert_int_equal(view->learner.incarnation, 0);
    assert_int_equal(count(&model).moving, 0);
    model_done(&model);
}

/* What a server has got by a move may not be in its journal yet: until it is, who had it
 * before keeps it. */
TEST(test_who_handed_over_keeps_a_copy_for_a_while)
{
    struct view_model model;
    const struct mu__partition_view *view;
    uint32_t partition;

    begin(&model, 0);
    drain(&model, 0);
    partition = find_move(&model, false)->partition;
    view = mu__view_table_at(model.table, partition);
    assert_int_equal(model_news(&model, 0, partition, MU__REPLICA_LEVEL), 0);
    model_settle(&model);
    assert_true(view->handover);
    assert_int_equal(model_news(&model, 0, partition, MU__REPLICA_READY), 0);
    model_settle(&model);
    assert_int_not_equal(view->primary.task, 0);
    assert_true(mu__replica_is(&view->backup, 0, 1));
    assert_int_equal(model_news(&model, view->primary.task, partition, MU__REPLICA_SPARE),
                     0);
    model_settle(&model);
    assert_int_equal(view->backup.incarnation, 0);
    model_done(&model);
}

/* The learner is level: it takes the place of the backup, whatever became of that. */
TEST(test_a_level_learner_replaces_a_lost_backup)
{
    struct view_model model;
    struct mu__partition_view was;
    const struct mu__partition_view *view;

    begin(&model, 1);
    assert_int_equal(mu__view_table_added(model.table, 3, 0), 0);
    come(&model, 3);
    was = *find_move(&model, false);
    assert_int_equal(model_news_of(&model, was.primary.task, was.partition,
                                   MU__REPLICA_LOST, false),
                     0);
    assert_int_equal(model_news_of(&model, was.primary.task, was.partition,
                                   MU__REPLICA_LEVEL, true),
                     0);
    model_settle(&model);
    view = mu__view_table_at(model.table, was.partition);
    assert_int_equal(view->backup.task, 3);
    model_done(&model);
}

/* One that is not level is filled on as the only one. */
TEST(test_a_backup_that_is_lost_ends_a_move)
{
    struct view_model model;
    struct mu__partition_view was;
    const struct mu__partition_view *view;

    begin(&model, 1);
    assert_int_equal(mu__view_table_added(model.table, 3, 0), 0);
    come(&model, 3);
    was = *find_move(&model, false);
    assert_int_equal(model_news_of(&model, was.primary.task, was.partition,
                                   MU__REPLICA_LOST, false),
                     0);
    model_settle(&model);
    view = mu__view_table_at(model.table, was.partition);
    assert_int_equal(view->backup.incarnation, 0);
    assert_int_equal(view->learner.task, 3);
    model_done(&model);
}

/* The primary has not said that it has stopped; and then the backup cannot be told that
 * it is the primary. */
TEST(test_a_handover_is_called_off)
{
    struct view_model model;
    struct mu__partition_view was;
    const struct mu__partition_view *view;

    begin(&model, 1);
    drain(&model, 0);
    was = *find_move(&model, true);
    assert_int_equal(was.primary.task, 0);
    model_settle(&model);
    assert_int_equal(mu__view_table_at(model.table, was.partition)->number, was.number);
    model_unlink(&model, was.backup.task);
    assert_int_equal(model_news(&model, 0, was.partition, MU__REPLICA_READY), 0);
    model_pass(&model, GRACE_MS - 1);
    view = mu__view_table_at(model.table, was.partition);
    assert_int_equal(view->number, was.number);
    model_pass(&model, 1);
    assert_false(view->handover);
    assert_int_equal(view->primary.task, 0);
    assert_int_equal(view->backup.task, was.backup.task);
    model_done(&model);
}

/* The primary dies while it hands over. */
TEST(test_a_handover_ends_with_the_primary)
{
    struct view_model model;
    struct mu__partition_view was;
    const struct mu__partition_view *view;

    begin(&model, 1);
    drain(&model, 0);
    was = *find_move(&model, true);
    model_crash(&model, 0);
    model_pass(&model, GRACE_MS);
    view = mu__view_table_at(model.table, was.partition);
    assert_false(view->handover);
    assert_true(mu__replica_is(&view->primary, was.backup.task, 1));
    model_done(&model);
}

/* Also one whose store has kept nothing: it hears of the drain from the server. */
TEST(test_another_chief_goes_on)
{
    for (int has_store = 0; has_store < 2; has_store++) {
        struct view_model model;

        begin(&model, 1);
        drain(&model, 0);
        model_chief_crash(&model);
        if (has_store == 0)
            model_store_lost(&model);
        model_chief_start(&model);
        for (uint32_t i = 0; i < FIRST; i++) {
            model_link(&model, i);
            assert_int_equal(model_report(&model, i), 0);
        }
        assert_true(find_move(&model, true)->handover);
        finish_whole(&model);
        assert_balanced(&model, 1, 2);
        model_done(&model);
    }
}

TEST(test_a_server_that_is_not_there_is_not_drained)
{
    struct view_model model;

    begin(&model, 1);
    assert_false(mu__view_table_drain(model.table, 4));
    model_done(&model);
}

TEST_PROGRAM()
