/* The contract of worlds, over the libuv one. */
#include "runtime/uv/loop_world.h"
#include "tests/support/test.h"

#include "tests/support/contract/world.h"

struct place {
    uv_loop_t loop;
    uv_timer_t limit;
    bool late; /* the limit has passed */
    struct mu__world_uv *world;
    bool closed;
};

static void on_limit(uv_timer_t *limit)
{
    struct place *place = limit->data;

    place->late = true;
}

static void on_closed(void *arg)
{
    struct place *place = arg;

    place->closed = true;
}

static void *place_open(const struct mu__world_hooks *hooks)
{
    struct place *place = calloc(1, sizeof *place);

    assert_non_null(place);
    assert_int_equal(uv_loop_init(&place->loop), 0);
    assert_int_equal(uv_timer_init(&place->loop, &place->limit), 0);
    place->limit.data = place;
    assert_int_equal(mu__world_uv_open(&place->loop, 2, hooks, NULL, &place->world), 0);
    return place;
}

static void place_close(void *arg)
{
    struct place *place = arg;

    assert_int_equal(mu__world_uv_busy(place->world), 0);
    mu__world_uv_close(place->world, on_closed, place);
    uv_close((uv_handle_t *)&place->limit, NULL);
    assert_int_equal(uv_run(&place->loop, UV_RUN_DEFAULT), 0);
    assert_true(place->closed);
    assert_int_equal(uv_loop_close(&place->loop), 0);
    free(place);
}

static struct mu__world *place_world(void *arg)
{
    struct place *place = arg;

    return mu__world_uv_world(place->world);
}

struct posting {
    struct place *place;
    struct mu__msg *msg;
};

static void post_from_there(void *arg)
{
    struct posting *posting = arg;

    assert_int_equal(mu__world_uv_post(posting->place->world, posting->msg), 0);
}

static void place_post(void *arg, struct mu__msg *msg)
{
    struct posting posting = {arg, msg};
    uv_thread_t thread;

    assert_int_equal(uv_thread_create(&thread, post_from_there, &posting), 0);
    assert_int_equal(uv_thread_join(&thread), 0);
}

static bool place_run(void *arg, bool (*done)(void *arg), void *done_arg, uint64_t for_ms)
{
    struct place *place = arg;

    place->late = false;
    assert_int_equal(uv_timer_start(&place->limit, on_limit, for_ms, 0), 0);
    while (!done(done_arg) && !place->late)
        (void)uv_run(&place->loop, UV_RUN_ONCE);
    (void)uv_timer_stop(&place->limit);
    return done(done_arg);
}

static const struct contract_world fixture = {
    .open = place_open,
    .close = place_close,
    .world = place_world,
    .post = place_post,
    .run = place_run,
};

int main(void)
{
    return contract_world_run("libuv", &fixture);
}
