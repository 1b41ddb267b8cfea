/* An etcd's data, by its JSON gateway. */
#include "tests/sim/etcd_data.h"

#include "runtime/base/base64.h"
#include "sim/world/events.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

enum { OPS_MAX = 128, REQUEST_BYTES_MAX = 1536 << 10, TTL_MIN_S = 2 };

struct bytes {
    uint8_t *data;
    size_t size;
};

struct entry {
    struct bytes key;
    struct bytes value;
    uint64_t created;
    uint64_t modified;
    uint64_t version;
    uint64_t lease;
};

struct lease {
    uint64_t id;
    uint64_t ttl_s;
    uint64_t end_ms;
};

struct etcd_data {
    struct entry *entries; /* in order of keys */
    size_t entries_count;
    struct lease *leases;
    size_t leases_count;
    uint64_t revision;
    uint64_t next_lease;
    uint64_t now_ms;
    bool full;
    bool changed; /* by the request under way: it takes the next revision */
};

/* An error in etcd's words; NULL: none. */
struct fault {
    int status;
    int code;
    const char *words;
};

static const struct fault faults[] = {
    {404, 5, "etcdserver: requested lease not found"},
    {412, 9, "etcdserver: lease already exists"},
    {400, 3, "etcdserver: too many operations in txn request"},
    {400, 3, "etcdserver: duplicate key given in txn request"},
    {400, 3, "etcdserver: key is not provided"},
    {400, 3, "etcdserver: request is too large"},
    {429, 8, "etcdserver: mvcc: database space exceeded"},
    {400, 3, "illegal base64 data at input byte 0"},
    {400, 3, "invalid character in the text"},
};

enum {
    NO_LEASE,
    LEASE_EXISTS,
    TOO_MANY_OPS,
    DUPLICATE_KEY,
    NO_KEY,
    TOO_LARGE,
    FULL,
    BAD_BASE64,
    BAD_JSON
};

/* ---- Bytes ---- */

static struct bytes bytes_of(const cJSON *object, const char *name, bool *ok)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    struct bytes bytes = {NULL, 0};

    if (!cJSON_IsString(item))
        return bytes;
    bytes.data = sim_alloc(strlen(item->valuestring) + 1);
    if (mu__base64_decode(item->valuestring, strlen(item->valuestring), bytes.data,
                          &bytes.size) != 0)
        *ok = false;
    return bytes;
}

static int compare(const struct bytes *a, const struct bytes *b)
{
    size_t size = a->size < b->size ? a->size : b->size;
    int order = size == 0 ? 0 : memcmp(a->data, b->data, size);

    if (order != 0)
        return order;
    return a->size < b->size ? -1 : a->size > b->size;
}

/* Numbers come as text, or as numbers. */
static uint64_t number_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    if (cJSON_IsString(item))
        return strtoull(item->valuestring, NULL, 10);
    return cJSON_IsNumber(item) ? (uint64_t)item->valuedouble : 0;
}

/* What is 0 is left out. */
static void add_number(cJSON *object, const char *name, uint64_t number)
{
    char text[24];

    if (number == 0)
        return;
    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    (void)cJSON_AddStringToObject(object, name, text);
}

static void add_bytes(cJSON *object, const char *name, const struct bytes *bytes)
{
    size_t size = mu__base64_size(bytes->size);
    char *text;

    if (size == 0)
        return;
    text = sim_alloc(size + 1);
    mu__base64_encode(bytes->data, bytes->size, text);
    (void)cJSON_AddStringToObject(object, name, text);
    free(text);
}

/* ---- Entries ---- */

