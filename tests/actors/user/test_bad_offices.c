/* A node that does not hold to what offices agree on: it gets its errors, and has no more
 * in a mailbox than it has credit for. */
#include "actors/keep.h"
#include "actors/names/owner_marks.h"
#include "actors/packing.h"
#include "tests/support/test.h"
#include "tests/support/users/user_net.h"

#include <inttypes.h>

static mu_address target; /* a probe of node 0 */

static int set_up(void **state)
{
    int rv = user_net_set_up(state);

    if (rv == 0)
        target = user_net_spawn(*state, 0, "probe", NULL, NULL);
    return rv;
}

/* A message of node 1, without credit. */
static void send_one(struct user_net *f)
{
    mu_value *args = mu_value_int(1);
    struct office *office = user_net_office(f, 1);
    const struct peer *peer = mu__map_get(&office->peers, target.incarnation);
    struct mu__msg *msg = mu__msg_new(&office->ctx, MU__ACTOR_MESSAGE);
    struct mu__actor_message *body = mu__body(msg);

    body->actor = target.number;
    body->method = mu__view_str("add");
    msg->backing = mu__pack_to_send(args, false, &body->args);
    assert_non_null(msg->backing);
    assert_int_equal(mu__send(&office->ctx, (mu__pid){peer->number, MU__ACTORS}, msg), 0);
    mu_value_free(args);
    net_settle(&f->net);
}

static int read_sum(mu_actor *self, struct user_net *f)
{
    mu_value *nothing = mu_value_int(0);
    int rv = mu_actor_call(self, &target, "add", nothing, 1000, 1);

    (void)f;
    mu_value_free(nothing);
    return rv;
}

/* As long as `most` messages of `size` bytes are in the mailbox, the next one is refused.
 * Without them it is taken. */
static void check_credit(struct user_net *f, uint32_t size, int most)
{
    mu_address reader = user_net_spawn(f, 0, "probe", NULL, NULL);
    const struct office *office = user_net_office(f, 0);
    struct peer *peer =
        mu__map_get(&office->peers, user_net_office(f, 1)->config.incarnation);
    int count = 0;

    send_one(f);
    while (mu__way_arrived(peer, target.number, size))
        count++;
    send_one(f);
    assert_int_equal(count, most);
    assert_int_equal(user_net_run(f, &reader, read_sum), 0);
    assert_int_equal(user_net_last(f, MU_NOTICE_ANSWER)->value, 1);
}

TEST_ON(test_no_more_messages_than_credit, struct user_net *f, set_up, user_net_tear_down)
{
    check_credit(f, 0, MU__ACTOR_WINDOW - 1);
}

TEST_ON(test_no_more_bytes_than_credit, struct user_net *f, set_up, user_net_tear_down)
{
    check_credit(f, MU__ACTOR_WINDOW_BYTES - 1, 1);
}

/* What is refused as it comes back to its caller takes no credit for ever. */
TEST_ON(test_credit_of_what_comes_back, struct user_net *f, set_up, user_net_tear_down)
{
    struct office *office = user_net_office(f, 1);
    const struct peer *peer = mu__map_get(&office->peers, target.incarnation);
    const struct peer *back =
        mu__map_get(&user_net_office(f, 0)->peers, office->config.incarnation);
    struct mu__msg *msg = mu__msg_new(&office->ctx, MU__ACTOR_MESSAGE);
    struct mu__actor_message *body = mu__body(msg);
    char hop[MU__ADDRESS_TEXT_MAX];

    mu__address_write(&target, hop);
    body->actor = target.number;
    body->method = mu__view_str("add");
    body->call = 77;
    body->chain = mu__view_str(hop);
    assert_int_equal(mu__send(&office->ctx, (mu__pid){peer->number, MU__ACTORS}, msg), 0);
    net_settle(&f->net);
    assert_int_equal(office->late_answers, 1);
    assert_int_equal(((struct way *)mu__map_get(&back->in, target.number))->messages, 0);
}

/* ---- owners ---- */

/* "add 1", as the owner of a name; returns the sum of the target then. */
static int64_t add_as_owner(struct user_net *f, const char *name, uint64_t epoch)
{
    mu_value *args = mu_value_int(1);
    struct office *office = user_net_office(f, 1);
    const struct peer *peer = mu__map_get(&office->peers, target.incarnation);
    mu_address reader = user_net_spawn(f, 0, "probe", NULL, NULL);
    struct mu__msg *msg = mu__msg_new(&office->ctx, MU__ACTOR_MESSAGE);
    struct mu__actor_message *body = mu__body(msg);

    body->actor = target.number;
    body->method = mu__view_str("add");
    body->owner = mu__view_str(name);
    body->epoch = epoch;
    msg->backing = mu__pack_to_send(args, false, &body->args);
    assert_int_equal(mu__send(&office->ctx, (mu__pid){peer->number, MU__ACTORS}, msg), 0);
    mu_value_free(args);
    net_settle(&f->net);
    assert_int_equal(user_net_run(f, &reader, read_sum), 0);
    return user_net_last(f, MU_NOTICE_ANSWER)->value;
}

TEST_ON(test_former_owners, struct user_net *f, set_up, user_net_tear_down)
{
    assert_int_equal(add_as_owner(f, "a", 7), 1);
    assert_int_equal(add_as_owner(f, "a", 7), 2);
    assert_int_equal(add_as_owner(f, "a", 6), 2);
    assert_int_equal(add_as_owner(f, "b", 6), 3);
    assert_int_equal(add_as_owner(f, "a", 8), 4);
    assert_int_equal(add_as_owner(f, "a", 7), 4);
    net_run_for(&f->net, OWNER_MARKS_MS - 1000);
    assert_int_equal(add_as_owner(f, "a", 7), 4);
    net_run_for(&f->net, 2000);
    assert_int_equal(add_as_owner(f, "a", 7), 5); /* it may be another service's store */
}

