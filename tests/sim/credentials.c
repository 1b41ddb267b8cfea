/* Who is let in with what: what transport/wire/tls/ does, without its cryptography. */
#include "tests/sim/inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void sim_node_prove(struct sim_node *node, const struct sim_credentials *credentials)
{
    node->credentials = *credentials;
}

/* The key that the dialler shows: of the right that it is asked for, if it has the
 * cluster's own. */
static enum mu__right shown(const struct sim_credentials *own, enum mu__right shows)
{
    return own->right == MU__RIGHT_ALL ? shows : own->right;
}

/* Who has the cluster's key can check each, who has a derived one that one alone. */
static void meet_by_key(const struct sim_credentials *dialler, enum mu__right right,
                        const struct sim_credentials *to, struct sim_meeting *meeting)
{
    if (dialler->of == to->of && (to->right == MU__RIGHT_ALL || to->right == right)) {
        meeting->proof.right = to->right == MU__RIGHT_ALL ? right : MU__RIGHT_ALL;
        return;
    }
    meeting->refused = true;
    meeting->dialler_why = "the peer has another key";
    (void)snprintf(meeting->why, sizeof meeting->why,
                   "it has the %s key %" PRIu32 ", and this node the %s key %" PRIu32,
                   mu__right_name(right), dialler->of, mu__right_name(to->right), to->of);
}

static void meet_by_certificate(const struct sim_credentials *dialler,
                                const struct sim_credentials *to,
                                struct sim_meeting *meeting)
{
    struct mu__proof *proof = &meeting->proof;

    if (dialler->of != to->of) {
        meeting->refused = true;
        meeting->dialler_why = "the peer's certificate is of another CA";
        (void)snprintf(meeting->why, sizeof meeting->why,
                       "its certificate is of CA %" PRIu32 ", and this node's of CA "
                       "%" PRIu32,
                       dialler->of, to->of);
        return;
    }
    proof->right = dialler->right;
    proof->names_task = dialler->task_type != NULL;
    proof->task_index = dialler->task_index;
    if (proof->names_task)
        (void)snprintf(proof->task_type, sizeof proof->task_type, "%s",
                       dialler->task_type);
}

void sim_meet(const struct sim_node *dialler, enum mu__right shows,
              const struct sim_node *to, struct sim_meeting *ret_meeting)
{
    const struct sim_credentials *own = &dialler->credentials;

    *ret_meeting = (struct sim_meeting){
        .proof.right = MU__RIGHT_ALL,
        .own_right = own->kind == SIM_PLAIN ? MU__RIGHT_ALL : own->right,
    };
    if (own->kind != to->credentials.kind) {
        ret_meeting->refused = true;
        ret_meeting->dialler_why = "the peer proves itself otherwise";
        (void)snprintf(ret_meeting->why, sizeof ret_meeting->why,
                       "it proves itself otherwise than this node");
    } else if (own->kind == SIM_KEY) {
        meet_by_key(own, shown(own, shows), &to->credentials, ret_meeting);
    } else if (own->kind == SIM_CERTIFICATE) {
        meet_by_certificate(own, &to->credentials, ret_meeting);
    }
}

/* ---- Operations of the wire ---- */

void sim_wire_proof(struct mu__wire *wire, uint32_t in, struct mu__proof *ret_proof)
{
    const struct sim_node *node = sim_node_of_wire(wire);

    for (struct sim_conn *conn = node->sim->conns; conn != NULL; conn = conn->next)
        if (conn->to == node && conn->in == in)
            *ret_proof = conn->meeting.proof;
}

void sim_wire_show(struct mu__wire *wire, uint32_t number, enum mu__right right)
{
    struct sim_out *out = *sim_out_find(sim_node_of_wire(wire), number);

    if (out != NULL)
        out->shows = right;
}

enum mu__right sim_wire_own_right(struct mu__wire *wire, uint32_t number)
{
    const struct sim_out *out = *sim_out_find(sim_node_of_wire(wire), number);

    return out == NULL || out->conn == NULL ? MU__RIGHT_ALL
                                            : out->conn->meeting.own_right;
}
