/* The generic codec. Decoding runs millions of times a second: it is one pass over the
 * row's fields with the readers inlined; error messages are made in separate functions,
 * which are reached on bad bytes only. */
#include "runtime/message/codec.h"

#include "runtime/message/pack.h"
#include "runtime/message/unpack.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

enum {
    PREFIX_BYTES = 8,   /* head_size and tail_size */
    ADDRESS_FIELDS = 3, /* kind, to.actor, from.actor stand before the fields */
    ARRAY_BYTES_MAX = 5,
    U64_BYTES_MAX = 9,
    U32_BYTES_MAX = 5
};

static const struct mu__row *find_row(const struct mu__schema *schema, uint64_t kind)
{
    if (kind >= schema->rows_count || schema->rows[kind].name == NULL)
        return NULL;
    return &schema->rows[kind];
}

static bool is_local(const struct mu__schema *schema, uint64_t kind)
{
    return kind >= MU__LOCAL_KINDS_BEGIN && kind < mu__schema_kinds_end(schema) &&
           mu__schema_name(schema, (uint16_t)kind) != NULL;
}

/* Bytes from an offset to the next multiple of MU__TAIL_ALIGN. */
static size_t padding_after(size_t offset)
{
    return (0 - offset) & (MU__TAIL_ALIGN - 1);
}

/* ---- Encoding ---- */

/* The bytes behind the head: those of the one field of type value or raw. */
struct tail {
    const void *data;
    uint32_t size;
};

/* A record being encoded. */
struct encoder {
    struct mu__writer out;
    struct mu__buf *frame;
    struct mu__buf *backing; /* of the message; may be NULL */
    struct tail tail;
};

static bool is_spliceable(const struct mu__buf *backing, const void *data, size_t size)
{
    return size >= MU__SPLICE_BYTES_MIN && backing != NULL &&
           mu__buf_has(backing, data, size);
}

static uint32_t spliced_bytes_max(const struct mu__splices *splices)
{
    return splices->bytes_max != 0 ? splices->bytes_max : MU__ENCODED_BYTES_MAX;
}

/* Add bytes as a splice; false: they must be copied. */
static bool add_splice(struct encoder *e, const void *data, uint32_t size)
{
    struct mu__splices *splices = e->frame->splices;
    uint32_t own = (uint32_t)(e->out.at - e->frame->data);

    if (splices == NULL || splices->count == MU__SPLICES_MAX ||
        !is_spliceable(e->backing, data, size) ||
        (uint64_t)own + splices->bytes + size > spliced_bytes_max(splices))
        return false;
    splices->items[splices->count++] =
        (struct mu__splice){data, mu__buf_ref(e->backing), size, own};
    splices->bytes += size;
    return true;
}

static uint32_t count_splices(const struct mu__buf *frame)
{
    return frame->splices == NULL ? 0 : frame->splices->count;
}

static int put_bytes(struct encoder *e, const void *data, uint32_t size)
{
    if (size == 0 || add_splice(e, data, size))
        return 0;
    return mu__writer_put(&e->out, data, size);
}

_Static_assert(offsetof(struct mu__view, data) == 0 &&
                   offsetof(struct mu__packed, head) == 0 &&
                   sizeof(void *) == sizeof(uint64_t),
               "whether a field is there shows in its first bytes");

/* An optional field with this content is left out. A float is compared by its bits, so
 * that -0.0 travels; of views and values the pointer counts, which stands first. */
static inline bool is_field_absent(const struct mu__field *field, const void *at)
{
    uint64_t bits;

    if (field->type == MU__FIELD_u32)
        return *(const uint32_t *)at == 0;
    if (field->type == MU__FIELD_flag)
        return !*(const bool *)at;
    memcpy(&bits, at, sizeof bits);
    return bits == 0;
}

static bool is_within_bound(uint64_t number, uint32_t bound)
{
    return bound == 0 || number <= bound;
}

static int check_packed(int packed)
{
    return packed == 0 ? 0 : -MU_EEXHAUSTED;
}

