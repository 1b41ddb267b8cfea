/* A worker in a bare kernel: the test is its chief, its executor and its effects actor.
 * What the worker says to the chief's node is kept, copied, until the test looks. */
#include "actors/keep.h"
#include "actors/packing.h"
#include "actors/worker.h"
#include "runtime/value_references.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CHIEF = 5, LINES_MAX = 1024, SENT_RUNS_MAX = 8 };

#define ITEM(n) (MU__PER_WORKER_BIT | (n))

struct fixture {
    struct mu__world world;     /* first */
    struct mu__kernel *kernel;
    bool woken;
    struct mu__msg *said;       /* to the chief, the oldest first */
    struct mu__work *works;     /* submitted, the oldest first */
    struct mu_run *sent[SENT_RUNS_MAX]; /* what the effects actor was asked to send */
    size_t sent_count;
    char log[LINES_MAX];
    unsigned calls;             /* of functions */
    unsigned drops;             /* of objects */
    mu_value *seen;             /* the arguments of the last call */
    struct mu__msg *posted;     /* lines that wait for the loop */
    unsigned lines;             /* how many "chatter" logs */
};

/* ---- The world ---- */

static uint64_t world_now_ms(struct mu__world *world)
{
    (void)world;
    return 0;
}

static void world_wake_at(struct mu__world *world, uint64_t due_ms)
{
    if (due_ms == 0)
        ((struct fixture *)world)->woken = true;
}

static void append_msg(struct mu__msg **list, struct mu__msg *msg)
{
    msg->next = NULL;
    while (*list != NULL)
        list = &(*list)->next;
    *list = msg;
}

static int world_transmit(struct mu__world *world, struct mu__msg *msg)
{
    struct fixture *f = (struct fixture *)world;

    assert_int_equal(msg->to.node, CHIEF);
    assert_int_equal(mu__msg_keep(&mu__messages, msg), 0);
    append_msg(&f->said, msg);
    return 0;
}

static void world_submit(struct mu__world *world, struct mu__work *work)
{
    struct mu__work **list = &((struct fixture *)world)->works;

    while (*list != NULL)
        list = &(*list)->next;
    work->next = NULL;
    *list = work;
}

static void world_log(struct mu__world *world, enum mu__log_level level, const char *who,
                      const char *line)
{
    struct fixture *f = (struct fixture *)world;
    size_t size = strlen(f->log);

    (void)level;
    (void)who;
    (void)snprintf(f->log + size, sizeof f->log - size, "%s\n", line);
}

static const struct mu__world_ops world_ops = {
    .now_ms = world_now_ms,
    .random = world_now_ms,
    .wake_at = world_wake_at,
    .transmit = world_transmit,
    .submit = world_submit,
    .log = world_log,
};

/* ---- The effects actor ---- */

struct effects_state {
    struct fixture *fixture;
};

static int effects_init(struct mu__ctx *ctx, void *state, const void *arg)
{
    (void)ctx;
    ((struct effects_state *)state)->fixture = (struct fixture *)(uintptr_t)arg;
    return 0;
}

static void on_send(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct fixture *f = ((struct effects_state *)state)->fixture;

    (void)ctx;
    assert_true(f->sent_count < SENT_RUNS_MAX);
    f->sent[f->sent_count++] = ((struct mu__effects_send *)mu__body(msg))->run;
}

static const struct mu__handler effects_handlers[] = {{MU__EFFECTS_SEND, on_send}};

static const struct mu__behavior effects_probe = {
    .name = "effects",
    .state_size = sizeof(struct effects_state),
    .handlers = effects_handlers,
    .handlers_count = 1,
    .init = effects_init,
};

/* ---- Functions ---- */

static struct fixture *called(mu_run *run, void *user)
{
    struct fixture *f = user;

    f->calls++;
    mu_value_free(f->seen);
    f->seen = mu_value_ref(mu_run_args(run));
    return f;
}

static int run_echo(mu_run *run, void *user)
{
    (void)called(run, user);
    mu_run_return(run, mu_value_ref(mu_run_args(run)));
    return 0;
}

static int run_fail(mu_run *run, void *user)
{
    (void)called(run, user);
    return mu_run_fail(run, -MU_EINVALID, "bad data");
}

static void drop_thing(void *object)
{
    struct fixture *f = object;

    f->drops++;
}

static int run_make(mu_run *run, void *user)
{
    mu_run_return_object(run, called(run, user), drop_thing);
    return 0;
}

/* The argument is an object, and it is the fixture. */
static int run_use(mu_run *run, void *user)
{
    (void)called(run, user);
    if (mu_run_object(run, mu_run_args(run)) != user)
        return mu_run_fail(run, -MU_EINVALID, "no object");
    return 0;
}

static int run_wrap(mu_run *run, void *user)
{
    mu_value *list = mu_value_list();

    (void)called(run, user);
    (void)mu_value_append(list, mu_value_ref(mu_run_args(run)));
    mu_run_return(run, list);
    return 0;
}

static int write_effect(mu_run *run, int code)
{
    struct mu__effect *effect = calloc(1, sizeof *effect);

    assert_non_null(effect);
    run->effects.first = effect;
    run->effects.last = effect;
    mu_run_return(run, mu_value_int(1));
    return code;
}

static int run_write(mu_run *run, void *user)
{
    (void)called(run, user);
    return write_effect(run, 0);
}

static int run_write_and_fail(mu_run *run, void *user)
{
    (void)called(run, user);
    return write_effect(run, mu_run_fail(run, -MU_EINVALID, "after all"));
}

static int run_about(mu_run *run, void *user)
{
    struct fixture *f = called(run, user);
    char text[160];

    (void)f;
    (void)snprintf(text, sizeof text, "%s/%llu/%u/%d", mu_run_name(run),
                   (unsigned long long)mu_run_closure(run), mu_run_attempt(run),
                   mu_run_worker(run));
    mu_run_return(run, mu_value_string(text));
    return 0;
}

