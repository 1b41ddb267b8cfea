/* What the files of services share: clusters, resolvers, servers, key-values. */
#ifndef MUSTER_PYTHON_SERVICES_H
#define MUSTER_PYTHON_SERVICES_H

#include "extension.h"

#include "muster/cluster.h"
#include "muster/coordination.h"
#include "muster/resolver.h"

/* A row each in module.c. */
int mupy_cluster_init(PyObject *module);
int mupy_resolver_init(PyObject *module);
int mupy_tpu_init(PyObject *module);
int mupy_key_values_init(PyObject *module);
int mupy_watch_init(PyObject *module);
int mupy_agent_init(PyObject *module);
int mupy_barrier_init(PyObject *module);
int mupy_server_init(PyObject *module);
int mupy_distribute_init(PyObject *module);

/* ---- service.c: what most calls are made of ---- */

/* A str, or None for NULL, as UTF-8 that the object owns. -1 with a TypeError, which
 * names the argument `what`. */
int mupy_text(PyObject *object, const char *what, const char **ret_text);

/* The same of one that must be there. NULL with an exception. */
const char *mupy_text_needed(PyObject *object, const char *what);

/* A str of a text of the library, None for NULL. */
PyObject *mupy_str(const char *text);

/* A call on a node, which is kept meanwhile: call->object is its mu_node. `timeout` is
 * in seconds. NULL with an exception. */
struct mupy_call *mupy_node_call(PyObject *node, PyObject *timeout,
                                 void (*run)(struct mupy_call *call));

/* What a call needs beside its own fields: the first member of a struct of it, which is
 * freed with the call. `clean` (may be NULL) frees what is in it. */
struct mupy_request {
    void (*clean)(struct mupy_request *request);
};

/* Zeroed, as call->other. NULL with an exception, and then the call is freed. */
void *mupy_request_new(struct mupy_call *call, size_t size,
                       void (*clean)(struct mupy_request *request));

/* Run it. 0; -1 with an exception: the call's own error, or that of a signal. Then it is
 * freed. */
int mupy_request_run(struct mupy_call *call);

/* The end of a call with a request. */
void mupy_request_end(struct mupy_call *call);

/* ---- nodes/setup.c ---- */

/* Options of a node, from the keyword arguments of Node(); texts belong to those. */
struct mupy_setup {
    mu_node_options options;
    mu_cluster *cluster;
    PyObject *resolver;     /* NULL, or what frees options.resolver */
    unsigned processes;     /* see mupy_process_count(); 0: none */
};

/* NULL with an exception. */
struct mupy_setup *mupy_setup_new(PyObject *cluster, PyObject *kwargs);
void mupy_setup_free(struct mupy_setup *setup);

/* Tell a node that was opened how many processes it has, before mupy_run_register(); -1
 * with an exception. */
int mupy_setup_apply(unsigned processes, mu_node *node);

/* What a Node that was wrapped stands for is closed. NULL is fine. */
void mupy_node_unwrap(PyObject *node);

/* ---- cluster.c ---- */

struct mupy_cluster {
    PyObject_HEAD
    mu_cluster *cluster;
};

extern PyTypeObject *mupy_cluster_type;

/* Takes `cluster`. */
PyObject *mupy_cluster_wrap(mu_cluster *cluster);

/* A copy of the cluster of a Cluster, None (NULL), or what ClusterSpec() takes. The
 * caller frees it. -1 with an exception. */
int mupy_cluster_of(PyObject *object, mu_cluster **ret_cluster);

/* ---- resolver.c ---- */

/* A resolver from a ClusterResolver, for one user: *ret_keep is a new reference to what
 * has to stay as long as it is used, and frees it. -1 with an exception. */
int mupy_resolver_of(PyObject *object, mu_resolver **ret_resolver, PyObject **ret_keep);

#endif
