/* What the files of a node share. */
#ifndef MUSTER_PYTHON_NODE_H
#define MUSTER_PYTHON_NODE_H

#include "extension.h"

/* node.c: methods of its life */
PyObject *mupy_node_close(PyObject *object, PyObject *args, PyObject *kwargs);
PyObject *mupy_node_enter(PyObject *self, PyObject *unused);
PyObject *mupy_node_leave(PyObject *self, PyObject *args);

/* methods.c: all of them */
extern PyMethodDef mupy_node_methods[];

#endif
