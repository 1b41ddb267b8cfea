/* A partition that is moved: a learner is filled beside the backup, and a primary hands
 * over to its backup. */
#include "tests/support/replicas.h"

/* ---- A learner beside the backup ---- */

/* Server 2 is to be filled, until a frame of this kind would be the next to arrive. */
static void fill_beside_until(struct fixture *f, uint16_t kind)
{
    const struct mu__partition_view view =
        next_view(f, f->servers[0], f->servers[1], f->servers[2]);

    set_view(f, f->servers[2], view);
    set_view(f, f->servers[1], view);
    set_view(f, f->servers[0], view);
    net_run_to_frame(&f->net, kind);
    f->generation = mu__generation_of(f->number); /* of which the client hears soon */
}

static void begin_large(struct fixture *f)
{
    change_view(f, f->servers[0], f->servers[1], NULL);
    open_as(f, f->servers[0], &large);
}

static uint64_t add_meanwhile(struct fixture *f)
{
    const struct mu__var_write write = write_of(f, ++f->effect);

    say(f->client, MU__VARIABLES, f->servers[0], MU__VAR_WRITE, &write);
    return write.token;
}

static void assert_added(struct fixture *f, struct net_process *server)
{
    assert_int_equal(need_answer(f, add_once(f, server))->code, 0);
}

TEST_ON(test_a_learner_takes_the_place_of_the_backup, struct fixture *f, set_up,
        tear_down)
{
    begin_two(f);
    assert_added(f, f->servers[0]);
    change_view(f, f->servers[0], f->servers[1], f->servers[2]);
    assert_int_equal(f->news, MU__REPLICA_LEVEL);
    assert_true(f->learner_news);
    assert_int_equal(f->generation, mu__generation_of(2));
    assert_added(f, f->servers[0]);
    change_view(f, f->servers[0], f->servers[2], NULL);
    set_view(f, f->servers[1], next_view(f, f->servers[0], f->servers[2], NULL));
    f->number--;
    assert_int_equal(f->generation, mu__generation_of(2));
    assert_added(f, f->servers[0]);
    net_crash(f->servers[0]);
    change_view(f, f->servers[2], NULL, NULL);
    assert_content(f, f->servers[2], 3);
}

/* Which has all that was answered, whatever the learner has. */
TEST_ON(test_the_backup_is_there_during_a_fill, struct fixture *f, set_up, tear_down)
{
    uint64_t write;

    begin_large(f);
    fill_beside_until(f, MU__FILL_TAKEN);
    write = add_meanwhile(f);
    net_run_to_frame(&f->net, MU__VAR_WRITTEN);
    net_crash(f->servers[0]);
    net_crash(f->servers[2]);
    f->number++;
    change_view(f, f->servers[1], NULL, NULL);
    assert_null(answer_to(f, write));
    assert_content(f, f->servers[1], 1);
}

TEST_ON(test_answers_wait_for_the_backup_during_a_fill, struct fixture *f, set_up,
        tear_down)
{
    uint64_t write;

    begin_large(f);
    fill_beside_until(f, MU__FILL_TAKEN);
    f->servers[1]->deaf = true;
    write = add_meanwhile(f);
    net_settle(&f->net);
    assert_int_equal(f->news, MU__REPLICA_LEVEL);
    assert_null(answer_to(f, write));
}

TEST_ON(test_answers_wait_for_a_level_learner_and_the_backup, struct fixture *f, set_up,
        tear_down)
{
    uint64_t write;

    begin_two(f);
    change_view(f, f->servers[0], f->servers[1], f->servers[2]);
    f->servers[2]->deaf = true;
    write = add_once(f, f->servers[0]);
    assert_null(answer_to(f, write));
    net_crash(f->servers[2]);
    net_settle(&f->net);
    assert_int_equal(f->news, MU__REPLICA_LOST);
    assert_true(f->learner_news);
    assert_null(answer_to(f, write));
    change_view(f, f->servers[0], f->servers[1], NULL);
    assert_int_equal(need_answer(f, write)->code, 0);
}

TEST_ON(test_a_learner_that_is_lost_delays_nothing, struct fixture *f, set_up, tear_down)
{
    begin_large(f);
    fill_beside_until(f, MU__FILL_TAKEN);
    net_crash(f->servers[2]);
    net_settle(&f->net);
    assert_int_equal(f->news, MU__REPLICA_LOST);
    assert_true(f->learner_news);
    assert_added(f, f->servers[0]);
    change_view(f, f->servers[0], f->servers[1], NULL);
    assert_added(f, f->servers[0]);
    net_crash(f->servers[0]);
    change_view(f, f->servers[1], NULL, NULL);
    assert_content(f, f->servers[1], 2);
}

/* The learner is filled on, from the beginning. */
TEST_ON(test_a_backup_that_is_lost_during_a_fill, struct fixture *f, set_up, tear_down)
{
    uint64_t write;

    begin_large(f);
    fill_beside_until(f, MU__FILL_TAKEN);
    net_crash(f->servers[1]);
    net_run_to_frame(&f->net, MU__REPLICA_NEWS);
    write = add_meanwhile(f);
    net_settle(&f->net);
    assert_null(answer_to(f, write));
    change_view(f, f->servers[0], NULL, f->servers[2]);
    assert_int_equal(f->news, MU__REPLICA_LEVEL);
    f->effect--;
    assert_added(f, f->servers[0]);
    change_view(f, f->servers[0], f->servers[2], NULL);
    net_crash(f->servers[0]);
    change_view(f, f->servers[2], NULL, NULL);
    assert_content(f, f->servers[2], 1);
}

