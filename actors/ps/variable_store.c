/* Opening and reading shards, and the store as a whole. */
#include "actors/ps/internal.h"
#include "actors/ps/store_snapshots.h"
#include "runtime/base/large_memory.h"

#include <inttypes.h>
#include <stdlib.h>

const struct mu__store_limits mu__store_limits_default = {
    .bytes_max = UINT64_C(1) << 40,
    .variables_max = 1 << 16,
    .waiting_max = 1 << 16,
    .transfers_node_max = 64,
    .snapshots_max = 1 << 12,
};

bool mu__store_next_opened(struct mu__variable_store *store,
                           struct mu__store_opened *ret_opened)
{
    struct open_answer *answer = mu__opener_take_first(&store->due);

    if (answer == NULL)
        return false;
    *ret_opened = answer->opened;
    free(answer);
    return true;
}

/* ---- Opening ---- */

static int check_open(const struct mu__store_open *request, mu_error *ret_error)
{
    uint64_t offset;
    uint64_t bytes;
    int rv = mu__variable_name_check(request->name, ret_error);

    if (rv == 0)
        rv = mu__shape_check(&request->shape, ret_error);
    if (rv != 0)
        return rv;
    if (request->shard >= request->shape.shards)
        return mu_error_set(ret_error, -MU_EINVALID, "shard %" PRIu32 " of %" PRIu32,
                            request->shard, request->shape.shards);
    mu__shape_shard(&request->shape, request->shard, &offset, &bytes);
    if (bytes != request->bytes)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "shard of %" PRIu64 " bytes: expected %" PRIu64,
                            request->bytes, bytes);
    return 0;
}

static int check_same(const struct variable *v, const struct mu__shape *requested,
                      mu_error *ret_error)
{
    char has[MU__SHAPE_TEXT_MAX];
    char expected[MU__SHAPE_TEXT_MAX];

    if (mu__shape_equal(&v->shape, requested))
        return 0;
    mu__shape_text(&v->shape, has, sizeof has);
    mu__shape_text(requested, expected, sizeof expected);
    return mu_error_set(ret_error, -MU_EPRECONDITION, "it is %s; opened as %s", has,
                        expected);
}

/* Whether the requester is to create the shard. */
static bool is_to_make(const struct variable *v, const struct mu__store_open *request)
{
    if (request->existing)
        return false;
    return v->stage == ABSENT ||
           (v->stage == ABANDONED && !mu__shard_is_later(v, request->creation)) ||
           (v->stage == READY && v->id == request->replaces);
}

static int make_shard(struct mu__variable_store *store, struct variable *v,
                      const struct mu__store_open *request, struct open_answer *answer,
                      mu_error *ret_error)
{
    int rv;

    mu__shard_strip(store, v);
    rv = mu__shard_create(store, v, request, ret_error);
    if (rv == 0)
        mu__opener_answer(store, v, true, answer);
    return rv;
}

static int wait_for_shard(struct mu__variable_store *store, struct variable *v,
                          struct open_answer *answer, mu_error *ret_error)
{
    if (store->totals.waiting >= store->limits.waiting_max)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%" PRIu32 " wait for initial content, at most %" PRIu32,
                            store->totals.waiting, store->limits.waiting_max);
    mu__list_append(&v->waiting, &answer->node);
    store->totals.waiting++;
    if (v->stage == ABSENT)
        mu__opener_answer_absent(store, answer);
    return 0;
}

/* Takes `answer` when it returns 0. */
static int admit_opener(struct mu__variable_store *store, struct variable *v,
                        const struct mu__store_open *request, struct open_answer *answer,
                        mu_error *ret_error)
{
    int rv = 0;

    if (is_to_make(v, request))
        return make_shard(store, v, request, answer, ret_error);
    if (v->stage != ABSENT)
        rv = check_same(v, &request->shape, ret_error);
    if (rv != 0)
        return rv;
    if (v->stage == ABANDONED && request->existing)
        mu__shard_make_ready(store, v);
    if (v->stage != READY)
        return wait_for_shard(store, v, answer, ret_error);
    mu__opener_answer(store, v, false, answer);
    return 0;
}

int mu__store_open(struct mu__variable_store *store, const struct mu__store_open *request,
                   mu_error *ret_error)
{
    int rv = check_open(request, ret_error);
    struct variable *v;
    struct open_answer *answer;

    if (rv != 0)
        return rv;
    answer = mu__opener_answer_new(request);
    if (answer == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "the server is out of memory");
    v = mu__shard_find_by_name(store, request->name, request->shard);
    if (v == NULL)
        rv = mu__shard_variable_new(store, request, ret_error, &v);
    if (rv == 0) {
        rv = admit_opener(store, v, request, answer, ret_error);
        mu__shard_remove_unused(store, v);
    }
    if (rv != 0)
        free(answer);
    return rv;
}

uint32_t mu__store_shards(const struct mu__variable_store *store,
                          const struct mu__store_open *request)
{
    const struct variable *v =
        mu__shard_find_by_name(store, request->name, request->shard);

    if (v == NULL || v->stage == ABSENT || !mu__shape_alike(&v->shape, &request->shape))
        return 0;
    return v->shape.shards;
}

/* ---- Reading ---- */

int mu__store_check_range(const struct variable *v, uint64_t offset, uint64_t size,
                          mu_error *ret_error)
{
    if (offset <= v->bytes && size <= v->bytes - offset)
        return 0;
    return mu_error_set(ret_error, -MU_ERANGE,
                        "%" PRIu64 " bytes at %" PRIu64 " of a shard of %" PRIu64, size,
                        offset, v->bytes);
}

