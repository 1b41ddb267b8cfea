/* Finding records, and telling a torn end from damage.
 *
 * Since a head has its own sum, the length of a record is known also when its bytes are
 * damaged, and a record that reaches beyond the end of the file was never whole. Where
 * the head itself is damaged, the file is searched for the next whole record. Records of
 * format 1 have no mark: any byte could begin one, so the sizes that the codec wrote into
 * the message are compared before its sum is. */
#include "actors/coordination/store/journal_scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    OLD_HEAD_BYTES = 8,    /* size and sum */
    OLD_ZEROS_MIN = 512,   /* so many zeros at the end, a sector, are no record's */
    MESSAGE_BYTES_MIN = 8, /* the two sizes of the codec */
    TAIL_ALIGN = 16
};

static const char magic[MU__JOURNAL_MAGIC_BYTES] = {'m', 'u', 's', 't',
                                                    'r', 'j', 'n', 'l'};

static uint32_t load_little32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
           (uint32_t)at[3] << 24;
}

static uint64_t load_little64(const uint8_t *at)
{
    return load_little32(at) | (uint64_t)load_little32(at + 4) << 32;
}

static void store_little32(uint8_t *out, uint32_t number)
{
    for (unsigned i = 0; i < 4; i++)
        out[i] = (uint8_t)(number >> (8 * i));
}

/* Behind the two sizes of the codec a message is a msgpack list that begins with the
 * kind. */
unsigned mu__journal_piece_message(const struct mu__journal_piece *piece)
{
    enum { SIZES_BYTES = 8 };
    const uint8_t *at = piece->message + SIZES_BYTES;
    size_t left = piece->message_bytes - SIZES_BYTES;

    if (piece->message_bytes < SIZES_BYTES)
        return 0;
    if (left >= 2 && (at[0] & 0xF0) == 0x90 && at[1] < 0x80)
        return at[1];
    if (left >= 3 && (at[0] & 0xF0) == 0x90 && at[1] == 0xCC)
        return at[2];
    if (left >= 4 && at[0] == 0xDC && at[3] < 0x80)
        return at[3];
    return left >= 5 && at[0] == 0xDC && at[3] == 0xCC ? at[4] : 0;
}

/* ---- Writing ---- */

void mu__journal_put_header(uint8_t out[MU__JOURNAL_HEADER_BYTES])
{
    memcpy(out, magic, sizeof magic);
    store_little32(out + MU__JOURNAL_MAGIC_BYTES, MU__JOURNAL_FORMAT);
}

void mu__journal_put_frame(const struct mu__crc32c *crc, uint8_t *record, uint64_t number,
                           uint32_t size)
{
    uint8_t *bytes = record + MU__JOURNAL_HEAD_BYTES;
    uint32_t head_sum;

    store_little32(record, MU__JOURNAL_MARK);
    store_little32(record + 4, size);
    store_little32(record + 8, (uint32_t)number);
    store_little32(record + 12, (uint32_t)(number >> 32));
    head_sum = mu__crc32c_add(crc, 0, record, 16);
    store_little32(record + 16, head_sum);
    store_little32(record + 20, mu__crc32c_add(crc, head_sum, bytes, size));
    store_little32(bytes + size, MU__JOURNAL_END_MARK);
}

/* ---- One record ---- */

/* The head of a record, whose sum is right. */
struct head {
    uint64_t number;
    size_t bytes; /* of the whole record; may reach beyond the file */
    size_t message_bytes;
};

static bool read_head(const struct mu__journal_scan *scan, size_t at, struct head *ret)
{
    const uint8_t *head = scan->data + at;

    if (scan->size - at < MU__JOURNAL_HEAD_BYTES ||
        load_little32(head) != MU__JOURNAL_MARK ||
        load_little32(head + 16) != mu__crc32c_add(&scan->crc, 0, head, 16))
        return false;
    ret->number = load_little64(head + 8);
    ret->message_bytes = load_little32(head + 4);
    ret->bytes = MU__JOURNAL_HEAD_BYTES + ret->message_bytes + MU__JOURNAL_FOOT_BYTES;
    return true;
}

/* `head` is that of the record at `at`, which ends within the file. */
static bool is_record_whole(const struct mu__journal_scan *scan, size_t at,
                            const struct head *head, uint32_t *ret_sum)
{
    const uint8_t *record = scan->data + at;
    const uint8_t *bytes = record + MU__JOURNAL_HEAD_BYTES;

    *ret_sum = mu__crc32c_add(&scan->crc, load_little32(record + 16), bytes,
                              head->message_bytes);
    return *ret_sum == load_little32(record + 20) &&
           load_little32(bytes + head->message_bytes) == MU__JOURNAL_END_MARK;
}

