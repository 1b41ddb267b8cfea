#include "resolver/kept_answers.h"

#include <stdlib.h>
#include <string.h>

static void drop(struct mu__kept_answer *row)
{
    free(row->name);
    free(row->body);
    free(row->data);
    *row = (struct mu__kept_answer){0};
}

static bool is_of(const struct mu__kept_answer *row, const struct mu__question *question)
{
    return row->name != NULL && strcmp(row->name, question->name) == 0 &&
           row->body_size == question->body_size &&
           (row->body_size == 0 ||
            memcmp(row->body, question->body, row->body_size) == 0);
}

static struct mu__kept_answer *find(struct mu__kept_answers *kept,
                                    const struct mu__question *question)
{
    for (size_t i = 0; i < MU__KEPT_ANSWERS_MAX; i++)
        if (is_of(&kept->rows[i], question))
            return &kept->rows[i];
    return NULL;
}

const struct mu__kept_answer *mu__kept_answers_find(struct mu__kept_answers *kept,
                                            const struct mu__question *question,
                                            uint64_t now_ms)
{
    struct mu__kept_answer *row;

    if (question->keep_ms == 0 || question->again != 0)
        return NULL;
    row = find(kept, question);
    return row != NULL && now_ms < row->end_ms ? row : NULL;
}

/* A free place, or that of the one that ends first. */
static struct mu__kept_answer *make_room(struct mu__kept_answers *kept)
{
    struct mu__kept_answer *first = &kept->rows[0];

    for (size_t i = 0; i < MU__KEPT_ANSWERS_MAX; i++) {
        if (kept->rows[i].name == NULL)
            return &kept->rows[i];
        if (kept->rows[i].end_ms < first->end_ms)
            first = &kept->rows[i];
    }
    drop(first);
    return first;
}

static void *copy(const void *bytes, size_t size)
{
    char *all = malloc(size + 1);

    if (all == NULL)
        return NULL;
    if (size > 0)
        memcpy(all, bytes, size);
    all[size] = '\0';
    return all;
}

void mu__kept_answers_put(struct mu__kept_answers *kept,
                          const struct mu__question *question, const char *data,
                          size_t size, uint64_t now_ms)
{
    struct mu__kept_answer *row = find(kept, question);

    if (row == NULL)
        row = make_room(kept);
    else
        drop(row);
    *row = (struct mu__kept_answer){
        .name = copy(question->name, strlen(question->name)),
        .body = copy(question->body, question->body_size),
        .body_size = question->body_size,
        .data = copy(data, size),
        .size = size,
        .end_ms = now_ms + question->keep_ms,
    };
    if (row->name == NULL || row->body == NULL || row->data == NULL)
        drop(row);
}

void mu__kept_answers_done(struct mu__kept_answers *kept)
{
    for (size_t i = 0; i < MU__KEPT_ANSWERS_MAX; i++)
        drop(&kept->rows[i]);
}
