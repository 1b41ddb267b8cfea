/* Cluster specs: task type -> addresses. */
#include "services/services.h"

#include "muster/compat/cluster_rules.h"

#include <stdlib.h>
#include <string.h>

PyTypeObject *mupy_cluster_type;

static mu_cluster *as_cluster(PyObject *object)
{
    return ((struct mupy_cluster *)object)->cluster;
}

PyObject *mupy_cluster_wrap(mu_cluster *cluster)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(mupy_cluster_type, Py_tp_alloc);
    struct mupy_cluster *self = (struct mupy_cluster *)alloc(mupy_cluster_type, 0);

    if (self == NULL)
        mu_cluster_free(cluster);
    else
        self->cluster = cluster;
    return (PyObject *)self;
}

static mu_cluster *parse_cluster_text(PyObject *text, const char *source)
{
    Py_ssize_t size = 0;
    const char *json = PyUnicode_AsUTF8AndSize(text, &size);
    mu_cluster *cluster = NULL;
    mu_error error;

    if (json != NULL &&
        mu_cluster_parse(json, (size_t)size, source, &error, &cluster) != 0)
        (void)mupy_raise(&error, NULL);
    return cluster;
}

int mupy_cluster_of(PyObject *object, mu_cluster **ret_cluster)
{
    static PyObject *to_cluster;
    PyObject *made;

    *ret_cluster = NULL;
    if (object == NULL || object == Py_None)
        return 0;
    if (mupy_import(&to_cluster, "muster.cluster_spec", "_to_cluster") == NULL)
        return -1;
    made = PyObject_CallFunctionObjArgs(to_cluster, object, NULL);
    if (made == NULL)
        return -1;
    if (PyObject_TypeCheck(made, mupy_cluster_type))
        *ret_cluster = mu_cluster_copy(as_cluster(made));
    Py_DECREF(made);
    if (*ret_cluster == NULL)
        PyErr_NoMemory();
    return *ret_cluster == NULL ? -1 : 0;
}

/* ---- construction ---- */

static PyObject *cluster_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"text", "source", NULL};
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    const char *source = "cluster";
    mu_cluster *cluster;
    PyObject *text;
    struct mupy_cluster *self;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|s:Cluster", names, &text, &source))
        return NULL;
    cluster = parse_cluster_text(text, source);
    if (cluster == NULL)
        return NULL;
    self = (struct mupy_cluster *)alloc(type, 0);
    if (self == NULL)
        mu_cluster_free(cluster);
    else
        self->cluster = cluster;
    return (PyObject *)self;
}

static void cluster_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    mu_cluster_free(as_cluster(object));
    release(object);
    Py_DECREF(type);
}

/* ---- content ---- */

static PyObject *cluster_to_json(PyObject *object, PyObject *unused)
{
    char *text = mu_cluster_to_json(as_cluster(object));
    PyObject *result;

    (void)unused;
    if (text == NULL)
        return PyErr_NoMemory();
    result = PyUnicode_FromString(text);
    free(text);
    return result;
}

static PyObject *cluster_tasks(PyObject *object, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    const char *type;
    const char *address;
    int index;

    (void)unused;
    for (size_t i = 0; list != NULL && mu_cluster_task_at(as_cluster(object), i, &type,
                                                          &index, &address) == 0;
         i++) {
        PyObject *task = Py_BuildValue("sis", type, index, address);

        if (task == NULL || PyList_Append(list, task) != 0)
            Py_CLEAR(list);
        Py_XDECREF(task);
    }
    return list;
}

static PyObject *cluster_equal(PyObject *object, PyObject *other)
{
    if (!PyObject_TypeCheck(other, mupy_cluster_type))
        Py_RETURN_FALSE;
    return PyBool_FromLong(mu_cluster_equal(as_cluster(object), as_cluster(other)));
}

static PyObject *cluster_split(PyObject *object, PyObject *args)
{
    const char *type = NULL;
    mu_cluster *part;

    if (!PyArg_ParseTuple(args, "z:split", &type))
        return NULL;
    part = mu_cluster_split(as_cluster(object), type);
    return part == NULL ? PyErr_NoMemory() : mupy_cluster_wrap(part);
}

/* ---- rules ---- */

static PyObject *cluster_validate(PyObject *object, PyObject *args)
{
    const char *type = NULL;
    mu_error error;
    int index = -1;

    if (!PyArg_ParseTuple(args, "|zi:validate", &type, &index))
        return NULL;
    if (mu_cluster_validate(as_cluster(object), type, index, &error) != 0)
        return mupy_raise(&error, NULL);
    Py_RETURN_NONE;
}

static PyObject *cluster_is_chief(PyObject *object, PyObject *args)
{
    const char *type;
    mu_error error;
    int chief = 0;
    int index;

    if (!PyArg_ParseTuple(args, "si:is_chief", &type, &index))
        return NULL;
    if (mu_cluster_check_chief(as_cluster(object), type, index, &error, &chief) != 0)
        return mupy_raise(&error, NULL);
    return PyBool_FromLong(chief);
}

static PyObject *make_leader_text(int rv, const mu_error *error, const char *task)
{
    return rv != 0 ? mupy_raise(error, NULL) : PyUnicode_FromString(task);
}

