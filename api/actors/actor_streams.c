/* Streams of actors, for threads. A reader holds the memory of its node, so that it may
 * be closed whenever. */
#include "actors/messages.h"
#include "actors/user/office.h"
#include "actors/user/streams/stream_readers.h"
#include "api/internal.h"
#include "runtime/message/arguments.h"

#include <muster/actor.h>

#include <stdlib.h>
#include <string.h>

static void free_stream_reader(mu_stream_reader *reader)
{
    mu_node *node = reader->node;

    while (reader->at < reader->count)
        mu_value_free(reader->items[reader->at++]);
    mu_value_free(reader->only);
    free(reader);
    mu__node_unref(node);
}

static mu_stream_reader *stream_reader_new(mu_node *node, const mu_address *to,
                                           const char *method)
{
    mu_stream_reader *reader = calloc(1, sizeof *reader);

    if (reader == NULL)
        return NULL;
    reader->node = node;
    reader->to = *to;
    memcpy(reader->method, method, strlen(method) + 1);
    mu__node_ref(node);
    return reader;
}

int mu_actor_open_stream(mu_node *node, const mu_address *to, const char *method,
                         const mu_value *args, int64_t timeout_ms, mu_error *ret_error,
                         mu_stream_reader **ret_reader)
{
    MU__REQUIRE(ret_error, node, to, method, ret_reader);

    struct mu__actors_call call = {
        .call.operation = MU__ACTORS_STREAM_OPEN,
        .call.timeout_ms = timeout_ms,
        .name = method,
        .args = args,
        .address = *to,
    };
    struct mu__packed sizes;
    int rv = mu__actors_check_name("method", method, ret_error);

    if (rv == 0)
        rv = mu__check_actor_timeout(timeout_ms, ret_error);
    if (rv == 0)
        rv = mu__measure_args(args, &sizes, ret_error);
    if (rv != 0)
        return rv;
    call.reader = stream_reader_new(node, to, method);
    if (call.reader == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a stream");
    rv = mu__node_call_at_once(node, MU__ACTORS, &call.call);
    if (rv == 0) {
        *ret_reader = call.reader;
        return 0;
    }
    free_stream_reader(call.reader);
    if (ret_error != NULL)
        *ret_error = call.call.error;
    return rv;
}

static int take_item(mu_stream_reader *reader, mu_error *ret_error, mu_value **ret_value)
{
    mu_value *item = reader->items[reader->at];

    if (item == NULL)
        item = mu_value_nil();
    if (item == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for an item");
    reader->at++;
    *ret_value = item;
    return 0;
}

int mu_stream_next(mu_stream_reader *reader, int64_t timeout_ms, mu_error *ret_error,
                   mu_value **ret_value)
{
    MU__REQUIRE(ret_error, reader, ret_value);

    struct mu__actors_call call = {
        .call.operation = MU__ACTORS_STREAM_NEXT,
        .call.timeout_ms = timeout_ms,
        .reader = reader,
    };
    int rv = 0;

    if (reader->at == reader->count)
        rv = mu__node_call(reader->node, MU__ACTORS, &call.call, ret_error);
    return rv == 0 ? take_item(reader, ret_error, ret_value) : rv;
}

/* ---- closing ---- */

struct closing_reader {
    struct mu__pending pending; /* first */
    struct mu__actors_call call;
};

static void finish_closing(struct mu__pending *pending)
{
    struct closing_reader *closing = (struct closing_reader *)pending;

    free_stream_reader(closing->call.reader);
    free(closing);
}

/* Without memory for a call the reader stays until the node is closed. */
void mu_stream_close(mu_stream_reader *reader)
{
    struct closing_reader *closing;
    int rv;

    if (reader == NULL)
        return;
    closing = calloc(1, sizeof *closing);
    if (closing == NULL)
        return;
    closing->call.call.operation = MU__ACTORS_STREAM_CLOSE;
    closing->call.call.timeout_ms = -1;
    closing->call.reader = reader;
    rv = mu__node_call_later(reader->node, MU__ACTORS, &closing->pending,
                             &closing->call.call, finish_closing);
    if (rv == -MU_ECLOSED)
        finish_closing(&closing->pending);
    else if (rv != 0)
        free(closing);
}
