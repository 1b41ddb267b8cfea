/* What is kept, visited in steps while it changes: what a reader makes of what was
 * visited, and appended meanwhile, is what is there. */
#include "actors/keeper/keeper_items.h"
#include "sim/world/random.h"
#include "tests/support/test.h"

#include <inttypes.h>

enum {
    HISTORIES = 3000,
    CHANGES = 60,
    NAMES = 4,
    SENDERS = 4,
    PERCENT_STEPS = 40 /* of what happens, while it is walked */
};

struct world {
    struct mu__pool pool;
    struct sim_random random;
    struct kept_actors kept;
    struct kept_actors copy; /* of whoever reads what was written */
    uint64_t calls;
    char text[1 << 16];
    size_t text_size;
};

static uint64_t draw_to(struct world *w, uint64_t max)
{
    return sim_between(&w->random, 0, max);
}

/* ---- the reader ---- */

static void read_fence_of(struct world *w, const struct kept_actor *actor)
{
    const struct mu__keep_fence fence = {.name = actor->named.text,
                                         .epoch = actor->epoch,
                                         .owner = actor->owner,
                                         .number = actor->last};
    struct kept_actor *copy = mu__kept_actor_find(&w->copy, actor->named.text);

    if (actor->owner == 0) {
        if (copy != NULL)
            mu__kept_actor_remove(&w->copy, copy);
        return;
    }
    if (copy == NULL)
        assert_int_equal(mu__kept_actor_add(&w->copy, actor->named.text, &copy), 0);
    mu__kept_actor_fence(&w->copy, copy, &fence);
}

static void read_item(struct world *w, const struct mu__msg *msg)
{
    const struct mu__keep_item *item = (const void *)msg->body;
    struct kept_actor *copy = mu__kept_actor_find(&w->copy, item->name);

    assert_non_null(copy);
    assert_true(item->epoch <= copy->epoch);
    if (item->epoch == copy->epoch && item->number > copy->last)
        copy->last = item->number;
    assert_int_equal(mu__kept_actor_put(&w->copy, copy, msg), 0);
}

static void visit_actor_of(void *owner, const struct kept_actor *actor)
{
    read_fence_of(owner, actor);
}

static void visit_item_of(void *owner, struct mu__msg *msg)
{
    read_item(owner, msg);
}

/* ---- changes ---- */

static struct kept_actor *draw_actor(struct world *w, struct mu__view *ret_name)
{
    static const char *const names[NAMES] = {"a", "b", "c", "d"};

    *ret_name = mu__view_str(names[draw_to(w, NAMES - 1)]);
    return mu__kept_actor_find(&w->kept, *ret_name);
}

static void put_fence_of(struct world *w, const struct kept_actor *actor)
{
    if (w->kept.walk.runs && mu__kept_walk_phase(&w->kept, actor) != KEPT_AHEAD)
        read_fence_of(w, actor);
}

static void begin_life(struct world *w, struct kept_actor *actor, struct mu__view name)
{
    struct mu__keep_fence fence = {.name = name, .owner = 1};

    if (actor == NULL)
        assert_int_equal(mu__kept_actor_add(&w->kept, name, &actor), 0);
    fence.epoch = actor->epoch + 1;
    mu__kept_actor_fence(&w->kept, actor, &fence);
    put_fence_of(w, actor);
}

static void stop_actor(struct world *w, struct kept_actor *actor, bool is_for_good)
{
    uint64_t epoch = actor->epoch;

    actor->owner = 0;
    put_fence_of(w, actor);
    if (is_for_good) {
        mu__kept_actor_remove(&w->kept, actor);
        return;
    }
    mu__kept_actor_clear(&w->kept, actor);
    actor->epoch = epoch;
    begin_life(w, actor, actor->named.text);
}

static void add_item(struct world *w, struct kept_actor *actor)
{
    static const uint32_t kinds[] = {MU__KEPT_RECORD, MU__KEPT_RECORD,  MU__KEPT_RECORD,
                                     MU__KEPT_ANSWER, MU__KEPT_ANSWER,  MU__KEPT_ANSWER,
                                     MU__KEPT_FORGET, MU__KEPT_SNAPSHOT};
    struct mu__msg *msg =
        mu__pool_get(&w->pool, MU__KEEP_ITEM, mu__messages.rows[MU__KEEP_ITEM].body_size);
    struct mu__keep_item *item = (void *)msg->body;

    *item = (struct mu__keep_item){.name = actor->named.text,
                                   .epoch = actor->epoch,
                                   .number = ++actor->last,
                                   .kind = kinds[draw_to(w, 7)],
                                   .more = draw_to(w, 2) == 0,
                                   .timeout_ms = ++w->calls};
    if (item->kind == MU__KEPT_ANSWER || item->kind == MU__KEPT_FORGET)
        item->sender = 1 + draw_to(w, SENDERS - 1);
    if (item->kind == MU__KEPT_ANSWER) {
        item->call = w->calls;
        item->base = w->calls - (w->calls < 8 ? 0 : draw_to(w, 7));
    }
    if (w->kept.walk.runs && mu__kept_walk_phase(&w->kept, actor) == KEPT_BEHIND)
        read_item(w, msg);
    assert_int_equal(mu__kept_actor_put(&w->kept, actor, msg), 0);
    mu__pool_put(&w->pool, msg);
}

