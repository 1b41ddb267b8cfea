/* muster: runs functions on a cluster of tasks, and reports the outcome of each.
 *
 * Include this one header, link with -lmuster. */
#ifndef MUSTER_H
#define MUSTER_H

#include "muster/checkpoint.h"
#include "muster/cluster.h"
#include "muster/coordination.h"
#include "muster/coordinator.h"
#include "muster/dataset.h"
#include "muster/distribute.h"
#include "muster/error.h"
#include "muster/main.h"
#include "muster/node.h"
#include "muster/resolver.h"
#include "muster/compat/server.h"
#include "muster/compat/session.h"
#include "muster/tpu.h"
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
