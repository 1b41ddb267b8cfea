/* Messages of protobuf, written and read by hand: fields of two kinds, numbers (varint)
 * and bytes with their size before them, each behind its key. */
#include "actors/coordination/store/etcd_grpc.h"

enum {
    FRAME_HEAD = 5, /* not compressed, and the size of the message */
    VARINT_MAX = 10,
    WIRE_NUMBER = 0,
    WIRE_64 = 1,
    WIRE_BYTES = 2,
    WIRE_32 = 5
};

/* Field numbers of etcd's rpc.proto. */
enum {
    TXN_COMPARE = 1,
    TXN_SUCCESS = 2,
    COMPARE_TARGET = 2,
    COMPARE_KEY = 3,
    OP_PUT = 2,
    OP_DELETE = 3,
    KEY = 1, /* of a put and of a delete */
    PUT_VALUE = 2,
    PUT_LEASE = 3,
    DELETE_END = 2,
    ANSWER_SUCCEEDED = 2
};

/* The number of each target, and the field of what it is compared with. */
static const struct {
    uint64_t target;
    unsigned field;
} targets[] = {
    [MU__ETCD_CREATE] = {1, 5},
    [MU__ETCD_VERSION] = {0, 4},
};

/* ---- Writing ---- */

static size_t varint_size(uint64_t number)
{
    size_t size = 1;

    for (; number > 0x7f; number >>= 7)
        size++;
    return size;
}

static void add_varint(struct mu__build *body, uint64_t number)
{
    uint8_t bytes[VARINT_MAX];
    size_t size = 0;

    for (; number > 0x7f; number >>= 7)
        bytes[size++] = (uint8_t)(number | 0x80);
    bytes[size++] = (uint8_t)number;
    mu__build_bytes(body, bytes, size);
}

/* The head of a field of `size` bytes that follow. All field numbers take one byte. */
static void open_field(struct mu__build *body, unsigned field, size_t size)
{
    add_varint(body, field << 3 | WIRE_BYTES);
    add_varint(body, size);
}

static size_t field_size(size_t size)
{
    return 1 + varint_size(size) + size;
}

/* What is zero or empty is left out. */
static size_t number_size(uint64_t number)
{
    return number == 0 ? 0 : 1 + varint_size(number);
}

static void add_grpc_number(struct mu__build *body, unsigned field, uint64_t number)
{
    if (number == 0)
        return;
    add_varint(body, field << 3 | WIRE_NUMBER);
    add_varint(body, number);
}

static size_t bytes_size(struct mu__view bytes)
{
    return bytes.size == 0 ? 0 : field_size(bytes.size);
}

static void add_bytes(struct mu__build *body, unsigned field, struct mu__view bytes)
{
    if (bytes.size == 0)
        return;
    open_field(body, field, bytes.size);
    mu__build_bytes(body, bytes.data, bytes.size);
}

void mu__etcd_grpc_begin(struct mu__build *body)
{
    mu__build_bytes(body, (const char[FRAME_HEAD]){0}, FRAME_HEAD);
}

void mu__etcd_grpc_compare(struct mu__build *body, enum mu__etcd_target target,
                           struct mu__view key, uint64_t number)
{
    open_field(body, TXN_COMPARE,
               number_size(targets[target].target) + bytes_size(key) +
                   number_size(number));
    add_grpc_number(body, COMPARE_TARGET, targets[target].target);
    add_bytes(body, COMPARE_KEY, key);
    add_grpc_number(body, targets[target].field, number);
}

static void open_operation(struct mu__build *body, unsigned field, size_t size)
{
    open_field(body, TXN_SUCCESS, field_size(size));
    open_field(body, field, size);
}

void mu__etcd_grpc_put(struct mu__build *body, struct mu__view key, struct mu__view value,
                       uint64_t lease)
{
    open_operation(body, OP_PUT,
                   bytes_size(key) + bytes_size(value) + number_size(lease));
    add_bytes(body, KEY, key);
    add_bytes(body, PUT_VALUE, value);
    add_grpc_number(body, PUT_LEASE, lease);
}

void mu__etcd_grpc_delete(struct mu__build *body, struct mu__view key,
                          struct mu__view end)
{
    open_operation(body, OP_DELETE, bytes_size(key) + bytes_size(end));
    add_bytes(body, KEY, key);
    add_bytes(body, DELETE_END, end);
}

void mu__etcd_grpc_end(struct mu__build *body)
{
    if (body->failed)
        return;
    for (int i = 0; i < 4; i++)
        body->text[1 + i] = (char)((body->size - FRAME_HEAD) >> (24 - 8 * i));
}

/* ---- Reading ---- */

/* What is left of a message. */
struct unread {
    const uint8_t *at;
    const uint8_t *end;
};

static bool parse_varint(struct unread *left, uint64_t *ret_number)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < VARINT_MAX && left->at < left->end; i++) {
        uint8_t byte = *left->at++;

        number |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte <= 0x7f) {
            *ret_number = number;
            return true;
        }
    }
    return false;
}

/* The next field; of bytes, the number is their size, and they are skipped. */
static bool parse_grpc_field(struct unread *left, uint64_t *ret_key, uint64_t *ret_number)
{
    uint64_t skip = 0;
    bool taken = parse_varint(left, ret_key);

    *ret_number = 0;
    switch (*ret_key & 7) {
    case WIRE_NUMBER:
        return taken && parse_varint(left, ret_number);
    case WIRE_BYTES:
        taken = taken && parse_varint(left, &skip);
        break;
    case WIRE_64:
        skip = 8;
        break;
    case WIRE_32:
        skip = 4;
        break;
    default:
        return false;
    }
    if (!taken || skip > (uint64_t)(left->end - left->at))
        return false;
    left->at += skip;
    *ret_number = skip;
    return true;
}

bool mu__etcd_grpc_succeeded(const void *answer, size_t size)
{
    const uint8_t *head = answer;
    struct unread left;
    uint64_t key = 0;
    uint64_t number;
    bool succeeded = false;

    if (size < FRAME_HEAD || head[0] != 0 ||
        ((uint32_t)head[1] << 24 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 8 |
         head[4]) != size - FRAME_HEAD)
        return false;
    left = (struct unread){head + FRAME_HEAD, head + size};
    while (left.at < left.end) {
        if (!parse_grpc_field(&left, &key, &number))
            return false;
        if (key == (ANSWER_SUCCEEDED << 3 | WIRE_NUMBER))
            succeeded = number != 0;
    }
    return succeeded;
}
