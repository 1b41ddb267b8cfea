/* Keys and values, in order of keys. Plain data: knows no messages, no clock.
 *
 * A key is a path: "a/b" is below "a". Every change has the next revision, which is also
 * the key's revision from then on. */
#ifndef MU_ACTORS_KEY_VALUES_H
#define MU_ACTORS_KEY_VALUES_H

#include "muster/error.h"
#include "runtime/message/message.h"

#ifdef MUSTER_TINY
enum { MU__KEYS_MAX = 256 };
#else
enum { MU__KEYS_MAX = 1 << 20 };
#endif
#define MU__KEY_BYTES_MAX (UINT64_C(1) << 30) /* of all keys and values together */

struct mu__key_value {
    uint64_t revision;
    uint64_t owner; /* incarnation of the task whose lease it is; 0: none */
    struct mu__view key;
    struct mu__view value;
    struct mu__buf *backing; /* of a found value, which a reference keeps as it is;
                                NULL when it is empty. Not read by put */
};

struct mu__key_values;

/* `secret` is random, so that keys with equal hashes cannot be chosen. Bounds of 0 are
 * MU__KEYS_MAX and MU__KEY_BYTES_MAX. NULL: out of memory. */
struct mu__key_values *mu__key_values_new(uint64_t secret, uint64_t keys_max,
                                          uint64_t bytes_max);
void mu__key_values_free(struct mu__key_values *kv);

/* Remove all keys. */
void mu__key_values_clear(struct mu__key_values *kv);

/* Remove outer and repeated slashes: "/a//b/" is "a/b". Writes at most MU__KEY_MAX bytes
 * and a zero behind them; -MU_EINVALID with a message, and `out` void, when the rest is
 * too long, empty (unless `may_be_empty`), or has a byte below 32. */
int mu__key_normalize(struct mu__view key, bool may_be_empty, mu_error *ret_error,
                      char out[1024], uint32_t *ret_size);

/* Whether mu__key_normalize would leave a key as it is; true for "". */
bool mu__key_is_normal(struct mu__view key);

/* The entry; its views are valid until the key is changed. False: there is none. */
bool mu__key_values_find(const struct mu__key_values *kv, struct mu__view key,
                         struct mu__key_value *ret_entry);

/* Put an entry with the revision and owner that it has; key and value are copied, and do
 * not point into the map. -MU_EEXHAUSTED (a bound, which the message names), -MU_ENOMEM:
 * nothing changed. */
int mu__key_values_put(struct mu__key_values *kv, const struct mu__key_value *entry,
                       mu_error *ret_error);

/* Restore an entry that was changed since it was found; the caller has a reference to its
 * `backing`. Takes no memory when all changes since then are undone in reverse order, by
 * this and mu__key_values_remove. */
void mu__key_values_restore(struct mu__key_values *kv,
                            const struct mu__key_value *before);

/* Remove one key; false: it was not there. */
bool mu__key_values_remove(struct mu__key_values *kv, struct mu__view key);

/* The first entry whose key is `from` or behind it (`behind`: strictly), in byte order of
 * keys with '/' before all other bytes, so that the keys below a key follow it at once.
 * False: none. */
bool mu__key_values_next(const struct mu__key_values *kv, struct mu__view from,
                         bool behind, struct mu__key_value *ret_entry);

/* The order of keys: negative when `a` comes first, 0 when they are the same. */
int mu__key_compare(struct mu__view a, struct mu__view b);

/* Whether `key` is below `directory`; everything is below "". */
bool mu__key_is_below(struct mu__view key, struct mu__view directory);

/* The entry that `owner` was given a lease of last; false: none. */
bool mu__key_values_owned(const struct mu__key_values *kv, uint64_t owner,
                          struct mu__key_value *ret_entry);

uint64_t mu__key_values_count(const struct mu__key_values *kv);
uint64_t mu__key_values_bytes(const struct mu__key_values *kv);

/* -MU_EEXHAUSTED with a message: seven eighths of the keys or of the bytes that there may
 * be are there. */
int mu__key_values_check_last_eighth(const struct mu__key_values *kv,
                                     mu_error *ret_error);

#endif
