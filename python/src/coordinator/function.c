/* Python functions, their arguments and results as values of the library.
 *
 * A closure of "python.call" has the arguments [function, form, ...], where the function
 * is a per-worker value made by "python.load". Form 0: the positional arguments follow as
 * plain values. Form 1: a pickle of (args, kwargs), its buffers, and its references
 * follow. A result is a plain value, or a map with these three as "python.pickle",
 * "buffers" and "references". The arguments of a function by name are plain values with
 * references, results and variables (mupy_variable_value) among them. */
#include "extension.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char pickle_key[] = "python.pickle";
static const char buffers_key[] = "buffers";

enum { SMALL_PICKLE_BYTES = 4096 };

PyTypeObject *mupy_function_type;

/* State of pickling on this thread. */
struct encoder {
    PyObject *references; /* list; a pickle refers to item n by the number n */
    PyObject *coordinator;
    bool by_value; /* remote values are fetched, and their contents are pickled */
};

/* State of unpickling on this thread. */
struct decoder {
    const mu_value *references;
    mu_run *run;
};

static _Thread_local struct encoder *encoder;
static _Thread_local struct decoder *decoder;
static PyObject *referenced_function;

/* ---- entries ---- */

static void function_dealloc(PyObject *object)
{
    struct mupy_function *self = (struct mupy_function *)object;
    PyTypeObject *type = Py_TYPE(object);

    mu_value_free(self->no_args);
    mu_value_free(self->reference);
    mu_per_worker_close(self->per_worker);
    Py_XDECREF(self->name);
    PyObject_Free(self);
    Py_DECREF(type);
}

void mupy_function_name(const char *registered, const char *name, char *out, size_t size)
{
    size_t room = size - strlen(registered) - 2;
    size_t length = strlen(name);

    if (length > room)
        name += length - room;
    while (length > room && ((unsigned char)*name & 0xc0) == 0x80)
        name++; /* skip a partial UTF-8 character */
    (void)snprintf(out, size, "%s:%s", registered, name);
}

bool mupy_function_is_lost(PyObject *function, const mu_coordinator *coordinator)
{
    return mu_per_worker_check(coordinator,
                               ((struct mupy_function *)function)->per_worker, NULL) != 0;
}

/* is_lost(coordinator) */
static PyObject *function_is_lost(PyObject *object, PyObject *coordinator)
{
    mu_coordinator *handle = mupy_coordinator_begin(coordinator);
    bool truth = handle != NULL && mupy_function_is_lost(object, handle);

    if (handle == NULL)
        return NULL;
    mupy_coordinator_end(coordinator);
    return PyBool_FromLong(truth);
}

static PyObject *function_size(PyObject *object, void *closure)
{
    (void)closure;
    return PyLong_FromSize_t(((struct mupy_function *)object)->size);
}

static void run_function_open(struct mupy_call *call)
{
    mu_per_worker *made = NULL;

    call->rv = mu_per_worker_open_shared(call->object, call->text, call->data,
                                         call->timeout_ms, &call->error, &made);
    call->made = made;
    mu_value_free((mu_value *)(uintptr_t)call->data);
}

static void drop_opened_function(struct mupy_call *call)
{
    mu_per_worker_close(call->made);
}

/* Takes ownership of `args`. NULL with an exception. */
static mu_per_worker *open_function_per_worker(PyObject *coordinator, mu_value *args,
                                               const char *name)
{
    struct mupy_call *call = mupy_coordinator_call(coordinator, run_function_open);
    mu_per_worker *made;

    if (call == NULL) {
        mu_value_free(args);
        return NULL;
    }
    call->drop = drop_opened_function;
    call->data = args;
    mupy_function_name("python.load", name, call->text, 64);
    call->timeout_ms = 60000;
    if (mupy_call_run(call) != 0)
        return NULL;
    made = call->made;
    if (call->rv != 0)
        (void)mupy_raise(&call->error, NULL);
    mupy_call_free(call);
    return made;
}

