#include "runtime/document/etcd.h"

#include "runtime/base/base64.h"
#include "runtime/base/text.h"
#include "runtime/document/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_BYTES = 200 };

/* ---- Requests ---- */

static void add_base64(struct mu__build *body, const char *before, struct mu__view bytes)
{
    mu__build_format(body, "%s\"", before);
    mu__build_base64(body, bytes.data, bytes.size);
    mu__build_add(body, "\"");
}

static void add_etcd_number(struct mu__build *body, const char *before, uint64_t number)
{
    mu__build_format(body, "%s\"%" PRIu64 "\"", before, number);
}

/* A comma before all but the first of a list. */
static void add_etcd_comma(struct mu__build *body)
{
    if (!body->failed && body->text[body->size - 1] != '[')
        mu__build_add(body, ",");
}

void mu__etcd_grant(struct mu__build *body, uint64_t lease, uint64_t ttl_s)
{
    add_etcd_number(body, "{\"ID\":", lease);
    add_etcd_number(body, ",\"TTL\":", ttl_s);
    mu__build_add(body, "}");
}

void mu__etcd_keep(struct mu__build *body, uint64_t lease)
{
    add_etcd_number(body, "{\"ID\":", lease);
    mu__build_add(body, "}");
}

void mu__etcd_revoke(struct mu__build *body, uint64_t lease)
{
    mu__etcd_keep(body, lease);
}

static void add_text(struct mu__build *body, const char *before, struct mu__view text)
{
    mu__build_add(body, before);
    mu__build_json(body, text.data, text.size);
}

void mu__etcd_authenticate(struct mu__build *body, struct mu__view user,
                           struct mu__view password)
{
    add_text(body, "{\"name\":", user);
    add_text(body, ",\"password\":", password);
    mu__build_add(body, "}");
}

void mu__etcd_range(struct mu__build *body, struct mu__view key, struct mu__view end,
                    uint64_t limit)
{
    add_base64(body, "{\"key\":", key);
    if (end.size > 0)
        add_base64(body, ",\"range_end\":", end);
    if (limit > 0)
        add_etcd_number(body, ",\"limit\":", limit);
    mu__build_add(body, "}");
}

void mu__etcd_range_newest(struct mu__build *body, struct mu__view key,
                           struct mu__view end)
{
    add_base64(body, "{\"key\":", key);
    add_base64(body, ",\"range_end\":", end);
    mu__build_add(body,
                  ",\"limit\":\"1\",\"sort_order\":\"DESCEND\",\"sort_target\":\"MOD\"}");
}

void mu__etcd_txn_begin(struct mu__build *body)
{
    mu__build_add(body, "{\"compare\":[");
}

void mu__etcd_txn_then(struct mu__build *body)
{
    mu__build_add(body, "],\"success\":[");
}

void mu__etcd_txn_else(struct mu__build *body)
{
    mu__build_add(body, "],\"failure\":[");
}

void mu__etcd_txn_end(struct mu__build *body)
{
    mu__build_add(body, "]}");
}

void mu__etcd_txn_compare(struct mu__build *body, enum mu__etcd_target target,
                          struct mu__view key, uint64_t number)
{
    bool create = target == MU__ETCD_CREATE;

    add_etcd_comma(body);
    mu__build_add(body, create ? "{\"target\":\"CREATE\"" : "{\"target\":\"VERSION\"");
    add_base64(body, ",\"key\":", key);
    add_etcd_number(body, create ? ",\"create_revision\":" : ",\"version\":", number);
    mu__build_add(body, "}");
}

void mu__etcd_txn_put(struct mu__build *body, struct mu__view key, struct mu__view value,
                      uint64_t lease)
{
    add_etcd_comma(body);
    add_base64(body, "{\"request_put\":{\"key\":", key);
    add_base64(body, ",\"value\":", value);
    if (lease != 0)
        add_etcd_number(body, ",\"lease\":", lease);
    mu__build_add(body, "}}");
}

void mu__etcd_txn_delete(struct mu__build *body, struct mu__view key, struct mu__view end)
{
    add_etcd_comma(body);
    add_base64(body, "{\"request_delete_range\":{\"key\":", key);
    if (end.size > 0)
        add_base64(body, ",\"range_end\":", end);
    mu__build_add(body, "}}");
}

void mu__etcd_txn_range(struct mu__build *body, struct mu__view key)
{
    add_etcd_comma(body);
    add_base64(body, "{\"request_range\":{\"key\":", key);
    mu__build_add(body, "}}");
}

/* ---- Answers ---- */

struct mu__etcd_answer {
    cJSON root; /* an answer is never allocated itself: it is a cJSON tree */
};

static cJSON *root_of(const struct mu__etcd_answer *answer)
{
    return (cJSON *)&answer->root;
}

