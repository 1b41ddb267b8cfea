/* Bulk data through libuv's TCP streams, with a window of blocks in flight: the client
 * asks for blocks (pull), sends them (push), or sends them and gets them back (echo).
 * Each side reads straight into a block and goes round as many blocks as are in flight;
 * with mode=copy there is one copy more on each side, between variable and block.
 *
 *     raw_uv_bandwidth [direction=pull|push|echo] [mode=nocopy|copy] [depth=4] [kib=1024]
 *                      [megabytes=4096]
 */
#include "bench/raw/raw_bulk.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <uv.h>

#define SMALL_BYTES 16

struct side {
    const struct bulk *bulk;
    uv_loop_t loop;
    uv_tcp_t tcp;
    struct variable variable;
    uint8_t *out_blocks; /* `depth` of them, as are those below */
    uint8_t *in_blocks;
    unsigned out_turn;
    unsigned in_turn;
    size_t out_bytes;    /* of one message to the peer, */
    size_t in_bytes;     /* and from it */
    size_t received;     /* of the one that is coming in */
    struct tally *tally; /* NULL at the server */
};

static void side_init(struct side *side, const struct bulk *bulk, bool sends_blocks,
                      bool gets_blocks)
{
    *side = (struct side){.bulk = bulk};
    variable_init(&side->variable);
    side->out_bytes = sends_blocks ? bulk->block_bytes : SMALL_BYTES;
    side->in_bytes = gets_blocks ? bulk->block_bytes : SMALL_BYTES;
    side->out_blocks = calloc(bulk->depth, side->out_bytes);
    side->in_blocks = calloc(bulk->depth, side->in_bytes);
    raw_check(side->out_blocks != NULL && side->in_blocks != NULL, "calloc");
    raw_check(uv_loop_init(&side->loop) == 0 && uv_tcp_init(&side->loop, &side->tcp) == 0,
              "loop");
    side->tcp.data = side;
}

static void on_written(uv_write_t *write, int status)
{
    free(write);
    raw_check(status == 0, "write");
}

static void message_send(struct side *side)
{
    unsigned turn = side->out_turn++ % side->bulk->depth;
    uint8_t *block = side->out_blocks + turn * side->out_bytes;
    uv_buf_t buffer = uv_buf_init((char *)block, (unsigned)side->out_bytes);
    uv_write_t *write;
    int written;

    if (side->bulk->copy && side->out_bytes > SMALL_BYTES)
        memcpy(block, variable_block(&side->variable, side->out_bytes), side->out_bytes);
    written = uv_try_write((uv_stream_t *)&side->tcp, &buffer, 1);
    if (written < 0)
        written = 0;
    if ((size_t)written == side->out_bytes)
        return;
    buffer.base += written;
    buffer.len -= (size_t)written;
    /* One may be answered before this side has heard that it was written. */
    write = malloc(sizeof *write);
    raw_check(write != NULL &&
                  uv_write(write, (uv_stream_t *)&side->tcp, &buffer, 1, on_written) == 0,
              "uv_write");
}

static void fill_window(struct side *side)
{
    while (tally_may_start(side->tally, side->bulk)) {
        side->tally->started++;
        message_send(side);
    }
}

static void message_received(struct side *side)
{
    uint8_t *block = side->in_blocks + side->in_turn % side->bulk->depth * side->in_bytes;

    if (side->bulk->copy && side->in_bytes > SMALL_BYTES)
        memcpy(variable_block(&side->variable, side->in_bytes), block, side->in_bytes);
    side->received = 0;
    side->in_turn++;
    if (side->tally == NULL) {
        message_send(side);
        return;
    }
    tally_finish(side->tally);
    if (side->tally->finished == side->tally->wanted)
        uv_stop(&side->loop);
    else
        fill_window(side);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buffer)
{
    struct side *side = handle->data;
    uint8_t *block = side->in_blocks + side->in_turn % side->bulk->depth * side->in_bytes;

    (void)suggested;
    *ret_buffer = uv_buf_init((char *)block + side->received,
                              (unsigned)(side->in_bytes - side->received));
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    struct side *side = stream->data;

    (void)buffer;
    raw_check(size >= 0, "read");
    side->received += (size_t)size;
    if (side->received == side->in_bytes)
        message_received(side);
}

/* Begins to read on a connected socket. */
static void side_begin(struct side *side, int fd)
{
    raw_check(uv_tcp_open(&side->tcp, fd) == 0 && uv_tcp_nodelay(&side->tcp, 1) == 0 &&
                  uv_read_start((uv_stream_t *)&side->tcp, on_alloc, on_read) == 0,
              "open");
}

static int tcp_connect(const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    raw_check(fd >= 0 &&
                  connect(fd, (const struct sockaddr *)address, sizeof *address) == 0,
              "connect");
    return fd;
}

static int tcp_listen(struct sockaddr_in *ret_address)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    raw_check(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
                  listen(fd, 1) == 0 &&
                  getsockname(fd, (struct sockaddr *)&address, &length) == 0,
              "listen");
    *ret_address = address;
    return fd;
}

/* Serves until it is ended. */
static void server_main(int channel, unsigned index, const void *config)
{
    const struct bulk *bulk = config;
    struct sockaddr_in address;
    struct side side;

    (void)index;
    side_init(&side, bulk, !bulk->push, bulk->push || bulk->echo);
    raw_read_all(channel, &address, sizeof address);
    side_begin(&side, tcp_connect(&address));
    (void)uv_run(&side.loop, UV_RUN_DEFAULT);
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
    int fd;

    raw_args_check(argc, argv, names);
    bulk_parse(argc, argv, &bulk);
    alarm(RAW_SECONDS_MAX);
    peer = raw_spawn(server_main, 1, &bulk);
    side_init(&side, &bulk, bulk.push || bulk.echo, !bulk.push);
    listener = tcp_listen(&address);
    raw_write_all(peer.channel, &address, sizeof address);
    fd = accept(listener, NULL, NULL);
    raw_check(fd >= 0, "accept");
    side_begin(&side, fd);
    tally_init(&tally, &bulk);
    side.tally = &tally;
    fill_window(&side);
    (void)uv_run(&side.loop, UV_RUN_DEFAULT);
    raw_peer_end(&peer);
    close(listener);
    bulk_report(&bulk, &tally, "raw_uv_bandwidth");
    return 0;
}
