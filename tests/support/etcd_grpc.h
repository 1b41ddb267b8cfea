/* Transactions by gRPC for the etcd of the simulator: they are read from protobuf, and
 * asked in the words of the JSON gateway. */
#ifndef MU_TESTS_ETCD_GRPC_H
#define MU_TESTS_ETCD_GRPC_H

#include "tests/sim/etcd_data.h"

#include "runtime/document/etcd.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { GRPC_FRAME_HEAD = 5, PROTOBUF_FIELDS_MAX = 9 };

/* A message: each field's last number, or bytes. */
struct grpc_message {
    uint64_t numbers[PROTOBUF_FIELDS_MAX];
    struct mu__view bytes[PROTOBUF_FIELDS_MAX];
};

struct grpc_reader {
    const uint8_t *at;
    const uint8_t *end;
};

static inline uint64_t grpc_take_number(struct grpc_reader *reader)
{
    uint64_t number = 0;

    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = *reader->at++;

        assert(shift < 64 && reader->at <= reader->end);
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return number;
    }
}

/* Take one field; returns its number. */
static inline unsigned grpc_take_field(struct grpc_reader *reader,
                                       struct grpc_message *message)
{
    uint64_t key = grpc_take_number(reader);
    unsigned field = (unsigned)(key >> 3);

    assert(field < PROTOBUF_FIELDS_MAX && ((key & 7) == 0 || (key & 7) == 2));
    message->numbers[field] = grpc_take_number(reader);
    if ((key & 7) == 2) {
        uint32_t size = (uint32_t)message->numbers[field];

        assert(size <= (size_t)(reader->end - reader->at));
        message->bytes[field] = (struct mu__view){reader->at, size};
        reader->at += size;
    }
    return field;
}

static inline struct grpc_reader grpc_reader_of(struct mu__view bytes)
{
    const uint8_t *at = bytes.data;

    return (struct grpc_reader){at, at + bytes.size};
}

static inline struct grpc_message grpc_read_message(struct mu__view bytes)
{
    struct grpc_reader reader = grpc_reader_of(bytes);
    struct grpc_message message = {{0}, {{"", 0}}};

    while (reader.at < reader.end)
        (void)grpc_take_field(&reader, &message);
    return message;
}

static inline void grpc_add_compare(struct mu__build *json, struct mu__view bytes)
{
    struct grpc_message compare = grpc_read_message(bytes);

    assert(compare.numbers[1] == 0 && compare.numbers[2] <= 1);
    mu__etcd_txn_compare(json,
                         compare.numbers[2] == 1 ? MU__ETCD_CREATE : MU__ETCD_VERSION,
                         compare.bytes[3],
                         compare.numbers[compare.numbers[2] == 1 ? 5 : 4]);
}

static inline void grpc_add_operation(struct mu__build *json, struct mu__view bytes)
{
    struct grpc_message operation = grpc_read_message(bytes);
    bool is_put = operation.bytes[2].size > 0;
    struct grpc_message fields = grpc_read_message(operation.bytes[is_put ? 2 : 3]);

    if (is_put)
        mu__etcd_txn_put(json, fields.bytes[1], fields.bytes[2], fields.numbers[3]);
    else
        mu__etcd_txn_delete(json, fields.bytes[1], fields.bytes[2]);
}

/* Comparisons come before operations. */
static inline void grpc_translate(struct mu__build *json, struct grpc_reader reader)
{
    struct grpc_message message;
    bool then = false;

    mu__etcd_txn_begin(json);
    while (reader.at < reader.end) {
        unsigned field = grpc_take_field(&reader, &message);

        assert(field == 1 ? !then : field == 2);
        if (field == 2 && !then)
            mu__etcd_txn_then(json);
        then = field == 2;
        (then ? grpc_add_operation : grpc_add_compare)(json, message.bytes[field]);
    }
    mu__etcd_txn_else(json);
    mu__etcd_txn_end(json);
}

/* A header with a revision, and whether it succeeded. */
static inline char *grpc_answer_of(bool succeeded, size_t *ret_size)
{
    static const char message[] = {0, 0, 0, 0, 6, 0x0a, 2, 0x18, 7, 0x10, 1};
    size_t size = sizeof message - (succeeded ? 0 : 2);
    char *answer = malloc(size);

    assert(answer != NULL);
    memcpy(answer, message, size);
    answer[4] = (char)(size - GRPC_FRAME_HEAD);
    *ret_size = size;
    return answer;
}

/* A POST of `body` to the path of KV.Txn. The answer is the caller's to free();
 * *ret_status is gRPC's. */
static inline char *etcd_grpc_txn(struct etcd_data *data, const void *body, size_t size,
                                  size_t *ret_size, int *ret_status)
{
    const uint8_t *at = body;
    struct mu__build json = {0};
    struct mu__etcd_answer *answer = NULL;
    bool succeeded = false;
    char *text;
    int status = 0;

    assert(size >= GRPC_FRAME_HEAD && at[0] == 0 &&
           ((size_t)at[1] << 24 | (size_t)at[2] << 16 | (size_t)at[3] << 8 | at[4]) ==
               size - GRPC_FRAME_HEAD);
    grpc_translate(&json, (struct grpc_reader){at + GRPC_FRAME_HEAD, at + size});
    assert(mu__build_whole(&json));
    text = etcd_data_ask(data, "/v3/kv/txn", json.text, json.size, &status);
    *ret_status = -mu__etcd_answer_read(status, text, strlen(text), NULL, &answer);
    if (*ret_status == 0)
        assert(mu__etcd_succeeded(answer, NULL, &succeeded) == 0);
    mu__etcd_answer_free(answer);
    mu__build_done(&json);
    free(text);
    return grpc_answer_of(succeeded, ret_size);
}

#endif