static cJSON *find_etcd_member(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static int refuse_etcd_member(mu_error *ret_error, const char *key, const cJSON *item,
                              const char *expected)
{
    char shown[MU__QUOTE_BYTES + 16];

    mu__json_describe(item, shown, sizeof shown);
    return mu_error_set(ret_error, -MU_EDATALOSS,
                        "etcd's answer has %s as \"%s\"; expected %s", shown, key,
                        expected);
}

/* 64-bit numbers come as text; a plain number is accepted too. A missing one is 0. */
static int read_etcd_number(const cJSON *object, const char *key, mu_error *ret_error,
                            uint64_t *ret_number)
{
    const double exact_max = 9007199254740992.0;
    const cJSON *item = find_etcd_member(object, key);

    if (item == NULL) {
        *ret_number = 0;
        return 0;
    }
    if (cJSON_IsString(item)) {
        int64_t number =
            mu__decimal(item->valuestring, strlen(item->valuestring), INT64_MAX);

        if (number < 0)
            return refuse_etcd_member(ret_error, key, item, "a whole number of 63 bits");
        *ret_number = (uint64_t)number;
        return 0;
    }
    if (!cJSON_IsNumber(item) ||
        !(item->valuedouble >= 0 && item->valuedouble <= exact_max) ||
        item->valuedouble > (double)(uint64_t)item->valuedouble)
        return refuse_etcd_member(ret_error, key, item, "a whole number of 63 bits");
    *ret_number = (uint64_t)item->valuedouble;
    return 0;
}

static int read_flag(const cJSON *object, const char *key, mu_error *ret_error,
                     bool *ret_flag)
{
    const cJSON *item = find_etcd_member(object, key);

    if (item != NULL && !cJSON_IsBool(item))
        return refuse_etcd_member(ret_error, key, item, "true or false");
    *ret_flag = cJSON_IsTrue(item);
    return 0;
}

/* Base64, decoded in place. A missing member reads as empty. */
static int read_etcd_bytes(const cJSON *object, const char *key, mu_error *ret_error,
                           struct mu__view *ret_bytes)
{
    cJSON *item = find_etcd_member(object, key);
    size_t size = 0;

    if (item == NULL) {
        *ret_bytes = (struct mu__view){"", 0};
        return 0;
    }
    if (!cJSON_IsString(item) ||
        mu__base64_decode(item->valuestring, strlen(item->valuestring),
                          (uint8_t *)item->valuestring, &size) != 0)
        return refuse_etcd_member(ret_error, key, item, "base64");
    *ret_bytes = (struct mu__view){item->valuestring, (uint32_t)size};
    return 0;
}

/* A missing object is NULL, which reads as an empty one. */
static int read_etcd_object(const cJSON *object, const char *key, mu_error *ret_error,
                            cJSON **ret_inner)
{
    cJSON *item = find_etcd_member(object, key);

    if (item != NULL && !cJSON_IsObject(item))
        return refuse_etcd_member(ret_error, key, item, "an object");
    *ret_inner = item;
    return 0;
}

/* ---- Errors ---- */

/* gRPC's status codes have the same numbers as ours. */
static int code_of_answer(const cJSON *error)
{
    uint64_t code;

    if ((read_etcd_number(error, "code", NULL, &code) == 0 && code >= 1 && code <= 16) ||
        (read_etcd_number(error, "grpc_code", NULL, &code) == 0 && code >= 1 &&
         code <= 16))
        return -(int)code;
    return 0;
}

static int code_of_status(int status)
{
    if (status == 404 || status == 405)
        return -MU_EUNIMPLEMENTED; /* without a code of etcd's: it has no such path */
    return status == 429 || status >= 500 ? -MU_EUNAVAILABLE : -MU_EUNKNOWN;
}

/* The text of an error, or NULL. In streamed answers it is inside an object "error". */
static const char *get_etcd_error_text(const cJSON *root, const cJSON **ret_error)
{
    const cJSON *inner = find_etcd_member(root, "error");
    const cJSON *error = cJSON_IsObject(inner) ? inner : root;
    const cJSON *words = find_etcd_member(error, "message");

    if (!cJSON_IsString(words))
        words = find_etcd_member(error, "error");
    *ret_error = error;
    return cJSON_IsString(words) ? words->valuestring : NULL;
}

static int set_etcd_error(int status, const cJSON *root, const char *text, size_t size,
                          mu_error *ret_error)
{
    const cJSON *error = NULL;
    const char *words = root == NULL ? NULL : get_etcd_error_text(root, &error);
    int code = error == NULL ? 0 : code_of_answer(error);
    char shown[SHOWN_BYTES];

    while (size > 0 && text[size - 1] == '\n')
        size--;
    if (words == NULL)
        mu__quote(shown, sizeof shown, text, size);
    else
        mu__quote(shown, sizeof shown, words, strlen(words));
    return mu_error_set(ret_error, code != 0 ? code : code_of_status(status),
                        "etcd answered with status %d: %s", status, shown);
}

/* etcd 3.4's answers to a token that has expired, and to one that was issued before its
 * users were changed. */
bool mu__etcd_needs_new_token(int code, const mu_error *error)
{
    return code == -MU_EUNAUTHENTICATED ||
           strstr(error->message, "revision of auth store is old") != NULL;
}

bool mu__etcd_needs_user(const mu_error *error)
{
    return strstr(error->message, "user name is empty") != NULL;
}

bool mu__etcd_lacks_users(const mu_error *error)
{
    return strstr(error->message, "authentication is not enabled") != NULL;
}

void mu__etcd_hide(mu_error *error)
{
    static const char *const known[] = {
        "authentication failed, invalid user ID or password",
        "authentication is not enabled",
        "CommonName of client",
        "leader changed",
        "no leader",
        "request timed out",
        "server stopped",
        "too many requests",
        "user name is empty",
    };
    const char *words = strstr(error->message, ": \"");
    int size = words == NULL ? 0 : (int)(words - error->message);

    if (words == NULL || strncmp(error->message, "etcd", 4) != 0)
        return;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strstr(words, known[i]) != NULL) {
            (void)mu_error_set(error, error->code, "%.*s: %s", size, error->message,
                               known[i]);
            return;
        }
    (void)mu_error_set(error, error->code,
                       "%.*s; its words are not shown, since they may have the password "
                       "in them",
                       size, error->message);
}

