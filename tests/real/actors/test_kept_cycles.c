/* Calls that wait for each other through kept actors and plain ones, on one node and
 * between two: an error at once, with the chain. */
#include "tests/real/nodes.h"

#include <stdlib.h>

/* ---- a type ---- */

/* It passes on a list of addresses, without the first one, to that one; it answers when
 * it is answered. */
struct ring {
    mu_reply *held;
};

static int pass_on(mu_actor *self, void *state, const mu_value *args)
{
    struct ring *ring = state;
    size_t count = mu_value_count(args);
    mu_value *rest;
    mu_address next;
    int rv;

    if (count == 0)
        return 0;
    rest = mu_value_list();
    for (size_t i = 1; i < count; i++)
        (void)mu_value_append(rest, mu_value_ref(mu_value_at(args, i)));
    ring->held = mu_actor_reply_later(self);
    rv = mu_value_get_actor(mu_value_at(args, 0), &next);
    if (rv == 0)
        rv = mu_actor_call(self, &next, "pass", rest, 2 * SOON_MS, 1);
    mu_value_free(rest);
    return rv;
}

static void hear(mu_actor *self, void *state, const mu_notice *notice)
{
    struct ring *ring = state;

    (void)self;
    if (notice->kind == MU_NOTICE_ANSWER)
        (void)mu_reply_give(ring->held, NULL, notice->error);
}

static int save_nothing(void *state, mu_value **ret_saved)
{
    (void)state;
    *ret_saved = mu_value_nil();
    return *ret_saved == NULL ? -MU_ENOMEM : 0;
}

static int load_nothing(mu_actor *self, void *state, const mu_value *saved,
                        unsigned version)
{
    (void)self;
    (void)state;
    (void)saved;
    (void)version;
    return 0;
}

static const mu_actor_method methods[] = {{"pass", pass_on}, {NULL, NULL}};
static const mu_actor_type ring_type = {
    .name = "ring",
    .state_size = sizeof(struct ring),
    .methods = methods,
    .notice = hear,
    .save = save_nothing,
    .load = load_nothing,
};

/* ---- nodes ---- */

static mu_node *open_task(struct nodes *nodes, const char *type, const char *store)
{
    mu_node_options options;
    mu_node *node;

    nodes_options(nodes, type, 0, &options);
    options.store = store;
    node = nodes_open_with(nodes, &options);
    assert_int_equal(mu_node_register_actor(node, &ring_type), 0);
    return node;
}

static mu_address spawn(mu_node *node, const char *name, const char *type, unsigned flags)
{
    mu_actor_options options;
    mu_error error = {0};
    mu_address address;

    mu_actor_options_init(&options);
    options.name = name;
    options.task_type = type;
    options.flags = flags;
    check(mu_node_spawn(node, "ring", NULL, &options, SOON_MS, &error, &address), &error);
    return address;
}

/* Through all of them, the first one first. */
static mu_error pass_through(mu_node *node, const mu_address *const *all)
{
    mu_value *rest = mu_value_list();
    mu_remote_value *value = NULL;
    mu_error error = {0};

    for (size_t i = 1; all[i] != NULL; i++)
        (void)mu_value_append(rest, mu_value_actor(all[i]));
    check(mu_actor_request(node, all[0], "pass", rest, SOON_MS, &error, &value), &error);
    mu_value_free(rest);
    (void)mu_remote_value_fetch(value, -1, &error, NULL);
    mu_remote_value_free(value);
    return error;
}

static void expect_fine(mu_node *node, const mu_address *const *all)
{
    mu_error error = pass_through(node, all);

    check(error.code, &error);
}

/* `hops` actors wait for each other. */
static void expect_cycle(mu_node *node, const mu_address *const *all, unsigned hops)
{
    mu_error error = pass_through(node, all);
    const char *at = error.message;
    unsigned count = 0;

    assert_int_equal(error.code, -MU_EPRECONDITION);
    assert_non_null(strstr(error.message, "the calls wait for each other: /job:"));
    while ((at = strstr(at, "ring.pass > ")) != NULL) {
        count++;
        at++;
    }
    assert_int_equal(count, hops);
}

#define ALL(...) ((const mu_address *const[]){__VA_ARGS__, NULL})

TEST(test_cycles_through_kept_actors)
{
    char folder[] = "/tmp/muster-cycles-XXXXXX";
    struct nodes nodes;
    mu_address a, b, plain;
    char text[128];
    mu_node *chief;

    assert_non_null(mkdtemp(folder));
    (void)snprintf(text, sizeof text, "journal:%s/store", folder);
    nodes_init(&nodes, 1, 0);
    chief = open_task(&nodes, "chief", text);
    (void)open_task(&nodes, "worker", NULL);
    a = spawn(chief, "a", "chief", MU_ACTOR_KEPT);
    b = spawn(chief, "b", "worker", MU_ACTOR_KEPT);
    plain = spawn(chief, NULL, NULL, 0);

    expect_fine(chief, ALL(&a, &b, &plain));
    expect_cycle(chief, ALL(&a, &a), 1);
    expect_cycle(chief, ALL(&a, &b, &a), 2);
    expect_cycle(chief, ALL(&b, &a, &plain, &b), 3);
    expect_cycle(chief, ALL(&plain, &b, &plain), 2);
    expect_cycle(chief, ALL(&plain, &a, &b, &a), 3);
    expect_fine(chief, ALL(&b, &a, &plain));

    nodes_done(&nodes);
    (void)snprintf(text, sizeof text, "rm -r %s", folder);
    assert_int_equal(system(text), 0);
}

TEST_PROGRAM()
