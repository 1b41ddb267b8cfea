/* The libuv world.
 *
 * Turns. "As soon as possible" is an idle handle, which keeps the loop from sleeping,
 * and a check handle, which runs after the poll phase: sockets are served between any two
 * turns, however often an actor asks. Later turns come from one timer. wake_at() inside a
 * turn only notes the time; the handles are moved once, after the turn.
 *
 * Closing and posts. A thread that pushed onto the empty inbox goes on to send the wake,
 * and the async handle must not go away between the two. Each list taken from the inbox
 * that was not empty had exactly one such push, so the loop counts those lists, the
 * threads count the wakes they have sent, and closing waits until the numbers agree: a
 * matter of nanoseconds, once in the life of a world.
 *
 * Wakes. A loop of the node's own says in `asleep` whether it may sleep, and nobody
 * writes to the async handle's descriptor while it does not: the prepare handle, which
 * runs last before the poll phase, looks at what other threads have left. Whoever leaves
 * something does so before it reads `asleep`, the loop sets `asleep` before it looks;
 * both are sequentially consistent, so one of the two sees the other. A program that
 * drives its loop itself may sleep outside of it: there `asleep` is always true. */
#include "runtime/uv/loop_world.h"

#include "muster/error.h"
#include "runtime/kernel/inbox.h"
#include "runtime/kernel/system_messages.h"
#include "runtime/message/block_pool.h"
#include "runtime/message/pool.h"
#include "runtime/uv/executor.h"
#include "runtime/uv/spin.h"

#include <assert.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef CLOCK_MONOTONIC_COARSE
#define COARSE_CLOCK CLOCK_MONOTONIC_COARSE
#else
#define COARSE_CLOCK CLOCK_MONOTONIC
#endif

#define NO_TURN UINT64_MAX

/* When there is no memory for a WORK_DONE message, it is tried again after this time. */
enum { MEMORY_RETRY_MS = 20 };

struct turn_handles {
    uv_timer_t trim; /* of mu__blocks, while anything is cached there */
    uv_timer_t timer;
    uv_idle_t idle;
    uv_prepare_t prepare;
    uv_check_t check;
};

/* The waits of the loop, in its poll phase. */
struct loop_sleep {
    atomic_bool asleep;   /* it may wait there, or is out of our hands */
    bool owned;           /* by this world: it is never out of our hands */
    struct mu__spin spin; /* before a wait */
    bool slept;           /* it has waited since begun_ns: to be noted in `spin` */
    uint64_t begun_ns;
};

struct mu__world_uv {
    struct mu__world door; /* first: operations cast */
    struct mu__world_hooks hooks;
    mu__world_uv_log_fn log;
    uv_loop_t *loop;

    /* Used by other threads. */
    struct mu__inbox inbox;
    uv_async_t wake;
    _Atomic(uint64_t) wakes_sent;
    atomic_bool has_finished; /* work or a thread of the executor has ended */

    uint64_t bursts_taken;  /* lists taken from the inbox that were not empty */
    struct mu__msg *posted; /* taken from the inbox, not delivered yet */

    struct mu__executor *executor;
    struct mu__list finished; /* works taken from the executor, not delivered yet */
    unsigned busy;

    struct loop_sleep sleep;
    struct turn_handles handles;
    uint64_t due_ms;       /* of the next turn, or NO_TURN */
    uint64_t timer_due_ms; /* what the timer is set to, when it is active */
    bool stepping;         /* inside hooks: do not move the handles */

    uint64_t random[4];
    uint64_t secret;

    bool starts_no_work; /* the executor has been stopped */
    bool closing;
    unsigned open_handles; /* the last one that is closed frees the world */
    void (*closed)(void *arg);
    void *closed_arg;
};

static struct mu__world_uv *from_world_door(struct mu__world *door)
{
    return (struct mu__world_uv *)door;
}

/* ---- Random numbers: xoshiro256**, seeded by the system ---- */

