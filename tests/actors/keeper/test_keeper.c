/* What a keeper has: it stays in its file as long as its actor, and has bounds. */
#include "actors/keep.h"
#include "actors/keeper/keeper_items.h"
#include "actors/packing.h"
#include "tests/support/test.h"
#include "tests/support/users/kept_net.h"

/* ---- the disk ---- */

TEST_ON(test_a_full_disk_makes_calls_wait, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_ask(f, "add", 5, 1);
    sim_storage_limit(f->storage, f->storage->size + 10);
    kept_net_ask(f, "add", 2, 2);
    net_run_for(kept_net_net(f), 500);
    assert_null(kept_net_answer(f, 2));
    sim_storage_limit(f->storage, 0);
    net_run_for(kept_net_net(f), 500);
    kept_net_expect(f, 2, 7);
}

/* ---- stopped actors, and room ---- */

/* Another actor of node 1, with so many bytes of state. */
static void keep_other(struct kept_net *f, size_t bytes)
{
    struct office *office = user_net_office(f->users, 1);
    const struct peer *chief = mu__map_get(&office->peers, f->chief->incarnation);
    const struct mu__keep_fence fence = {
        .name = mu__view_str("other"), .epoch = 3, .owner = office->config.incarnation};
    struct mu__keep_item item = {
        .name = fence.name, .epoch = 3, .number = 1, .kind = MU__KEPT_SNAPSHOT};
    static const char zeros[1 << 16];
    mu_value *state = mu_value_bytes(zeros, bytes);
    struct mu__buf *packed = mu__pack_value(state, &item.value);
    const mu__pid keeper = {chief->number, MU__KEEPER};

    assert_int_equal(
        mu__send_body(&office->ctx, keeper, MU__KEEP_FENCE, &fence, sizeof fence), 0);
    assert_int_equal(mu__send_backed(&office->ctx, keeper, MU__KEEP_ITEM, &item,
                                     sizeof item, packed),
                     0);
    mu__buf_unref(packed);
    mu_value_free(state);
    net_settle(kept_net_net(f));
}

/* What the service says to its node's keeper. */
static void drop_kept(struct kept_net *f, const char *name, uint64_t epoch)
{
    struct mu__msg *msg = mu__pool_get(mu__kernel_pool(f->chief->kernel), MU__KEEP_DROP,
                                       sizeof(struct mu__keep_drop));
    struct mu__keep_drop *body = mu__body(msg);

    body->name = mu__view_str(name);
    body->epoch = epoch;
    msg->to = (mu__pid){MU__NODE_SELF, MU__KEEPER};
    assert_int_equal(mu__kernel_deliver(f->chief->kernel, msg), 0);
    net_turn(f->chief);
    net_settle(kept_net_net(f));
}

TEST_ON(test_a_stopped_actor_is_not_kept, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_ask(f, "add", 5, 1);
    drop_kept(f, "total", f->epoch - 1); /* of the one before */
    kept_net_ask(f, "add", 2, 2);
    kept_net_expect(f, 2, 7);
    drop_kept(f, "total", f->epoch);
    net_crash(f->chief);
    sim_storage_crash(f->storage);
    net_start(f->chief);
    net_settle(kept_net_net(f));
    net_crash(kept_net_node(f, 1));
    kept_net_own(f, 2); /* it is born, as the service said */
    net_settle(kept_net_net(f));
    assert_int_equal(f->why.code, -MU_EDATALOSS);
}

TEST_ON(test_a_life_that_does_not_know_that_it_was_stopped, struct kept_net *f,
        kept_net_set_up, kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_ask(f, "add", 5, 1);
    drop_kept(f, "total", f->epoch);
    kept_net_ask(f, "add", 2, 2);
    assert_null(kept_net_answer(f, 2));
    assert_int_equal(f->why.code, -MU_EDATALOSS);
    assert_non_null(strstr(f->why.message, "it was stopped"));
}

/* Adds 1 until that is refused; returns how often it was not. */
static int64_t add_until_refused(struct kept_net *f, uint64_t *token)
{
    for (int64_t sum = 1; sum < 100; sum++) {
        kept_net_ask(f, "add", 1, ++*token);
        assert_non_null(kept_net_answer(f, *token));
        if (kept_net_answer(f, *token)->error.code == 0)
            continue;
        assert_int_equal(kept_net_answer(f, *token)->error.code, -MU_EEXHAUSTED);
        assert_int_equal(kept_net_answer(f, *token)->error.ran, MU_RAN_YES);
        assert_non_null(strstr(kept_net_answer(f, *token)->error.message,
                               "/job:chief/task:0"));
        return sum - 1;
    }
    fail_msg("nothing is refused");
    return 0;
}

