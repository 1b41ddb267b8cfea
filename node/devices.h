/* What this machine has: its name, cores, memory, and the GPUs and TPUs that it shows. */
#ifndef MU_NODE_DEVICES_H
#define MU_NODE_DEVICES_H

#include "muster/value.h"

/* A map: host, cores, memory_bytes, gpus and tpus (lists of maps: name, memory_bytes; 0
 * when it is not known). `root` is where /proc, /sys and /dev are, "" for those of this
 * machine. What cannot be read is left out, or counts as 0. The caller frees it; NULL:
 * out of memory. */
mu_value *mu__devices_read(const char *root);

/* The bytes that the text of /proc/meminfo says the machine has; 0: it does not say. */
uint64_t mu__devices_memory(const char *text);

#endif
