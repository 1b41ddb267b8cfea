/* Many adds and many opens while servers and programs are cut off, lost and restarted,
 * all of which follows from a seed. */
#include "tests/support/test.h"
#include "tests/support/var_net.h"

/* ---- Many runs ---- */

enum { STORM_CALLS = 40 };

/* What a run of adds came to: the sum lies between what was acknowledged and that plus
 * what is unknown. */
struct storm {
    struct var_net *f;
    struct var_request counter;
    float acknowledged;
    float unknown;
    uint64_t digest;
};

static void storm_event(struct storm *s)
{
    struct net *net = &s->f->net;
    struct net_process *server = s->f->servers[sim_draw(&net->random) % 3];

    if (sim_draw(&net->random) % 8 == 0) {
        net_cut(server);
        net_settle(net);
        net_run_until(net, net->now_ms + sim_draw(&net->random) % 50);
        net_heal(server);
    } else if (sim_draw(&net->random) % 8 == 0) {
        server->full = !server->full;
    }
}

static void storm_call(struct storm *s)
{
    static const float one[4] = {1, 1, 1, 1};
    struct net *net = &s->f->net;
    struct var_request r = s->counter;
    int events = 0;

    var_aim(&r);
    r.call.source = one;
    var_post(s->f->alice, &r, MU__VARIABLE_ADD, 30);
    while (!r.done) {
        storm_event(s);
        if (!net_step(net))
            net_run_until(net, net->now_ms + 1);
        assert_true(++events < 10000);
    }
    if (r.call.call.code == 0)
        s->acknowledged += 1;
    else
        s->unknown += 1;
    s->digest = s->digest * 31 + (uint64_t)-r.call.call.code + net->now_ms;
}

static uint64_t run_storm(uint64_t seed, float *ret_failed)
{
    struct storm s = {.digest = 0};
    void *fixture;
    float data[4];

    assert_int_equal(var_set_up(&fixture), 0);
    s.f = fixture;
    s.f->net.random = sim_stream(seed, 2);
    s.counter = var_opened(s.f->alice, "v", var_four, NULL);
    for (int i = 0; i < STORM_CALLS; i++)
        storm_call(&s);
    for (int i = 0; i < 3; i++)
        s.f->servers[i]->full = false;
    var_aim(&s.counter);
    s.counter.call.target = data;
    var_ask_ok(s.f->bob, &s.counter, MU__VARIABLE_READ);
    if (data[0] < s.acknowledged || data[0] > s.acknowledged + s.unknown)
        fail_msg("seed %llu: %g acknowledged, %g unknown, sum %g",
                 (unsigned long long)seed, (double)s.acknowledged, (double)s.unknown,
                 (double)data[0]);
    s.digest = s.digest * 31 + (uint64_t)data[0];
    *ret_failed += s.unknown;
    assert_int_equal(var_tear_down(&fixture), 0);
    return s.digest;
}

TEST(test_storm)
{
    uint64_t differ = 0;
    uint64_t before = 0;
    float failed = 0;

    for (uint64_t seed = 1; seed <= 100; seed++) {
        uint64_t digest = run_storm(seed, &failed);

        assert_true(digest == run_storm(seed, &failed));
        differ += digest != before;
        before = digest;
    }
    assert_true(differ > 90);
    assert_true(failed > 100);
}

/* ---- Many opens ---- */

/* Programs that open one variable again and again, two of which may create it, while
 * servers and programs are cut off, lost and restarted. Each content is one number all
 * over: whatever is read is all of one opener. At the end all is well. */
enum { OPENERS = 3, OPENING_ROUNDS = 6, OPENING_EVENTS_MAX = 20000 };

struct opening_storm {
    struct var_net *f;
    struct net_process *programs[OPENERS];
    struct mu__shape shape;
    size_t count; /* of elements */
    float *contents[OPENERS];
    float *data;
    struct var_request requests[OPENERS];
    float number; /* of the last content */
    uint64_t digest;
    unsigned succeeded;
    unsigned lost;
};

static void opening_event(struct opening_storm *s)
{
    struct net *net = &s->f->net;
    struct net_process *server = s->f->servers[sim_draw(&net->random) % 3];
    struct net_process *program = s->programs[sim_draw(&net->random) % OPENERS];

    if (sim_draw(&net->random) % 16 == 0) {
        net_cut(server);
        for (uint64_t i = sim_draw(&net->random) % 4; i > 0; i--)
            (void)net_step(net);
        net_heal(server);
    }
    if (sim_draw(&net->random) % 32 == 0)
        server->full = !server->full;
    if (sim_draw(&net->random) % 64 == 0)
        net_restart(server);
    if (sim_draw(&net->random) % 128 == 0)
        net_restart(program);
    if (sim_draw(&net->random) % 32 == 0) {
        net_link_down(server, program);
        net_link_up(server, program);
    }
}

static void fill_with(float *content, size_t count, float number)
{
    for (size_t i = 0; i < count; i++)
        content[i] = number;
}

