/* Copies of partitions: records to a backup, the loss of either, and views. */
#include "tests/support/replicas.h"

/* ---- Records ---- */

TEST_ON(test_a_write_is_answered_when_the_backup_has_it, struct fixture *f, set_up,
        tear_down)
{
    uint64_t write;
    uint64_t read;

    begin_two(f);
    f->servers[1]->deaf = true;
    write = add_once(f, f->servers[0]);
    read = post_read(f, f->servers[0]);
    assert_null(answer_to(f, write));
    assert_null(answer_to(f, read));
    f->servers[1]->deaf = false;
    assert_null(answer_to(f, add_once(f, f->servers[0])));
    assert_int_equal(f->news, MU__REPLICA_DIVERGED);
    change_view(f, f->servers[0], NULL, NULL);
    assert_int_equal(need_answer(f, write)->code, 0);
    assert_int_equal(need_answer(f, read)->data[0], 1);
    assert_content(f, f->servers[0], 2);
}

TEST_ON(test_what_was_answered_survives_the_primary, struct fixture *f, set_up, tear_down)
{
    begin_two(f);
    for (int i = 0; i < 3; i++)
        assert_int_equal(need_answer(f, add_once(f, f->servers[0]))->code, 0);
    net_crash(f->servers[0]);
    change_view(f, f->servers[1], NULL, NULL);
    assert_int_equal(f->generation, mu__generation_of(2));
    assert_content(f, f->servers[1], 3);
    assert_int_equal(need_answer(f, post_write(f, f->servers[1], f->effect))->code, 0);
    assert_content(f, f->servers[1], 3);
    assert_int_equal(need_answer(f, add_once(f, f->servers[1]))->code, 0);
    assert_content(f, f->servers[1], 4);
}

/* The backup has it, and the client has not heard so. */
TEST_ON(test_a_write_that_is_sent_again_counts_once, struct fixture *f, set_up, tear_down)
{
    uint64_t write;

    begin_two(f);
    f->client->deaf = true;
    write = add_once(f, f->servers[0]);
    f->client->deaf = false;
    assert_null(answer_to(f, write));
    net_crash(f->servers[0]);
    change_view(f, f->servers[1], NULL, NULL);
    write = post_write(f, f->servers[1], f->effect);
    assert_int_equal(need_answer(f, write)->code, 0);
    assert_content(f, f->servers[1], 1);
}

TEST_ON(test_a_lost_backup_is_reported_and_waited_for, struct fixture *f, set_up,
        tear_down)
{
    uint64_t write;

    begin_two(f);
    net_crash(f->servers[1]);
    net_settle(&f->net);
    assert_int_equal(f->news, MU__REPLICA_LOST);
    assert_int_equal(f->news_number, 1);
    write = add_once(f, f->servers[0]);
    net_run_for(&f->net, 5000);
    assert_null(answer_to(f, write));
    change_view(f, f->servers[0], NULL, NULL);
    assert_int_equal(need_answer(f, write)->code, 0);
    assert_int_equal(f->generation, mu__generation_of(1));
    assert_content(f, f->servers[0], 1);
}

/* What only one server has is neither acknowledged nor read. */
TEST_ON(test_a_strict_primary_waits_for_another_backup, struct fixture *f, set_up,
        tear_down)
{
    uint64_t tokens[3];

    f->strict = true;
    begin_two(f);
    assert_int_equal(need_answer(f, add_once(f, f->servers[0]))->code, 0);
    assert_content(f, f->servers[0], 1);
    f->servers[1]->deaf = true;
    tokens[0] = add_once(f, f->servers[0]);
    net_crash(f->servers[1]);
    change_view(f, f->servers[0], NULL, NULL);
    tokens[1] = post_read(f, f->servers[0]);
    tokens[2] = add_once(f, f->servers[0]);
    net_run_for(&f->net, 5000);
    for (size_t i = 0; i < 3; i++)
        assert_null(answer_to(f, tokens[i]));

    f->servers[2]->deaf = true;
    change_view(f, f->servers[0], NULL, f->servers[2]);
    tokens[0] = post_write(f, f->servers[0], f->effect - 1);
    net_run_for(&f->net, 500);
    assert_null(answer_to(f, tokens[0]));
    f->servers[2]->deaf = false;
    change_view(f, f->servers[0], NULL, NULL);
    change_view(f, f->servers[0], NULL, f->servers[2]);
    tokens[0] = post_write(f, f->servers[0], f->effect - 1);
    net_settle(&f->net);
    assert_int_equal(need_answer(f, tokens[0])->code, 0);
    assert_content(f, f->servers[0], 2);
}

/* From then on a single server is enough. */
TEST_ON(test_strictness_ends, struct fixture *f, set_up, tear_down)
{
    uint64_t write;

    f->strict = true;
    begin_two(f);
    net_crash(f->servers[1]);
    change_view(f, f->servers[0], NULL, NULL);
    write = add_once(f, f->servers[0]);
    net_run_for(&f->net, 500);
    assert_null(answer_to(f, write));
    f->strict = false;
    change_view(f, f->servers[0], NULL, NULL);
    assert_int_equal(need_answer(f, write)->code, 0);
    assert_content(f, f->servers[0], 1);
}

