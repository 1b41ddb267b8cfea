/* A worker in a bare kernel: the test is its chief, its executor and its variables actor.
 * What the worker says to the chief's node is kept, copied, until the test looks. */
#ifndef MU_TESTS_LONE_WORKER_H
#define MU_TESTS_LONE_WORKER_H

#include "actors/packing.h"
#include "actors/worker/worker.h"
#include "runtime/message/value_references.h"
#include "tests/support/test.h"

enum { CHIEF = 5, LINES_MAX = 1024, SENT_RUNS_MAX = 8 };

#define ITEM(n) (MU__PER_WORKER_BIT | (n))

/* Of what one chief may have at the worker. */
enum { LONE_RETAINED_BYTES_MAX = 16 << 20 };

struct fixture {
    struct mu__world world; /* first */
    struct mu__kernel *kernel;
    bool woken;
    uint64_t now_ms;
    struct mu__msg *said;               /* to the chief, the oldest first */
    struct mu__list works;              /* submitted, the oldest first */
    struct mu_run *sent[SENT_RUNS_MAX]; /* what the variables actor was asked to send */
    size_t sent_count;
    char log[LINES_MAX];
    unsigned calls;         /* of functions */
    unsigned drops;         /* of objects */
    mu_value *seen;         /* the arguments of the last call */
    struct mu__msg *posted; /* lines that wait for the loop */
    unsigned lines;         /* how many "chatter" logs */
};

/* ---- Functions ---- */

/* Every lone worker knows "echo" and "quick", which return their argument, "wrap" a list
 * of it; "fail" and "quick_fail", which fail; "make" an object, and "use" that; "write"
 * and "write_and_fail", which leave something to send. The quick ones are inline. */
struct lone_function {
    const char *name;
    mu_function_fn function;
    unsigned flags;
};

/* Each function begins with this; its user is the fixture. */
struct fixture *lone_called(mu_run *run, void *user);

/* ---- The fixture ---- */

/* Of cmocka; the second is called by one of a test that has functions of its own. */
int lone_set_up(void **state);
int lone_set_up_with(void **state, const struct lone_function *own, size_t count);

/* Whatever is left is freed, as at the end of a node; nothing may leak. */
int lone_tear_down(void **state);

/* Takes a message to the worker, from the supervisor of a node, or from this node (0). */
void lone_tell(struct fixture *f, struct mu__msg *msg, uint32_t node);
void lone_turn(struct fixture *f);

