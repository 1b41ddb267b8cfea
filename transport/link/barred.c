#include "transport/link/barred.h"

#include "muster/error.h"

#include <stdlib.h>
#include <string.h>

struct barred_task {
    struct mu__hash_node hashed; /* by mu__task_key; first: it casts */
    struct mu__list_node listed;
    char type[16];
    uint32_t index;
    uint64_t incarnation; /* 0 and no url: the task itself */
    char *url;            /* NULL: none; stored behind the words */
    char words[];
};

static void drop_barred(struct mu__barred *barred, struct barred_task *one)
{
    mu__list_remove(&barred->list, &one->listed);
    mu__hash_table_remove(&barred->by_task, &one->hashed);
    free(one);
}

static void drop_oldest(struct mu__barred *barred)
{
    drop_barred(barred, MU__LIST_FIRST(&barred->list, struct barred_task, listed));
}

void mu__barred_done(struct mu__barred *barred)
{
    while (!mu__list_is_empty(&barred->list))
        drop_oldest(barred);
    mu__hash_table_done(&barred->by_task);
}

static struct barred_task *find_barred(const struct mu__barred *barred,
                                       struct mu__view type, uint32_t index)
{
    struct mu__hash_node *at =
        mu__hash_table_find(&barred->by_task, mu__task_key(type, index));

    while (at != NULL && (((struct barred_task *)at)->index != index ||
                          !mu__view_is(type, ((struct barred_task *)at)->type)))
        at = mu__hash_next(at);
    return (struct barred_task *)at;
}

void mu__barred_remove(struct mu__barred *barred, const char *type, uint32_t index)
{
    struct barred_task *one = find_barred(barred, mu__view_str(type), index);

    if (one != NULL)
        drop_barred(barred, one);
}

static struct barred_task *one_new(const char *type, uint32_t index, const char *url,
                                   const char *words)
{
    size_t words_size = strlen(words) + 1;
    size_t url_size = url == NULL ? 0 : strlen(url) + 1;
    struct barred_task *one = malloc(sizeof *one + words_size + url_size);

    if (one == NULL)
        return NULL;
    *one = (struct barred_task){
        .index = index,
        .url = url == NULL ? NULL : one->words + words_size,
    };
    mu__view_copy(mu__view_str(type), one->type, sizeof one->type);
    memcpy(one->words, words, words_size);
    if (url != NULL)
        memcpy(one->url, url, url_size);
    return one;
}

int mu__barred_add(struct mu__barred *barred, const char *type, uint32_t index,
                   uint64_t incarnation, const char *url, const char *words)
{
    struct barred_task *one;

    mu__barred_remove(barred, type, index);
    one = one_new(type, index, url, words);
    if (one == NULL)
        return -MU_ENOMEM;
    one->incarnation = incarnation;
    if (mu__hash_table_add(&barred->by_task, mu__task_key(mu__view_str(type), index),
                           &one->hashed) != 0) {
        free(one);
        return -MU_ENOMEM;
    }
    mu__list_append(&barred->list, &one->listed);
    if (barred->by_task.count > MU__BARRED_MAX)
        drop_oldest(barred);
    return 0;
}

static bool is_process_barred(const struct barred_task *one, uint64_t incarnation,
                              struct mu__view url)
{
    if (one->incarnation == 0 && one->url == NULL)
        return true;
    return (one->incarnation != 0 && one->incarnation == incarnation) ||
           (one->url != NULL && mu__view_is(url, one->url));
}

const char *mu__barred_why(const struct mu__barred *barred, struct mu__view type,
                           uint32_t index, uint64_t incarnation, struct mu__view url)
{
    const struct barred_task *one = find_barred(barred, type, index);

    return one != NULL && is_process_barred(one, incarnation, url) ? one->words : NULL;
}