/* ---- Reading ---- */

int mu__etcd_answer_read(int status, const void *text, size_t size, mu_error *ret_error,
                         struct mu__etcd_answer **ret_answer)
{
    const char *bytes = size == 0 ? "" : text;
    cJSON *root = NULL;
    char shown[MU__QUOTE_BYTES];
    int rv = 0;

    (void)mu__json_parse_large(bytes, size, "", NULL, &root);
    if (status != 200 || find_etcd_member(root, "error") != NULL)
        rv = set_etcd_error(status, root, bytes, size, ret_error);
    if (rv == 0 && root == NULL) {
        mu__quote(shown, sizeof shown, bytes, size);
        rv = mu_error_set(ret_error, -MU_EDATALOSS,
                          "etcd's answer is no JSON object (or there is no memory to "
                          "read it): %s",
                          shown);
    }
    if (rv != 0) {
        cJSON_Delete(root);
        return rv;
    }
    *ret_answer = (struct mu__etcd_answer *)root;
    return 0;
}

void mu__etcd_answer_free(struct mu__etcd_answer *answer)
{
    if (answer != NULL)
        cJSON_Delete(root_of(answer));
}

static int read_header_number(const struct mu__etcd_answer *answer, const char *key,
                              mu_error *ret_error, uint64_t *ret_number)
{
    cJSON *header = NULL;
    int rv = read_etcd_object(root_of(answer), "header", ret_error, &header);

    return rv != 0 ? rv : read_etcd_number(header, key, ret_error, ret_number);
}

int mu__etcd_revision(const struct mu__etcd_answer *answer, mu_error *ret_error,
                      uint64_t *ret_revision)
{
    return read_header_number(answer, "revision", ret_error, ret_revision);
}

int mu__etcd_term(const struct mu__etcd_answer *answer, mu_error *ret_error,
                  uint64_t *ret_term)
{
    return read_header_number(answer, "raft_term", ret_error, ret_term);
}

int mu__etcd_granted(const struct mu__etcd_answer *answer, mu_error *ret_error,
                     uint64_t *ret_lease, uint64_t *ret_ttl_s)
{
    uint64_t lease = 0;
    uint64_t ttl_s = 0;
    int rv = read_etcd_number(root_of(answer), "ID", ret_error, &lease);

    if (rv == 0)
        rv = read_etcd_number(root_of(answer), "TTL", ret_error, &ttl_s);
    if (rv != 0)
        return rv;
    if (lease == 0 || ttl_s == 0)
        return mu_error_set(ret_error, -MU_EDATALOSS,
                            "etcd granted a lease without %s; expected both ID and TTL",
                            lease == 0 ? "ID" : "TTL");
    *ret_lease = lease;
    *ret_ttl_s = ttl_s;
    return 0;
}

int mu__etcd_lease_ttl(const struct mu__etcd_answer *answer, mu_error *ret_error,
                       uint64_t *ret_ttl_s)
{
    cJSON *result = NULL;
    int rv = read_etcd_object(root_of(answer), "result", ret_error, &result);

    if (rv != 0)
        return rv;
    if (result == NULL)
        return mu_error_set(ret_error, -MU_EDATALOSS,
                            "etcd's answer has no \"result\"; expected that of a lease "
                            "which is kept");
    return read_etcd_number(result, "TTL", ret_error, ret_ttl_s);
}

