/* Helpers of service calls: arguments, waiting calls. */
#include "services/services.h"

#include <stdlib.h>

int mupy_text(PyObject *object, const char *what, const char **ret_text)
{
    *ret_text = NULL;
    if (object == NULL || object == Py_None)
        return 0;
    *ret_text = mupy_text_needed(object, what);
    return *ret_text == NULL ? -1 : 0;
}

const char *mupy_text_needed(PyObject *object, const char *what)
{
    Py_ssize_t size = 0;
    const char *text;

    if (object == NULL || !PyUnicode_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s is %R, expected a str", what,
                     object == NULL ? Py_None : object);
        return NULL;
    }
    text = PyUnicode_AsUTF8AndSize(object, &size);
    for (Py_ssize_t i = 0; text != NULL && i < size; i++)
        if (text[i] == '\0') {
            PyErr_Format(PyExc_ValueError, "%s is %R: a zero byte is in it", what,
                         object);
            return NULL;
        }
    return text;
}

PyObject *mupy_str(const char *text)
{
    if (text == NULL)
        Py_RETURN_NONE;
    return PyUnicode_FromString(text);
}

struct mupy_call *mupy_node_call(PyObject *node, PyObject *timeout,
                                 void (*run)(struct mupy_call *call))
{
    mu_node *opened = mupy_node_of(node);
    struct mupy_call *call;
    int64_t timeout_ms;

    if (opened == NULL || mupy_timeout(timeout, &timeout_ms) != 0)
        return NULL;
    call = mupy_call_new(run);
    if (call == NULL)
        return NULL;
    call->object = opened;
    call->timeout_ms = timeout_ms;
    mupy_call_keep(call, node);
    return call;
}

static void drop_request(struct mupy_call *call)
{
    struct mupy_request *request = call->other;

    if (request->clean != NULL)
        request->clean(request);
    free(request);
    call->other = NULL;
}

void *mupy_request_new(struct mupy_call *call, size_t size,
                       void (*clean)(struct mupy_request *request))
{
    struct mupy_request *request = calloc(1, size);

    if (request == NULL) {
        PyErr_NoMemory();
        mupy_call_free(call);
        return NULL;
    }
    request->clean = clean;
    call->other = request;
    call->drop = drop_request;
    return request;
}

void mupy_request_end(struct mupy_call *call)
{
    drop_request(call);
    mupy_call_free(call);
}

int mupy_request_run(struct mupy_call *call)
{
    if (mupy_call_run(call) != 0)
        return -1;
    if (call->rv == 0)
        return 0;
    (void)mupy_raise(&call->error, NULL);
    mupy_request_end(call);
    return -1;
}
