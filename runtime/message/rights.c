#include "runtime/message/rights.h"

#include <string.h>

static const char *const names[MU__RIGHT_STORED + 1] = {
    [MU__RIGHT_NONE] = "nothing", [MU__RIGHT_OBSERVE] = "observe",
    [MU__RIGHT_USE] = "use",      [MU__RIGHT_OPERATE] = "operate",
    [MU__RIGHT_TASK] = "task",    [MU__RIGHT_ALL] = "cluster",
    [MU__RIGHT_STORED] = "none",
};

const char *mu__right_name(enum mu__right right)
{
    return names[right];
}

enum mu__right mu__right_to_be(const char *type)
{
    if (strcmp(type, MU__CLIENT_TYPE) == 0)
        return MU__RIGHT_OBSERVE;
    return strcmp(type, MU__OFFER_TYPE) == 0 ? MU__RIGHT_OPERATE : MU__RIGHT_TASK;
}

enum mu__right mu__right_as(const char *type, enum mu__right right)
{
    return mu__right_to_be(type) < MU__RIGHT_TASK && right > MU__RIGHT_OPERATE
               ? MU__RIGHT_OPERATE
               : right;
}

enum mu__right mu__right_of(const char *name, unsigned size)
{
    for (int right = MU__RIGHT_OBSERVE; right < MU__RIGHTS_END; right++)
        if (strlen(names[right]) == size && memcmp(names[right], name, size) == 0)
            return (enum mu__right)right;
    return MU__RIGHT_NONE;
}