/* Who would have more than there may be gets an error; what is kept stays, and is read.
 */
TEST_ON(test_all_actors_have_a_bound, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    uint64_t token = 0;
    int64_t sum;

    net_crash(f->chief);
    f->bytes_max = 1 << 14;
    net_start(f->chief);
    net_settle(kept_net_net(f));
    kept_net_own(f, 1);
    kept_net_ask(f, "add", 0, ++token);
    keep_other(f, 1 << 13);
    sum = add_until_refused(f, &token);
    assert_in_range(sum, 1, 20);
    kept_net_ask(f, "get", 0, ++token);
    kept_net_expect(f, token, sum);
    net_crash(kept_net_node(f, 1));
    kept_net_own(f, 2); /* a new life hears of it, too */
    kept_net_ask(f, "add", 1, ++token);
    assert_int_equal(kept_net_answer(f, token)->error.code, -MU_EEXHAUSTED);
    drop_kept(f, "other", 3);
    kept_net_ask(f, "add", 1, ++token);
    kept_net_expect(f, token, sum + 1);
}

/* The answer of a process to the only call that it has made. */
static int keep_answer(struct kept_actors *actors, struct kept_actor *actor,
                       uint64_t sender, mu_error *error)
{
    struct mu__msg *msg = mu__pool_get(actors->pool, MU__KEEP_ITEM,
                                       mu__messages.rows[MU__KEEP_ITEM].body_size);
    struct mu__keep_item *item = mu__body(msg);
    int rv;

    *item = (struct mu__keep_item){
        .kind = MU__KEPT_ANSWER, .sender = sender, .call = 1, .base = 1};
    rv = mu__kept_actor_check(actors, actor, item, error);
    if (rv == 0)
        rv = mu__kept_actor_put(actors, actor, msg);
    mu__pool_put(actors->pool, msg);
    return rv;
}

TEST(test_more_senders_than_may_be_kept)
{
    struct mu__pool pool;
    struct kept_actors actors = {
        .pool = &pool, .schema = &mu__messages, .bytes_max = MU__KEEPER_BYTES};
    struct kept_actor *actor;
    mu_error error;

    mu__pool_init(&pool);
    assert_int_equal(mu__kept_actor_add(&actors, mu__view_str("total"), &actor), 0);
    for (uint64_t sender = 1; sender <= MU__KEPT_SENDERS_MAX; sender++)
        assert_int_equal(keep_answer(&actors, actor, sender, &error), 0);
    assert_int_equal(keep_answer(&actors, actor, MU__KEPT_SENDERS_MAX + 1, &error),
                     -MU_EEXHAUSTED);
    assert_non_null(strstr(error.message, "processes have called the actor"));
    assert_int_equal(keep_answer(&actors, actor, 1, &error), 0); /* it is known */
    assert_int_equal(actor->senders.count, MU__KEPT_SENDERS_MAX);
    mu__kept_actors_done(&actors);
    mu__pool_done(&pool);
}

TEST_ON(test_a_lost_disk_is_said, struct kept_net *f, kept_net_set_up, kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_ask(f, "add", 5, 1);
    net_crash(f->chief);
    net_crash(kept_net_node(f, 1));
    sim_storage_set(f->storage, NULL, 0);
    net_start(f->chief);
    kept_net_own(f, 2);
    net_settle(kept_net_net(f));
    assert_int_equal(f->why.code, -MU_EDATALOSS);
    assert_non_null(strstr(f->why.message, "actors.kept"));
}

/* A keeper on a file with one byte that is another. */
static int open_damaged(struct kept_net *f, size_t at)
{
    const struct mu__keeper_config config = {
        .storage = &f->storage->base, .bytes_max = f->bytes_max, .error = &f->error};
    int rv;

    f->storage->content[at] ^= 0x10;
    rv = mu__spawn(f->chief->kernel, &mu__keeper, MU__KEEPER, &config, NULL);
    f->storage->content[at] ^= 0x10;
    return rv;
}

TEST_ON(test_each_damaged_byte_is_found, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    size_t whole;

    kept_net_own(f, 1);
    for (uint64_t i = 1; i < 4; i++)
        kept_net_ask(f, "add", 1, i);
    whole = f->storage->size;
    kept_net_ask(f, "add", 1, 5);
    mu__stop(f->chief->kernel, (mu__pid){MU__NODE_SELF, MU__KEEPER});
    net_turn(f->chief);
    for (size_t at = 0; at < whole; at++) {
        f->error.code = 0;
        assert_int_equal(open_damaged(f, at), -MU_EDATALOSS);
        assert_non_null(strstr(f->error.message, "actors.kept"));
    }
}

TEST_PROGRAM()
