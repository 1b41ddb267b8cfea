/* Declarations shared by the files of Node. */
#ifndef MUSTER_PYTHON_NODE_H
#define MUSTER_PYTHON_NODE_H

#include "extension.h"

/* node.c: open and close */
PyObject *mupy_node_close(PyObject *object, PyObject *args, PyObject *kwargs);
PyObject *mupy_node_enter(PyObject *self, PyObject *unused);
PyObject *mupy_node_leave(PyObject *self, PyObject *args);

/* methods.c: the table of methods */
extern PyMethodDef mupy_node_methods[];

#endif
