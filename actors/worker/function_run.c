#include "actors/worker/function_run.h"

#include "actors/packing.h"
#include "runtime/base/text.h"
#include "runtime/message/arguments.h"
#include "runtime/message/unpack.h"
#include "runtime/message/value_layout.h"
#include "runtime/message/value_references.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES_MAX = 511 };

/* Nil is made on demand, since many functions do not read their arguments. Out of memory:
 * NULL, which reads as nil. */
const mu_value *mu_run_args(mu_run *run)
{
    MU__REQUIRE_OR(NULL, run);
    if (run->args_value == NULL)
        run->args_value = mu_value_nil();
    return run->args_value;
}

mu_node *mu_run_node(mu_run *run)
{
    MU__REQUIRE_OR(NULL, run);
    return run->node;
}

int mu_run_cancelled(mu_run *run)
{
    MU__REQUIRE_OR(0, run);
    return atomic_load_explicit(&run->cancelled, memory_order_relaxed);
}

void mu_run_return(mu_run *run, mu_value *value)
{
    if (run == NULL) {
        mu_value_free(value);
        return;
    }
    mu_value_free(run->result);
    run->result = value;
    run->no_memory = false;
}

uint64_t mu_run_closure_id(const mu_run *run)
{
    MU__REQUIRE_OR(0, run);
    return run->closure;
}

uint32_t mu_run_attempt(const mu_run *run)
{
    MU__REQUIRE_OR(0, run);
    return run->attempt;
}

const char *mu_run_worker_type(const mu_run *run)
{
    MU__REQUIRE_OR(NULL, run);
    return run->registered->worker_type;
}

int mu_run_worker(const mu_run *run)
{
    MU__REQUIRE_OR(-1, run);
    return run->registered->worker;
}

/* ---- Errors ---- */

int mu_run_fail(mu_run *run, int code, const char *format, ...)
{
    MU__REQUIRE(NULL, run);

    va_list args;

    if (code >= 0)
        code = -MU_EUNKNOWN;
    free(run->failure);
    run->failure = NULL;
    if (run->text == NULL)
        run->text = malloc(MU__ERROR_TEXT_MAX + 1);
    if (run->text == NULL)
        return code;
    va_start(args, format);
    (void)vsnprintf(run->text, MU__ERROR_TEXT_MAX + 1, format == NULL ? "" : format,
                    args);
    va_end(args);
    mu__make_utf8(run->text);
    return code;
}

void mu__run_set_failure(struct mu_run *run, const mu_error *error)
{
    if (run->failure == NULL)
        run->failure = malloc(sizeof *run->failure);
    if (run->failure != NULL)
        *run->failure = *error;
}

/* An error that names a parameter server as its task is the server's; any other is the
 * function's. */
static int get_error_kind(const mu_error *error)
{
    static const char servers[] = "/job:ps/";

    if (error->kind > MU_ERROR_OTHER && error->kind <= UINT8_MAX)
        return error->kind;
    return strncmp(error->task, servers, strlen(servers)) == 0 ? MU_ERROR_SERVER
                                                               : MU_ERROR_FUNCTION;
}

/* The program may have filled in the strings itself. */
int mu_run_fail_with(mu_run *run, const mu_error *error)
{
    MU__REQUIRE(NULL, run, error);

    mu_error own = *error;

    if (own.code >= 0 || own.code < -UINT8_MAX)
        own.code = -MU_EUNKNOWN;
    own.task[sizeof own.task - 1] = '\0';
    own.message[sizeof own.message - 1] = '\0';
    own.detail[sizeof own.detail - 1] = '\0';
    mu__make_utf8(own.message);
    mu__make_utf8(own.detail);
    own.kind = get_error_kind(&own);
    mu__run_set_failure(run, &own);
    return own.code;
}

/* ---- Stack traces and log lines ---- */

static struct mu__run_extra *extra_of(struct mu_run *run)
{
    if (run->extra == NULL)
        run->extra = calloc(1, sizeof *run->extra);
    return run->extra;
}

/* Out of memory: "". May write to the run, since its thread has it to itself. */
const char *mu_run_closure_name(const mu_run *run)
{
    MU__REQUIRE_OR(NULL, run);

    struct mu__view name = mu__run_request(run)->name;
    struct mu__run_extra *extra;

    if (name.size == 0)
        return "";
    extra = extra_of((mu_run *)(uintptr_t)run);
    if (extra == NULL)
        return "";
    if (extra->name[0] == '\0')
        mu__view_copy(name, extra->name, sizeof extra->name);
    return extra->name;
}

