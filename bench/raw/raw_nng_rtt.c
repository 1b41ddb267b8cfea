/* The bare round trip between two libuv loops through nng: 64 bytes, one outstanding,
 * PUSH to PULL each way, received by polling nng's descriptor, sent without blocking.
 *
 *     raw_nng_rtt [transport=tcp|ipc] [sendbuf=0]
 */
#include "bench/raw/raw_nng.h"

#define MESSAGE_BYTES 64
#define WARM_UP 500

struct config {
    struct raw_place place;
    unsigned send_buffer;
};

/* One of the two processes. The echoing one has no samples. */
struct side {
    uv_loop_t loop;
    struct raw_in in;
    struct raw_out out;
    uint64_t *samples_ns;
    size_t count;
    size_t wanted;
    uint64_t sent_ns;
};

static void nothing(void *owner)
{
    (void)owner;
}

static void echo(void *owner, nng_msg *msg)
{
    struct side *side = owner;

    raw_out_send(&side->out, msg);
}

static void measure(void *owner, nng_msg *msg)
{
    struct side *side = owner;
    uint64_t now = bench_now_ns();

    raw_check(nng_msg_len(msg) == MESSAGE_BYTES, "length of the echo");
    side->samples_ns[side->count++] = now - side->sent_ns;
    if (side->count == side->wanted) {
        nng_msg_free(msg);
        uv_stop(&side->loop);
        return;
    }
    side->sent_ns = now;
    raw_out_send(&side->out, msg);
}

static void side_open(struct side *side, const struct config *config, int channel,
                      unsigned index)
{
    char url[RAW_URL_MAX];

    raw_check(uv_loop_init(&side->loop) == 0, "uv_loop_init");
    side->in = (struct raw_in){.owner = side, .turn_end = nothing};
    raw_in_open(&side->in, &side->loop, &config->place, index);
    raw_exchange(channel, &side->in, url);
    side->out = (struct raw_out){.owner = side, .ready = nothing};
    raw_out_open(&side->out, &side->loop, url, config->send_buffer);
}

static void peer_main(int channel, unsigned index, const void *config)
{
    static struct side side;

    side_open(&side, config, channel, index);
    side.in.take = echo;
    uv_run(&side.loop, UV_RUN_DEFAULT);
}

static void run(struct side *side)
{
    nng_msg *msg;

    side->wanted = WARM_UP + (size_t)bench_size(500, 20000);
    side->samples_ns = calloc(side->wanted, sizeof side->samples_ns[0]);
    raw_check(side->samples_ns != NULL, "calloc");
    side->in.take = measure;
    raw_nng_check(nng_msg_alloc(&msg, MESSAGE_BYTES), "message");
    side->sent_ns = bench_now_ns();
    raw_out_send(&side->out, msg);
    uv_run(&side->loop, UV_RUN_DEFAULT);
}

static void report(struct side *side, const char *transport)
{
    uint64_t *samples = side->samples_ns + WARM_UP;
    size_t count = side->count - WARM_UP;
    char extra[96];

    snprintf(extra, sizeof extra, "\"p99\":%.6g,\"transport\":\"%s\"",
             (double)bench_percentile(samples, count, 99.0) / 1e3, transport);
    bench_line_write(stdout, &(struct bench_line){
                                 .bench = "raw_nng_rtt",
                                 .metric = "p50",
                                 .value = (double)bench_median(samples, count) / 1e3,
                                 .unit = "us",
                                 .extra = extra,
                             });
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"transport", "sendbuf", NULL};
    static const char *const transports[] = {"tcp", "ipc", NULL};
    static struct side side;
    struct config config;
    struct raw_peer peer;
    const char *transport;

    raw_args_check(argc, argv, names);
    transport = transports[raw_arg_word(argc, argv, "transport", transports)];
    config.send_buffer = raw_arg_number(argc, argv, "sendbuf", 0, 0, 8192);
    alarm(RAW_SECONDS_MAX);
    raw_place_init(&config.place, transport);
    peer = raw_spawn(peer_main, 1, &config);
    side_open(&side, &config, peer.channel, 0);
    run(&side);
    raw_peer_end(&peer);
    nng_close(side.out.push);
    nng_close(side.in.pull);
    raw_place_done(&config.place, 2);
    report(&side, transport);
    free(side.samples_ns);
    return 0;
}
