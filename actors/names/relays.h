/* Calls to a name that go over the coordination service. A client that is in no list, as
 * the command `muster` is, has links to the service's hosts, and knows no address of an
 * owner. It sends ACTOR_RELAY to the office of the host, which makes the call in its
 * place, and answers it. */
#ifndef MU_ACTORS_NAMES_RELAYS_H
#define MU_ACTORS_NAMES_RELAYS_H

#include "actors/names/naming.h"

/* A call that this node makes for another one. */
struct relay {
    struct mu__list_node node; /* of its peer's relays */
    struct peer *peer;
    struct answer_to answer;
    struct pending_call *call;
    uint32_t bytes;
};

/* ---- who calls ---- */

/* Whether this node has no way to the owner of the name but that one; looked for once for
 * each owner. A name that was called so stays so: what waits at the host for a next owner
 * must not be overtaken. */
bool mu__relay_is_needed(struct office *office, struct name_entry *entry);

/* As mu__message_make. */
int mu__relay_make(struct office *office, const struct name_entry *entry,
                   const char *method, const mu_value *args, uint32_t bytes,
                   struct pending_call *call, uint32_t waits, mu_error *ret_error,
                   struct mail **ret_mail);

/* ---- who relays ---- */

void mu__relay_on_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* Nobody waits for it any more. */
void mu__relay_cancel(struct office *office, uint32_t node, uint64_t call);
void mu__relays_lose(struct office *office, struct peer *peer);

/* A call is answered. Takes `value`. */
void mu__relay_end(struct office *office, struct relay *relay, mu_value *value,
                   const mu_error *error);

#endif