static uint32_t old_sum(const struct mu__journal_scan *scan, size_t at, uint32_t size)
{
    uint8_t head[4];
    uint32_t sum;

    store_little32(head, size);
    sum = mu__crc32c_add(&scan->crc, 0, head, sizeof head);
    return mu__crc32c_add(&scan->crc, sum, scan->data + at + OLD_HEAD_BYTES, size);
}

/* Whether a record of format 1 with a message of `size` bytes is whole at `at`. */
static bool is_old_whole(const struct mu__journal_scan *scan, size_t at, size_t size)
{
    const uint8_t *record = scan->data + at;
    const uint8_t *bytes = record + OLD_HEAD_BYTES;
    uint64_t message;
    uint32_t tail;

    if (size < MESSAGE_BYTES_MIN || size > scan->size - at - OLD_HEAD_BYTES)
        return false;
    message = MESSAGE_BYTES_MIN + (uint64_t)load_little32(bytes);
    tail = load_little32(bytes + 4);
    if (tail > 0)
        message = (message + TAIL_ALIGN - 1) / TAIL_ALIGN * TAIL_ALIGN + tail;
    return message == size &&
           load_little32(record + 4) == old_sum(scan, at, (uint32_t)size);
}

static bool is_old_record(const struct mu__journal_scan *scan, size_t at)
{
    return scan->size - at >= OLD_HEAD_BYTES + MESSAGE_BYTES_MIN &&
           is_old_whole(scan, at, load_little32(scan->data + at));
}

/* ---- The next record behind damage ---- */

/* The first whole record at `from` or behind it; the file's size when there is none. A
 * record with a number that was read already is passed over: it is part of a copy of a
 * journal within a record's bytes. */
static size_t find_record(const struct mu__journal_scan *scan, size_t from)
{
    for (size_t at = from; at + MU__JOURNAL_HEAD_BYTES <= scan->size; at++) {
        const uint8_t *next =
            memchr(scan->data + at, (int)(MU__JOURNAL_MARK & 0xFF), scan->size - at);
        struct head head;
        uint32_t sum;

        if (next == NULL)
            break;
        at = (size_t)(next - scan->data);
        if (read_head(scan, at, &head) && head.number >= scan->number &&
            head.bytes <= scan->size - at && is_record_whole(scan, at, &head, &sum))
            return at;
    }
    return scan->size;
}

static size_t find_old_record(const struct mu__journal_scan *scan, size_t from)
{
    for (size_t at = from; at + OLD_HEAD_BYTES < scan->size; at++)
        if (is_old_record(scan, at))
            return at;
    return scan->size;
}

/* ---- Pieces ---- */

static void set_piece(struct mu__journal_scan *scan, struct mu__journal_piece *piece,
                      enum mu__journal_piece_kind kind, size_t bytes)
{
    piece->kind = kind;
    piece->bytes = bytes;
    scan->at += bytes;
}

static void set_record_piece(struct mu__journal_scan *scan,
                             struct mu__journal_piece *piece, size_t head_bytes,
                             size_t message_bytes, size_t bytes)
{
    piece->message = scan->data + scan->at + head_bytes;
    piece->message_bytes = message_bytes;
    scan->number++;
    set_piece(scan, piece, MU__JOURNAL_RECORD, bytes);
}

/* Numbers are not in order: records are missing here, or doubled. */
static void set_disorder_piece(struct mu__journal_scan *scan,
                               struct mu__journal_piece *piece, const struct head *head)
{
    (void)snprintf(piece->what, sizeof piece->what,
                   "expected record %" PRIu64 ", found record %" PRIu64, scan->number,
                   head->number);
    if (head->number < scan->number) {
        set_piece(scan, piece, MU__JOURNAL_DAMAGED, head->bytes);
        return;
    }
    piece->records = head->number - scan->number;
    scan->number = head->number;
    set_piece(scan, piece, MU__JOURNAL_DAMAGED, 0);
}

/* Only in the last part of a file is what is no whole record looked at closer. */
static void set_more_piece(struct mu__journal_piece *piece, size_t needed)
{
    piece->kind = MU__JOURNAL_MORE;
    piece->bytes = needed;
}

