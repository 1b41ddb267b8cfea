#include "resolver/engine/kept_answers.h"

#include <stdlib.h>
#include <string.h>

static void drop(struct mu__pinned_answer *row)
{
    if (row->used)
        mu__question_done(&row->question);
    free(row->data);
    *row = (struct mu__pinned_answer){0};
}

/* A new answer is kept as the answer to the question that wants any. */
static struct mu__question plain(const struct mu__question *question)
{
    struct mu__question any = *question;

    any.again = 0;
    return any;
}

static struct mu__pinned_answer *find(struct mu__pinned_answers *kept,
                                    const struct mu__question *question)
{
    const struct mu__question any = plain(question);

    for (size_t i = 0; i < MU__PINNED_ANSWERS_MAX; i++)
        if (kept->rows[i].used && mu__question_same(&kept->rows[i].question, &any))
            return &kept->rows[i];
    return NULL;
}

const struct mu__pinned_answer *mu__pinned_answers_find(struct mu__pinned_answers *kept,
                                            const struct mu__question *question,
                                            uint64_t now_ms)
{
    struct mu__pinned_answer *row;

    if (question->keep_ms == 0 || question->again != 0)
        return NULL;
    row = find(kept, question);
    return row != NULL && now_ms < row->end_ms ? row : NULL;
}

/* A free place, or that of the one that ends first. */
static struct mu__pinned_answer *make_room(struct mu__pinned_answers *kept)
{
    struct mu__pinned_answer *first = &kept->rows[0];

    for (size_t i = 0; i < MU__PINNED_ANSWERS_MAX; i++) {
        if (!kept->rows[i].used)
            return &kept->rows[i];
        if (kept->rows[i].end_ms < first->end_ms)
            first = &kept->rows[i];
    }
    drop(first);
    return first;
}

void mu__pinned_answers_put(struct mu__pinned_answers *kept,
                          const struct mu__question *question, const char *data,
                          size_t size, uint64_t now_ms)
{
    const struct mu__question any = plain(question);
    struct mu__pinned_answer *row = find(kept, question);

    if (row == NULL)
        row = make_room(kept);
    else
        drop(row);
    row->used = mu__question_copy(&any, &row->question) == 0;
    row->data = malloc(size + 1);
    if (!row->used || row->data == NULL) {
        drop(row);
        return;
    }
    if (size > 0)
        memcpy(row->data, data, size);
    row->data[size] = '\0';
    row->size = size;
    row->end_ms = now_ms + question->keep_ms;
}

void mu__pinned_answers_done(struct mu__pinned_answers *kept)
{
    for (size_t i = 0; i < MU__PINNED_ANSWERS_MAX; i++)
        drop(&kept->rows[i]);
}