/* The last one never creates, the others create anew every other time. */
static void post_open(struct opening_storm *s, size_t i)
{
    struct var_request *r = &s->requests[i];
    struct net *net = &s->f->net;
    unsigned flags = sim_draw(&net->random) % 2 == 0 ? MU_VARIABLE_RECREATE : 0;

    s->number += 1;
    fill_with(s->contents[i], s->count, s->number);
    *r = var_asked(s->programs[i], s->shape,
                   i == OPENERS - 1 ? MU_VARIABLE_EXISTING : flags, s->contents[i]);
    var_aim(r);
    var_post(s->programs[i], r, MU__VARIABLE_OPEN,
             (int64_t)(sim_draw(&net->random) % 200));
    while (r->call.call.timer == 0) /* a crash would lose a call that nobody took */
        net_turn(s->programs[i]);
}

static bool all_done(const struct opening_storm *s)
{
    for (size_t i = 0; i < OPENERS; i++)
        if (!s->requests[i].done)
            return false;
    return true;
}

static void assert_of_one(struct opening_storm *s, size_t i)
{
    for (size_t j = 1; j < s->count; j++)
        if (s->data[j] < s->data[0] || s->data[j] > s->data[0])
            fail_msg("opener %zu reads %g and %g", i, (double)s->data[0],
                     (double)s->data[j]);
    assert_true(s->data[0] >= 1 && s->data[0] <= s->number);
}

static void check_opened(struct opening_storm *s, size_t i)
{
    struct var_request *r = &s->requests[i];
    int code = r->call.call.code;

    s->digest = s->digest * 31 + (uint64_t)-code;
    if (code != 0 && code != -MU_EDEADLINE && code != -MU_EDATALOSS &&
        code != -MU_ECLOSED)
        fail_msg("%s", r->call.call.error.message);
    assert_true(code != -MU_EDATALOSS || r->call.flags == 0);
    s->lost += code == -MU_EDATALOSS;
    if (code != 0)
        return;
    r->call.flags = 0;
    r->call.target = s->data;
    code = var_ask(s->programs[i], r, MU__VARIABLE_READ, VAR_NEVER);
    assert_true(code == 0 || code == -MU_ENOTFOUND);
    if (code != 0)
        return;
    s->succeeded++;
    assert_of_one(s, i);
    s->digest = s->digest * 31 + (uint64_t)s->data[0];
}

static void opening_round(struct opening_storm *s)
{
    struct net *net = &s->f->net;
    int events = 0;

    for (size_t i = 0; i < OPENERS; i++)
        post_open(s, i);
    while (!all_done(s)) {
        opening_event(s);
        if (!net_step(net))
            net_run_until(net, net->now_ms + 1 + sim_draw(&net->random) % 20);
        assert_true(++events < OPENING_EVENTS_MAX);
    }
    for (size_t i = 0; i < 3; i++)
        s->f->servers[i]->full = false;
    net_settle(net);
    for (size_t i = 0; i < OPENERS; i++)
        check_opened(s, i);
}

/* Once nothing more happens, who waits gets what the others create. */
static void check_all_is_well(struct opening_storm *s)
{
    struct var_request *waits = &s->requests[OPENERS - 1];
    struct var_request *creates = &s->requests[0];

    *waits = var_asked(s->programs[OPENERS - 1], s->shape, MU_VARIABLE_EXISTING, NULL);
    var_aim(waits);
    var_post(s->programs[OPENERS - 1], waits, MU__VARIABLE_OPEN, VAR_NEVER);
    *creates = var_asked(s->programs[0], s->shape, MU_VARIABLE_RECREATE, s->contents[0]);
    var_aim(creates);
    assert_int_equal(var_ask(s->programs[0], creates, MU__VARIABLE_OPEN, 10000), 0);
    net_settle(&s->f->net);
    assert_true(waits->done);
    check_opened(s, OPENERS - 1);
    assert_int_equal(waits->call.call.code, 0);
    check_opened(s, 0);
    assert_int_equal(creates->call.call.code, 0);
}

static void run_opening_storm(uint64_t seed, struct opening_storm *s)
{
    void *fixture;

    assert_int_equal(var_set_up(&fixture), 0);
    s->f = fixture;
    s->f->net.random = sim_stream(seed, 2);
    s->programs[0] = s->f->alice;
    s->programs[1] = s->f->bob;
    s->programs[2] = net_add(&s->f->net, "worker", 2, s->f->bob->spawn);
    net_start(s->programs[2]);
    s->shape = var_large;
    if (seed % 16 != 0)
        s->shape = (struct mu__shape){MU_F32, 1, {6}, (uint32_t)(1 + seed % 6)};
    s->count = (size_t)mu__shape_bytes(&s->shape) / sizeof(float);
    s->data = var_numbers(s->count, 0);
    for (size_t i = 0; i < OPENERS; i++)
        s->contents[i] = var_numbers(s->count, 0);
    for (int i = 0; i < OPENING_ROUNDS; i++)
        opening_round(s);
    check_all_is_well(s);
    for (size_t i = 0; i < OPENERS; i++)
        free(s->contents[i]);
    free(s->data);
    assert_int_equal(var_tear_down(&fixture), 0);
}

TEST(test_opening_storm)
{
    unsigned succeeded = 0;
    unsigned lost = 0;

    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct opening_storm first = {.number = 0};
        struct opening_storm again = {.number = 0};

        run_opening_storm(seed, &first);
        if (seed % 20 == 1) {
            run_opening_storm(seed, &again);
            assert_true(first.digest == again.digest);
        }
        succeeded += first.succeeded;
        lost += first.lost;
    }
    assert_true(succeeded > 1000);
    assert_true(lost > 100);
}

TEST_PROGRAM()
