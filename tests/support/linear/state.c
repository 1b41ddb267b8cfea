#include "tests/support/linear/state.h"

#include <assert.h>

void linear_add_key(struct linear_state *state, unsigned key)
{
    assert(state->count < LINEAR_TOGETHER_MAX);
    state->keys[state->count++] = (struct linear_key){.key = key, .exact = true};
}

bool linear_has_key(const struct linear_state *state, unsigned key)
{
    for (unsigned i = 0; i < state->count; i++)
        if (state->keys[i].key == key)
            return true;
    return false;
}

struct linear_key *linear_key_of(struct linear_state *state, unsigned key)
{
    unsigned i = 0;

    while (state->keys[i].key != key)
        i++;
    assert(i < state->count);
    return &state->keys[i];
}

bool linear_is_same(const struct linear_state *one, const struct linear_state *other)
{
    for (unsigned i = 0; i < one->count; i++) {
        const struct linear_key *left = &one->keys[i];
        const struct linear_key *right = &other->keys[i];

        if (left->there != right->there || left->exact != right->exact ||
            left->value != right->value || left->revision != right->revision)
            return false;
    }
    return true;
}

static bool has_part(const struct linear_op *op, enum linear_part_kind first,
                     enum linear_part_kind last)
{
    for (unsigned i = 0; i < op->parts_count; i++)
        if (op->parts[i].kind >= first && op->parts[i].kind <= last)
            return true;
    return false;
}

bool linear_is_change(const struct linear_op *op)
{
    if (!linear_is_known(op) || op->code != 0)
        return false;
    if (op->kind == LINEAR_TRANSACT)
        return has_part(op, LINEAR_PART_PUT, LINEAR_PART_INCREMENT);
    return op->kind != LINEAR_GET && op->kind != LINEAR_DELETE;
}

bool linear_is_look(const struct linear_op *op)
{
    if (!linear_is_known(op) || op->code != 0)
        return linear_is_known(op);
    if (op->kind == LINEAR_TRANSACT)
        return !has_part(op, LINEAR_PART_PUT, LINEAR_PART_DELETE);
    return op->kind == LINEAR_GET || (op->kind == LINEAR_DELETE && op->number == 0);
}

unsigned linear_first_key(const struct linear_op *op)
{
    return op->kind == LINEAR_TRANSACT ? op->parts[0].key : op->key;
}

/* ---- Of one key ---- */

/* Whether a revision that was told can be the state's; then it is. */
static bool is_revision(struct linear_key *state, uint64_t told)
{
    if (told == 0)
        return true;
    if (state->exact ? told != state->revision : told <= state->revision)
        return false;
    state->revision = told;
    state->exact = true;
    return true;
}

/* `revision` 0: it was not told. */
static bool change_at(struct linear_key *state, uint64_t revision, bool there,
                      int64_t value)
{
    if (revision != 0) {
        if (revision <= state->revision)
            return false;
        state->revision = revision;
    }
    state->exact = revision != 0;
    state->there = there;
    state->value = value;
    return true;
}

/* A change, by an operation that succeeded or whose fate is unknown. */
static bool change(struct linear_key *state, const struct linear_op *op, bool there,
                   int64_t value)
{
    return change_at(state, linear_is_known(op) ? op->revision : 0, there, value);
}

static bool do_get(struct linear_key *state, const struct linear_op *op)
{
    if (!linear_is_known(op))
        return false;
    if (op->code != 0)
        return op->code == -MU_ENOTFOUND && !state->there;
    return state->there && state->value == op->number && is_revision(state, op->revision);
}

static bool do_put(struct linear_key *state, const struct linear_op *op)
{
    return op->code == 0 && change(state, op, true, op->value);
}

static bool do_insert(struct linear_key *state, const struct linear_op *op)
{
    if (linear_is_known(op) && op->code == -MU_EEXISTS)
        return state->there && is_revision(state, op->revision);
    return op->code == 0 && !state->there && change(state, op, true, op->value);
}

/* Whether the key's revision may be the one that is expected; then it is. */
static bool may_be_expected(struct linear_key *state, uint64_t expected)
{
    if (expected == 0)
        return !state->there;
    return state->there && is_revision(state, expected);
}

static bool is_certainly(const struct linear_key *state, uint64_t expected)
{
    if (expected == 0)
        return !state->there;
    return state->there && state->exact && state->revision == expected;
}

static bool do_compare(struct linear_key *state, const struct linear_op *op)
{
    if (linear_is_known(op) && op->code == -MU_EPRECONDITION)
        return !is_certainly(state, op->expected) &&
               (!state->there || is_revision(state, op->revision));
    return op->code == 0 && may_be_expected(state, op->expected) &&
           change(state, op, true, op->value);
}