static void next_with_head(struct mu__journal_scan *scan, struct mu__journal_piece *piece,
                           const struct head *head)
{
    size_t left = scan->size - scan->at;
    bool is_next = head->number == scan->number && head->bytes <= left;
    uint32_t sum = 0;

    if (is_next && is_record_whole(scan, scan->at, head, &sum)) {
        set_record_piece(scan, piece, MU__JOURNAL_HEAD_BYTES, head->message_bytes,
                         head->bytes);
    } else if (scan->has_more) {
        set_more_piece(piece,
                       head->number == scan->number && !is_next ? head->bytes : SIZE_MAX);
    } else if (head->number > scan->number) {
        set_disorder_piece(scan, piece, head);
    } else if (head->bytes > left) {
        set_piece(scan, piece, MU__JOURNAL_TORN, left);
    } else if (head->number < scan->number) {
        set_disorder_piece(scan, piece, head);
    } else if (scan->zeros_from < scan->at + head->bytes &&
               scan->size - scan->zeros_from >= MU__JOURNAL_FOOT_BYTES) {
        set_piece(scan, piece, MU__JOURNAL_TORN, left);
    } else {
        (void)snprintf(piece->what, sizeof piece->what,
                       "its %zu bytes have the sum %08" PRIx32 ", expected %08" PRIx32,
                       head->message_bytes, sum,
                       load_little32(scan->data + scan->at + 20));
        piece->records = 1;
        scan->number++;
        set_piece(scan, piece, MU__JOURNAL_DAMAGED, head->bytes);
    }
}

static void describe_bad_head(const struct mu__journal_scan *scan,
                              struct mu__journal_piece *piece)
{
    const uint8_t *head = scan->data + scan->at;

    if (scan->size - scan->at < MU__JOURNAL_HEAD_BYTES ||
        load_little32(head) != MU__JOURNAL_MARK)
        (void)snprintf(piece->what, sizeof piece->what,
                       "no record begins here, expected "
                       "the mark %08" PRIx32,
                       MU__JOURNAL_MARK);
    else
        (void)snprintf(piece->what, sizeof piece->what,
                       "its head has the sum %08" PRIx32 ", expected %08" PRIx32,
                       mu__crc32c_add(&scan->crc, 0, head, 16), load_little32(head + 16));
}

static void next_without_head(struct mu__journal_scan *scan,
                              struct mu__journal_piece *piece)
{
    size_t next = find_record(scan, scan->at + 1);
    size_t left = scan->size - scan->at;
    struct head head;

    if (next == scan->size && (left < MU__JOURNAL_HEAD_BYTES ||
                               scan->zeros_from < scan->at + MU__JOURNAL_HEAD_BYTES)) {
        set_piece(scan, piece, MU__JOURNAL_TORN, left);
        return;
    }
    describe_bad_head(scan, piece);
    if (next < scan->size && read_head(scan, next, &head)) {
        piece->records = head.number - scan->number;
        scan->number = head.number;
    }
    set_piece(scan, piece, MU__JOURNAL_DAMAGED, next - scan->at);
}

/* Whether the rest of the file is a torn record. It is damaged instead when its sum is
 * right for the size up to the end of the file: then only the size field is wrong. */
static bool is_old_torn(const struct mu__journal_scan *scan)
{
    size_t left = scan->size - scan->at;

    if (left < OLD_HEAD_BYTES + MESSAGE_BYTES_MIN || scan->zeros_from <= scan->at)
        return true;
    if (scan->size - scan->zeros_from >= OLD_ZEROS_MIN)
        return true;
    return load_little32(scan->data + scan->at) > left - OLD_HEAD_BYTES &&
           !is_old_whole(scan, scan->at, left - OLD_HEAD_BYTES);
}

static void scan_old_record(struct mu__journal_scan *scan,
                            struct mu__journal_piece *piece)
{
    size_t left = scan->size - scan->at;
    size_t next;

    if (is_old_record(scan, scan->at)) {
        size_t size = load_little32(scan->data + scan->at);

        set_record_piece(scan, piece, OLD_HEAD_BYTES, size, OLD_HEAD_BYTES + size);
        return;
    }
    next = find_old_record(scan, scan->at + 1);
    if (next == scan->size && is_old_torn(scan)) {
        set_piece(scan, piece, MU__JOURNAL_TORN, left);
        return;
    }
    (void)snprintf(piece->what, sizeof piece->what,
                   "no whole record is here: its size "
                   "would be %" PRIu32 ", or its sum is wrong",
                   left < 4 ? 0 : load_little32(scan->data + scan->at));
    scan->number++; /* at least one */
    set_piece(scan, piece, MU__JOURNAL_DAMAGED, next - scan->at);
}

/* ---- The scan ---- */

static size_t find_zeros(const uint8_t *data, size_t size)
{
    while (size > 0 && data[size - 1] == 0)
        size--;
    return size;
}

/* Whether this is the first part of a header, which a crash leaves of a new file. */
static bool is_header_part(const uint8_t *data, size_t size)
{
    uint8_t header[MU__JOURNAL_HEADER_BYTES];

    if (size >= sizeof header)
        return false;
    mu__journal_put_header(header);
    if (size > MU__JOURNAL_MAGIC_BYTES &&
        data[MU__JOURNAL_MAGIC_BYTES] == MU__JOURNAL_FORMAT_MIN)
        header[MU__JOURNAL_MAGIC_BYTES] = MU__JOURNAL_FORMAT_MIN;
    return size == 0 || memcmp(data, header, size) == 0;
}

