/* Streams that threads read, at their office. */
#include "actors/user/streams/stream_readers.h"
#include "actors/user/actions.h"
#include "actors/user/streams/stream_actions.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- NEXT ---- */

static void wake_reader(struct office *office, mu_stream_reader *reader, int code)
{
    struct mu__actors_call *call = reader->waiting;

    mu__timer_cancel(&office->ctx, reader->timer);
    reader->timer = 0;
    reader->waiting = NULL;
    mu__call_complete(&call->call, code);
}

/* 1: there is nothing yet. */
static int take_batch(struct office *office, mu_stream_reader *reader,
                      mu_error *ret_error)
{
    if (!reader->has_only)
        mu__consumer_fill(office, reader->call, reader);
    if (reader->count == 0 && reader->has_only) {
        reader->items[reader->count++] = reader->only;
        reader->only = NULL;
        reader->has_only = false;
    }
    if (reader->count > 0)
        return 0;
    if (!reader->is_over)
        return 1;
    if (reader->error.code == 0)
        return mu_error_set(ret_error, -MU_ERANGE, "the stream has ended");
    *ret_error = reader->error;
    return ret_error->code;
}

void mu__reader_feed(struct office *office, mu_stream_reader *reader)
{
    int rv = reader->waiting == NULL
                 ? 1
                 : take_batch(office, reader, &reader->waiting->call.error);

    if (rv != 1)
        wake_reader(office, reader, rv);
}

static void credit_batch(struct office *office, mu_stream_reader *reader)
{
    for (uint32_t i = 0; i < reader->count; i++)
        mu__consumer_handled(office, reader->call, reader->bytes[i]);
    reader->count = 0;
    reader->at = 0;
}

static int say_nothing_came(struct mu__actors_call *call)
{
    char to[MU__ADDRESS_TEXT_MAX];

    mu__address_write(&call->reader->to, to);
    return mu_error_set(&call->call.error, -MU_EDEADLINE,
                        "no item of %s of %s has come within %" PRId64 " ms",
                        call->reader->method, to, call->call.timeout_ms);
}

static void read_next(struct office *office, struct mu__actors_call *call)
{
    mu_stream_reader *reader = call->reader;
    int rv;

    credit_batch(office, reader);
    rv = take_batch(office, reader, &call->call.error);
    if (rv == 1 && call->call.timeout_ms == 0)
        rv = say_nothing_came(call);
    if (rv != 1) {
        mu__call_complete(&call->call, rv);
        return;
    }
    reader->waiting = call;
    if (call->call.timeout_ms < 0)
        return;
    reader->due_ms = mu__now_ms(&office->ctx) + (uint64_t)call->call.timeout_ms;
    reader->timer = mu__timer_set(&office->ctx, (uint64_t)call->call.timeout_ms,
                                  OFFICE_TIMER_READERS);
    if (reader->timer == 0)
        wake_reader(office, reader,
                    mu_error_set(&call->call.error, -MU_ENOMEM, "no memory to wait"));
}

void mu__reader_on_timer(struct office *office)
{
    const uint64_t now_ms = mu__now_ms(&office->ctx);
    mu_stream_reader *next;

    for (mu_stream_reader *reader =
             MU__LIST_FIRST(&office->streams.readers, mu_stream_reader, in_office);
         reader != NULL; reader = next) {
        next = MU__LIST_NEXT(reader, mu_stream_reader, in_office);
        if (reader->waiting == NULL || reader->waiting->call.timeout_ms < 0 ||
            reader->due_ms > now_ms)
            continue;
        wake_reader(office, reader, say_nothing_came(reader->waiting));
    }
}

/* ---- OPEN and CLOSE ---- */

/* A full mailbox is an error: a thread has no notice to wait for. */
static void refuse_stream_open(struct office *office, struct mu__actors_call *call,
                               int code)
{
    call->call.error.code = code == -MU_EAGAIN ? -MU_EEXHAUSTED : code;
    mu__answer_error(office, NULL, call->name, MU_RAN_NO, &call->call.error);
    mu__call_complete(&call->call, call->call.error.code);
}

static void open_stream_reader(struct office *office, struct mu__actors_call *call)
{
    mu_stream_reader *reader = call->reader;
    struct pending_call *pending =
        mu__call_new(office, &call->address, call->name, call->call.timeout_ms);
    struct mail *mail;
    int rv = pending == NULL
                 ? mu_error_set(&call->call.error, -MU_ENOMEM, "no memory for a call")
                 : mu__message_make(office, &call->address, call->name, call->args,
                                    pending, 0, &call->call.error, &mail);

    if (rv != 0) {
        if (pending != NULL)
            mu__call_free(office, pending);
        refuse_stream_open(office, call, rv);
        return;
    }
    pending->reader = reader;
    reader->call = pending->id;
    reader->is_listed = true;
    mu__list_append(&office->streams.readers, &reader->in_office);
    mu__turn_do(office, mail);
    mu__call_complete(&call->call, 0);
}

static void close_stream_reader(struct office *office, mu_stream_reader *reader)
{
    struct pending_call *call =
        reader->call == 0 ? NULL : mu__map_get(&office->calls, reader->call);
    struct consumer *consumer = mu__consumer_find(office, reader->call);

    if (call != NULL)
        mu__call_forget(office, call);
    if (consumer != NULL)
        mu__consumer_close(office, consumer);
    if (reader->is_listed)
        mu__list_remove(&office->streams.readers, &reader->in_office);
    reader->is_listed = false;
}

void mu__reader_on_call(struct office *office, struct mu__actors_call *call)
{
    if (call->call.operation == MU__ACTORS_STREAM_OPEN) {
        open_stream_reader(office, call);
    } else if (call->call.operation == MU__ACTORS_STREAM_NEXT) {
        read_next(office, call);
    } else {
        close_stream_reader(office, call->reader);
        mu__call_complete(&call->call, 0);
    }
}

/* ---- its end ---- */

void mu__reader_end(mu_stream_reader *reader, const mu_error *error)
{
    reader->call = 0;
    reader->is_over = true;
    if (error != NULL)
        reader->error = *error;
}

void mu__reader_answer(struct office *office, mu_stream_reader *reader, mu_value *value,
                       const mu_error *error)
{
    reader->has_only = error == NULL;
    reader->only = value;
    mu__reader_end(reader, error);
    mu__reader_feed(office, reader);
}

void mu__readers_end(struct office *office)
{
    mu_error closed;

    (void)mu_error_set(&closed, -MU_ECLOSED, "this node is closing");
    while (!mu__list_is_empty(&office->streams.readers)) {
        mu_stream_reader *reader =
            MU__LIST_ENTRY(office->streams.readers.first, mu_stream_reader, in_office);

        close_stream_reader(office, reader);
        mu__reader_end(reader, &closed);
        mu__reader_feed(office, reader);
    }
}
