/* How a learner is filled while work goes on, and what is promised of it. */
#include "tests/support/packed_rule.h"
#include "tests/support/replicas.h"

#include "muster/error.h"

/* A primary without a backup, and a variable in it. */
static void begin_one(struct fixture *f, const struct mu__var_open *open)
{
    change_view(f, f->servers[0], NULL, NULL);
    open_as(f, f->servers[0], open);
}

/* Server 2 is to be filled, until a frame of this kind would be the next to arrive. */
static void fill_until(struct fixture *f, uint16_t kind)
{
    const struct mu__partition_view view = {.number = ++f->number,
                                            .primary = replica_of(f->servers[0]),
                                            .learner = replica_of(f->servers[2])};

    set_view(f, f->servers[2], view);
    set_view(f, f->servers[0], view);
    net_run_to_frame(&f->net, kind);
    f->generation = mu__generation_of(f->number); /* of which the client hears soon */
}

/* The learner becomes the backup, and then the only one. */
static void promote_learner(struct fixture *f)
{
    net_settle(&f->net);
    assert_int_equal(f->news, MU__REPLICA_LEVEL);
    change_view(f, f->servers[0], f->servers[2], NULL);
    net_crash(f->servers[0]);
    change_view(f, f->servers[2], NULL, NULL);
}

/* As the next write of the client, while others are under way. */
static uint64_t add_meanwhile(struct fixture *f)
{
    const struct mu__var_write write = write_of(f, ++f->effect);

    say(f->client, MU__VARIABLES, f->servers[0], MU__VAR_WRITE, &write);
    return write.token;
}

/* ---- The whole of it ---- */

TEST_ON(test_a_learner_that_is_lost_makes_room, struct fixture *f, set_up, tear_down)
{
    begin_one(f, &large);
    fill_until(f, MU__FILL_TAKEN);
    net_crash(f->servers[2]);
    net_settle(&f->net);
    assert_int_equal(f->news, MU__REPLICA_LOST);
    change_view(f, f->servers[0], NULL, f->servers[1]);
    assert_int_equal(f->news, MU__REPLICA_LEVEL);
}

/* It has a write of which nobody else knows. */
TEST_ON(test_a_former_primary_is_filled_anew, struct fixture *f, set_up, tear_down)
{
    begin_two(f);
    f->servers[1]->deaf = true;
    assert_null(answer_to(f, add_once(f, f->servers[0])));
    f->servers[1]->deaf = false;
    f->number++;
    set_view(f, f->servers[1],
             (struct mu__partition_view){.number = f->number,
                                         .primary = replica_of(f->servers[1])});
    change_view(f, f->servers[1], NULL, f->servers[0]);
    assert_int_equal(f->news, MU__REPLICA_LEVEL);
    change_view(f, f->servers[1], f->servers[0], NULL);
    net_crash(f->servers[1]);
    change_view(f, f->servers[0], NULL, NULL);
    assert_content(f, f->servers[0], 0);
}

TEST_ON(test_a_learner_is_filled_and_promoted, struct fixture *f, set_up, tear_down)
{
    change_view(f, f->servers[0], NULL, NULL);
    open_variable(f, f->servers[0]);
    assert_int_equal(need_answer(f, add_once(f, f->servers[0]))->code, 0);
    change_view(f, f->servers[0], NULL, f->servers[2]);
    assert_int_equal(f->generation, mu__generation_of(2));
    assert_int_equal(f->news, MU__REPLICA_LEVEL);
    assert_int_equal(f->news_number, 2);
    assert_int_equal(need_answer(f, add_once(f, f->servers[0]))->code, 0);
    change_view(f, f->servers[0], f->servers[2], NULL);
    assert_int_equal(f->generation, mu__generation_of(2));
    assert_int_equal(need_answer(f, add_once(f, f->servers[0]))->code, 0);
    net_crash(f->servers[0]);
    change_view(f, f->servers[2], NULL, NULL);
    assert_content(f, f->servers[2], 3);
    assert_int_equal(need_answer(f, post_write(f, f->servers[2], 2))->code, 0);
    assert_content(f, f->servers[2], 3);
}

/* From the moment at which the chief is asked. */
TEST_ON(test_a_level_learner_is_waited_for, struct fixture *f, set_up, tear_down)
{
    uint64_t write;

    change_view(f, f->servers[0], NULL, NULL);
    open_variable(f, f->servers[0]);
    change_view(f, f->servers[0], NULL, f->servers[2]);
    assert_int_equal(f->news, MU__REPLICA_LEVEL);
    f->servers[2]->deaf = true;
    write = add_once(f, f->servers[0]);
    assert_null(answer_to(f, write));
    net_crash(f->servers[2]);
    net_settle(&f->net);
    assert_int_equal(f->news, MU__REPLICA_LOST);
    change_view(f, f->servers[0], NULL, NULL);
    assert_int_equal(need_answer(f, write)->code, 0);
}

