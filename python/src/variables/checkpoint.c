/* Checkpoints of variables; muster/checkpoint.py has the class. */
#include "variables/variable.h"

#include "muster/checkpoint.h"

#include <stdlib.h>
#include <string.h>

struct saving {
    mu_checkpoint_options options;
    mu_variable **variables;
    size_t count;
    mu_table **tables;
    PyObject *owners; /* the list that has the tables' objects; borrowed */
    mu_value *values;
    uint64_t step;
};

/* With the GIL. */
static void free_saving(struct saving *saving)
{
    for (size_t i = 0; i < saving->options.tables_count; i++)
        mupy_table_end(PyList_GetItem(saving->owners, (Py_ssize_t)i));
    mu_value_free(saving->values);
    free(saving->variables);
    free(saving->tables);
    free(saving);
}

static void run_save(struct mupy_call *call)
{
    struct saving *saving = call->other;
    char *path = NULL;

    call->rv = mu_checkpoint_save(&saving->options, saving->step, saving->variables,
                                  saving->count, saving->values, &call->error, &path);
    call->made = path;
}

static void drop_path(struct mupy_call *call)
{
    free_saving(call->other);
    free(call->made);
}

static int list_variables(PyObject *list, struct saving *saving)
{
    size_t count = (size_t)PyList_Size(list);

    saving->variables = calloc(count + 1, sizeof *saving->variables);
    if (saving->variables == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        struct mupy_variable *variable =
            mupy_variable_of(PyList_GetItem(list, (Py_ssize_t)i));

        if (variable == NULL)
            return -1;
        saving->variables[i] = variable->variable;
    }
    saving->count = count;
    return 0;
}

/* Those that are in use until free_saving. */
static int list_tables(PyObject *list, struct saving *saving)
{
    size_t count = (size_t)PyList_Size(list);

    saving->tables = calloc(count + 1, sizeof *saving->tables);
    if (saving->tables == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    saving->owners = list;
    saving->options.tables = saving->tables;
    for (size_t i = 0; i < count; i++) {
        saving->tables[i] = mupy_table_begin(PyList_GetItem(list, (Py_ssize_t)i));
        if (saving->tables[i] == NULL)
            return -1;
        saving->options.tables_count++;
    }
    return 0;
}

static PyObject *finish_path_call(struct mupy_call *call)
{
    PyObject *path = NULL;

    if (mupy_call_run(call) != 0)
        return NULL;
    if (call->rv != 0)
        (void)mupy_raise(&call->error, NULL);
    else
        path = PyUnicode_DecodeFSDefault(call->made);
    free_saving(call->other);
    free(call->made);
    mupy_call_free(call);
    return path;
}

/* checkpoint_save(directory, name, keep, step, variables, tables, base, values,
 * timeout) -> path; base None: all */
static PyObject *checkpoint_save(PyObject *module, PyObject *args)
{
    struct saving *saving = calloc(1, sizeof *saving);
    unsigned long long step;
    PyObject *variables;
    PyObject *tables;
    PyObject *values;
    PyObject *timeout;
    struct mupy_call *call = NULL;

    (void)module;
    if (saving == NULL)
        return PyErr_NoMemory();
    mu_checkpoint_options_init(&saving->options);
    if (PyArg_ParseTuple(args, "ssIKO!O!zOO:checkpoint_save", &saving->options.directory,
                         &saving->options.name, &saving->options.max_to_keep, &step,
                         &PyList_Type, &variables, &PyList_Type, &tables,
                         &saving->options.base, &values, &timeout) &&
        mupy_timeout(timeout, &saving->options.timeout_ms) == 0 &&
        list_variables(variables, saving) == 0 && list_tables(tables, saving) == 0 &&
        (values == Py_None ||
         (saving->values = mupy_to_value(values, MUPY_PLAIN)) != NULL))
        call = mupy_call_new(run_save);
    if (call == NULL) {
        free_saving(saving);
        return NULL;
    }
    saving->step = step;
    call->drop = drop_path;
    call->other = saving;
    mupy_call_keep(call, args);
    return finish_path_call(call);
}

/* checkpoint_latest(directory, name) -> (path, step) */
static PyObject *checkpoint_latest(PyObject *module, PyObject *args)
{
    const char *directory;
    const char *name;
    char *path = NULL;
    uint64_t step = 0;
    PyObject *pair;
    mu_error error;
    int rv;

    (void)module;
    if (!PyArg_ParseTuple(args, "ss:checkpoint_latest", &directory, &name))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    rv = mu_checkpoint_latest(directory, name, &error, &path, &step);
    Py_END_ALLOW_THREADS
    if (rv != 0)
        return mupy_raise(&error, NULL);
    pair = Py_BuildValue("NK", PyUnicode_DecodeFSDefault(path), (unsigned long long)step);
    free(path);
    return pair;
}

/* checkpoint_read(path) -> dict */
static PyObject *checkpoint_read(PyObject *module, PyObject *args)
{
    const char *path;
    mu_value *value = NULL;
    PyObject *map;
    mu_error error;
    int rv;

    (void)module;
    if (!PyArg_ParseTuple(args, "s:checkpoint_read", &path))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    rv = mu_checkpoint_read(path, &error, &value);
    Py_END_ALLOW_THREADS
    if (rv != 0)
        return mupy_raise(&error, NULL);
    map = mupy_from_value(value, true);
    mu_value_free(value);
    return map;
}

static void run_restore(struct mupy_call *call)
{
    const char **names = call->other;

    call->rv = mu_checkpoint_restore(call->object, call->data,
                                     call->number == UINT64_MAX ? NULL : names,
                                     call->number == UINT64_MAX ? 0 : call->number,
                                     call->timeout_ms, &call->error);
    free(names);
}

const char **mupy_texts_of(PyObject *list)
{
    size_t count = (size_t)PyList_Size(list);
    const char **names = calloc(count + 1, sizeof *names);

    if (names == NULL)
        PyErr_NoMemory();
    for (size_t i = 0; names != NULL && i < count; i++) {
        names[i] = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, (Py_ssize_t)i), NULL);
        if (names[i] == NULL) {
            free(names);
            return NULL;
        }
    }
    return names;
}

