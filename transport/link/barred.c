#include "transport/link/barred.h"

#include "muster/error.h"

#include <stdlib.h>
#include <string.h>

struct mu__barred_one {
    struct mu__chained chained; /* first, so that it is the one */
    struct mu__barred_one *next;
    struct mu__barred_one *prev;
    char type[16];
    uint32_t index;
    uint64_t incarnation;   /* 0 and no url: the task itself */
    char *url;              /* NULL: none; behind the words */
    char words[];
};

static void drop(struct mu__barred *barred, struct mu__barred_one *one)
{
    *(one->prev == NULL ? &barred->first : &one->prev->next) = one->next;
    *(one->next == NULL ? &barred->last : &one->next->prev) = one->prev;
    barred->count--;
    mu__chains_remove(&barred->chains, &one->chained);
    free(one);
}

void mu__barred_done(struct mu__barred *barred)
{
    while (barred->first != NULL)
        drop(barred, barred->first);
    mu__chains_done(&barred->chains);
    *barred = (struct mu__barred){0};
}

static struct mu__barred_one *find(const struct mu__barred *barred, struct mu__view type,
                                   uint32_t index)
{
    struct mu__chained *at = mu__chains_first(&barred->chains, mu__task_key(type, index));

    while (at != NULL && (((struct mu__barred_one *)at)->index != index ||
                          !mu__view_is(type, ((struct mu__barred_one *)at)->type)))
        at = at->next;
    return (struct mu__barred_one *)at;
}

void mu__barred_remove(struct mu__barred *barred, const char *type, uint32_t index)
{
    struct mu__barred_one *one = find(barred, mu__view_str(type), index);

    if (one != NULL)
        drop(barred, one);
}

static struct mu__barred_one *one_new(const char *type, uint32_t index, const char *url,
                                      const char *words)
{
    size_t words_size = strlen(words) + 1;
    size_t url_size = url == NULL ? 0 : strlen(url) + 1;
    struct mu__barred_one *one = malloc(sizeof *one + words_size + url_size);

    if (one == NULL)
        return NULL;
    *one = (struct mu__barred_one){
        .index = index,
        .url = url == NULL ? NULL : one->words + words_size,
    };
    mu__view_copy(mu__view_str(type), one->type, sizeof one->type);
    memcpy(one->words, words, words_size);
    if (url != NULL)
        memcpy(one->url, url, url_size);
    return one;
}

static void append(struct mu__barred *barred, struct mu__barred_one *one)
{
    one->prev = barred->last;
    *(barred->last == NULL ? &barred->first : &barred->last->next) = one;
    barred->last = one;
    barred->count++;
}

int mu__barred_add(struct mu__barred *barred, const char *type, uint32_t index,
                   uint64_t incarnation, const char *url, const char *words)
{
    struct mu__barred_one *one;

    mu__barred_remove(barred, type, index);
    one = one_new(type, index, url, words);
    if (one == NULL)
        return -MU_ENOMEM;
    one->incarnation = incarnation;
    if (mu__chains_add(&barred->chains, mu__task_key(mu__view_str(type), index),
                       &one->chained) != 0) {
        free(one);
        return -MU_ENOMEM;
    }
    if (barred->count == MU__BARRED_MAX)
        drop(barred, barred->first);
    append(barred, one);
    return 0;
}

static bool is_meant(const struct mu__barred_one *one, uint64_t incarnation,
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
    const struct mu__barred_one *one = find(barred, type, index);

    return one != NULL && is_meant(one, incarnation, url) ? one->words : NULL;
}
