/* Scheduling a closure does not wait for the loop: it looks at a few counters and the
 * session's phase, packs the arguments on the caller's thread and posts one message. Only
 * a closure with remote values that are not here yet is packed later, by the client
 * actor. */
#include "api/internal.h"

#include "actors/client/holds.h"
#include "actors/messages.h"
#include "actors/packing.h"
#include "actors/references.h"
#include "resolver/spec/cluster.h"
#include "runtime/base/text.h"
#include "runtime/message/arguments.h"

#include <stddef.h>
#include <string.h>

/* A closure that is being made. */
struct builder {
    mu_node *node;
    const mu_closure_options *options; /* NULL: the defaults */
    struct mu__view function;
    struct mu__view name;
    struct mu__view worker_type;
    struct mu__references inputs;
    mu_value *whole; /* the arguments with the contents of their
                        references; NULL: these are not all here */
    struct mu__msg *msg;
    uint8_t *numbers;        /* in msg: room for the inputs' numbers */
    bool has_holds;          /* msg has: see actors/client/holds.h */
    struct mu__packed sizes; /* of the packed arguments, without pointers */
};

void mu_closure_options_init_sized(mu_closure_options *options, size_t size)
{
    const mu_closure_options defaults = {
        .priority = MU_PRIORITY_DEFAULT,
        .worker = -1,
        .not_worker = -1,
    };

    mu__options_init(options, size, &defaults, sizeof defaults);
}

/* ---- checks ---- */

static int check_closure_name(const char *name, mu_error *ret_error)
{
    size_t size;

    if (name == NULL)
        return 0;
    size = strlen(name);
    if (size == 0 || size > MU__CLOSURE_NAME_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a closure's name has 1 to %d bytes, \"%.140s\" has %zu",
                            MU__CLOSURE_NAME_MAX, name, size);
    if (!mu__utf8_valid(name, size))
        return mu_error_set(ret_error, -MU_EINVALID, "a closure's name is not UTF-8");
    return 0;
}

static int check_closure_range(const char *option, int64_t number, int64_t low,
                               int64_t high, mu_error *ret_error)
{
    if (number >= low && number <= high)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "option %s of a closure is %lld, expected a number from %lld to "
                        "%lld",
                        option, (long long)number, (long long)low, (long long)high);
}

/* Of each closure, so without a detour by the defaults where there is nothing to add. */
static int read_closure_options(const mu_closure_options *options, mu_error *ret_error,
                                mu_closure_options *ret_own)
{
    if (options->size != sizeof *options)
        return MU__OPTIONS_READ(mu_closure_options, options, ret_error, ret_own);
    *ret_own = *options;
    return 0;
}

static int check_closure_options(const mu_closure_options *o, mu_error *ret_error)
{
    const unsigned known = MU_CLOSURE_EFFECT_ONCE | MU_CLOSURE_PIN_RESULT |
                           MU_CLOSURE_NO_BACKUP | MU_CLOSURE_RAISE_ON_FETCH;
    const struct {
        const char *option;
        int64_t number;
        int64_t low;
        int64_t high;
    } numbers[] = {
        {"priority", o->priority, MU_PRIORITY_HIGHEST, MU_PRIORITY_LOWEST},
        {"deadline_ms", o->deadline_ms, 0, INT64_MAX},
        {"run_timeout_ms", o->run_timeout_ms, 0, INT64_MAX},
        {"attempts_max", o->attempts_max, 0, 65534},
        {"worker", o->worker, -1, INT32_MAX - 1},
        {"not_worker", o->not_worker, -1, INT32_MAX - 1},
    };
    int rv = check_closure_name(o->name, ret_error);
    mu_error inner;

    for (size_t i = 0; rv == 0 && i < sizeof numbers / sizeof numbers[0]; i++)
        rv = check_closure_range(numbers[i].option, numbers[i].number, numbers[i].low,
                                 numbers[i].high, ret_error);
    if (rv != 0)
        return rv;
    if ((o->flags & ~known) != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "option flags of a closure is 0x%x, which has unknown flags",
                            o->flags);
    if (o->worker_type != NULL && mu__task_type_check(o->worker_type, &inner) != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "option worker_type of a closure: %s", inner.message);
    if (o->worker >= 0 && o->worker == o->not_worker)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a closure is to run on worker %d only, and never on it",
                            o->worker);
    return 0;
}