static bool do_increment(struct linear_key *state, const struct linear_op *op)
{
    int64_t sum;

    if (__builtin_add_overflow(state->there ? state->value : 0, op->value, &sum) ||
        op->code != 0 || (linear_is_known(op) && sum != op->number))
        return false;
    return change(state, op, true, sum);
}

static bool do_delete(struct linear_key *state, const struct linear_op *op)
{
    if (op->code != 0 || (linear_is_known(op) && op->number != state->there))
        return false;
    if (state->there)
        return change(state, op, false, 0);
    if (!linear_is_known(op))
        return false; /* to do nothing it need not be done */
    if (op->revision > state->revision)
        state->revision = op->revision;
    return true;
}

static bool (*const doing[])(struct linear_key *state, const struct linear_op *op) = {
    [LINEAR_GET] = do_get,
    [LINEAR_PUT] = do_put,
    [LINEAR_INSERT] = do_insert,
    [LINEAR_COMPARE] = do_compare,
    [LINEAR_INCREMENT] = do_increment,
    [LINEAR_DELETE] = do_delete,
};

/* ---- Of several keys ---- */

static bool may_hold(struct linear_key *key, const struct linear_part *part)
{
    switch (part->kind) {
    case LINEAR_IF_REVISION:
        return may_be_expected(key, part->expected);
    case LINEAR_IF_ABSENT:
        return !key->there;
    case LINEAR_IF_PRESENT:
        return key->there;
    default:
        return key->there && key->value == part->value;
    }
}

static bool holds_certainly(const struct linear_key *key, const struct linear_part *part)
{
    struct linear_key copy = *key;

    return part->kind == LINEAR_IF_REVISION ? is_certainly(key, part->expected)
                                            : may_hold(&copy, part);
}

static bool is_comparison(const struct linear_part *part)
{
    return part->kind <= LINEAR_IF_VALUE;
}

/* All comparisons hold; or those before the one that did not, and that does not. */
static bool compare_parts(struct linear_state *state, const struct linear_op *op)
{
    for (unsigned i = 0; i < op->parts_count && is_comparison(&op->parts[i]); i++) {
        const struct linear_part *part = &op->parts[i];
        struct linear_key *key = linear_key_of(state, part->key);

        if (op->code != 0 && op->number == (int64_t)i + 1)
            return !holds_certainly(key, part);
        if (!may_hold(key, part))
            return false;
    }
    return op->code == 0;
}

/* Puts have the first revisions, one each, and then what is deleted. */
static uint64_t revision_before(struct linear_state *state, const struct linear_op *op)
{
    uint64_t revision = linear_is_known(op) ? op->revision : 0;

    for (unsigned i = 0; i < op->parts_count && revision != 0; i++)
        if (op->parts[i].kind == LINEAR_PART_DELETE)
            revision -= linear_key_of(state, op->parts[i].key)->there;
        else if (!is_comparison(&op->parts[i]))
            revision--;
    return revision;
}

/* A sum that would not fit is not made. */
static bool change_part(struct linear_key *key, const struct linear_part *part,
                        uint64_t *revision, int64_t *sum)
{
    bool is_deletion = part->kind == LINEAR_PART_DELETE;
    int64_t before = part->kind == LINEAR_PART_INCREMENT && key->there ? key->value : 0;

    if (is_deletion && !key->there)
        return true;
    if (__builtin_add_overflow(before, part->value, sum))
        return false;
    if (*revision != 0)
        ++*revision;
    return change_at(key, *revision, !is_deletion, is_deletion ? 0 : *sum);
}

static bool change_parts(struct linear_state *state, const struct linear_op *op,
                         bool deletions, uint64_t *revision)
{
    bool has_sum = false;

    for (unsigned i = 0; i < op->parts_count; i++) {
        const struct linear_part *part = &op->parts[i];
        int64_t sum = 0;

        if (is_comparison(part) || (part->kind == LINEAR_PART_DELETE) != deletions)
            continue;
        if (!change_part(linear_key_of(state, part->key), part, revision, &sum))
            return false;
        if (part->kind == LINEAR_PART_INCREMENT && !has_sum && linear_is_known(op) &&
            sum != op->number)
            return false;
        has_sum = has_sum || part->kind == LINEAR_PART_INCREMENT;
    }
    return true;
}

static bool do_transact(struct linear_state *state, const struct linear_op *op)
{
    uint64_t revision;

    if ((op->code != 0 && op->code != -MU_EPRECONDITION) || !compare_parts(state, op))
        return false;
    if (op->code != 0)
        return true;
    revision = revision_before(state, op);
    return change_parts(state, op, false, &revision) &&
           change_parts(state, op, true, &revision);
}

bool linear_do(struct linear_state *state, const struct linear_op *op)
{
    return op->kind == LINEAR_TRANSACT
               ? do_transact(state, op)
               : doing[op->kind](linear_key_of(state, op->key), op);
}
