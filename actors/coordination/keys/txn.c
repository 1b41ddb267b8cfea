/* Transactions: validating, packing as a value, comparing. */
#include "actors/coordination/keys/txn.h"

#include "actors/coordination/keys/key_map.h"
#include "actors/messages.h"
#include "runtime/message/codec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_SHOWN_MAX = 200 };

/* ---- Validating ---- */

static int get_shown_size(struct mu__view key)
{
    return key.size > KEY_SHOWN_MAX ? KEY_SHOWN_MAX : (int)key.size;
}

static int refuse_txn_part(mu_error *error, int code, const char *part, unsigned i,
                           const char *reason)
{
    return mu_error_set(error, code, "%s %u of the transaction %s", part, i + 1, reason);
}

static bool is_txn_key(struct mu__view key)
{
    return key.size > 0 && mu__key_is_normal(key);
}

static int check_key(struct mu__view key, const char *part, unsigned i, mu_error *error)
{
    if (is_txn_key(key))
        return 0;
    return refuse_txn_part(error, -MU_EINVALID, part, i,
                           "has a key that is not in its normal "
                           "form: it is empty, too long, has slashes too many or control "
                           "characters");
}

static int check_value(struct mu__view value, const char *part, unsigned i,
                       mu_error *error)
{
    if (value.size <= MU__KEY_VALUE_MAX)
        return 0;
    return refuse_txn_part(error, -MU_EEXHAUSTED, part, i,
                           "has a value of more than 1 MiB");
}

static int validate_check(const struct mu__txn_check *check, unsigned i, mu_error *error)
{
    static const char part[] = "comparison";
    int rv = check_key(check->key, part, i, error);

    if (rv == 0 && (check->type < MU_KV_IF_REVISION || check->type > MU_KV_IF_VALUE))
        rv = refuse_txn_part(error, -MU_EINVALID, part, i,
                             "has a type that is not a valid mu_kv_check_type");
    return rv == 0 ? check_value(check->value, part, i, error) : rv;
}

static int validate_change(const struct mu__txn_change *change, unsigned i,
                           mu_error *error)
{
    static const char part[] = "change";
    int operation = change->operation;
    int rv = check_key(change->key, part, i, error);

    if (rv == 0 && operation != MU_KV_PUT && operation != MU_KV_INCREMENT &&
        operation != MU_KV_DELETE)
        rv = refuse_txn_part(error, -MU_EINVALID, part, i,
                             "is no put, increment or delete");
    if (rv == 0 &&
        (change->flags & ~(unsigned)(operation == MU_KV_PUT ? MU_KV_LEASE : 0)) != 0)
        rv = refuse_txn_part(error, -MU_EINVALID, part, i,
                             "has flags other than MU_KV_LEASE of a put");
    return rv == 0 ? check_value(change->value, part, i, error) : rv;
}

static bool changes_collide(const struct mu__txn_change *one,
                            const struct mu__txn_change *other)
{
    if (one->key.size == other->key.size &&
        memcmp(one->key.data, other->key.data, one->key.size) == 0)
        return true;
    return (one->operation == MU_KV_DELETE && mu__key_is_below(other->key, one->key)) ||
           (other->operation == MU_KV_DELETE && mu__key_is_below(one->key, other->key));
}

static int validate_pairs(const struct mu__txn *txn, mu_error *error)
{
    for (unsigned i = 0; i < txn->changes_count; i++)
        for (unsigned j = 0; j < i; j++)
            if (changes_collide(&txn->changes[j], &txn->changes[i]))
                return mu_error_set(error, -MU_EINVALID,
                                    "changes %u and %u of the "
                                    "transaction are of the same key \"%.*s\", or one "
                                    "deletes what the other changes",
                                    j + 1, i + 1, get_shown_size(txn->changes[i].key),
                                    (const char *)txn->changes[i].key.data);
    return 0;
}

static int validate_bytes(const struct mu__txn *txn, mu_error *error)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < txn->checks_count; i++)
        bytes += (uint64_t)txn->checks[i].key.size + txn->checks[i].value.size;
    for (unsigned i = 0; i < txn->changes_count; i++)
        bytes += (uint64_t)txn->changes[i].key.size + txn->changes[i].value.size;
    if (bytes <= MU_KV_TRANSACTION_BYTES_MAX)
        return 0;
    return mu_error_set(error, -MU_EEXHAUSTED,
                        "a transaction has %" PRIu64 " bytes of "
                        "keys and values, and may have %d",
                        bytes, MU_KV_TRANSACTION_BYTES_MAX);
}

