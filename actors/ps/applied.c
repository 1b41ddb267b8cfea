#include "actors/ps/applied.h"

void mu__applied_done(struct mu__applied *applied)
{
    mu__id_window_done(&applied->window);
}

bool mu__applied_fence(struct mu__applied *applied, uint64_t origin, uint64_t epoch)
{
    bool is_known = applied->origin == origin && origin != 0;

    applied->epoch = epoch;
    applied->fenced = true;
    if (is_known)
        return false;
    applied->origin = origin;
    mu__id_window_done(&applied->window);
    mu__id_window_init(&applied->window, 1);
    return true;
}

enum mu__applied_verdict mu__applied_check(struct mu__applied *applied,
                                           const struct mu__effect_id *id)
{
    if (!applied->fenced)
        return MU__APPLIED_UNFENCED;
    if (applied->origin != id->origin)
        return MU__APPLIED_FENCED;
    mu__id_window_raise(&applied->window,
                        id->effects_done < id->effect ? id->effects_done : id->effect);
    if (mu__id_window_has(&applied->window, id->effect))
        return MU__APPLIED_BEFORE;
    return MU__APPLIED_NOT;
}

int mu__applied_mark(struct mu__applied *applied, uint64_t effect)
{
    return mu__id_window_add(&applied->window, effect);
}
