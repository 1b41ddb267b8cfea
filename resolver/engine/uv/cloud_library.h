/* libmuster-cloud in a process: loading it, and the signatures that it makes. */
#ifndef MU_RESOLVER_CLOUD_LIBRARY_H
#define MU_RESOLVER_CLOUD_LIBRARY_H

#include "resolver/engine/cloud.h"

/* Any thread. Load the library, unless that was done: where the loader finds it, which is
 * beside the program or libmuster (their RUNPATH), or in the system's folders. Once
 * loaded it stays; what failed is tried again by the next call. Blocks as long as the
 * loader does. -MU_EPRECONDITION: it or a package that it needs is missing, or it is
 * of another build; the words name the file and the packages. */
int mu__cloud_load(mu_error *ret_error, const struct mu__cloud **ret_cloud);

/* ---- Signatures: resolver/cloud/uv/sign_crypto.c ---- */

/* RSASSA-PKCS1-v1_5 with SHA-256. `key` is the text of a private key as PEM. On success
 * the caller frees *ret_signature. -MU_EINVALID: the key is none, or not RSA; the errors
 * of mu__cloud_load; nothing of the key is in the words. Any thread. */
int mu__sign_rs256(const char *key, const void *data, size_t size, mu_error *ret_error,
                   unsigned char **ret_signature, size_t *ret_size);

#endif
