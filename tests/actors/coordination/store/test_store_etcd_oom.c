/* The etcd store without memory: each allocation of its life fails once. It may lose the
 * store by that, and holds it again; what was told safe is there. */
#include "actors/coordination/store/etcd_store.h"
#include "sim/world/inner.h"
#include "tests/sim/etcd.h"
#include "tests/support/test.h"
#include "tests/support/wrap_malloc.h"

#include "tests/support/contract/store.h"

enum { BATCHES = 4, LARGE_BYTES = 700000, LIFE_MS = 30000 };

/* ---- The n-th allocation inside of the store fails, once ---- */

/* Compilers know that these functions look at no variable of ours. */
static volatile bool is_inside;
static volatile bool has_happened;
static volatile long countdown = -1;

static bool malloc_fails(void)
{
    if (!is_inside || sim_own_memory > 0 || countdown < 0)
        return false;
    countdown = countdown - 1;
    if (countdown >= 0)
        return false;
    has_happened = true;
    return true;
}

#define INSIDE(call)       \
    do {                   \
        is_inside = true;  \
        call;              \
        is_inside = false; \
    } while (0)

#define OUTSIDE(call)      \
    do {                   \
        is_inside = false; \
        call;              \
        is_inside = true;  \
    } while (0)

/* A store around the store: memory is short inside of it, and nowhere else. */
struct shell {
    struct mu__store base;
    struct mu__store *inner;
    struct mu__store_upcalls up;
};

static int up_visit(void *owner, struct mu__msg *record)
{
    struct shell *s = owner;
    int rv = 0;

    OUTSIDE(rv = s->up.visit(s->up.owner, record));
    return rv;
}

static void up_held(void *owner, struct mu__ctx *ctx, uint64_t epoch, uint64_t number)
{
    struct shell *s = owner;

    OUTSIDE(s->up.held(s->up.owner, ctx, epoch, number));
}

static void up_committed(void *owner, struct mu__ctx *ctx, uint64_t sequence)
{
    struct shell *s = owner;

    OUTSIDE(s->up.committed(s->up.owner, ctx, sequence));
}

static void up_lost(void *owner, struct mu__ctx *ctx, const char *reason)
{
    struct shell *s = owner;

    OUTSIDE(s->up.lost(s->up.owner, ctx, reason));
}

static void up_reading(void *owner)
{
    struct shell *s = owner;

    OUTSIDE(s->up.reading(s->up.owner));
}

static struct shell *shell_of(struct mu__store *base)
{
    return (struct shell *)base;
}

static void shell_start(struct mu__store *base, struct mu__ctx *ctx)
{
    struct shell *s = shell_of(base);

    INSIDE(s->inner->ops->start(s->inner, ctx));
}

static int shell_write(struct mu__store *base, struct mu__ctx *ctx,
                       const struct mu__msg *record)
{
    struct shell *s = shell_of(base);
    int rv = 0;

    INSIDE(rv = s->inner->ops->write(s->inner, ctx, record));
    return rv;
}

static void shell_commit(struct mu__store *base, struct mu__ctx *ctx, uint64_t revision,
                         uint64_t sequence)
{
    struct shell *s = shell_of(base);

    INSIDE(s->inner->ops->commit(s->inner, ctx, revision, sequence));
}

static bool shell_may_read(struct mu__store *base, struct mu__ctx *ctx)
{
    return shell_of(base)->inner->ops->may_read(shell_of(base)->inner, ctx);
}

static void shell_tick(struct mu__store *base, struct mu__ctx *ctx)
{
    struct shell *s = shell_of(base);

    INSIDE(s->inner->ops->tick(s->inner, ctx));
}

static bool shell_heard(struct mu__store *base, struct mu__ctx *ctx,
                        struct mu__http_request *request)
{
    struct shell *s = shell_of(base);
    bool heard = false;

    INSIDE(heard = s->inner->ops->heard(s->inner, ctx, request));
    return heard;
}

static void shell_close(struct mu__store *base, struct mu__ctx *ctx)
{
    struct shell *s = shell_of(base);

    INSIDE(s->inner->ops->close(s->inner, ctx));
    free(s);
}

static const struct mu__store_ops shell_ops = {
    .start = shell_start,
    .write = shell_write,
    .commit = shell_commit,
    .may_read = shell_may_read,
    .tick = shell_tick,
    .heard = shell_heard,
    .close = shell_close,
};

