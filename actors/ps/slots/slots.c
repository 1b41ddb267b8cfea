#include "actors/ps/slots/slots.h"

#include "actors/messages/limits.h"
#include "actors/ps/internal.h"
#include "actors/ps/slots/narrow_gradients.h"

#include <assert.h>
#include <string.h>

/* Elements of a row of the variable, whose first dimension counts its rows. */
static uint64_t row_elements(const struct mu__shape *shape)
{
    uint64_t elements = 1;

    for (uint32_t i = 1; i < shape->rank; i++)
        elements *= shape->dims[i];
    return elements;
}

/* Bytes of an element of a slot. */
static uint64_t slot_element_bytes(const struct mu__shape *shape)
{
    return mu_dtype_bytes(mu__rule_dtype((int)shape->dtype));
}

uint64_t mu__slots_bytes(uint32_t kind, const struct mu__shape *shape,
                         uint64_t shard_bytes)
{
    const struct mu__rule_kind *row = mu__rule_kind(kind);
    uint64_t elements = shard_bytes / mu_dtype_bytes((int)shape->dtype);

    return (elements * row->slots + elements / row_elements(shape) * row->row_slots) *
           slot_element_bytes(shape);
}

static bool is_narrow(const struct variable *v)
{
    return mu__rule_dtype((int)v->shape.dtype) != (int)v->shape.dtype;
}

/* Where element `index` of slot k is, of those for each element of the shard. */
static uint8_t *find_slot_element(const struct variable *v, unsigned k, uint64_t index)
{
    uint64_t elements = v->bytes / mu_dtype_bytes((int)v->shape.dtype);

    return v->slots.data + (elements * k + index) * slot_element_bytes(&v->shape);
}

uint32_t mu__slots_piece_bytes(struct mu__view rule, const struct mu__shape *shape)
{
    uint64_t row = row_elements(shape) * mu_dtype_bytes((int)shape->dtype);
    struct mu__rule unpacked;

    if (!mu__rule_unpack(rule.data, rule.size, &unpacked) ||
        mu__rule_kind(unpacked.kind)->row_slots == 0 || row > MU__PIECE_BYTES_MAX)
        return MU__PIECE_BYTES_MAX;
    return MU__PIECE_BYTES_MAX - (uint32_t)(MU__PIECE_BYTES_MAX % row);
}

int mu__slots_make(struct mu__variable_store *store, struct variable *v, uint32_t kind,
                   mu_error *ret_error)
{
    uint64_t bytes = mu__slots_bytes(kind, &v->shape, v->bytes);
    uint8_t *data = NULL;
    int rv;

    assert(v->slots.data == NULL);
    if (bytes == 0)
        return 0;
    rv = mu__shard_get_memory(store, bytes, ret_error, &data);
    if (rv == 0)
        v->slots = (struct mu__slots){.kind = kind, .bytes = bytes, .data = data};
    return rv;
}

void mu__slots_drop(struct mu__variable_store *store, struct variable *v)
{
    mu__shard_give_memory(store, v->slots.data, v->slots.bytes);
    v->slots = (struct mu__slots){.kind = 0};
}

/* ---- Restoring ---- */

bool mu__slots_shape(uint32_t kind, unsigned k, const struct mu__shape *shape,
                     struct mu__shape *ret_shape)
{
    const struct mu__rule_kind *row = mu__rule_kind(kind);

    if (row == NULL || k >= row->slots + row->row_slots)
        return false;
    *ret_shape = *shape;
    ret_shape->dtype = (uint32_t)mu__rule_dtype((int)shape->dtype);
    if (k >= row->slots && shape->rank > 1)
        ret_shape->rank = 1;
    return true;
}

/* Where slot k of the shard is, or its step. */
static uint8_t *find_slot(struct variable *v, unsigned k, uint64_t *ret_bytes)
{
    struct mu__shape shape;
    uint64_t offset;

    if (k == MU__RULE_SLOTS_MAX) {
        *ret_bytes = v->slots.kind == 0 ? 0 : sizeof v->slots.step;
        return (uint8_t *)&v->slots.step;
    }
    *ret_bytes = 0;
    if (mu__slots_shape(v->slots.kind, k, &v->shape, &shape))
        mu__shape_shard(&shape, v->shard, &offset, ret_bytes);
    return find_slot_element(v, k, 0);
}