int mu__check_function_name(const char *function, mu_error *ret_error)
{
    size_t size = function == NULL ? 0 : strlen(function);

    if (function == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "no function was named");
    if (size > 0 && size <= MU__FUNCTION_NAME_MAX && mu__utf8_valid(function, size))
        return 0;
    if (size > 0 && size <= MU__FUNCTION_NAME_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a function's name is UTF-8, \"%s\" is not", function);
    return mu_error_set(ret_error, -MU_EINVALID,
                        "a function's name has 1 to %d bytes, \"%.80s\" has %zu",
                        MU__FUNCTION_NAME_MAX, function, size);
}

/* ---- arguments ---- */

static uint64_t get_packed_bytes(const struct mu__packed *sizes)
{
    return (uint64_t)sizes->head_size + sizes->tail_size;
}

int mu__measure_args(const mu_value *args, struct mu__packed *ret_sizes,
                     mu_error *ret_error)
{
    *ret_sizes = (struct mu__packed){0};
    if (args == NULL)
        return 0;
    if (mu__value_measure(args, &ret_sizes->head_size, &ret_sizes->tail_size) != 0)
        return mu_error_set(ret_error, -MU_ERANGE,
                            "the arguments are too deep or too large");
    if (get_packed_bytes(ret_sizes) > MU__VALUE_BYTES_MAX)
        return mu_error_set(ret_error, -MU_ERANGE,
                            "the arguments have %llu bytes, at most %d are sent",
                            (unsigned long long)get_packed_bytes(ret_sizes),
                            MU__VALUE_BYTES_MAX);
    return 0;
}

/* One buffer for the arguments' raw bytes (which are aligned, so they come first) and
 * their msgpack part. */
int mu__pack_args(struct mu__msg *msg, const mu_value *args, struct mu__packed *packed,
                  mu_error *ret_error)
{
    if (args == NULL)
        return 0;
    msg->backing = mu__pack_measured(args, packed);
    if (msg->backing == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for the arguments");
    return 0;
}

/* Collect the references among the arguments: the closure's inputs. */
static int collect_inputs(struct builder *builder, const mu_value *args,
                          mu_error *ret_error)
{
    int rv = mu__references_collect(args, &builder->inputs);

    if (rv == -MU_ENOMEM)
        return mu_error_set(ret_error, rv, "no memory for the arguments' references");
    for (size_t i = 0; rv == 0 && i < builder->inputs.count; i++)
        if (builder->inputs.held[i]->owner != &builder->node->future_owner)
            rv = -MU_EINVALID;
    if (rv != 0)
        return mu_error_set(ret_error, rv,
                            "a reference among the arguments is not of a value of this "
                            "coordinator");
    if (builder->inputs.count > MU__INPUTS_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "the arguments have references to %zu values, at most %d are "
                            "allowed",
                            builder->inputs.count, MU__INPUTS_MAX);
    return 0;
}

static mu_value *get_future_content(void *arg, const mu_value *reference)
{
    const mu_remote_value *future =
        (const mu_remote_value *)mu__reference_held(reference);

    (void)arg;
    return future->result == NULL ? mu_value_nil() : mu_value_ref(future->result);
}

/* Whether the contents of all inputs are here, so that the arguments are packed at
 * once. */
static bool has_all_contents(const struct builder *builder)
{
    for (size_t i = 0; i < builder->inputs.count; i++) {
        const struct mu__held *held = builder->inputs.held[i];
        const mu_remote_value *future = (const mu_remote_value *)held;

        if (held->is_per_worker || !mu__future_is(future, MU_REMOTE_READY) ||
            future->error != NULL || held->number != 0)
            return false;
    }
    return true;
}

static int put_contents(struct builder *builder, const mu_value *args,
                        mu_error *ret_error)
{
    builder->whole = mu__references_replace(args, get_future_content, NULL);
    if (builder->whole == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for the arguments");
    return mu__measure_args(builder->whole, &builder->sizes, ret_error);
}

/* ---- messages ---- */

static void set_options(struct mu__schedule *body, const mu_closure_options *o)
{
    body->flags = o->flags;
    body->priority = o->priority == MU_PRIORITY_DEFAULT ? 0 : (uint32_t)o->priority + 1;
    body->deadline_ms = (uint64_t)o->deadline_ms;
    body->run_timeout_ms = (uint64_t)o->run_timeout_ms;
    body->attempts_max = o->attempts_max;
    body->worker = (uint32_t)(o->worker + 1);
    body->not_worker = (uint32_t)(o->not_worker + 1);
}

/* A SUBMIT message, with names behind its body, and then room for the numbers of its
 * inputs. */
static int make_message(struct builder *builder, mu_error *ret_error)
{
    size_t size = sizeof(struct mu__submit) + builder->function.size +
                  builder->name.size + builder->worker_type.size +
                  sizeof(uint64_t) * builder->inputs.count;
    struct mu__schedule *body;

    builder->msg = mu__msg_heap(MU__SUBMIT, size);
    if (builder->msg == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a closure");
    body = mu__body(builder->msg);
    body->function = builder->function;
    builder->numbers =
        mu__pack_view((uint8_t *)body + sizeof(struct mu__submit), &body->function);
    if (builder->options == NULL)
        return 0;
    set_options(body, builder->options);
    body->name = builder->name;
    if (builder->name.size > 0)
        builder->numbers = mu__pack_view(builder->numbers, &body->name);
    body->worker_type = builder->worker_type;
    if (builder->worker_type.size > 0)
        builder->numbers = mu__pack_view(builder->numbers, &body->worker_type);
    return 0;
}

/* Hand the closure to the client actor as a whole: some inputs are not here, or only the
 * client knows their numbers. */
static int defer_closure(struct builder *builder, const mu_value *args,
                         mu_remote_value *future, mu_error *ret_error)
{
    struct mu__msg *msg =
        mu__msg_heap(MU__SCHEDULE_PENDING, sizeof(struct mu__schedule_pending));
    struct mu__pending_closure *closure =
        msg == NULL ? NULL
                    : mu__pending_new(builder->inputs.held,
                                      (uint32_t)builder->inputs.count, args);

    if (closure == NULL) {
        mu__node_drop_msg(msg);
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a closure");
    }
    closure->msg = builder->msg;
    closure->numbers = builder->numbers;
    closure->future = future;
    closure->bytes = get_packed_bytes(&builder->sizes);
    ((struct mu__schedule_pending *)mu__body(msg))->pending = closure;
    builder->msg = msg;
    return 0;
}

/* Put the arguments into the message, or make that of a deferred closure. */
static int fill_message(struct builder *builder, const mu_value *args,
                        mu_remote_value *future, mu_error *ret_error)
{
    struct mu__schedule *body = mu__body(builder->msg);
    bool refers = builder->inputs.count > 0 && builder->whole == NULL;
    int rv;

    ((struct mu__submit *)mu__body(builder->msg))->future = future;
    if (refers && !mu__holds_suffice(&builder->inputs))
        return defer_closure(builder, args, future, ret_error);
    body->args = builder->sizes;
    rv = mu__pack_args(builder->msg, builder->whole != NULL ? builder->whole : args,
                       &body->args, ret_error);
    if (rv == 0 && refers) {
        mu__holds_take(body, builder->numbers, &builder->inputs);
        builder->has_holds = true;
    }
    return rv;
}

static void drop_closure_message(struct mu__msg *msg)
{
    if (msg != NULL && msg->kind == MU__SCHEDULE_PENDING)
        mu__pending_free(((struct mu__schedule_pending *)mu__body(msg))->pending);
    mu__node_drop_msg(msg);
}

/* A node that is being closed takes no message: then the closure was never scheduled, and
 * its inputs are released. */
static int post_closure(struct builder *builder, mu_error *ret_error)
{
    struct mu__pending_closure *closure = NULL;
    struct mu__msg *msg = builder->msg;
    int rv;

    if (msg->kind == MU__SCHEDULE_PENDING)
        closure = ((struct mu__schedule_pending *)mu__body(msg))->pending;
    builder->msg = NULL;
    rv = mu__node_post(builder->node, MU__CLIENT, msg);
    if (rv == 0)
        return 0;
    if (closure != NULL)
        mu__pending_free(closure);
    for (size_t i = 0; builder->has_holds && i < builder->inputs.count; i++)
        mu__held_unref(builder->inputs.held[i]);
    return mu_error_set(ret_error, rv, "%s is %s", mu_node_task(builder->node),
                        mu_strerror(rv));
}

/* ---- scheduling ---- */

/* The closure was admitted. */
static int make_and_post(mu_coordinator *c, struct builder *builder, const mu_value *args,
                         mu_error *ret_error, mu_remote_value **ret_value)
{
    mu_remote_value *future = NULL;
    int rv = make_message(builder, ret_error);

    if (rv == 0 && ret_value != NULL) {
        future = mu__future_new(&builder->node->future_owner);
        if (future == NULL)
            rv = mu_error_set(ret_error, -MU_ENOMEM, "no memory for a remote value");
    }
    if (future != NULL && builder->options != NULL) {
        future->notify = builder->options->on_ready;
        future->notify_user = builder->options->user;
    }
    if (rv == 0)
        rv = fill_message(builder, args, future, ret_error);
    if (rv == 0)
        rv = post_closure(builder, ret_error);
    else
        drop_closure_message(builder->msg);
    if (rv != 0)
        mu__admission_withdraw(&c->session, get_packed_bytes(&builder->sizes));
    if (rv != 0 && future != NULL)
        mu__held_free(&future->held);
    else if (ret_value != NULL)
        *ret_value = future;
    return rv;
}

/* Field by field: this is on the way of every closure. */
static void init_closure_builder(struct builder *builder, const char *function,
                                 const mu_closure_options *options)
{
    builder->options = options;
    builder->function = mu__view_str(function);
    builder->name = (struct mu__view){NULL, 0};
    builder->worker_type = (struct mu__view){NULL, 0};
    mu__references_init(&builder->inputs);
    builder->whole = NULL;
    builder->msg = NULL;
    builder->has_holds = false;
    builder->sizes = (struct mu__packed){0};
}

static int prepare_closure(mu_coordinator *c, struct builder *builder,
                           const mu_value *args, int64_t timeout_ms, mu_error *ret_error)
{
    int rv = mu__measure_args(args, &builder->sizes, ret_error);

    if (rv == 0 && args != NULL)
        rv = collect_inputs(builder, args, ret_error);
    if (rv == 0 && builder->inputs.count > 0 && has_all_contents(builder))
        rv = put_contents(builder, args, ret_error);
    if (rv == 0)
        rv =
            mu__coordinator_admit(c, get_packed_bytes(&builder->sizes),
                                  builder->options != NULL &&
                                      builder->options->flags & MU_CLOSURE_RAISE_ON_FETCH,
                                  timeout_ms, ret_error);
    return rv;
}

int mu_coordinator_schedule_with(mu_coordinator *c, const char *function,
                                 const mu_value *args, const mu_closure_options *options,
                                 int64_t timeout_ms, mu_error *ret_error,
                                 mu_remote_value **ret_value)
{
    mu_closure_options own;
    struct builder builder;
    int rv;

    if (ret_value != NULL)
        *ret_value = NULL;
    if (c == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "no coordinator was given");
    rv = mu__check_function_name(function, ret_error);
    if (rv != 0)
        return rv;
    if (options != NULL) {
        rv = read_closure_options(options, ret_error, &own);
        if (rv != 0)
            return rv;
        options = &own;
    }
    init_closure_builder(&builder, function, options);
    builder.node = mu__coordinator_reach(c, ret_error);
    if (builder.node == NULL)
        return -MU_ECLOSED;
    if (options != NULL) {
        rv = check_closure_options(options, ret_error);
        if (options->name != NULL)
            builder.name = mu__view_str(options->name);
        if (options->worker_type != NULL)
            builder.worker_type = mu__view_str(options->worker_type);
    }
    if (rv == 0)
        rv = prepare_closure(c, &builder, args, timeout_ms, ret_error);
    if (rv == 0)
        rv = make_and_post(c, &builder, args, ret_error, ret_value);
    mu_value_free(builder.whole);
    if (builder.inputs.held != NULL)
        mu__references_done(&builder.inputs);
    return rv;
}

int mu_coordinator_schedule(mu_coordinator *c, const char *function, const mu_value *args,
                            int64_t timeout_ms, mu_error *ret_error,
                            mu_remote_value **ret_value)
{
    return mu_coordinator_schedule_with(c, function, args, NULL, timeout_ms, ret_error,
                                        ret_value);
}
