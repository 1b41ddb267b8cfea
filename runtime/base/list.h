/* An intrusive doubly linked list: each entry has a struct mu__list_node for each list
 * that it can be in. A list owns nothing and allocates nothing; zeroed memory is an empty
 * list.
 *
 *     struct job { struct mu__list_node node; ... };
 *     mu__list_append(&queue, &job->node);
 *     for (struct job *job = MU__LIST_FIRST(&queue, struct job, node); job != NULL;
 *          job = MU__LIST_NEXT(job, struct job, node))
 *
 * A loop that removes the entry fetches the next one first. */
#ifndef MU_RUNTIME_LIST_H
#define MU_RUNTIME_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* Both NULL while the entry is in no list, or alone in one. */
struct mu__list_node {
    struct mu__list_node *next;
    struct mu__list_node *prev;
};

struct mu__list {
    struct mu__list_node *first;
    struct mu__list_node *last;
};

/* The struct that `node` is the `member` of; `node` is not NULL. */
#define MU__LIST_ENTRY(node, type, member) \
    ((type *)(void *)((char *)(node)-offsetof(type, member)))

/* NULL at the end. */
#define MU__LIST_FIRST(list, type, member) \
    ((list)->first == NULL ? NULL : MU__LIST_ENTRY((list)->first, type, member))
#define MU__LIST_LAST(list, type, member) \
    ((list)->last == NULL ? NULL : MU__LIST_ENTRY((list)->last, type, member))
#define MU__LIST_NEXT(entry, type, member) \
    ((entry)->member.next == NULL ? NULL   \
                                  : MU__LIST_ENTRY((entry)->member.next, type, member))

static inline bool mu__list_is_empty(const struct mu__list *list)
{
    return list->first == NULL;
}

/* `before` is in the list; NULL: at the end. */
static inline void mu__list_insert(struct mu__list *list, struct mu__list_node *before,
                                   struct mu__list_node *node)
{
    struct mu__list_node *after = before == NULL ? list->last : before->prev;

    node->next = before;
    node->prev = after;
    if (before == NULL)
        list->last = node;
    else
        before->prev = node;
    if (after == NULL)
        list->first = node;
    else
        after->next = node;
}

static inline void mu__list_append(struct mu__list *list, struct mu__list_node *node)
{
    mu__list_insert(list, NULL, node);
}

static inline void mu__list_prepend(struct mu__list *list, struct mu__list_node *node)
{
    mu__list_insert(list, list->first, node);
}

/* `node` is in this list. */
static inline void mu__list_remove(struct mu__list *list, struct mu__list_node *node)
{
    if (node->prev == NULL)
        list->first = node->next;
    else
        node->prev->next = node->next;
    if (node->next == NULL)
        list->last = node->prev;
    else
        node->next->prev = node->prev;
    node->next = node->prev = NULL;
}

/* The first, taken out; NULL: there is none. */
static inline struct mu__list_node *mu__list_pop(struct mu__list *list)
{
    struct mu__list_node *node = list->first;

    if (node == NULL)
        return NULL;
    list->first = node->next;
    if (node->next == NULL)
        list->last = NULL;
    else
        node->next->prev = NULL;
    node->next = NULL;
    return node;
}

/* All of `from` to the end of `list`. */
static inline void mu__list_append_all(struct mu__list *list, struct mu__list *from)
{
    if (from->first == NULL)
        return;
    from->first->prev = list->last;
    if (list->last == NULL)
        list->first = from->first;
    else
        list->last->next = from->first;
    list->last = from->last;
    from->first = from->last = NULL;
}

#endif
