/* Closures a second through libuv's TCP streams, without nng: one chief and some workers,
 * each a process with a loop; all that one read produces goes in one write.
 *
 *     raw_tcp_closures [workers=2] [outstanding=64]
 */
#include "bench/raw/raw_closure.h"

#include <uv.h>

#define READ_BYTES (1u << 20)

/* A stream of records of one length, with what is to be written to it. */
struct lane {
    uv_tcp_t tcp;
    uv_write_t write;
    struct batch gathering;
    struct batch writing; /* owned by the write under way */
    bool busy;
    size_t record_bytes;
    size_t kept; /* bytes of a record that has come in part */
    uint8_t *input;
    void (*take)(struct lane *lane, const uint8_t *bytes, size_t length);
    void *owner;
};

static void lane_flush(struct lane *lane);

static void lane_written(uv_write_t *write, int status)
{
    struct lane *lane = write->data;

    raw_check(status == 0, "write");
    lane->busy = false;
    lane->writing.used = 0;
    lane_flush(lane);
}

static void lane_flush(struct lane *lane)
{
    struct batch swap = lane->gathering;
    uv_buf_t buffer;

    if (lane->busy || swap.used == 0)
        return;
    lane->gathering = lane->writing;
    lane->writing = swap;
    lane->busy = true;
    lane->write.data = lane;
    buffer = uv_buf_init((char *)swap.bytes, (unsigned)swap.used);
    raw_check(uv_write(&lane->write, (uv_stream_t *)&lane->tcp, &buffer, 1,
                       lane_written) == 0,
              "uv_write");
}

static void lane_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buffer)
{
    struct lane *lane = handle->data;

    (void)suggested;
    *ret_buffer = uv_buf_init((char *)lane->input + lane->kept,
                              (unsigned)(READ_BYTES - lane->kept));
}

static void lane_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct lane *lane = stream->data;
    size_t length;
    size_t whole;

    (void)buffer;
    raw_check(count >= 0, "read");
    length = lane->kept + (size_t)count;
    whole = length - length % lane->record_bytes;
    lane->take(lane, lane->input, whole);
    lane->kept = length - whole;
    memmove(lane->input, lane->input + whole, lane->kept);
}

/* Start reading on a stream that is connected. */
static void lane_start(struct lane *lane)
{
    lane->input = malloc(READ_BYTES);
    raw_check(lane->input != NULL, "malloc");
    raw_check(uv_tcp_nodelay(&lane->tcp, 1) == 0, "uv_tcp_nodelay");
    raw_check(uv_read_start((uv_stream_t *)&lane->tcp, lane_alloc, lane_read) == 0,
              "uv_read_start");
}

static void lane_init(struct lane *lane, uv_loop_t *loop)
{
    raw_check(uv_tcp_init(loop, &lane->tcp) == 0, "uv_tcp_init");
    lane->tcp.data = lane;
}

static void worker_take(struct lane *lane, const uint8_t *bytes, size_t length)
{
    closures_answer(bytes, length, &lane->gathering);
    lane_flush(lane);
}

static void worker_connected(uv_connect_t *connect, int status)
{
    raw_check(status == 0, "connect");
    lane_start(connect->data);
}

static void worker_main(int channel, unsigned index, const void *config)
{
    static struct lane lane;
    uv_connect_t connect = {.data = &lane};
    struct sockaddr_in address;
    uv_loop_t loop;

    (void)index;
    (void)config;
    raw_read_all(channel, &address, sizeof address);
    raw_check(uv_loop_init(&loop) == 0, "uv_loop_init");
    lane.record_bytes = CLOSURE_BYTES;
    lane.take = worker_take;
    lane_init(&lane, &loop);
    raw_check(uv_tcp_connect(&connect, &lane.tcp, (struct sockaddr *)&address,
                             worker_connected) == 0,
              "uv_tcp_connect");
    uv_run(&loop, UV_RUN_DEFAULT);
}

struct chief {
    uv_loop_t loop;
    uv_tcp_t listener;
    struct lane lanes[RAW_PEERS_MAX];
    unsigned connected;
    unsigned workers;
    unsigned outstanding;
    struct account account;
};

/* Which worker is behind a stream does not follow from the order of connecting, and need
 * not: a stream keeps the number that its place among the lanes gives it. */
static void chief_give(struct chief *chief, struct lane *lane)
{
    if (account_running(&chief->account)) {
        account_fill(&chief->account, (unsigned)(lane - chief->lanes), &lane->gathering);
        lane_flush(lane);
    } else if (account_in_flight(&chief->account) == 0) {
        uv_stop(&chief->loop);
    }
}

static void chief_take(struct lane *lane, const uint8_t *bytes, size_t length)
{
    struct chief *chief = lane->owner;

    account_settle(&chief->account, bytes, length);
    chief_give(chief, lane);
}

static void chief_accept(uv_stream_t *listener, int status)
{
    struct chief *chief = listener->data;
    struct lane *lane = &chief->lanes[chief->connected];

    raw_check(status == 0, "listen");
    lane->owner = chief;
    lane->record_bytes = REPLY_BYTES;
    lane->take = chief_take;
    lane_init(lane, &chief->loop);
    raw_check(uv_accept(listener, (uv_stream_t *)&lane->tcp) == 0, "uv_accept");
    lane_start(lane);
    chief->connected++;
    if (chief->connected < chief->workers)
        return;
    account_init(&chief->account, chief->workers, chief->outstanding);
    for (unsigned i = 0; i < chief->workers; i++)
        chief_give(chief, &chief->lanes[i]);
}

static void chief_listen(struct chief *chief, const struct raw_peer *peers)
{
    struct sockaddr_in address;
    int length = sizeof address;

    raw_check(uv_loop_init(&chief->loop) == 0, "uv_loop_init");
    raw_check(uv_tcp_init(&chief->loop, &chief->listener) == 0, "uv_tcp_init");
    raw_check(uv_ip4_addr("127.0.0.1", 0, &address) == 0, "uv_ip4_addr");
    chief->listener.data = chief;
    raw_check(uv_tcp_bind(&chief->listener, (struct sockaddr *)&address, 0) == 0, "bind");
    raw_check(uv_listen((uv_stream_t *)&chief->listener, RAW_PEERS_MAX, chief_accept) ==
                  0,
              "uv_listen");
    raw_check(uv_tcp_getsockname(&chief->listener, (struct sockaddr *)&address,
                                 &length) == 0,
              "uv_tcp_getsockname");
    for (unsigned i = 0; i < chief->workers; i++)
        raw_write_all(peers[i].channel, &address, sizeof address);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"workers", "outstanding", NULL};
    static struct chief chief;
    struct raw_peer peers[RAW_PEERS_MAX];

    raw_args_check(argc, argv, names);
    chief.workers = raw_arg_number(argc, argv, "workers", 2, 1, RAW_PEERS_MAX);
    chief.outstanding = raw_arg_number(argc, argv, "outstanding", 64, 1, 1u << 20);
    alarm(RAW_SECONDS_MAX);
    for (unsigned i = 0; i < chief.workers; i++)
        peers[i] = raw_spawn(worker_main, i, NULL);
    chief_listen(&chief, peers);
    uv_run(&chief.loop, UV_RUN_DEFAULT);
    for (unsigned i = 0; i < chief.workers; i++)
        raw_peer_end(&peers[i]);
    for (unsigned i = 0; i < chief.workers; i++) {
        free(chief.lanes[i].input);
        free(chief.lanes[i].gathering.bytes);
        free(chief.lanes[i].writing.bytes);
    }
    account_report(&chief.account, "raw_tcp_closures");
    return 0;
}