int mu__slots_write(struct mu__variable_store *store, struct variable *v,
                    const struct mu__store_write *write, mu_error *ret_error)
{
    struct mu__rule rule;
    uint64_t bytes;
    uint8_t *to;
    int rv = 0;

    if (!mu__rule_unpack(write->rule.data, write->rule.size, &rule))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "slots of variable %s without a rule", v->name);
    if (v->slots.kind != rule.kind) {
        mu__slots_drop(store, v);
        rv = mu__slots_make(store, v, rule.kind, ret_error);
    }
    if (rv != 0 || v->slots.kind == 0)
        return rv;
    to = find_slot(v, write->operation - MU__WRITE_SLOT, &bytes);
    if (write->offset > bytes || write->data.size > bytes - write->offset)
        return mu_error_set(ret_error, -MU_ERANGE,
                            "%u bytes at %llu of a slot of variable %s, of %llu",
                            (unsigned)write->data.size, (unsigned long long)write->offset,
                            v->name, (unsigned long long)bytes);
    memcpy(to + write->offset, write->data.data, write->data.size);
    return 0;
}

/* ---- Gradients ---- */

static bool has_slots(const struct mu__rule_kind *kind)
{
    return kind->slots + kind->row_slots > 0;
}

static int check_same_rule(const struct variable *v, const struct mu__rule *rule,
                           mu_error *ret_error)
{
    const struct mu__rule_kind *kind = mu__rule_kind(rule->kind);

    if (v->slots.kind == 0 || v->slots.kind == rule->kind || !has_slots(kind) ||
        (rule->flags & MU__RULE_REPLACES) != 0)
        return 0;
    return mu_error_set(ret_error, -MU_EPRECONDITION,
                        "variable %s has slots of %s, and the gradient is for %s: it "
                        "does not say that it replaces them",
                        v->name, mu__rule_kind(v->slots.kind)->name, kind->name);
}

static int check_parts(const struct variable *v, const struct mu__rule_kind *kind,
                       const struct mu__store_write *write, mu_error *ret_error)
{
    uint64_t row = row_elements(&v->shape) * mu_dtype_bytes((int)v->shape.dtype);

    if (kind->is_whole && v->shape.shards > 1)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "variable %s has %u shards, and %s needs the norm of all: "
                            "expected 1",
                            v->name, (unsigned)v->shape.shards, kind->name);
    if (kind->row_slots > 0 && (write->offset % row != 0 || write->data.size % row != 0))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a part of a row of variable %s: %s needs whole rows",
                            v->name, kind->name);
    if (is_narrow(v))
        return mu__narrow_check(kind, row_elements(&v->shape), ret_error);
    return 0;
}

static int check_finite(struct variable *v, const struct mu__store_write *write,
                        mu_error *ret_error)
{
    int dtype = (int)v->shape.dtype;
    size_t count = write->data.size / mu_dtype_bytes(dtype);
    size_t found = mu__rule_find_nonfinite(dtype, write->data.data, count);

    if (found == count)
        return 0;
    v->nonfinite++;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "the gradient of variable %s is NaN or infinite at element %zu "
                        "of shard %u",
                        v->name, (size_t)(write->offset / mu_dtype_bytes(dtype)) + found,
                        (unsigned)v->shard);
}

int mu__gradient_check(struct variable *v, const struct mu__store_write *write,
                       mu_error *ret_error)
{
    struct mu__rule rule;
    mu_error error;
    int rv;

    if (!mu__rule_unpack(write->rule.data, write->rule.size, &rule))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a gradient of variable %s without a rule", v->name);
    rv = mu__rule_check(&rule, (int)v->shape.dtype, &error);
    if (rv != 0)
        return mu_error_set(ret_error, rv, "variable %s: %s", v->name, error.message);
    rv = check_same_rule(v, &rule, ret_error);
    if (rv == 0)
        rv = check_parts(v, mu__rule_kind(rule.kind), write, ret_error);
    if (rv == 0 && (rule.flags & MU__RULE_ANY_NUMBER) == 0)
        rv = check_finite(v, write, ret_error);
    return rv;
}

