#include "tests/support/users/user_net.h"

#include "tests/support/test.h"

static probe_turn next_turn;
static struct user_net *next_net;
static int next_returned;

/* ---- the probe ---- */

struct probe_state {
    int64_t sum;
    mu_reply *held;
};

static int run_probe(mu_actor *self, void *state, const mu_value *args)
{
    (void)state;
    (void)args;
    next_returned = next_turn(self, next_net);
    return next_returned;
}

static int add_numbers(mu_actor *self, void *state, const mu_value *args)
{
    struct probe_state *own = state;
    int64_t number = 0;

    if (mu_value_get_int(args, &number) != 0)
        return mu_actor_fail(self, -MU_EINVALID, "%d is expected", 1);
    own->sum += number;
    mu_actor_reply(self, mu_value_int(own->sum));
    return 0;
}

static int hold_answer(mu_actor *self, void *state, const mu_value *args)
{
    struct probe_state *own = state;

    (void)args;
    own->held = mu_actor_reply_later(self);
    return own->held == NULL ? -MU_ENOMEM : 0;
}

/* Returns its argument; the answer that was held has left if that is 0. */
static int give_answer(mu_actor *self, void *state, const mu_value *args)
{
    struct probe_state *own = state;
    int64_t code = 0;

    (void)self;
    assert_int_equal(mu_value_get_int(args, &code), 0);
    assert_int_equal(mu_reply_give(own->held, mu_value_int(42), NULL), 0);
    assert_int_equal(mu_reply_give(own->held, mu_value_int(43), NULL), -MU_EINVALID);
    return (int)code;
}

static void note(mu_actor *self, void *state, const mu_notice *notice)
{
    struct user_net *f = next_net;
    struct probe_note *one = &f->notes[f->notes_count++];

    (void)state;
    assert_true(f->notes_count <= PROBE_NOTES_MAX);
    *one = (struct probe_note){
        .kind = notice->kind, .token = notice->token, .address = notice->address};
    (void)mu_value_get_int(notice->value, &one->value);
    if (notice->error != NULL)
        one->error = *notice->error;
    if (notice->kind == MU_NOTICE_TIMER && f->on_timer != NULL)
        assert_int_equal(f->on_timer(self, f), 0);
}

static const mu_actor_method methods[] = {{"run", run_probe},
                                          {"add", add_numbers},
                                          {"hold", hold_answer},
                                          {"give", give_answer},
                                          {NULL, NULL}};

static const mu_actor_type probe = {
    .name = "probe",
    .state_size = sizeof(struct probe_state),
    .methods = methods,
    .notice = note,
};

/* ---- the processes ---- */

struct office *user_net_office(const struct user_net *f, size_t node)
{
    return mu__actor_state(f->nodes[node]->kernel, (mu__pid){MU__NODE_SELF, MU__ACTORS});
}

static int spawn_office(struct net_process *p)
{
    const struct mu__actors_config config = {
        .task = p->address,
        .type = p->type,
        .index = p->index,
        .incarnation = p->incarnation,
    };
    int rv = mu__spawn(p->kernel, &mu__actors, MU__ACTORS, &config, NULL);

    if (rv == 0)
        rv = mu__types_add(mu__actor_state(p->kernel,
                                           (mu__pid){MU__NODE_SELF, MU__ACTORS}),
                           &probe, NULL);
    return rv;
}

int user_net_set_up(void **state)
{
    struct user_net *f = calloc(1, sizeof *f);

    if (f == NULL)
        return -1;
    f->notes = calloc(PROBE_NOTES_MAX + 1, sizeof *f->notes);
    net_init(&f->net, 1);
    for (uint32_t i = 0; i < USER_NET_NODES; i++) {
        f->nodes[i] = net_add(&f->net, "worker", i, spawn_office);
        f->nodes[i]->incarnation = (i + 1) * 1000; /* no two processes have the same */
    }
    for (uint32_t i = 0; i < USER_NET_NODES; i++)
        net_start(f->nodes[i]);
    net_settle(&f->net);
    next_net = f;
    *state = f;
    return 0;
}

int user_net_tear_down(void **state)
{
    struct user_net *f = *state;

    net_done(&f->net);
    free(f->notes);
    free(f);
    return 0;
}

void user_net_register(struct user_net *f, const mu_actor_type *type)
{
    for (size_t i = 0; i < USER_NET_NODES; i++)
        assert_int_equal(mu__types_add(user_net_office(f, i), type, NULL), 0);
}

mu_address user_net_spawn(struct user_net *f, size_t node, const char *type,
                          const mu_value *args, const mu_actor_options *options)
{
    struct office *office = user_net_office(f, node);
    mu_actor_options own;
    struct mail *start;
    mu_address address;

    assert_int_equal(mu__actors_read_options(options, NULL, &own), 0);
    assert_int_equal(mu__spawn_user(office, mu__view_str(type), NULL,
                                    args == NULL ? NULL : mu_value_ref(args), &own, NULL,
                                    &start),
                     0);
    address = mu__actor_address(office, start->actor);
    mu__turn_do(office, start);
    net_settle(&f->net);
    return address;
}

static size_t node_of(const struct user_net *f, const mu_address *actor)
{
    size_t node = 0;

    while (node < USER_NET_NODES && f->nodes[node]->index != actor->index)
        node++;
    return node;
}

int user_net_run(struct user_net *f, const mu_address *actor, probe_turn turn)
{
    struct office *office = user_net_office(f, node_of(f, actor));
    struct mail *mail;

    next_turn = turn;
    next_returned = -1;
    assert_int_equal(mu__message_make(office, actor, "run", NULL, NULL, 0, NULL, &mail),
                     0);
    mu__turn_do(office, mail);
    net_settle(&f->net);
    return next_returned;
}

size_t user_net_count(const struct user_net *f, int kind)
{
    size_t count = 0;

    for (size_t i = 0; i < f->notes_count; i++)
        count += f->notes[i].kind == kind;
    return count;
}

const struct probe_note *user_net_last(const struct user_net *f, int kind)
{
    for (size_t i = f->notes_count; i-- > 0;)
        if (f->notes[i].kind == kind)
            return &f->notes[i];
    fail_msg("no notice of kind %d has come", kind);
    return NULL;
}

bool user_net_lives(const struct user_net *f, size_t node, const mu_address *actor)
{
    return mu__actor_find(user_net_office(f, node), actor->number) != NULL;
}
