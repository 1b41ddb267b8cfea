/* The public transactions over keys. */
#include "actors/coordination/keys/txn.h"
#include "actors/messages.h"
#include "api/internal.h"
#include "runtime/message/arguments.h"
#include "runtime/message/codec.h"

#include <stdlib.h>

/* A transaction whose keys are normalized: its views point to `keys`, and to the values
 * of the caller. */
struct draft {
    struct mu__txn txn;
    char keys[2 * MU_KV_TRANSACTION_MAX][MU__KEY_MAX + 1];
    unsigned keys_count;
};

static int add_draft_key(struct draft *draft, const char *part, size_t i, const char *key,
                         mu_error *error, struct mu__view *ret_key)
{
    char *normal = draft->keys[draft->keys_count++];
    mu_error why;
    int rv = mu__check_key(key, false, &why, normal);

    if (rv != 0)
        return mu_error_set(error, rv, "%s %zu of the transaction: %s", part, i + 1,
                            why.message);
    *ret_key = mu__view_str(normal);
    return 0;
}

static int add_value(const char *part, size_t i, const void *value, size_t size,
                     mu_error *error, struct mu__view *ret_value)
{
    if (size > 0 && value == NULL)
        return mu_error_set(error, -MU_EINVALID,
                            "%s %zu of the transaction: a value of %zu bytes is NULL",
                            part, i + 1, size);
    if (size > MU__KEY_VALUE_MAX)
        return mu_error_set(error, -MU_EEXHAUSTED,
                            "%s %zu of the transaction: a value "
                            "has %zu bytes, at most %d are kept",
                            part, i + 1, size, MU__KEY_VALUE_MAX);
    *ret_value = (struct mu__view){value, (uint32_t)size};
    return 0;
}

static int add_check(struct draft *draft, size_t i, const mu_kv_check *from,
                     mu_error *error)
{
    struct mu__txn_check *check = &draft->txn.checks[draft->txn.checks_count++];
    int rv = add_draft_key(draft, "comparison", i, from->key, error, &check->key);

    check->type = from->type;
    check->revision = from->revision;
    if (rv != 0 || from->type != MU_KV_IF_VALUE)
        return rv;
    return add_value("comparison", i, from->value, from->size, error, &check->value);
}

static int add_draft_change(struct draft *draft, size_t i, const mu_kv_change *from,
                            mu_error *error)
{
    struct mu__txn_change *change = &draft->txn.changes[draft->txn.changes_count++];
    int rv = add_draft_key(draft, "change", i, from->key, error, &change->key);

    change->operation = from->operation;
    change->flags = from->flags;
    change->by = from->by;
    if (rv != 0 || from->operation != MU_KV_PUT)
        return rv;
    return add_value("change", i, from->value, from->size, error, &change->value);
}

static int fill_draft(struct draft *draft, const mu_kv_transaction *from, mu_error *error)
{
    int rv = 0;

    if (from->checks_count > MU_KV_TRANSACTION_MAX ||
        from->changes_count > MU_KV_TRANSACTION_MAX)
        return mu_error_set(error, -MU_EEXHAUSTED,
                            "a transaction has %zu comparisons "
                            "and %zu changes, and may have %d of each",
                            from->checks_count, from->changes_count,
                            MU_KV_TRANSACTION_MAX);
    if ((from->checks_count > 0 && from->checks == NULL) ||
        (from->changes_count > 0 && from->changes == NULL))
        return mu_error_set(error, -MU_EINVALID,
                            "a transaction of %zu comparisons and "
                            "%zu changes, of which %s are NULL",
                            from->checks_count, from->changes_count,
                            from->checks_count > 0 && from->checks == NULL
                                ? "the comparisons"
                                : "the changes");
    for (size_t i = 0; i < from->checks_count && rv == 0; i++)
        rv = add_check(draft, i, &from->checks[i], error);
    for (size_t i = 0; i < from->changes_count && rv == 0; i++)
        rv = add_draft_change(draft, i, &from->changes[i], error);
    return rv == 0 ? mu__txn_validate(&draft->txn, error) : rv;
}

/* Post it packed. */
static int post_value(mu_node *node, const struct draft *draft, const mu_value *content,
                      mu_kv_request *kv_request, mu_kv_done_fn done, void *user,
                      mu_error *error, uint64_t *ret_request)
{
    uint32_t head = 0;
    uint32_t tail = 0;
    uint8_t *packed;
    int rv;

    packed = content == NULL || mu__value_measure(content, &head, &tail) != 0
                 ? NULL
                 : malloc(head);
    if (packed == NULL)
        return mu_error_set(error, -MU_ENOMEM, "no memory for a transaction");
    mu__value_pack(content, packed, head, NULL, 0);
    kv_request->operation = MU__KV_TRANSACT;
    kv_request->key =
        draft->keys[draft->txn.changes_count == 0 ? 0 : draft->txn.checks_count];
    kv_request->value = packed;
    kv_request->size = head;
    rv = mu__kv_post(node, kv_request, done, user, error, ret_request);
    free(packed);
    return rv;
}

int mu_kv_transact_async(mu_node *node, const mu_kv_transaction *transaction,
                         int64_t timeout_ms, mu_kv_done_fn done, void *user,
                         mu_error *ret_error, uint64_t *ret_request)
{
    MU__REQUIRE(ret_error, node, transaction, done);

    mu_kv_request kv_request = {.timeout_ms = timeout_ms};
    struct draft *draft = calloc(1, sizeof *draft);
    int rv;

    if (draft == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a transaction");
    rv = fill_draft(draft, transaction, ret_error);
    if (rv == 0) {
        mu_value *content = mu__txn_write(&draft->txn);

        rv = post_value(node, draft, content, &kv_request, done, user, ret_error,
                        ret_request);
        mu_value_free(content);
    }
    free(draft);
    return rv;
}

/* ---- waiting ---- */

struct timed {
    const mu_kv_transaction *transaction;
    int64_t timeout_ms;
};

static int begin_timed(mu_node *node, const void *what, mu_kv_done_fn done, void *user,
                       mu_error *ret_error)
{
    const struct timed *timed = what;

    return mu_kv_transact_async(node, timed->transaction, timed->timeout_ms, done, user,
                                ret_error, NULL);
}

int mu_kv_transact(mu_node *node, const mu_kv_transaction *transaction,
                   int64_t timeout_ms, mu_error *ret_error,
                   mu_kv_transaction_result *ret_outcome)
{
    MU__REQUIRE(ret_error, node, transaction);

    const struct timed timed = {transaction, timeout_ms};
    struct mu__kv_wait wait = {.needs_value = false};
    int rv = mu__kv_wait_for(node, begin_timed, &timed, ret_error, &wait);

    if (ret_outcome != NULL)
        *ret_outcome = (mu_kv_transaction_result){
            .revision = rv == 0 ? wait.revision : 0,
            .number = rv == 0 ? wait.number : 0,
            .failed = rv == -MU_EPRECONDITION ? (int)wait.number - 1 : -1,
        };
    return rv;
}