static int encode_bin(struct encoder *e, const void *data, uint32_t size)
{
    if (msgpack_pack_bin(&e->out, size) != 0)
        return -MU_EEXHAUSTED;
    return check_packed(put_bytes(e, data, size));
}

static int encode_bytes(const struct mu__field *field, const struct mu__view *view,
                        struct encoder *e)
{
    if (view->size > field->bound)
        return -MU_ERANGE;
    if (field->type == MU__FIELD_str)
        return check_packed(mu__pack_str(&e->out, view->data, view->size));
    if (field->type == MU__FIELD_bytes)
        return encode_bin(e, view->data, view->size);
    e->tail = (struct tail){view->data, view->size};
    return check_packed(msgpack_pack_uint32(&e->out, view->size));
}

/* Without a head the value is nil, which has no tail. */
static int encode_value(const struct mu__field *field, const struct mu__packed *packed,
                        struct encoder *e)
{
    if ((uint64_t)packed->head_size + packed->tail_size > field->bound)
        return -MU_ERANGE;
    if (packed->head_size > 0)
        e->tail = (struct tail){packed->tail, packed->tail_size};
    return encode_bin(e, packed->head, packed->head_size);
}

/* A number or flag. The cursor is passed apart from the encoder, so that the compiler can
 * keep it in registers. */
static inline int encode_number(const struct mu__field *field, const void *at,
                                struct mu__writer *out)
{
    switch ((enum mu__field_type)field->type) {
    case MU__FIELD_u64:
        if (!is_within_bound(*(const uint64_t *)at, field->bound))
            return -MU_ERANGE;
        return check_packed(msgpack_pack_uint64(out, *(const uint64_t *)at));
    case MU__FIELD_u32:
        if (!is_within_bound(*(const uint32_t *)at, field->bound))
            return -MU_ERANGE;
        return check_packed(msgpack_pack_uint32(out, *(const uint32_t *)at));
    case MU__FIELD_i64:
        return check_packed(msgpack_pack_int64(out, *(const int64_t *)at));
    case MU__FIELD_f64:
        return check_packed(msgpack_pack_double(out, *(const double *)at));
    case MU__FIELD_flag:
        return check_packed(*(const bool *)at ? msgpack_pack_true(out)
                                              : msgpack_pack_false(out));
    case MU__FIELD_str:
    case MU__FIELD_bytes:
    case MU__FIELD_raw:
    case MU__FIELD_value:
        break;
    }
    return -MU_EINVALID;
}

static inline bool is_bytes(const struct mu__field *field)
{
    return field->type == MU__FIELD_str || field->type == MU__FIELD_bytes ||
           field->type == MU__FIELD_raw || field->type == MU__FIELD_value;
}

/* Fields to write: those behind the last one that is present are left out. They are
 * compared one by one, because the padding between them is undefined. */
static size_t count_present(const struct mu__row *row, const unsigned char *body)
{
    size_t count = row->fields_count;

    while (count > row->required_count &&
           is_field_absent(&row->fields[count - 1], body + row->fields[count - 1].offset))
        count--;
    return count;
}

static int encode_head(const struct mu__row *row, const struct mu__msg *msg,
                       struct encoder *e)
{
    size_t count = count_present(row, msg->body);
    struct mu__writer out = e->out;

    if (msgpack_pack_array(&out, ADDRESS_FIELDS + count) != 0 ||
        msgpack_pack_uint16(&out, msg->kind) != 0 ||
        msgpack_pack_uint32(&out, msg->to.actor) != 0 ||
        msgpack_pack_uint32(&out, msg->from.actor) != 0)
        return -MU_EEXHAUSTED;

    for (size_t i = 0; i < count; i++) {
        const struct mu__field *field = &row->fields[i];
        const void *at = msg->body + field->offset;
        int rv;

        if (!field->required && is_field_absent(field, at)) {
            rv = check_packed(msgpack_pack_nil(&out));
        } else if (is_bytes(field)) {
            e->out = out;
            rv = field->type == MU__FIELD_value ? encode_value(field, at, e)
                                                : encode_bytes(field, at, e);
            out = e->out;
        } else {
            rv = encode_number(field, at, &out);
        }
        if (rv != 0)
            return rv;
    }
    e->out = out;
    return 0;
}