static int run_chatter(mu_run *run, void *user)
{
    struct fixture *f = called(run, user);

    for (unsigned i = 0; i < f->lines; i++)
        mu_run_log(run, "line %u of the function\n", i);
    return mu_run_fail(run, -MU_EINVALID, "said enough");
}

/* Errors of all sorts, by number. */
static const struct error_row {
    const char *what;
    mu_error error;
    int returns;                /* 0: what mu_run_fail_with gave back */
    const char *stack;
    unsigned code;
    unsigned kind;
    const char *origin;
    const char *message;
    const char *detail;
} error_rows[] = {
    {"a server's, by its task",
     {.code = -MU_EUNAVAILABLE, .task = "/job:ps/task:1", .message = "gone"}, 0, NULL,
     MU_EUNAVAILABLE, MU_ERROR_SERVER, "/job:ps/task:1", "gone", ""},
    {"with a kind of its own",
     {.code = -MU_EDEADLINE, .kind = MU_ERROR_LIMIT, .message = "late",
      .detail = "where"}, 0, NULL,
     MU_EDEADLINE, MU_ERROR_LIMIT, "", "late", "where"},
    {"of nothing known", {.code = -MU_EINVALID, .message = "hm"}, 0, NULL,
     MU_EINVALID, MU_ERROR_FUNCTION, "", "hm", ""},
    {"no error at all", {.code = 0}, 0, "at f()\nat g()",
     MU_EUNKNOWN, MU_ERROR_FUNCTION, "", "unknown error", "at f()\nat g()"},
    {"a code that is none", {.code = -4000, .kind = 777, .message = "x"}, 0, NULL,
     MU_EUNKNOWN, MU_ERROR_FUNCTION, "", "x", ""},
    {"another code is returned in the end",
     {.code = -MU_EUNAVAILABLE, .task = "/job:ps/task:1", .message = "gone"},
     -MU_EINVALID, NULL, MU_EINVALID, MU_ERROR_FUNCTION, "", "gone", ""},
    {"a number that is no code is returned",
     {.code = -MU_EUNAVAILABLE, .task = "/job:ps/task:1", .message = "gone"},
     7, NULL, MU_EUNKNOWN, MU_ERROR_FUNCTION, "", "the function returned 7", ""},
};

static int run_error(mu_run *run, void *user)
{
    const struct error_row *row;
    int64_t i = 0;
    int rv;

    (void)called(run, user);
    (void)mu_value_get_int(mu_run_args(run), &i);
    row = &error_rows[i];
    rv = mu_run_fail_with(run, &row->error);
    if (row->stack != NULL)
        mu_run_stack(run, row->stack);
    return row->returns == 0 ? rv : row->returns;
}

static const struct {
    const char *name;
    mu_function_fn function;
    unsigned flags;
} functions[] = {
    {"echo", run_echo, 0},       {"quick", run_echo, MU_FUNCTION_INLINE},
    {"fail", run_fail, 0},       {"make", run_make, 0},
    {"use", run_use, 0},         {"wrap", run_wrap, 0},
    {"write", run_write, 0},     {"write_and_fail", run_write_and_fail, 0},
    {"about", run_about, 0},     {"chatter", run_chatter, 0},
    {"error", run_error, 0},     {"quick_fail", run_fail, MU_FUNCTION_INLINE},
};

enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

/* ---- The fixture ---- */

static void turn(struct fixture *f)
{
    do {
        f->woken = false;
        mu__kernel_turn(f->kernel);
    } while (f->woken);
}

static void tell_to(struct fixture *f, struct mu__msg *msg, uint32_t node)
{
    msg->from = (mu__pid){node, node == 0 ? 0 : MU__SUPERVISOR};
    msg->to = (mu__pid){MU__NODE_SELF, MU__WORKER};
    assert_int_equal(mu__msg_keep(&mu__messages, msg), 0);
    assert_int_equal(mu__kernel_deliver(f->kernel, msg), 0);
    turn(f);
}

