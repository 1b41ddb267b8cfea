/* Names whose look-up hangs: nothing that closes waits for it. */
#include "tests/real/hanging_dns.h"
#include "tests/support/test.h"
#include "transport/wire/uv/dialling.h"
#include "transport/wire/uv/probe.h"
#include "transport/wire/uv/streams.h"

#include <netdb.h>
#include <pthread.h>

enum { SHORT_MS = 200, SOON_MS = 20000, OUT = 1 };

/* ---- The system ---- */

static int hang(void **state)
{
    (void)state;
    dns.answers = false;
    dns.entered = 0;
    dns.left = 0;
    return 0;
}

/* All threads are back from here. */
static int answer(void **state)
{
    (void)state;
    dns_answer(true);
    dns_wait(&dns.left, dns_count(&dns.entered));
    return 0;
}

/* ---- A wire ---- */

static void on_up(void *owner, uint32_t out)
{
    (void)owner;
    (void)out;
}

static void on_down(void *owner, uint32_t out, const char *reason)
{
    (void)owner;
    (void)out;
    (void)reason;
}

static bool on_frame(void *owner, uint32_t in, struct mu__buf *frame)
{
    (void)owner;
    (void)in;
    (void)frame;
    return true;
}

static void on_burst_end(void *owner)
{
    (void)owner;
}

static const struct mu__wire_events events = {
    .up = on_up,
    .down = on_down,
    .writable = on_up,
    .frame = on_frame,
    .burst_end = on_burst_end,
};

static void on_tick(uv_timer_t *tick)
{
    (void)tick;
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

/* Dials a name; its look-up hangs when this returns. */
static struct mu__wire_uv *dial(uv_loop_t *loop, uv_timer_t *tick)
{
    uint64_t until_ms = uv_hrtime() / 1000000 + SOON_MS;
    struct mu__wire_uv *wire;
    struct mu__wire *door;

    assert_int_equal(uv_loop_init(loop), 0);
    assert_int_equal(uv_timer_init(loop, tick), 0);
    assert_int_equal(uv_timer_start(tick, on_tick, 10, 10), 0);
    assert_int_equal(
        mu__wire_uv_open(loop, "tcp://127.0.0.1:0", &events, NULL, NULL, &wire), 0);
    door = mu__wire_uv_wire(wire);
    assert_int_equal(door->ops->dial(door, OUT, "tcp://hangs.test:1"), 0);
    while (dns_count(&dns.entered) == 0 && uv_hrtime() / 1000000 < until_ms)
        (void)uv_run(loop, UV_RUN_ONCE);
    assert_int_equal(dns_count(&dns.entered), 1);
    return wire;
}

/* Nothing is left in the loop, though the system has not answered. */
TEST_WITH(test_wire_closes, hang, answer)
{
    struct mu__wire_uv *wire;
    bool is_closed = false;
    uv_timer_t tick;
    uv_loop_t loop;

    wire = dial(&loop, &tick);
    uv_close((uv_handle_t *)&tick, NULL);
    mu__wire_uv_close(wire, on_closed, &is_closed);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_true(is_closed);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* Hung up on while it is looked up: the answer finds nobody. */
TEST_WITH(test_hangup, hang, answer)
{
    struct mu__wire_uv *wire;
    struct mu__wire *door;
    bool is_closed = false;
    uv_timer_t tick;
    uv_loop_t loop;

    wire = dial(&loop, &tick);
    door = mu__wire_uv_wire(wire);
    door->ops->hangup(door, OUT);
    assert_null(door->ops->last_error(door, OUT));
    (void)answer(NULL);
    for (int i = 0; i < 5; i++)
        (void)uv_run(&loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&tick, NULL);
    mu__wire_uv_close(wire, on_closed, &is_closed);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_true(is_closed);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* The system's answer, if it is a failure, is told. */
TEST_WITH(test_answer, hang, answer)
{
    uint64_t until_ms;
    struct mu__wire_uv *wire;
    struct mu__wire *door;
    bool is_closed = false;
    uv_timer_t tick;
    uv_loop_t loop;

    wire = dial(&loop, &tick);
    door = mu__wire_uv_wire(wire);
    assert_null(door->ops->last_error(door, OUT));
    (void)answer(NULL);
    until_ms = uv_hrtime() / 1000000 + SOON_MS;
    while (door->ops->last_error(door, OUT) == NULL && uv_hrtime() / 1000000 < until_ms)
        (void)uv_run(&loop, UV_RUN_ONCE);
    assert_non_null(door->ops->last_error(door, OUT));
    assert_non_null(strstr(door->ops->last_error(door, OUT), gai_strerror(EAI_AGAIN)));
    uv_close((uv_handle_t *)&tick, NULL);
    mu__wire_uv_close(wire, on_closed, &is_closed);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_true(is_closed);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void on_won(void *owner, const struct mu__dialling *dialling,
                   struct mu__connection *connection)
{
    (void)owner;
    (void)dialling;
    (void)connection;
    fail_msg("%s", "there was nobody to connect to");
}

static void on_lost(void *owner, const struct mu__dialling *dialling)
{
    *(const char **)owner = mu__dialling_no_name(dialling);
}

static void on_gone(void *place)
{
    *(bool *)place = true;
}

/* One round has a limit for its look-up, too. */
TEST_WITH(test_limit, hang, answer)
{
    static const struct mu__dialling_events all = {on_won, on_lost, on_gone};
    struct mu__url url;
    struct mu__dialling *dialling;
    const char *why = NULL;
    bool is_gone = false;
    bool is_closed = false;
    uv_loop_t loop;
    struct mu__dial_request request = {.loop = &loop,
                                       .url = &url,
                                       .timeout_ms = SHORT_MS,
                                       .events = &all,
                                       .owner = &why,
                                       .arg = &is_gone};

    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(mu__blocking_open(&loop, &request.blocking_jobs), 0);
    assert_null(mu__url_parse("tcp://hangs.test:1", false, &url));
    assert_int_equal(mu__dialling_start(&request, &dialling), 0);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_string_equal(why, "the name server does not answer");
    assert_true(is_gone);
    mu__blocking_close(request.blocking_jobs, on_closed, &is_closed);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_true(is_closed);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* A probe has its limit; another one beside it that needs no look-up has its answer. */
TEST_WITH(test_probe, hang, answer)
{
    struct mu__probe probes[] = {{.url = "tcp://hangs.test:1"},
                                 {.url = "ipc:///nowhere/at-all"}};

    assert_int_equal(mu__probe_all(probes, 2, SHORT_MS, NULL), 0);
    assert_int_equal(probes[0].state, MU__PROBE_NO_NAME);
    assert_string_equal(probes[0].why, "the name server does not answer");
    assert_int_equal(probes[1].state, MU__PROBE_REFUSED);
}

TEST_PROGRAM()