static PyObject *collective_leader(PyObject *object, PyObject *args)
{
    char task[MU_CLUSTER_TASK_BYTES];
    const char *type = NULL;
    mu_error error;

    if (!PyArg_ParseTuple(args, "|z:collective_leader", &type))
        return NULL;
    return make_leader_text(mu_cluster_collective_leader(as_cluster(object), type, &error,
                                                         task),
                            &error, task);
}

static PyObject *coordination_leader(PyObject *object, PyObject *unused)
{
    char task[MU_CLUSTER_TASK_BYTES];
    mu_error error;

    (void)unused;
    return make_leader_text(
        mu_cluster_coordination_leader(as_cluster(object), &error, task), &error, task);
}

static PyObject *service_host(PyObject *object, PyObject *unused)
{
    char task[MU_CLUSTER_TASK_BYTES];
    mu_error error;

    (void)unused;
    return make_leader_text(mu_cluster_service_host(as_cluster(object), &error, task),
                            &error, task);
}

static PyObject *worker_count(PyObject *object, PyObject *args)
{
    const char *type;
    mu_error error;
    size_t count;

    if (!PyArg_ParseTuple(args, "s:worker_count", &type))
        return NULL;
    if (mu_cluster_worker_count(as_cluster(object), type, &error, &count) != 0)
        return mupy_raise(&error, NULL);
    return PyLong_FromSize_t(count);
}

static PyObject *id_in_cluster(PyObject *object, PyObject *args)
{
    const char *type;
    mu_error error;
    int index;
    int id;

    if (!PyArg_ParseTuple(args, "si:id_in_cluster", &type, &index))
        return NULL;
    if (mu_cluster_id_in_cluster(as_cluster(object), type, index, &error, &id) != 0)
        return mupy_raise(&error, NULL);
    return PyLong_FromLong(id);
}

/* ---- TF_CONFIG ---- */

/* parse_tf_config(text): (Cluster or None, type or None, index or None, rpc layer,
 * environment, master) */
static PyObject *cluster_parse_tf_config(PyObject *module, PyObject *args)
{
    mu_tf_config config;
    const char *text;
    mu_error error;
    Py_ssize_t size;
    PyObject *cluster = Py_None;

    (void)module;
    if (!PyArg_ParseTuple(args, "s#:parse_tf_config", &text, &size))
        return NULL;
    if (mu_tf_config_parse(text, (size_t)size, &error, &config) != 0)
        return mupy_raise(&error, NULL);
    if (config.cluster == NULL)
        Py_INCREF(cluster);
    else
        cluster = mupy_cluster_wrap(config.cluster);
    if (cluster == NULL)
        return NULL;
    return Py_BuildValue("NNNsss", cluster,
                         mupy_str(config.task_type[0] == '\0' ? NULL : config.task_type),
                         config.task_index < 0 ? mupy_str(NULL)
                                               : PyLong_FromLong(config.task_index),
                         config.rpc_layer, config.environment, config.session_master);
}

int mupy_cluster_init(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"parse_tf_config", cluster_parse_tf_config, METH_VARARGS,
         "parse_tf_config(text)\n--\n\nParse the text of TF_CONFIG."},
        {NULL, NULL, 0, NULL},
    };
    static PyMethodDef methods[] = {
        {"json", cluster_to_json, METH_NOARGS, "json()\n--\n\nThe spec as JSON."},
        {"tasks", cluster_tasks, METH_NOARGS,
         "tasks()\n--\n\n(type, index, address) of each task, sorted."},
        {"equal", cluster_equal, METH_O,
         "equal(other)\n--\n\nSame tasks at the same addresses."},
        {"split", cluster_split, METH_VARARGS,
         "split(type)\n--\n\nThe part of the cluster that a type trains with."},
        {"validate", cluster_validate, METH_VARARGS,
         "validate(type=None, index=-1)\n--\n\nCheck the cluster and a task."},
        {"is_chief", cluster_is_chief, METH_VARARGS,
         "is_chief(type, index)\n--\n\nWhether the task is a chief."},
        {"collective_leader", collective_leader, METH_VARARGS,
         "collective_leader(type=None)\n--\n\nThe chief, or worker 0."},
        {"coordination_leader", coordination_leader, METH_NOARGS,
         "coordination_leader()\n--\n\nps 0, else chief 0, else worker 0."},
        {"service_host", service_host, METH_NOARGS,
         "service_host()\n--\n\nThe host of the coordination service."},
        {"worker_count", worker_count, METH_VARARGS,
         "worker_count(type)\n--\n\nNumber of tasks that train together."},
        {"id_in_cluster", id_in_cluster, METH_VARARGS,
         "id_in_cluster(type, index)\n--\n\nThe number of a task among those."},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_new, cluster_new},
        {Py_tp_dealloc, cluster_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_doc, "Cluster(text, source=\"cluster\")\n--\n\n"
                    "A cluster spec, parsed from JSON."},
        {0, NULL},
    };
    static PyType_Spec spec = {"muster._muster.Cluster", sizeof(struct mupy_cluster), 0,
                               Py_TPFLAGS_DEFAULT, slots};

    mupy_cluster_type = mupy_add_type(module, &spec);
    return mupy_cluster_type == NULL ? -1 : PyModule_AddFunctions(module, functions);
}
