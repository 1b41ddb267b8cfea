/* Kinds of stores by name. */
#include "actors/coordination/store/store.h"

#include <stdio.h>
#include <string.h>

enum { NAMES_BYTES = 128 };

/* "memory, journal:... or etcd:..." */
static void list_store_names(const struct mu__store_kind *const *registry,
                             char names[NAMES_BYTES])
{
    size_t used = 0;

    names[0] = '\0';
    for (size_t i = 0; registry[i] != NULL; i++) {
        const char *comma = i == 0 ? "" : registry[i + 1] == NULL ? " or " : ", ";
        int size = snprintf(names + used, NAMES_BYTES - used, "%s%s%s", comma,
                            registry[i]->name, registry[i]->has_location ? ":..." : "");

        if (size < 0 || (size_t)size >= NAMES_BYTES - used)
            return;
        used += (size_t)size;
    }
}

static int refuse_store(const struct mu__store_kind *const *registry, const char *text,
                        const char *why, mu_error *error)
{
    char names[NAMES_BYTES];

    list_store_names(registry, names);
    return mu_error_set(error, -MU_EINVALID, "store \"%.200s\" %s; expected %s", text,
                        why, names);
}

int mu__store_find(const struct mu__store_kind *const *registry, const char *text,
                   mu_error *ret_error, const struct mu__store_kind **ret_kind,
                   const char **ret_location)
{
    size_t size = strcspn(text, ":");
    const char *location = text[size] == ':' ? text + size + 1 : text + size;
    const struct mu__store_kind *kind = NULL;

    for (size_t i = 0; registry[i] != NULL; i++)
        if (strlen(registry[i]->name) == size &&
            memcmp(registry[i]->name, text, size) == 0)
            kind = registry[i];
    if (kind == NULL)
        return refuse_store(registry, text, "is of no kind that there is", ret_error);
    if (kind->has_location && location[0] == '\0')
        return refuse_store(registry, text, "does not say where it is", ret_error);
    if (!kind->has_location && text[size] == ':')
        return refuse_store(registry, text, "says where it is, which means nothing",
                            ret_error);
    *ret_kind = kind;
    *ret_location = location;
    return 0;
}
