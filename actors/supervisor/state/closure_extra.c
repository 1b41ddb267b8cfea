#include "actors/supervisor/state/closure_extra.h"

#include "actors/packing.h"

static bool add_extra_chunk(struct closure_extras *extras)
{
    uint32_t first = mu__closure_extras_count(extras);
    struct closure_extra *chunk = NULL;

    if (!mu__grow_array((void **)&extras->chunks, extras->chunks_count + 1,
                        sizeof *extras->chunks) ||
        !mu__grow_array((void **)&chunk, MU__EXTRAS_CHUNK, sizeof *chunk))
        return false;
    extras->chunks[extras->chunks_count++] = chunk;
    for (uint32_t i = 0; i < MU__EXTRAS_CHUNK; i++)
        chunk[i] = (struct closure_extra){
            .next_free = i + 1 < MU__EXTRAS_CHUNK ? first + i + 2 : extras->free,
        };
    extras->free = first + 1;
    return true;
}

struct closure_extra *mu__closure_extras_take(struct closure_extras *extras,
                                              struct mu__closure *closure)
{
    struct closure_extra *extra;

    if (closure->extra != 0)
        return mu__closure_extras_at(extras, closure->extra - 1);
    if (extras->free == 0 && !add_extra_chunk(extras))
        return NULL;
    closure->extra = extras->free;
    extra = mu__closure_extras_at(extras, extras->free - 1);
    extras->free = extra->next_free;
    extra->timer = 0;
    extra->closure = mu__closure_id(closure);
    extra->options.priority = MU__PRIORITY_DEFAULT;
    return extra;
}

static void free_content(struct closure_extra *extra)
{
    if (extra->inputs.has_many)
        mu__free_array(extra->inputs.many);
    mu__free_array(extra->name);
    mu__free_array(extra->failed_task);
}

void mu__closure_extras_release(struct closure_extras *extras,
                                struct mu__closure *closure)
{
    struct closure_extra *extra = mu__closure_extras_at(extras, closure->extra - 1);

    free_content(extra);
    mu__clear(extra, sizeof *extra);
    extra->next_free = extras->free;
    extras->free = closure->extra;
    closure->extra = 0;
}

void mu__closure_extras_done(struct closure_extras *extras)
{
    for (uint32_t i = 0; i < mu__closure_extras_count(extras); i++)
        free_content(mu__closure_extras_at(extras, i));
    for (uint32_t i = 0; i < extras->chunks_count; i++)
        mu__free_array(extras->chunks[i]);
    mu__free_array(extras->chunks);
}