static void change_something(struct world *w)
{
    struct mu__view name;
    struct kept_actor *actor = draw_actor(w, &name);
    uint64_t kind = draw_to(w, 19);

    if (actor == NULL || kind == 0)
        begin_life(w, actor, name);
    else if (kind == 1)
        stop_actor(w, actor, draw_to(w, 1) == 0);
    else
        add_item(w, actor);
}

/* ---- what there is ---- */

static int add_text_of(void *owner, struct mu__msg *msg)
{
    const struct mu__keep_item *item = (const void *)msg->body;
    struct world *w = owner;
    char *at = w->text + w->text_size;
    int size =
        snprintf(at, sizeof w->text - w->text_size,
                 " %" PRIu32 ":%" PRIu64 ":%" PRIu64 ":%" PRIu64 "%s", item->kind,
                 item->timeout_ms, item->sender, item->base, item->more ? "+" : "");

    w->text_size += (size_t)size;
    assert_true(w->text_size < sizeof w->text);
    return 0;
}

static int compare_senders(const struct kept_actor *actor, const struct kept_actor *copy)
{
    for (const struct kept_sender *sender =
             MU__LIST_FIRST(&actor->senders_all, struct kept_sender, node);
         sender != NULL; sender = MU__LIST_NEXT(sender, struct kept_sender, node)) {
        const struct kept_sender *other = mu__map_get(&copy->senders, sender->id);

        if (sender->answers.first != NULL &&
            (other == NULL || other->base != sender->base))
            return -1;
    }
    return 0;
}

/* The items of each sender by its id: their order among each other does not count. */
static void print_kept(struct world *w, const struct kept_actor *actor)
{
    struct kept_actor only = *actor;

    w->text_size = 0;
    only.senders_all = (struct mu__list){NULL, NULL};
    (void)mu__kept_actor_each(&only, add_text_of, w);
    for (uint64_t id = 1; id <= SENDERS; id++) {
        const struct kept_sender *sender = mu__map_get(&actor->senders, id);

        for (struct mu__msg *msg = sender == NULL ? NULL : sender->answers.first;
             msg != NULL; msg = msg->next)
            (void)add_text_of(w, msg);
    }
}

static void assert_same(struct world *w, uint64_t seed)
{
    static char text[sizeof w->text];

    assert_int_equal(w->copy.count, w->kept.count);
    for (struct kept_actor *actor = MU__LIST_FIRST(&w->kept.all, struct kept_actor, node);
         actor != NULL; actor = MU__LIST_NEXT(actor, struct kept_actor, node)) {
        const struct kept_actor *copy = mu__kept_actor_find(&w->copy, actor->named.text);

        assert_non_null(copy);
        w->text[0] = '\0';
        print_kept(w, actor);
        (void)snprintf(text, sizeof text, "%s", w->text);
        w->text[0] = '\0';
        print_kept(w, copy);
        if (strcmp(text, w->text) != 0 || compare_senders(actor, copy) != 0 ||
            copy->last != actor->last || copy->epoch != actor->epoch)
            fail_msg("history %" PRIu64 ", %s: %" PRIu64 ".%" PRIu64
                     "%s, and not %" PRIu64 ".%" PRIu64 "%s",
                     seed, actor->name, copy->epoch, copy->last, w->text, actor->epoch,
                     actor->last, text);
    }
}

static void expect_history_is_kept(uint64_t seed)
{
    static struct world world;
    struct world *w = &world;
    const struct kept_visitor visitor = {visit_actor_of, visit_item_of, w};
    bool is_over = false;

    memset(w, 0, sizeof *w);
    mu__pool_init(&w->pool);
    w->random = sim_stream(seed, 7);
    w->kept.pool = w->copy.pool = &w->pool;
    w->kept.schema = w->copy.schema = &mu__messages;
    for (unsigned i = 0; i < CHANGES; i++)
        change_something(w);
    mu__kept_walk_begin(&w->kept, &visitor);
    while (!is_over || draw_to(w, 9) > 0)
        if (sim_chance(&w->random, PERCENT_STEPS))
            is_over = mu__kept_walk_step(&w->kept, 1 + draw_to(w, 2000));
        else
            change_something(w);
    while (!mu__kept_walk_step(&w->kept, 1)) {
    }
    assert_same(w, seed);
    mu__kept_walk_end(&w->kept);
    mu__kept_actors_done(&w->kept);
    mu__kept_actors_done(&w->copy);
    mu__pool_done(&w->pool);
}

TEST(test_any_history)
{
    for (uint64_t seed = 1; seed <= HISTORIES; seed++)
        expect_history_is_kept(seed);
}

TEST_PROGRAM()