/* The offset of the cursor in the frame's content, splices included. */
static size_t get_encoded_size(const struct encoder *e)
{
    return (size_t)(e->out.at - e->frame->data) +
           (e->frame->splices == NULL ? 0 : e->frame->splices->bytes);
}

/* Padding and tail, when there is a tail. */
static int encode_tail(struct encoder *e)
{
    static const uint8_t zeros[MU__TAIL_ALIGN];

    if (e->tail.size == 0)
        return 0;
    if (mu__writer_put(&e->out, zeros, padding_after(get_encoded_size(e))) != 0)
        return -MU_EEXHAUSTED;
    return check_packed(put_bytes(e, e->tail.data, e->tail.size));
}

/* The head and the tail; the sizes before them are stored last, when they are known. */
static int encode_record(const struct mu__row *row, const struct mu__msg *msg,
                         struct encoder *e)
{
    uint8_t *begin = e->out.at;
    size_t head_begin;
    size_t head_size;
    int rv;

    e->out.at += PREFIX_BYTES;
    head_begin = get_encoded_size(e);
    rv = encode_head(row, msg, e);
    if (rv != 0)
        return rv;
    head_size = get_encoded_size(e) - head_begin;
    rv = encode_tail(e);
    if (rv != 0)
        return rv;
    mu__store_little32(begin, (uint32_t)head_size);
    mu__store_little32(begin + 4, e->tail.size);
    return 0;
}

int mu__encode(const struct mu__schema *schema, const struct mu__msg *msg,
               struct mu__buf *frame)
{
    const struct mu__row *row = find_row(schema, msg->kind);
    uint32_t splices_count = count_splices(frame);
    struct encoder e = {
        .out = {frame->data + frame->size, frame->data + frame->capacity},
        .frame = frame,
        .backing = msg->backing,
    };
    int rv;

    if (row == NULL)
        return -MU_EINVALID;
    if (frame->capacity - frame->size < PREFIX_BYTES)
        return -MU_EEXHAUSTED;

    rv = encode_record(row, msg, &e);
    if (rv == 0 && splices_count < count_splices(frame) &&
        get_encoded_size(&e) > spliced_bytes_max(frame->splices))
        rv = -MU_EEXHAUSTED;
    if (rv != 0)
        mu__buf_cut_splices(frame, splices_count);
    else
        frame->size = (uint32_t)(e.out.at - frame->data);
    return rv;
}

static size_t field_spliceable(const struct mu__field *field, const void *at,
                               const struct mu__buf *backing)
{
    const struct mu__view *view = at;
    const struct mu__packed *packed = at;
    size_t bytes = 0;

    if (field->type == MU__FIELD_value) {
        bytes += is_spliceable(backing, packed->head, packed->head_size)
                     ? packed->head_size
                     : 0;
        bytes += is_spliceable(backing, packed->tail, packed->tail_size)
                     ? packed->tail_size
                     : 0;
    }
    if ((field->type == MU__FIELD_bytes || field->type == MU__FIELD_raw) &&
        is_spliceable(backing, view->data, view->size))
        bytes += view->size;
    return bytes;
}

size_t mu__encode_spliceable(const struct mu__schema *schema, const struct mu__msg *msg)
{
    const struct mu__row *row = find_row(schema, msg->kind);
    size_t bytes = 0;

    for (size_t i = 0; row != NULL && msg->backing != NULL && i < row->fields_count; i++)
        bytes += field_spliceable(&row->fields[i], msg->body + row->fields[i].offset,
                                  msg->backing);
    return bytes;
}

/* The most bytes that one field takes, its share of the tail included. */
static size_t field_bytes_max(const struct mu__field *field, const void *at)
{
    const struct mu__view *view = at;
    const struct mu__packed *packed = at;

    switch ((enum mu__field_type)field->type) {
    case MU__FIELD_u32:
        return U32_BYTES_MAX;
    case MU__FIELD_flag:
        return 1;
    case MU__FIELD_str:
    case MU__FIELD_bytes:
        return mu__pack_str_size(view->size) + 1 + (size_t)view->size;
    case MU__FIELD_raw:
        return U32_BYTES_MAX + (size_t)MU__TAIL_ALIGN - 1 + view->size;
    case MU__FIELD_value:
        return mu__pack_bin_size(packed->head_size) + (size_t)packed->head_size +
               MU__TAIL_ALIGN - 1 + packed->tail_size;
    case MU__FIELD_u64:
    case MU__FIELD_i64:
    case MU__FIELD_f64:
        break;
    }
    return U64_BYTES_MAX;
}