TEST_ON(test_a_learner_is_never_promoted, struct fixture *f, set_up, tear_down)
{
    change_view(f, f->servers[0], NULL, NULL);
    open_variable(f, f->servers[0]);
    f->servers[2]->deaf = true;
    change_view(f, f->servers[0], NULL, f->servers[2]);
    f->servers[2]->deaf = false;
    net_crash(f->servers[0]);
    change_view(f, f->servers[2], NULL, NULL);
    assert_int_equal(f->generation, mu__generation_of(2));
    assert_null(answer_to(f, post_read(f, f->servers[2])));
}

/* ---- What is filled ---- */

TEST_ON(test_windows_are_filled, struct fixture *f, set_up, tear_down)
{
    begin_one(f, &small);
    assert_int_equal(need_answer(f, add_once(f, f->servers[0]))->code, 0);
    fence(f, f->servers[0], 77);
    assert_int_equal(need_answer(f, post_effect(f, f->servers[0], 77, 1))->code, 0);
    change_view(f, f->servers[0], NULL, f->servers[2]);
    promote_learner(f);
    assert_content(f, f->servers[2], 2);
    assert_int_equal(need_answer(f, post_write(f, f->servers[2], 1))->code, 0);
    assert_content(f, f->servers[2], 2);
    assert_int_equal(need_answer(f, post_effect(f, f->servers[2], 77, 1))->code, 0);
    assert_content(f, f->servers[2], 2);
    assert_int_equal(need_answer(f, post_effect(f, f->servers[2], 77, 2))->code, 0);
    assert_content(f, f->servers[2], 3);
    assert_int_equal(need_answer(f, post_effect(f, f->servers[2], 78, 1))->code,
                     MU_EABORTED);
}

/* To bytes that the learner has, and to others. */
TEST_ON(test_writes_during_a_fill_count, struct fixture *f, set_up, tear_down)
{
    begin_one(f, &large);
    assert_int_equal(need_answer(f, add_once(f, f->servers[0]))->code, 0);
    fill_until(f, MU__FILL_TAKEN);
    (void)add_meanwhile(f);
    f->offset = LARGE_BYTES - 8 * ELEMENTS;
    (void)add_meanwhile(f);
    promote_learner(f);
    assert_content(f, f->servers[2], 1);
    f->offset = 0;
    assert_content(f, f->servers[2], 2);
}

static void apply_ones(struct fixture *f, struct net_process *server,
                       struct mu__view rule)
{
    static const double gradient[ELEMENTS] = {1, 1, 1, 1};
    struct mu__var_write write = write_of(f, ++f->effect);

    write.operation = MU__WRITE_GRADIENT;
    write.data.data = (const uint8_t *)gradient;
    write.rule = rule;
    say(f->client, MU__VARIABLES, server, MU__VAR_WRITE, &write);
    net_settle(&f->net);
    assert_int_equal(need_answer(f, write.token)->code, 0);
}

/* What a variable is after a gradient at the first server and another one at the one that
 * was filled from it. */
static double apply_across_a_fill(struct fixture *f, struct mu__view rule)
{
    struct mu__var_open open = small;
    double value;

    open.dtype = MU_F64;
    begin_one(f, &open);
    apply_ones(f, f->servers[0], rule);
    change_view(f, f->servers[0], NULL, f->servers[2]);
    promote_learner(f);
    apply_ones(f, f->servers[2], rule);
    memcpy(&value, need_answer(f, post_read(f, f->servers[2]))->data, sizeof value);
    return value;
}

TEST_ON(test_slots_are_filled, struct fixture *f, set_up, tear_down)
{
    assert_true(apply_across_a_fill(f, packed_momentum(1, 0.5)) == -1 - 1.5);
}

/* Each of Adam's first steps is as large as the rate, if it is counted right. */
TEST_ON(test_the_step_is_filled, struct fixture *f, set_up, tear_down)
{
    const struct mu__rule adam = mu__rule_defaults(MU__RULE_ADAM);
    double value = apply_across_a_fill(f, packed(&adam));

    assert_true(value < -0.00199999 && value > -0.00200001);
}

/* Its creator is lost while it is made anew. */
TEST_ON(test_a_shard_removed_during_a_fill, struct fixture *f, set_up, tear_down)
{
    struct mu__var_open anew = large;

    begin_one(f, &large);
    anew.replaces = f->variable;
    open_as(f, f->servers[0], &small);
    assert_int_equal(need_answer(f, add_once(f, f->servers[0]))->code, 0);
    fill_until(f, MU__FILL_TAKEN);
    say_open(f, f->servers[0], anew);
    net_link_down(f->servers[0], f->client);
    promote_learner(f);
    assert_content(f, f->servers[2], 1);
}

