/* The shards of a server: by name and by id, their memory, and the stages of their
 * creation. */
#include "actors/ps/internal.h"

#include "actors/partitions.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Variables ---- */

/* A hash that is not 0. */
static uint64_t hash_nonzero(uint64_t number)
{
    number = mu__mix64(number);
    return number == 0 ? 1 : number;
}

/* The number of the next creation of a variable whose shard 0 is here: it grows, within a
 * life of this server. */
static uint64_t next_creation(struct mu__variable_store *store)
{
    return store->incarnation << 32 | ++store->creations;
}

bool mu__shard_is_later(const struct variable *v, uint64_t creation)
{
    return creation != 0 && creation >> 32 == v->creation >> 32 && creation < v->creation;
}

static uint64_t make_shard_key(const struct mu__variable_store *store,
                               struct mu__view name, uint32_t shard)
{
    return hash_nonzero(hash_nonzero(mu__name_hash(name) ^ store->incarnation) + shard);
}

struct variable *mu__shard_find_by_name(const struct mu__variable_store *store,
                                        struct mu__view name, uint32_t shard)
{
    struct variable *v = mu__map_get(&store->by_name, make_shard_key(store, name, shard));

    while (v != NULL && (v->shard != shard || !mu__view_is(name, v->name)))
        v = v->next_alike;
    return v;
}

struct variable *mu__shard_find_by_id(const struct mu__variable_store *store, uint64_t id,
                                      mu_error *ret_error)
{
    struct variable *v = mu__map_get(&store->by_id, id);

    if (v == NULL)
        (void)mu_error_set(ret_error, -MU_ENOTFOUND,
                           "no variable has the id %" PRIx64
                           " in this life of the server",
                           id);
    return v;
}

int mu__shard_charge(struct mu__variable_store *store, uint64_t bytes,
                     mu_error *ret_error)
{
    const uint64_t *shared = store->limits.bytes_used;
    uint64_t used = shared == NULL ? store->totals.bytes : *shared;

    if (bytes > store->limits.bytes_max - used)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%" PRIu64 " bytes more: the server holds %" PRIu64
                            " of at most %" PRIu64,
                            bytes, used, store->limits.bytes_max);
    store->totals.bytes += bytes;
    if (store->limits.bytes_used != NULL)
        *store->limits.bytes_used += bytes;
    return 0;
}

void mu__shard_discharge(struct mu__variable_store *store, uint64_t bytes)
{
    store->totals.bytes -= bytes;
    if (store->limits.bytes_used != NULL)
        *store->limits.bytes_used -= bytes;
}

int mu__shard_get_memory(struct mu__variable_store *store, uint64_t bytes,
                         mu_error *ret_error, uint8_t **ret_data)
{
    int rv = mu__shard_charge(store, bytes, ret_error);
    uint8_t *data;

    if (rv != 0)
        return rv;
    data = bytes > SIZE_MAX ? NULL : calloc((size_t)bytes, 1);
    if (data == NULL) {
        mu__shard_discharge(store, bytes);
        return mu_error_set(ret_error, -MU_ENOMEM,
                            "the server is out of memory for %" PRIu64 " bytes", bytes);
    }
    *ret_data = data;
    return 0;
}

void mu__shard_give_memory(struct mu__variable_store *store, uint8_t *data,
                           uint64_t bytes)
{
    if (data == NULL)
        return;
    mu__shard_discharge(store, bytes);
    free(data);
}

static void unlist_shard(struct mu__variable_store *store, struct variable *v)
{
    struct variable *head = mu__map_get(&store->by_name, v->key);

    if (head == v) {
        if (v->next_alike == NULL)
            (void)mu__map_remove(&store->by_name, v->key);
        else
            (void)mu__map_set(&store->by_name, v->key, v->next_alike);
        return;
    }
    while (head->next_alike != v)
        head = head->next_alike;
    head->next_alike = v->next_alike;
}

int mu__shard_list(struct mu__variable_store *store, struct variable *v)
{
    struct variable *head = mu__map_get(&store->by_name, v->key);

    if (head != NULL) {
        v->next_alike = head->next_alike;
        head->next_alike = v;
        return 0;
    }
    return mu__map_set(&store->by_name, v->key, v);
}

void mu__shard_free_variable(struct mu__variable_store *store, struct variable *v)
{
    mu__shard_give_memory(store, v->data, v->bytes);
    mu__slots_drop(store, v);
    mu__opener_free_answers(&v->waiting);
    free(v);
}

int mu__shard_variable_new(struct mu__variable_store *store,
                           const struct mu__store_open *request, mu_error *ret_error,
                           struct variable **ret_variable)
{
    struct variable *v = calloc(1, sizeof *v + request->name.size + 1);

    if (v == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "the server is out of memory");
    v->key = make_shard_key(store, request->name, request->shard);
    v->shard = request->shard;
    memcpy(v->name, request->name.data, request->name.size);
    if (mu__shard_list(store, v) != 0) {
        free(v);
        return mu_error_set(ret_error, -MU_ENOMEM, "the server is out of memory");
    }
    mu__list_append(&store->by_age, &v->node);
    *ret_variable = v;
    return 0;
}

