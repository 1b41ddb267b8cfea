/* What a node hands to its agent and to the coordination service that it may host: texts
 * of its own, the store's storage, the machine's devices. */
#ifndef MU_NODE_HOSTING_H
#define MU_NODE_HOSTING_H

#include "node/etcd_access.h"
#include "node/member/member.h"
#include "node/member/service.h"
#include "resolver/engine/uv/http_client.h"

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
    struct mu__http_client *http;   /* a store's that is elsewhere, as long */
    struct mu__etcd_access etcd;    /* how it is reached */
    mu_value *devices;
};

/* Read the options, and look at the machine. -MU_EINVALID names the option that is wrong;
 * `hosting` is then done with. Zeroed memory may be done with, too. */
int mu__hosting_init(struct mu__hosting *hosting, const mu_node_options *options,
                     mu_error *ret_error);
void mu__hosting_done(struct mu__hosting *hosting);

/* What the store of a host needs: the file of a journal, the door to HTTP of one that is
 * elsewhere. `post` and `owner` are for HTTP_DONE. On failure nothing is open. */
int mu__hosting_open_file(struct mu__hosting *hosting, mu_error *ret_error);
int mu__hosting_open_http(struct mu__hosting *hosting, uv_loop_t *loop,
                          int (*post)(void *owner, struct mu__msg *msg), void *owner,
                          mu_error *ret_error);

/* Once no actor uses them. `closed` is called on the loop for a door that was open; false
 * when there was none. */
void mu__hosting_close_file(struct mu__hosting *hosting);
bool mu__hosting_close_http(struct mu__hosting *hosting, void (*closed)(void *arg),
                            void *arg);

/* Fill in the member's part; it points into `hosting`. */
void mu__hosting_config(const struct mu__hosting *hosting, const mu_node_options *options,
                        struct mu__member_config *config);

#endif
