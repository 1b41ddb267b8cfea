/* Connections that are wanted: each is dialled until it is there, or hung up.
 *
 * Each attempt is a round of dialling (dialling.h). Between two rounds a dial waits, with
 * a back-off, and each round looks the name up anew.
 *
 * Memory. A round that was cancelled holds what it needs. After calling an event, the
 * dial is not accessed. */
#include "transport/wire/uv/dialling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BACKOFF_MIN_MS = 50, BACKOFF_MAX_MS = 2000, ERROR_BYTES = 1024 };

struct mu__dial {
    struct mu__wire_uv *wire;
    uint32_t number;
    struct mu__url url;
    const struct mu__dial_tried *tried; /* addresses to try last; borrowed; NULL: none */
    struct mu__dialling *dialling;      /* NULL: it waits */
    uv_timer_t timer;                   /* until the next attempt */
    unsigned backoff_ms;
    char *last_error; /* owned; NULL: nothing is known */
};

/* ---- the end ---- */

static void on_dial_closed(uv_handle_t *handle)
{
    struct mu__dial *dial = handle->data;
    struct mu__wire_uv *wire = dial->wire;

    free(dial->last_error);
    free(dial);
    mu__wire_uv_drop_hold(wire);
}

bool mu__dials_end(struct mu__wire_uv *wire, uint32_t number)
{
    struct mu__dial *dial = mu__map_remove(&wire->dials, number);

    if (dial == NULL)
        return false;
    if (dial->dialling != NULL)
        mu__dialling_cancel(dial->dialling);
    uv_close((uv_handle_t *)&dial->timer, on_dial_closed);
    return true;
}

void mu__dials_end_all(struct mu__wire_uv *wire)
{
    for (size_t i = 0; wire->dials.count > 0; i = (i + 1) % wire->dials.capacity)
        if (wire->dials.entries[i].key != 0)
            (void)mu__dials_end(wire, (uint32_t)wire->dials.entries[i].key);
}

/* ---- attempts ---- */

static void begin_dial_round(struct mu__dial *dial);

static void on_dial_retry(uv_timer_t *timer)
{
    begin_dial_round(timer->data);
}

static void fail_dial_round(struct mu__dial *dial, const char *reason)
{
    free(dial->last_error);
    dial->last_error = reason == NULL ? NULL : strdup(reason);
    (void)uv_timer_start(&dial->timer, on_dial_retry, dial->backoff_ms, 0);
    dial->backoff_ms *= 2;
    if (dial->backoff_ms > BACKOFF_MAX_MS)
        dial->backoff_ms = BACKOFF_MAX_MS;
}

static void on_dial_won(void *owner, const struct mu__dialling *dialling,
                        struct mu__connection *connection)
{
    struct mu__dial *dial = owner;
    struct mu__wire_uv *wire = dial->wire;
    uint32_t number = dial->number;
    const struct mu__dial_try *tries =
        mu__dialling_tries(dialling, &connection->addresses_count);

    dial->dialling = NULL;
    connection->address_number =
        mu__dial_address_number(&tries[connection->connecting.which]);
    connection->is_ipc = dial->url.ipc;
    connection->is_secured = connection->tls != NULL;
    if (mu__connection_adopt(wire, connection, number) != 0) {
        fail_dial_round(dial, "out of memory");
        return;
    }
    (void)mu__dials_end(wire, number);
    wire->news = true;
    wire->events.up(wire->owner, number);
}

/* The reasons of several addresses, each with its address. */
static void list_dial_reasons(const struct mu__dialling *dialling, char *out)
{
    struct mu__dial_failure rows[MU__DIAL_ADDRESSES_MAX];
    char names[MU__DIAL_ADDRESSES_MAX][INET6_ADDRSTRLEN];
    unsigned count;
    const struct mu__dial_try *tries = mu__dialling_tries(dialling, &count);

    for (unsigned i = 0; i < count; i++) {
        mu__dial_name(&tries[i], names[i], sizeof names[i]);
        rows[i] = (struct mu__dial_failure){names[i], tries[i].why};
    }
    mu__dial_words(rows, count, out, ERROR_BYTES);
}

static void on_dial_lost(void *owner, const struct mu__dialling *dialling)
{
    struct mu__dial *dial = owner;
    char words[ERROR_BYTES];
    unsigned count;
    const struct mu__dial_try *tries = mu__dialling_tries(dialling, &count);

    dial->dialling = NULL;
    if (count > 1)
        list_dial_reasons(dialling, words);
    else if (count == 0)
        (void)snprintf(words, sizeof words, "no such host (%s)",
                       mu__dialling_no_name(dialling));
    fail_dial_round(dial, count == 1 ? tries[0].why : words);
}

static void on_dial_round_closed(void *wire)
{
    mu__wire_uv_drop_hold(wire);
}

static void begin_dial_round(struct mu__dial *dial)
{
    static const struct mu__dialling_events events = {on_dial_won, on_dial_lost,
                                                      on_dial_round_closed};
    const struct mu__dial_request request = {
        .loop = dial->wire->loop,
        .blocking_jobs = dial->wire->blocking_jobs,
        .url = &dial->url,
        .tls = dial->wire->tls,
        .tried = dial->tried,
        .timeout_ms = MU__DIAL_TIMEOUT_MS,
        .events = &events,
        .owner = dial,
        .arg = dial->wire,
    };

    if (mu__dialling_start(&request, &dial->dialling) != 0)
        fail_dial_round(dial, "out of memory");
    else
        mu__wire_uv_hold(dial->wire);
}

/* ---- operations ---- */

int mu__dials_begin(struct mu__wire *door, uint32_t number, const char *url)
{
    struct mu__wire_uv *wire = (struct mu__wire_uv *)door;
    struct mu__url parsed;
    struct mu__dial *dial;

    if (mu__map_get(&wire->dials, number) != NULL ||
        mu__connection_of(door, number) != NULL)
        return -MU_EEXISTS;
    if (mu__url_parse(url, false, &parsed) != NULL)
        return -MU_EINVALID;
    dial = calloc(1, sizeof *dial);
    if (dial == NULL || mu__map_set(&wire->dials, number, dial) != 0) {
        free(dial);
        return -MU_ENOMEM;
    }
    dial->wire = wire;
    dial->number = number;
    dial->url = parsed;
    dial->backoff_ms = BACKOFF_MIN_MS;
    (void)uv_timer_init(wire->loop, &dial->timer);
    dial->timer.data = dial;
    mu__wire_uv_hold(wire);
    (void)uv_timer_start(&dial->timer, on_dial_retry, 0, 0);
    return 0;
}

void mu__dials_avoid(struct mu__wire *door, uint32_t number,
                     const struct mu__dial_tried *tried)
{
    struct mu__dial *dial = mu__map_get(&((struct mu__wire_uv *)door)->dials, number);

    if (dial != NULL)
        dial->tried = tried;
}

const char *mu__dials_last_error(struct mu__wire *door, uint32_t number)
{
    const struct mu__dial *dial =
        mu__map_get(&((struct mu__wire_uv *)door)->dials, number);

    return dial == NULL ? NULL : dial->last_error;
}
