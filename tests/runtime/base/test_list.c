/* The list, against an array. */
#include "runtime/base/list.h"

#include "sim/world/random.h"
#include "tests/support/test.h"

enum { ITEMS = 20, STEPS = 20000 };

struct item {
    unsigned number;
    struct mu__list_node node; /* not first: the macros know where it is */
    bool is_there;
};

/* What should be in the list, in order. */
struct model {
    struct item *items[ITEMS];
    size_t count;
};

static void insert(struct model *model, size_t at, struct item *item)
{
    memmove(&model->items[at + 1], &model->items[at],
            (model->count - at) * sizeof(struct item *));
    model->items[at] = item;
    model->count++;
    item->is_there = true;
}

static void take_out(struct model *model, size_t at)
{
    model->items[at]->is_there = false;
    model->count--;
    memmove(&model->items[at], &model->items[at + 1],
            (model->count - at) * sizeof(struct item *));
}

static size_t place_of(const struct model *model, const struct item *item)
{
    size_t at = 0;

    while (model->items[at] != item)
        at++;
    return at;
}

static void check(const struct mu__list *list, const struct model *model)
{
    const struct mu__list_node *before = NULL;
    size_t at = 0;

    assert_int_equal(mu__list_is_empty(list), model->count == 0);
    for (const struct item *item = MU__LIST_FIRST(list, struct item, node); item != NULL;
         item = MU__LIST_NEXT(item, struct item, node), at++) {
        assert_true(at < model->count);
        assert_ptr_equal(item, model->items[at]);
        assert_ptr_equal(item->node.prev, before);
        before = &item->node;
    }
    assert_int_equal(at, model->count);
    assert_ptr_equal(list->last, before);
    assert_ptr_equal(MU__LIST_LAST(list, struct item, node),
                     at == 0 ? NULL : model->items[at - 1]);
}

static void add(struct mu__list *list, struct model *model, struct item *item, size_t how)
{
    if (how == 0) {
        mu__list_prepend(list, &item->node);
        insert(model, 0, item);
    } else if (how == 1 || model->count == 0) {
        mu__list_append(list, &item->node);
        insert(model, model->count, item);
    } else {
        size_t at = how % model->count;

        mu__list_insert(list, &model->items[at]->node, &item->node);
        insert(model, at, item);
    }
}

TEST(test_as_an_array)
{
    static struct item items[ITEMS];
    struct sim_random random = sim_stream(5, 0);
    struct mu__list list = {0};
    struct model model = {.count = 0};

    for (unsigned step = 0; step < STEPS; step++) {
        struct item *item = &items[sim_draw(&random) % ITEMS];

        if (!item->is_there) {
            add(&list, &model, item, sim_draw(&random) % 8);
        } else if (sim_draw(&random) % 4 == 0) {
            assert_ptr_equal(mu__list_pop(&list), &model.items[0]->node);
            take_out(&model, 0);
        } else {
            mu__list_remove(&list, &item->node);
            assert_null(item->node.next);
            assert_null(item->node.prev);
            take_out(&model, place_of(&model, item));
        }
        check(&list, &model);
    }
}

TEST(test_append_all)
{
    static struct item items[ITEMS];
    struct mu__list lists[2] = {{0}};
    struct model none = {.count = 0};
    struct model all = {.count = 0};

    mu__list_append_all(&lists[0], &lists[1]);
    check(&lists[0], &none);
    for (unsigned i = 0; i < 3; i++) {
        mu__list_append(&lists[1], &items[i].node);
        insert(&all, i, &items[i]);
    }
    mu__list_append_all(&lists[0], &lists[1]);
    check(&lists[0], &all);
    check(&lists[1], &none);
    mu__list_append_all(&lists[0], &lists[1]);
    check(&lists[0], &all);
    for (unsigned i = 3; i < 5; i++) {
        mu__list_append(&lists[1], &items[i].node);
        insert(&all, i, &items[i]);
    }
    mu__list_append_all(&lists[0], &lists[1]);
    check(&lists[0], &all);
    assert_null(mu__list_pop(&lists[1]));
}

TEST_PROGRAM()