static int make_values(struct mupy_function *self)
{
    self->reference = mu_value_per_worker(self->per_worker);
    self->no_args = mu_value_list();
    if (self->reference != NULL && self->no_args != NULL &&
        mu_value_append(self->no_args, mu_value_ref(self->reference)) == 0 &&
        mu_value_append(self->no_args, mu_value_int(0)) == 0)
        return 0;
    PyErr_NoMemory();
    return -1;
}

/* open_function(coordinator, pickle, name) -> Function */
static PyObject *open_function(PyObject *module, PyObject *args)
{
    PyObject *coordinator;
    const char *pickle;
    Py_ssize_t size;
    PyObject *name;
    const char *words;
    mu_value *list;
    struct mupy_function *self;

    (void)module;
    if (!PyArg_ParseTuple(args, "Oy#U", &coordinator, &pickle, &size, &name))
        return NULL;
    words = PyUnicode_AsUTF8AndSize(name, NULL);
    if (words == NULL)
        return NULL;
    self = PyObject_New(struct mupy_function, mupy_function_type);
    if (self == NULL)
        return NULL;
    self->reference = NULL;
    self->no_args = NULL;
    self->per_worker = NULL;
    self->name = name;
    self->size = (size_t)size;
    Py_INCREF(name);
    list = mu_value_list();
    if (list == NULL ||
        mu_value_append(list, mu_value_bytes(pickle, (size_t)size)) != 0 ||
        mu_value_append(list, mu_value_string(words)) != 0) {
        mu_value_free(list);
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    mupy_function_name("python.call", words, self->call_name, sizeof self->call_name);
    mupy_function_name("python.try", words, self->try_name, sizeof self->try_name);
    self->per_worker = open_function_per_worker(coordinator, list, words);
    if (self->per_worker == NULL || make_values(self) != 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

/* ---- pickling ---- */

/* A pickle has what a remote value holds. */
static PyObject *reduce_by_value(PyObject *object)
{
    static PyObject *same;
    PyObject *content = NULL;
    PyObject *reduced = NULL;

    if (!PyObject_TypeCheck(object, mupy_remote_value_type))
        return PyErr_Format(PyExc_TypeError,
                            "%R cannot be an argument of an actor's call", object);
    if (mupy_import(&same, "muster.actors.hosting", "same") != NULL)
        content = PyObject_CallMethod(object, "fetch", NULL);
    if (content != NULL)
        reduced = Py_BuildValue("O(O)", same, content);
    Py_XDECREF(content);
    return reduced;
}

PyObject *mupy_reduce(PyObject *object)
{
    Py_ssize_t number;

    if (encoder == NULL)
        return PyErr_Format(PyExc_TypeError,
                            "%R can be pickled among the arguments of a closure only",
                            object);
    if (encoder->by_value)
        return reduce_by_value(object);
    number = PyList_Size(encoder->references);
    for (Py_ssize_t i = number > 16 ? number - 16 : 0; i < number; i++)
        if (PyList_GetItem(encoder->references, i) == object)
            return Py_BuildValue("O(n)", referenced_function, i);
    if (PyList_Append(encoder->references, object) != 0)
        return NULL;
    return Py_BuildValue("O(n)", referenced_function, number);
}

static mu_value *buffers_of(PyObject *buffers)
{
    Py_ssize_t count = PyList_Size(buffers);
    mu_value *list = mu_value_list();

    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        mu_value *tensor = mupy_buffer_to_value(PyList_GetItem(buffers, i));

        if (tensor == NULL || mu_value_append(list, tensor) != 0) {
            mu_value_free(list);
            list = NULL;
        }
    }
    if (list == NULL && !PyErr_Occurred())
        PyErr_NoMemory();
    return list;
}

struct pickled {
    mu_value *pickle;
    mu_value *buffers;
    mu_value *references;
};

static void free_pickled(struct pickled *pickled)
{
    mu_value_free(pickled->pickle);
    mu_value_free(pickled->buffers);
    mu_value_free(pickled->references);
}

static int read_pickled(PyObject *pair, struct encoder *from, struct pickled *ret)
{
    PyObject *bytes = PyTuple_GetItem(pair, 0);
    PyObject *buffers = PyTuple_GetItem(pair, 1);

    ret->pickle = mu_value_bytes(PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes));
    ret->buffers = buffers_of(buffers);
    ret->references = mupy_to_value(from->references, MUPY_REFERENCES);
    if (ret->pickle != NULL && ret->buffers != NULL && ret->references != NULL)
        return 0;
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    free_pickled(ret);
    return -1;
}

static int pickle_any(PyObject *object, PyObject *coordinator, bool by_value,
                      struct pickled *ret)
{
    static PyObject *dumps;
    struct encoder *outer = encoder;
    struct encoder own = {PyList_New(0), coordinator, by_value};
    PyObject *pair = NULL;
    int rv = -1;

    if (own.references != NULL &&
        mupy_import(&dumps, "muster._pickling", "dumps") != NULL) {
        encoder = &own;
        pair = PyObject_CallFunctionObjArgs(
            dumps, object, coordinator == NULL && !by_value ? Py_False : Py_True, NULL);
        encoder = outer;
    }
    if (pair != NULL)
        rv = read_pickled(pair, &own, ret);
    Py_XDECREF(pair);
    Py_XDECREF(own.references);
    return rv;
}

static int encode_pickle(mu_value *list, PyObject *object, PyObject *coordinator,
                         bool by_value)
{
    struct pickled pickled;

    if (pickle_any(object, coordinator, by_value, &pickled) != 0)
        return -1;
    if (mu_value_append(list, mu_value_int(1)) == 0 &&
        mu_value_append(list, mu_value_ref(pickled.pickle)) == 0 &&
        mu_value_append(list, mu_value_ref(pickled.buffers)) == 0 &&
        mu_value_append(list, mu_value_ref(pickled.references)) == 0) {
        free_pickled(&pickled);
        return 0;
    }
    free_pickled(&pickled);
    PyErr_NoMemory();
    return -1;
}

int mupy_encode_any(mu_value *list, PyObject *object, PyObject *coordinator)
{
    return encode_pickle(list, object, coordinator, false);
}

int mupy_encode_for_actor(mu_value *list, PyObject *object)
{
    return encode_pickle(list, object, NULL, true);
}

/* ---- calls ---- */

/* Encode the arguments in form 0. NULL without an exception: they need a pickle. */
static mu_value *encode_plain(struct mupy_function *function, PyObject *args)
{
    Py_ssize_t count = PyTuple_Size(args);
    mu_value *list = mu_value_list();
    int rv = list == NULL ? -1 : 0;

    if (rv == 0)
        rv = mu_value_append(list, mu_value_ref(function->reference));
    if (rv == 0)
        rv = mu_value_append(list, mu_value_int(0));
    for (Py_ssize_t i = 0; rv == 0 && i < count; i++) {
        mu_value *value = mupy_to_exact(PyTuple_GetItem(args, i));

        if (value == NULL) {
            mu_value_free(list);
            return NULL;
        }
        rv = mu_value_append(list, value);
    }
    if (rv == 0)
        return list;
    mu_value_free(list);
    PyErr_NoMemory();
    return NULL;
}

static mu_value *encode_pickled(struct mupy_function *function, PyObject *args,
                                PyObject *kwargs, PyObject *coordinator)
{
    PyObject *both = PyTuple_Pack(2, args, kwargs == NULL ? Py_None : kwargs);
    mu_value *list = mu_value_list();
    int rv = -1;

    if (list == NULL || mu_value_append(list, mu_value_ref(function->reference)) != 0)
        PyErr_NoMemory();
    else if (both != NULL)
        rv = mupy_encode_any(list, both, coordinator);
    Py_XDECREF(both);
    if (rv == 0)
        return list;
    mu_value_free(list);
    return NULL;
}

mu_value *mupy_encode_call(struct mupy_function *function, PyObject *args,
                           PyObject *kwargs, PyObject *coordinator)
{
    mu_value *list;

    if (kwargs != NULL && PyDict_Size(kwargs) == 0)
        kwargs = NULL;
    if (kwargs == NULL && PyTuple_Size(args) == 0)
        return mu_value_ref(function->no_args);
    if (kwargs == NULL) {
        list = encode_plain(function, args);
        if (list != NULL || PyErr_Occurred())
            return list;
    }
    return encode_pickled(function, args, kwargs, coordinator);
}

size_t mupy_count_inputs(const mu_value *call)
{
    if (call == NULL || mu_value_count(call) != 5)
        return 0;
    return mu_value_count(mu_value_at(call, 4));
}

/* ---- results ---- */

mu_value *mupy_encode_result(PyObject *object)
{
    mu_value *value = mupy_take_tensor(object);
    struct pickled pickled;

    if (value == NULL)
        value = mupy_to_exact(object);
    if (value != NULL || PyErr_Occurred())
        return value;
    if (pickle_any(object, NULL, false, &pickled) != 0)
        return NULL;
    value = mu_value_map();
    if (value != NULL &&
        mu_value_set(value, pickle_key, mu_value_ref(pickled.pickle)) == 0 &&
        mu_value_set(value, buffers_key, mu_value_ref(pickled.buffers)) == 0) {
        free_pickled(&pickled);
        return value;
    }
    free_pickled(&pickled);
    mu_value_free(value);
    PyErr_NoMemory();
    return NULL;
}

/* A small pickle is copied, a large one is read in place. */
static PyObject *make_pickle_view(const mu_value *pickle)
{
    const void *data = "";
    size_t size = 0;

    if (pickle == NULL || mu_value_get_bytes(pickle, &data, &size) != 0)
        return mupy_fail(-MU_EINVALID, "a pickle was expected, got something else");
    if (size <= SMALL_PICKLE_BYTES)
        return PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
    return PyMemoryView_FromMemory((char *)(uintptr_t)data, (Py_ssize_t)size, PyBUF_READ);
}

/* muster._pickling.loads for what a run is given, loads_result for what other tasks have
 * made: the program may restrict that. */
static PyObject *get_pickle_loader(mu_run *run)
{
    static PyObject *loads;
    static PyObject *loads_result;

    return run != NULL ? mupy_import(&loads, "muster._pickling", "loads")
                       : mupy_import(&loads_result, "muster._pickling", "loads_result");
}

static PyObject *unpickle_value(const mu_value *pickle, const mu_value *buffers,
                                const mu_value *references, bool writable, mu_run *run)
{
    PyObject *loads = get_pickle_loader(run);
    struct decoder *outer = decoder;
    struct decoder own = {references, run};
    PyObject *view = make_pickle_view(pickle);
    PyObject *list = view == NULL ? NULL : mupy_from_value(buffers, writable);
    PyObject *object = NULL;

    if (list != NULL && loads != NULL) {
        decoder = &own;
        object = PyObject_CallFunctionObjArgs(loads, view, list, NULL);
        decoder = outer;
    }
    Py_XDECREF(view);
    Py_XDECREF(list);
    return object;
}

/* referenced(number): the object for a reference in a pickle. */
static PyObject *find_referenced(PyObject *module, PyObject *number)
{
    size_t i = PyLong_AsSize_t(number);
    const mu_value *value;

    (void)module;
    if (i == (size_t)-1 && PyErr_Occurred())
        return NULL;
    value = decoder == NULL ? NULL : mu_value_at(decoder->references, i);
    if (value == NULL)
        return mupy_fail(-MU_EPRECONDITION, "a remote value was pickled outside of the "
                                            "arguments of a closure");
    return mupy_decode_result(value, false, decoder->run);
}

PyObject *mupy_decode_result(const mu_value *value, bool writable, mu_run *run)
{
    const char *key;

    if (value != NULL && run != NULL && mu_value_type(value) == MU_VALUE_REFERENCE) {
        PyObject *object = mupy_held_object(run, value);

        Py_XINCREF(object);
        if (object != NULL)
            return object;
        return mupy_fail(-MU_EINVALID, "a per-worker value was made by a function in C: "
                                       "Python functions cannot read it");
    }
    if (value == NULL || mu_value_type(value) != MU_VALUE_MAP)
        return mupy_from_value(value, writable);
    key = mu_value_key(value, 0);
    if (key == NULL || strcmp(key, pickle_key) != 0)
        return mupy_from_value(value, writable);
    return unpickle_value(mu_value_at(value, 0), mu_value_find(value, buffers_key), NULL,
                          writable, run);
}

static PyObject *named_part(const mu_value *value, void *run)
{
    return mupy_decode_named(value, run);
}

PyObject *mupy_decode_named(const mu_value *value, mu_run *run)
{
    enum mu_value_type type = value == NULL ? MU_VALUE_NIL : mu_value_type(value);
    const char *key = type == MU_VALUE_MAP ? mu_value_key(value, 0) : NULL;

    if (key != NULL && strcmp(key, mupy_variable_key) == 0)
        return mupy_variable_from(value);
    if (type == MU_VALUE_LIST ||
        (type == MU_VALUE_MAP && (key == NULL || strcmp(key, pickle_key) != 0)))
        return mupy_from_parts(value, named_part, run);
    return mupy_decode_result(value, true, run);
}

/* ---- arguments ---- */

static PyObject *plain_args(const mu_value *args, size_t first, mu_run *run)
{
    size_t count = mu_value_count(args);
    PyObject *tuple = PyTuple_New((Py_ssize_t)(count - first));

    for (size_t i = first; tuple != NULL && i < count; i++) {
        PyObject *item = mupy_decode_result(mu_value_at(args, i), true, run);

        if (item == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)(i - first), item) != 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static int split_pair(PyObject *pair, PyObject **ret_args, PyObject **ret_kwargs)
{
    PyObject *kwargs;

    if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2 ||
        !PyTuple_Check(PyTuple_GetItem(pair, 0))) {
        (void)mupy_fail(-MU_EINVALID, "the arguments of a Python function were expected");
        return -1;
    }
    *ret_args = PyTuple_GetItem(pair, 0);
    Py_INCREF(*ret_args);
    kwargs = PyTuple_GetItem(pair, 1);
    *ret_kwargs = kwargs == Py_None ? NULL : kwargs;
    Py_XINCREF(*ret_kwargs);
    return 0;
}

int mupy_decode_call(const mu_value *args, size_t first, mu_run *run, PyObject **ret_args,
                     PyObject **ret_kwargs)
{
    int64_t form = -1;
    PyObject *pair;
    int rv;

    *ret_args = NULL;
    *ret_kwargs = NULL;
    (void)mu_value_get_int(mu_value_at(args, first), &form);
    if (form == 0) {
        *ret_args = plain_args(args, first + 1, run);
        return *ret_args == NULL ? -1 : 0;
    }
    if (form != 1 || mu_value_count(args) != first + 4) {
        (void)mupy_fail(-MU_EINVALID, "arguments of a form that this version of muster "
                                      "does not know");
        return -1;
    }
    pair = unpickle_value(mu_value_at(args, first + 1), mu_value_at(args, first + 2),
                          mu_value_at(args, first + 3), true, run);
    if (pair == NULL)
        return -1;
    rv = split_pair(pair, ret_args, ret_kwargs);
    Py_DECREF(pair);
    return rv;
}

int mupy_function_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"open_function", open_function, METH_VARARGS,
         "open_function(coordinator, pickle, name)\n--\n\nSend a function to workers."},
        {"referenced", find_referenced, METH_O,
         "The object for a reference in a pickle."},
        {NULL, NULL, 0, NULL},
    };
    static PyGetSetDef getset[] = {
        {"size", function_size, NULL, "Bytes of its pickle.", NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyMethodDef of_function[] = {
        {"is_lost", function_is_lost, METH_O,
         "is_lost(coordinator)\n--\n\nWhether it was sent to a chief that is lost."},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, function_dealloc},
        {Py_tp_methods, of_function},
        {Py_tp_getset, getset},
        {Py_tp_doc, "A Python function that was sent to workers."},
        {0, NULL},
    };
    static PyType_Spec spec = {"muster._muster.Function", sizeof(struct mupy_function), 0,
                               Py_TPFLAGS_DEFAULT, slots};

    mupy_function_type = mupy_add_type(module, &spec);
    if (mupy_function_type == NULL || PyModule_AddFunctions(module, methods) != 0)
        return -1;
    referenced_function = PyObject_GetAttrString(module, "referenced");
    return referenced_function == NULL ? -1 : 0;
}
