/* Closures a second through bare nng: one chief and some workers, each a process with a
 * libuv loop, PUSH to PULL each way over tcp; all that a turn produces for one peer goes
 * in one nng message.
 *
 *     raw_nng_closures [workers=2] [outstanding=64] [transport=tcp|ipc] [sendbuf=0]
 */
#include "bench/raw/raw_closure.h"
#include "bench/raw/raw_nng.h"

struct config {
    struct raw_place place;
    unsigned workers;
    unsigned outstanding;
    unsigned send_buffer;
};

/* One connection with what is to be sent over it. */
struct lane {
    struct raw_out out;
    struct batch batch;
};

/* Send what has gathered, unless the former message is still waiting. */
static void lane_flush(struct lane *lane)
{
    nng_msg *msg;

    if (lane->batch.used == 0 || raw_out_busy(&lane->out))
        return;
    raw_nng_check(nng_msg_alloc(&msg, lane->batch.used), "message");
    memcpy(nng_msg_body(msg), lane->batch.bytes, lane->batch.used);
    lane->batch.used = 0;
    raw_out_send(&lane->out, msg);
}

struct worker {
    uv_loop_t loop;
    struct raw_in in;
    struct lane lane;
};

static void worker_take(void *owner, nng_msg *msg)
{
    struct worker *worker = owner;

    closures_answer(nng_msg_body(msg), nng_msg_len(msg), &worker->lane.batch);
    nng_msg_free(msg);
}

static void worker_flush(void *owner)
{
    struct worker *worker = owner;

    lane_flush(&worker->lane);
}

static void worker_main(int channel, unsigned index, const void *opaque)
{
    static struct worker worker;
    const struct config *config = opaque;
    char url[RAW_URL_MAX];

    raw_check(uv_loop_init(&worker.loop) == 0, "uv_loop_init");
    worker.in =
        (struct raw_in){.owner = &worker, .take = worker_take, .turn_end = worker_flush};
    raw_in_open(&worker.in, &worker.loop, &config->place, index);
    raw_exchange(channel, &worker.in, url);
    worker.lane.out = (struct raw_out){.owner = &worker, .ready = worker_flush};
    raw_out_open(&worker.lane.out, &worker.loop, url, config->send_buffer);
    uv_run(&worker.loop, UV_RUN_DEFAULT);
}

struct chief {
    uv_loop_t loop;
    struct raw_in in;
    struct lane lanes[RAW_PEERS_MAX];
    struct account account;
};

static void chief_take(void *owner, nng_msg *msg)
{
    struct chief *chief = owner;

    account_settle(&chief->account, nng_msg_body(msg), nng_msg_len(msg));
    nng_msg_free(msg);
}

/* Give every worker what it has room for. While a worker's former message waits, its
 * closures gather in the batch. */
static void chief_turn(void *owner)
{
    struct chief *chief = owner;
    bool running = account_running(&chief->account);

    for (unsigned i = 0; i < chief->account.workers; i++) {
        if (running)
            account_fill(&chief->account, i, &chief->lanes[i].batch);
        lane_flush(&chief->lanes[i]);
    }
    if (!running && account_in_flight(&chief->account) == 0)
        uv_stop(&chief->loop);
}

static void chief_open(struct chief *chief, const struct config *config,
                       const struct raw_peer *peers)
{
    char url[RAW_URL_MAX];

    raw_check(uv_loop_init(&chief->loop) == 0, "uv_loop_init");
    chief->in =
        (struct raw_in){.owner = chief, .take = chief_take, .turn_end = chief_turn};
    raw_in_open(&chief->in, &chief->loop, &config->place, config->workers);
    for (unsigned i = 0; i < config->workers; i++) {
        raw_exchange(peers[i].channel, &chief->in, url);
        chief->lanes[i].out = (struct raw_out){.owner = chief, .ready = chief_turn};
        raw_out_open(&chief->lanes[i].out, &chief->loop, url, config->send_buffer);
    }
}

static void chief_close(struct chief *chief, unsigned workers)
{
    for (unsigned i = 0; i < workers; i++) {
        nng_close(chief->lanes[i].out.push);
        free(chief->lanes[i].batch.bytes);
    }
    nng_close(chief->in.pull);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"workers", "outstanding", "transport", "sendbuf",
                                        NULL};
    static const char *const transports[] = {"tcp", "ipc", NULL};
    static struct chief chief;
    struct raw_peer peers[RAW_PEERS_MAX];
    struct config config;

    raw_args_check(argc, argv, names);
    config.workers = raw_arg_number(argc, argv, "workers", 2, 1, RAW_PEERS_MAX);
    config.outstanding = raw_arg_number(argc, argv, "outstanding", 64, 1, 1u << 20);
    config.send_buffer = raw_arg_number(argc, argv, "sendbuf", 0, 0, 8192);
    alarm(RAW_SECONDS_MAX);
    raw_place_init(&config.place,
                   transports[raw_arg_word(argc, argv, "transport", transports)]);

    for (unsigned i = 0; i < config.workers; i++)
        peers[i] = raw_spawn(worker_main, i, &config);
    chief_open(&chief, &config, peers);
    account_init(&chief.account, config.workers, config.outstanding);
    chief_turn(&chief);
    uv_run(&chief.loop, UV_RUN_DEFAULT);

    for (unsigned i = 0; i < config.workers; i++)
        raw_peer_end(&peers[i]);
    chief_close(&chief, config.workers);
    raw_place_done(&config.place, config.workers + 1);
    account_report(&chief.account, "raw_nng_closures");
    return 0;
}