size_t mu__encode_bound(const struct mu__schema *schema, const struct mu__msg *msg)
{
    const struct mu__row *row = find_row(schema, msg->kind);
    size_t bytes = PREFIX_BYTES + ARRAY_BYTES_MAX + ADDRESS_FIELDS * U32_BYTES_MAX;

    if (row == NULL)
        return bytes;
    for (size_t i = 0; i < row->fields_count; i++)
        bytes += field_bytes_max(&row->fields[i], msg->body + row->fields[i].offset);
    return bytes;
}

/* ---- Decoding ---- */

/* A record being decoded. */
struct record {
    struct mu__reader head; /* the cursor; its end is the head's */
    const uint8_t *frame;   /* begin of the frame, for offsets in error messages */
    const uint8_t *tail;
    uint32_t tail_size;
    uint32_t items;  /* of the head's array */
    bool borrows;    /* a field points into the frame */
    bool tail_taken; /* a field has taken the tail */
    char *why;
    size_t why_size;
};

__attribute__((format(printf, 2, 3), cold)) static int refuse_codec_record(
    const struct record *record, const char *format, ...)
{
    size_t byte = (size_t)(record->head.at - record->frame);
    va_list arguments;
    int length;

    length = snprintf(record->why, record->why_size, "byte %zu: ", byte);
    if (length < 0 || (size_t)length >= record->why_size)
        return -MU_EDATALOSS;
    va_start(arguments, format);
    vsnprintf(record->why + length, record->why_size - (size_t)length, format, arguments);
    va_end(arguments);
    return -MU_EDATALOSS;
}

/* Names of the field types, for error messages. */
static const char *const field_words[] = {
    [MU__FIELD_u64] = "an unsigned number",
    [MU__FIELD_u32] = "an unsigned number of 32 bits",
    [MU__FIELD_i64] = "a signed number of 64 bits",
    [MU__FIELD_f64] = "a float",
    [MU__FIELD_flag] = "a truth value",
    [MU__FIELD_str] = "a string",
    [MU__FIELD_bytes] = "bytes",
    [MU__FIELD_raw] = "the size of the tail",
    [MU__FIELD_value] = "bytes of a value",
};

__attribute__((cold)) static int refuse_field(
    const struct record *record, const struct mu__row *row, const struct mu__field *field)
{
    const char *found = mu__wire_word(&record->head);

    if (field->bound == 0)
        return refuse_codec_record(record, "%s.%s: expected %s, found %s", row->name,
                                   field->name, field_words[field->type], found);
    return refuse_codec_record(record,
                               "%s.%s: expected %s (at most %u), found %s that is not so",
                               row->name, field->name, field_words[field->type],
                               (unsigned)field->bound, found);
}

/* Read the sizes before the head and check them against the frame; moves the cursor to
 * the head. */
static int open_record(const struct mu__buf *frame, size_t offset, struct record *record)
{
    size_t left = frame->size - offset;
    size_t head_end;
    size_t padding;
    uint32_t head_size;

    if (left < PREFIX_BYTES)
        return refuse_codec_record(record,
                                   "expected the %d bytes before a record, found %zu",
                                   PREFIX_BYTES, left);
    head_size = mu__load_little32(record->head.at);
    record->tail_size = mu__load_little32(record->head.at + 4);
    left -= PREFIX_BYTES;
    if (head_size > left)
        return refuse_codec_record(record,
                                   "a head of %u bytes in a frame that has %zu left",
                                   (unsigned)head_size, left);

    left -= head_size;
    head_end = offset + PREFIX_BYTES + head_size;
    padding = record->tail_size == 0 ? 0 : padding_after(head_end);
    if ((uint64_t)padding + record->tail_size > left)
        return refuse_codec_record(record,
                                   "a tail of %u bytes in a frame that has %zu left",
                                   (unsigned)record->tail_size, left);
    record->head.at += PREFIX_BYTES;
    record->head.end = frame->data + head_end;
    record->tail = record->head.end + padding;
    for (const uint8_t *pad = record->head.end; pad < record->tail; pad++)
        if (*pad != 0)
            return refuse_codec_record(record, "the bytes before the tail are not zero");
    return 0;
}

