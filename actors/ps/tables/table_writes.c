#include "actors/ps/tables/table_writes.h"

#include "actors/messages.h"
#include "actors/ps/shape.h"
#include "runtime/base/byte_order.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* ---- Numbers in bytes ---- */

static uint8_t *pack_number(uint8_t *to, uint64_t number, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (uint8_t)(number >> 8 * i);
    return to + bytes;
}

/* Zeros behind the end; `at` then tells. */
struct table_bytes {
    const uint8_t *bytes;
    uint32_t size;
    uint32_t at;
};

static uint64_t unpack_number(struct table_bytes *from, unsigned bytes)
{
    uint32_t left = from->at < from->size ? from->size - from->at : 0;
    uint64_t number =
        mu__load_little(from->bytes + from->at * (left > 0), left < bytes ? left : bytes);

    from->at += bytes;
    return number;
}

static uint64_t bits_of(double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static double take_double(struct table_bytes *from)
{
    uint64_t bits = unpack_number(from, sizeof bits);
    double number;

    memcpy(&number, &bits, sizeof number);
    return number;
}

static uint8_t *put_rule(uint8_t *to, const struct mu__rule *rule)
{
    size_t size = mu__rule_pack(rule, to + 1);

    *to = (uint8_t)size;
    return to + 1 + size;
}

static bool take_rule(struct table_bytes *from, struct mu__rule *ret_rule)
{
    uint32_t size = (uint32_t)unpack_number(from, 1);
    bool is_rule = from->at <= from->size && size <= from->size - from->at &&
                   mu__rule_unpack(from->bytes + from->at, size, ret_rule);

    from->at += size;
    return is_rule;
}

/* ---- Opens ---- */

static uint8_t *put_policy(uint8_t *at, const struct mu__table_policy *policy)
{
    at = pack_number(at, policy->admit_after, 4);
    at = pack_number(at, policy->admit_chance, 4);
    at = pack_number(at, policy->candidates, 4);
    at = pack_number(at, policy->ttl, 4);
    at = pack_number(at, policy->capacity, 4);
    at = pack_number(at, policy->eviction, 1);
    return pack_number(at, policy->unknown_zeros, 1);
}

static void take_policy(struct table_bytes *from, struct mu__table_policy *ret_policy)
{
    ret_policy->admit_after = (uint32_t)unpack_number(from, 4);
    ret_policy->admit_chance = (uint32_t)unpack_number(from, 4);
    ret_policy->candidates = (uint32_t)unpack_number(from, 4);
    ret_policy->ttl = (uint32_t)unpack_number(from, 4);
    ret_policy->capacity = (uint32_t)unpack_number(from, 4);
    ret_policy->eviction = (uint32_t)unpack_number(from, 1);
    ret_policy->unknown_zeros = unpack_number(from, 1) != 0;
}

uint32_t mu__table_open_pack(const struct mu__table_open *open,
                             uint8_t to[MU__TABLE_OPEN_BYTES_MAX])
{
    uint8_t *at = to;

    _Static_assert(63 + 1 + MU__RULE_BYTES_MAX + MU__VARIABLE_NAME_MAX <=
                       MU__TABLE_OPEN_BYTES_MAX,
                   "an open with the longest name");
    assert(open->name.size <= MU__VARIABLE_NAME_MAX);
    at = pack_number(at, open->mode, 1);
    at = pack_number(at, open->sealed, 1);
    at = pack_number(at, open->form.dim, 4);
    at = pack_number(at, open->form.dtype, 1);
    at = pack_number(at, open->form.rows_max, 4);
    at = pack_number(at, open->form.initial.kind, 1);
    at = pack_number(at, bits_of(open->form.initial.a), 8);
    at = pack_number(at, bits_of(open->form.initial.b), 8);
    at = pack_number(at, open->form.initial.seed, 8);
    at = put_policy(at, &open->form.policy);
    at = put_rule(at, &open->form.rule);
    memcpy(at, open->name.data, open->name.size);
    return (uint32_t)(at - to) + open->name.size;
}

int mu__table_open_unpack(struct mu__view bytes, struct mu__table_open *ret_open,
                          mu_error *ret_error)
{
    struct table_bytes from = {bytes.data, bytes.size, 0};
    struct mu__table_open open;
    int rv;

    open.mode = (uint32_t)unpack_number(&from, 1);
    open.sealed = unpack_number(&from, 1) != 0;
    open.form.dim = (uint32_t)unpack_number(&from, 4);
    open.form.dtype = (uint32_t)unpack_number(&from, 1);
    open.form.rows_max = (uint32_t)unpack_number(&from, 4);
    open.form.initial.kind = (uint32_t)unpack_number(&from, 1);
    open.form.initial.a = take_double(&from);
    open.form.initial.b = take_double(&from);
    open.form.initial.seed = unpack_number(&from, 8);
    take_policy(&from, &open.form.policy);
    if (!take_rule(&from, &open.form.rule) || from.at >= from.size ||
        from.size - from.at > MU__VARIABLE_NAME_MAX || open.mode >= MU__TABLE_MODES)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%" PRIu32 " bytes are no open of a table", bytes.size);
    open.name = (struct mu__view){from.bytes + from.at, from.size - from.at};
    rv = mu__variable_name_check(open.name, ret_error);
    if (rv == 0)
        rv = mu__table_form_check(&open.form, ret_error);
    if (rv == 0)
        *ret_open = open;
    return rv;
}

/* ---- Pushes ---- */

uint32_t mu__table_push_pack_head_at(const struct mu__rule *rule, uint32_t time,
                                     uint32_t count,
                                     uint8_t to[MU__TABLE_PUSH_HEAD_MAX + 4])
{
    uint8_t *at = pack_number(put_rule(to, rule), time, 4);

    return (uint32_t)(pack_number(at, count, 4) - to);
}

int mu__table_push_unpack(struct mu__view bytes, uint32_t dim,
                          struct mu__table_push *ret_push, mu_error *ret_error)
{
    struct table_bytes from = {bytes.data, bytes.size, 0};
    struct mu__table_push push;
    bool is_rule = take_rule(&from, &push.rule);
    uint64_t each = sizeof(uint64_t) + dim * sizeof(float);

    push.time = (uint32_t)unpack_number(&from, 4);
    push.count = (uint32_t)unpack_number(&from, 4);
    if (!is_rule || from.at > from.size || push.count == 0 ||
        push.count * each != from.size - from.at)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%" PRIu32 " bytes are no push of rows of %" PRIu32
                            " numbers",
                            bytes.size, dim);
    push.ids = from.bytes + from.at;
    push.gradients = push.ids + push.count * sizeof(uint64_t);
    if (!mu__table_is_sorted(push.ids, push.count))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "ids of a push are in rising order, each once");
    *ret_push = push;
    return 0;
}

