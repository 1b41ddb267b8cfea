/* The options of a node as keyword arguments. */
#include "extension.h"

#include "muster/node_options.h"

#include <stdio.h>
#include <string.h>

enum kind { TEXT, UNSIGNED, UNSIGNED64, INTEGER, FLAG };

/* Fields of mu_node_options: those of its table, and those that are of one node. */
static const struct {
    const char *field;
    enum kind kind;
    size_t offset;
} options[] = {
#define FIELD(field, kind) {#field, kind, offsetof(mu_node_options, field)},
/* `backups` is a count, which is at most 1 for now. */
#define IS_FLAG(field, most) \
    ((most) == 1 &&          \
     offsetof(mu_node_options, field) != offsetof(mu_node_options, backups))
#define NUMBER_FIELD(name, field, value, least, most)                           \
    FIELD(field, IS_FLAG(field, most) ? FLAG                                    \
                 : sizeof(((mu_node_options *)NULL)->field) == sizeof(uint64_t) \
                     ? UNSIGNED64                                               \
                     : UNSIGNED)
#define COMPUTED_FIELD(name, field, value, words, least, most) \
    NUMBER_FIELD(name, field, value, least, most)
#define TEXT_FIELD(name, field, value) FIELD(field, TEXT)
    MU_NODE_OPTIONS(NUMBER_FIELD, COMPUTED_FIELD, TEXT_FIELD) FIELD(task_type, TEXT)
        FIELD(task_index, INTEGER) FIELD(bind_address, TEXT)
            FIELD(advertise_address, TEXT) FIELD(log_level, INTEGER)};

enum { OPTIONS = sizeof options / sizeof options[0], NAME_BYTES = 32 };

/* The keyword arguments; set once, by mupy_node_option_table. */
static char names[OPTIONS][NAME_BYTES];

/* Times are in seconds here, and their names lack the ending. */
static bool is_time_option(size_t i)
{
    size_t length = strlen(options[i].field);

    return length > 3 && strcmp(options[i].field + length - 3, "_ms") == 0;
}

static bool is_field(const char *name)
{
    for (size_t i = 0; i < OPTIONS; i++)
        if (strcmp(options[i].field, name) == 0)
            return true;
    return false;
}

/* "heartbeat_ms" is "heartbeat", and "journal_keep_ms" beside "journal_keep" is
 * "journal_keep_window". */
static void set_name(size_t i)
{
    size_t length = strlen(options[i].field) - (is_time_option(i) ? 3 : 0);

    (void)snprintf(names[i], NAME_BYTES, "%.*s", (int)length, options[i].field);
    if (is_time_option(i) && is_field(names[i]))
        (void)strncat(names[i], "_window", NAME_BYTES - 1 - length);
}

static int set_option_number(const char *name, bool is_time, enum kind kind,
                             PyObject *value, void *at)
{
    double scaled;
    double most = kind == UNSIGNED64 ? 9007199254740992.0
                  : kind == INTEGER  ? 2147483647.0
                                     : 4294967295.0;

    scaled = PyFloat_AsDouble(value) * (is_time ? 1000 : 1);
    if (PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            (void)PyErr_Format(PyExc_TypeError, "option %s is %R, expected a number",
                               name, value);
        return -1;
    }
    if (!(scaled >= (kind == INTEGER ? -1.0 : 0.0) && scaled <= most)) {
        PyErr_Format(PyExc_ValueError, "option %s is %R, which is out of range", name,
                     value);
        return -1;
    }
    if (kind == UNSIGNED64)
        *(uint64_t *)at = (uint64_t)scaled;
    else if (kind == INTEGER)
        *(int *)at = (int)scaled;
    else
        *(unsigned *)at = (unsigned)(scaled + 0.5);
    return 0;
}

static int set_node_option(mu_node_options *out, size_t i, PyObject *value)
{
    void *at = (char *)out + options[i].offset;
    const char *text;

    if (options[i].kind == TEXT) {
        text = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
        if (text == NULL) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_TypeError, "option %s is %R, expected a str", names[i],
                             value);
            return -1;
        }
        *(const char **)at = text;
        return 0;
    }
    if (options[i].kind == FLAG) {
        int truth = PyObject_IsTrue(value);

        *(unsigned *)at = truth > 0;
        return truth < 0 ? -1 : 0;
    }
    return set_option_number(names[i], is_time_option(i), options[i].kind, value, at);
}

int mupy_node_options(mu_node_options *out, PyObject *kwargs)
{
    PyObject *key;
    PyObject *value;
    Py_ssize_t at = 0;

    while (PyDict_Next(kwargs, &at, &key, &value)) {
        size_t i = 0;

        while (i < OPTIONS && PyUnicode_CompareWithASCIIString(key, names[i]) != 0)
            i++;
        if (i == OPTIONS && (PyUnicode_CompareWithASCIIString(key, "resolver") == 0 ||
                             PyUnicode_CompareWithASCIIString(key, "processes") == 0))
            continue; /* see mupy_setup_new */
        if (i == OPTIONS) {
            PyErr_Format(PyExc_TypeError, "Node() got an unexpected keyword argument %R",
                         key);
            return -1;
        }
        if (value != Py_None && set_node_option(out, i, value) != 0)
            return -1;
    }
    return 0;
}

static const char *type_of(size_t i)
{
    return options[i].kind == TEXT   ? "str"
           : options[i].kind == FLAG ? "bool"
           : is_time_option(i)       ? "float"
                                     : "int";
}

PyObject *mupy_node_option_table(void)
{
    PyObject *table = PyDict_New();

    for (size_t i = 0; table != NULL && i < OPTIONS; i++) {
        PyObject *row = Py_BuildValue("ss", type_of(i), options[i].field);

        set_name(i);
        if (row == NULL || PyDict_SetItemString(table, names[i], row) != 0)
            Py_CLEAR(table);
        Py_XDECREF(row);
    }
    return table;
}