/* A message from the chief, all of whose body is given. */
#define TELL(f, KIND, name, ...)                                                  \
    do {                                                                          \
        struct mu__msg *told_ = mu__msg_heap(KIND, sizeof(struct mu__##name));    \
                                                                                  \
        assert_non_null(told_);                                                   \
        *(struct mu__##name *)mu__body(told_) = (struct mu__##name){__VA_ARGS__}; \
        lone_tell(f, told_, CHIEF);                                               \
    } while (0)

static inline void *worker_of(const struct fixture *f)
{
    return mu__actor_state(f->kernel, (mu__pid){MU__NODE_SELF, MU__WORKER});
}

static inline void free_msg(struct fixture *f, struct mu__msg *msg)
{
    mu__pool_put(mu__kernel_pool(f->kernel), msg);
}

static inline void free_msgs(struct fixture *f, struct mu__msg **list)
{
    while (*list != NULL) {
        struct mu__msg *next = (*list)->next;

        free_msg(f, *list);
        *list = next;
    }
}

/* ---- Asking ---- */

struct ask {
    uint64_t closure;
    const char *function;
    mu_value *args; /* taken */
    uint32_t flags;
    uint64_t inputs[4];   /* up to a 0 */
    uint32_t inputs_size; /* in bytes, when it is not what follows from these */
    uint32_t attempt;     /* 0: the first */
    bool end;             /* named, so that what is not named may be absent */
};

static inline void ask_run(struct fixture *f, const struct ask *ask)
{
    struct mu__packed args = {0};
    struct mu__buf *buf = NULL;
    uint32_t size = ask->inputs_size;

    for (size_t i = 0; ask->inputs_size == 0 && i < 4 && ask->inputs[i] != 0; i++)
        size += (uint32_t)sizeof ask->inputs[i];
    if (ask->args != NULL)
        buf = mu__pack_value(ask->args, &args);
    TELL(f, MU__RUN, run, .closure = ask->closure,
         .attempt = ask->attempt == 0 ? 1 : ask->attempt,
         .function = mu__view_str(ask->function), .args = args, .flags = ask->flags,
         .inputs = {ask->inputs, size}, .name = mu__view_str("the closure"), .origin = 70,
         .effect = 71, .effects_done = 72);
    mu__buf_unref(buf);
    mu_value_free(ask->args);
}

#define RUN(f, ...) ask_run(f, &(struct ask){__VA_ARGS__, .end = true})

static inline void give_input(struct fixture *f, uint64_t number, mu_value *value)
{
    struct mu__packed packed;
    struct mu__buf *buf = mu__pack_value(value, &packed);

    assert_non_null(buf);
    TELL(f, MU__INPUT, input, .input = number, .content = packed);
    mu__buf_unref(buf);
    mu_value_free(value);
}

static inline void drop_item(struct fixture *f, uint64_t number)
{
    TELL(f, MU__DROP, drop, .input = number);
}

static inline void lose_chief(struct fixture *f)
{
    mu__kernel_node_down(f->kernel, CHIEF, "lost", false);
    lone_turn(f);
}

static inline mu_value *ref(uint64_t number)
{
    return mu__value_reference(number, NULL, NULL);
}

/* {"a": [ref, 1], "b": ref} */
static inline mu_value *nested(mu_value *one, mu_value *two)
{
    mu_value *map = mu_value_map();
    mu_value *list = mu_value_list();

    assert_int_equal(mu_value_append(list, one), 0);
    assert_int_equal(mu_value_append(list, mu_value_int(1)), 0);
    assert_int_equal(mu_value_set(map, "a", list), 0);
    assert_int_equal(mu_value_set(map, "b", two), 0);
    return map;
}

/* ---- The executor ---- */

static inline struct mu__work *begin_work(struct fixture *f)
{
    struct mu__list_node *node = mu__list_pop(&f->works);
    struct mu__work *work;

    assert_non_null(node);
    work = MU__LIST_ENTRY(node, struct mu__work, node);
    work->queued = false;
    work->begin(work);
    return work;
}

/* A thread takes the oldest one now. */
static inline struct mu__work *take_work(struct fixture *f)
{
    struct mu__work *work = begin_work(f);

    atomic_store(&work->begun_ms, f->now_ms);
    return work;
}

static inline void pass_time(struct fixture *f, uint64_t ms)
{
    f->now_ms += ms;
    lone_turn(f);
}

static inline void end_work(struct fixture *f, struct mu__work *work)
{
    struct mu__msg *msg = mu__msg_heap(MU__WORK_DONE, sizeof(struct mu__work_done));

    assert_non_null(msg);
    work->run(work);
    ((struct mu__work_done *)mu__body(msg))->work = work;
    lone_tell(f, msg, 0);
}

static inline void work(struct fixture *f)
{
    end_work(f, begin_work(f));
}

/* What the variables actor was asked to send first is sent; code not 0: it cannot be. */
static inline void answer_effects(struct fixture *f, int code)
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
    lone_tell(f, msg, 0);
}

/* ---- Hearing ---- */

static inline struct mu__msg *hear(struct fixture *f, uint16_t kind)
{
    struct mu__msg *msg = f->said;

    assert_non_null(msg);
    assert_int_equal(msg->kind, kind);
    f->said = msg->next;
    return msg;
}

static inline void expect_view(struct mu__view view, const char *text)
{
    char own[1200];

    mu__view_copy(view, own, sizeof own);
    assert_string_equal(own, text);
}

static inline void expect_error(struct fixture *f, uint64_t closure, unsigned code,
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
static inline void expect_result(struct fixture *f, uint64_t closure, mu_value *value)
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

static inline void expect_silence(const struct fixture *f)
{
    assert_null(f->said);
}

/* What a PULL of `number` gives: a value (taken), or an error. */
static inline void expect_pull(struct fixture *f, uint64_t number, unsigned code,
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

static inline void expect_not_there(struct fixture *f, uint64_t number)
{
    expect_pull(f, number, MU_ENOTFOUND, NULL, "it is not on /job:worker/task:3");
}

#endif