static int shell_open(const struct mu__store_config *config, mu_error *ret_error,
                      struct mu__store **ret_store)
{
    struct shell *s = calloc(1, sizeof *s);
    struct mu__store_config inner = *config;

    assert_non_null(s);
    s->base.ops = &shell_ops;
    s->up = config->up;
    inner.up = (struct mu__store_upcalls){s,       up_visit,   up_held, up_committed,
                                          up_lost, up_reading, NULL};
    assert_int_equal(mu__store_etcd.open(&inner, ret_error, &s->inner), 0);
    *ret_store = &s->base;
    return 0;
}

static const struct mu__store_kind shell_kind = {
    .name = "shell",
    .has_location = true,
    .shared = true,
    .lasting = true,
    .open = shell_open,
};

/* ---- The place ---- */

struct place {
    struct sim_etcd *etcd;
    struct mu__http *door;
};

static void *place_open(struct sim *sim, uint64_t seed)
{
    struct place *place = calloc(1, sizeof *place);

    assert_non_null(place);
    place->etcd = sim_etcd_new(sim, seed);
    return place;
}

static void place_close(void *arg)
{
    struct place *place = arg;

    sim_etcd_free(place->etcd);
    free(place);
}

static void place_begin(void *arg, struct sim_node *node, struct mu__kernel *kernel,
                        struct mu__store_config *config)
{
    struct place *place = arg;

    (void)kernel;
    place->door = sim_etcd_door(place->etcd, node);
    config->location = SIM_ETCD_PLACE;
    config->http = place->door;
}

static void place_end(void *arg, struct sim_node *node)
{
    (void)node;
    sim_etcd_door_end(((struct place *)arg)->door);
}

static const struct contract_store fixture = {
    .kind = &shell_kind,
    .open = place_open,
    .close = place_close,
    .begin = place_begin,
    .end = place_end,
    .held_ms = LIFE_MS,
    .safe_ms = LIFE_MS,
};

/* ---- The walk ---- */

static void write_large(struct contract_holder *h)
{
    static uint8_t value[LARGE_BYTES];

    for (unsigned i = 0; i < 2; i++) {
        char key[16];
        struct mu__store_change change = {.revision = 1, .value = {value, LARGE_BYTES}};

        (void)snprintf(key, sizeof key, "large%u", i);
        change.key = mu__view_str(key);
        (void)contract_write(h, MU__STORE_CHANGE, &change);
    }
}

/* Batches until they are all safe, begun again whenever the store was lost. */
static void live(struct contract_state *s, struct contract_holder *h)
{
    unsigned times = 0;
    uint64_t next = 1;

    for (unsigned i = 0; i < 600 && h->committed < BATCHES; i++) {
        if (h->held && times != h->times_held) {
            contract_expect_content(&h->content, h->content.batch);
            assert_true(h->content.batch >= h->committed);
            times = h->times_held;
            next = h->content.batch + 1;
            h->committed = h->content.batch;
        }
        if (h->held && next <= BATCHES) {
            if (next == 2)
                write_large(h);
            contract_put(h, next++);
        }
        contract_run_ms(s, 50);
    }
    assert_int_equal(h->committed, BATCHES);
}

/* True: there was still an allocation to fail. */
static bool walk(long n)
{
    struct contract_state *s = contract_store_open(&fixture, 1);
    struct contract_holder *h = &s->holders[0];
    bool happened;

    has_happened = false;
    countdown = n;
    assert_int_equal(sim_start(h->node), 0);
    live(s, h);
    happened = has_happened;
    countdown = -1;
    contract_kill(h);
    h = contract_begin(s, 0);
    contract_expect_content(&h->content, BATCHES);
    assert_int_equal(h->extras, 2);
    contract_store_close(s);
    return happened;
}

TEST(test_each_allocation)
{
    long n = 0;

    while (walk(n))
        n++;
    assert_true(n > 100);
}

TEST(test_open)
{
    struct mu__http http = {NULL};
    const struct mu__store_config config = {
        .location = "http://h", .cluster_name = "c", .task = "t", .http = &http};
    struct mu__store *store = NULL;
    mu_error error;
    int rv;

    countdown = 0;
    INSIDE(rv = mu__store_etcd.open(&config, &error, &store));
    assert_int_equal(countdown, -1);
    assert_int_equal(rv, -MU_ENOMEM);
    assert_null(store);
}

TEST_PROGRAM()
