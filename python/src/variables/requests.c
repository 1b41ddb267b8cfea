/* Requests of variables: calls that wait, and calls that tell their end. */
#include "variables/variable.h"

#include <string.h>

_Static_assert(sizeof(struct mupy_asked) <= sizeof((struct mupy_call *)NULL)->text,
               "a request is in the text of its call");

struct mupy_asked *mupy_asked_of(struct mupy_call *call)
{
    return (struct mupy_asked *)(void *)call->text;
}

static void run_request(struct mupy_call *call)
{
    call->rv = mu_variable_request_wait(call->object, &mupy_asked_of(call)->request,
                                        &call->error);
}

static int begin_request(struct mupy_call *call, void *user)
{
    return mu_variable_request_async(call->object, &mupy_asked_of(call)->request,
                                     mupy_begun_ended, user, &call->error);
}

struct mupy_call *mupy_variable_call(struct mupy_variable *self, int operation,
                                     const struct mupy_array *array, const mu_rows *rows,
                                     PyObject *numbers, PyObject *timeout)
{
    struct mupy_asked *asked;
    struct mupy_call *call;
    int64_t timeout_ms;

    if (mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    call = mupy_call_new(run_request);
    if (call == NULL)
        return NULL;
    asked = mupy_asked_of(call);
    asked->request = (mu_variable_request){
        .operation = operation,
        .target = (void *)(uintptr_t)array->data,
        .source = array->data,
        .bytes = array->bytes,
        .timeout_ms = timeout_ms,
    };
    if (rows != NULL) {
        asked->rows = *rows;
        asked->request.rows = &asked->rows;
    }
    call->begin = begin_request;
    call->object = self->variable;
    mupy_call_keep(call, (PyObject *)self);
    mupy_call_keep(call, array->keep);
    if (numbers != NULL)
        mupy_call_keep(call, numbers);
    return call;
}

PyObject *mupy_call_end(struct mupy_call *call, PyObject *tell)
{
    return tell == NULL || tell == Py_None ? mupy_call_finish(call)
                                           : mupy_call_start(call, tell);
}

/* ---- reading ---- */

/* Takes the reference in `array`. */
static PyObject *read_into_array(struct mupy_variable *self, struct mupy_array *array,
                                 PyObject *timeout, PyObject *max_age, PyObject *tell)
{
    struct mupy_call *call = NULL;
    struct mupy_asked *asked;
    int64_t max_age_ms;

    if (mupy_timeout(max_age, &max_age_ms) == 0)
        call = mupy_variable_call(self, MU_VARIABLE_READ, array, NULL, NULL, timeout);
    Py_DECREF(array->keep);
    if (call == NULL)
        return NULL;
    asked = mupy_asked_of(call);
    asked->request.is_cached = max_age != Py_None;
    asked->request.max_age_ms = max_age == Py_None ? 0 : (uint64_t)max_age_ms;
    return mupy_call_end(call, tell);
}

PyObject *mupy_variable_read(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"timeout", "max_age", "out", NULL};
    struct mupy_variable *self = mupy_variable_of(object);
    PyObject *timeout = NULL;
    PyObject *max_age = Py_None;
    PyObject *out = Py_None;
    PyObject *result = NULL;
    struct mupy_array array;
    PyObject *made;

    if (self == NULL || !PyArg_ParseTupleAndKeywords(args, kwargs, "|OOO:read", names,
                                                     &timeout, &max_age, &out))
        return NULL;
    made = mupy_variable_target(self, self->dims, out);
    if (made != NULL && mupy_array_of(made, MU_DTYPE_NONE, &array) == 0)
        result = read_into_array(self, &array, timeout, max_age, NULL);
    if (result == NULL) {
        Py_XDECREF(made);
        return NULL;
    }
    Py_DECREF(result);
    return mupy_variable_given(made, out);
}

PyObject *mupy_variable_read_into(PyObject *object, PyObject *args)
{
    struct mupy_variable *self = mupy_variable_of(object);
    PyObject *timeout;
    PyObject *max_age;
    PyObject *made;
    PyObject *tell;
    struct mupy_array array;

    if (self == NULL ||
        !PyArg_ParseTuple(args, "OOOO:_read_into", &made, &timeout, &max_age, &tell) ||
        mupy_array_of(made, MU_DTYPE_NONE, &array) != 0)
        return NULL;
    return read_into_array(self, &array, timeout, max_age, tell);
}