/* The length of a text cut to `room` bytes, without splitting a UTF-8 character. */
static size_t cut_utf8(const char *text, size_t room)
{
    size_t size = strlen(text);

    if (size <= room)
        return size;
    while (room > 0 && ((unsigned char)text[room] & 0xc0) == 0x80)
        room--;
    return room;
}

void mu_run_set_stack_trace(mu_run *run, const char *text)
{
    MU__REQUIRE_OR(, run);

    struct mu__run_extra *extra = extra_of(run);
    size_t size;

    if (extra == NULL || text == NULL)
        return;
    size = cut_utf8(text, MU__DETAIL_BYTES_MAX);
    memcpy(extra->stack, text, size);
    extra->stack[size] = '\0';
}

int mu_run_set_error_data(mu_run *run, const void *data, size_t size)
{
    MU__REQUIRE(NULL, run, data);

    struct mu__run_extra *extra = extra_of(run);
    void *copy;

    if (size > MU__ERROR_DATA_MAX)
        return -MU_EEXHAUSTED;
    copy = extra == NULL ? NULL : malloc(size + 1);
    if (copy == NULL)
        return -MU_ENOMEM;
    memcpy(copy, data, size);
    free(extra->error_data);
    extra->error_data = copy;
    extra->error_data_size = (uint32_t)size;
    return 0;
}

/* Append a line, given without its end; the oldest lines make room. */
static void remember_line(struct mu__run_extra *extra, const char *line, size_t size)
{
    while (extra->lines_size + size + 1 > MU__DETAIL_BYTES_MAX) {
        const char *end = memchr(extra->lines, '\n', extra->lines_size);
        size_t first = (size_t)(end - extra->lines) + 1;

        extra->lines_size -= first;
        memmove(extra->lines, extra->lines + first, extra->lines_size);
    }
    memcpy(extra->lines + extra->lines_size, line, size);
    extra->lines[extra->lines_size + size] = '\n';
    extra->lines_size += size + 1;
}

/* A RUN_LOG; the line is stored behind the body, in the same allocation. */
static struct mu__msg *line_msg(struct mu__registered *function, const char *line,
                                size_t size)
{
    struct mu__msg *msg = mu__msg_heap(MU__RUN_LOG, sizeof(struct mu__run_log) + size);
    struct mu__run_log *body;

    if (msg == NULL)
        return NULL;
    body = (struct mu__run_log *)(void *)msg->body;
    memcpy(body + 1, line, size);
    body->function = function;
    body->line = (struct mu__view){body + 1, (uint32_t)size};
    return msg;
}

static void post_line(struct mu_run *run, const char *line, size_t size)
{
    struct mu__registered *function = run->registered;
    struct mu__msg *msg;

    if (function->post == NULL)
        return;
    if (atomic_fetch_add(&function->lines_waiting, 1) >= MU__RUN_LINES_MAX) {
        atomic_fetch_sub(&function->lines_waiting, 1);
        atomic_fetch_add(&function->lines_lost, 1);
        return;
    }
    msg = line_msg(function, line, size);
    if (msg == NULL || function->post(run->node, MU__WORKER, msg) != 0)
        atomic_fetch_sub(&function->lines_waiting, 1);
}

void mu_run_log(mu_run *run, const char *format, ...)
{
    MU__REQUIRE_OR(, run, format);

    struct mu__run_extra *extra = extra_of(run);
    char line[LINE_BYTES_MAX + 8] = "";
    va_list args;
    size_t size;

    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    size = cut_utf8(line, LINE_BYTES_MAX);
    while (size > 0 && line[size - 1] == '\n')
        size--;
    if (extra != NULL)
        remember_line(extra, line, size);
    post_line(run, line, size);
}

struct mu__view mu__run_detail(const struct mu_run *run)
{
    const struct mu__run_extra *extra = run->extra;

    if (extra != NULL && extra->stack[0] != '\0')
        return mu__view_str(extra->stack);
    if (extra != NULL && extra->lines_size > 0)
        return (struct mu__view){extra->lines, (uint32_t)extra->lines_size - 1};
    if (run->failure != NULL)
        return mu__view_str(run->failure->detail);
    return (struct mu__view){0};
}

/* ---- Objects ---- */

/* The holder of the reference value of a kept object. */
struct object {
    void *object;
    void (*drop)(void *object);
    const void *kind;
};

/* Runs on the thread that releases the last reference. */
static void drop_object(void *holder)
{
    struct object *own = holder;

    if (own->drop != NULL)
        own->drop(own->object);
    free(own);
}

