/* Who is let in with what: what transport/wire/tls/ does, without its cryptography. */
#include "sim/world/inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void sim_node_prove(struct sim_node *node, const struct sim_credentials *credentials)
{
    node->credentials = *credentials;
}

/* Who has the cluster's key can check each, who has a derived one that one alone. */
static void meet_by_key(const struct sim_credentials *dialler,
                        const struct sim_credentials *to, struct sim_meeting *meeting)
{
    enum mu__right right = dialler->right;

    if (dialler->of == to->of && (to->right == MU__RIGHT_ALL || to->right == right)) {
        if (to->right == MU__RIGHT_ALL)
            meeting->dialler.proof.right = right;
        return;
    }
    meeting->refused = true;
    meeting->dialler_why = "the peer has another key";
    (void)snprintf(meeting->why, sizeof meeting->why,
                   "it has the %s key %" PRIu32 ", and this node the %s key %" PRIu32,
                   mu__right_name(right), dialler->of, mu__right_name(to->right), to->of);
}

static void prove(const struct sim_credentials *own, struct mu__proof *proof)
{
    proof->right = own->right;
    proof->names_task = own->task_type != NULL;
    proof->task_index = own->task_index;
    if (proof->names_task)
        (void)snprintf(proof->task_type, sizeof proof->task_type, "%s", own->task_type);
}

static void meet_by_certificate(const struct sim_credentials *dialler,
                                const struct sim_credentials *to,
                                struct sim_meeting *meeting)
{
    if (dialler->of != to->of) {
        meeting->refused = true;
        meeting->dialler_why = "the peer's certificate is of another CA";
        (void)snprintf(meeting->why, sizeof meeting->why,
                       "its certificate is of CA %" PRIu32 ", and this node's of CA "
                       "%" PRIu32,
                       dialler->of, to->of);
        return;
    }
    prove(dialler, &meeting->dialler.proof);
    prove(to, &meeting->listener.proof);
}

static enum mu__right own_right(const struct sim_credentials *own)
{
    return own->kind == SIM_PLAIN ? MU__RIGHT_ALL : own->right;
}

void sim_meet(const struct sim_node *dialler, const struct sim_node *to,
              struct sim_meeting *ret_meeting)
{
    const struct sim_credentials *own = &dialler->credentials;

    *ret_meeting = (struct sim_meeting){
        .dialler = {{.right = MU__RIGHT_ALL}, own_right(&to->credentials)},
        .listener = {{.right = MU__RIGHT_ALL}, own_right(own)},
    };
    if (own->kind != to->credentials.kind) {
        ret_meeting->refused = true;
        ret_meeting->dialler_why = "the peer proves itself otherwise";
        (void)snprintf(ret_meeting->why, sizeof ret_meeting->why,
                       "it proves itself otherwise than this node");
    } else if (own->kind == SIM_KEY) {
        meet_by_key(own, &to->credentials, ret_meeting);
    } else if (own->kind == SIM_CERTIFICATE) {
        meet_by_certificate(own, &to->credentials, ret_meeting);
    }
}

/* ---- Operations of the wire ---- */

void sim_wire_proof(struct mu__wire *wire, uint32_t number, struct mu__proof *ret_proof)
{
    const struct sim_conn *conn = sim_conn_find(sim_node_of_wire(wire), number);

    if (conn != NULL)
        *ret_proof = conn->met.proof;
}

enum mu__right sim_wire_own_right(struct mu__wire *wire, uint32_t number)
{
    const struct sim_conn *conn = sim_conn_find(sim_node_of_wire(wire), number);

    return conn == NULL ? MU__RIGHT_ALL : conn->met.own_right;
}
