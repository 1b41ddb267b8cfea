/* Any bytes as a frame from a peer: each record is refused, skipped or decoded; what was
 * decoded is encoded again and then stays the same, and so do the values in it.
 *
 * The input is a frame, and then once more the head of a value. */
#include "actors/messages.h"
#include "runtime/message/codec.h"
#include "tests/fuzz/must.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The value in memory of its own. */
static struct mu__buf *pack(const mu_value *value, struct mu__packed *ret_packed)
{
    uint32_t head;
    uint32_t tail;
    struct mu__buf *buf;

    must(mu__value_measure(value, &head, &tail) == 0, "measure");
    buf = mu__buf_new((size_t)tail + head);
    must(buf != NULL, "memory");
    mu__value_pack(value, buf->data + tail, head, buf->data, tail);
    *ret_packed = (struct mu__packed){buf->data + tail, buf->data, head, tail};
    return buf;
}

/* A value that was understood is the same after packing and unpacking it again. */
static void check_value(const struct mu__packed *packed)
{
    struct mu__packed again;
    struct mu__buf *buf;
    mu_value *value;
    mu_value *twin;
    char why[128] = "";
    int rv = mu__value_unpack(packed, why, sizeof why, &value);

    if (rv != 0) {
        must(rv == -MU_EDATALOSS && why[0] != '\0', "value refused with a reason");
        return;
    }
    buf = pack(value, &again);
    must(mu__value_unpack(&again, why, sizeof why, &twin) == 0, "value unpacked again");
    must(mu_value_equal(value, twin) == 1, "same value");
    mu_value_free(value);
    mu_value_free(twin);
    mu__buf_unref(buf);
}

static void check_values(const struct mu__msg *msg)
{
    const struct mu__row *row = &mu__messages.rows[msg->kind];

    for (size_t i = 0; i < row->fields_count; i++) {
        const void *at = msg->body + row->fields[i].offset;
        const struct mu__packed *packed = at;

        if (row->fields[i].type == MU__FIELD_value && packed->head != NULL)
            check_value(packed);
    }
}

/* The one record of `frame`, which is ours and good. */
static struct mu__msg *decode_own(struct mu__pool *pool, struct mu__buf *frame)
{
    struct mu__msg *msg = NULL;
    size_t offset = 0;
    char why[128] = "";

    if (mu__decode(&mu__messages, pool, frame, &offset, why, sizeof why, &msg) != 0)
        (void)fprintf(stderr, "%s\n", why);
    must(msg != NULL && offset == frame->size, "own record decoded");
    return msg;
}

static struct mu__buf *encode(const struct mu__msg *msg)
{
    struct mu__buf *frame = mu__buf_new(mu__encode_bound(&mu__messages, msg));

    must(frame != NULL, "memory");
    must(mu__encode(&mu__messages, msg, frame) == 0, "encoded within its bound");
    return frame;
}

/* Encoded, decoded and encoded again, the bytes are the same. */
static void check_message(struct mu__pool *pool, const struct mu__msg *msg)
{
    struct mu__buf *once = encode(msg);
    struct mu__msg *twin = decode_own(pool, once);
    struct mu__buf *twice = encode(twin);

    must(once->size == twice->size, "same size");
    must(memcmp(once->data, twice->data, once->size) == 0, "same bytes");
    mu__pool_put(pool, twin);
    mu__buf_unref(once);
    mu__buf_unref(twice);
}

static void check_frame(struct mu__pool *pool, struct mu__buf *frame)
{
    size_t offset = 0;

    while (offset < frame->size) {
        size_t before = offset;
        struct mu__msg *msg = NULL;
        char why[128] = "";
        int rv = mu__decode(&mu__messages, pool, frame, &offset, why, sizeof why, &msg);

        if (rv != 0) {
            must(rv == -MU_EDATALOSS && offset == before, "refused, nothing moved");
            must(strncmp(why, "byte ", 5) == 0, "refused with a place");
            return;
        }
        must(offset > before && offset <= frame->size, "moved within the frame");
        if (msg == NULL)
            continue;
        must(msg->kind < MU__LOCAL_KINDS_BEGIN, "travels");
        check_message(pool, msg);
        check_values(msg);
        mu__pool_put(pool, msg);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mu__buf *frame = mu__buf_new(size);
    struct mu__pool pool;

    must(frame != NULL, "memory");
    mu__pool_init(&pool);
    if (size > 0)
        memcpy(frame->data, data, size);
    frame->size = (uint32_t)size;
    check_frame(&pool, frame);
    must(pool.live == 0, "no message is lost");
    must(frame->refs == 1, "nobody holds the frame");
    mu__buf_unref(frame);
    mu__pool_done(&pool);

    /* The same bytes as a value, without a message around it. */
    check_value(&(struct mu__packed){.head = data, .head_size = (uint32_t)size});
    return 0;
}