static mu_value *object_value(uint64_t number, const struct object *object)
{
    struct object *own = malloc(sizeof *own);
    mu_value *value;

    if (own == NULL)
        return NULL;
    *own = *object;
    value = mu__value_reference(number, own, drop_object);
    if (value == NULL)
        free(own);
    return value;
}

int mu__run_keep_object(struct mu_run *run, void *object, void (*drop)(void *object),
                        const void *kind)
{
    const struct object own = {object, drop, kind};
    mu_value *value = object_value(run->closure, &own);

    mu_run_return(run, value);
    run->no_memory = value == NULL;
    if (value != NULL)
        return 0;
    if (drop != NULL)
        drop(object);
    return -MU_ENOMEM;
}

void mu_run_return_object(mu_run *run, void *object, void (*drop)(void *object))
{
    if (run != NULL)
        (void)mu__run_keep_object(run, object, drop, NULL);
    else if (drop != NULL)
        drop(object);
}

void *mu__run_find_object(const mu_value *argument, const void *kind)
{
    const struct object *own = mu__value_holder(argument, drop_object);

    return own == NULL || own->kind != kind ? NULL : own->object;
}

void *mu_run_object(mu_run *run, const mu_value *argument)
{
    (void)run;
    return mu__run_find_object(argument, NULL);
}

bool mu__run_has_object(const mu_value *value)
{
    return mu__value_has_holder(value, drop_object);
}

/* ---- Inputs ---- */

static int compare_inputs(const void *a, const void *b)
{
    const struct mu__run_input *one = a;
    const struct mu__run_input *two = b;

    return (one->number > two->number) - (one->number < two->number);
}

static uint32_t sort_and_thin(struct mu__run_input *items, uint32_t count)
{
    uint32_t pinned = 0;

    qsort(items, count, sizeof *items, compare_inputs);
    for (uint32_t i = 0; i < count; i++)
        if (pinned == 0 || items[i].number != items[pinned - 1].number)
            items[pinned++] = items[i];
    return pinned;
}

/* Number 0, and the result of the run itself. */
static bool is_no_input(const struct mu_run *run, uint64_t number)
{
    return number == 0 || (number == run->closure && mu__run_makes(run));
}

int mu__run_take_inputs(struct mu_run *run)
{
    struct mu__view numbers = mu__run_request(run)->inputs;
    uint32_t count = numbers.size / sizeof(uint64_t);
    struct mu__run_inputs *inputs;

    if (numbers.size == 0)
        return 0;
    if (numbers.size % sizeof(uint64_t) != 0)
        return -MU_EINVALID;
    inputs = calloc(1, sizeof *inputs + count * sizeof inputs->items[0]);
    if (inputs == NULL)
        return -MU_ENOMEM;
    run->inputs = inputs;
    for (uint32_t i = 0; i < count; i++) {
        inputs->items[i].run = run;
        inputs->items[i].number =
            mu__load_little64((const uint8_t *)numbers.data + i * sizeof(uint64_t));
        if (is_no_input(run, inputs->items[i].number))
            return -MU_EINVALID;
    }
    inputs->count = sort_and_thin(inputs->items, count);
    return 0;
}

static int replace_input(void *arg, uint64_t number, mu_value **ret_value)
{
    struct mu_run *run = arg;
    const struct mu__run_input key = {.number = number};
    const struct mu__run_input *input = NULL;

    if (run->inputs != NULL)
        input = bsearch(&key, run->inputs->items, run->inputs->count, sizeof key,
                        compare_inputs);
    if (input == NULL)
        return mu_run_fail(run, -MU_EDATALOSS,
                           "the arguments refer to number %llu, "
                           "which is not among the inputs of the closure",
                           (unsigned long long)number);
    *ret_value = mu_value_ref(input->value);
    return 0;
}

/* ---- Running ---- */

static int unpack_args(struct mu_run *run)
{
    const struct mu__packed *args = &mu__run_request(run)->args;
    char why[128] = "out of memory";

    if (args->head_size == 0)
        return 0;
    if (mu__value_unpack(args, why, sizeof why, &run->args_value) != 0)
        return mu_run_fail(run, -MU_EDATALOSS, "the arguments cannot be read: %s", why);
    if (run->inputs == NULL)
        return 0;
    return mu__value_replace_references(&run->args_value, replace_input, run);
}

