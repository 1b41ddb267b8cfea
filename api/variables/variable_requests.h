/* A request of a variable: from its checks to its end. */
#ifndef MU_API_VARIABLE_REQUESTS_H
#define MU_API_VARIABLE_REQUESTS_H

#include "api/internal.h"

#include "actors/variables/row_actions.h"

/* One that was checked, in place: the call points into it, and to what was lent. */
struct mu__variable_request {
    struct mu__variable_call call; /* MU__VARIABLE_NOTHING: there is nothing to do */
    struct mu__rows rows;
    struct mu__row_list list; /* of these, or empty */
    void *packed;             /* what is written to a list; or NULL */
    uint8_t rule[MU__RULE_BYTES_MAX];
    bool is_kept;      /* what was read is, */
    uint64_t began_ns; /* with this time, */
    uint64_t writes;   /* unless there was another one since */
    size_t bytes;
};

/* Prepare one that has rows: request->operation is not checked to be one that has. After
 * an error some of it may have been made. */
int mu__variable_prepare_rows(const mu_variable *variable,
                              const mu_variable_request *request,
                              struct mu__variable_request *made, mu_error *ret_error);

#endif