/* ---- writing ---- */

/* `optimizer` may be NULL, and `tell`. */
static PyObject *write_value(struct mupy_variable *self, int operation, PyObject *value,
                             PyObject *timeout, const mu_optimizer *optimizer,
                             PyObject *tell)
{
    struct mupy_array array;
    struct mupy_asked *asked;
    struct mupy_call *call;

    if (mupy_variable_array(self, value, &array) != 0)
        return NULL;
    call = mupy_variable_call(self, operation, &array, NULL, NULL, timeout);
    Py_DECREF(array.keep);
    if (call == NULL)
        return NULL;
    asked = mupy_asked_of(call);
    if (optimizer != NULL) {
        asked->optimizer = *optimizer;
        asked->request.optimizer = &asked->optimizer;
    }
    return mupy_call_end(call, tell);
}

PyObject *mupy_variable_write(PyObject *object, PyObject *args)
{
    struct mupy_variable *self = mupy_variable_of(object);
    PyObject *how = Py_None;
    double momentum = 0;
    mu_optimizer optimizer;
    PyObject *timeout;
    PyObject *value;
    PyObject *tell;
    int operation;

    if (self == NULL ||
        !PyArg_ParseTuple(args, "iOOO|Od:_write", &operation, &value, &timeout, &tell,
                          &how, &momentum) ||
        (how != Py_None && mupy_optimizer(how, momentum, &optimizer) != 0))
        return NULL;
    return write_value(self, operation, value, timeout,
                       how == Py_None ? NULL : &optimizer, tell);
}

static PyObject *write_from_args(PyObject *object, PyObject *args, PyObject *kwargs,
                                 int operation)
{
    static char *names[] = {"value", "timeout", NULL};
    struct mupy_variable *self = mupy_variable_of(object);
    PyObject *value;
    PyObject *timeout = NULL;

    if (self == NULL ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "O|O", names, &value, &timeout))
        return NULL;
    return write_value(self, operation, value, timeout, NULL, NULL);
}

PyObject *mupy_variable_assign(PyObject *object, PyObject *args, PyObject *kwargs)
{
    return write_from_args(object, args, kwargs, MU_VARIABLE_ASSIGN);
}

PyObject *mupy_variable_assign_add(PyObject *object, PyObject *args, PyObject *kwargs)
{
    return write_from_args(object, args, kwargs, MU_VARIABLE_ADD);
}

PyObject *mupy_variable_assign_sub(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"value", "timeout", NULL};
    struct mupy_variable *self = mupy_variable_of(object);
    PyObject *value;
    PyObject *timeout = NULL;
    struct mupy_array array;
    PyObject *negative;
    PyObject *result = NULL;

    if (self == NULL ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "O|O", names, &value, &timeout) ||
        mupy_variable_array(self, value, &array) != 0)
        return NULL;
    /* NumPy has no negative of truth values, which the servers refuse to add. */
    negative = array.keep;
    if (self->dtype != MU_BOOL) {
        negative = PyNumber_Negative(array.keep);
        Py_DECREF(array.keep);
    }
    if (negative != NULL)
        result = write_value(self, MU_VARIABLE_ADD, negative, timeout, NULL, NULL);
    Py_XDECREF(negative);
    return result;
}

PyObject *mupy_variable_apply_gradient(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"gradient", "rate", "momentum", "timeout", NULL};
    struct mupy_variable *self = mupy_variable_of(object);
    mu_optimizer optimizer;
    double momentum = 0;
    PyObject *gradient;
    PyObject *how;
    PyObject *timeout = NULL;

    if (self == NULL ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "OO|dO:apply_gradient", names,
                                     &gradient, &how, &momentum, &timeout) ||
        mupy_optimizer(how, momentum, &optimizer) != 0)
        return NULL;
    return write_value(self, MU_VARIABLE_APPLY, gradient, timeout, &optimizer, NULL);
}
