/* Errors of the library as Python exceptions, whose classes are in muster/errors.py, and
 * the reverse. */
#include "process/process.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static PyObject *from_fields; /* muster.errors._from_fields */

/* Takes `data`, which may be NULL: None. */
static PyObject *make_data_bytes(mu_value *data)
{
    const void *bytes = NULL;
    size_t size = 0;
    PyObject *object = Py_None;

    if (data != NULL && mu_value_get_bytes(data, &bytes, &size) == 0)
        object = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)size);
    else
        Py_INCREF(object);
    mu_value_free(data);
    return object;
}

/* own_names(text): a message with the programs' own names of functions: f, not
 * python.try:f. */
static PyObject *own_names(PyObject *module, PyObject *text)
{
    static const char *const internal[] = {
        "python.try:", "python.call:", ", made by function \"python.build\","};
    PyObject *nothing = PyUnicode_FromString("");

    (void)module;
    Py_INCREF(text);
    for (size_t i = 0; i < sizeof internal / sizeof internal[0]; i++) {
        PyObject *what = PyUnicode_FromString(internal[i]);
        PyObject *less = what == NULL || text == NULL || nothing == NULL
                             ? NULL
                             : PyUnicode_Replace(text, what, nothing, -1);

        Py_XDECREF(what);
        Py_XDECREF(text);
        text = less;
    }
    Py_XDECREF(nothing);
    return text;
}

static PyObject *make_error_words(const char *message)
{
    PyObject *text =
        PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "replace");
    PyObject *words = text == NULL ? NULL : own_names(NULL, text);

    Py_XDECREF(text);
    return words;
}

PyObject *mupy_exception_with(const mu_error *error, const char *function, mu_value *data)
{
    PyObject *make = mupy_import(&from_fields, "muster.errors", "_from_fields");

    if (make == NULL) {
        mu_value_free(data);
        return NULL;
    }
    if (function == NULL && strncmp(error->function, "python.", 7) == 0)
        function = strchr(error->function, ':');
    if (function != NULL && *function == ':')
        function++;
    return PyObject_CallFunction(
        make, "iNissKINNi", -error->code, make_error_words(error->message), error->kind,
        error->task, function != NULL ? function : error->function,
        (unsigned long long)error->closure, (unsigned)error->attempt,
        PyUnicode_DecodeUTF8(error->detail, (Py_ssize_t)strlen(error->detail), "replace"),
        make_data_bytes(data), error->ran);
}

PyObject *mupy_exception(const mu_error *error, const char *function)
{
    return mupy_exception_with(error, function, NULL);
}

void mupy_error_waited(mu_error *error, int64_t waited_ms)
{
    char words[sizeof error->message];
    char *at = NULL;
    size_t digits;

    if (waited_ms >= 0 && error->code == -MU_EDEADLINE && error->kind == MU_ERROR_LIMIT)
        at = strstr(error->message, " after ");
    if (at == NULL)
        return;
    at += strlen(" after ");
    digits = strspn(at, "0123456789");
    if (digits == 0 || strncmp(at + digits, " ms", 3) != 0)
        return;
    (void)snprintf(words, sizeof words, "%.*s%" PRId64 "%s", (int)(at - error->message),
                   error->message, waited_ms, at + digits);
    memcpy(error->message, words, sizeof words);
}

PyObject *mupy_raise_with(const mu_error *error, const char *function, mu_value *data)
{
    PyObject *exception = mupy_exception_with(error, function, data);

    if (exception == NULL)
        return NULL;
    PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_DECREF(exception);
    return NULL;
}

PyObject *mupy_raise(const mu_error *error, const char *function)
{
    return mupy_raise_with(error, function, NULL);
}

PyObject *mupy_fail(int code, const char *format, ...)
{
    mu_error error = {.code = code};
    va_list args;

    va_start(args, format);
    (void)vsnprintf(error.message, sizeof error.message, format, args);
    va_end(args);
    return mupy_raise(&error, NULL);
}

/* ---- exceptions as errors ---- */

/* Uses muster._worker.failure(exception). */
void mupy_run_exception(mu_error *ret_error, mu_value **ret_data)
{
    static PyObject *failure;
    PyObject *type;
    PyObject *exception;
    PyObject *traceback;
    PyObject *fields = NULL;
    mu_error error = {.code = -MU_EUNKNOWN};
    const char *message = "an exception that cannot be described";
    const char *detail = "";
    const char *task = "";
    const char *data = NULL;
    Py_ssize_t size = 0;

    PyErr_Fetch(&type, &exception, &traceback);
    PyErr_NormalizeException(&type, &exception, &traceback);
    if (traceback != NULL && exception != NULL)
        (void)PyException_SetTraceback(exception, traceback);
    if (exception != NULL && mupy_import(&failure, "muster._worker", "failure") != NULL)
        fields = PyObject_CallFunctionObjArgs(failure, exception, NULL);
    if (fields == NULL || !PyArg_ParseTuple(fields, "iiyyyy#", &error.code, &error.kind,
                                            &message, &detail, &task, &data, &size)) {
        PyErr_Clear();
        error.code = -MU_EUNKNOWN;
    }
    (void)strncpy(error.message, message, sizeof error.message - 1);
    (void)strncpy(error.detail, detail, sizeof error.detail - 1);
    (void)strncpy(error.task, task, sizeof error.task - 1);
    *ret_data = size == 0 ? NULL : mu_value_bytes(data, (size_t)size);
    Py_XDECREF(fields);
    Py_XDECREF(type);
    Py_XDECREF(exception);
    Py_XDECREF(traceback);
    *ret_error = error;
}

int mupy_run_fail(mu_run *run, const mu_error *error, const mu_value *data)
{
    const void *bytes;
    size_t size;

    if (data != NULL && mu_value_get_bytes(data, &bytes, &size) == 0)
        (void)mu_run_set_error_data(run, bytes, size); /* if not: the error without it */
    if (error->kind == MU_ERROR_SERVER)
        return mu_run_fail_with(run, error);
    mu_run_set_stack_trace(run, error->detail);
    return mu_run_fail(run, error->code, "%s", error->message);
}

/* Add the table of codes of muster/error.h to the module. */
static int add_codes(PyObject *module)
{
    static const struct {
        const char *name;
        int number;
        const char *words;
    } codes[] = {
#define ROW(name, number, words) {#name, number, words},
        MU_ERRORS(ROW)
#undef ROW
    };
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list != NULL && i < sizeof codes / sizeof codes[0]; i++) {
        PyObject *row =
            Py_BuildValue("sis", codes[i].name, codes[i].number, codes[i].words);

        if (row == NULL || PyList_Append(list, row) != 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    if (list == NULL)
        return -1;
    if (PyModule_AddObject(module, "ERROR_CODES", list) == 0)
        return 0;
    Py_DECREF(list);
    return -1;
}

int mupy_error_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"own_names", own_names, METH_O,
         "own_names(text)\n--\n\nA message with the programs' own names of functions."},
        {NULL, NULL, 0, NULL},
    };

    return PyModule_AddFunctions(module, methods) != 0 ? -1 : add_codes(module);
}
