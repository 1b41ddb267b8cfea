/* The writes of one run: a list that the run fills and the effects actor sends. */
#include "actors/effects/effects.h"

#include "actors/variables/opened_variable.h"
#include "runtime/message/block_pool.h"

#include <assert.h>
#include <string.h>

int mu__effects_add(struct mu__effects *effects, const struct mu__effect *write,
                    const void *data)
{
    uint64_t bytes = write->size < MU__EFFECT_BYTES_MIN ? MU__EFFECT_BYTES_MIN
                                                        : write->size;
    struct mu__effect *effect;

    assert(write->size > 0);
    if (bytes > MU__EFFECTS_BYTES_MAX - effects->bytes)
        return -MU_EEXHAUSTED;
    effect = mu__block_get(sizeof *effect + (size_t)write->size);
    if (effect == NULL)
        return -MU_ENOMEM;
    *effect = *write;
    effect->next = NULL;
    if (effect->opened != NULL)
        (void)mu__opened_variable_ref(effect->opened);
    memcpy(effect->data, data, (size_t)write->size);
    if (effects->last == NULL)
        effects->first = effect;
    else
        effects->last->next = effect;
    effects->last = effect;
    effects->bytes += bytes;
    return 0;
}

void mu__effects_cut(struct mu__effects *effects, struct mu__effect *last, uint64_t bytes)
{
    struct mu__effect *effect = last == NULL ? effects->first : last->next;

    while (effect != NULL) {
        struct mu__effect *next = effect->next;

        mu__opened_variable_unref(effect->opened);
        mu__block_put(effect);
        effect = next;
    }
    if (last == NULL)
        effects->first = NULL;
    else
        last->next = NULL;
    effects->last = last;
    effects->bytes = bytes;
}

void mu__effects_clear(struct mu__effects *effects)
{
    mu__effects_cut(effects, NULL, 0);
}