/* What is of the moment is forgotten by all three: the same open comes to the same. */
TEST_ON(test_a_backup_forgets_with_its_primary, struct fixture *f, set_up, tear_down)
{
    struct mu__var_open open = small;

    open.name = (struct mu__view){"other", 5};
    begin_two(f);
    say_open(f, f->servers[0], open);
    net_settle(&f->net);
    assert_int_equal(need_answer(f, f->token)->code, 0);
    change_view(f, f->servers[0], f->servers[1], f->servers[2]);
    say_open(f, f->servers[0], open);
    net_settle(&f->net);
    assert_int_equal(need_answer(f, f->token)->code, 0);
    assert_added(f, f->servers[0]);
    assert_int_equal(f->news, MU__REPLICA_LEVEL);
}

/* ---- A handover ---- */

static void tell_two(struct fixture *f, struct net_process *primary,
                     struct net_process *backup, bool handover)
{
    struct mu__partition_view view = next_view(f, primary, backup, NULL);

    view.handover = handover;
    set_view(f, primary, view);
    set_view(f, backup, view);
    net_settle(&f->net);
}

TEST_ON(test_a_primary_hands_over, struct fixture *f, set_up, tear_down)
{
    uint64_t write;
    uint64_t read;

    begin_two(f);
    assert_added(f, f->servers[0]);
    tell_two(f, f->servers[0], f->servers[1], true);
    assert_int_equal(f->news, MU__REPLICA_READY);
    assert_int_equal(f->news_number, 2);
    f->news = 0;
    write = add_once(f, f->servers[0]);
    read = post_read(f, f->servers[0]);
    net_run_for(&f->net, 1000);
    assert_null(answer_to(f, write));
    assert_null(answer_to(f, read));
    tell_two(f, f->servers[1], f->servers[0], false);
    assert_int_equal(f->generation, mu__generation_of(3));
    assert_content(f, f->servers[1], 1);
    assert_int_equal(need_answer(f, post_write(f, f->servers[1], f->effect))->code, 0);
    assert_added(f, f->servers[1]);
    assert_null(answer_to(f, write));
    assert_int_equal(f->spare_number, 3);
    net_crash(f->servers[1]);
    change_view(f, f->servers[0], NULL, NULL);
    assert_content(f, f->servers[0], 3);
}

/* It does not live for long, and the former primary is it again. */
TEST_ON(test_a_handover_that_only_the_former_backup_hears_of, struct fixture *f, set_up,
        tear_down)
{
    begin_two(f);
    tell_two(f, f->servers[0], f->servers[1], true);
    net_link_down(f->servers[0], f->servers[1]);
    set_view(f, f->servers[1], next_view(f, f->servers[1], f->servers[0], NULL));
    net_settle(&f->net);
    assert_null(answer_to(f, add_once(f, f->servers[1])));
    net_crash(f->servers[1]);
    change_view(f, f->servers[0], NULL, NULL);
    assert_content(f, f->servers[0], 0);
    assert_added(f, f->servers[0]);
}

/* A record is on its way, and does not arrive. */
TEST_ON(test_a_handover_waits_for_the_backup, struct fixture *f, set_up, tear_down)
{
    begin_two(f);
    f->servers[1]->deaf = true;
    assert_null(answer_to(f, add_once(f, f->servers[0])));
    tell_two(f, f->servers[0], f->servers[1], true);
    assert_int_not_equal(f->news, MU__REPLICA_READY);
}

TEST_ON(test_a_handover_ends_with_the_backup, struct fixture *f, set_up, tear_down)
{
    uint64_t write;

    begin_two(f);
    tell_two(f, f->servers[0], f->servers[1], true);
    write = add_once(f, f->servers[0]);
    net_crash(f->servers[1]);
    net_settle(&f->net);
    assert_int_equal(f->news, MU__REPLICA_LOST);
    assert_null(answer_to(f, write));
    change_view(f, f->servers[0], NULL, NULL);
    assert_int_equal(f->generation, mu__generation_of(3));
    assert_added(f, f->servers[0]);
    assert_content(f, f->servers[0], 1);
}

TEST_ON(test_a_handover_that_is_called_off, struct fixture *f, set_up, tear_down)
{
    begin_two(f);
    tell_two(f, f->servers[0], f->servers[1], true);
    assert_null(answer_to(f, add_once(f, f->servers[0])));
    tell_two(f, f->servers[0], f->servers[1], false);
    assert_int_equal(f->generation, mu__generation_of(3));
    assert_added(f, f->servers[0]);
    assert_content(f, f->servers[0], 1);
}

/* Another chief hears of it, too. Meanwhile nothing is taken: the former one may have
 * told the backup already. */
TEST_ON(test_a_handover_outlives_the_chief, struct fixture *f, set_up, tear_down)
{
    uint64_t write;

    begin_two(f);
    tell_two(f, f->servers[0], f->servers[1], true);
    f->news = 0;
    net_link_down(f->servers[0], f->chief);
    write = add_once(f, f->servers[0]);
    net_run_for(&f->net, 1000);
    assert_null(answer_to(f, write));
    net_link_up(f->servers[0], f->chief);
    net_settle(&f->net);
    assert_int_equal(f->news, MU__REPLICA_READY);
}

TEST_PROGRAM()