/* Printable and without spaces: with a line end in it, a token could add a header. */
static bool fits_in_header(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

int mu__etcd_token(const struct mu__etcd_answer *answer, mu_error *ret_error,
                   const char *before, char *out, size_t size)
{
    const cJSON *token = find_etcd_member(root_of(answer), "token");

    if (!cJSON_IsString(token) || token->valuestring[0] == '\0' ||
        !fits_in_header(token->valuestring) ||
        strlen(before) + strlen(token->valuestring) >= size)
        return mu_error_set(ret_error, -MU_EDATALOSS,
                            "etcd's answer has no \"token\" of 1 to %zu printable "
                            "characters",
                            size - strlen(before) - 1);
    (void)snprintf(out, size, "%s%s", before, token->valuestring);
    return 0;
}

int mu__etcd_succeeded(const struct mu__etcd_answer *answer, mu_error *ret_error,
                       bool *ret_succeeded)
{
    if (find_etcd_member(root_of(answer), "header") == NULL)
        return mu_error_set(ret_error, -MU_EDATALOSS,
                            "etcd's answer has no \"header\"; expected that of a "
                            "transaction");
    return read_flag(root_of(answer), "succeeded", ret_error, ret_succeeded);
}

static int read_entries(const cJSON *range, mu_error *ret_error,
                        struct mu__etcd_entries *ret_entries)
{
    struct mu__etcd_entries entries = {0};
    cJSON *kvs = find_etcd_member(range, "kvs");
    int rv = read_flag(range, "more", ret_error, &entries.more);

    if (rv == 0)
        rv = read_etcd_number(range, "count", ret_error, &entries.count);
    if (rv == 0 && kvs != NULL && !cJSON_IsArray(kvs))
        rv = refuse_etcd_member(ret_error, "kvs", kvs, "a list");
    if (rv != 0)
        return rv;
    entries.next = kvs == NULL ? NULL : kvs->child;
    if (entries.more && entries.next == NULL)
        return mu_error_set(ret_error, -MU_EDATALOSS,
                            "etcd's answer has no entries, and says there are more");
    *ret_entries = entries;
    return 0;
}

int mu__etcd_ranged(const struct mu__etcd_answer *answer, mu_error *ret_error,
                    struct mu__etcd_entries *ret_entries)
{
    if (find_etcd_member(root_of(answer), "header") == NULL)
        return mu_error_set(ret_error, -MU_EDATALOSS,
                            "etcd's answer has no \"header\"; expected that of a range");
    return read_entries(root_of(answer), ret_error, ret_entries);
}

int mu__etcd_txn_ranged(const struct mu__etcd_answer *answer, size_t at,
                        mu_error *ret_error, struct mu__etcd_entries *ret_entries)
{
    const cJSON *responses = find_etcd_member(root_of(answer), "responses");
    const cJSON *response =
        cJSON_IsArray(responses) ? cJSON_GetArrayItem(responses, (int)at) : NULL;
    const cJSON *range = find_etcd_member(response, "response_range");

    if (!cJSON_IsObject(range))
        return mu_error_set(ret_error, -MU_EDATALOSS,
                            "etcd's answer has no \"response_range\" for operation %zu "
                            "of the transaction",
                            at + 1);
    return read_entries(range, ret_error, ret_entries);
}

int mu__etcd_next_entry(struct mu__etcd_entries *entries, mu_error *ret_error,
                        struct mu__etcd_entry *ret_entry)
{
    cJSON *item = entries->next;
    struct mu__etcd_entry entry = {0};
    const struct {
        const char *key;
        uint64_t *number;
    } numbers[] = {
        {"create_revision", &entry.create_revision},
        {"mod_revision", &entry.mod_revision},
        {"version", &entry.version},
        {"lease", &entry.lease},
    };
    int rv;

    if (item == NULL)
        return 0;
    if (!cJSON_IsObject(item))
        return refuse_etcd_member(ret_error, "kvs", item, "a list of objects");
    rv = read_etcd_bytes(item, "key", ret_error, &entry.key);
    if (rv == 0)
        rv = read_etcd_bytes(item, "value", ret_error, &entry.value);
    for (size_t i = 0; rv == 0 && i < sizeof numbers / sizeof numbers[0]; i++)
        rv = read_etcd_number(item, numbers[i].key, ret_error, numbers[i].number);
    if (rv != 0)
        return rv;
    if (entry.key.size == 0)
        return mu_error_set(ret_error, -MU_EDATALOSS,
                            "etcd's answer has an entry without a key");
    entries->next = item->next;
    *ret_entry = entry;
    return 1;
}
