/* Declarations shared by the files of services: clusters, resolvers, servers,
 * key-values. */
#ifndef MUSTER_PYTHON_SERVICES_H
#define MUSTER_PYTHON_SERVICES_H

#include "extension.h"

#include "muster/cluster.h"
#include "muster/coordination.h"
#include "muster/resolver.h"

/* Initialization of each part; called by module.c. */
int mupy_cluster_init(PyObject *module);
int mupy_resolver_init(PyObject *module);
int mupy_tpu_init(PyObject *module);
int mupy_key_values_init(PyObject *module);
int mupy_watch_init(PyObject *module);
int mupy_agent_init(PyObject *module);
int mupy_barrier_init(PyObject *module);
int mupy_server_init(PyObject *module);
int mupy_distribute_init(PyObject *module);
int mupy_clock_init(PyObject *module);

/* ---- service.c: helpers of most calls ---- */

/* Read a str as UTF-8 owned by the object, or None as NULL. -1 with a TypeError that
 * names the argument `what`. */
int mupy_text(PyObject *object, const char *what, const char **ret_text);

/* The same for a required str. NULL with an exception. */
const char *mupy_text_needed(PyObject *object, const char *what);

/* Make a str of a text of the library, or None for NULL. */
PyObject *mupy_str(const char *text);

/* A call on a node: call->object is its mu_node, which the call keeps alive. `timeout` is
 * in seconds. NULL with an exception. */
struct mupy_call *mupy_node_call(PyObject *node, PyObject *timeout,
                                 void (*run)(struct mupy_call *call));

/* First member of a struct with additional fields of a call, which is freed with the
 * call. `clean` (may be NULL) frees its content. */
struct mupy_request {
    void (*clean)(struct mupy_request *request);
};

/* Allocate such a struct, zeroed, as call->other. NULL with an exception: then the call
 * is freed. */
void *mupy_request_new(struct mupy_call *call, size_t size,
                       void (*clean)(struct mupy_request *request));

/* Run the call. Returns 0; -1 with an exception, of the call's error or a signal handler:
 * then the call is freed. */
int mupy_request_run(struct mupy_call *call);

/* Free a call with a request. */
void mupy_request_end(struct mupy_call *call);

/* ---- nodes/setup.c ---- */

/* Options of a node, from the keyword arguments of Node(), which own the texts. */
struct mupy_setup {
    mu_node_options options;
    mu_cluster *cluster;
    PyObject *resolver; /* owns options.resolver; NULL: none */
    unsigned processes; /* see mupy_process_count(); 0: none */
};

/* NULL with an exception. */
struct mupy_setup *mupy_setup_new(PyObject *cluster, PyObject *kwargs);
void mupy_setup_free(struct mupy_setup *setup);

/* Set the number of executor processes of an open node, before mupy_run_register(); -1
 * with an exception. */
int mupy_setup_apply(unsigned processes, mu_node *node);

/* Mark a wrapper Node as closed. NULL is fine. */
void mupy_node_unwrap(PyObject *node);

/* ---- cluster.c ---- */

struct mupy_cluster {
    PyObject_HEAD
    mu_cluster *cluster;
};

extern PyTypeObject *mupy_cluster_type;

/* A Cluster that takes ownership of `cluster`. */
PyObject *mupy_cluster_wrap(mu_cluster *cluster);

/* Copy the cluster of a Cluster, or of anything that ClusterSpec() takes; NULL for None.
 * The caller frees it. -1 with an exception. */
int mupy_cluster_of(PyObject *object, mu_cluster **ret_cluster);

/* ---- resolver.c ---- */

/* Make a resolver for a ClusterResolver: *ret_keep is a new reference that owns it, and
 * must be held as long as it is used. -1 with an exception. */
int mupy_resolver_of(PyObject *object, mu_resolver **ret_resolver, PyObject **ret_keep);

#endif