/* The first whose key is `key` or behind it. */
static size_t find(const struct etcd_data *data, const struct bytes *key)
{
    size_t from = 0;
    size_t to = data->entries_count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (compare(&data->entries[middle].key, key) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static struct entry *get(const struct etcd_data *data, const struct bytes *key)
{
    size_t at = find(data, key);

    if (at == data->entries_count || compare(&data->entries[at].key, key) != 0)
        return NULL;
    return &data->entries[at];
}

static void remove_at(struct etcd_data *data, size_t at)
{
    free(data->entries[at].key.data);
    free(data->entries[at].value.data);
    data->entries_count--;
    memmove(&data->entries[at], &data->entries[at + 1],
            (data->entries_count - at) * sizeof *data->entries);
}

static struct lease *lease_of(const struct etcd_data *data, uint64_t id)
{
    for (size_t i = 0; i < data->leases_count; i++)
        if (data->leases[i].id == id)
            return &data->leases[i];
    return NULL;
}

static void end_lease(struct etcd_data *data, struct lease *lease)
{
    bool had_keys = false;

    for (size_t i = data->entries_count; i > 0; i--)
        if (data->entries[i - 1].lease == lease->id) {
            remove_at(data, i - 1);
            had_keys = true;
        }
    data->revision += had_keys;
    *lease = data->leases[--data->leases_count];
}

void etcd_data_set_time(struct etcd_data *data, uint64_t now_ms)
{
    data->now_ms = now_ms;
    for (size_t i = data->leases_count; i > 0; i--)
        if (data->leases[i - 1].end_ms <= now_ms)
            end_lease(data, &data->leases[i - 1]);
}

/* ---- Operations ---- */

struct range {
    struct bytes key;
    struct bytes end;
    size_t from;
    size_t to;
};

static void range_done(struct range *range)
{
    free(range->key.data);
    free(range->end.data);
}

static struct range range_of(const struct etcd_data *data, const cJSON *ask, bool *ok)
{
    struct range range = {bytes_of(ask, "key", ok), bytes_of(ask, "range_end", ok), 0, 0};

    range.from = find(data, &range.key);
    if (range.end.size > 0)
        range.to = find(data, &range.end);
    else
        range.to = range.from + (get(data, &range.key) != NULL);
    if (range.to < range.from)
        range.to = range.from;
    return range;
}

static cJSON *show(const struct entry *entry)
{
    cJSON *shown = cJSON_CreateObject();

    add_bytes(shown, "key", &entry->key);
    add_number(shown, "create_revision", entry->created);
    add_number(shown, "mod_revision", entry->modified);
    add_number(shown, "version", entry->version);
    add_bytes(shown, "value", &entry->value);
    add_number(shown, "lease", entry->lease);
    return shown;
}

static const struct fault *do_range(struct etcd_data *data, const cJSON *ask,
                                    cJSON *answer)
{
    bool ok = true;
    struct range range = range_of(data, ask, &ok);
    uint64_t limit = number_of(ask, "limit");
    cJSON *kvs = range.from < range.to ? cJSON_AddArrayToObject(answer, "kvs") : NULL;

    for (size_t i = range.from; i < range.to; i++)
        if (limit == 0 || i - range.from < limit)
            (void)cJSON_AddItemToArray(kvs, show(&data->entries[i]));
    if (limit > 0 && range.to - range.from > limit)
        (void)cJSON_AddTrueToObject(answer, "more");
    add_number(answer, "count", range.to - range.from);
    range_done(&range);
    return ok ? NULL : &faults[BAD_BASE64];
}

static struct entry *make_room(struct etcd_data *data, struct bytes key)
{
    size_t at = find(data, &key);

    data->entries =
        realloc(data->entries, (data->entries_count + 1) * sizeof *data->entries);
    assert(data->entries != NULL);
    memmove(&data->entries[at + 1], &data->entries[at],
            (data->entries_count - at) * sizeof *data->entries);
    data->entries_count++;
    data->entries[at] = (struct entry){.key = key, .created = data->revision + 1};
    return &data->entries[at];
}

static const struct fault *do_put(struct etcd_data *data, const cJSON *ask, cJSON *answer)
{
    bool ok = true;
    struct bytes key = bytes_of(ask, "key", &ok);
    struct bytes value = bytes_of(ask, "value", &ok);
    struct entry *entry = get(data, &key);

    (void)answer;
    assert(ok); /* see check_op */
    if (entry == NULL)
        entry = make_room(data, key);
    else
        free(key.data);
    free(entry->value.data);
    entry->value = value;
    entry->modified = data->revision + 1;
    entry->version++;
    entry->lease = number_of(ask, "lease");
    data->changed = true;
    return NULL;
}

static const struct fault *do_delete(struct etcd_data *data, const cJSON *ask,
                                     cJSON *answer)
{
    bool ok = true;
    struct range range = range_of(data, ask, &ok);

    for (size_t i = range.to; i > range.from; i--)
        remove_at(data, i - 1);
    data->changed |= range.to > range.from;
    add_number(answer, "deleted", range.to - range.from);
    range_done(&range);
    return NULL;
}

static const struct {
    const char *ask;
    const char *answer;
    const struct fault *(*run)(struct etcd_data *data, const cJSON *ask, cJSON *answer);
} operations[] = {
    {"request_range", "response_range", do_range},
    {"request_put", "response_put", do_put},
    {"request_delete_range", "response_delete_range", do_delete},
};

enum { RANGE, PUT, DELETE, OPERATIONS };

static cJSON *kind_of(const cJSON *op, size_t *ret_kind)
{
    for (size_t i = 0; i < OPERATIONS; i++) {
        cJSON *ask = cJSON_GetObjectItemCaseSensitive(op, operations[i].ask);

        *ret_kind = i;
        if (ask != NULL)
            return ask;
    }
    return NULL;
}

/* ---- Transactions ---- */

static const struct fault *check_op(const struct etcd_data *data, const cJSON *op)
{
    size_t kind;
    const cJSON *ask = kind_of(op, &kind);
    const struct fault *fault = NULL;
    bool ok = true;
    struct bytes key = bytes_of(ask, "key", &ok);
    struct bytes value = bytes_of(ask, "value", &ok);
    uint64_t lease = number_of(ask, "lease");

    if (!ok)
        fault = &faults[BAD_BASE64];
    else if (key.size == 0)
        fault = &faults[NO_KEY];
    else if (kind == PUT && data->full)
        fault = &faults[FULL];
    else if (kind == PUT && lease != 0 && lease_of(data, lease) == NULL)
        fault = &faults[NO_LEASE];
    free(key.data);
    free(value.data);
    return fault;
}

/* Whether a key is within a range. */
static bool is_within(const cJSON *put, const cJSON *range)
{
    bool ok = true;
    struct bytes key = bytes_of(put, "key", &ok);
    struct bytes from = bytes_of(range, "key", &ok);
    struct bytes end = bytes_of(range, "range_end", &ok);
    bool within = compare(&key, &from) >= 0 && compare(&key, &end) < 0;

    free(key.data);
    free(from.data);
    free(end.data);
    return within;
}

/* Whether `one`, a put, is of the same key as `other`, or within what that deletes. */
static bool is_duplicate(const cJSON *one, const cJSON *other)
{
    size_t kinds[2];
    const cJSON *asks[2] = {kind_of(one, &kinds[0]), kind_of(other, &kinds[1])};

    if (kinds[0] != PUT || kinds[1] == RANGE)
        return false;
    if (cJSON_GetObjectItemCaseSensitive(asks[1], "range_end") != NULL)
        return is_within(asks[0], asks[1]);
    return strcmp(cJSON_GetObjectItemCaseSensitive(asks[0], "key")->valuestring,
                  cJSON_GetObjectItemCaseSensitive(asks[1], "key")->valuestring) == 0;
}

static const struct fault *check_ops(const struct etcd_data *data, const cJSON *ops)
{
    const cJSON *one;
    const cJSON *other;

    if (cJSON_GetArraySize(ops) > OPS_MAX)
        return &faults[TOO_MANY_OPS];
    cJSON_ArrayForEach(one, ops)
    {
        const struct fault *fault = check_op(data, one);

        if (fault != NULL)
            return fault;
    }
    cJSON_ArrayForEach(one, ops)
    {
        cJSON_ArrayForEach(other, ops)
        {
            if (one != other && is_duplicate(one, other))
                return &faults[DUPLICATE_KEY];
        }
    }
    return NULL;
}

static bool holds(const struct etcd_data *data, const cJSON *comparison)
{
    bool ok = true;
    struct bytes key = bytes_of(comparison, "key", &ok);
    const cJSON *target = cJSON_GetObjectItemCaseSensitive(comparison, "target");
    const struct entry *entry = get(data, &key);
    bool create = cJSON_IsString(target) && strcmp(target->valuestring, "CREATE") == 0;
    uint64_t has = entry == NULL ? 0 : create ? entry->created : entry->version;

    free(key.data);
    return has == number_of(comparison, create ? "create_revision" : "version");
}

static void run_ops(struct etcd_data *data, const cJSON *ops, cJSON *answer)
{
    cJSON *responses =
        cJSON_GetArraySize(ops) > 0 ? cJSON_AddArrayToObject(answer, "responses") : NULL;
    const cJSON *op;

    cJSON_ArrayForEach(op, ops)
    {
        size_t kind;
        const cJSON *ask = kind_of(op, &kind);
        cJSON *response = cJSON_CreateObject();
        cJSON *inner = cJSON_AddObjectToObject(response, operations[kind].answer);
        cJSON *header = cJSON_AddObjectToObject(inner, "header");

        (void)operations[kind].run(data, ask, inner);
        add_number(header, "revision", data->revision + data->changed);
        (void)cJSON_AddItemToArray(responses, response);
    }
}

static const struct fault *ask_txn(struct etcd_data *data, const cJSON *ask,
                                   cJSON *answer)
{
    static const char *const branches[] = {"success", "failure"};
    const cJSON *compares = cJSON_GetObjectItemCaseSensitive(ask, "compare");
    const cJSON *comparison;
    bool succeeded = true;

    if (cJSON_GetArraySize(compares) > OPS_MAX)
        return &faults[TOO_MANY_OPS];
    for (size_t i = 0; i < 2; i++) {
        const struct fault *fault =
            check_ops(data, cJSON_GetObjectItemCaseSensitive(ask, branches[i]));

        if (fault != NULL)
            return fault;
    }
    cJSON_ArrayForEach(comparison, compares) succeeded &= holds(data, comparison);
    if (succeeded)
        (void)cJSON_AddTrueToObject(answer, "succeeded");
    run_ops(data, cJSON_GetObjectItemCaseSensitive(ask, branches[!succeeded]), answer);
    return NULL;
}

static const struct fault *ask_range(struct etcd_data *data, const cJSON *ask,
                                     cJSON *answer)
{
    return do_range(data, ask, answer);
}

/* ---- Leases ---- */

static const struct fault *ask_grant(struct etcd_data *data, const cJSON *ask,
                                     cJSON *answer)
{
    uint64_t id = number_of(ask, "ID");
    uint64_t ttl_s = number_of(ask, "TTL");

    if (lease_of(data, id) != NULL)
        return &faults[LEASE_EXISTS];
    if (id == 0)
        id = data->next_lease++;
    if (ttl_s < TTL_MIN_S)
        ttl_s = TTL_MIN_S;
    data->leases = realloc(data->leases, (data->leases_count + 1) * sizeof *data->leases);
    assert(data->leases != NULL);
    data->leases[data->leases_count++] =
        (struct lease){id, ttl_s, data->now_ms + ttl_s * 1000};
    add_number(answer, "ID", id);
    add_number(answer, "TTL", ttl_s);
    return NULL;
}

static const struct fault *ask_keep(struct etcd_data *data, const cJSON *ask,
                                    cJSON *answer)
{
    uint64_t id = number_of(ask, "ID");
    struct lease *lease = lease_of(data, id);
    cJSON *header = cJSON_DetachItemFromObjectCaseSensitive(answer, "header");
    cJSON *result = cJSON_AddObjectToObject(answer, "result");

    (void)cJSON_AddItemToObject(result, "header", header);
    add_number(result, "ID", id);
    if (lease == NULL)
        return NULL;
    lease->end_ms = data->now_ms + lease->ttl_s * 1000;
    add_number(result, "TTL", lease->ttl_s);
    return NULL;
}

static const struct fault *ask_revoke(struct etcd_data *data, const cJSON *ask,
                                      cJSON *answer)
{
    struct lease *lease = lease_of(data, number_of(ask, "ID"));
    cJSON *header = cJSON_GetObjectItemCaseSensitive(answer, "header");

    if (lease == NULL)
        return &faults[NO_LEASE];
    end_lease(data, lease);
    cJSON_DeleteItemFromObjectCaseSensitive(header, "revision");
    add_number(header, "revision", data->revision);
    return NULL;
}

/* ---- Requests ---- */

static const struct {
    const char *path;
    const struct fault *(*ask)(struct etcd_data *data, const cJSON *ask, cJSON *answer);
} paths[] = {
    {"/v3/kv/range", ask_range},      {"/v3/kv/txn", ask_txn},
    {"/v3/lease/grant", ask_grant},   {"/v3/lease/keepalive", ask_keep},
    {"/v3/lease/revoke", ask_revoke},
};

static char *say_fault(const struct fault *fault, int *ret_status)
{
    cJSON *answer = cJSON_CreateObject();
    char *text;

    (void)cJSON_AddStringToObject(answer, "error", fault->words);
    (void)cJSON_AddStringToObject(answer, "message", fault->words);
    (void)cJSON_AddNumberToObject(answer, "code", fault->code);
    text = cJSON_PrintUnformatted(answer);
    cJSON_Delete(answer);
    *ret_status = fault->status;
    return text;
}

/* The revision of the answer is that after the request. */
static void close_header(struct etcd_data *data, cJSON *answer)
{
    cJSON *header = cJSON_GetObjectItemCaseSensitive(answer, "header");

    if (!data->changed)
        return;
    data->changed = false;
    data->revision++;
    cJSON_DeleteItemFromObjectCaseSensitive(header, "revision");
    add_number(header, "revision", data->revision);
}

static char *answer_with(struct etcd_data *data, size_t path, const cJSON *ask,
                         int *ret_status)
{
    cJSON *answer = cJSON_CreateObject();
    cJSON *header = cJSON_AddObjectToObject(answer, "header");
    const struct fault *fault;
    char *text;

    add_number(header, "revision", data->revision);
    fault = paths[path].ask(data, ask, answer);
    close_header(data, answer);
    *ret_status = 200;
    text = fault == NULL ? cJSON_PrintUnformatted(answer) : say_fault(fault, ret_status);
    cJSON_Delete(answer);
    return text;
}

/* Base64 has a third more than what it stands for. */
static char *answer_to(struct etcd_data *data, size_t path, const void *body, size_t size,
                       int *ret_status)
{
    cJSON *ask = cJSON_ParseWithLength(body, size);
    char *text;

    if (ask == NULL)
        return say_fault(&faults[BAD_JSON], ret_status);
    if (size / 4 * 3 > REQUEST_BYTES_MAX)
        text = say_fault(&faults[TOO_LARGE], ret_status);
    else
        text = answer_with(data, path, ask, ret_status);
    cJSON_Delete(ask);
    return text;
}

char *etcd_data_ask(struct etcd_data *data, const char *path, const void *body,
                    size_t size, int *ret_status)
{
    char *text;

    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (strcmp(paths[i].path, path) == 0)
            return answer_to(data, i, body, size, ret_status);
    text = sim_alloc(16);
    (void)snprintf(text, 16, "Not Found\n");
    *ret_status = 404;
    return text;
}

/* ---- Life ---- */

struct etcd_data *etcd_data_new(void)
{
    struct etcd_data *data = sim_alloc(sizeof *data);

    data->revision = 1;
    data->next_lease = UINT64_C(7587000000000000001);
    return data;
}

void etcd_data_free(struct etcd_data *data)
{
    if (data == NULL)
        return;
    while (data->entries_count > 0)
        remove_at(data, data->entries_count - 1);
    free(data->entries);
    free(data->leases);
    free(data);
}

void etcd_data_restart(struct etcd_data *data, uint64_t now_ms)
{
    data->now_ms = now_ms;
    for (size_t i = 0; i < data->leases_count; i++)
        data->leases[i].end_ms = data->now_ms + data->leases[i].ttl_s * 1000;
}

void etcd_data_set_full(struct etcd_data *data, bool full)
{
    data->full = full;
}

const char *etcd_data_value(struct etcd_data *data, const char *key, size_t *ret_size)
{
    struct bytes bytes = {(uint8_t *)key, strlen(key)};
    const struct entry *entry = get(data, &bytes);

    if (entry == NULL)
        return NULL;
    *ret_size = entry->value.size;
    return (const char *)entry->value.data;
}

size_t etcd_data_count(struct etcd_data *data, const char *prefix)
{
    size_t size = strlen(prefix);
    size_t count = 0;

    for (size_t i = 0; i < data->entries_count; i++)
        count += data->entries[i].key.size >= size &&
                 memcmp(data->entries[i].key.data, prefix, size) == 0;
    return count;
}

uint64_t etcd_data_revision(const struct etcd_data *data)
{
    return data->revision;
}
