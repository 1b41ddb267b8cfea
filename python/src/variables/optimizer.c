/* Optimizers of Python as those of the library. */
#include "variables/variable.h"

#include <stddef.h>
#include <string.h>

static const struct number {
    const char *name;
    size_t offset;
} numbers[] = {
    {"rate", offsetof(mu_optimizer, rate)},
    {"weight_decay", offsetof(mu_optimizer, weight_decay)},
    {"momentum", offsetof(mu_optimizer, momentum)},
    {"beta1", offsetof(mu_optimizer, beta1)},
    {"beta2", offsetof(mu_optimizer, beta2)},
    {"rho", offsetof(mu_optimizer, rho)},
    {"epsilon", offsetof(mu_optimizer, epsilon)},
    {"initial", offsetof(mu_optimizer, initial)},
    {"l1", offsetof(mu_optimizer, l1)},
    {"l2", offsetof(mu_optimizer, l2)},
    {"shrinkage", offsetof(mu_optimizer, shrinkage)},
    {"power", offsetof(mu_optimizer, power)},
    {"beta", offsetof(mu_optimizer, beta)},
};

/* -1 with an exception. */
static int set_optimizer_number(mu_optimizer *optimizer, const char *name,
                                PyObject *value)
{
    double number = PyFloat_AsDouble(value);

    if (PyErr_Occurred())
        return -1;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strcmp(numbers[i].name, name) == 0) {
            memcpy((char *)optimizer + numbers[i].offset, &number, sizeof number);
            return 0;
        }
    PyErr_Format(PyExc_ValueError, "a rule has no number %s", name);
    return -1;
}

static int set_optimizer_member(mu_optimizer *optimizer, const char *name,
                                PyObject *value)
{
    if (strcmp(name, "kind") == 0)
        return 0;
    if (strcmp(name, "step") == 0) {
        optimizer->step = PyLong_AsUnsignedLongLong(value);
        return PyErr_Occurred() ? -1 : 0;
    }
    if (strcmp(name, "flags") == 0) {
        optimizer->flags = (unsigned)PyLong_AsUnsignedLong(value);
        return PyErr_Occurred() ? -1 : 0;
    }
    return set_optimizer_number(optimizer, name, value);
}

/* A dict of {"kind": "adam", "rate": 0.001, ...}. */
static int optimizer_of_rule(PyObject *rule, mu_optimizer *ret_optimizer)
{
    PyObject *kind = PyDict_GetItemString(rule, "kind");
    const char *name = kind == NULL ? "" : PyUnicode_AsUTF8AndSize(kind, NULL);
    Py_ssize_t at = 0;
    PyObject *key;
    PyObject *value;

    if (name == NULL)
        return -1;
    if (mu_optimizer_find(name) <= 0) {
        PyErr_Format(PyExc_ValueError, "there is no rule \"%s\"", name);
        return -1;
    }
    *ret_optimizer = mu_optimizer_make(mu_optimizer_find(name), 0);
    while (PyDict_Next(rule, &at, &key, &value)) {
        name = PyUnicode_AsUTF8AndSize(key, NULL);
        if (name == NULL || set_optimizer_member(ret_optimizer, name, value) != 0)
            return -1;
    }
    return 0;
}

int mupy_optimizer(PyObject *rate, double momentum, mu_optimizer *ret_optimizer)
{
    bool has_momentum = momentum > 0 || momentum < 0;
    PyObject *rule;
    double number;
    int rv;

    if (PyDict_Check(rate))
        return optimizer_of_rule(rate, ret_optimizer);
    if (PyObject_HasAttrString(rate, "rule")) {
        rule = PyObject_CallMethod(rate, "rule", NULL);
        rv = rule == NULL ? -1 : 0;
        if (rv == 0 && !PyDict_Check(rule)) {
            PyErr_SetString(PyExc_TypeError, "rule() returned no dict");
            rv = -1;
        }
        if (rv == 0)
            rv = optimizer_of_rule(rule, ret_optimizer);
        Py_XDECREF(rule);
        return rv;
    }
    number = PyFloat_AsDouble(rate);
    if (PyErr_Occurred())
        return -1;
    *ret_optimizer = mu_optimizer_make(
        has_momentum ? MU_OPTIMIZER_MOMENTUM : MU_OPTIMIZER_SGD, number);
    ret_optimizer->momentum = momentum;
    return 0;
}
