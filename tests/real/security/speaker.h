/* A peer that has proven something, by a key, and says whatever a test wants: the wire is
 * the real one, and links it has none. It dials, and nobody can dial it. */
#ifndef MUSTER_TESTS_REAL_SECURITY_SPEAKER_H
#define MUSTER_TESTS_REAL_SECURITY_SPEAKER_H

#include "tests/real/security/at_work.h"

#include "actors/messages.h"
#include "runtime/message/codec.h"
#include "transport/link/frames.h"
#include "transport/wire/tls/key.h"
#include "transport/wire/tls/tls_identity.h"
#include "transport/wire/uv/streams.h"

enum { SPEAKER_SOON_MS = 10000 };

struct speaker {
    uv_loop_t loop;
    uv_timer_t limit;
    bool is_late;
    bool is_closed;
    struct mu__wire_uv *uv;
    struct mu__wire *wire;
    struct mu__tls_identity *identity;
    struct mu__tls_source source;
    struct mu__pool pool;
    const char *type; /* what it says to be */
    uint32_t index;
    uint64_t incarnation;
    bool is_linked;     /* the other end has answered */
    bool is_down;       /* the connection has ended */
    uint64_t pinged_ms; /* for tests that last longer than a silence may */
    uint64_t peer;      /* its incarnation */
    bool is_refused;
    char refused[512]; /* why */
    unsigned heard[MU__KINDS_END];
    uint32_t code;       /* of the last RESOLVED, KEY_DONE, KEY_LISTED, VAR_DATA */
    char words[256];     /* the same */
    uint64_t variable;   /* of the last VAR_OPENED */
    uint64_t generation; /* of the first partition of the last SERVES */
};

/* ---- saying ---- */

static inline struct mu__buf *speaker_frame(struct speaker *s, uint8_t type)
{
    const struct mu__frame_header header = {MU__FRAME_VERSION, type, s->incarnation,
                                            s->peer, 1};
    struct mu__buf *frame = s->wire->ops->buffer(s->wire, 64 << 10);

    assert_non_null(frame);
    mu__frame_write(frame, &header);
    frame->size = MU__FRAME_HEADER_BYTES;
    return frame;
}

static inline void speaker_put(struct mu__buf *frame, const struct mu__schema *schema,
                               uint16_t kind, uint32_t actor, const void *body,
                               size_t size)
{
    struct mu__msg *msg = mu__msg_heap(kind, size);

    assert_non_null(msg);
    msg->to.actor = actor;
    msg->from.actor = actor;
    memcpy(msg->body, body, size);
    assert_int_equal(mu__encode(schema, msg, frame), 0);
    free(msg);
}

static inline bool speaker_send(struct speaker *s, struct mu__buf *frame)
{
    for (int i = 0; i < 1000; i++) {
        int rv = s->wire->ops->send(s->wire, 1, frame);

        if (rv == 0)
            return true;
        if (rv != -MU_EAGAIN)
            break;
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    }
    mu__buf_unref(frame);
    return false;
}

static inline void speaker_hello(struct speaker *s)
{
    const struct mu__hello hello = {
        .cluster = mu__view_str("muster"),
        .type = mu__view_str(s->type),
        .index = s->index,
    };
    struct mu__buf *frame = speaker_frame(s, MU__FRAME_HELLO);

    speaker_put(frame, &mu__frame_messages, MU__FRAME_HELLO, 0, &hello, sizeof hello);
    (void)speaker_send(s, frame);
}

/* ---- hearing ---- */

static inline void speaker_on_up(void *owner, uint32_t connection)
{
    (void)connection;
    speaker_hello(owner);
}

static inline void speaker_on_down(void *owner, uint32_t connection, const char *reason)
{
    (void)connection;
    (void)reason;
    ((struct speaker *)owner)->is_down = true;
}

static inline void speaker_on_writable(void *owner, uint32_t out)
{
    (void)owner;
    (void)out;
}

static inline void speaker_hear_protocol(struct speaker *s, struct mu__buf *frame,
                                         const struct mu__frame_header *header)
{
    size_t offset = MU__FRAME_HEADER_BYTES;
    struct mu__msg *msg = NULL;

    assert_int_equal(
        mu__decode(&mu__frame_messages, &s->pool, frame, &offset, NULL, 0, &msg), 0);
    if (header->type == MU__FRAME_REFUSE) {
        mu__view_copy(((struct mu__refuse *)(void *)msg->body)->reason, s->refused,
                      sizeof s->refused);
        s->is_refused = true;
    } else if (header->type == MU__FRAME_HELLO) {
        s->peer = header->from;
        s->wire->ops->member(s->wire, 1);
        s->is_linked = true;
    }
    mu__pool_put(&s->pool, msg);
}