const uint8_t *mu__table_push_ids(struct mu__view bytes, uint32_t dim,
                                  uint32_t *ret_count)
{
    const uint8_t *from = bytes.data;
    uint64_t each = sizeof(uint64_t) + dim * sizeof(float);
    uint32_t head = bytes.size == 0 ? 0 : 1 + (uint32_t)from[0] + 8;
    uint32_t count;

    if (head == 0 || head > bytes.size)
        return NULL;
    count = mu__load_little32(from + head - sizeof count);
    if (count == 0 || count * each != bytes.size - head)
        return NULL;
    *ret_count = count;
    return from + head;
}

void mu__table_expire_pack(uint32_t before, uint8_t to[MU__TABLE_EXPIRE_BYTES])
{
    (void)pack_number(to, before, MU__TABLE_EXPIRE_BYTES);
}

int mu__table_expire_unpack(struct mu__view bytes, uint32_t *ret_before,
                            mu_error *ret_error)
{
    struct table_bytes from = {bytes.data, bytes.size, 0};

    if (bytes.size != MU__TABLE_EXPIRE_BYTES)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%" PRIu32 " bytes are no score below which rows go",
                            bytes.size);
    *ret_before = (uint32_t)unpack_number(&from, MU__TABLE_EXPIRE_BYTES);
    return 0;
}

/* Not 0. */
uint64_t mu__table_id(struct mu__view name)
{
    return mu__mix64(mu__name_hash(name)) | 1;
}
