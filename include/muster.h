/* muster: runs functions on a cluster of tasks, and reports the outcome of each.
 *
 * Include this one header, link with -lmuster. Rules that hold for all of it:
 *
 * Options. A struct of options (mu_..._options, and mu_session_config) begins with its
 * size. Initialize it, which sets the size and the defaults, then set what differs:
 *
 *     mu_node_options options;
 *     mu_node_options_init(&options);
 *     options.task_type = "worker";
 *
 * Later versions add fields at the end only, so that a program and a library of the same
 * SOVERSION fit together, whichever is newer. Fields that the program's header does not
 * have are at their defaults. Fields that the library does not have must be at 0, as they
 * are after initializing: else the call returns -MU_EINVALID, as it does for options that
 * were not initialized. Options are read during the call only, with the options that they
 * point to; whether a text is copied is said where it is declared.
 *
 * Handles. Whoever gets a handle ends its use with the one function for its type:
 * mu_..._close, where nodes or other tasks take part (a node, a coordinator, a variable,
 * a session), and mu_..._free, where it is memory of this process (a value, a cluster, a
 * resolver, a remote value); a server is stopped first, or by mu_server_free. Both free
 * the handle, and both accept NULL. A lock is released; a node's handle can be held
 * beyond closing (mu_node_ref, mu_node_unref). A function `drop` is the program's: the
 * library calls it when it no longer needs what the program gave. `end` ends a job, no
 * handle.
 *
 * Errors, and NULL as an argument: muster/error.h. */
#ifndef MUSTER_H
#define MUSTER_H

#include "muster/actor.h"
#include "muster/admin.h"
#include "muster/checkpoint.h"
#include "muster/clock.h"
#include "muster/cluster.h"
#include "muster/compat/cluster_rules.h"
#include "muster/compat/server.h"
#include "muster/compat/session.h"
#include "muster/compat/tpu.h"
#include "muster/coordination.h"
#include "muster/coordinator.h"
#include "muster/dataset.h"
#include "muster/distribute.h"
#include "muster/error.h"
#include "muster/main.h"
#include "muster/node.h"
#include "muster/node_options.h"
#include "muster/optimizer.h"
#include "muster/resolver.h"
#include "muster/table.h"
#include "muster/table_reader.h"
#include "muster/value.h"
#include "muster/variable.h"

#define MU_VERSION_MAJOR 0
#define MU_VERSION_MINOR 1
#define MU_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that runs, "0.1.0". */
MU_EXPORT const char *mu_version(void);

#ifdef __cplusplus
}
#endif

#endif
