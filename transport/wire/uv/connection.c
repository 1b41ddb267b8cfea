/* One connection to another node: its begin, its end, and what is known of the other
 * side. */
#include "transport/wire/uv/dialling.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char mu__connection_closed_words[] = "connection closed";

struct mu__connection *mu__connection_of(struct mu__wire *door, uint32_t number)
{
    return mu__map_get(&((struct mu__wire_uv *)door)->connections, number);
}

/* ---- ends ---- */

void mu__connection_free(struct mu__connection *c)
{
    mu__tls_free(c->tls);
    mu__buf_unref(c->in.frame);
    free(c->in.left);
    free(c->connecting.records);
    free(c);
}

static void on_connection_handle_closed(uv_handle_t *handle)
{
    struct mu__connection *c = (struct mu__connection *)handle;
    struct mu__wire_uv *wire = c->wire;

    mu__connection_free(c);
    mu__wire_uv_drop_hold(wire);
}

void mu__connection_close(struct mu__connection *c)
{
    if (c->is_closing)
        return;
    c->is_closing = true;
    (void)mu__map_remove(&c->wire->connections, c->number);
    if (mu__wire_is_accepted(c->number))
        mu__unproven_remove(&c->wire->accepting.unproven, &c->unproven);
    mu__reading_forget(c);
    uv_close(&c->stream.handle, on_connection_handle_closed);
}

/* A peer that only came and went, a health check say, is not worth a word. */
static void report_refused(const struct mu__connection *c, const char *reason)
{
    struct mu__wire_uv *wire = c->wire;
    char address[MU__PEER_BYTES];

    if (wire->events.refused == NULL || reason == mu__connection_closed_words)
        return;
    mu__connection_peer(&wire->door, c->number, address, sizeof address);
    wire->events.refused(wire->owner, address, reason);
}

void mu__connection_lose(struct mu__connection *c, const char *reason)
{
    struct mu__wire_uv *wire = c->wire;
    uint32_t number = c->number;
    bool greeted = c->in.greeted;

    if (c->is_closing)
        return;
    if (c->tls != NULL)
        (void)mu__tls_flush(c->tls, &c->stream.stream);
    if (mu__wire_is_accepted(number) && !c->is_member)
        report_refused(c, reason);
    mu__connection_close(c);
    if (!greeted)
        return;
    wire->news = true;
    wire->events.down(wire->owner, number, reason);
}

void mu__connection_end(struct mu__unproven_entry *entry, const char *reason)
{
    mu__connection_lose(MU__LIST_ENTRY(entry, struct mu__connection, unproven), reason);
}

void mu__connection_close_all(struct mu__wire_uv *wire)
{
    struct mu__map *all = &wire->connections;

    for (size_t i = 0; all->count > 0; i = (i + 1) % all->capacity)
        if (all->entries[i].key != 0)
            mu__connection_close(all->entries[i].value);
}

/* ---- begins ---- */

static void begin_connection(struct mu__connection *c)
{
    char why[MU__PEER_USER_BYTES];

    if (c->is_ipc && c->wire->tls != NULL &&
        !mu__peer_is_user(&c->stream, why, sizeof why)) {
        mu__connection_lose(c, why);
        return;
    }
    if (!c->is_ipc)
        (void)uv_tcp_nodelay(&c->stream.tcp, 1);
    if (mu__reading_begin(c) != 0)
        mu__connection_close(c);
}

void mu__connection_accept(struct mu__wire_uv *wire, int fd,
                           const struct mu__source *source)
{
    bool is_ipc = wire->url.ipc;
    struct mu__connection *c = calloc(1, sizeof *c);

    if (c == NULL || mu__stream_init(wire->loop, is_ipc, &c->stream) != 0) {
        (void)close(fd);
        free(c);
        return;
    }
    c->wire = wire;
    wire->accepted_next = (wire->accepted_next + 1) & (MU__WIRE_ACCEPTED - 1);
    c->number = MU__WIRE_ACCEPTED | wire->accepted_next;
    c->is_ipc = is_ipc;
    c->is_secured = !is_ipc && wire->tls != NULL;
    mu__wire_uv_hold(wire);
    mu__accepting_wait(wire, &c->unproven, source);
    if ((is_ipc ? uv_pipe_open(&c->stream.pipe, fd) : uv_tcp_open(&c->stream.tcp, fd)) !=
        0) {
        (void)close(fd);
        mu__connection_close(c);
    } else if (mu__map_set(&wire->connections, c->number, c) != 0) {
        mu__connection_close(c);
    } else {
        begin_connection(c);
    }
}

int mu__connection_adopt(struct mu__wire_uv *wire, struct mu__connection *c,
                         uint32_t number)
{
    int rv = mu__map_set(&wire->connections, number, c);

    c->wire = wire;
    c->number = number;
    c->in.greeted = true;
    mu__wire_uv_hold(wire);
    if (rv == 0)
        rv = mu__reading_begin(c);
    if (rv != 0)
        mu__connection_close(c);
    return rv;
}

/* ---- what is known ---- */

void mu__connection_member(struct mu__wire *door, uint32_t number)
{
    struct mu__connection *c = mu__connection_of(door, number);

    if (c == NULL)
        return;
    c->is_member = true;
    if (mu__wire_is_accepted(number))
        mu__unproven_prove(&c->wire->accepting.unproven, &c->unproven);
}

/* A peer that was let in over a unix socket or plain tcp may do everything. */
void mu__connection_proof(struct mu__wire *door, uint32_t number,
                          struct mu__proof *ret_proof)
{
    const struct mu__connection *c = mu__connection_of(door, number);

    *ret_proof = (struct mu__proof){.right = MU__RIGHT_ALL};
    if (c != NULL && c->tls != NULL)
        mu__tls_proof(c->tls, ret_proof);
}

enum mu__right mu__connection_own_right(struct mu__wire *door, uint32_t number)
{
    const struct mu__connection *c = mu__connection_of(door, number);

    return c == NULL || c->tls == NULL ? MU__RIGHT_ALL : mu__tls_own_right(c->tls);
}

void mu__connection_peer(struct mu__wire *door, uint32_t number, char *ret_address,
                         size_t size)
{
    struct mu__connection *c = mu__connection_of(door, number);
    struct sockaddr_storage name = {.ss_family = AF_UNIX};
    int name_size = sizeof name;

    ret_address[0] = '\0';
    if (c == NULL)
        return;
    if (c->stream.handle.type == UV_TCP &&
        uv_tcp_getpeername(&c->stream.tcp, (struct sockaddr *)&name, &name_size) != 0)
        mu__source_words(&c->unproven.source, ret_address, size); /* it has gone */
    else
        mu__address_words((struct sockaddr *)&name, ret_address, size);
}

uint32_t mu__connection_address(struct mu__wire *door, uint32_t number,
                                unsigned *ret_count)
{
    const struct mu__connection *c = mu__connection_of(door, number);

    if (c == NULL)
        return 0;
    *ret_count = c->addresses_count;
    return c->address_number;
}