/* A message from the chief, all of whose body is given. */
#define TELL(f, KIND, name, ...)                                            \
    do {                                                                    \
        struct mu__msg *told_ = mu__msg_heap(KIND, sizeof(struct mu__##name)); \
                                                                            \
        assert_non_null(told_);                                             \
        *(struct mu__##name *)mu__body(told_) = (struct mu__##name){__VA_ARGS__}; \
        tell_to(f, told_, CHIEF);                                           \
    } while (0)

static int post_line(mu_node *node, uint32_t actor, struct mu__msg *msg)
{
    struct fixture *f = (struct fixture *)(void *)node;

    assert_int_equal(actor, MU__WORKER);
    msg->to = (mu__pid){MU__NODE_SELF, actor};
    append_msg(&f->posted, msg);
    return 0;
}

static void call_done(struct mu__call *call)
{
    assert_int_equal(call->code, 0);
}

static void register_functions(struct fixture *f)
{
    for (size_t i = 0; i < FUNCTIONS; i++) {
        struct mu__function_call call = {
            .call.complete = call_done,
            .name = functions[i].name,
            .function = functions[i].function,
            .user = f,
            .flags = functions[i].flags,
        };
        struct mu__msg *msg = mu__msg_heap(MU__CALL, sizeof(struct mu__call_msg));

        assert_non_null(msg);
        ((struct mu__call_msg *)mu__body(msg))->call = &call;
        tell_to(f, msg, 0);
    }
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    const struct mu__worker_config config = {
        .threads = 1,
        .index = 3,
        .task = "/job:worker/task:3",
        .node = (mu_node *)(void *)f,
        .post = post_line,
    };

    assert_non_null(f);
    f->world.ops = &world_ops;
    assert_int_equal(mu__kernel_new(&f->world, &mu__messages, &f->kernel), 0);
    assert_int_equal(mu__spawn(f->kernel, &mu__worker, MU__WORKER, &config, NULL), 0);
    assert_int_equal(mu__spawn(f->kernel, &effects_probe, MU__EFFECTS, f, NULL), 0);
    register_functions(f);
    mu__kernel_node_up(f->kernel, CHIEF, "chief", 0, 1, "tcp://c:1");
    turn(f);
    *state = f;
    return 0;
}

static void *worker_of(const struct fixture *f)
{
    return mu__actor_state(f->kernel, (mu__pid){MU__NODE_SELF, MU__WORKER});
}

static void free_msg(struct fixture *f, struct mu__msg *msg)
{
    mu__pool_put(mu__kernel_pool(f->kernel), msg);
}

static void free_msgs(struct fixture *f, struct mu__msg **list)
{
    while (*list != NULL) {
        struct mu__msg *next = (*list)->next;

        free_msg(f, *list);
        *list = next;
    }
}

/* Whatever is left is freed, as at the end of a node; nothing may leak. */
static int tear_down(void **state)
{
    struct fixture *f = *state;

    free_msgs(f, &f->said);
    free_msgs(f, &f->posted);
    mu_value_free(f->seen);
    f->seen = NULL;
    if (worker_of(f) != NULL)
        mu__worker_forget_runs(worker_of(f), mu__kernel_pool(f->kernel));
    mu__kernel_free(f->kernel);
    free(f);
    return 0;
}

/* ---- Asking ---- */

struct ask {
    uint64_t closure;
    const char *function;
    mu_value *args;             /* taken */
    uint32_t flags;
    uint64_t inputs[4];         /* up to a 0 */
    uint32_t inputs_size;       /* in bytes, when it is not what follows from these */
    uint32_t attempt;           /* 0: the first */
    bool end;                   /* named, so that what is not named may be absent */
};

static void ask_run(struct fixture *f, const struct ask *ask)
{
    struct mu__packed args = {0};
    struct mu__buf *buf = NULL;
    uint32_t size = ask->inputs_size;

    for (size_t i = 0; ask->inputs_size == 0 && i < 4 && ask->inputs[i] != 0; i++)
        size += (uint32_t)sizeof ask->inputs[i];
    if (ask->args != NULL)
        buf = mu__pack_value(ask->args, &args);
    TELL(f, MU__RUN, run,
         .closure = ask->closure,
         .attempt = ask->attempt == 0 ? 1 : ask->attempt,
         .function = mu__view_str(ask->function),
         .args = args,
         .flags = ask->flags,
         .inputs = {ask->inputs, size},
         .name = mu__view_str("the closure"),
         .origin = 70,
         .effect = 71,
         .effects_done = 72);
    mu__buf_unref(buf);
    mu_value_free(ask->args);
}

#define RUN(f, ...) ask_run(f, &(struct ask){__VA_ARGS__, .end = true})

static void give_input(struct fixture *f, uint64_t number, mu_value *value)
{
    struct mu__packed packed;
    struct mu__buf *buf = mu__pack_value(value, &packed);

    assert_non_null(buf);
    TELL(f, MU__INPUT, input, .input = number, .content = packed);
    mu__buf_unref(buf);
    mu_value_free(value);
}

static void drop_item(struct fixture *f, uint64_t number)
{
    TELL(f, MU__DROP, drop, .input = number);
}

static void lose_chief(struct fixture *f)
{
    mu__kernel_node_down(f->kernel, CHIEF, "lost");
    turn(f);
}

static mu_value *ref(uint64_t number)
{
    return mu__value_reference(number, NULL, NULL);
}

/* ---- The executor ---- */

static struct mu__work *begin_work(struct fixture *f)
{
    struct mu__work *work = f->works;

    assert_non_null(work);
    f->works = work->next;
    work->begin(work);
    return work;
}

static void end_work(struct fixture *f, struct mu__work *work)
{
    struct mu__msg *msg = mu__msg_heap(MU__WORK_DONE, sizeof(struct mu__work_done));

    assert_non_null(msg);
    work->run(work);
    ((struct mu__work_done *)mu__body(msg))->work = work;
    tell_to(f, msg, 0);
}

static void work(struct fixture *f)
{
    end_work(f, begin_work(f));
}

/* ---- Hearing ---- */

static struct mu__msg *hear(struct fixture *f, uint16_t kind)
{
    struct mu__msg *msg = f->said;

    assert_non_null(msg);
    assert_int_equal(msg->kind, kind);
    f->said = msg->next;
    return msg;
}

static void expect_view(struct mu__view view, const char *text)
{
    char own[1200];

    mu__view_copy(view, own, sizeof own);
    assert_string_equal(own, text);
}

static void expect_error(struct fixture *f, uint64_t closure, unsigned code,
                         unsigned kind, const char *words)
{
    struct mu__msg *msg = hear(f, MU__RESULT);
    struct mu__result *body = mu__body(msg);

    expect_view(body->message, words);
    assert_int_equal(body->closure, closure);
    assert_int_equal(body->code, code);
    assert_int_equal(body->error_kind, kind);
    assert_int_equal(body->result.head_size, 0);
    free_msg(f, msg);
}

/* Takes `value`, what the result must be; NULL: nothing, as of a result that is kept. */
static void expect_result(struct fixture *f, uint64_t closure, mu_value *value)
{
    struct mu__msg *msg = hear(f, MU__RESULT);
    struct mu__result *body = mu__body(msg);
    mu_value *result = NULL;

    assert_int_equal(body->closure, closure);
    assert_int_equal(body->code, 0);
    assert_int_equal(body->result.head_size > 0, value != NULL);
    assert_int_equal(mu__value_unpack(&body->result, NULL, 0, &result), 0);
    assert_true(value == NULL || mu_value_equal(result, value));
    mu_value_free(result);
    mu_value_free(value);
    free_msg(f, msg);
}

static void expect_silence(const struct fixture *f)
{
    assert_null(f->said);
}

/* What a PULL of `number` gives: a value (taken), or an error. */
static void expect_pull(struct fixture *f, uint64_t number, unsigned code,
                        mu_value *value, const char *words)
{
    struct mu__msg *msg;
    struct mu__pulled *body;
    mu_value *content = NULL;

    TELL(f, MU__PULL, pull, .input = number);
    msg = hear(f, MU__PULLED);
    body = mu__body(msg);
    assert_int_equal(body->input, number);
    expect_view(body->message, words);
    assert_int_equal(body->code, code);
    if (value != NULL) {
        assert_int_equal(mu__value_unpack(&body->content, NULL, 0, &content), 0);
        assert_true(mu_value_equal(content, value));
    }
    mu_value_free(content);
    mu_value_free(value);
    free_msg(f, msg);
}

static void expect_not_there(struct fixture *f, uint64_t number)
{
    expect_pull(f, number, MU_ENOTFOUND, NULL, "it is not on /job:worker/task:3");
}

/* ---- Plain runs ---- */

static void test_plain(void **state)
{
    struct fixture *f = *state;

    RUN(f, 9, "echo", mu_value_int(5));
    expect_silence(f);
    work(f);
    expect_result(f, 9, mu_value_int(5));
    RUN(f, 10, "quick", mu_value_int(6));
    expect_result(f, 10, mu_value_int(6));
    RUN(f, 11, "about", .attempt = 4);
    work(f);
    expect_result(f, 11, mu_value_string("the closure/11/4/3"));
    RUN(f, 12, "nothing");
    expect_error(f, 12, MU_ENOTFOUND, MU_ERROR_FUNCTION,
                 "no function \"nothing\" on /job:worker/task:3, which knows 12 (is its "
                 "plugin loaded there?)");
    assert_int_equal(f->calls, 3);
}

static void test_errors(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof error_rows / sizeof error_rows[0]; i++) {
        const struct error_row *row = &error_rows[i];
        struct mu__msg *msg;
        struct mu__result *body;

        RUN(f, 1, "error", mu_value_int((int64_t)i));
        work(f);
        msg = hear(f, MU__RESULT);
        body = mu__body(msg);
        if (body->code != row->code || body->error_kind != row->kind)
            fail_msg("%s: code %u, kind %u", row->what, body->code, body->error_kind);
        expect_view(body->origin, row->origin);
        expect_view(body->message, row->message);
        expect_view(body->detail, row->detail);
        free_msg(f, msg);
    }
    RUN(f, 2, "fail");
    work(f);
    expect_error(f, 2, MU_EINVALID, MU_ERROR_FUNCTION, "bad data");
}

/* ---- Lines ---- */

static void handle_lines(struct fixture *f)
{
    while (f->posted != NULL) {
        struct mu__msg *msg = f->posted;

        f->posted = msg->next;
        assert_int_equal(mu__kernel_deliver(f->kernel, msg), 0);
    }
    turn(f);
}

/* The log gets each line while the function runs; the error gets the last ones. */
static void test_lines(void **state)
{
    struct fixture *f = *state;
    struct mu__msg *msg;
    struct mu__result *body;

    f->lines = 2;
    RUN(f, 1, "chatter");
    work(f);
    handle_lines(f);
    assert_string_equal(f->log, "chatter: line 0 of the function\n"
                                "chatter: line 1 of the function\n");
    msg = hear(f, MU__RESULT);
    body = mu__body(msg);
    expect_view(body->detail, "line 0 of the function\nline 1 of the function");
    free_msg(f, msg);
}

/* More than the loop takes: some are left out, and that is said. */
static void test_too_many_lines(void **state)
{
    struct fixture *f = *state;
    struct mu__msg *msg;
    struct mu__result *body;
    char first[64];
    unsigned posted = 0;

    f->lines = MU__RUN_LINES_MAX + 10;
    RUN(f, 1, "chatter");
    work(f);
    for (const struct mu__msg *m = f->posted; m != NULL; m = m->next)
        posted++;
    assert_int_equal(posted, MU__RUN_LINES_MAX);
    handle_lines(f);
    assert_non_null(strstr(f->log, "chatter: 10 lines came too fast"));
    msg = hear(f, MU__RESULT);
    body = mu__body(msg);
    assert_true(body->detail.size <= MU__DETAIL_BYTES_MAX && body->detail.size > 900);
    mu__view_copy(body->detail, first, sizeof first);
    assert_memory_equal(first, "line ", 5);
    free_msg(f, msg);

    f->lines = 1;
    RUN(f, 2, "chatter");
    work(f);
    assert_non_null(f->posted);
    free_msg(f, hear(f, MU__RESULT));
}

/* ---- Inputs ---- */

/* {"a": [ref, 1], "b": ref} */
static mu_value *nested(mu_value *one, mu_value *two)
{
    mu_value *map = mu_value_map();
    mu_value *list = mu_value_list();

    assert_int_equal(mu_value_append(list, one), 0);
    assert_int_equal(mu_value_append(list, mu_value_int(1)), 0);
    assert_int_equal(mu_value_set(map, "a", list), 0);
    assert_int_equal(mu_value_set(map, "b", two), 0);
    return map;
}

/* The input may come before the run or behind it; both places get the same thing. */
static void test_input_before_and_after(void **state)
{
    struct fixture *f = *state;

    for (int before = 0; before < 2; before++) {
        uint64_t number = 50 + (uint64_t)before;

        if (before)
            give_input(f, number, mu_value_string("x"));
        RUN(f, 1, "echo", nested(ref(number), ref(number)), .inputs = {number});
        assert_int_equal(f->works != NULL, before);
        if (!before)
            give_input(f, number, mu_value_string("x"));
        work(f);
        expect_result(f, 1, nested(mu_value_string("x"), mu_value_string("x")));
        assert_ptr_equal(mu_value_at(mu_value_find(f->seen, "a"), 0),
                         mu_value_find(f->seen, "b"));
    }
    assert_int_equal(mu__worker_kept_bytes(worker_of(f)), 4);
}

/* All of them must be there; one that comes twice is the first. The whole argument may be
 * a reference. */
static void test_several_inputs(void **state)
{
    struct fixture *f = *state;

    RUN(f, 1, "echo", nested(ref(8), ref(7)), .inputs = {8, 7, 8});
    RUN(f, 2, "quick", ref(8), .inputs = {8});
    give_input(f, 7, mu_value_int(70));
    assert_null(f->works);
    give_input(f, 8, mu_value_int(80));
    expect_result(f, 2, mu_value_int(80));
    give_input(f, 8, mu_value_int(81));
    work(f);
    expect_result(f, 1, nested(mu_value_int(80), mu_value_int(70)));
    expect_pull(f, 8, 0, mu_value_int(80), "");
}

/* Runs whose input fails are answered at once, also those that wait for another one. */
static void test_failed_input(void **state)
{
    struct fixture *f = *state;

    RUN(f, 1, "echo", nested(ref(6), ref(ITEM(7))), .inputs = {6, ITEM(7)});
    TELL(f, MU__INPUT, input, .input = ITEM(7), .code = MU_ENOTFOUND,
         .message = mu__view_str("no item for this worker"));
    expect_error(f, 1, MU_ENOTFOUND, MU_ERROR_INPUT,
                 "per-worker value 7 failed: no item for this worker");
    RUN(f, 2, "quick", nested(ref(6), ref(ITEM(7))), .inputs = {6, ITEM(7)});
    expect_error(f, 2, MU_ENOTFOUND, MU_ERROR_INPUT,
                 "per-worker value 7 failed: no item for this worker");
    assert_int_equal(f->calls, 0);
    expect_pull(f, ITEM(7), MU_ENOTFOUND, NULL, "no item for this worker");
    TELL(f, MU__INPUT, input, .input = 6, .content = {"\xc1", NULL, 1, 0});
    expect_silence(f);
    RUN(f, 3, "quick", ref(6), .inputs = {6});
    assert_int_equal(f->calls, 0);
    free_msg(f, hear(f, MU__RESULT));
}

/* An error that went through several hands says it once. */
static void test_errors_are_not_nested(void **state)
{
    static const char words[] =
        "per-worker value 1, made by function \"fail\", failed: bad data";
    struct fixture *f = *state;

    RUN(f, ITEM(1), "fail", .flags = MU__CLOSURE_BUILD);
    RUN(f, ITEM(2), "echo", ref(ITEM(1)), MU__CLOSURE_BUILD, {ITEM(1)});
    RUN(f, 3, "echo", ref(ITEM(2)), 0, {ITEM(2)});
    work(f);
    expect_error(f, ITEM(1), MU_EINVALID, MU_ERROR_FUNCTION, "bad data");
    expect_error(f, ITEM(2), MU_EINVALID, MU_ERROR_INPUT, words);
    expect_error(f, 3, MU_EINVALID, MU_ERROR_INPUT, words);
    RUN(f, 4, "echo", ref(ITEM(2)), 0, {ITEM(2)});
    expect_error(f, 4, MU_EINVALID, MU_ERROR_INPUT, words);
    assert_int_equal(f->calls, 1);
    RUN(f, ITEM(5), "nothing", .flags = MU__CLOSURE_BUILD);
    free_msg(f, hear(f, MU__RESULT));
    RUN(f, 6, "echo", ref(ITEM(5)), 0, {ITEM(5)});
    expect_error(f, 6, MU_ENOTFOUND, MU_ERROR_INPUT,
                 "per-worker value 5 failed: no function \"nothing\" on "
                 "/job:worker/task:3, which knows 12 (is its plugin loaded there?)");
}

static void test_senseless_inputs(void **state)
{
    static const char words[] = "the list of inputs makes no sense";
    struct fixture *f = *state;

    RUN(f, 1, "quick", ref(5), 0, {5, 6}, 12);
    expect_error(f, 1, MU_EINVALID, MU_ERROR_OTHER, words);
    RUN(f, 1, "quick", ref(5), 0, {5, 0}, 16);
    expect_error(f, 1, MU_EINVALID, MU_ERROR_OTHER, words);
    RUN(f, 1, "quick", ref(1), MU__CLOSURE_KEEP, {1});
    expect_error(f, 1, MU_EINVALID, MU_ERROR_OTHER, words);
    RUN(f, 0, "quick", NULL, MU__CLOSURE_KEEP);
    expect_error(f, 0, MU_EINVALID, MU_ERROR_OTHER, "what is kept has a number, got 0");
    give_input(f, 5, mu_value_int(5));
    give_input(f, 0, mu_value_int(5));
    drop_item(f, 0);
    RUN(f, 1, "quick", nested(ref(5), ref(6)), 0, {5});
    expect_error(f, 1, MU_EDATALOSS, MU_ERROR_OTHER,
                 "the arguments refer to number 6, which is not among the inputs of the "
                 "closure");
    expect_not_there(f, 0);
    assert_int_equal(f->calls, 0);
}

/* A long line of inline runs, each of which makes the input of the next, is no depth, and
 * no depth either when the first fails. */
static void test_long_line(void **state)
{
    enum { LENGTH = 20000 };
    struct fixture *f = *state;

    for (int fails = 0; fails < 2; fails++) {
        uint32_t flags = fails ? MU__CLOSURE_BUILD : MU__CLOSURE_KEEP;
        uint64_t first = fails ? ITEM(1) : 1;

        f->calls = 0;
        for (uint64_t i = first + LENGTH - 1; i > first; i--)
            RUN(f, i, "quick", ref(i - 1), flags, {i - 1});
        expect_silence(f);
        if (fails)
            RUN(f, first, "quick_fail", NULL, flags);
        else
            give_input(f, first, mu_value_int(33));
        assert_int_equal(f->calls, fails ? 1 : LENGTH - 1);
        free_msgs(f, &f->said);
    }
    expect_pull(f, LENGTH, 0, mu_value_int(33), "");
    assert_int_equal(mu__worker_kept_bytes(worker_of(f)), LENGTH);
}

/* ---- Results that stay ---- */

static void test_keep(void **state)
{
    struct fixture *f = *state;

    RUN(f, 1, "echo", mu_value_string("abc"), MU__CLOSURE_KEEP);
    expect_not_there(f, 1);
    work(f);
    expect_result(f, 1, NULL);
    expect_pull(f, 1, 0, mu_value_string("abc"), "");
    assert_int_equal(mu__worker_kept_bytes(worker_of(f)), 4);
    RUN(f, 2, "echo", ref(1), 0, {1});
    drop_item(f, 1);
    work(f);
    expect_result(f, 2, mu_value_string("abc"));
    expect_not_there(f, 1);
    assert_int_equal(mu__worker_kept_bytes(worker_of(f)), 0);
    RUN(f, 3, "make", NULL, MU__CLOSURE_KEEP);
    work(f);
    expect_result(f, 3, NULL);
    RUN(f, 4, "use", ref(3), 0, {3});
    work(f);
    expect_result(f, 4, NULL);
    assert_int_equal(f->drops, 0);
}

/* Nothing is kept of an error, but who waits goes on waiting. */
static void test_keep_error(void **state)
{
    struct fixture *f = *state;

    RUN(f, 1, "fail", NULL, MU__CLOSURE_KEEP);
    RUN(f, 2, "quick", ref(1), 0, {1});
    work(f);
    expect_error(f, 1, MU_EINVALID, MU_ERROR_FUNCTION, "bad data");
    expect_silence(f);
    expect_not_there(f, 1);
    RUN(f, 1, "quick", mu_value_int(3), MU__CLOSURE_KEEP, .attempt = 2);
    expect_result(f, 1, NULL);
    expect_result(f, 2, mu_value_int(3));
}

/* What comes of a value that was dropped while it was made is dropped. */
static void test_drop_while_building(void **state)
{
    struct fixture *f = *state;

    RUN(f, ITEM(1), "make", NULL, MU__CLOSURE_BUILD);
    drop_item(f, ITEM(1));
    work(f);
    expect_result(f, ITEM(1), NULL);
    assert_int_equal(f->drops, 1);
    expect_not_there(f, ITEM(1));

    RUN(f, ITEM(2), "make", NULL, MU__CLOSURE_BUILD);
    RUN(f, 3, "use", ref(ITEM(2)), 0, {ITEM(2)});
    drop_item(f, ITEM(2));
    work(f);
    expect_result(f, ITEM(2), NULL);
    assert_int_equal(f->drops, 2);
    expect_silence(f);
    TELL(f, MU__CANCEL, cancel, 3, 1);
    expect_error(f, 3, MU_ECANCELLED, MU_ERROR_OTHER,
                 "cancelled while it waited for inputs");
}

/* The later attempt counts, whichever ends first. */
static void test_begun_anew(void **state)
{
    struct fixture *f = *state;
    struct mu__work *one;
    struct mu__work *two;

    RUN(f, ITEM(1), "echo", mu_value_int(1), MU__CLOSURE_BUILD);
    RUN(f, ITEM(1), "echo", mu_value_int(2), MU__CLOSURE_BUILD, .attempt = 2);
    RUN(f, 5, "quick", ref(ITEM(1)), 0, {ITEM(1)});
    one = begin_work(f);
    two = begin_work(f);
    end_work(f, one);
    expect_result(f, ITEM(1), NULL);
    expect_silence(f);
    end_work(f, two);
    expect_result(f, ITEM(1), NULL);
    expect_result(f, 5, mu_value_int(2));
}

static mu_value *large(void)
{
    static const char zeros[2 << 20];

    return mu_value_bytes(zeros, sizeof zeros);
}

/* Large messages may be overtaken: an INPUT that comes behind its DROP is not kept. A
 * small one is a new one, as is one that a run asks for. */
static void test_drop_overtakes(void **state)
{
    struct fixture *f = *state;

    drop_item(f, 1);
    give_input(f, 1, large());
    expect_not_there(f, 1);
    give_input(f, 1, large());
    expect_pull(f, 1, 0, large(), "");
    drop_item(f, 2);
    give_input(f, 2, mu_value_int(2));
    expect_pull(f, 2, 0, mu_value_int(2), "");
    drop_item(f, 3);
    RUN(f, 9, "quick_fail", ref(3), 0, {3});
    give_input(f, 3, large());
    expect_error(f, 9, MU_EINVALID, MU_ERROR_FUNCTION, "bad data");
    drop_item(f, 1);
    give_input(f, 1, large());
    expect_pull(f, 1, 0, large(), "");
}

/* ---- Objects ---- */

static void test_objects(void **state)
{
    struct fixture *f = *state;
    struct mu__work *one;

    RUN(f, ITEM(1), "make", NULL, MU__CLOSURE_BUILD);
    work(f);
    expect_result(f, ITEM(1), NULL);
    expect_pull(f, ITEM(1), MU_EPRECONDITION, NULL,
                "it is an object or holds one, which cannot leave /job:worker/task:3");
    RUN(f, 2, "use", ref(ITEM(1)), 0, {ITEM(1)});
    RUN(f, 3, "use", ref(ITEM(1)), 0, {ITEM(1)});
    one = begin_work(f);
    drop_item(f, ITEM(1));
    assert_int_equal(f->drops, 0);
    work(f);
    end_work(f, one);
    expect_result(f, 3, NULL);
    expect_result(f, 2, NULL);
    mu_value_free(f->seen);     /* the last holder */
    f->seen = NULL;
    assert_int_equal(f->drops, 1);
    RUN(f, 4, "use", mu_value_int(1));
    work(f);
    expect_error(f, 4, MU_EINVALID, MU_ERROR_FUNCTION, "no object");
    RUN(f, 5, "use", ref(77));
    work(f);
    expect_error(f, 5, MU_EINVALID, MU_ERROR_FUNCTION, "no object");
}

/* An object stays where it is: results that hold one are kept, or an error. */
static void test_objects_do_not_travel(void **state)
{
    static const char words[] =
        "the result is an object or holds one, which cannot be sent: expected a function "
        "of a per-worker value, or a closure whose result is kept on its worker";
    struct fixture *f = *state;

    RUN(f, 1, "make");
    work(f);
    expect_error(f, 1, MU_EPRECONDITION, MU_ERROR_FUNCTION, words);
    assert_int_equal(f->drops, 1);
    RUN(f, ITEM(1), "make", NULL, MU__CLOSURE_BUILD);
    work(f);
    expect_result(f, ITEM(1), NULL);
    RUN(f, 2, "wrap", ref(ITEM(1)), 0, {ITEM(1)});
    work(f);
    expect_error(f, 2, MU_EPRECONDITION, MU_ERROR_FUNCTION, words);
    RUN(f, 3, "wrap", ref(ITEM(1)), MU__CLOSURE_KEEP, {ITEM(1)});
    work(f);
    expect_result(f, 3, NULL);
    expect_pull(f, 3, MU_EPRECONDITION, NULL,
                "it is an object or holds one, which cannot leave /job:worker/task:3");
}

/* ---- Cancelling ---- */

/* What a thread has taken runs; what it has not is answered without a call. */
static void test_cancel(void **state)
{
    struct fixture *f = *state;
    struct mu__work *one;

    RUN(f, 1, "echo", mu_value_int(1));
    RUN(f, 2, "echo", mu_value_int(2));
    one = begin_work(f);
    TELL(f, MU__CANCEL, cancel, 1, 1);
    TELL(f, MU__CANCEL, cancel, 2, 2);
    TELL(f, MU__CANCEL, cancel, 3, 1);
    TELL(f, MU__CANCEL, cancel, 2, 1);
    end_work(f, one);
    expect_result(f, 1, mu_value_int(1));
    work(f);
    expect_error(f, 2, MU_ECANCELLED, MU_ERROR_OTHER, "cancelled before it began");
    assert_int_equal(f->calls, 1);
}

static void test_cancel_what_is_kept(void **state)
{
    struct fixture *f = *state;
    struct mu__work *one;

    RUN(f, 1, "echo", mu_value_int(1), MU__CLOSURE_KEEP);
    RUN(f, 2, "quick", ref(1), 0, {1});
    one = begin_work(f);
    TELL(f, MU__CANCEL, cancel, 1, 1);
    end_work(f, one);
    expect_error(f, 1, MU_ECANCELLED, MU_ERROR_FUNCTION, "cancelled: nothing was kept");
    expect_not_there(f, 1);
    TELL(f, MU__CANCEL, cancel, 2, 1);
    expect_error(f, 2, MU_ECANCELLED, MU_ERROR_OTHER,
                 "cancelled while it waited for inputs");
    RUN(f, ITEM(1), "fail", NULL, MU__CLOSURE_BUILD);
    TELL(f, MU__CANCEL, cancel, ITEM(1), 1);
    work(f);
    expect_error(f, ITEM(1), MU_ECANCELLED, MU_ERROR_OTHER, "cancelled before it began");
    expect_not_there(f, ITEM(1));
}

/* The chief had it from another worker and sends it here, while a run that nobody waits
 * for still makes it: what was sent counts, whatever becomes of the run. */
static void test_input_while_building(void **state)
{
    struct fixture *f = *state;
    struct mu__work *one;

    RUN(f, 1, "echo", mu_value_int(1), MU__CLOSURE_KEEP);
    RUN(f, 2, "quick", ref(1), 0, {1});
    one = begin_work(f);
    give_input(f, 1, mu_value_int(7));
    expect_result(f, 2, mu_value_int(7));
    TELL(f, MU__CANCEL, cancel, 1, 1);
    end_work(f, one);
    expect_error(f, 1, MU_ECANCELLED, MU_ERROR_FUNCTION, "cancelled: nothing was kept");
    expect_pull(f, 1, 0, mu_value_int(7), "");
}

/* ---- Effects ---- */

static void answer_effects(struct fixture *f, int code)
{
    struct mu__msg *msg = mu__msg_heap(MU__EFFECTS_SENT, sizeof(struct mu__effects_sent));
    static const mu_error error = {.code = -MU_EUNAVAILABLE,
                                   .kind = MU_ERROR_SERVER,
                                   .task = "/job:ps/task:0",
                                   .message = "did not answer"};

    assert_non_null(msg);
    assert_true(f->sent_count > 0);
    f->sent_count--;
    f->sent[0]->code = code;
    if (code != 0)
        mu__run_set_failure(f->sent[0], &error);
    ((struct mu__effects_sent *)mu__body(msg))->run = f->sent[0];
    tell_to(f, msg, 0);
}

static void test_effects(void **state)
{
    struct fixture *f = *state;

    RUN(f, 1, "write");
    work(f);
    expect_silence(f);
    assert_int_equal(f->sent_count, 1);
    assert_int_equal(f->sent[0]->effects.origin, 70);
    assert_int_equal(f->sent[0]->effects.effect, 0);
    assert_int_equal(f->sent[0]->effects.effects_done, 72);
    answer_effects(f, 0);
    expect_result(f, 1, mu_value_int(1));

    RUN(f, 2, "write", NULL, MU__CLOSURE_ONCE | MU__CLOSURE_KEEP);
    RUN(f, 3, "quick", ref(2), 0, {2});
    work(f);
    assert_int_equal(f->sent[0]->effects.effect, 71);
    expect_not_there(f, 2);
    answer_effects(f, 0);
    expect_result(f, 2, NULL);
    expect_result(f, 3, mu_value_int(1));

    RUN(f, 4, "write");
    work(f);
    answer_effects(f, -MU_EUNAVAILABLE);
    expect_error(f, 4, MU_EUNAVAILABLE, MU_ERROR_SERVER, "did not answer");
}

/* Not those of a function that failed, or that nobody wants; without an effects actor
 * they are an error. */
static void test_effects_that_are_not_sent(void **state)
{
    struct fixture *f = *state;
    struct mu__work *one;

    RUN(f, 1, "write_and_fail");
    work(f);
    expect_error(f, 1, MU_EINVALID, MU_ERROR_FUNCTION, "after all");
    RUN(f, 2, "write");
    one = begin_work(f);
    TELL(f, MU__CANCEL, cancel, 2, 1);
    end_work(f, one);
    expect_error(f, 2, MU_ECANCELLED, MU_ERROR_FUNCTION,
                 "cancelled: nothing was written");
    RUN(f, 3, "write");
    work(f);
    TELL(f, MU__CANCEL, cancel, 3, 1);
    answer_effects(f, 0);
    expect_result(f, 3, mu_value_int(1));
    mu__stop(f->kernel, (mu__pid){MU__NODE_SELF, MU__EFFECTS});
    RUN(f, 4, "write");
    work(f);
    expect_error(f, 4, MU_ENOTFOUND, MU_ERROR_FUNCTION,
                 "what the function wrote cannot be sent: not found");
    assert_int_equal(f->sent_count, 0);
}

/* ---- Ends ---- */

/* One run in each place, one item in each state. */
static struct mu__work *begin_everything(struct fixture *f)
{
    struct mu__work *begun;

    RUN(f, ITEM(1), "make", NULL, MU__CLOSURE_BUILD);
    work(f);
    RUN(f, ITEM(2), "fail", NULL, MU__CLOSURE_BUILD);
    work(f);
    RUN(f, 1, "write");
    work(f);
    give_input(f, 2, mu_value_string("here"));
    RUN(f, ITEM(3), "make", ref(2), MU__CLOSURE_BUILD, {2});
    begun = begin_work(f);
    RUN(f, 3, "use", ref(ITEM(1)), 0, {ITEM(1)});
    RUN(f, 4, "echo", ref(ITEM(3)), 0, {ITEM(3)});
    RUN(f, 5, "echo", nested(ref(2), ref(77)), MU__CLOSURE_KEEP, {2, 77});
    drop_item(f, 99);
    free_msgs(f, &f->said);
    return begun;
}

/* A lost chief gets no answers, and nothing of its is kept or called. */
static void test_chief_lost(void **state)
{
    struct fixture *f = *state;
    struct mu__work *begun = begin_everything(f);
    unsigned calls = f->calls;

    lose_chief(f);
    assert_int_equal(mu__worker_kept_bytes(worker_of(f)), 0);
    assert_int_equal(f->drops, 0);
    end_work(f, begun);
    assert_int_equal(f->calls, calls + 1);
    assert_int_equal(f->drops, 1);
    work(f);
    assert_int_equal(f->calls, calls + 1);
    assert_int_equal(f->drops, 2);
    answer_effects(f, 0);
    assert_null(f->works);
    assert_int_equal(mu__worker_kept_bytes(worker_of(f)), 0);
    for (const struct mu__msg *msg = f->said; msg != NULL; msg = msg->next)
        assert_int_equal(msg->to.node, CHIEF);
}

/* A node that leaves: what runs comes back, what waits is gone, nothing begins. */
static void test_leave(void **state)
{
    struct fixture *f = *state;
    struct mu__work *begun = begin_everything(f);
    unsigned calls = f->calls;

    mu__worker_leave(worker_of(f), mu__kernel_pool(f->kernel), f->works);
    f->works = NULL;
    mu__worker_cancel_all(worker_of(f));
    assert_string_equal(mu__worker_running(worker_of(f)), "make");
    end_work(f, begun);
    assert_null(mu__worker_running(worker_of(f)));
    RUN(f, 6, "quick");
    give_input(f, 77, mu_value_int(7));
    assert_int_equal(f->calls, calls + 1);
    assert_null(f->works);
}

/* tear_down frees everything, wherever it is. */
static void test_end_in_the_middle(void **state)
{
    struct fixture *f = *state;

    (void)begin_everything(f);
    assert_non_null(f->works);
    assert_int_equal(f->sent_count, 1);
}

/* The worker ends with runs that wait and one that the effects actor has. */
static void test_end_of_the_actor(void **state)
{
    struct fixture *f = *state;

    end_work(f, begin_everything(f));
    while (f->works != NULL)
        work(f);
    RUN(f, 7, "echo", ref(78), MU__CLOSURE_KEEP, {78});
    assert_null(mu__worker_running(worker_of(f)));
    assert_true(mu__worker_kept_bytes(worker_of(f)) > 0);
    mu__stop(f->kernel, (mu__pid){MU__NODE_SELF, MU__WORKER});
    assert_null(worker_of(f));
    mu_value_free(f->seen);
    f->seen = NULL;
    assert_int_equal(f->drops, 2);
}

#define WORKER_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORKER_TEST(test_plain),
        WORKER_TEST(test_errors),
        WORKER_TEST(test_lines),
        WORKER_TEST(test_too_many_lines),
        WORKER_TEST(test_input_before_and_after),
        WORKER_TEST(test_several_inputs),
        WORKER_TEST(test_failed_input),
        WORKER_TEST(test_errors_are_not_nested),
        WORKER_TEST(test_senseless_inputs),
        WORKER_TEST(test_long_line),
        WORKER_TEST(test_keep),
        WORKER_TEST(test_keep_error),
        WORKER_TEST(test_drop_while_building),
        WORKER_TEST(test_begun_anew),
        WORKER_TEST(test_drop_overtakes),
        WORKER_TEST(test_objects),
        WORKER_TEST(test_objects_do_not_travel),
        WORKER_TEST(test_cancel),
        WORKER_TEST(test_cancel_what_is_kept),
        WORKER_TEST(test_input_while_building),
        WORKER_TEST(test_effects),
        WORKER_TEST(test_effects_that_are_not_sent),
        WORKER_TEST(test_chief_lost),
        WORKER_TEST(test_leave),
        WORKER_TEST(test_end_in_the_middle),
        WORKER_TEST(test_end_of_the_actor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