static uint64_t rotate_left(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

static uint64_t op_world_random(struct mu__world *door)
{
    uint64_t *s = from_world_door(door)->random;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate_left(s[3], 45);
    return result;
}

static uint64_t op_secret(struct mu__world *door)
{
    return from_world_door(door)->secret;
}

/* ---- Time and turns ---- */

static uint64_t op_world_now_ms(struct mu__world *door)
{
    return uv_now(from_world_door(door)->loop);
}

/* The coarse clock costs a few nanoseconds. */
static uint64_t op_moving_ms(struct mu__world *door)
{
    struct timespec now;

    (void)door;
    if (clock_gettime(COARSE_CLOCK, &now) != 0)
        return 0;
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void run_world_turn(struct mu__world_uv *world);

static void on_idle(uv_idle_t *idle)
{
    (void)idle; /* that it is active keeps the poll phase from waiting */
}

/* After the poll phase: what woke the loop has been served. */
static void on_check(uv_check_t *check)
{
    struct mu__world_uv *world = check->data;

    if (world->sleep.owned)
        atomic_store_explicit(&world->sleep.asleep, false, memory_order_relaxed);
    if (world->sleep.slept)
        mu__spin_slept(&world->sleep.spin, world->sleep.begun_ns);
    world->sleep.slept = false;
    if (world->due_ms <= uv_now(world->loop))
        run_world_turn(world);
}

static void on_world_timer(uv_timer_t *timer)
{
    run_world_turn(timer->data);
}

/* ---- The memory of the process ---- */

static void on_trim(uv_timer_t *trim)
{
    if (mu__block_pool_trim(&mu__blocks, uv_now(trim->loop)))
        (void)uv_timer_start(trim, on_trim, MU__BLOCKS_TRIM_MS, 0);
}

static void trim_later(struct mu__world_uv *world)
{
    if (mu__block_pool_cached(&mu__blocks) > 0 &&
        !uv_is_active((uv_handle_t *)&world->handles.trim))
        (void)uv_timer_start(&world->handles.trim, on_trim, MU__BLOCKS_TRIM_MS, 0);
}

/* Bring the handles in line with due_ms. Starting and stopping do not fail: the handles
 * are initialized and the callbacks are not NULL. */
static void arm_loop_timer(struct mu__world_uv *world)
{
    uint64_t now_ms = uv_now(world->loop);
    bool soon = world->due_ms <= now_ms;
    bool later = !soon && world->due_ms != NO_TURN;

    if (soon)
        (void)uv_idle_start(&world->handles.idle, on_idle);
    else
        (void)uv_idle_stop(&world->handles.idle);
    if (!later) {
        (void)uv_timer_stop(&world->handles.timer);
    } else if (!uv_is_active((uv_handle_t *)&world->handles.timer) ||
               world->timer_due_ms != world->due_ms) {
        world->timer_due_ms = world->due_ms;
        (void)uv_timer_start(&world->handles.timer, on_world_timer,
                             world->due_ms - now_ms, 0);
    }
}

static void op_wake_at(struct mu__world *door, uint64_t due_ms)
{
    struct mu__world_uv *world = from_world_door(door);

    if (!world->closing)
        trim_later(world); /* here, since each turn ends by requesting the next */
    if (world->closing || due_ms >= world->due_ms)
        return;
    world->due_ms = due_ms;
    if (!world->stepping)
        arm_loop_timer(world);
}

/* ---- Messages and finished work from other threads ---- */

static void deliver_posted(struct mu__world_uv *world)
{
    assert(world->posted == NULL);
    world->posted = mu__inbox_drain(&world->inbox);
    if (world->posted != NULL)
        world->bursts_taken++;

    /* A hook may close the world; closing frees what is left in the list. */
    while (world->posted != NULL) {
        struct mu__msg *msg = world->posted;

        world->posted = msg->next;
        msg->next = NULL;
        world->hooks.deliver(world->hooks.owner, msg);
    }
}

static void take_finished_work(struct mu__world_uv *world)
{
    struct mu__list done;

    if (!atomic_load_explicit(&world->has_finished, memory_order_relaxed))
        return;
    (void)atomic_exchange(&world->has_finished, false);
    done = mu__executor_take_done(world->executor);
    mu__list_append_all(&world->finished, &done);
}

static void deliver_finished(struct mu__world_uv *world)
{
    take_finished_work(world);
    while (!mu__list_is_empty(&world->finished) && !world->closing) {
        struct mu__work *work = MU__LIST_FIRST(&world->finished, struct mu__work, node);
        struct mu__msg *msg = mu__msg_heap(MU__WORK_DONE, sizeof(struct mu__work_done));

        if (msg == NULL) {
            op_wake_at(&world->door, uv_now(world->loop) + MEMORY_RETRY_MS);
            return;
        }
        mu__list_remove(&world->finished, &work->node);
        world->busy--;
        msg->to = work->owner;
        ((struct mu__work_done *)(void *)msg->body)->work = work;
        world->hooks.deliver(world->hooks.owner, msg);
    }
}

/* Deliver everything that waits, and take a turn, which answers all requests so far. */
static void run_world_turn(struct mu__world_uv *world)
{
    assert(!world->stepping && !world->closing);
    world->stepping = true;
    world->due_ms = NO_TURN;
    deliver_posted(world);
    if (!world->closing)
        deliver_finished(world);
    /* The process may have been stopped since the loop read the clock: whether a deadline
     * has passed is judged by a time after the delivery of what came in. */
    uv_update_time(world->loop);
    if (!world->closing)
        world->hooks.turn(world->hooks.owner);
    world->stepping = false;
    if (!world->closing)
        arm_loop_timer(world);
}

bool mu__world_uv_turn(struct mu__world_uv *world)
{
    if (world->stepping || world->closing)
        return false;
    run_world_turn(world);
    return true;
}

static void wake_from_executor(void *owner)
{
    struct mu__world_uv *world = owner;

    atomic_store(&world->has_finished, true);
    if (atomic_load(&world->sleep.asleep))
        (void)uv_async_send(&world->wake);
}

int mu__world_uv_post(struct mu__world_uv *world, struct mu__msg *msg)
{
    int rv = mu__inbox_push(&world->inbox, msg);

    if (rv < 0)
        return rv;
    if (rv == 1) {
        if (atomic_load(&world->sleep.asleep))
            (void)uv_async_send(&world->wake);
        /* The last access: from here on the world may be freed. */
        atomic_fetch_add_explicit(&world->wakes_sent, 1, memory_order_release);
    }
    return 0;
}

/* ---- Before the loop sleeps ---- */

static bool has_posts(struct mu__world_uv *world)
{
    return !mu__inbox_is_empty(&world->inbox) || atomic_load(&world->has_finished);
}

/* Posts, or events of the loop's descriptors. */
static bool has_anything(void *arg)
{
    struct mu__world_uv *world = arg;
    struct pollfd events = {.fd = uv_backend_fd(world->loop), .events = POLLIN};

    return has_posts(world) || poll(&events, 1, 0) != 0;
}

/* The last before the poll phase. Where that may wait, this is the moment to spin, and to
 * look once more. Events that have ended the spin may be gone when the loop asks for
 * them: it counts as asleep all the same. */
static void on_prepare(uv_prepare_t *prepare)
{
    struct mu__world_uv *world = prepare->data;

    if (uv_backend_timeout(world->loop) == 0)
        return;
    if (!has_posts(world))
        world->sleep.slept = !mu__spin_wait(&world->sleep.spin, has_anything, world,
                                            &world->sleep.begun_ns);
    atomic_store(&world->sleep.asleep, true);
    if (has_posts(world))
        op_wake_at(&world->door, 0);
}

/* ---- The other operations ---- */

static int op_transmit(struct mu__world *door, struct mu__msg *msg)
{
    struct mu__world_uv *world = from_world_door(door);

    return world->hooks.transmit(world->hooks.owner, msg);
}

static void op_submit(struct mu__world *door, struct mu__work *work)
{
    struct mu__world_uv *world = from_world_door(door);

    if (world->closing || world->starts_no_work)
        return; /* never started, like the work that was queued before it */
    world->busy++;
    mu__executor_submit(world->executor, work);
}

static bool op_withdraw(struct mu__world *door, struct mu__work *work)
{
    struct mu__world_uv *world = from_world_door(door);

    if (world->closing || world->starts_no_work ||
        !mu__executor_withdraw(world->executor, work))
        return false;
    world->busy--;
    return true;
}

static void op_log(struct mu__world *door, enum mu__log_level level, const char *who,
                   const char *line)
{
    struct mu__world_uv *world = from_world_door(door);

    if (world->log != NULL)
        world->log(world->hooks.owner, level, who, line);
}

static const struct mu__world_ops ops = {
    .now_ms = op_world_now_ms,
    .random = op_world_random,
    .secret = op_secret,
    .moving_ms = op_moving_ms,
    .wake_at = op_wake_at,
    .transmit = op_transmit,
    .submit = op_submit,
    .withdraw = op_withdraw,
    .log = op_log,
};

/* ---- Closing ---- */

/* Works that do not come back as WORK_DONE. */
static void count_off(struct mu__world_uv *world, struct mu__list works)
{
    for (struct mu__list_node *node = works.first; node != NULL; node = node->next)
        world->busy--;
}

struct mu__list mu__world_uv_start_no_work(struct mu__world_uv *world)
{
    struct mu__list given_back = mu__executor_stop(world->executor);

    world->starts_no_work = true;
    count_off(world, given_back);
    return given_back;
}

static void on_world_handle_closed(uv_handle_t *handle)
{
    struct mu__world_uv *world = handle->data;
    void (*closed)(void *arg) = world->closed;
    void *arg = world->closed_arg;

    if (--world->open_handles > 0)
        return;
    free(world);
    mu__block_pool_leave(&mu__blocks);
    closed(arg);
}

static void free_messages(struct mu__msg *msg)
{
    struct mu__pool pool;

    mu__pool_init(&pool);
    while (msg != NULL) {
        struct mu__msg *next = msg->next;

        mu__pool_put(&pool, msg);
        msg = next;
    }
    mu__pool_done(&pool);
}

static void close_inbox(struct mu__world_uv *world)
{
    struct mu__msg *left = mu__inbox_close(&world->inbox);

    if (left != NULL)
        world->bursts_taken++;
    while (atomic_load_explicit(&world->wakes_sent, memory_order_acquire) !=
           world->bursts_taken)
        (void)sched_yield();
    free_messages(left);
    free_messages(world->posted);
    world->posted = NULL;
}

static void end_loop_world(struct mu__world_uv *world)
{
    world->executor = NULL;
    uv_close((uv_handle_t *)&world->wake, on_world_handle_closed);
    uv_close((uv_handle_t *)&world->handles.trim, on_world_handle_closed);
    uv_close((uv_handle_t *)&world->handles.timer, on_world_handle_closed);
    uv_close((uv_handle_t *)&world->handles.idle, on_world_handle_closed);
    uv_close((uv_handle_t *)&world->handles.prepare, on_world_handle_closed);
    uv_close((uv_handle_t *)&world->handles.check, on_world_handle_closed);
}

static void end_closed_world(struct mu__world_uv *world)
{
    if (world->executor == NULL)
        return;
    count_off(world, mu__executor_take_done(world->executor));
    if (!mu__executor_has_ended(world->executor))
        return;
    mu__executor_free(world->executor);
    end_loop_world(world);
}

void mu__world_uv_close(struct mu__world_uv *world, void (*closed)(void *arg), void *arg)
{
    assert(!world->closing);
    world->closing = true;
    world->closed = closed;
    world->closed_arg = arg;
    (void)uv_timer_stop(&world->handles.trim);
    (void)uv_timer_stop(&world->handles.timer);
    (void)uv_idle_stop(&world->handles.idle);
    (void)uv_prepare_stop(&world->handles.prepare);
    (void)uv_check_stop(&world->handles.check);
    atomic_store(&world->sleep.asleep, true);
    close_inbox(world);
    count_off(world, world->finished);
    world->finished = (struct mu__list){NULL, NULL};
    (void)mu__world_uv_start_no_work(world);
    end_closed_world(world);
}

void mu__world_uv_abandon(struct mu__world_uv *world)
{
    assert(world->closing);
    if (world->executor == NULL)
        return;
    mu__executor_abandon(world->executor);
    end_loop_world(world);
}

/* ---- Opening ---- */

static void on_world_wake(uv_async_t *wake)
{
    struct mu__world_uv *world = wake->data;

    if (world->closing)
        end_closed_world(world);
    else
        run_world_turn(world);
}

static int seed_random(struct mu__world_uv *world)
{
    static const uint64_t zeros[4];

    if (uv_random(NULL, NULL, world->random, sizeof world->random, 0, NULL) != 0 ||
        uv_random(NULL, NULL, &world->secret, sizeof world->secret, 0, NULL) != 0)
        return -MU_EUNAVAILABLE;
    if (memcmp(world->random, zeros, sizeof zeros) == 0)
        world->random[0] = 1; /* the one state that the generator never leaves */
    return 0;
}

/* None of these calls fails. */
static void init_turn_handles(struct mu__world_uv *world)
{
    (void)uv_timer_init(world->loop, &world->handles.trim);
    uv_unref((uv_handle_t *)&world->handles.trim);
    (void)uv_timer_init(world->loop, &world->handles.timer);
    (void)uv_idle_init(world->loop, &world->handles.idle);
    (void)uv_prepare_init(world->loop, &world->handles.prepare);
    (void)uv_check_init(world->loop, &world->handles.check);
    world->handles.trim.data = world;
    world->handles.timer.data = world;
    world->handles.idle.data = world;
    world->handles.prepare.data = world;
    world->handles.check.data = world;
    world->wake.data = world;
    world->open_handles = 6;
    (void)uv_prepare_start(&world->handles.prepare, on_prepare);
    (void)uv_check_start(&world->handles.check, on_check);
}

int mu__world_uv_open(uv_loop_t *loop, unsigned threads,
                      const struct mu__world_hooks *hooks, mu__world_uv_log_fn log,
                      struct mu__world_uv **ret_world)
{
    struct mu__world_uv *world = calloc(1, sizeof *world);
    int rv;

    if (world == NULL)
        return -MU_ENOMEM;
    world->door.ops = &ops;
    world->hooks = *hooks;
    world->log = log;
    world->loop = loop;
    world->due_ms = NO_TURN;
    atomic_init(&world->wakes_sent, 0);
    atomic_init(&world->sleep.asleep, true);
    atomic_init(&world->has_finished, false);
    mu__spin_init(&world->sleep.spin, 0);
    mu__inbox_init(&world->inbox);
    rv = seed_random(world);
    if (rv != 0)
        goto err_world;
    rv = mu__executor_new(threads, wake_from_executor, world, &world->executor);
    if (rv != 0)
        goto err_world;
    if (uv_async_init(loop, &world->wake, on_world_wake) != 0) {
        rv = -MU_EEXHAUSTED;
        goto err_executor;
    }

    init_turn_handles(world);
    mu__block_pool_join(&mu__blocks);
    *ret_world = world;
    return 0;

err_executor:
    mu__executor_free(world->executor);
err_world:
    free(world);
    return rv;
}

void mu__world_uv_own_loop(struct mu__world_uv *world)
{
    world->sleep.owned = true;
}

void mu__world_uv_spin(struct mu__world_uv *world, uint32_t spin_us)
{
    mu__spin_init(&world->sleep.spin, spin_us);
    mu__executor_spin(world->executor, spin_us);
}

struct mu__world *mu__world_uv_world(struct mu__world_uv *world)
{
    return &world->door;
}

unsigned mu__world_uv_busy(const struct mu__world_uv *world)
{
    return world->busy;
}
