#include "resolver/engine/dns_records.h"
#include "runtime/base/array.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES_MAX = 253, LABEL_BYTES_MAX = 63 };

/* ---- Names ---- */

/* A letter of host names and names of services, as a small one; 0 for others. */
static char letter_of(char byte)
{
    if (byte >= 'A' && byte <= 'Z')
        return (char)(byte - 'A' + 'a');
    if ((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' ||
        byte == '_')
        return byte;
    return '\0';
}

static int bad_name(const char *name, size_t position, const char *what,
                    mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EINVALID, "\"%.260s\": at %zu: %s", name, position,
                        what);
}

static int check_label(const char *name, size_t at, size_t size, mu_error *ret_error)
{
    if (size == 0)
        return bad_name(name, at + 1, "expected a part of a name, got nothing",
                        ret_error);
    if (size > LABEL_BYTES_MAX)
        return bad_name(name, at + 1, "expected a part of at most 63 bytes", ret_error);
    for (size_t i = 0; i < size; i++)
        if (letter_of(name[at + i]) == '\0')
            return bad_name(name, at + i + 1,
                            "expected a letter, a digit, \"-\", \"_\" or \".\"",
                            ret_error);
    return 0;
}

int mu__dns_name_check(const char *name, mu_error *ret_error)
{
    size_t size = strlen(name);
    size_t at = 0;
    int rv = 0;

    size -= size > 1 && name[size - 1] == '.';
    if (size > NAME_BYTES_MAX)
        return bad_name(name, NAME_BYTES_MAX + 1, "expected a name of at most 253 bytes",
                        ret_error);
    while (at <= size && rv == 0) {
        size_t label = strcspn(name + at, ".");

        label = label < size - at ? label : size - at;
        rv = check_label(name, at, label, ret_error);
        at += label + 1;
    }
    return rv;
}

/* ---- Records ---- */

static struct mu__dns_record *new_record(struct mu__dns_records *records)
{
    if (!MU__ARRAY_RESERVE(&records->items, &records->room, records->count, 16))
        return NULL;
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

int mu__dns_records_add_service(struct mu__dns_records *records, uint16_t priority,
                                uint16_t weight, uint16_t port, const char *target)
{
    size_t size = strlen(target);
    struct mu__dns_record *record;
    char *copy;

    for (size_t i = 0; i < size; i++)
        if (letter_of(target[i]) == '\0' && target[i] != '.')
            return -MU_EINVALID;
    copy = strdup(size == 0 ? "." : target);
    record = copy == NULL ? NULL : new_record(records);
    if (record == NULL) {
        free(copy);
        return -MU_ENOMEM;
    }
    for (size_t i = 0; i < size; i++)
        copy[i] = copy[i] == '.' ? '.' : letter_of(copy[i]);
    *record = (struct mu__dns_record){.type = MU__DNS_SRV,
                                      .priority = priority,
                                      .weight = weight,
                                      .port = port,
                                      .target = copy};
    return 0;
}

/* ---- Text ---- */

static int compare_dns_records(const void *left, const void *right)
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

static size_t write_dns_record(const struct mu__dns_record *record, char *out,
                               size_t size)
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
        room += write_dns_record(&records->items[i], NULL, 0);
    text = malloc(room);
    if (text == NULL)
        return NULL;
    if (records->count > 0)
        qsort(records->items, records->count, sizeof *records->items,
              compare_dns_records);
    text[0] = '\0';
    for (size_t i = 0; i < records->count; i++)
        if (i == 0 ||
            compare_dns_records(&records->items[i - 1], &records->items[i]) != 0)
            size += write_dns_record(&records->items[i], text + size, room - size);
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
