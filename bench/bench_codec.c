/* What one message costs on its way to and from the wire: RUN and RESULT, the two that a
 * closure needs; the arguments in between; and the memory of a message. Nanoseconds. The
 * limit is msgpack-c, packing or reading the same msgpack without any checking of it. */
#include "actors/messages.h"
#include "bench/bench.h"
#include "runtime/message/codec.h"

#include <msgpack.h>

enum { FRAME_BYTES = 1 << 16, HEAD_OFFSET = 8 };

struct setting {
    struct mu__pool pool;
    struct mu__buf *frame;
    uint64_t rounds;
};

/* FNV-1a: shows that the work was done, and stays the same when it gets faster. */
static uint64_t digest(const uint8_t *data, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static void must(bool truth, const char *what)
{
    if (truth)
        return;
    fprintf(stderr, "bench_codec: %s\n", what);
    exit(1);
}

static double per_round(const struct setting *s, uint64_t start_ns)
{
    return (double)(bench_now_ns() - start_ns) / (double)s->rounds;
}

static void report(const char *metric, double ns, double limit_ns, double target_ns,
                   uint64_t work)
{
    char extra[64];
    struct bench_line line = {
        .bench = "codec",
        .metric = metric,
        .value = ns,
        .unit = "ns",
        .limit = limit_ns,
        .target = target_ns,
        .less_is_more = true,
        .extra = extra,
    };

    (void)snprintf(extra, sizeof extra, "\"digest\":\"%016llx\"",
                   (unsigned long long)work);
    bench_report(&line);
}

/* ---- Messages ---- */

static struct mu__msg *make_run(struct mu__pool *pool)
{
    static const uint8_t args[] = {0x92, 0x2a, 0xcb, 0x3f, 0xe0, 0, 0, 0, 0, 0, 0};
    struct mu__msg *msg = mu__pool_get(pool, MU__RUN, sizeof(struct mu__run));
    struct mu__run *run;

    must(msg != NULL, "memory");
    run = (void *)msg->body;
    msg->to.actor = MU__WORKER;
    msg->from.actor = MU__SUPERVISOR;
    run->closure = 1234567;
    run->attempt = 1;
    run->function = mu__view_str("train_step");
    run->args = (struct mu__packed){.head = args, .head_size = sizeof args};
    return msg;
}

static struct mu__msg *make_result(struct mu__pool *pool)
{
    struct mu__msg *msg = mu__pool_get(pool, MU__RESULT, sizeof(struct mu__result));
    struct mu__result *result;

    must(msg != NULL, "memory");
    result = (void *)msg->body;
    msg->to.actor = MU__SUPERVISOR;
    msg->from.actor = MU__WORKER;
    result->closure = 1234567;
    result->attempt = 1;
    return msg;
}

/* As links do: records one behind the other until the frame is full. */
static double time_encode(struct setting *s, const struct mu__msg *msg)
{
    uint64_t start_ns = bench_now_ns();

    s->frame->size = 0;
    for (uint64_t i = 0; i < s->rounds; i++) {
        if (mu__encode(&mu__messages, msg, s->frame) == 0)
            continue;
        s->frame->size = 0;
        must(mu__encode(&mu__messages, msg, s->frame) == 0, "encode");
    }
    return per_round(s, start_ns);
}

static void fill_frame(struct setting *s, const struct mu__msg *msg)
{
    s->frame->size = 0;
    while (mu__encode(&mu__messages, msg, s->frame) == 0)
        continue;
}

/* With the message's memory, taken and given back. */
static double time_decode(struct setting *s)
{
    uint64_t start_ns = bench_now_ns();
    size_t offset = 0;

    for (uint64_t i = 0; i < s->rounds; i++) {
        struct mu__msg *msg;

        if (offset == s->frame->size)
            offset = 0;
        must(mu__decode(&mu__messages, &s->pool, s->frame, &offset, NULL, 0, &msg) == 0,
             "decode");
        mu__pool_put(&s->pool, msg);
    }
    return per_round(s, start_ns);
}

/* ---- The same msgpack by msgpack-c ---- */

/* msgpack-c's reader, its zone kept from one message to the next. */
static double time_msgpack_c_read(const struct setting *s, const uint8_t *head,
                                  size_t size)
{
    msgpack_zone zone;
    uint64_t start_ns;

    must(msgpack_zone_init(&zone, MSGPACK_ZONE_CHUNK_SIZE), "zone");
    start_ns = bench_now_ns();
    for (uint64_t i = 0; i < s->rounds; i++) {
        msgpack_object object;
        size_t offset = 0;

        must(msgpack_unpack((const char *)head, size, &offset, &zone, &object) ==
                 MSGPACK_UNPACK_SUCCESS,
             "msgpack_unpack");
        msgpack_zone_clear(&zone);
    }
    start_ns = bench_now_ns() - start_ns;
    msgpack_zone_destroy(&zone);
    return (double)start_ns / (double)s->rounds;
}

/* msgpack-c's packer into its own buffer, given the object that the bytes mean. */
static double time_msgpack_c_write(const struct setting *s, const uint8_t *head,
                                   size_t size)
{
    msgpack_unpacked unpacked;
    msgpack_sbuffer buffer;
    msgpack_packer packer;
    size_t offset = 0;
    uint64_t start_ns;
    double ns;

    msgpack_unpacked_init(&unpacked);
    msgpack_sbuffer_init(&buffer);
    msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
    must(msgpack_unpack_next(&unpacked, (const char *)head, size, &offset) ==
             MSGPACK_UNPACK_SUCCESS,
         "msgpack_unpack_next");
    start_ns = bench_now_ns();
    for (uint64_t i = 0; i < s->rounds; i++) {
        must(msgpack_pack_object(&packer, unpacked.data) == 0, "msgpack_pack_object");
        if (buffer.size > FRAME_BYTES)
            msgpack_sbuffer_clear(&buffer);
    }
    ns = per_round(s, start_ns);
    msgpack_sbuffer_destroy(&buffer);
    msgpack_unpacked_destroy(&unpacked);
    return ns;
}

static void bench_message(struct setting *s, struct mu__msg *msg,
                          const char *encode_metric, const char *decode_metric)
{
    uint64_t work;
    size_t head_size;
    double limit_ns;
    double ns;

    s->frame->size = 0;
    must(mu__encode(&mu__messages, msg, s->frame) == 0, "encode");
    head_size = s->frame->size - HEAD_OFFSET;
    work = digest(s->frame->data, s->frame->size);

    ns = time_encode(s, msg);
    limit_ns = time_msgpack_c_write(s, s->frame->data + HEAD_OFFSET, head_size);
    report(encode_metric, ns, limit_ns, limit_ns, work);
    fill_frame(s, msg);
    ns = time_decode(s);
    limit_ns = time_msgpack_c_read(s, s->frame->data + HEAD_OFFSET, head_size);
    report(decode_metric, ns, limit_ns, limit_ns, work);
    mu__pool_put(&s->pool, msg);
}

/* ---- Values and memory ---- */

/* Arguments as a program gives them: [42, 0.5, "abc"]. */
static void bench_value(struct setting *s)
{
    mu_value *value = mu_value_list();
    struct mu__packed packed = {.head = s->frame->data};
    uint64_t start_ns;
    uint64_t work;
    double ns;

    must(mu_value_append(value, mu_value_int(42)) == 0, "append");
    must(mu_value_append(value, mu_value_float(0.5)) == 0, "append");
    must(mu_value_append(value, mu_value_string("abc")) == 0, "append");

    start_ns = bench_now_ns();
    for (uint64_t i = 0; i < s->rounds; i++) {
        must(mu__value_measure(value, &packed.head_size, &packed.tail_size) == 0,
             "measure");
        mu__value_pack(value, s->frame->data, packed.head_size, NULL, 0);
    }
    ns = per_round(s, start_ns);
    work = digest(s->frame->data, packed.head_size);
    report("value_pack", ns, time_msgpack_c_write(s, packed.head, packed.head_size), 0,
           work);

    start_ns = bench_now_ns();
    for (uint64_t i = 0; i < s->rounds; i++) {
        mu_value *back;

        must(mu__value_unpack(&packed, NULL, 0, &back) == 0, "unpack");
        mu_value_free(back);
    }
    ns = per_round(s, start_ns);
    report("value_unpack", ns, time_msgpack_c_read(s, packed.head, packed.head_size), 0,
           work);
    mu_value_free(value);
}

/* Eight at a time, as in a mailbox; per message. */
static void bench_pool(struct setting *s)
{
    struct mu__msg *held[8];
    uint64_t start_ns = bench_now_ns();
    uint64_t work = 0;

    for (uint64_t i = 0; i < s->rounds; i += 8) {
        for (unsigned j = 0; j < 8; j++) {
            held[j] = mu__pool_get(&s->pool, MU__RUN, sizeof(struct mu__run));
            must(held[j] != NULL, "memory");
            held[j]->body[0] = (unsigned char)j;
        }
        for (unsigned j = 0; j < 8; j++) {
            work += held[j]->body[0];
            mu__pool_put(&s->pool, held[j]);
        }
    }
    report("pool_get_put", per_round(s, start_ns), 0, 0, work);
}

int main(void)
{
    struct setting s = {
        .frame = mu__buf_new(FRAME_BYTES),
        .rounds = bench_size(8000, 8000000),
    };

    must(s.frame != NULL, "memory");
    mu__pool_init(&s.pool);
    bench_message(&s, make_run(&s.pool), "encode_run", "decode_run");
    bench_message(&s, make_result(&s.pool), "encode_result", "decode_result");
    bench_value(&s);
    bench_pool(&s);
    must(s.pool.live == 0, "a message was lost");
    mu__pool_done(&s.pool);
    mu__buf_unref(s.frame);
    return 0;
}
