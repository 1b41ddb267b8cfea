/* The options of a node as keyword arguments. */
#include "extension.h"

enum kind { TEXT, UNSIGNED, UNSIGNED64, INTEGER, FLAG };

/* Options with the names of mu_node_options. Times, whose names end in _ms there, are in
 * seconds here and lack that ending. */
static const struct {
    const char *name;
    enum kind kind;
    bool is_time;
    size_t offset;
} options[] = {
#define OPTION(name, kind) {#name, kind, false, offsetof(mu_node_options, name)}
#define SECONDS(name) {#name, UNSIGNED, true, offsetof(mu_node_options, name##_ms)}
    OPTION(cluster_name, TEXT),
    OPTION(task_type, TEXT),
    OPTION(task_index, INTEGER),
    OPTION(bind_address, TEXT),
    OPTION(advertise_address, TEXT),
    SECONDS(resolve),
    OPTION(threads, UNSIGNED),
    OPTION(window, UNSIGNED),
    OPTION(spin_us, UNSIGNED),
    OPTION(queue_max, UNSIGNED),
    OPTION(attempts_max, UNSIGNED),
    OPTION(queue_bytes_max, UNSIGNED64),
    OPTION(retries_max, UNSIGNED),
    SECONDS(recovery),
    SECONDS(start_delay),
    SECONDS(start_delay_max),
    OPTION(server_failures, UNSIGNED),
    {"server_failures_window", UNSIGNED, true,
     offsetof(mu_node_options, server_failures_ms)},
    SECONDS(server_lost),
    SECONDS(effect_wait),
    OPTION(timeouts, UNSIGNED),
    OPTION(unknown_is_worker, FLAG),
    OPTION(backup_percent, UNSIGNED),
    SECONDS(watchdog),
    OPTION(measure, FLAG),
    OPTION(journal, TEXT),
    OPTION(journal_sync, FLAG),
    OPTION(journal_keep, UNSIGNED),
    {"journal_keep_window", UNSIGNED, true, offsetof(mu_node_options, journal_keep_ms)},
    SECONDS(orphan),
    SECONDS(heartbeat),
    SECONDS(silence),
    OPTION(service_hosts, TEXT),
    OPTION(store, TEXT),
    OPTION(store_sync, FLAG),
    OPTION(run, TEXT),
    OPTION(coordinated_jobs, TEXT),
    OPTION(recoverable, TEXT),
    SECONDS(suspect),
    SECONDS(dead),
    SECONDS(reconnect),
    SECONDS(stuck),
    SECONDS(leave),
    SECONDS(lease),
    SECONDS(plugin_timeout),
    OPTION(worker_types, TEXT),
    OPTION(key_file, TEXT),
    OPTION(tls_ca, TEXT),
    OPTION(tls_certificate, TEXT),
    OPTION(tls_private_key, TEXT),
    OPTION(tls_any_task, FLAG),
    OPTION(insecure, FLAG),
    OPTION(wire, TEXT),
    OPTION(log_level, INTEGER),
#undef OPTION
#undef SECONDS
};

enum { OPTIONS = sizeof options / sizeof options[0] };

static int set_number(const char *name, bool is_time, enum kind kind, PyObject *value,
                      void *at)
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

static int set_option(mu_node_options *out, size_t i, PyObject *value)
{
    void *at = (char *)out + options[i].offset;
    const char *text;

    if (options[i].kind == TEXT) {
        text = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
        if (text == NULL) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_TypeError, "option %s is %R, expected a str",
                             options[i].name, value);
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
    return set_number(options[i].name, options[i].is_time, options[i].kind, value, at);
}

int mupy_node_options(mu_node_options *out, PyObject *kwargs)
{
    PyObject *key;
    PyObject *value;
    Py_ssize_t at = 0;

    while (PyDict_Next(kwargs, &at, &key, &value)) {
        size_t i = 0;

        while (i < OPTIONS && PyUnicode_CompareWithASCIIString(key, options[i].name) != 0)
            i++;
        if (i == OPTIONS &&
            (PyUnicode_CompareWithASCIIString(key, "resolver") == 0 ||
             PyUnicode_CompareWithASCIIString(key, "processes") == 0))
            continue;   /* see mupy_setup_new */
        if (i == OPTIONS) {
            PyErr_Format(PyExc_TypeError, "Node() got an unexpected keyword argument %R",
                         key);
            return -1;
        }
        if (value != Py_None && set_option(out, i, value) != 0)
            return -1;
    }
    return 0;
}

PyObject *mupy_node_option_names(void)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list != NULL && i < OPTIONS; i++) {
        PyObject *name = PyUnicode_FromString(options[i].name);

        if (name == NULL || PyList_Append(list, name) != 0)
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}
