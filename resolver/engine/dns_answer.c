#include "resolver/engine/dns_answer.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEADER_BYTES = 12,
    LABEL_BYTES_MAX = 63,
    WIRE_NAME_BYTES_MAX = 255,
    ALIASES_MAX = 16, /* names of one name, one after the other */
    CLASS_INTERNET = 1,
    TYPE_CNAME = 5
};

/* ---- Bytes ---- */

/* `wrong` is what is wrong at `at`, static; NULL as long as nothing is. */
struct reader {
    const uint8_t *bytes;
    size_t size;
    size_t at;
    const char *wrong;
};

static uint16_t u16_at(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static void put_u16(uint8_t *at, unsigned number)
{
    at[0] = (uint8_t)(number >> 8);
    at[1] = (uint8_t)number;
}

static bool wrong(struct reader *reader, size_t at, const char *what)
{
    reader->at = at;
    reader->wrong = what;
    return false;
}

static bool read_u16(struct reader *reader, uint16_t *ret_number)
{
    if (reader->size - reader->at < 2)
        return wrong(reader, reader->at, "it ends within a number");
    *ret_number = u16_at(reader->bytes + reader->at);
    reader->at += 2;
    return true;
}

/* What host names and names of services are made of, as a small letter; 0 for others. */
static char letter_of(uint8_t byte)
{
    if (byte >= 'A' && byte <= 'Z')
        return (char)(byte - 'A' + 'a');
    if ((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' ||
        byte == '_')
        return (char)byte;
    return '\0';
}

/* Append a label and a dot to a name of `*used` bytes. */
static bool add_label(struct reader *reader, size_t at, char *name, size_t *used)
{
    size_t size = reader->bytes[at];

    if (at + 1 + size > reader->size)
        return wrong(reader, at, "it ends within a name");
    if (*used + size + 1 >= MU__DNS_NAME_BYTES)
        return wrong(reader, at, "a name is longer than 255 bytes");
    for (size_t i = 1; i <= size; i++) {
        char letter = letter_of(reader->bytes[at + i]);

        if (letter == '\0')
            return wrong(reader, at + i, "a name has a byte that no host's name has");
        name[(*used)++] = letter;
    }
    name[(*used)++] = '.';
    return true;
}

/* Where a name goes on: it may point back to an earlier one, before `start`, where the
 * part that is read began. Each pointer leads further back, so that this ends. */
static bool follow(struct reader *reader, size_t *at, size_t *start)
{
    size_t to;

    if (reader->size - *at < 2)
        return wrong(reader, *at, "it ends within a name");
    to = u16_at(reader->bytes + *at) & 0x3FFFU;
    if (to >= *start)
        return wrong(reader, *at, "a name does not point back");
    *at = to;
    *start = to;
    return true;
}

/* Read a name into `name` (MU__DNS_NAME_BYTES), "." for the root. */
static bool read_name(struct reader *reader, char *name)
{
    size_t at = reader->at;
    size_t start = at;
    size_t end = 0; /* behind the first pointer */
    size_t used = 0;

    for (;;) {
        if (at >= reader->size)
            return wrong(reader, reader->size, "it ends within a name");
        if (reader->bytes[at] == 0)
            break;
        if (reader->bytes[at] >= 0xC0) {
            end = end == 0 ? at + 2 : end;
            if (!follow(reader, &at, &start))
                return false;
        } else if (reader->bytes[at] > LABEL_BYTES_MAX) {
            return wrong(reader, at, "a part of a name has no such length");
        } else {
            if (!add_label(reader, at, name, &used))
                return false;
            at += 1U + reader->bytes[at];
        }
    }
    reader->at = end == 0 ? at + 1 : end;
    if (used == 0)
        name[used++] = '.';
    else
        used--; /* the last dot */
    name[used] = '\0';
    return true;
}

/* ---- Requests ---- */

static int bad_name(const char *name, size_t position, const char *what,
                    mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EINVALID, "\"%.260s\": at %zu: %s", name, position,
                        what);
}

/* One part of a name, with its length before it. */
static int write_label(const char *name, size_t at, size_t size, mu_error *ret_error,
                       uint8_t *out)
{
    if (size == 0)
        return bad_name(name, at + 1, "expected a part of a name, got nothing",
                        ret_error);
    if (size > LABEL_BYTES_MAX)
        return bad_name(name, at + 1, "expected a part of at most 63 bytes", ret_error);
    *out++ = (uint8_t)size;
    for (size_t i = 0; i < size; i++) {
        if (letter_of((uint8_t)name[at + i]) == '\0')
            return bad_name(name, at + i + 1,
                            "expected a letter, a digit, \"-\", \"_\" or \".\"",
                            ret_error);
        *out++ = (uint8_t)letter_of((uint8_t)name[at + i]);
    }
    return 0;
}

int mu__dns_query_write(const char *name, int type, uint16_t id, mu_error *ret_error,
                        uint8_t *ret_bytes, size_t *ret_size)
{
    uint8_t bytes[MU__DNS_QUERY_BYTES] = {0};
    size_t size = strlen(name);
    size_t to = HEADER_BYTES;
    size_t at = 0;

    size -= size > 1 && name[size - 1] == '.';
    if (size > WIRE_NAME_BYTES_MAX - 2)
        return bad_name(name, 254, "expected a name of at most 253 bytes", ret_error);
    put_u16(bytes, id);
    bytes[2] = 0x01; /* find it out for me */
    bytes[5] = 1;    /* one request */
    do {
        size_t label = strcspn(name + at, ".");
        int rv;

        label = label < size - at ? label : size - at;
        rv = write_label(name, at, label, ret_error, bytes + to);
        if (rv != 0)
            return rv;
        to += label + 1;
        at += label + 1;
    } while (at <= size);
    put_u16(bytes + to + 1, (unsigned)type);
    put_u16(bytes + to + 3, CLASS_INTERNET);
    memcpy(ret_bytes, bytes, to + 5);
    *ret_size = to + 5;
    return 0;
}

/* ---- Answers ---- */

bool mu__dns_is_answer(const uint8_t *bytes, size_t size, const uint8_t *query,
                       size_t query_size)
{
    if (size < HEADER_BYTES || memcmp(bytes, query, 2) != 0 || (bytes[2] & 0x80) == 0)
        return false;
    /* A server that does not even understand the request may leave it out. */
    if (u16_at(bytes + 4) == 0 && mu__dns_code(bytes) != MU__DNS_FINE)
        return true;
    if (u16_at(bytes + 4) != 1 || size < query_size)
        return false;
    for (size_t i = HEADER_BYTES; i < query_size; i++) {
        char a = letter_of(bytes[i]);
        char b = letter_of(query[i]);

        if (a != b || (a == '\0' && bytes[i] != query[i]))
            return false;
    }
    return true;
}

bool mu__dns_is_cut(const uint8_t *bytes)
{
    return (bytes[2] & 0x02) != 0;
}

int mu__dns_code(const uint8_t *bytes)
{
    return bytes[3] & 0x0F;
}

const char *mu__dns_code_name(int code)
{
    static const char *const names[] = {
        "NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED",
    };

    return code >= 0 && code < 6 ? names[code] : "an error without a name";
}

struct record {
    char owner[MU__DNS_NAME_BYTES];
    uint16_t type;
    uint16_t class;
    size_t data_at;
    size_t data_size;
};

static bool read_record(struct reader *reader, struct record *ret_record)
{
    uint16_t ignored;
    uint16_t size;

    if (!read_name(reader, ret_record->owner) || !read_u16(reader, &ret_record->type) ||
        !read_u16(reader, &ret_record->class) || !read_u16(reader, &ignored) ||
        !read_u16(reader, &ignored) || !read_u16(reader, &size))
        return false;
    if (reader->size - reader->at < size)
        return wrong(reader, reader->at, "it ends within a record");
    ret_record->data_at = reader->at;
    ret_record->data_size = size;
    reader->at += size;
    return true;
}

/* The target of the alias `name` is, if it is one: 1, 0; -1: malformed. */
static int find_alias(struct reader *reader, unsigned count, char *name)
{
    struct record record;

    for (unsigned i = 0; i < count; i++) {
        if (!read_record(reader, &record))
            return -1;
        if (record.type != TYPE_CNAME || record.class != CLASS_INTERNET ||
            strcmp(record.owner, name) != 0)
            continue;
        reader->at = record.data_at;
        return read_name(reader, name) ? 1 : -1;
    }
    return 0;
}

static struct mu__dns_record *new_record(struct mu__dns_records *records)
{
    struct mu__dns_record *items;
    size_t room;

    if (records->count == records->room) {
        room = records->room == 0 ? 16 : records->room * 2;
        items = realloc(records->items, room * sizeof *items);
        if (items == NULL)
            return NULL;
        records->items = items;
        records->room = room;
    }
    records->items[records->count] = (struct mu__dns_record){0};
    return &records->items[records->count++];
}

int mu__dns_records_add(struct mu__dns_records *records, int type, const uint8_t *address)
{
    struct mu__dns_record *record = new_record(records);

    if (record == NULL)
        return -MU_ENOMEM;
    record->type = type;
    memcpy(record->address, address, type == MU__DNS_A ? 4 : 16);
    return 0;
}

static int add_service(struct reader *reader, struct mu__dns_records *records)
{
    char target[MU__DNS_NAME_BYTES];
    struct mu__dns_record *record;
    uint16_t numbers[3];

    for (int i = 0; i < 3; i++)
        if (!read_u16(reader, &numbers[i]))
            return -MU_EINVALID;
    if (!read_name(reader, target))
        return -MU_EINVALID;
    record = new_record(records);
    if (record == NULL)
        return -MU_ENOMEM;
    *record = (struct mu__dns_record){.type = MU__DNS_SRV,
                                      .priority = numbers[0],
                                      .weight = numbers[1],
                                      .port = numbers[2],
                                      .target = strdup(target)};
    if (record->target != NULL)
        return 0;
    records->count--;
    return -MU_ENOMEM;
}

static int add_address(struct reader *reader, const struct record *found,
                       struct mu__dns_records *records)
{
    if (found->data_size != (found->type == MU__DNS_A ? 4 : 16)) {
        (void)wrong(reader, found->data_at, "an address does not have its size");
        return -MU_EINVALID;
    }
    return mu__dns_records_add(records, found->type, reader->bytes + found->data_at);
}

/* The next record is behind this one, whatever it holds. */
static int add_record(struct reader *reader, const struct record *found,
                      struct mu__dns_records *records)
{
    size_t next = reader->at;
    int rv;

    if (found->type != MU__DNS_SRV)
        return add_address(reader, found, records);
    reader->at = found->data_at;
    rv = add_service(reader, records);
    if (rv == 0 && reader->at != next) {
        (void)wrong(reader, found->data_at, "a service does not have its size");
        return -MU_EINVALID;
    }
    return rv;
}

static int add_all(struct reader *reader, unsigned count, int type, const char *name,
                   struct mu__dns_records *records)
{
    struct record record;
    int rv;

    for (unsigned i = 0; i < count; i++) {
        if (!read_record(reader, &record))
            return -MU_EINVALID;
        if (record.type != type || record.class != CLASS_INTERNET ||
            strcmp(record.owner, name) != 0)
            continue;
        rv = add_record(reader, &record, records);
        if (rv != 0)
            return rv;
    }
    return 0;
}

static int read_answer(struct reader *reader, int type, struct mu__dns_records *records)
{
    char name[MU__DNS_NAME_BYTES];
    unsigned count;
    uint16_t ignored;
    size_t begin;
    int alias = 1;

    reader->at = HEADER_BYTES;
    if (reader->size < HEADER_BYTES) {
        (void)wrong(reader, 0, "it ends within its head");
        return -MU_EINVALID;
    }
    count = u16_at(reader->bytes + 6);
    if (!read_name(reader, name) || !read_u16(reader, &ignored) ||
        !read_u16(reader, &ignored))
        return -MU_EINVALID;
    begin = reader->at;
    for (unsigned i = 0; alias == 1; i++) {
        if (i > ALIASES_MAX) {
            (void)wrong(reader, begin, "an alias of an alias without end");
            return -MU_EINVALID;
        }
        reader->at = begin;
        alias = find_alias(reader, count, name);
    }
    if (alias < 0)
        return -MU_EINVALID;
    reader->at = begin;
    return add_all(reader, count, type, name, records);
}

int mu__dns_answer_read(const uint8_t *bytes, size_t size, int type, mu_error *ret_error,
                        struct mu__dns_records *records)
{
    struct reader reader = {.bytes = bytes, .size = size};
    int rv = read_answer(&reader, type, records);

    if (rv == -MU_EINVALID)
        return mu_error_set(ret_error, rv,
                            "its answer is malformed: at byte %zu of %zu: "
                            "%s",
                            reader.at, size, reader.wrong);
    return rv == 0 ? 0 : mu_error_set(ret_error, rv, "out of memory");
}

/* ---- Text ---- */

static int compare(const void *left, const void *right)
{
    const struct mu__dns_record *a = left;
    const struct mu__dns_record *b = right;
    int order;

    if (a->type != b->type)
        return a->type < b->type ? -1 : 1;
    if (a->type != MU__DNS_SRV)
        return memcmp(a->address, b->address, sizeof a->address);
    if (a->priority != b->priority)
        return a->priority < b->priority ? -1 : 1;
    order = strcmp(a->target, b->target);
    if (order != 0)
        return order;
    if (a->port != b->port)
        return a->port < b->port ? -1 : 1;
    return (a->weight > b->weight) - (a->weight < b->weight);
}

static size_t write_line(const struct mu__dns_record *record, char *out, size_t size)
{
    char address[INET6_ADDRSTRLEN] = "";
    int rv;

    if (record->type == MU__DNS_SRV) {
        rv = snprintf(out, size, "%u %u %u %s\n", record->priority, record->weight,
                      record->port, record->target);
        return (size_t)rv;
    }
    (void)inet_ntop(record->type == MU__DNS_A ? AF_INET : AF_INET6, record->address,
                    address, sizeof address);
    rv = snprintf(out, size, "%s\n", address);
    return (size_t)rv;
}

char *mu__dns_records_text(struct mu__dns_records *records, size_t *ret_size)
{
    size_t room = 1;
    size_t size = 0;
    char *text;

    for (size_t i = 0; i < records->count; i++)
        room += write_line(&records->items[i], NULL, 0);
    text = malloc(room);
    if (text == NULL)
        return NULL;
    if (records->count > 0)
        qsort(records->items, records->count, sizeof *records->items, compare);
    text[0] = '\0';
    for (size_t i = 0; i < records->count; i++)
        if (i == 0 || compare(&records->items[i - 1], &records->items[i]) != 0)
            size += write_line(&records->items[i], text + size, room - size);
    *ret_size = size;
    return text;
}

void mu__dns_records_done(struct mu__dns_records *records)
{
    for (size_t i = 0; i < records->count; i++)
        free(records->items[i].target);
    free(records->items);
    *records = (struct mu__dns_records){0};
}