static inline void speaker_note(struct speaker *s, uint32_t code, struct mu__view words)
{
    s->code = code;
    mu__view_copy(words, s->words, sizeof s->words);
}

static inline void speaker_note_served(struct speaker *s, const struct mu__serves *body)
{
    struct mu__numbered served;

    if (mu__numbered_at(body->partitions, 0, &served))
        s->generation = served.number;
}

static inline bool speaker_on_frame(void *owner, uint32_t connection,
                                    struct mu__buf *frame)
{
    struct speaker *s = owner;
    struct mu__frame_header header;
    size_t offset = MU__FRAME_HEADER_BYTES;

    (void)connection;
    assert_int_equal(mu__frame_read(frame, &header), 0);
    if (header.type == MU__FRAME_HELLO || header.type == MU__FRAME_REFUSE)
        speaker_hear_protocol(s, frame, &header);
    for (uint32_t i = 0; header.type == MU__FRAME_DATA && i < header.count; i++) {
        struct mu__msg *msg = NULL;

        assert_int_equal(
            mu__decode(&mu__messages, &s->pool, frame, &offset, NULL, 0, &msg), 0);
        if (msg != NULL)
            s->heard[msg->kind]++;
        if (msg != NULL && msg->kind == MU__VAR_OPENED)
            s->variable = ((const struct mu__var_opened *)(void *)msg->body)->variable;
        if (msg != NULL && msg->kind == MU__SERVES)
            speaker_note_served(s, (const void *)msg->body);
        if (msg != NULL && msg->kind == MU__KEY_DONE)
            speaker_note(s, ((const struct mu__key_done *)(void *)msg->body)->code,
                         ((const struct mu__key_done *)(void *)msg->body)->message);
        if (msg != NULL && msg->kind == MU__KEY_LISTED)
            speaker_note(s, ((const struct mu__key_listed *)(void *)msg->body)->code,
                         ((const struct mu__key_listed *)(void *)msg->body)->message);
        if (msg != NULL && msg->kind == MU__VAR_DATA)
            speaker_note(s, ((const struct mu__var_data *)(void *)msg->body)->code,
                         ((const struct mu__var_data *)(void *)msg->body)->message);
        if (msg != NULL && msg->kind == MU__RESOLVED) {
            const struct mu__resolved *body = (void *)msg->body;

            speaker_note(s, body->code, body->message);
        }
        mu__pool_put(&s->pool, msg);
    }
    return true;
}

static inline void speaker_on_burst_end(void *owner)
{
    (void)owner;
}

/* ---- its life ---- */

static inline struct mu__tls_identity *speaker_identity(void *owner)
{
    return ((struct speaker *)owner)->identity;
}

static inline void speaker_on_limit(uv_timer_t *timer)
{
    ((struct speaker *)timer->data)->is_late = true;
}

static inline void speaker_on_closed(void *arg)
{
    ((struct speaker *)arg)->is_closed = true;
}

static inline struct mu__tls_identity *speaker_read_key(const char *path)
{
    struct mu__tls_identity *identity = NULL;
    struct mu__key key;
    char data[256];
    FILE *file = fopen(path, "r");
    size_t size;

    assert_non_null(file);
    size = fread(data, 1, sizeof data, file);
    (void)fclose(file);
    assert_int_equal(mu__key_parse(path, data, size, NULL, &key), 0);
    assert_int_equal(mu__tls_identity_of_key(&key, NULL, &identity), 0);
    return identity;
}

/* Run until *done, or for `ms`. */
static inline bool speaker_run(struct speaker *s, const bool *done, uint64_t ms)
{
    s->is_late = false;
    uv_update_time(&s->loop); /* else what is due at once leaves a wait without end */
    (void)uv_timer_start(&s->limit, speaker_on_limit, ms, 0);
    while (!*done && !s->is_late)
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    (void)uv_timer_stop(&s->limit);
    return *done;
}