/* The former primary is alive, and knows nothing of it. */
TEST_ON(test_a_cut_off_primary_completes_nothing, struct fixture *f, set_up, tear_down)
{
    uint64_t write;
    uint64_t read;

    begin_two(f);
    net_link_down(f->servers[0], f->chief);
    set_view(f, f->servers[1],
             (struct mu__partition_view){.number = ++f->number,
                                         .primary = replica_of(f->servers[1])});
    net_settle(&f->net);
    f->generation = mu__generation_of(1);
    write = add_once(f, f->servers[0]);
    read = post_read(f, f->servers[0]);
    net_run_for(&f->net, 5000);
    assert_null(answer_to(f, write));
    assert_null(answer_to(f, read));
    f->generation = mu__generation_of(2);
    assert_content(f, f->servers[1], 0);
}

/* Nor does it read, without a link to anybody who would know. */
TEST_ON(test_a_primary_without_news_reads_nothing, struct fixture *f, set_up, tear_down)
{
    const struct mu__views_set nothing = {.strict = f->strict};
    uint64_t read;

    begin_two(f);
    net_link_down(f->servers[0], f->servers[1]);
    net_settle(&f->net);
    assert_content(f, f->servers[0], 0);
    net_link_down(f->servers[0], f->chief);
    read = post_read(f, f->servers[0]);
    assert_null(answer_to(f, read));
    net_link_up(f->servers[0], f->chief);
    net_run_for(&f->net, 10);
    assert_null(answer_to(f, read)); /* a newer view may be on its way */
    say(f->chief, MU__VIEWS, f->servers[0], MU__VIEWS_SET, &nothing);
    net_run_for(&f->net, 10);
    assert_int_equal(need_answer(f, read)->code, 0);
}

TEST_ON(test_requests_of_another_generation_are_dropped, struct fixture *f, set_up,
        tear_down)
{
    begin_two(f);
    f->generation = mu__generation_of(7);
    assert_null(answer_to(f, add_once(f, f->servers[0])));
    assert_null(answer_to(f, post_read(f, f->servers[0])));
    f->generation = mu__generation_of(1);
    assert_content(f, f->servers[0], 0);
}

TEST_ON(test_a_backup_serves_nobody, struct fixture *f, set_up, tear_down)
{
    begin_two(f);
    assert_null(answer_to(f, post_read(f, f->servers[1])));
    assert_null(answer_to(f, add_once(f, f->servers[1])));
    assert_null(answer_to(f, add_once(f, f->servers[2])));
}

/* A write as record 3, after those that have made the variable. */
static void say_record(struct fixture *f, struct net_process *from, uint64_t effect)
{
    struct mu__var_write write = write_of(f, effect);

    write.generation = f->number;
    write.record = 3;
    say(from, MU__PS, f->servers[1], MU__VAR_WRITE, &write);
    net_settle(&f->net);
}

TEST_ON(test_records_of_others_are_ignored, struct fixture *f, set_up, tear_down)
{
    begin_two(f);
    say_record(f, f->servers[2], 1);
    net_crash(f->servers[0]);
    change_view(f, f->servers[1], NULL, NULL);
    assert_content(f, f->servers[1], 0);
}

/* The backup applies another write than the primary. */
static void assert_difference_is_reported(struct fixture *f)
{
    uint64_t write;

    f->servers[1]->deaf = true;
    write = add_once(f, f->servers[0]);
    f->servers[1]->deaf = false;
    f->offset = 8;
    say_record(f, f->servers[0], f->effect);
    assert_int_equal(f->news, MU__REPLICA_DIVERGED);
    assert_null(answer_to(f, write));
}

TEST_ON(test_a_copy_that_differs_is_reported, struct fixture *f, set_up, tear_down)
{
    begin_two(f);
    assert_difference_is_reported(f);
}

TEST_ON(test_a_filled_copy_that_differs_is_reported, struct fixture *f, set_up, tear_down)
{
    change_view(f, f->servers[0], NULL, NULL);
    open_variable(f, f->servers[0]);
    change_view(f, f->servers[0], NULL, f->servers[1]);
    assert_int_equal(f->news, MU__REPLICA_LEVEL);
    assert_difference_is_reported(f);
}

/* The backup hears of the fence as a record, and of nothing else. */
TEST_ON(test_effects_count_once, struct fixture *f, set_up, tear_down)
{
    begin_two(f);
    fence(f, f->servers[0], 77);
    assert_int_equal(need_answer(f, post_effect(f, f->servers[0], 77, 1))->code, 0);
    net_crash(f->servers[0]);
    change_view(f, f->servers[1], NULL, NULL);
    assert_int_equal(need_answer(f, post_effect(f, f->servers[1], 77, 1))->code, 0);
    assert_content(f, f->servers[1], 1);
    assert_int_equal(need_answer(f, post_effect(f, f->servers[1], 77, 2))->code, 0);
    assert_content(f, f->servers[1], 2);
}

