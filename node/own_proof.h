/* What this node proves itself with over TLS: a key file, or certificates, as its options
 * say, or else the key of its user. Files are read again when they have changed, for the
 * connections from then on. */
#ifndef MU_NODE_OWN_PROOF_H
#define MU_NODE_OWN_PROOF_H

#include "muster/node.h"
#include "node/node_wire.h"
#include "transport/wire/tls/tls_identity.h"

struct mu__own_proof;

/* What a node has of the network. */
struct mu__node_network {
    struct mu__node_wire wire;
    struct mu__own_proof *proof; /* NULL: insecure, everything is spoken plain */
};

/* Told when files that have changed cannot be used: what was read before stays. */
struct mu__own_proof_log {
    void (*write)(void *owner, const char *line);
    void *owner;
};

/* *ret_proof is NULL where the options say insecure. `late`: the user's own key is not
 * looked for before a connection over tcp needs it. The texts are copied. -MU_EINVALID:
 * options that do not go together, or files that hold something else; -MU_EPERMISSION: a
 * file with a secret that others may read; and as mu__file_read says. */
int mu__own_proof_open(const mu_node_options *options, bool late,
                       const struct mu__own_proof_log *log, mu_error *ret_error,
                       struct mu__own_proof **ret_proof);
void mu__own_proof_close(struct mu__own_proof *proof);

/* Read its files again, changed or not, and log what came of it. `proof` may be NULL. */
void mu__own_proof_read_again(struct mu__own_proof *proof);

/* Valid as long as the proof. */
const struct mu__tls_source *mu__own_proof_source(const struct mu__own_proof *proof);

/* The texts of its certificates, for a wire that makes something else of them: `ret_pem`
 * points into them. They are as they are now, and freed with mu__own_proof_texts_free,
 * also after a failure. Of a key: -MU_EINVALID. */
enum { MU__OWN_PROOF_TEXTS = 4 };

struct mu__own_proof_texts {
    char *items[MU__OWN_PROOF_TEXTS];
    size_t sizes[MU__OWN_PROOF_TEXTS];
};

int mu__own_proof_pem(struct mu__own_proof *proof, mu_error *ret_error,
                      struct mu__own_proof_texts *ret_texts, struct mu__tls_pem *ret_pem);
void mu__own_proof_texts_free(struct mu__own_proof_texts *texts);

#endif