/* With the key in this file, as that task, to a task of the cluster at work. */
static inline void speaker_open(struct speaker *s, const char *key_file, const char *type,
                                uint32_t index, size_t task)
{
    static const struct mu__wire_events events = {
        .up = speaker_on_up,
        .down = speaker_on_down,
        .writable = speaker_on_writable,
        .frame = speaker_on_frame,
        .burst_end = speaker_on_burst_end,
    };

    memset(s, 0, sizeof *s);
    s->type = type;
    s->index = index;
    s->incarnation = UINT64_C(0x5eed) + cli_now_ms();
    mu__pool_init(&s->pool);
    assert_int_equal(uv_loop_init(&s->loop), 0);
    assert_int_equal(uv_timer_init(&s->loop, &s->limit), 0);
    s->limit.data = s;
    assert_int_equal(mu__wire_uv_open_deaf(&s->loop, &events, s, NULL, &s->uv), 0);
    s->identity = speaker_read_key(key_file);
    s->source = (struct mu__tls_source){speaker_identity, s};
    mu__wire_uv_secure(s->uv, &s->source);
    s->wire = mu__wire_uv_wire(s->uv);
    assert_int_equal(s->wire->ops->dial(s->wire, 1, at_work.addresses[task]), 0);
}

static inline void speaker_close(struct speaker *s)
{
    mu__wire_uv_close(s->uv, speaker_on_closed, s);
    assert_true(speaker_run(s, &s->is_closed, SPEAKER_SOON_MS));
    uv_close((uv_handle_t *)&s->limit, NULL);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    mu__tls_identity_free(s->identity);
    assert_int_equal(s->pool.live, 0);
    mu__pool_done(&s->pool);
}

/* ---- messages ---- */

/* Which fields of a message are filled: texts say "touch", a function that is there, and
 * numbers are 1. */
enum speaker_fields { SPEAKER_NONE, SPEAKER_REQUIRED, SPEAKER_ALL, SPEAKER_WAYS };

static inline void speaker_message(struct speaker *s, uint16_t kind, uint32_t actor,
                                   enum speaker_fields fields)
{
    static const uint8_t nil[] = {0xc0};
    static const uint64_t one = 1;
    const struct mu__row *row = &mu__messages.rows[kind];
    const struct mu__view text = mu__view_str("touch");
    const struct mu__packed packed = {nil, NULL, 1, 0};
    struct mu__buf *frame = speaker_frame(s, MU__FRAME_DATA);
    alignas(16) uint8_t body[512] = {0};

    assert_true(row->body_size <= sizeof body);
    for (uint16_t i = 0; i < row->fields_count; i++) {
        const struct mu__field *field = &row->fields[i];
        uint8_t *at = body + field->offset;

        if (field->type == MU__FIELD_value)
            memcpy(at, &packed, sizeof packed);
        else if (fields == SPEAKER_NONE ||
                 (fields == SPEAKER_REQUIRED && field->required == 0))
            continue;
        else if (field->type == MU__FIELD_str && field->bound >= text.size)
            memcpy(at, &text, sizeof text);
        else if (field->type == MU__FIELD_u64 || field->type == MU__FIELD_i64)
            memcpy(at, &one, 8);
        else if (field->type == MU__FIELD_u32)
            memcpy(at, &one, 4);
    }
    speaker_put(frame, &mu__messages, kind, actor, body, row->body_size);
    (void)speaker_send(s, frame);
}

/* What was said has been handled: the other end answers a question that anybody may ask
 * (PEERS_GET), which came behind it. */
static inline void speaker_settle(struct speaker *s)
{
    const struct mu__peers_get body = {.token = 1};
    struct mu__buf *frame = speaker_frame(s, MU__FRAME_DATA);
    unsigned heard = s->heard[MU__PEERS_REPORT];
    uint64_t deadline_ms = cli_now_ms() + SPEAKER_SOON_MS;

    speaker_put(frame, &mu__messages, MU__PEERS_GET, MU__PEERS, &body, sizeof body);
    assert_true(speaker_send(s, frame));
    while (s->heard[MU__PEERS_REPORT] == heard && cli_now_ms() < deadline_ms) {
        bool never = false;

        (void)speaker_run(s, &never, 5);
    }
    if (s->heard[MU__PEERS_REPORT] == heard)
        fail_msg("as /job:%s/task:%u: not answered any more", s->type,
                 (unsigned)s->index);
}

#endif