/* Who creates a shard is told so by the next primary, too. */
TEST_ON(test_creators_are_forgotten, struct fixture *f, set_up, tear_down)
{
    struct mu__var_open open = small;

    open.name = (struct mu__view){"other", 5};
    begin_two(f);
    say_open(f, f->servers[0], open);
    net_settle(&f->net);
    assert_int_equal(need_answer(f, f->token)->code, 0);
    net_crash(f->servers[0]);
    change_view(f, f->servers[1], NULL, NULL);
    say_open(f, f->servers[1], open);
    net_settle(&f->net);
    assert_int_equal(need_answer(f, f->token)->code, 0);
}

/* ---- Views ---- */

TEST_ON(test_older_views_are_ignored, struct fixture *f, set_up, tear_down)
{
    begin_two(f);
    change_view(f, f->servers[0], NULL, NULL);
    set_view(f, f->servers[0],
             (struct mu__partition_view){.number = 1,
                                         .primary = replica_of(f->servers[1])});
    assert_content(f, f->servers[0], 0);
}

static void say_view(struct fixture *f, struct net_process *from, uint32_t actor,
                     uint16_t kind)
{
    uint8_t bytes[MU__VIEW_BYTES];
    const struct mu__views_set views = {.views = {bytes, sizeof bytes}};
    const struct mu__replica_view view = {.view = views.views};
    const struct mu__partition_view other = {.partition = PARTITION,
                                             .number = 50,
                                             .store_id = 3,
                                             .primary = replica_of(f->servers[2])};

    (void)mu__views_put(bytes, &other);
    say(from, actor, f->servers[0], kind,
        kind == MU__VIEWS_SET ? (const void *)&views : &view);
    net_settle(&f->net);
}

TEST_ON(test_views_of_strangers_are_ignored, struct fixture *f, set_up, tear_down)
{
    begin_two(f);
    say_view(f, f->client, MU__VIEWS, MU__VIEWS_SET);
    say_view(f, f->servers[1], MU__PS, MU__VIEWS_SET);
    say_view(f, f->client, MU__PS, MU__REPLICA_VIEW);
    assert_content(f, f->servers[0], 0);
}

/* By another server, which has heard of it from the chief. */
TEST_ON(test_a_primary_learns_that_it_was_replaced, struct fixture *f, set_up, tear_down)
{
    begin_two(f);
    say_view(f, f->servers[1], MU__PS, MU__REPLICA_VIEW);
    assert_null(answer_to(f, post_read(f, f->servers[0])));
}

TEST_ON(test_another_chief_hears_what_is_held, struct fixture *f, set_up, tear_down)
{
    begin_two(f);
    f->held = 0;
    net_restart(f->chief);
    net_settle(&f->net);
    assert_int_equal(f->held, 2);
}

/* Only a chief says so, and another one hears it. */
TEST_ON(test_another_chief_hears_who_is_drained, struct fixture *f, set_up, tear_down)
{
    const struct mu__views_get body = {.draining = true};

    begin_two(f);
    say(f->client, MU__VIEWS, f->servers[1], MU__VIEWS_GET, &body);
    say(f->chief, MU__VIEWS, f->servers[1], MU__VIEWS_GET, &(struct mu__views_get){0});
    net_settle(&f->net);
    assert_false(f->draining);
    say(f->chief, MU__VIEWS, f->servers[1], MU__VIEWS_GET, &body);
    net_settle(&f->net);
    assert_true(f->draining);
    f->draining = false;
    net_restart(f->chief);
    net_settle(&f->net);
    assert_true(f->draining);
}

/* Its number would be noted for nobody. */
TEST_ON(test_a_number_without_an_origin_is_refused, struct fixture *f, set_up, tear_down)
{
    struct mu__var_write write;
    struct mu__effect_write effect;

    begin_two(f);
    write = write_of(f, 1);
    write.origin = 0;
    say(f->client, MU__VARIABLES, f->servers[0], MU__VAR_WRITE, &write);
    net_settle(&f->net);
    assert_int_equal(need_answer(f, write.token)->code, MU_EINVALID);
    effect = (struct mu__effect_write){.token = ++f->token,
                                       .batch = f->token,
                                       .variable = f->variable,
                                       .operation = MU__WRITE_ADD,
                                       .data = {ones, sizeof ones},
                                       .last = true,
                                       .own = true,
                                       .effect = 1,
                                       .partition = PARTITION,
                                       .generation = f->generation};
    say(f->client, MU__VARIABLES, f->servers[0], MU__OWN_WRITE, &effect);
    net_settle(&f->net);
    assert_int_equal(need_answer(f, effect.token)->code, MU_EINVALID);
    assert_content(f, f->servers[0], 0);
}

TEST_PROGRAM()