int mu__store_read(struct mu__variable_store *store, const struct mu__store_read *request,
                   mu_error *ret_error, struct mu__view *ret_data, uint64_t *ret_version)
{
    struct variable *v = mu__shard_find_by_id(store, request->id, ret_error);
    int rv;

    if (v == NULL)
        return -MU_ENOTFOUND;
    if (v->stage != READY)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "variable %s has no initial content yet", v->name);
    rv = mu__store_check_range(v, request->offset, request->size, ret_error);
    if (rv != 0)
        return rv;
    v->reads++;
    v->bytes_read += request->size;
    *ret_data = (struct mu__view){v->data + request->offset, request->size};
    *ret_version = v->version;
    return 0;
}

uint64_t mu__store_version(const struct mu__variable_store *store, uint64_t id)
{
    const struct variable *v = mu__map_get(&store->by_id, id);

    return v == NULL ? 0 : v->version;
}

/* ---- The store ---- */

void mu__store_node_down(struct mu__variable_store *store, uint32_t node)
{
    struct variable *next;

    mu__shard_drop_transfers(store, NULL, node);
    for (struct variable *v = oldest_shard(store); v != NULL; v = next) {
        next = next_shard(v);
        mu__opener_stop_waiting(store, v, mu__opener_is_of_node, &node,
                                mu__opener_drop_answer);
        if (mu__shard_has_creator(v) && v->creator.pid.node == node)
            mu__shard_lose_creator(store, v);
        else
            mu__shard_remove_unused(store, v);
    }
}

bool mu__store_has_node(const struct mu__variable_store *store, uint32_t node)
{
    if (mu__shard_has_transfers(store, node))
        return true;
    for (const struct variable *v = oldest_shard(store); v != NULL; v = next_shard(v)) {
        if (mu__shard_has_creator(v) && v->creator.pid.node == node)
            return true;
        for (const struct open_answer *a =
                 MU__LIST_FIRST(&v->waiting, struct open_answer, node);
             a != NULL; a = MU__LIST_NEXT(a, struct open_answer, node))
            if (mu__opener_is_of_node(a, &node))
                return true;
    }
    return false;
}

static bool is_any_opener(const struct open_answer *answer, const void *arg)
{
    (void)answer;
    (void)arg;
    return true;
}

void mu__store_forget_nodes(struct mu__variable_store *store)
{
    struct variable *next;

    for (struct variable *v = oldest_shard(store); v != NULL; v = next) {
        next = next_shard(v);
        mu__shard_drop_transfers(store, v, 0);
        mu__opener_stop_waiting(store, v, is_any_opener, NULL, mu__opener_drop_answer);
        if (mu__shard_has_creator(v))
            mu__shard_lose_creator(store, v);
        else
            mu__shard_remove_unused(store, v);
    }
    mu__opener_free_answers(&store->due);
}

void mu__store_each(const struct mu__variable_store *store,
                    void (*visit)(void *user, const struct mu__store_info *info),
                    void *user)
{
    for (const struct variable *v = oldest_shard(store); v != NULL; v = next_shard(v)) {
        const struct mu__rule_kind *kind;

        if (v->stage == ABSENT)
            continue;
        kind = mu__rule_kind(v->slots.kind);
        visit(user, &(struct mu__store_info){
                        .name = v->name,
                        .shape = &v->shape,
                        .shard = v->shard,
                        .bytes = v->bytes,
                        .version = v->version,
                        .ready = v->stage == READY,
                        .reads = v->reads,
                        .writes = v->writes,
                        .bytes_read = v->bytes_read,
                        .bytes_written = v->bytes_written,
                        .rule = kind == NULL ? "" : kind->name,
                        .step = v->slots.step,
                        .nonfinite = v->nonfinite,
                    });
    }
}

void mu__store_totals(const struct mu__variable_store *store,
                      struct mu__store_totals *ret_totals)
{
    *ret_totals = store->totals;
}

struct mu__variable_store *mu__store_new(const struct mu__store_limits *limits,
                                         uint64_t incarnation)
{
    struct mu__variable_store *store = calloc(1, sizeof *store);

    if (store == NULL)
        return NULL;
    store->limits = *limits;
    if (store->limits.copies_max == 0)
        store->limits.copies_max = limits->bytes_max;
    store->incarnation = incarnation;
    mu__tables_init(&store->tables,
                    &(struct mu__table_memory){limits->bytes_max,
                                               limits->bytes_used != NULL
                                                   ? limits->bytes_used
                                                   : &store->totals.bytes,
                                               limits->pages},
                    incarnation);
    return store;
}

struct mu__table_set *mu__store_tables(struct mu__variable_store *store)
{
    return &store->tables;
}

void mu__store_free(struct mu__variable_store *store)
{
    struct variable *next;

    if (store == NULL)
        return;
    mu__snapshots_drop(store);
    mu__tables_done(&store->tables);
    for (struct variable *v = oldest_shard(store); v != NULL; v = next) {
        next = next_shard(v);
        mu__shard_drop_transfers(store, v, 0);
        mu__shard_free_variable(store, v);
    }
    if (store->limits.bytes_used != NULL)
        *store->limits.bytes_used -= store->totals.bytes;
    mu__large_free(store->spare, (size_t)store->spare_bytes);
    mu__opener_free_answers(&store->due);
    mu__map_done(&store->by_id);
    mu__map_done(&store->by_name);
    free(store);
}
