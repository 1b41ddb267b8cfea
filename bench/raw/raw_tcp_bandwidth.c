/* Bulk data through plain blocking TCP sockets, one direction, with a window of blocks in
 * flight: the same two directions and modes as raw_nng_bandwidth. With mode=nocopy each
 * side goes round a few buffers, as many as there are blocks in flight; with mode=copy
 * there is one copy more on each side, between variable and buffer.
 *
 *     raw_tcp_bandwidth [direction=pull|push] [mode=nocopy|copy] [depth=4] [kib=1024]
 *                       [megabytes=4096]
 */
#include "bench/raw/raw_bulk.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#define SMALL_BYTES 16

struct side {
    int fd;
    const struct bulk *bulk;
    struct variable variable;
    uint8_t *buffers; /* `depth` blocks */
    unsigned turn;
};

static void side_init(struct side *side, const struct bulk *bulk)
{
    *side = (struct side){.fd = -1, .bulk = bulk};
    variable_init(&side->variable);
    side->buffers = calloc(bulk->depth, bulk->block_bytes);
    raw_check(side->buffers != NULL, "calloc");
}

static uint8_t *side_buffer(struct side *side)
{
    unsigned turn = side->turn++ % side->bulk->depth;

    return side->buffers + turn * side->bulk->block_bytes;
}

static void block_send(struct side *side)
{
    size_t bytes = side->bulk->block_bytes;
    uint8_t *buffer = side_buffer(side);

    if (side->bulk->copy)
        memcpy(buffer, variable_block(&side->variable, bytes), bytes);
    raw_write_all(side->fd, buffer, bytes);
}

static void block_receive(struct side *side)
{
    size_t bytes = side->bulk->block_bytes;
    uint8_t *buffer = side_buffer(side);

    raw_read_all(side->fd, buffer, bytes);
    if (side->bulk->copy)
        memcpy(variable_block(&side->variable, bytes), buffer, bytes);
}

static void small_send(struct side *side)
{
    static const uint8_t small[SMALL_BYTES];

    raw_write_all(side->fd, small, sizeof small);
}

static void small_receive(struct side *side)
{
    uint8_t small[SMALL_BYTES];

    raw_read_all(side->fd, small, sizeof small);
}

static int tcp_connect(const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int on = 1;

    raw_check(fd >= 0, "socket");
    raw_check(connect(fd, (const struct sockaddr *)address, sizeof *address) == 0,
              "connect");
    raw_check(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "NODELAY");
    return fd;
}

static int tcp_listen(struct sockaddr_in *ret_address)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    raw_check(fd >= 0, "socket");
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    raw_check(bind(fd, (struct sockaddr *)&address, sizeof address) == 0, "bind");
    raw_check(listen(fd, 1) == 0, "listen");
    raw_check(getsockname(fd, (struct sockaddr *)&address, &length) == 0, "getsockname");
    *ret_address = address;
    return fd;
}

static int tcp_accept(int listener)
{
    int fd = accept(listener, NULL, NULL);
    int on = 1;

    raw_check(fd >= 0, "accept");
    raw_check(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "NODELAY");
    return fd;
}

/* Serves until it is ended. */
static void server_main(int channel, unsigned index, const void *bulk)
{
    struct sockaddr_in address;
    struct side side;

    (void)index;
    side_init(&side, bulk);
    raw_read_all(channel, &address, sizeof address);
    side.fd = tcp_connect(&address);
    for (;;) {
        if (side.bulk->push) {
            block_receive(&side);
            small_send(&side);
        } else {
            small_receive(&side);
            block_send(&side);
        }
    }
}

static void client_run(struct side *side, struct tally *tally)
{
    while (tally->finished < tally->wanted) {
        while (tally_may_start(tally, side->bulk)) {
            tally->started++;
            if (side->bulk->push)
                block_send(side);
            else
                small_send(side);
        }
        if (side->bulk->push)
            small_receive(side);
        else
            block_receive(side);
        tally_finish(tally);
    }
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"direction", "mode",      "malloc", "depth",
                                        "kib",       "megabytes", NULL};
    struct sockaddr_in address;
    struct raw_peer peer;
    struct tally tally;
    struct bulk bulk;
    struct side side;
    int listener;

    raw_args_check(argc, argv, names);
    bulk_parse(argc, argv, &bulk);
    raw_check(!bulk.echo, "direction=echo");
    alarm(RAW_SECONDS_MAX);
    peer = raw_spawn(server_main, 1, &bulk);
    side_init(&side, &bulk);
    listener = tcp_listen(&address);
    raw_write_all(peer.channel, &address, sizeof address);
    side.fd = tcp_accept(listener);
    tally_init(&tally, &bulk);
    client_run(&side, &tally);
    raw_peer_end(&peer);
    close(side.fd);
    close(listener);
    free(side.buffers);
    free(side.variable.bytes);
    bulk_report(&bulk, &tally, "raw_tcp_bandwidth");
    return 0;
}