/* The readers of fields get the cursor apart from the record, so that the compiler can
 * keep it in registers. A reader that fails may have moved it. */
static inline bool decode_bytes(const struct mu__field *field, struct mu__reader *in,
                                struct record *record, struct mu__view *ret_view)
{
    const uint8_t *data;
    uint32_t size;
    bool read = field->type == MU__FIELD_str ? mu__read_str(in, &data, &size)
                                             : mu__read_bin(in, &data, &size);

    if (!read || size > field->bound)
        return false;
    *ret_view = (struct mu__view){data, size};
    record->borrows = true;
    return true;
}

/* An empty raw field has a data pointer; an absent one has NULL. */
static inline bool decode_raw(const struct mu__field *field, struct mu__reader *in,
                              struct record *record, struct mu__view *ret_view)
{
    uint64_t size;

    if (!mu__read_u64_up_to(in, field->bound, &size) || size != record->tail_size)
        return false;
    *ret_view = (struct mu__view){record->tail, (uint32_t)size};
    record->borrows = true;
    record->tail_taken = true;
    return true;
}

static inline bool decode_value(const struct mu__field *field, struct mu__reader *in,
                                struct record *record, struct mu__packed *ret_packed)
{
    const uint8_t *data;
    uint32_t size;

    if (!mu__read_bin(in, &data, &size) ||
        (uint64_t)size + record->tail_size > field->bound)
        return false;
    ret_packed->head = data;
    ret_packed->head_size = size;
    record->borrows = true;
    if (size == 0 || record->tail_size == 0)
        return true;
    ret_packed->tail = record->tail;
    ret_packed->tail_size = record->tail_size;
    record->tail_taken = true;
    return true;
}

static inline bool decode_field(const struct mu__field *field, struct mu__reader *in,
                                struct record *record, void *at)
{
    uint64_t number;

    switch ((enum mu__field_type)field->type) {
    case MU__FIELD_u64:
        if (!mu__read_u64(in, &number) || !is_within_bound(number, field->bound))
            return false;
        *(uint64_t *)at = number;
        return true;
    case MU__FIELD_u32:
        if (!mu__read_u64_up_to(in, UINT32_MAX, &number) ||
            !is_within_bound(number, field->bound))
            return false;
        *(uint32_t *)at = (uint32_t)number;
        return true;
    case MU__FIELD_i64:
        return mu__read_i64(in, at);
    case MU__FIELD_f64:
        return mu__read_f64(in, at);
    case MU__FIELD_flag:
        return mu__read_flag(in, at);
    case MU__FIELD_str:
    case MU__FIELD_bytes:
        return decode_bytes(field, in, record, at);
    case MU__FIELD_raw:
        return decode_raw(field, in, record, at);
    case MU__FIELD_value:
        return decode_value(field, in, record, at);
    }
    return false;
}

/* Refuse an array that is too short for the required fields. */
static int check_missing(const struct mu__row *row, const struct record *record)
{
    if (record->items >= row->required_count)
        return 0;
    return refuse_codec_record(record, "%s lacks %s, which is required", row->name,
                               row->fields[record->items].name);
}

/* The fields of the row. The body is zeroed already, as absent fields must be. */
static int decode_fields(const struct mu__row *row, struct record *record,
                         unsigned char *body)
{
    const struct mu__field *field = row->fields;
    const struct mu__field *end = field + row->fields_count;
    struct mu__reader in = record->head;

    if (record->items < row->fields_count)
        end = field + record->items;
    for (; field < end; field++) {
        record->head.at = in.at;
        if (!field->required && mu__read_nil(&in))
            continue;
        if (!decode_field(field, &in, record, body + field->offset))
            return refuse_field(record, row, field);
    }
    record->head.at = in.at;
    return check_missing(row, record);
}

