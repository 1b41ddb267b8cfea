/* The lists of closures: where each one is, in which order, and that an id never finds
 * another closure. Chance is compared with a naive model. */
#include "actors/supervisor/state/closures.h"
#include "sim/world/random.h"
#include "tests/support/test.h"

enum { LISTS = 5, MODEL_MAX = 3000, STEPS = 60000 };

static void check_order(const struct mu__closures *closures, uint32_t list,
                        const uint64_t *tokens, size_t count)
{
    struct mu__closure *closure = mu__closures_first(closures, list);

    assert_int_equal(mu__closures_count(closures, list), count);
    for (size_t i = 0; i < count; i++) {
        assert_non_null(closure);
        assert_int_equal(closure->token, tokens[i]);
        assert_int_equal(closure->list, list);
        if (i + 1 == count)
            assert_ptr_equal(mu__closures_last(closures, list), closure);
        closure = mu__closures_next(closures, closure);
    }
    assert_null(closure);
    if (count == 0)
        assert_null(mu__closures_last(closures, list));
}

static struct mu__closure *add(struct mu__closures *closures, uint64_t token)
{
    struct mu__closure *closure = mu__closures_add(closures);

    assert_non_null(closure);
    closure->token = token;
    return closure;
}

TEST(test_order)
{
    struct mu__closures closures;
    struct mu__closure *c[4];

    assert_int_equal(mu__closures_init(&closures), 0);
    assert_int_equal(mu__closures_make_list(&closures, 2), 0);
    for (uint64_t i = 0; i < 4; i++)
        c[i] = add(&closures, i);
    check_order(&closures, MU__LIST_QUEUE, (uint64_t[]){0, 1, 2, 3}, 4);
    mu__closures_move_last(&closures, c[0], 2);
    mu__closures_move_last(&closures, c[2], 2);
    check_order(&closures, MU__LIST_QUEUE, (uint64_t[]){1, 3}, 2);
    check_order(&closures, 2, (uint64_t[]){0, 2}, 2);
    check_order(&closures, 1, NULL, 0);

    /* As when a worker is lost: from its last one on, to the front. */
    mu__closures_move_first(&closures, c[2], MU__LIST_QUEUE);
    mu__closures_move_first(&closures, c[0], MU__LIST_QUEUE);
    check_order(&closures, MU__LIST_QUEUE, (uint64_t[]){0, 2, 1, 3}, 4);
    mu__closures_remove(&closures, c[2]);
    check_order(&closures, MU__LIST_QUEUE, (uint64_t[]){0, 1, 3}, 3);
    assert_int_equal(closures.count, 3);
    mu__closures_done(&closures);
}

TEST(test_ids)
{
    struct mu__closures closures;
    struct mu__closure *closure;
    uint64_t id;
    uint64_t later;

    assert_int_equal(mu__closures_init(&closures), 0);
    assert_null(mu__closures_find(&closures, 0));
    closure = add(&closures, 1);
    id = mu__closure_id(closure);
    assert_true(id != 0);
    assert_ptr_equal(mu__closures_find(&closures, id), closure);
    mu__closures_remove(&closures, closure);
    assert_null(mu__closures_find(&closures, id));

    /* The place is used again, the id is not. */
    closure = add(&closures, 2);
    later = mu__closure_id(closure);
    assert_true(later != id);
    assert_int_equal((uint32_t)later, (uint32_t)id);
    assert_null(mu__closures_find(&closures, id));
    assert_null(mu__closures_find(&closures, later + 1));
    assert_null(mu__closures_find(&closures, UINT64_MAX));
    assert_int_equal(closure->attempt, 0);
    mu__closures_done(&closures);
}

