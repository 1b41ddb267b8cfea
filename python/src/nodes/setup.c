/* Prepares opening a node: cluster, options, executor processes. */
#include "services/services.h"

#include <stdio.h>
#include <stdlib.h>

/* Parse JSON text, a dict, or an object with as_dict() (a ClusterSpec). */
static mu_cluster *cluster_of(PyObject *object)
{
    static PyObject *to_json;
    PyObject *text;
    mu_cluster *cluster = NULL;
    const char *json;
    Py_ssize_t size;
    mu_error error;

    if (mupy_import(&to_json, "muster._functions", "cluster_json") == NULL)
        return NULL;
    text = PyObject_CallFunctionObjArgs(to_json, object, NULL);
    json = text == NULL ? NULL : PyUnicode_AsUTF8AndSize(text, &size);
    if (json != NULL &&
        mu_cluster_parse(json, (size_t)size, "cluster", &error, &cluster) != 0)
        (void)mupy_raise(&error, NULL);
    Py_XDECREF(text);
    return cluster;
}

static int set_resolver(struct mupy_setup *setup, PyObject *kwargs)
{
    PyObject *resolver = PyDict_GetItemString(kwargs, "resolver");

    if (resolver == NULL || resolver == Py_None)
        return 0;
    return mupy_resolver_of(resolver, &setup->options.resolver, &setup->resolver);
}

/* processes=N, or MUSTER_PROCESSES: as many threads, each with a process. */
static int set_processes(struct mupy_setup *setup, PyObject *kwargs)
{
    PyObject *given = kwargs == NULL ? NULL : PyDict_GetItemString(kwargs, "processes");
    PyObject *threads = kwargs == NULL ? NULL : PyDict_GetItemString(kwargs, "threads");
    const char *text = getenv("MUSTER_PROCESSES");
    PyObject *number;
    long count;

    if (text == NULL || text[0] == '\0')
        text = "0";
    if (given == NULL || given == Py_None)
        number = PyLong_FromString(text, NULL, 10);
    else
        number = PyNumber_Long(given);
    count = number == NULL ? -1 : PyLong_AsLong(number);
    Py_XDECREF(number);
    if (PyErr_Occurred())
        return -1;
    if (count < 0 || count > 1024) {
        PyErr_Format(PyExc_ValueError, "processes is %ld, expected 0 to 1024", count);
        return -1;
    }
    if (count > 0 && given != NULL && threads != NULL && threads != Py_None) {
        PyErr_SetString(PyExc_ValueError, "threads and processes were given: a worker "
                                          "has one thread for each of its processes");
        return -1;
    }
    setup->processes = (unsigned)count;
    if (count > 0)
        setup->options.threads = (unsigned)count;
    return 0;
}

int mupy_setup_apply(unsigned processes, mu_node *node)
{
    char text[16];

    if (processes == 0)
        return 0;
    (void)snprintf(text, sizeof text, "%u", processes);
    if (mu_node_set_setting(node, "python.processes", text) == 0)
        return 0;
    PyErr_NoMemory();
    return -1;
}

struct mupy_setup *mupy_setup_new(PyObject *cluster, PyObject *kwargs)
{
    struct mupy_setup *setup = calloc(1, sizeof *setup);
    mu_error error;

    if (setup == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    mu_node_options_init(&setup->options);
    setup->options.log_level = MU_LOG_WARN;
    setup->options.log = mupy_notice_log;
    if (mu_node_options_from_environment(&setup->options, &error) != 0)
        (void)mupy_raise(&error, NULL);
    if (!PyErr_Occurred() && cluster != Py_None)
        setup->cluster = cluster_of(cluster);
    setup->options.cluster = setup->cluster;
    if (!PyErr_Occurred() && kwargs != NULL &&
        mupy_node_options(&setup->options, kwargs) == 0)
        (void)set_resolver(setup, kwargs);
    if (!PyErr_Occurred())
        (void)set_processes(setup, kwargs);
    if (!PyErr_Occurred() && mupy_notice_start() == 0)
        return setup;
    mupy_setup_free(setup);
    return NULL;
}

void mupy_setup_free(struct mupy_setup *setup)
{
    mu_cluster_free(setup->cluster);
    Py_XDECREF(setup->resolver);
    free(setup);
}