/* Skip the fields that a newer peer appended, to which a tail may belong; anything else
 * that is left over is refused. */
static int decode_rest(const struct mu__row *row, struct record *record)
{
    for (uint32_t i = row->fields_count; i < record->items; i++)
        if (!mu__skip(&record->head))
            return refuse_codec_record(
                record, "%s: field %u, unknown here, is no msgpack: found %s", row->name,
                (unsigned)i, mu__wire_word(&record->head));
    if (record->head.at != record->head.end)
        return refuse_codec_record(record,
                                   "%s: the head has %zu bytes behind its last field",
                                   row->name, mu__reader_left(&record->head));
    if (record->tail_size > 0 && !record->tail_taken &&
        record->items <= row->fields_count)
        return refuse_codec_record(record, "%s: a tail of %u bytes that no field takes",
                                   row->name, (unsigned)record->tail_size);
    return 0;
}

/* The array's length and the kind. *ret_row is NULL when the kind is unknown here; then
 * the rest of the head is not read. */
static int decode_address(const struct mu__schema *schema, struct record *record,
                          uint16_t *ret_kind, const struct mu__row **ret_row)
{
    const struct mu__row *row;
    uint64_t kind;

    if (!mu__read_array(&record->head, &record->items) || record->items < ADDRESS_FIELDS)
        return refuse_codec_record(record,
                                   "expected a list of %d items or more, found %s",
                                   ADDRESS_FIELDS, mu__wire_word(&record->head));
    record->items -= ADDRESS_FIELDS;
    if (!mu__read_u64(&record->head, &kind))
        return refuse_codec_record(record, "expected a message's kind, found %s",
                                   mu__wire_word(&record->head));
    if (is_local(schema, kind))
        return refuse_codec_record(record, "a message of kind %s does not travel",
                                   mu__schema_name(schema, (uint16_t)kind));
    row = find_row(schema, kind);
    *ret_kind = (uint16_t)kind;
    *ret_row = row;
    return 0;
}

static int decode_message(const struct mu__row *row, struct record *record,
                          struct mu__msg *msg)
{
    uint64_t to;
    uint64_t from;
    int rv;

    if (!mu__read_u64_up_to(&record->head, UINT32_MAX, &to) ||
        !mu__read_u64_up_to(&record->head, UINT32_MAX, &from))
        return refuse_codec_record(record, "%s: expected an actor's number, found %s",
                                   row->name, mu__wire_word(&record->head));
    msg->to.actor = (uint32_t)to;
    msg->from.actor = (uint32_t)from;
    rv = decode_fields(row, record, msg->body);
    return rv != 0 ? rv : decode_rest(row, record);
}

int mu__decode(const struct mu__schema *schema, struct mu__pool *pool,
               struct mu__buf *frame, size_t *offset, char *why, size_t why_size,
               struct mu__msg **ret_msg)
{
    struct record record = {
        .head = {frame->data + *offset, frame->data + frame->size},
        .frame = frame->data,
        .why = why,
        .why_size = why_size,
    };
    const struct mu__row *row = NULL;
    struct mu__msg *msg = NULL;
    uint16_t kind = 0;
    int rv;

    assert(*offset <= frame->size);
    assert(((uintptr_t)frame->data & (MU__TAIL_ALIGN - 1)) == 0);
    rv = open_record(frame, *offset, &record);
    if (rv == 0)
        rv = decode_address(schema, &record, &kind, &row);
    if (rv != 0)
        return rv;

    if (row != NULL) {
        msg = mu__pool_get(pool, kind, row->body_size);
        if (msg == NULL)
            return -MU_ENOMEM;
        rv = decode_message(row, &record, msg);
        if (rv != 0) {
            mu__pool_put(pool, msg);
            return rv;
        }
        if (record.borrows)
            msg->backing = mu__buf_ref(frame);
    }
    *offset = (size_t)(record.tail - frame->data) + record.tail_size;
    *ret_msg = msg;
    return 0;
}
