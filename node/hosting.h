/* What a node hands to its agent and to the coordination service that it may host: texts
 * of its own, the store's storage, the machine's devices. */
#ifndef MU_NODE_HOSTING_H
#define MU_NODE_HOSTING_H

#include "node/member.h"
#include "node/member_service.h"

#include "muster/node.h"

struct mu__hosting {
    char *hosts;                /* a set of tasks, "": there is no service */
    char *tasks;                /* the coordinated ones */
    char recoverable[MU__SERVICE_TYPES_BYTES];
    bool is_host;               /* this task is one of them */
    char *store;                /* the option's text, which `place` points into */
    const struct mu__store_kind *kind;
    const char *place;
    bool sync;
    struct mu__storage *storage;    /* a journal's, while the node is open */
    mu_value *devices;
};

/* Read the options, and look at the machine. -MU_EINVALID names the option that is wrong;
 * `hosting` is then done with. Zeroed memory may be done with, too. */
int mu__hosting_init(struct mu__hosting *hosting, const mu_node_options *options,
                     mu_error *ret_error);
void mu__hosting_done(struct mu__hosting *hosting);

/* What the store needs of this machine: a host with a journal opens its file. */
int mu__hosting_open(struct mu__hosting *hosting, mu_error *ret_error);
void mu__hosting_close(struct mu__hosting *hosting);

/* Fill in the member's part; it points into `hosting`. */
void mu__hosting_config(const struct mu__hosting *hosting, const mu_node_options *options,
                        struct mu__member_config *config);

#endif
