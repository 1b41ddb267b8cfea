#include "transport/barred.h"

#include "muster/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mu__barred_one {
    struct mu__barred_one *next;
    char type[16];
    uint32_t index;
    uint64_t incarnation;   /* 0 and no url: the task itself */
    char *url;              /* NULL: none; behind the words */
    char words[];
};

void mu__barred_done(struct mu__barred *barred)
{
    struct mu__barred_one *next;

    for (struct mu__barred_one *one = barred->first; one != NULL; one = next) {
        next = one->next;
        free(one);
    }
    *barred = (struct mu__barred){0};
}

static void drop(struct mu__barred *barred, struct mu__barred_one **at)
{
    struct mu__barred_one *one = *at;

    *at = one->next;
    barred->count--;
    free(one);
}

void mu__barred_remove(struct mu__barred *barred, const char *type, uint32_t index)
{
    for (struct mu__barred_one **at = &barred->first; *at != NULL; at = &(*at)->next)
        if ((*at)->index == index && strcmp((*at)->type, type) == 0) {
            drop(barred, at);
            return;
        }
}

static void drop_longest(struct mu__barred *barred)
{
    struct mu__barred_one **at = &barred->first;

    while ((*at)->next != NULL)
        at = &(*at)->next;
    drop(barred, at);
}

int mu__barred_add(struct mu__barred *barred, const char *type, uint32_t index,
                   uint64_t incarnation, const char *url, const char *words)
{
    size_t words_size = strlen(words) + 1;
    size_t url_size = url == NULL ? 0 : strlen(url) + 1;
    struct mu__barred_one *one;

    mu__barred_remove(barred, type, index);
    one = malloc(sizeof *one + words_size + url_size);
    if (one == NULL)
        return -MU_ENOMEM;
    *one = (struct mu__barred_one){
        .next = barred->first,
        .index = index,
        .incarnation = incarnation,
        .url = url == NULL ? NULL : one->words + words_size,
    };
    (void)snprintf(one->type, sizeof one->type, "%s", type);
    memcpy(one->words, words, words_size);
    if (url != NULL)
        memcpy(one->url, url, url_size);
    if (barred->count == MU__BARRED_MAX)
        drop_longest(barred);
    barred->first = one;
    barred->count++;
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
    for (const struct mu__barred_one *one = barred->first; one != NULL; one = one->next)
        if (one->index == index && mu__view_is(type, one->type))
            return is_meant(one, incarnation, url) ? one->words : NULL;
    return NULL;
}
