#include "actors/supervisor/state/pinned_results.h"

#include "actors/packing.h"

static void free_result(struct pinned_result *result)
{
    while (result->fetches != NULL) {
        struct pinned_fetch *next = result->fetches->next;

        mu__free_array(result->fetches);
        result->fetches = next;
    }
    mu__buf_unref(result->backing);
    mu__free_array(result->waiting);
    mu__free_array(result->sent);
    mu__free_array(result);
}

void mu__pinned_results_done(struct pinned_results *results)
{
    for (size_t i = 0; i < results->by_number.capacity; i++)
        if (results->by_number.entries[i].key != 0)
            free_result(results->by_number.entries[i].value);
    mu__map_done(&results->by_number);
}

struct pinned_result *mu__pinned_results_find(const struct pinned_results *results,
                                              uint64_t number)
{
    if (number == 0 || (number & MU__PER_WORKER_BIT) != 0)
        return NULL;
    return mu__map_get(&results->by_number, number);
}

struct pinned_result *mu__pinned_results_add(
    struct pinned_results *results, uint64_t number, mu__pid client, uint32_t holder)
{
    struct pinned_result *result = NULL;

    if (!mu__grow_array((void **)&result, 1, sizeof *result))
        return NULL;
    *result = (struct pinned_result){
        .number = number,
        .client = client,
        .holder = holder,
    };
    if (mu__map_set(&results->by_number, number, result) != 0) {
        mu__free_array(result);
        return NULL;
    }
    return result;
}

void mu__pinned_results_remove(struct pinned_results *results,
                               struct pinned_result *result)
{
    (void)mu__map_remove(&results->by_number, result->number);
    free_result(result);
}

bool mu__pinned_result_add_waiting(struct pinned_result *result, uint64_t closure)
{
    if (!mu__grow_for_one((void **)&result->waiting, &result->waiting_size,
                          result->waiting_count, sizeof *result->waiting))
        return false;
    result->waiting[result->waiting_count++] = closure;
    return true;
}

bool mu__pinned_result_add_fetch(struct pinned_result *result, mu__pid pid,
                                 uint64_t token)
{
    struct pinned_fetch *fetch = NULL;

    if (!mu__grow_array((void **)&fetch, 1, sizeof *fetch))
        return false;
    *fetch = (struct pinned_fetch){result->fetches, pid, token};
    result->fetches = fetch;
    return true;
}

bool mu__pinned_result_was_sent(const struct pinned_result *result, uint32_t node)
{
    for (uint32_t i = 0; i < result->sent_count; i++)
        if (result->sent[i] == node)
            return true;
    return false;
}

void mu__pinned_result_note_sent(struct pinned_result *result, uint32_t node)
{
    if (mu__grow_for_one((void **)&result->sent, &result->sent_size, result->sent_count,
                         sizeof *result->sent))
        result->sent[result->sent_count++] = node;
}