/* The sums of records are not compared before the last piece. */
TEST_ON(test_a_record_that_is_missing_in_a_fill, struct fixture *f, set_up, tear_down)
{
    begin_one(f, &large);
    fill_until(f, MU__FILL_TAKEN);
    (void)add_meanwhile(f);
    net_run_to_frame(&f->net, MU__VAR_WRITE);
    f->servers[2]->deaf = true;
    assert_true(net_step(&f->net));
    f->servers[2]->deaf = false;
    (void)add_meanwhile(f);
    net_settle(&f->net);
    assert_int_equal(f->news, MU__REPLICA_DIVERGED);
}

/* ---- A primary that lies ---- */

static const uint8_t four[8] = {4};
static const uint8_t content[64] = {0};

/* What it says in a fill; 0 stands for the partition, its view and a shard that is there.
 * One of the bodies. */
static const struct lie {
    uint16_t kind;
    struct mu__fill_shard shard;
    struct mu__fill_data data;
    struct mu__fill_end end;
} lies[] = {
    {.kind = MU__FILL_SHARD,
     .shard = {.name = {"x", 1},
               .dtype = MU_I64,
               .dims = {four, 8},
               .shard = 1,
               .shards = 1,
               .variable = 9}},
    {.kind = MU__FILL_SHARD,
     .shard =
         {.name = {"x", 1}, .dtype = 99, .dims = {four, 8}, .shards = 1, .variable = 9}},
    {.kind = MU__FILL_SHARD,
     .shard = {.name = {"x", 1},
               .dtype = MU_I64,
               .dims = {four, 7},
               .shards = 1,
               .variable = 9}},
    {.kind = MU__FILL_SHARD,
     .shard = {.name = {"x", 1}, .dtype = MU_I64, .dims = {four, 8}, .shards = 1}},
    {.kind = MU__FILL_DATA, .data = {.offset = 1, .data = {content, 64}}},
    {.kind = MU__FILL_DATA, .data = {.offset = UINT64_MAX, .data = {content, 8}}},
    {.kind = MU__FILL_END, .end = {.record = 1000}},
};

static void tell_lie(struct fixture *f, const struct lie *lie)
{
    struct mu__fill_shard shard = lie->shard;
    struct mu__fill_data data = lie->data;
    struct mu__fill_end end = lie->end;

    shard.partition = data.partition = end.partition = PARTITION;
    shard.view = data.view = end.view = f->number;
    data.variable = f->variable;
    say(f->servers[0], MU__PS, f->servers[2], lie->kind,
        lie->kind == MU__FILL_SHARD  ? (const void *)&shard
        : lie->kind == MU__FILL_DATA ? (const void *)&data
                                     : &end);
    net_settle(&f->net);
}

/* The learner refuses to go on, and the chief hears that it has to be filled anew. */
TEST_ON(test_lies_in_a_fill_are_refused, struct fixture *f, set_up, tear_down)
{
    begin_one(f, &small);
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        change_view(f, f->servers[0], NULL, f->servers[2]);
        assert_int_equal(f->news, MU__REPLICA_LEVEL);
        tell_lie(f, &lies[i]);
        assert_int_equal(f->news, MU__REPLICA_DIVERGED);
        change_view(f, f->servers[0], NULL, NULL);
    }
}

/* From a server that is not the primary they mean nothing. */
TEST_ON(test_fills_by_others_are_ignored, struct fixture *f, set_up, tear_down)
{
    struct mu__fill_data data = {.partition = PARTITION, .data = {content, 16}};

    begin_one(f, &small);
    change_view(f, f->servers[0], NULL, f->servers[2]);
    data.view = f->number;
    data.variable = f->variable;
    say(f->servers[1], MU__PS, f->servers[2], MU__FILL_DATA, &data);
    net_settle(&f->net);
    assert_int_equal(f->news, MU__REPLICA_LEVEL);
}

/* ---- When it is level ---- */

/* A write was answered without it, and it has not got its record. */
TEST_ON(test_what_was_answered_makes_level, struct fixture *f, set_up, tear_down)
{
    uint64_t write;

    begin_one(f, &small);
    fill_until(f, MU__FILL_END);
    write = add_meanwhile(f);
    assert_true(net_step(&f->net));
    f->servers[2]->deaf = true;
    net_settle(&f->net);
    assert_int_equal(need_answer(f, write)->code, 0);
    assert_int_not_equal(f->news, MU__REPLICA_LEVEL);
}

TEST_PROGRAM()
