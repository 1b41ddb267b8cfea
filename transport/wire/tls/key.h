/* Cluster keys, and the keys that are derived from them.
 *
 * The cluster key gives the right to do everything. From it a key for each right is
 * derived, which proves that right and no other: one way, so that who has a derived key
 * can make neither the cluster key nor the key of another right.
 *
 * In a file, or wherever a key is retained, a cluster key is 32 bytes and nothing else. A
 * derived key is a line of text that says what it is of:
 *
 *     muster-key observe 6c1f09ab33e0d2f7 <64 hexadecimal digits>
 *
 * Threads: any. */
#ifndef MU_TRANSPORT_TLS_KEY_H
#define MU_TRANSPORT_TLS_KEY_H

#include "muster/error.h"
#include "runtime/message/rights.h"

#include <stddef.h>
#include <stdint.h>

enum {
    MU__KEY_BYTES = 32,
    MU__KEY_FINGERPRINT_BYTES = 17, /* of its text, with the end */
    MU__KEY_TEXT_BYTES = 128        /* a derived key as text, with the end */
};

struct mu__key {
    uint8_t bytes[MU__KEY_BYTES];
    enum mu__right right; /* MU__RIGHT_ALL: the cluster key itself */
    char fingerprint[MU__KEY_FINGERPRINT_BYTES]; /* of the cluster key */
};

/* A new cluster key, from the system's random numbers. */
int mu__key_new(mu_error *ret_error, struct mu__key *ret_key);

/* Read what a file holds. -MU_EINVALID: it is neither form; `name` is where it came
 * from, for the message, which shows none of the bytes. */
int mu__key_parse(const char *name, const void *data, size_t size, mu_error *ret_error,
                  struct mu__key *ret_key);

/* The key of `right`, from a cluster key or from itself; -MU_EPERMISSION: from a key that
 * is of another right. */
int mu__key_derive(const struct mu__key *key, enum mu__right right, mu_error *ret_error,
                   struct mu__key *ret_key);

/* A derived key as its line of text, without the line's end. */
void mu__key_write(const struct mu__key *key, char text[MU__KEY_TEXT_BYTES]);

/* What a handshake calls a key, "muster use 6c1f09ab33e0d2f7", and back; -MU_EINVALID:
 * it is none. */
enum { MU__KEY_NAME_BYTES = 64 };

void mu__key_name(const struct mu__key *key, char name[MU__KEY_NAME_BYTES]);
int mu__key_name_parse(const char *name, size_t size, enum mu__right *ret_right,
                       char ret_fingerprint[MU__KEY_FINGERPRINT_BYTES]);

/* Overwrite it. */
void mu__key_clear(struct mu__key *key);

#endif
