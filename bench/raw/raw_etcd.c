/* What etcd does on this machine: puts of 64 bytes, synced to the disk, by one client
 * over its gRPC interface. What HTTP/2 needs is spoken here by hand: requests are
 * bytes that hardly differ, and of the answers only their ends count.
 *
 * With transaction=1 each put is in a transaction as muster's store writes it: two
 * comparisons with a key that it writes, too, the key itself, and a record of the answer.
 *
 *     raw_etcd [outstanding=1] [seconds=3] [transaction=0]
 */
#include "bench/raw/raw.h"

#include "bench/etcd.h"

#include <netinet/tcp.h>

enum {
    OUTSTANDING_MAX = 256,
    VALUE_BYTES = 64,
    KEY_BYTES = 8,
    MESSAGE_MAX = 1024,
    FRAME_HEAD = 9,
    FRAME_MAX = 1 << 14,
    WINDOW_FIRST = 65535, /* of data that may be sent, before any update */

    FRAME_DATA = 0,
    FRAME_HEADERS = 1,
    FRAME_RESET = 3,
    FRAME_SETTINGS = 4,
    FRAME_PING = 6,
    FRAME_GOAWAY = 7,
    FRAME_WINDOW = 8,
    FLAG_END_STREAM = 1, /* the same bit: FLAG_ACK */
    FLAG_END_HEADERS = 4
};

/* One connection. */
struct client {
    int fd;
    uint32_t stream; /* the next one, odd */
    unsigned under_way;
    int64_t window;
    size_t out_size;
    unsigned char out[OUTSTANDING_MAX * 2048];
    bool in_transactions;
};

static struct client client;
/* ---- HTTP/2 ---- */

static void put_frame(unsigned type, unsigned flags, uint32_t stream, const void *body,
                      size_t size)
{
    unsigned char *at = client.out + client.out_size;

    raw_check(client.out_size + FRAME_HEAD + size <= sizeof client.out, "room to send");
    at[0] = (unsigned char)(size >> 16);
    at[1] = (unsigned char)(size >> 8);
    at[2] = (unsigned char)size;
    at[3] = (unsigned char)type;
    at[4] = (unsigned char)flags;
    for (int i = 0; i < 4; i++)
        at[5 + i] = (unsigned char)(stream >> (24 - 8 * i));
    if (size > 0)
        memcpy(at + FRAME_HEAD, body, size);
    client.out_size += FRAME_HEAD + size;
}

static void flush(void)
{
    raw_write_all(client.fd, client.out, client.out_size);
    client.out_size = 0;
}

/* A header that is not to be put into any table: "literal without indexing". */
static size_t put_header(unsigned char *at, const char *name, const char *value)
{
    size_t name_size = strlen(name);
    size_t value_size = strlen(value);

    at[0] = 0;
    at[1] = (unsigned char)name_size;
    memcpy(at + 2, name, name_size);
    at[2 + name_size] = (unsigned char)value_size;
    memcpy(at + 3 + name_size, value, value_size);
    return 3 + name_size + value_size;
}

static size_t put_headers(unsigned char *at)
{
    const char *const headers[][2] = {
        {":method", "POST"},
        {":scheme", "http"},
        {":path",
         client.in_transactions ? "/etcdserverpb.KV/Txn" : "/etcdserverpb.KV/Put"},
        {":authority", "localhost"},
        {"content-type", "application/grpc"},
        {"te", "trailers"},
    };
    size_t size = 0;

    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        size += put_header(at + size, headers[i][0], headers[i][1]);
    return size;
}

/* ---- Protobuf: each returns where it ends ---- */

static unsigned char *put_number(unsigned char *at, unsigned field, uint64_t number)
{
    *at++ = (unsigned char)(field << 3);
    for (; number > 127; number >>= 7)
        *at++ = (unsigned char)(number | 128);
    *at++ = (unsigned char)number;
    return at;
}

/* Of less than 128 bytes, or less than 16 KiB. */
static unsigned char *put_bytes(unsigned char *at, unsigned field, const void *bytes,
                                size_t size)
{
    *at++ = (unsigned char)(field << 3 | 2);
    if (size > 127)
        *at++ = (unsigned char)(size | 128);
    *at++ = (unsigned char)(size > 127 ? size >> 7 : size);
    memcpy(at, bytes, size);
    return at + size;
}

static unsigned char *put_request(unsigned char *at, const char *key)
{
    unsigned char value[VALUE_BYTES];

    memset(value, 'v', sizeof value);
    at = put_bytes(at, 1, key, strlen(key));
    return put_bytes(at, 2, value, sizeof value);
}

/* A comparison that holds: the key's version (0) or its creation (1) is not that. */
static unsigned char *put_compare(unsigned char *at, unsigned target, const char *key)
{
    unsigned char compare[256];
    unsigned char *end = put_number(compare, 1, 3);

    end = put_number(end, 2, target);
    end = put_bytes(end, 3, key, strlen(key));
    end = put_number(end, 4 + target, 999999999);
    return put_bytes(at, 1, compare, (size_t)(end - compare));
}

static unsigned char *put_operation(unsigned char *at, const char *key)
{
    unsigned char request[256];
    unsigned char operation[256];
    size_t size = (size_t)(put_request(request, key) - request);

    size = (size_t)(put_bytes(operation, 2, request, size) - operation);
    return put_bytes(at, 2, operation, size);
}

