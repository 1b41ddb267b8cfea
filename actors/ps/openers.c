/* Answers to opens: those that are due, and those that wait for a shard. An open gets the
 * memory of its answer when it is made, so that answering cannot fail. */
#include "actors/ps/internal.h"

#include <stdlib.h>

/* ---- Answers ---- */

struct open_answer *mu__opener_take_first(struct mu__list *list)
{
    return (struct open_answer *)mu__list_pop(list);
}

void mu__opener_free_answers(struct mu__list *list)
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
    answer->creation = request->creation;
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
    mu__list_append(&store->due, &notice->node);
}

void mu__opener_answer(struct mu__variable_store *store, const struct variable *v,
                       bool created, struct open_answer *answer)
{
    answer->opened.id = v->id;
    answer->opened.created = created;
    answer->opened.creation = created && v->shard == 0 ? v->creation : 0;
    mu__list_append(&store->due, &answer->node);
}

void mu__opener_stop_waiting(
    struct mu__variable_store *store, struct variable *v,
    bool (*leaves)(const struct open_answer *answer, const void *arg), const void *arg,
    void (*leave)(struct mu__variable_store *store, struct open_answer *answer))
{
    struct mu__list stay = {NULL, NULL};
    struct open_answer *answer;

    while ((answer = mu__opener_take_first(&v->waiting)) != NULL) {
        if (!leaves(answer, arg)) {
            mu__list_append(&stay, &answer->node);
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
    mu__list_append(&store->due, &answer->node);
}

void mu__opener_set_shards(const struct variable *v)
{
    for (struct open_answer *a = MU__LIST_FIRST(&v->waiting, struct open_answer, node);
         a != NULL; a = MU__LIST_NEXT(a, struct open_answer, node))
        if (mu__shape_alike(&a->shape, &v->shape))
            a->opened.shards = v->shape.shards;
}

void mu__opener_answer_mismatch(struct mu__variable_store *store,
                                struct open_answer *answer)
{
    answer->opened.code = -MU_EPRECONDITION;
    answer->opened.reason =
        "it was created with another dtype, shape or number of shards";
    mu__list_append(&store->due, &answer->node);
}

void mu__opener_drop_answer(struct mu__variable_store *store, struct open_answer *answer)
{
    (void)store;
    free(answer);
}
