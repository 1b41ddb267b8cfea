#include "actors/worker/functions.h"

#include "actors/packing.h"

#include <string.h>

enum { FUNCTIONS_MAX = 65536 };

static struct mu__registered *find_exactly(const struct function_table *functions,
                                           struct mu__view name)
{
    return (struct mu__registered *)mu__text_map_find(&functions->by_name, name);
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

static int check_function(const struct function_table *functions, bool is_serving,
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

static int fail_function_memory(struct mu__function_call *call)
{
    return mu_error_set(&call->call.error, -MU_ENOMEM, "no memory for function \"%s\"",
                        call->name);
}

int mu__functions_add(struct function_table *functions,
                      const struct mu__worker_config *config, bool is_serving,
                      struct mu__function_call *call)
{
    struct mu__view name = mu__view_str(call->name);
    struct mu__registered *f = NULL;
    int rv = check_function(functions, is_serving, call);

    if (rv != 0)
        return rv;
    if (functions->by_name.table.count == FUNCTIONS_MAX ||
        !mu__grow_array((void **)&f, 1, sizeof *f))
        return fail_function_memory(call);
    *f = (struct mu__registered){
        .function = call->function,
        .user = call->user,
        .flags = call->flags,
        .worker = (int)config->index,
        .worker_type = config->type,
        .post = config->post,
    };
    memcpy(f->name, call->name, name.size);
    f->named.text = (struct mu__view){f->name, name.size};
    if (mu__text_map_add(&functions->by_name, &f->named) == 0)
        return 0;
    mu__free_array(f);
    return fail_function_memory(call);
}

static bool is_function_running(const struct mu__list *running,
                                const struct mu__registered *f)
{
    const struct mu_run *run = mu__run_first(running);

    while (run != NULL && run->registered != f)
        run = mu__run_next(run);
    return run != NULL;
}

void mu__functions_done(struct function_table *functions, const struct mu__list *running)
{
    struct mu__text_node *next = mu__text_map_next(&functions->by_name, NULL);

    while (next != NULL) {
        struct mu__registered *f = (struct mu__registered *)next;

        next = mu__text_map_next(&functions->by_name, next);
        if (!is_function_running(running, f))
            mu__free_array(f);
    }
    mu__text_map_done(&functions->by_name);
}