/* Only a result that is a reference, or a run that has inputs, can have an object. */
static int check_objects(struct mu_run *run)
{
    if (mu_value_type(run->result) != MU_VALUE_REFERENCE && run->inputs == NULL)
        return 0;
    if (!mu__run_has_object(run->result))
        return 0;
    return mu_run_fail(run, -MU_EPRECONDITION,
                       "the result is an object or holds one, which cannot be sent: "
                       "expected a function of a per-worker value, or a closure whose "
                       "result is kept on its worker");
}

static int fail_too_large(struct mu_run *run)
{
    uint32_t head = 0;
    uint32_t tail = 0;
    uint64_t bytes;

    if (mu__value_measure(run->result, &head, &tail) != 0)
        return mu_run_fail(run, -MU_EEXHAUSTED,
                           "the result cannot be sent: it is nested "
                           "deeper than %d, or has more than %d bytes",
                           MU_VALUE_DEPTH_MAX, MU__VALUE_BYTES_MAX);
    bytes = (uint64_t)head + tail;
    if (bytes > MU__VALUE_BYTES_MAX)
        return mu_run_fail(run, -MU_EEXHAUSTED,
                           "the result has %" PRIu64 " bytes, and "
                           "at most %d can be sent: return it in parts",
                           bytes, MU__VALUE_BYTES_MAX);
    return mu_run_fail(run, -MU_ENOMEM, "no memory to send a result of %" PRIu64 " bytes",
                       bytes);
}

static int pack_result(struct mu_run *run)
{
    int rv;

    if (run->result == NULL || mu_value_type(run->result) == MU_VALUE_NIL)
        return 0;
    rv = check_objects(run);
    if (rv != 0)
        return rv;
    run->result_buf = mu__pack_to_send(run->result, true, &run->result_packed);
    return run->result_buf != NULL ? 0 : fail_too_large(run);
}

/* Of a result that stays here; the sizes are needed if it is sent later. */
static int measure_result(struct mu_run *run)
{
    struct mu__packed *packed = &run->result_packed;

    if (run->result == NULL)
        run->result = mu_value_nil();
    if (run->result == NULL)
        return -MU_ENOMEM;
    if (mu__value_measure(run->result, &packed->head_size, &packed->tail_size) == 0)
        return 0;
    return fail_too_large(run);
}

static int call_run_function(struct mu_run *run)
{
    int code;

    run->began = true;
    run->code = MU__RUN_NOT_RETURNED;
    code = run->registered->function(run, run->registered->user);
    if (code > 0 || code < -UINT8_MAX)
        return mu_run_fail(run, -MU_EUNKNOWN, "the function returned %d", code);
    if (code == 0 && run->no_memory)
        return -MU_ENOMEM;
    return code;
}

void mu__run_begin(struct mu__work *work)
{
    struct mu_run *run = (struct mu_run *)work;

    run->skipped = mu_run_cancelled(run) != 0;
}

void mu__run_not_returned(struct mu_run *run)
{
    run->code = mu_run_fail(run, -MU_EINTERNAL,
                            "the function has ended its thread "
                            "(pthread_exit): it must return");
    mu__effects_clear(&run->effects);
}

static int execute_run(struct mu_run *run)
{
    int code;

    if (run->skipped)
        return mu_run_fail(run, -MU_ECANCELLED, "cancelled before it began");
    code = unpack_args(run);
    if (code == 0)
        code = call_run_function(run);
    if (code == 0)
        code = mu__run_makes(run) ? measure_result(run) : pack_result(run);
    return code;
}

void mu__run_execute(struct mu__work *work)
{
    struct mu_run *run = (struct mu_run *)work;

    run->code = execute_run(run);
    if (run->code != 0)
        mu__effects_clear(&run->effects);
}

static void free_inputs(struct mu__run_inputs *inputs)
{
    for (uint32_t i = 0; i < inputs->count; i++)
        mu_value_free(inputs->items[i].value);
    free(inputs);
}

/* What only runs have that failed, wrote, logged or had inputs. */
static void clear_rest(struct mu_run *run)
{
    mu__effects_clear(&run->effects);
    free(run->text);
    free(run->failure);
    if (run->extra != NULL)
        free(run->extra->error_data);
    free(run->extra);
    if (run->inputs != NULL)
        free_inputs(run->inputs);
}

void mu__run_clear(struct mu_run *run)
{
    if (run->args_value != NULL)
        mu_value_free(run->args_value);
    if (run->result != NULL)
        mu_value_free(run->result);
    mu__buf_unref(run->result_buf);
    if (run->text != NULL || run->failure != NULL || run->extra != NULL ||
        run->inputs != NULL || run->effects.first != NULL)
        clear_rest(run);
}