TEST_ON(test_owners_without_end, struct user_net *f, set_up, user_net_tear_down)
{
    struct office *office = user_net_office(f, 0);
    char name[16];

    for (uint64_t i = 0; i <= OWNER_MARKS_MAX; i++) {
        (void)snprintf(name, sizeof name, "n%" PRIu64, i);
        assert_false(mu__owner_is_former(office, mu__view_str(name), 5));
    }
    assert_int_equal(office->names->known_count, OWNER_MARKS_MAX);
    assert_true(mu__owner_is_former(office, mu__view_str("n1"), 4));
    assert_false(mu__owner_is_former(office, mu__view_str("n0"), 4));
}

/* A client owns no name, whatever it says. */
TEST_ON(test_owners_that_are_clients, struct user_net *f, set_up, user_net_tear_down)
{
    struct peer *peer = mu__map_get(&user_net_office(f, 0)->peers,
                                    user_net_office(f, 1)->config.incarnation);
    char type[sizeof peer->type];

    memcpy(type, peer->type, sizeof type);
    (void)snprintf(peer->type, sizeof peer->type, "client");
    assert_int_equal(add_as_owner(f, "a", UINT64_MAX), 0);
    memcpy(peer->type, type, sizeof type);
    assert_int_equal(add_as_owner(f, "a", 7), 1);
}

/* The codec lets no longer name through; cut short it would be that of another owner. */
TEST_ON(test_owners_without_a_name, struct user_net *f, set_up, user_net_tear_down)
{
    struct office *office = user_net_office(f, 0);
    const struct peer *peer =
        mu__map_get(&office->peers, user_net_office(f, 1)->config.incarnation);
    char name[MU__ACTOR_NAME_MAX + 2];
    mu_error error;

    assert_int_equal(add_as_owner(f, "a/b", 8), 0);
    memset(name, 'n', sizeof name - 1);
    name[MU__ACTOR_NAME_MAX + 1] = '\0';
    assert_int_equal(mu__owner_check(office, peer, mu__view_str(name), 8, &error),
                     -MU_EINVALID);
    assert_int_equal(office->names->known_count, 0);
    name[MU__ACTOR_NAME_MAX] = '\0';
    assert_int_equal(mu__owner_check(office, peer, mu__view_str(name), 7, &error), 0);
    assert_int_equal(office->names->known_count, 1);
}

/* ---- calls that node 0 is to make for node 1 ---- */

static void ask_to_relay(struct user_net *f, uint64_t call)
{
    struct office *office = user_net_office(f, 1);
    const struct peer *peer = mu__map_get(&office->peers, target.incarnation);
    struct mu__msg *msg = mu__msg_new(&office->ctx, MU__ACTOR_RELAY);
    struct mu__actor_relay *body = mu__body(msg);

    body->name = mu__view_str("nobody");
    body->method = mu__view_str("add");
    body->call = call;
    body->timeout_ms = 1000;
    assert_int_equal(mu__send(&office->ctx, (mu__pid){peer->number, MU__ACTORS}, msg), 0);
    net_settle(&f->net);
}

static size_t count_relays(const struct user_net *f)
{
    const struct office *office = user_net_office(f, 0);
    size_t count = 0;

    for (const struct mu__list_node *node = office->requests.first; node != NULL;
         node = node->next)
        count++;
    return count;
}

static void ask_for_all(struct user_net *f)
{
    for (uint64_t i = 1; i <= MU__ACTOR_WINDOW; i++)
        ask_to_relay(f, i);
    assert_int_equal(count_relays(f), MU__ACTOR_WINDOW);
}

/* Answers to calls that are not node 1's count as late there. */
TEST_ON(test_no_more_relays_than_credit, struct user_net *f, set_up, user_net_tear_down)
{
    ask_for_all(f);
    assert_int_equal(user_net_office(f, 1)->late_answers, 0);
    ask_to_relay(f, MU__ACTOR_WINDOW + 1);
    assert_int_equal(count_relays(f), MU__ACTOR_WINDOW);
    assert_int_equal(user_net_office(f, 1)->late_answers, 1);
    net_run_for(&f->net, 2000);
    assert_int_equal(count_relays(f), 0);
    assert_int_equal(user_net_office(f, 1)->late_answers, MU__ACTOR_WINDOW + 1);
    ask_for_all(f);
}

TEST_ON(test_relays_that_nobody_waits_for, struct user_net *f, set_up, user_net_tear_down)
{
    struct office *office = user_net_office(f, 1);
    const struct peer *peer = mu__map_get(&office->peers, target.incarnation);
    const struct mu__actor_cancel cancel = {.actor = MU__ACTORS, .call = 2};

    for (uint64_t i = 1; i <= 3; i++)
        ask_to_relay(f, i);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(mu__send_body(&office->ctx, (mu__pid){peer->number, MU__ACTORS},
                                       MU__ACTOR_CANCEL, &cancel, sizeof cancel),
                         0);
        net_settle(&f->net);
        assert_int_equal(count_relays(f), 2);
    }
    net_link_down(f->nodes[0], f->nodes[1]);
    net_settle(&f->net);
    assert_int_equal(count_relays(f), 0);
    net_run_for(&f->net, 2000);
    assert_int_equal(office->late_answers, 0);
}

TEST_PROGRAM()