/* What their elements begin as; they are zeros. */
static void start_slots(struct variable *v, const struct mu__rule *rule)
{
    const struct mu__rule_kind *kind = mu__rule_kind(rule->kind);
    size_t count = (size_t)(v->bytes / mu_dtype_bytes((int)v->shape.dtype));
    uint8_t *at = v->slots.data;

    for (unsigned k = 0; k < kind->slots + kind->row_slots; k++) {
        size_t n = k < kind->slots ? count : count / (size_t)row_elements(&v->shape);

        mu__rule_slot_fill(rule, mu__rule_dtype((int)v->shape.dtype), k, at, n);
        at += n * slot_element_bytes(&v->shape);
    }
}

int mu__gradient_make_slots(struct mu__variable_store *store, struct variable *v,
                            const struct mu__store_write *write, mu_error *ret_error)
{
    struct mu__rule rule;
    int rv;

    (void)mu__rule_unpack(write->rule.data, write->rule.size, &rule);
    if (!has_slots(mu__rule_kind(rule.kind)) || v->slots.kind == rule.kind)
        return 0;
    rv = check_same_rule(v, &rule, ret_error); /* an earlier write may have made some */
    if (rv != 0)
        return rv;
    mu__slots_drop(store, v);
    rv = mu__slots_make(store, v, rule.kind, ret_error);
    if (rv == 0)
        start_slots(v, &rule);
    return rv;
}

static void run_rule(const struct variable *v, const struct mu__rule_at *at, uint8_t *x,
                     void *const *slots, const uint8_t *gradient, size_t count)
{
    if (is_narrow(v))
        mu__narrow_run(at, (int)v->shape.dtype, (uint16_t *)(void *)x, slots, gradient,
                       count);
    else
        mu__rule_run(at, x, slots, gradient, count);
}

/* Whole rows, one after the other. */
static void apply_rows(struct variable *v, const struct mu__store_write *write,
                       const struct mu__rule_at *at)
{
    uint64_t element = mu_dtype_bytes((int)v->shape.dtype);
    uint64_t row = row_elements(&v->shape) * element;
    const uint8_t *gradient = write->data.data;

    for (uint64_t done = 0; done < write->data.size; done += row) {
        uint64_t index = (write->offset + done) / row;
        void *const slots[] = {find_slot_element(v, 0, index)};

        run_rule(v, at, v->data + write->offset + done, slots, gradient + done,
                 (size_t)(row / element));
    }
}

static void apply_elements(struct variable *v, const struct mu__store_write *write,
                           const struct mu__rule_at *at)
{
    const struct mu__rule_kind *kind = mu__rule_kind(at->kind);
    size_t element = mu_dtype_bytes((int)v->shape.dtype);
    void *all[MU__RULE_SLOTS_MAX];
    void *parts[MU__RULE_SLOTS_MAX];

    for (unsigned k = 0; k < kind->slots; k++) {
        all[k] = find_slot_element(v, k, 0);
        parts[k] = find_slot_element(v, k, write->offset / element);
    }
    run_rule(v, at, v->data + write->offset, parts, write->data.data,
             write->data.size / element);
    if (write->offset + write->data.size == v->bytes && !is_narrow(v))
        mu__rule_finish(at, v->data, all, (size_t)v->bytes / element);
}

/* A large gradient comes in pieces, of which the one at the end counts. */
void mu__gradient_apply(struct variable *v, const struct mu__store_write *write)
{
    struct mu__rule rule;
    struct mu__rule_at at;
    uint64_t step;

    (void)mu__rule_unpack(write->rule.data, write->rule.size, &rule);
    step = rule.step > 0 ? rule.step : v->slots.step + 1;
    at = mu__rule_prepare(&rule, mu__rule_dtype((int)v->shape.dtype), step);
    if (mu__rule_kind(rule.kind)->row_slots > 0)
        apply_rows(v, write, &at);
    else
        apply_elements(v, write, &at);
    if (v->slots.kind == rule.kind && write->offset + write->data.size == v->bytes &&
        v->slots.step < step)
        v->slots.step = step;
}