/* What a closure was backed by is dropped with it, and with the whole. */
TEST(test_backing)
{
    struct mu__closures closures;
    struct mu__buf *buf = mu__buf_new(16);

    assert_non_null(buf);
    assert_int_equal(mu__closures_init(&closures), 0);
    add(&closures, 1)->backing = mu__buf_ref(buf);
    add(&closures, 2)->backing = mu__buf_ref(buf);
    mu__closures_remove(&closures, mu__closures_first(&closures, MU__LIST_QUEUE));
    assert_int_equal(buf->refs, 2);
    mu__closures_done(&closures);
    assert_int_equal(buf->refs, 1);
    mu__buf_unref(buf);
}

/* ---- A model: an array for each list ---- */

struct model {
    struct {
        uint64_t tokens[MODEL_MAX];
        uint64_t ids[MODEL_MAX];
        size_t count;
    } lists[LISTS];
    size_t count;
    uint64_t token_next;
};

static void model_insert(struct model *model, size_t list, size_t at, uint64_t token,
                         uint64_t id)
{
    size_t behind = model->lists[list].count++ - at;

    memmove(&model->lists[list].tokens[at + 1], &model->lists[list].tokens[at],
            behind * sizeof token);
    memmove(&model->lists[list].ids[at + 1], &model->lists[list].ids[at],
            behind * sizeof id);
    model->lists[list].tokens[at] = token;
    model->lists[list].ids[at] = id;
}

static void model_remove(struct model *model, size_t list, size_t at)
{
    size_t behind = --model->lists[list].count - at;

    memmove(&model->lists[list].tokens[at], &model->lists[list].tokens[at + 1],
            behind * sizeof(uint64_t));
    memmove(&model->lists[list].ids[at], &model->lists[list].ids[at + 1],
            behind * sizeof(uint64_t));
}

static void step_add(struct model *model, struct mu__closures *closures)
{
    struct mu__closure *closure;

    if (model->count == MODEL_MAX)
        return;
    closure = add(closures, model->token_next);
    model_insert(model, MU__LIST_QUEUE, model->lists[MU__LIST_QUEUE].count,
                 model->token_next++, mu__closure_id(closure));
    model->count++;
}

static void step_other(struct model *model, struct mu__closures *closures,
                       struct sim_random *random)
{
    size_t list = sim_between(random, 0, LISTS - 1);
    size_t to = sim_between(random, 0, LISTS - 1);
    struct mu__closure *closure;
    uint64_t token;
    uint64_t id;
    size_t at;

    if (model->lists[list].count == 0)
        return;
    at = sim_between(random, 0, model->lists[list].count - 1);
    token = model->lists[list].tokens[at];
    id = model->lists[list].ids[at];
    closure = mu__closures_find(closures, id);
    assert_non_null(closure);
    assert_int_equal(closure->token, token);
    model_remove(model, list, at);
    switch (sim_between(random, 0, 2)) {
    case 0:
        mu__closures_remove(closures, closure);
        model->count--;
        assert_null(mu__closures_find(closures, id));
        break;
    case 1:
        mu__closures_move_last(closures, closure, (uint32_t)to);
        model_insert(model, to, model->lists[to].count, token, id);
        break;
    default:
        mu__closures_move_first(closures, closure, (uint32_t)to);
        model_insert(model, to, 0, token, id);
        break;
    }
}

TEST(test_model)
{
    static struct model model;

    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct sim_random random = sim_stream(seed, 1);
        struct mu__closures closures;

        model = (struct model){.token_next = 1};
        assert_int_equal(mu__closures_init(&closures), 0);
        assert_int_equal(mu__closures_make_list(&closures, LISTS - 1), 0);
        for (int i = 0; i < STEPS; i++) {
            if (sim_chance(&random, (i / 10000) % 2 == 0 ? 50 : 15))
                step_add(&model, &closures);
            else
                step_other(&model, &closures, &random);
            assert_int_equal(closures.count, model.count);
            for (uint32_t list = 0; list < LISTS && i % 500 == 0; list++)
                check_order(&closures, list, model.lists[list].tokens,
                            model.lists[list].count);
        }
        mu__closures_done(&closures);
    }
}

TEST_PROGRAM()
