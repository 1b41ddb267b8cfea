/* Errors of the library as Python exceptions: the classes are in muster/errors.py. */
#include "extension.h"

#include <stdarg.h>
#include <string.h>
#include <stdio.h>

static PyObject *from_fields;   /* muster.errors._from_fields */

PyObject *mupy_exception(const mu_error *error, const char *function)
{
    PyObject *make = mupy_import(&from_fields, "muster.errors", "_from_fields");

    if (make == NULL)
        return NULL;
    if (function == NULL && strncmp(error->function, "python.", 7) == 0)
        function = strchr(error->function, ':');
    if (function != NULL && *function == ':')
        function++;
    return PyObject_CallFunction(
        make, "iNissKIN", -error->code,
        PyUnicode_DecodeUTF8(error->message, (Py_ssize_t)strlen(error->message),
                             "replace"),
        error->kind, error->task, function != NULL ? function : error->function,
        (unsigned long long)error->closure, (unsigned)error->attempt,
        PyUnicode_DecodeUTF8(error->detail, (Py_ssize_t)strlen(error->detail),
                             "replace"));
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

PyObject *mupy_raise(const mu_error *error, const char *function)
{
    PyObject *exception = mupy_exception(error, function);

    if (exception == NULL)
        return NULL;
    PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_DECREF(exception);
    return NULL;
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
        PyObject *row = Py_BuildValue("sis", codes[i].name, codes[i].number,
                                      codes[i].words);

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
    return add_codes(module);
}