int mu__txn_validate(const struct mu__txn *txn, mu_error *ret_error)
{
    int rv = 0;

    if (txn->checks_count + txn->changes_count == 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a transaction has neither comparisons nor changes");
    for (unsigned i = 0; i < txn->checks_count && rv == 0; i++)
        rv = validate_check(&txn->checks[i], i, ret_error);
    for (unsigned i = 0; i < txn->changes_count && rv == 0; i++)
        rv = validate_change(&txn->changes[i], i, ret_error);
    if (rv == 0)
        rv = validate_bytes(txn, ret_error);
    return rv == 0 ? validate_pairs(txn, ret_error) : rv;
}

/* ---- Writing ---- */

static mu_value *view_value(struct mu__view view)
{
    return mu_value_bytes(view.size == 0 ? "" : view.data, view.size);
}

static mu_value *check_as_value(const struct mu__txn_check *check)
{
    mu_value *item = mu_value_list();

    if (item != NULL && mu_value_append(item, mu_value_int(check->type)) == 0 &&
        mu_value_append(item, view_value(check->key)) == 0 &&
        mu_value_append(item, mu_value_int((int64_t)check->revision)) == 0 &&
        mu_value_append(item, view_value(check->value)) == 0)
        return item;
    mu_value_free(item);
    return NULL;
}

static mu_value *change_as_value(const struct mu__txn_change *change)
{
    mu_value *item = mu_value_list();

    if (item != NULL && mu_value_append(item, mu_value_int(change->operation)) == 0 &&
        mu_value_append(item, mu_value_int((int64_t)change->flags)) == 0 &&
        mu_value_append(item, view_value(change->key)) == 0 &&
        mu_value_append(item, view_value(change->value)) == 0 &&
        mu_value_append(item, mu_value_int(change->by)) == 0)
        return item;
    mu_value_free(item);
    return NULL;
}

static mu_value *checks_as_value(const struct mu__txn *txn)
{
    mu_value *list = mu_value_list();
    int rv = list == NULL ? -MU_ENOMEM : 0;

    for (unsigned i = 0; i < txn->checks_count && rv == 0; i++)
        rv = mu_value_append(list, check_as_value(&txn->checks[i]));
    if (rv == 0)
        return list;
    mu_value_free(list);
    return NULL;
}

static mu_value *changes_as_value(const struct mu__txn *txn)
{
    mu_value *list = mu_value_list();
    int rv = list == NULL ? -MU_ENOMEM : 0;

    for (unsigned i = 0; i < txn->changes_count && rv == 0; i++)
        rv = mu_value_append(list, change_as_value(&txn->changes[i]));
    if (rv == 0)
        return list;
    mu_value_free(list);
    return NULL;
}

mu_value *mu__txn_write(const struct mu__txn *txn)
{
    mu_value *content = mu_value_map();

    if (content != NULL && mu_value_set(content, "if", checks_as_value(txn)) == 0 &&
        mu_value_set(content, "do", changes_as_value(txn)) == 0)
        return content;
    mu_value_free(content);
    return NULL;
}

/* ---- Reading ---- */

static bool read_int(const mu_value *list, size_t at, int64_t *ret_number)
{
    return mu_value_get_int(mu_value_at(list, at), ret_number) == 0;
}

static bool read_view(const mu_value *list, size_t at, struct mu__view *ret_view)
{
    const void *data;
    size_t size;

    if (mu_value_get_bytes(mu_value_at(list, at), &data, &size) != 0 || size > UINT32_MAX)
        return false;
    *ret_view = (struct mu__view){data, (uint32_t)size};
    return true;
}

static bool read_txn_check(const mu_value *item, struct mu__txn_check *ret_check)
{
    int64_t type;
    int64_t revision;

    if (!read_int(item, 0, &type) || !read_view(item, 1, &ret_check->key) ||
        !read_int(item, 2, &revision) || !read_view(item, 3, &ret_check->value) ||
        type < 0 || type > 255)
        return false;
    ret_check->type = (int)type;
    ret_check->revision = (uint64_t)revision;
    return true;
}

static bool read_txn_change(const mu_value *item, struct mu__txn_change *ret_change)
{
    int64_t operation;
    int64_t flags;

    if (!read_int(item, 0, &operation) || !read_int(item, 1, &flags) ||
        !read_view(item, 2, &ret_change->key) ||
        !read_view(item, 3, &ret_change->value) || !read_int(item, 4, &ret_change->by) ||
        operation < 0 || operation > 255 || flags < 0 || flags > 255)
        return false;
    ret_change->operation = (int)operation;
    ret_change->flags = (unsigned)flags;
    return true;
}

static int refuse_txn_shape(mu_error *error, const char *what)
{
    return mu_error_set(error, -MU_EINVALID, "malformed transaction: %s", what);
}

static int read_txn_parts(struct mu__txn *txn, mu_error *error)
{
    const mu_value *checks = mu_value_find(txn->content, "if");
    const mu_value *changes = mu_value_find(txn->content, "do");

    if (mu_value_count(checks) > MU_KV_TRANSACTION_MAX ||
        mu_value_count(changes) > MU_KV_TRANSACTION_MAX)
        return mu_error_set(error, -MU_EEXHAUSTED,
                            "a transaction has %zu comparisons "
                            "and %zu changes, and may have %d of each",
                            mu_value_count(checks), mu_value_count(changes),
                            MU_KV_TRANSACTION_MAX);
    for (; txn->checks_count < mu_value_count(checks); txn->checks_count++)
        if (!read_txn_check(mu_value_at(checks, txn->checks_count),
                            &txn->checks[txn->checks_count]))
            return refuse_txn_shape(error, "a comparison has other fields");
    for (; txn->changes_count < mu_value_count(changes); txn->changes_count++)
        if (!read_txn_change(mu_value_at(changes, txn->changes_count),
                             &txn->changes[txn->changes_count]))
            return refuse_txn_shape(error, "a change has other fields");
    return mu__txn_validate(txn, error);
}

static int unpack_txn(const struct mu__packed *packed, mu_error *error,
                      mu_value **ret_content)
{
    char why[128] = "";
    int rv = mu__value_unpack(packed, why, sizeof why, ret_content);

    if (rv == -MU_ENOMEM)
        return mu_error_set(error, rv, "no memory for a transaction");
    return rv == 0 ? 0 : refuse_txn_shape(error, why);
}

int mu__txn_read(const struct mu__packed *packed, mu_error *ret_error,
                 struct mu__txn **ret_txn)
{
    struct mu__txn *txn = calloc(1, sizeof *txn);
    int rv;

    if (txn == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a transaction");
    rv = unpack_txn(packed, ret_error, &txn->content);
    if (rv == 0)
        rv = read_txn_parts(txn, ret_error);
    if (rv == 0)
        *ret_txn = txn;
    else
        mu__txn_free(txn);
    return rv;
}

void mu__txn_free(struct mu__txn *txn)
{
    if (txn == NULL)
        return;
    mu_value_free(txn->content);
    free(txn);
}

/* ---- Comparing ---- */

static int fail_comparison(mu_error *error, struct mu__view key, const char *reason)
{
    return mu_error_set(error, -MU_EPRECONDITION, "key \"%.*s\" %s", get_shown_size(key),
                        (const char *)key.data, reason);
}

static int compare_revision(const struct mu__txn_check *check, uint64_t revision,
                            mu_error *error)
{
    if (check->revision == revision)
        return 0;
    return mu_error_set(error, -MU_EPRECONDITION,
                        "key \"%.*s\" has revision %" PRIu64 ", expected %" PRIu64,
                        get_shown_size(check->key), (const char *)check->key.data,
                        revision, check->revision);
}

int mu__txn_compare(const struct mu__txn_check *check, const struct mu__key_value *entry,
                    mu_error *ret_error)
{
    if (check->type == MU_KV_IF_REVISION)
        return compare_revision(check, entry == NULL ? 0 : entry->revision, ret_error);
    if (check->type == MU_KV_IF_ABSENT)
        return entry == NULL ? 0
                             : fail_comparison(ret_error, check->key, "is there already");
    if (entry == NULL)
        return fail_comparison(ret_error, check->key, "is not there");
    if (check->type == MU_KV_IF_PRESENT)
        return 0;
    if (entry->value.size == check->value.size &&
        (check->value.size == 0 ||
         memcmp(entry->value.data, check->value.data, check->value.size) == 0))
        return 0;
    return fail_comparison(ret_error, check->key, "has another value");
}
