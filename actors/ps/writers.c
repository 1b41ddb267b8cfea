#include "actors/ps/writers.h"

#include "muster/error.h"

#include <stdlib.h>

static void free_writer(struct mu__writers *writers, struct mu__known_writer *writer)
{
    (void)mu__map_remove(&writers->by_origin, writer->origin);
    mu__list_remove(&writers->by_use, &writer->node);
    mu__id_window_done(&writer->window);
    free(writer);
    writers->count--;
}

void mu__writers_done(struct mu__writers *writers)
{
    struct mu__known_writer *writer;

    while ((writer = mu__writers_first(writers)) != NULL)
        free_writer(writers, writer);
    mu__map_done(&writers->by_origin);
}

/* What writes moves to the front. */
static struct mu__known_writer *find_writer(struct mu__writers *writers, uint64_t origin)
{
    struct mu__known_writer *writer = mu__map_get(&writers->by_origin, origin);

    if (writer == NULL || writers->by_use.first == &writer->node)
        return writer;
    mu__list_remove(&writers->by_use, &writer->node);
    mu__list_prepend(&writers->by_use, &writer->node);
    return writer;
}

struct mu__known_writer *mu__writers_need(struct mu__writers *writers, uint64_t origin)
{
    struct mu__known_writer *writer = find_writer(writers, origin);

    if (writer != NULL)
        return writer;
    writer = calloc(1, sizeof *writer);
    if (writer == NULL || mu__map_set(&writers->by_origin, origin, writer) != 0) {
        free(writer);
        return NULL;
    }
    writer->origin = origin;
    mu__id_window_init(&writer->window, 1);
    mu__list_prepend(&writers->by_use, &writer->node);
    writers->count++;
    if (writers->count > MU__WRITERS_MAX)
        free_writer(writers,
                    MU__LIST_LAST(&writers->by_use, struct mu__known_writer, node));
    return writer;
}

enum mu__applied_verdict mu__writers_check(struct mu__writers *writers,
                                           const struct mu__effect_id *id)
{
    struct mu__known_writer *writer = find_writer(writers, id->origin);

    if (writer == NULL)
        return MU__APPLIED_NOT;
    mu__id_window_raise(&writer->window,
                        id->effects_done < id->effect ? id->effects_done : id->effect);
    return mu__id_window_has(&writer->window, id->effect) ? MU__APPLIED_BEFORE
                                                          : MU__APPLIED_NOT;
}

int mu__writers_mark(struct mu__writers *writers, const struct mu__effect_id *id)
{
    struct mu__known_writer *writer = mu__writers_need(writers, id->origin);

    if (writer == NULL)
        return -MU_ENOMEM;
    mu__id_window_raise(&writer->window,
                        id->effects_done < id->effect ? id->effects_done : id->effect);
    return mu__id_window_add(&writer->window, id->effect);
}
