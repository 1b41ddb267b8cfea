/* The module muster._muster. */
#include "services/services.h"

#include <string.h>

static int (*const objects[])(PyObject *module) = {
    mupy_error_init,      mupy_value_init,          mupy_wait_init,
    mupy_notice_init,     mupy_node_init,           mupy_remote_value_init,
    mupy_future_init,     mupy_sender_init,         mupy_per_worker_init,
    mupy_content_init,    mupy_function_init,       mupy_coordinator_init,
    mupy_schedule_init,   mupy_variable_init,       mupy_checkpoint_init,
    mupy_dataset_init,    mupy_library_thread_init, mupy_run_init,
    mupy_frame_init,      mupy_process_init,        mupy_process_child_init,
    mupy_main_init,       mupy_cluster_init,        mupy_resolver_init,
    mupy_tpu_init,        mupy_key_values_init,     mupy_watch_init,
    mupy_agent_init,      mupy_barrier_init,        mupy_server_init,
    mupy_distribute_init, mupy_clock_init,          mupy_read_variables_init,
    mupy_table_init,      mupy_table_reader_init,   mupy_actor_init,
    mupy_job_init,
};

PyTypeObject *mupy_add_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);
    const char *name = strrchr(spec->name, '.') + 1;

    if (type == NULL)
        return NULL;
    Py_INCREF(type);
    if (PyModule_AddObject(module, name, type) != 0) {
        Py_DECREF(type);
        Py_DECREF(type);
        return NULL;
    }
    return (PyTypeObject *)type;
}

PyObject *mupy_import(PyObject **cache, const char *module, const char *name)
{
    PyObject *found = mupy_kept(cache);
    PyObject *imported;

    if (found != NULL)
        return found;
    imported = PyImport_ImportModule(module);
    if (imported == NULL)
        return NULL;
    found = PyObject_GetAttrString(imported, name);
    Py_DECREF(imported);
    return mupy_keep_first(cache, found);
}

static int fill_module(PyObject *module)
{
    static bool filled;

    if (filled) {
        PyErr_SetString(PyExc_ImportError,
                        "muster can be imported in one interpreter of a process only");
        return -1;
    }
    for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++)
        if (objects[i](module) != 0)
            return -1;
    filled = true;
    return 0;
}

PyMODINIT_FUNC PyInit__muster(void);

PyMODINIT_FUNC PyInit__muster(void)
{
    static struct PyModuleDef_Slot slots[] = {
        {Py_mod_exec, (void *)fill_module},
#ifdef Py_GIL_DISABLED
        {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
        {0, NULL},
    };
    static struct PyModuleDef definition = {
        PyModuleDef_HEAD_INIT,
        .m_name = "muster._muster",
        .m_doc = "The C side of muster: see the package's own documentation.",
        .m_slots = slots,
    };

    return PyModuleDef_Init(&definition);
}