/* checkpoint_restore(node, path, names, timeout); names None: all */
static PyObject *checkpoint_restore(PyObject *module, PyObject *args)
{
    PyObject *node;
    PyObject *names;
    PyObject *timeout;
    const char *path;
    const char **texts = NULL;
    struct mupy_call *call;
    int64_t timeout_ms;

    (void)module;
    if (!PyArg_ParseTuple(args, "OsOO:checkpoint_restore", &node, &path, &names,
                          &timeout) ||
        mupy_timeout(timeout, &timeout_ms) != 0 || mupy_node_of(node) == NULL)
        return NULL;
    if (names != Py_None && !PyList_Check(names))
        return PyErr_Format(PyExc_TypeError, "names is %R, expected a list", names);
    if (names != Py_None && (texts = mupy_texts_of(names)) == NULL)
        return NULL;
    call = mupy_call_new(run_restore);
    if (call == NULL) {
        free(texts);
        return NULL;
    }
    call->object = mupy_node_of(node);
    call->data = path;
    call->other = texts;
    call->number = names == Py_None ? UINT64_MAX : (uint64_t)PyList_Size(names);
    call->timeout_ms = timeout_ms;
    mupy_call_keep(call, args);
    return mupy_call_finish(call);
}

int mupy_checkpoint_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"checkpoint_save", checkpoint_save, METH_VARARGS,
         "checkpoint_save(directory, name, keep, step, variables, tables, base, "
         "values, timeout)"},
        {"checkpoint_latest", checkpoint_latest, METH_VARARGS,
         "checkpoint_latest(directory, name)"},
        {"checkpoint_read", checkpoint_read, METH_VARARGS, "checkpoint_read(path)"},
        {"checkpoint_restore", checkpoint_restore, METH_VARARGS,
         "checkpoint_restore(node, path, names, timeout)"},
        {NULL, NULL, 0, NULL},
    };

    return PyModule_AddFunctions(module, methods);
}
