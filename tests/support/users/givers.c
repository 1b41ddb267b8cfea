#include "tests/support/users/givers.h"

#include "tests/support/test.h"

struct giver_heard giver_heard;

enum { GIVEN = 5 }; /* token */

struct giver {
    mu_stream *stream; /* the last one */
    int64_t next;
    int64_t last;
    int64_t size; /* 0: they are numbers */
};

static int open_one(mu_actor *self, void *state, const mu_value *args)
{
    struct giver *giver = state;
    int64_t ahead = 0;

    (void)mu_value_get_int(args, &ahead);
    giver->stream = mu_actor_stream(self, (unsigned)ahead, GIVEN);
    giver->next = 1;
    giver->last = 0;
    return giver->stream == NULL ? -MU_EEXHAUSTED : 0;
}

static mu_value *make_item(const struct giver *giver)
{
    static char zeros[16 << 20];

    return giver->size == 0 ? mu_value_int(giver->next)
                            : mu_value_bytes(zeros, (size_t)giver->size);
}

static void give_some(struct giver *giver)
{
    giver_heard.code = 0;
    while (giver->next <= giver->last) {
        mu_value *item = make_item(giver);

        giver_heard.code = mu_stream_give(giver->stream, item);
        mu_value_free(item);
        if (giver_heard.code != 0)
            return;
        giver_heard.given = giver->next++;
    }
}

/* [from, to, size] */
static int give(mu_actor *self, void *state, const mu_value *args)
{
    struct giver *giver = state;

    (void)self;
    assert_int_equal(mu_value_get_int(mu_value_at(args, 0), &giver->next), 0);
    assert_int_equal(mu_value_get_int(mu_value_at(args, 1), &giver->last), 0);
    assert_int_equal(mu_value_get_int(mu_value_at(args, 2), &giver->size), 0);
    give_some(giver);
    return 0;
}

static int give_and_fail(mu_actor *self, void *state, const mu_value *args)
{
    struct giver *giver = state;

    (void)self;
    (void)args;
    while (giver_heard.code == 0)
        giver_heard.code = mu_stream_give(giver->stream, NULL);
    return -MU_EDATALOSS;
}

static int open_and_fail(mu_actor *self, void *state, const mu_value *args)
{
    assert_int_equal(open_one(self, state, args), 0);
    return give_and_fail(self, state, args);
}

static int end_stream(mu_actor *self, void *state, const mu_value *args)
{
    struct giver *giver = state;
    mu_error error = {.message = "giver's error"};
    int64_t code = 0;

    (void)self;
    assert_int_equal(mu_value_get_int(args, &code), 0);
    error.code = (int)code;
    if (giver->stream != NULL) {
        assert_int_equal(mu_stream_end(giver->stream, code == 0 ? NULL : &error), 0);
        assert_int_equal(mu_stream_end(giver->stream, NULL), -MU_EINVALID);
        assert_int_equal(mu_stream_give(giver->stream, NULL), -MU_EINVALID);
    }
    giver->stream = NULL;
    return 0;
}

static int stop_giver(mu_actor *self, void *state, const mu_value *args)
{
    mu_address own;

    (void)state;
    (void)args;
    assert_int_equal(mu_actor_self(self, &own), 0);
    return mu_actor_stop(self, &own, MU_STOP_NOW);
}

static void hear_giver(mu_actor *self, void *state, const mu_notice *notice)
{
    (void)self;
    assert_int_equal(notice->token, GIVEN);
    if (notice->kind == MU_NOTICE_STREAM_ROOM) {
        giver_heard.rooms++;
        give_some(state);
        return;
    }
    assert_int_equal(notice->kind, MU_NOTICE_STREAM_CLOSED);
    giver_heard.closed++;
    giver_heard.why = notice->error == NULL ? 0 : notice->error->code;
}

static const mu_actor_method methods[] = {
    {"open", open_one},
    {"give", give},
    {"give and fail", give_and_fail},
    {"fail", open_and_fail},
    {"end", end_stream},
    {"stop", stop_giver},
    {NULL, NULL},
};

static const mu_actor_type giver_type = {
    .name = "giver",
    .state_size = sizeof(struct giver),
    .methods = methods,
    .notice = hear_giver,
};

void givers_register(struct user_net *f)
{
    user_net_register(f, &giver_type);
}

void giver_tell(struct user_net *f, const mu_address *giver, const char *method,
                const mu_value *args)
{
    struct office *office = user_net_office(f, giver->index);
    struct mail *mail;

    assert_int_equal(mu__message_make(office, giver, method, args, NULL, 0, NULL, &mail),
                     0);
    mu__turn_do(office, mail);
    net_settle(&f->net);
}

static void tell_to_give(struct user_net *f, const mu_address *giver, int64_t from,
                         int64_t to, int64_t size)
{
    mu_value *args = mu_value_list();

    assert_int_equal(mu_value_append(args, mu_value_int(from)), 0);
    assert_int_equal(mu_value_append(args, mu_value_int(to)), 0);
    assert_int_equal(mu_value_append(args, mu_value_int(size)), 0);
    giver_tell(f, giver, "give", args);
    mu_value_free(args);
}

void giver_give(struct user_net *f, const mu_address *giver, int64_t from, int64_t to)
{
    tell_to_give(f, giver, from, to, 0);
}

void giver_give_large(struct user_net *f, const mu_address *giver, size_t bytes,
                      int64_t count)
{
    tell_to_give(f, giver, 1, count, (int64_t)bytes);
}

void giver_end(struct user_net *f, const mu_address *giver, int code)
{
    mu_value *args = mu_value_int(code);

    giver_tell(f, giver, "end", args);
    mu_value_free(args);
}
