/* Bulk data through bare nng, one direction, with a window of blocks in flight: "pull" is
 * a variable being read (small request out, block back), "push" one being written (block
 * out, small answer back). Every block is a fresh nng message. With mode=nocopy nobody
 * touches its payload, a ceiling that no program with data of its own reaches: nng zeroes
 * the block, and a new mapping that nobody wrote to is even sent from the kernel's page
 * of zeros. With mode=copy the payload is copied once in and once out, which is what a
 * program that keeps its variables elsewhere cannot avoid.
 *
 *     raw_nng_bandwidth [direction=pull|push] [mode=nocopy|copy] [malloc=default|raised]
 *                       [depth=4] [kib=1024] [megabytes=4096]
 *                       [transport=tcp|ipc] [sendbuf=0]
 */
#include "bench/raw/raw_bulk.h"
#include "bench/raw/raw_nng.h"

#define SMALL_BYTES 16

struct config {
    struct raw_place place;
    struct bulk bulk;
    unsigned send_buffer;
};

/* A client or a server: what it sends is either all small or all blocks. */
struct side {
    uv_loop_t loop;
    struct raw_in in;
    struct raw_out out;
    struct variable variable;
    const struct bulk *bulk;
    struct tally tally; /* of the client */
    uint64_t owed;      /* by the server: answers not yet sent */
};

static nng_msg *small_make(void)
{
    nng_msg *msg;

    raw_nng_check(nng_msg_alloc(&msg, SMALL_BYTES), "message");
    return msg;
}

static nng_msg *block_make(struct side *side)
{
    size_t bytes = side->bulk->block_bytes;
    nng_msg *msg;

    raw_nng_check(nng_msg_alloc(&msg, bytes), "message");
    if (side->bulk->copy)
        memcpy(nng_msg_body(msg), variable_block(&side->variable, bytes), bytes);
    return msg;
}

static void block_take(struct side *side, nng_msg *msg)
{
    size_t bytes = side->bulk->block_bytes;

    raw_check(nng_msg_len(msg) == bytes, "length of a block");
    if (side->bulk->copy)
        memcpy(variable_block(&side->variable, bytes), nng_msg_body(msg), bytes);
    nng_msg_free(msg);
}

static void small_take(nng_msg *msg)
{
    raw_check(nng_msg_len(msg) == SMALL_BYTES, "length of a small message");
    nng_msg_free(msg);
}

static void server_turn(void *owner)
{
    struct side *side = owner;

    while (side->owed > 0 && !raw_out_busy(&side->out)) {
        side->owed--;
        raw_out_send(&side->out, side->bulk->push ? small_make() : block_make(side));
    }
}

static void server_take(void *owner, nng_msg *msg)
{
    struct side *side = owner;

    if (side->bulk->push)
        block_take(side, msg);
    else
        small_take(msg);
    side->owed++;
    server_turn(side);
}

static void client_turn(void *owner)
{
    struct side *side = owner;

    if (side->tally.finished == side->tally.wanted) {
        uv_stop(&side->loop);
        return;
    }
    while (tally_may_start(&side->tally, side->bulk) && !raw_out_busy(&side->out)) {
        side->tally.started++;
        raw_out_send(&side->out, side->bulk->push ? block_make(side) : small_make());
    }
}

static void client_take(void *owner, nng_msg *msg)
{
    struct side *side = owner;

    if (side->bulk->push)
        small_take(msg);
    else
        block_take(side, msg);
    tally_finish(&side->tally);
    client_turn(side);
}

static void side_open(struct side *side, const struct config *config, int channel,
                      unsigned index)
{
    char url[RAW_URL_MAX];

    side->bulk = &config->bulk;
    variable_init(&side->variable);
    raw_check(uv_loop_init(&side->loop) == 0, "uv_loop_init");
    side->in = (struct raw_in){.owner = side};
    raw_in_open(&side->in, &side->loop, &config->place, index);
    raw_exchange(channel, &side->in, url);
    side->out = (struct raw_out){.owner = side};
    raw_out_open(&side->out, &side->loop, url, config->send_buffer);
}

static void server_main(int channel, unsigned index, const void *config)
{
    static struct side side;

    side_open(&side, config, channel, index);
    side.in.take = server_take;
    side.in.turn_end = server_turn;
    side.out.ready = server_turn;
    uv_run(&side.loop, UV_RUN_DEFAULT);
}

static void client_run(struct side *side)
{
    side->in.take = client_take;
    side->in.turn_end = client_turn;
    side->out.ready = client_turn;
    tally_init(&side->tally, side->bulk);
    client_turn(side);
    uv_run(&side->loop, UV_RUN_DEFAULT);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"direction", "mode",    "malloc",
                                        "depth",     "kib",     "megabytes",
                                        "transport", "sendbuf", NULL};
    static const char *const transports[] = {"tcp", "ipc", NULL};
    static struct side side;
    struct config config;
    struct raw_peer peer;

    raw_args_check(argc, argv, names);
    bulk_parse(argc, argv, &config.bulk);
    config.send_buffer = raw_arg_number(argc, argv, "sendbuf", 0, 0, 8192);
    alarm(RAW_SECONDS_MAX);
    raw_place_init(&config.place,
                   transports[raw_arg_word(argc, argv, "transport", transports)]);
    peer = raw_spawn(server_main, 1, &config);
    side_open(&side, &config, peer.channel, 0);
    client_run(&side);
    raw_peer_end(&peer);
    nng_close(side.out.push);
    nng_close(side.in.pull);
    raw_place_done(&config.place, 2);
    free(side.variable.bytes);
    bulk_report(&config.bulk, &side.tally, "raw_nng_bandwidth");
    return 0;
}
