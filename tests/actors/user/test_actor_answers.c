/* Answers that cannot be one: each is an error of its call, on one node and between two,
 * and the actor goes on. */
#include "runtime/message/value_layout.h"
#include "tests/support/test.h"
#include "tests/support/users/user_net.h"

static mu_address here;
static mu_address other;

static int answer_depth(mu_actor *self, void *state, const mu_value *args)
{
    int64_t depth = 0;
    mu_value *value = mu_value_list();

    (void)state;
    assert_int_equal(mu_value_get_int(args, &depth), 0);
    for (int64_t i = 1; i < depth; i++) {
        mu_value *outer = mu_value_list();

        assert_int_equal(mu_value_append(outer, value), 0);
        value = outer;
    }
    mu_actor_reply(self, value);
    return 0;
}

static int answer_reference(mu_actor *self, void *state, const mu_value *args)
{
    mu_value *value = mu_value_list();

    (void)state;
    (void)args;
    assert_int_equal(mu_value_append(value, mu__value_reference(7, NULL, NULL)), 0);
    mu_actor_reply(self, value);
    return 0;
}

static const mu_actor_method methods[] = {
    {"depth", answer_depth}, {"reference", answer_reference}, {NULL, NULL}};
static const mu_actor_type odd = {.name = "odd", .methods = methods};

static int call_odd(mu_actor *self, struct user_net *f)
{
    mu_value *fine = mu_value_int(MU_VALUE_DEPTH_MAX / 2);
    mu_value *deep = mu_value_int(MU_VALUE_DEPTH_MAX + 1);

    (void)f;
    assert_int_equal(mu_actor_call(self, &other, "depth", deep, 1000, 1), 0);
    assert_int_equal(mu_actor_call(self, &other, "reference", NULL, 1000, 2), 0);
    assert_int_equal(mu_actor_call(self, &other, "depth", fine, 1000, 3), 0);
    mu_value_free(fine);
    mu_value_free(deep);
    return 0;
}

static void check_answer_errors(struct user_net *f, size_t node)
{
    f->notes_count = 0;
    other = user_net_spawn(f, node, "odd", NULL, NULL);
    assert_int_equal(user_net_run(f, &here, call_odd), 0);
    assert_int_equal(f->notes_count, 3);
    assert_int_equal(f->notes[0].error.code, -MU_ERANGE);
    assert_int_equal(f->notes[1].error.code, -MU_EINVALID);
    for (int i = 0; i < 2; i++)
        assert_int_equal(f->notes[i].error.ran, MU_RAN_YES);
    assert_int_equal(f->notes[2].error.code, 0);
}

TEST_ON(test_what_cannot_be_an_answer, struct user_net *f, user_net_set_up,
        user_net_tear_down)
{
    user_net_register(f, &odd);
    here = user_net_spawn(f, 0, "probe", NULL, NULL);
    check_answer_errors(f, 0);
    check_answer_errors(f, 1);
}

TEST_PROGRAM()
