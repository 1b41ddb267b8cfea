/* Answers to reads of rows by number. */
#include "actors/ps/rows/rows.h"
#include "actors/ps/stream.h"
#include "runtime/message/block_pool.h"

void mu__rows_answer(struct mu__ctx *ctx, struct partition *p, const struct mu__msg *msg)
{
    const struct mu__var_read *body = (const void *)msg->body;
    const struct mu__store_read_rows request = {body->variable, body->rows, body->size};
    struct mu__var_data reply = {.token = body->token};
    void *contents = mu__block_get(body->size == 0 ? 1 : body->size);
    mu_error error;
    int rv;

    if (contents == NULL)
        rv = mu_error_set(&error, -MU_ENOMEM, "the server is out of memory");
    else
        rv = mu__store_read_rows(p->store, &request, &error, contents, &reply.version);
    if (rv == 0)
        reply.data = (struct mu__view){contents, body->size};
    reply.code = mu__ps_code(rv);
    reply.message = mu__ps_message_of(rv, error.message);
    mu__ps_answer(ctx, p, msg->from, MU__VAR_DATA, &reply, sizeof reply);
    mu__block_put(contents);
}
