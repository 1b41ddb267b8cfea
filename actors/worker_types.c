#include "actors/worker_types.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = sizeof((struct mu__worker_type *)0)->name, SHOWN_MAX = 200 };

#define EXPECTED "expected task types with commas between, as \"worker,gpu\""

/* Types of tasks that never run closures. */
static const char *const busy[] = {"chief", "ps", "evaluator", "client"};

static bool is_reserved_type(struct mu__view name)
{
    for (size_t i = 0; i < sizeof busy / sizeof busy[0]; i++)
        if (mu__view_is(name, busy[i]))
            return true;
    return false;
}

/* Whether a cluster spec may have a task type of that name. */
static bool is_type_name(const char *name, size_t length)
{
    return length > 0 && length < NAME_BYTES && name[0] >= 'a' && name[0] <= 'z' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") >= length;
}

uint32_t mu__worker_types_find(const struct mu__worker_types *types, struct mu__view name)
{
    for (uint32_t i = 0; i < types->count; i++)
        if (mu__view_is(name, types->rows[i].name))
            return i;
    return MU__ROLE_NONE;
}

static int check_listed_type(const struct mu__worker_types *types, struct mu__view name,
                             const char *text, mu_error *ret_error)
{
    const char *at = name.data;

    if (name.size == 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "option worker_types is \"%.*s\", where a task type is "
                            "missing; " EXPECTED,
                            SHOWN_MAX, text);
    if (!is_type_name(at, name.size))
        return mu_error_set(
            ret_error, -MU_EINVALID,
            "option worker_types names \"%.*s\", which is no task type; " EXPECTED,
            (int)(name.size < SHOWN_MAX ? name.size : SHOWN_MAX), at);
    if (is_reserved_type(name))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "option worker_types names \"%.*s\": tasks of that type have "
                            "work of their own and run no closures; expected \"worker\" "
                            "and types of your own",
                            (int)name.size, at);
    if (mu__worker_types_find(types, name) != MU__ROLE_NONE)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "option worker_types names \"%.*s\" twice; " EXPECTED,
                            (int)name.size, at);
    if (types->count == MU__WORKER_TYPES_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "option worker_types names more than %d types",
                            MU__WORKER_TYPES_MAX);
    return 0;
}

int mu__worker_types_parse(const char *text, mu_error *ret_error,
                           struct mu__worker_types *ret_types)
{
    struct mu__worker_types types = {0};
    const char *whole = text == NULL ? MU__WORKER_TYPES : text;
    const char *at = whole;

    for (;;) {
        size_t size = strcspn(at, ",");
        struct mu__view name = {at, (uint32_t)size};
        int rv = check_listed_type(&types, name, whole, ret_error);

        if (rv != 0)
            return rv;
        mu__view_copy(name, types.rows[types.count++].name, NAME_BYTES);
        if (at[size] == '\0')
            break;
        at += size + 1;
    }
    *ret_types = types;
    return 0;
}

void mu__worker_types_text(const struct mu__worker_types *types, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (uint32_t i = 0; i < types->count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i == 0 ? "" : ",",
                                 types->rows[i].name);
}
