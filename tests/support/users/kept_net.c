#include "tests/support/users/kept_net.h"

#include "tests/support/test.h"

static struct kept_net *net_of_turns;

/* ---- the counter ---- */

struct counter {
    int64_t sum;
    mu_reply *held;
    mu_stream *stream;
};

static int record_number(mu_actor *self, int64_t number)
{
    mu_value *record = mu_value_int(number);
    int rv = mu_actor_record(self, record);

    mu_value_free(record);
    return rv;
}

static int counter_start(mu_actor *self, void *state, const mu_value *args)
{
    (void)self;
    (void)state;
    (void)args;
    if (net_of_turns != NULL)
        net_of_turns->starts++;
    return 0;
}

static int counter_add(mu_actor *self, void *state, const mu_value *args)
{
    struct counter *own = state;
    int64_t number = 0;
    int rv;

    if (mu_value_get_int(args, &number) != 0 || number < 0)
        return mu_actor_fail(self, -MU_EINVALID, "a number from 0 on is expected");
    rv = record_number(self, number);
    if (rv == 0)
        mu_actor_reply(self, mu_value_int(own->sum));
    return rv;
}

static int counter_get(mu_actor *self, void *state, const mu_value *args)
{
    const struct counter *own = state;

    (void)args;
    mu_actor_reply(self, mu_value_int(own->sum));
    return 0;
}

static int counter_bad(mu_actor *self, void *state, const mu_value *args)
{
    (void)state;
    (void)args;
    assert_int_equal(record_number(self, 100), 0);
    return mu_actor_fail(self, -MU_EABORTED, "it has changed its mind");
}

/* As "bad" the first time, and as "add" from then on. */
static int counter_flip(mu_actor *self, void *state, const mu_value *args)
{
    return net_of_turns->flips++ == 0 ? counter_bad(self, state, args)
                                      : counter_add(self, state, args);
}

static int counter_tell(mu_actor *self, void *state, const mu_value *args)
{
    mu_value *one = mu_value_int(1);
    int rv = record_number(self, 1);

    (void)state;
    (void)args;
    if (rv == 0)
        rv = mu_actor_send(self, &net_of_turns->told, "add", one);
    mu_value_free(one);
    return rv;
}

static int counter_hold(mu_actor *self, void *state, const mu_value *args)
{
    struct counter *own = state;

    (void)args;
    own->held = mu_actor_reply_later(self);
    return record_number(self, 1);
}

static int counter_give(mu_actor *self, void *state, const mu_value *args)
{
    struct counter *own = state;

    (void)self;
    (void)args;
    return mu_reply_give(own->held, mu_value_int(own->sum), NULL);
}

static int counter_work(mu_actor *self, void *state, const mu_value *args)
{
    int rv = record_number(self, 1);

    return rv == 0 ? counter_give(self, state, args) : rv;
}

static int counter_wait(mu_actor *self, void *state, const mu_value *args)
{
    struct counter *own = state;

    (void)args;
    own->held = mu_actor_put_off(self);
    return own->held == NULL ? -MU_ENOMEM : 0;
}

static int counter_flow(mu_actor *self, void *state, const mu_value *args)
{
    struct counter *own = state;
    mu_value *sum;
    int rv;

    (void)args;
    own->stream = mu_actor_stream(self, 0, 0);
    rv = record_number(self, 1);
    sum = mu_value_int(own->sum);
    if (rv == 0)
        rv = mu_stream_give(own->stream, sum);
    mu_value_free(sum);
    return rv;
}

static int counter_save(void *state, mu_value **ret_saved)
{
    *ret_saved = mu_value_int(((struct counter *)state)->sum);
    return *ret_saved == NULL ? -MU_ENOMEM : 0;
}

static int counter_load(mu_actor *self, void *state, const mu_value *saved,
                        unsigned version)
{
    (void)self;
    if (version != 1)
        return -MU_EINVALID;
    return saved == NULL ? 0 : mu_value_get_int(saved, &((struct counter *)state)->sum);
}

static int counter_replay(void *state, const mu_value *record)
{
    int64_t number = 0;
    int rv = mu_value_get_int(record, &number);

    ((struct counter *)state)->sum += number;
    return rv;
}

static const mu_actor_method counter_methods[] = {{"add", counter_add},
                                                  {"get", counter_get},
                                                  {"bad", counter_bad},
                                                  {"flip", counter_flip},
                                                  {"tell", counter_tell},
                                                  {"hold", counter_hold},
                                                  {"give", counter_give},
                                                  {"wait", counter_wait},
                                                  {"work", counter_work},
                                                  {"flow", counter_flow},
                                                  {NULL, NULL}};

const mu_actor_type kept_counter = {
    .name = "counter",
    .state_size = sizeof(struct counter),
    .methods = counter_methods,
    .start = counter_start,
    .save = counter_save,
    .load = counter_load,
    .replay = counter_replay,
    .version = 1,
};

/* ---- the processes ---- */