void mu__shard_remove_unused(struct mu__variable_store *store, struct variable *v)
{
    if (v->stage != ABSENT || !mu__list_is_empty(&v->waiting))
        return;
    if (store->visited == v) {
        store->visited = next_shard(v);
        store->visited_removed = true;
    }
    mu__list_remove(&store->by_age, &v->node);
    unlist_shard(store, v);
    mu__shard_free_variable(store, v);
}

int mu__shard_create(struct mu__variable_store *store, struct variable *v,
                     const struct mu__store_open *request, mu_error *ret_error)
{
    uint64_t id = hash_nonzero(store->incarnation + ++store->serial);
    int rv;

    assert(v->stage == ABSENT);
    if (store->totals.variables >= store->limits.variables_max)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "the server has %" PRIu32 " variables, at most %" PRIu32,
                            store->totals.variables, store->limits.variables_max);
    rv = mu__shard_get_memory(store, request->bytes, ret_error, &v->data);
    if (rv != 0)
        return rv;
    if (mu__map_set(&store->by_id, id, v) != 0) {
        mu__shard_give_memory(store, v->data, request->bytes);
        v->data = NULL;
        return mu_error_set(ret_error, -MU_ENOMEM, "the server is out of memory");
    }
    v->id = id;
    v->shape = request->shape;
    v->bytes = request->bytes;
    v->creator = request->requester;
    v->creation = v->shard == 0 ? next_creation(store) : request->creation;
    v->received = 0;
    v->stage = MAKING;
    store->totals.variables++;
    mu__opener_set_shards(v);
    mu__opener_stop_waiting(store, v, mu__opener_is_mismatch, &v->shape,
                            mu__opener_answer_mismatch);
    return 0;
}

void mu__shard_strip(struct mu__variable_store *store, struct variable *v)
{
    if (v->stage == ABSENT)
        return;
    mu__shard_drop_transfers(store, v, 0);
    mu__shard_will_change(store, v);
    (void)mu__map_remove(&store->by_id, v->id);
    mu__shard_give_memory(store, v->data, v->bytes);
    mu__slots_drop(store, v);
    v->data = NULL;
    v->id = 0;
    v->version = 0;
    v->reads = 0;
    v->writes = 0;
    v->bytes_read = 0;
    v->bytes_written = 0;
    v->nonfinite = 0;
    v->stage = ABSENT;
    store->totals.variables--;
}

void mu__shard_make_ready(struct mu__variable_store *store, struct variable *v)
{
    struct open_answer *answer;

    v->stage = READY;
    while ((answer = mu__opener_take_first(&v->waiting)) != NULL) {
        store->totals.waiting--;
        mu__opener_answer(store, v, false, answer);
    }
}

/* Take the oldest open that waits and may create, of no former creation; NULL when there
 * is none. */
static struct open_answer *take_next_creator(struct mu__variable_store *store,
                                             struct variable *v)
{
    struct mu__list others = {NULL, NULL};
    struct open_answer *successor = NULL;
    struct open_answer *answer;

    while ((answer = mu__opener_take_first(&v->waiting)) != NULL) {
        if (successor == NULL && !answer->existing &&
            !mu__shard_is_later(v, answer->creation))
            successor = answer;
        else
            mu__list_append(&others, &answer->node);
    }
    v->waiting = others;
    store->totals.waiting -= successor != NULL;
    return successor;
}

/* The next opener makes the shard anew, from zeros. */
static void hand_over_shard(struct mu__variable_store *store, struct variable *v,
                            struct open_answer *successor)
{
    memset(v->data, 0, (size_t)v->received);
    v->received = 0;
    v->version = 0;
    v->writes = 0;
    v->bytes_written = 0;
    v->creator = successor->opened.requester;
    v->creation = v->shard == 0 ? next_creation(store) : successor->creation;
    v->stage = MAKING;
    mu__opener_answer(store, v, true, successor);
}

/* Whether one waits who has found shard 0 with its content. */
static bool has_existing_opener(const struct variable *v)
{
    for (const struct open_answer *a =
             MU__LIST_FIRST(&v->waiting, struct open_answer, node);
         a != NULL; a = MU__LIST_NEXT(a, struct open_answer, node))
        if (a->existing)
            return true;
    return false;
}

void mu__shard_lose_creator(struct mu__variable_store *store, struct variable *v)
{
    struct open_answer *successor = take_next_creator(store, v);

    if (successor != NULL) {
        hand_over_shard(store, v, successor);
        return;
    }
    if (v->stage == FILLED) {
        v->stage = ABANDONED;
        if (has_existing_opener(v))
            mu__shard_make_ready(store, v);
        return;
    }
    mu__shard_strip(store, v);
    for (const struct open_answer *a =
             MU__LIST_FIRST(&v->waiting, struct open_answer, node);
         a != NULL; a = MU__LIST_NEXT(a, struct open_answer, node))
        mu__opener_answer_absent(store, a);
    mu__shard_remove_unused(store, v);
}