static unsigned char *put_transaction(unsigned char *at, const char *key)
{
    at = put_compare(at, 1, "leader");
    at = put_compare(at, 0, "leader");
    at = put_operation(at, "leader");
    at = put_operation(at, key);
    return put_operation(at, "answer");
}

/* A gRPC message: not compressed, its length, and its fields. */
static void send_put(void)
{
    unsigned char headers[256];
    unsigned char body[MESSAGE_MAX] = {0};
    unsigned char *end;
    char key[KEY_BYTES + 1];
    size_t size;

    (void)snprintf(key, sizeof key, "key%05u", client.stream / 2 % 100000);
    end = client.in_transactions ? put_transaction(body + 5, key)
                                 : put_request(body + 5, key);
    size = (size_t)(end - body);
    body[3] = (unsigned char)((size - 5) >> 8);
    body[4] = (unsigned char)(size - 5);
    put_frame(FRAME_HEADERS, FLAG_END_HEADERS, client.stream, headers,
              put_headers(headers));
    put_frame(FRAME_DATA, FLAG_END_STREAM, client.stream, body, size);
    client.stream += 2;
    client.under_way++;
    client.window -= (int64_t)size;
}

static uint32_t number_at(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Returns 1 for the end of an answer. What was taken in is given back as window. */
static unsigned take_frame(unsigned type, unsigned flags, uint32_t stream,
                           const unsigned char *body, uint32_t size)
{
    unsigned char window[4] = {0, 0, (unsigned char)(size >> 8), (unsigned char)size};

    if (type == FRAME_SETTINGS && (flags & FLAG_END_STREAM) == 0)
        put_frame(FRAME_SETTINGS, FLAG_END_STREAM, 0, NULL, 0);
    else if (type == FRAME_PING && (flags & FLAG_END_STREAM) == 0)
        put_frame(FRAME_PING, FLAG_END_STREAM, 0, body, size);
    else if (type == FRAME_WINDOW && stream == 0)
        client.window += number_at(body) & 0x7fffffff;
    else if (type == FRAME_DATA && size > 0)
        put_frame(FRAME_WINDOW, 0, 0, window, sizeof window);
    raw_check(type != FRAME_RESET && type != FRAME_GOAWAY, "a put");
    return type == FRAME_HEADERS && (flags & FLAG_END_STREAM) != 0;
}

/* Read what is there: how many answers were whole. */
static unsigned take_frames(void)
{
    static unsigned char in[4 * FRAME_MAX];
    static size_t in_size;
    ssize_t n = read(client.fd, in + in_size, sizeof in - in_size);
    unsigned answers = 0;
    size_t at = 0;

    raw_check(n > 0, "the connection");
    in_size += (size_t)n;
    while (in_size - at >= FRAME_HEAD) {
        uint32_t size = number_at(in + at) >> 8;

        raw_check(size <= FRAME_MAX, "a frame");
        if (in_size - at < FRAME_HEAD + size)
            break;
        answers += take_frame(in[at + 3], in[at + 4], number_at(in + at + 5),
                              in + at + FRAME_HEAD, size);
        at += FRAME_HEAD + size;
    }
    memmove(in, in + at, in_size - at);
    in_size -= at;
    return answers;
}

static void connect_client(unsigned port)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    int one = 1;

    client.fd = etcd_connect(port);
    raw_check(client.fd >= 0, "the connection");
    (void)setsockopt(client.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    client.stream = 1;
    client.window = WINDOW_FIRST;
    raw_write_all(client.fd, preface, sizeof preface - 1);
    put_frame(FRAME_SETTINGS, 0, 0, NULL, 0);
}

/* How many puts were answered; each that is has another one follow. */
static uint64_t put_for(unsigned outstanding, uint64_t end_ns)
{
    uint64_t count = 0;

    while (bench_now_ns() < end_ns) {
        unsigned answers;

        while (client.under_way < outstanding && client.window >= MESSAGE_MAX)
            send_put();
        flush();
        answers = take_frames();
        count += answers;
        client.under_way -= answers;
    }
    return count;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"outstanding", "seconds", "transaction", NULL};
    unsigned outstanding =
        raw_arg_number(argc, argv, "outstanding", 1, 1, OUTSTANDING_MAX);
    unsigned seconds =
        raw_arg_number(argc, argv, "seconds", (unsigned)bench_size(1, 3), 1, 30);
    struct etcd etcd;
    uint64_t begin_ns;
    uint64_t count;

    raw_args_check(argc, argv, names);
    client.in_transactions = raw_arg_number(argc, argv, "transaction", 0, 0, 1) == 1;
    raw_check(etcd_begin(&etcd) == 0, "etcd");
    connect_client(etcd.port);
    (void)put_for(1, bench_now_ns() + 500000000);
    begin_ns = bench_now_ns();
    count = put_for(outstanding, begin_ns + (uint64_t)seconds * 1000000000);
    printf("{\"bench\":\"raw_etcd\",\"metric\":\"put\",\"outstanding\":%u,"
           "\"value\":%.0f,\"unit\":\"1/s\"}\n",
           outstanding, bench_rate(count, begin_ns, bench_now_ns()));
    etcd_end(&etcd);
    return 0;
}
