/* Answers to opens: those that are due, and those that wait for a shard. Every open gets
 * the memory of its answer when it is made, so that answering cannot fail. */
#include "actors/ps/internal.h"

#include <stdlib.h>

/* ---- Answers ---- */

void mu__opener_append(struct answers *list, struct open_answer *answer)
{
    answer->next = NULL;
    if (list->last == NULL)
        list->first = answer;
    else
        list->last->next = answer;
    list->last = answer;
}

struct open_answer *mu__opener_take_first(struct answers *list)
{
    struct open_answer *answer = list->first;

    if (answer == NULL)
        return NULL;
    list->first = answer->next;
    if (list->first == NULL)
        list->last = NULL;
    return answer;
}

void mu__opener_free_answers(struct answers *list)
{
    struct open_answer *answer;

    while ((answer = mu__opener_take_first(list)) != NULL)
        free(answer);
}

struct open_answer *mu__opener_answer_new(const struct mu__store_open *request)
{
    struct open_answer *answer = calloc(1, sizeof *answer);

    if (answer == NULL)
        return NULL;
    answer->opened.requester = request->requester;
    answer->shape = request->shape;
    answer->existing = request->existing;
    return answer;
}

void mu__opener_answer_absent(struct mu__variable_store *store,
                              const struct open_answer *waiting)
{
    struct open_answer *notice = calloc(1, sizeof *notice);

    if (notice == NULL)
        return;
    notice->opened.requester = waiting->opened.requester;
    notice->opened.code = -MU_EAGAIN;
    notice->opened.reason = "it does not exist, and nobody creates it";
    mu__opener_append(&store->due, notice);
}

void mu__opener_answer(struct mu__variable_store *store, const struct variable *v,
                       bool created, struct open_answer *answer)
{
    answer->opened.id = v->id;
    answer->opened.created = created;
    mu__opener_append(&store->due, answer);
}

void mu__opener_stop_waiting(
    struct mu__variable_store *store, struct variable *v,
    bool (*leaves)(const struct open_answer *answer, const void *arg), const void *arg,
    void (*leave)(struct mu__variable_store *store, struct open_answer *answer))
{
    struct answers stay = {NULL, NULL};
    struct open_answer *answer;

    while ((answer = mu__opener_take_first(&v->waiting)) != NULL) {
        if (!leaves(answer, arg)) {
            mu__opener_append(&stay, answer);
            continue;
        }
        store->totals.waiting--;
        leave(store, answer);
    }
    v->waiting = stay;
}

bool mu__opener_same_requester(const struct mu__shard_requester *a,
                               const struct mu__shard_requester *b)
{
    return mu__pid_equal(a->pid, b->pid) && a->token == b->token;
}

bool mu__opener_is_of_requester(const struct open_answer *answer, const void *requester)
{
    return mu__opener_same_requester(&answer->opened.requester, requester);
}

bool mu__opener_is_of_node(const struct open_answer *answer, const void *node)
{
    return answer->opened.requester.pid.node == *(const uint32_t *)node;
}

bool mu__opener_is_mismatch(const struct open_answer *answer, const void *shape)
{
    return !mu__shape_equal(&answer->shape, shape);
}

void mu__opener_answer_cancelled(struct mu__variable_store *store,
                                 struct open_answer *answer)
{
    answer->opened.code = -MU_ECANCELLED;
    answer->opened.reason = "the open was given up";
    mu__opener_append(&store->due, answer);
}

void mu__opener_set_shards(const struct variable *v)
{
    for (struct open_answer *a = v->waiting.first; a != NULL; a = a->next)
        if (mu__shape_alike(&a->shape, &v->shape))
            a->opened.shards = v->shape.shards;
}

void mu__opener_answer_mismatch(struct mu__variable_store *store,
                                struct open_answer *answer)
{
    answer->opened.code = -MU_EPRECONDITION;
    answer->opened.reason =
        "it was created with another dtype, shape or number of shards";
    mu__opener_append(&store->due, answer);
}

void mu__opener_drop_answer(struct mu__variable_store *store, struct open_answer *answer)
{
    (void)store;
    free(answer);
}