int mu__journal_scan_begin(struct mu__journal_scan *scan, const void *data, size_t size,
                           const char *name, mu_error *ret_error)
{
    *scan = (struct mu__journal_scan){.data = data, .size = size, .number = 1};
    mu__crc32c_init(&scan->crc);
    scan->zeros_from = find_zeros(data, size);
    if (is_header_part(data, size))
        return 0;
    if (size < MU__JOURNAL_HEADER_BYTES || memcmp(data, magic, sizeof magic) != 0)
        return mu_error_set(ret_error, -MU_EDATALOSS,
                            "%s: expected a journal of muster, "
                            "found something else, which is left as it is: name another "
                            "file, or move this one away",
                            name);
    scan->format = load_little32(scan->data + MU__JOURNAL_MAGIC_BYTES);
    if (scan->format < MU__JOURNAL_FORMAT_MIN || scan->format > MU__JOURNAL_FORMAT)
        return mu_error_set(ret_error, -MU_EDATALOSS,
                            "%s: a journal of format %" PRIu32
                            ", expected %d to %d: it is of a newer muster, or damaged; "
                            "it is left as it is",
                            name, scan->format, (int)MU__JOURNAL_FORMAT_MIN,
                            (int)MU__JOURNAL_FORMAT);
    scan->at = MU__JOURNAL_HEADER_BYTES;
    return 0;
}

bool mu__journal_scan_headless(struct mu__journal_scan *scan, const void *data,
                               size_t size)
{
    *scan = (struct mu__journal_scan){.data = data, .size = size, .number = 1};
    mu__crc32c_init(&scan->crc);
    scan->zeros_from = find_zeros(data, size);
    scan->format = MU__JOURNAL_FORMAT;
    if (find_record(scan, 0) < size)
        return true;
    scan->format = MU__JOURNAL_FORMAT_MIN;
    return find_old_record(scan, 0) < size;
}

/* A head that is no head may be cut by the end of the part. */
static size_t needed_at(const struct mu__journal_scan *scan)
{
    return scan->format != MU__JOURNAL_FORMAT_MIN &&
                   scan->size - scan->at < MU__JOURNAL_HEAD_BYTES
               ? MU__JOURNAL_HEAD_BYTES
               : SIZE_MAX;
}

void mu__journal_scan_next(struct mu__journal_scan *scan,
                           struct mu__journal_piece *ret_piece)
{
    struct head head;

    ret_piece->offset = scan->base + scan->at;
    ret_piece->number = scan->number;
    ret_piece->records = 0;
    ret_piece->message = NULL;
    ret_piece->message_bytes = 0;
    ret_piece->what[0] = '\0';
    if (scan->at == scan->size && !scan->has_more)
        set_piece(scan, ret_piece, MU__JOURNAL_END, 0);
    else if (scan->format == 0)
        set_piece(scan, ret_piece, MU__JOURNAL_TORN, scan->size - scan->at);
    else if (scan->format != MU__JOURNAL_FORMAT_MIN && read_head(scan, scan->at, &head))
        next_with_head(scan, ret_piece, &head);
    else if (scan->has_more)
        set_more_piece(ret_piece, needed_at(scan));
    else if (scan->format == MU__JOURNAL_FORMAT_MIN)
        scan_old_record(scan, ret_piece);
    else
        next_without_head(scan, ret_piece);
}

void mu__journal_scan_move(struct mu__journal_scan *scan, const void *data, size_t size,
                           bool has_more)
{
    scan->base += scan->at;
    scan->at = 0;
    scan->data = data;
    scan->size = size;
    scan->has_more = has_more;
    scan->zeros_from = has_more ? size : find_zeros(data, size);
}

void mu__journal_scan_refuse(struct mu__journal_scan *scan,
                             const struct mu__journal_piece *damage, const char *name,
                             mu_error *ret_error)
{
    struct mu__journal_piece piece;
    uint64_t whole = 0;

    do {
        mu__journal_scan_next(scan, &piece);
        whole += piece.kind == MU__JOURNAL_RECORD;
    } while (piece.kind != MU__JOURNAL_END);
    (void)mu_error_set(ret_error, -MU_EDATALOSS,
                       "%s: record %" PRIu64 " at byte %zu is "
                       "damaged: %s; %" PRIu64 " whole records stand behind it. The file "
                       "is left as it is: \"muster journal check FILE\" shows the "
                       "damage, \"muster journal repair FILE\" keeps a copy and goes on "
                       "without what is damaged",
                       name, damage->number, damage->offset, damage->what, whole);
}
