/* What an etcd knows, and what it answers: keys with their revisions, leases, ranges and
 * transactions, by the text of the JSON gateway. The rows of tests/support/etcd_rows.h
 * were asked of a real one. */
#ifndef MU_TESTS_SIM_ETCD_DATA_H
#define MU_TESTS_SIM_ETCD_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct etcd_data;

struct etcd_data *etcd_data_new(void);
void etcd_data_free(struct etcd_data *data);

/* A POST of `body` to `path`, "/v3/kv/txn". The caller's to free(). */
char *etcd_data_ask(struct etcd_data *data, const char *path, const void *body,
                    size_t size, int *ret_status);

/* Leases end at their time, and with them their keys. Times are the caller's. */
void etcd_data_set_time(struct etcd_data *data, uint64_t now_ms);

/* It was away until now: every lease begins anew. */
void etcd_data_restart(struct etcd_data *data, uint64_t now_ms);

/* Nothing more can be put. */
void etcd_data_set_full(struct etcd_data *data, bool full);

/* For those who look: the value of a key (NULL: none), valid until it changes; how many
 * keys begin with `prefix`; the revision. */
const char *etcd_data_value(struct etcd_data *data, const char *key, size_t *ret_size);
size_t etcd_data_count(struct etcd_data *data, const char *prefix);
uint64_t etcd_data_revision(const struct etcd_data *data);

#endif
