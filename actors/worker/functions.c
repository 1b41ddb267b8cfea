#include "actors/worker/functions.h"

#include "actors/packing.h"

#include <string.h>

enum { FUNCTIONS_MAX = 65536 };

static struct mu__registered *find_exactly(const struct function_table *functions,
                                           struct mu__view name)
{
    uint32_t hash = mu__view_hash(name);
    struct mu__registered *f = functions->buckets[hash % MU__FUNCTION_BUCKETS];

    while (f != NULL && (f->hash != hash || f->name_size != name.size ||
                         memcmp(f->name, name.data, name.size) != 0))
        f = f->next;
    return f;
}

struct mu__registered *mu__functions_find(const struct function_table *functions,
                                          struct mu__view name)
{
    struct mu__registered *f = find_exactly(functions, name);
    const uint8_t *colon =
        f != NULL || name.size == 0 ? NULL : memchr(name.data, ':', name.size);

    if (colon == NULL)
        return f;
    name.size = (uint32_t)(colon - (const uint8_t *)name.data);
    return find_exactly(functions, name);
}

static int check(const struct function_table *functions, bool is_serving,
                 struct mu__function_call *call)
{
    struct mu__view name = mu__view_str(call->name);

    if (name.size == 0 || name.size > MU__FUNCTION_NAME_MAX)
        return mu_error_set(&call->call.error, -MU_EINVALID,
                            "a function's name has 1 to %d bytes, \"%.80s\" has %u",
                            MU__FUNCTION_NAME_MAX, call->name, name.size);
    if (find_exactly(functions, name) != NULL)
        return mu_error_set(&call->call.error, -MU_EEXISTS,
                            "function \"%s\" is registered already", call->name);
    if (is_serving)
        return mu_error_set(&call->call.error, -MU_EPRECONDITION,
                            "this node serves already: functions are registered before "
                            "that");
    return 0;
}

int mu__functions_add(struct function_table *functions,
                      const struct mu__worker_config *config, bool is_serving,
                      struct mu__function_call *call)
{
    struct mu__view name = mu__view_str(call->name);
    struct mu__registered *f = NULL;
    int rv = check(functions, is_serving, call);

    if (rv != 0)
        return rv;
    if (functions->count == FUNCTIONS_MAX ||
        !mu__grow_array((void **)&f, 1, sizeof *f))
        return mu_error_set(&call->call.error, -MU_ENOMEM,
                            "no memory for function \"%s\"", call->name);
    *f = (struct mu__registered){
        .function = call->function,
        .user = call->user,
        .flags = call->flags,
        .worker = (int)config->index,
        .worker_type = config->type,
        .post = config->post,
        .hash = mu__view_hash(name),
        .name_size = name.size,
    };
    memcpy(f->name, call->name, name.size);
    f->next = functions->buckets[f->hash % MU__FUNCTION_BUCKETS];
    functions->buckets[f->hash % MU__FUNCTION_BUCKETS] = f;
    functions->count++;
    return 0;
}

static bool is_running(const struct mu__run_list *running,
                       const struct mu__registered *f)
{
    const struct mu_run *run = running->first;

    while (run != NULL && run->registered != f)
        run = run->next;
    return run != NULL;
}

void mu__functions_done(struct function_table *functions,
                        const struct mu__run_list *running)
{
    for (size_t i = 0; i < MU__FUNCTION_BUCKETS; i++)
        while (functions->buckets[i] != NULL) {
            struct mu__registered *f = functions->buckets[i];

            functions->buckets[i] = f->next;
            if (!is_running(running, f))
                mu__free_array(f);
        }
}