static int spawn_keeper(struct net_process *p)
{
    const struct mu__keeper_config config = {
        .storage = &((struct kept_net *)(uintptr_t)p->arg)->storage->base,
        .bytes_max = ((struct kept_net *)(uintptr_t)p->arg)->bytes_max,
        .rewrite_bytes = ((struct kept_net *)(uintptr_t)p->arg)->rewrite_bytes,
        .error = &((struct kept_net *)(uintptr_t)p->arg)->error,
    };

    return mu__spawn(p->kernel, &mu__keeper, MU__KEEPER, &config, NULL);
}

int kept_net_set_up(void **state)
{
    struct kept_net *f = calloc(1, sizeof *f);
    void *users = NULL;

    if (f == NULL || user_net_set_up(&users) != 0)
        return -1;
    f->users = users;
    f->storage = sim_storage_new("actors.kept", 1);
    f->bytes_max = MU__KEEPER_BYTES;
    f->rewrite_bytes = 16 << 20; /* no test but its own writes so much */
    f->chief = net_add(&f->users->net, "chief", 0, spawn_keeper);
    f->chief->incarnation = 9000;
    f->chief->arg = f;
    net_start(f->chief);
    net_settle(&f->users->net);
    for (size_t i = 0; i < USER_NET_NODES; i++)
        f->probes[i] = user_net_spawn(f->users, i, "probe", NULL, NULL);
    f->told = user_net_spawn(f->users, 0, "probe", NULL, NULL);
    net_of_turns = f;
    *state = f;
    return 0;
}

int kept_net_tear_down(void **state)
{
    struct kept_net *f = *state;
    void *users = f->users;

    (void)user_net_tear_down(&users);
    sim_storage_free(f->storage);
    free(f);
    return 0;
}

static void on_news(void *owner, const char *name, enum mu__kept_news news,
                    const mu_error *error)
{
    struct kept_net *f = owner;

    assert_string_equal(name, "total");
    f->born += news == MU__KEPT_BORN;
    f->is_born |= news == MU__KEPT_BORN;
    f->ended += news == MU__KEPT_ENDED;
    if (news == MU__KEPT_ENDED && error != NULL)
        f->why = *error;
}

void kept_net_route(struct kept_net *f, size_t from, size_t to)
{
    const mu_address owner = mu__actor_address(user_net_office(f->users, to), 0);

    mu__kept_route(user_net_office(f->users, from), "total", &owner);
}

void kept_net_own(struct kept_net *f, size_t node)
{
    const struct mu__kept_own own = {
        .name = "total",
        .epoch = ++f->epoch,
        .type = &kept_counter,
        .is_born = f->is_born,
        .made = f->made,
        .keeper_type = "chief",
        .news = on_news,
        .owner = f,
    };

    assert_int_equal(mu__kept_own(user_net_office(f->users, node), &own, NULL), 0);
    for (size_t i = 0; i < USER_NET_NODES; i++)
        if (f->users->nodes[i]->kernel != NULL)
            kept_net_route(f, i, node);
}

void kept_net_call(struct kept_net *f, size_t node, const char *method, int64_t number,
                   uint64_t token)
{
    struct office *office = user_net_office(f->users, node);
    const mu_address nobody = {.index = 0};
    struct pending_call *call = mu__call_new(office, &nobody, method, 60000);
    mu_value *args = mu_value_int(number);
    struct mail *mail;
    mu_error error;

    call->owner = mu__actor_find(office, f->probes[node].number);
    call->token = token;
    call->owner->calls_count++;
    assert_int_equal(
        mu__kept_call_make(office, "total", method, args, call, 0, &error, &mail), 0);
    mu_value_free(args);
    mu__turn_do(office, mail);
}

const struct probe_note *kept_net_answer(const struct kept_net *f, uint64_t token)
{
    const struct probe_note *found = NULL;

    for (size_t i = 0; i < f->users->notes_count; i++)
        if (f->users->notes[i].kind == MU_NOTICE_ANSWER &&
            f->users->notes[i].token == token) {
            assert_null(found);
            found = &f->users->notes[i];
        }
    return found;
}

void kept_net_expect(const struct kept_net *f, uint64_t token, int64_t value)
{
    const struct probe_note *note = kept_net_answer(f, token);

    assert_non_null(note);
    if (note->error.code != 0)
        fail_msg("%s", note->error.message);
    assert_int_equal(note->value, value);
}

struct kept *kept_net_owned(const struct kept_net *f, size_t node)
{
    return mu__kept_find(user_net_office(f->users, node), mu__view_str("total"));
}

struct net *kept_net_net(const struct kept_net *f)
{
    return &f->users->net;
}

struct net_process *kept_net_node(const struct kept_net *f, size_t node)
{
    return f->users->nodes[node];
}

void kept_net_ask(struct kept_net *f, const char *method, int64_t number, uint64_t token)
{
    kept_net_call(f, 0, method, number, token);
    net_settle(kept_net_net(f));
}
