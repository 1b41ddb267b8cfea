/* What functions call while they run: iterators, objects of a worker that give one
 * element at a time; and writes of variables, checked, then copied and cut into shards,
 * which the variables actor sends when the function has returned 0. */
#include "actors/ps/slots/slots.h"
#include "actors/ps/variable_store.h"
#include "actors/variables/variables.h"
#include "actors/worker/function_run.h"
#include "api/internal.h"
#include "runtime/message/arguments.h"

#include "muster/node.h"

#include <stdbool.h>
#include <stdlib.h>
#include <uv.h>

/* ---- iterators ---- */

/* Any executor thread; the lock guards `ended` and the calling of `next`. */
struct iterator {
    uv_mutex_t lock;
    int (*next)(void *state, mu_value **ret_element);
    void (*drop)(void *state);
    void *state;
    bool ended;
};

/* What objects of this kind are known by: only its address counts. */
static const char kind[] = "iterator";

static void iterator_free(void *object)
{
    struct iterator *iterator = object;

    if (iterator->drop != NULL)
        iterator->drop(iterator->state);
    uv_mutex_destroy(&iterator->lock);
    free(iterator);
}

static struct iterator *iterator_new(void)
{
    struct iterator *iterator = calloc(1, sizeof *iterator);

    if (iterator == NULL || uv_mutex_init(&iterator->lock) == 0)
        return iterator;
    free(iterator);
    return NULL;
}

/* The run fails like one without memory for an object. */
static int refuse_object(mu_run *run, void (*drop)(void *state), void *state, int code)
{
    if (drop != NULL)
        drop(state);
    if (run == NULL)
        return code;
    mu_run_return(run, NULL);
    run->no_memory = true;
    return code;
}

int mu_run_return_iterator(mu_run *run, int (*next)(void *state, mu_value **ret_element),
                           void (*drop)(void *state), void *state)
{
    struct iterator *iterator;

    if (run == NULL || next == NULL)
        return refuse_object(run, drop, state, -MU_EINVALID);
    iterator = iterator_new();
    if (iterator == NULL)
        return refuse_object(run, drop, state, -MU_ENOMEM);
    iterator->next = next;
    iterator->drop = drop;
    iterator->state = state;
    return mu__run_keep_object(run, iterator, iterator_free, kind);
}

/* With the lock. */
static int take_next_element(struct iterator *iterator, mu_value **ret_element)
{
    mu_value *element = NULL;
    int rv = iterator->ended ? -MU_ERANGE : iterator->next(iterator->state, &element);

    if (rv == 0 && element == NULL)
        return -MU_ENOMEM;
    if (rv == 0)
        *ret_element = element;
    iterator->ended = rv == -MU_ERANGE;
    return rv > 0 ? -MU_EUNKNOWN : rv;
}

int mu_run_iterator_next(mu_run *run, const mu_value *iterator, mu_value **ret_element)
{
    struct iterator *found = mu__run_find_object(iterator, kind);
    int rv;

    (void)run;
    if (found == NULL)
        return -MU_EINVALID;
    uv_mutex_lock(&found->lock);
    rv = take_next_element(found, ret_element);
    uv_mutex_unlock(&found->lock);
    return rv;
}

/* ---- writes of variables; on the thread that runs the function ---- */

/* The operation by which mu__variable_check checks a write. */
static int operation_of(const struct mu__effect *write)
{
    if (write->operation == MU__WRITE_ASSIGN)
        return MU__VARIABLE_ASSIGN;
    return write->operation == MU__WRITE_ADD ? MU__VARIABLE_ADD : MU__VARIABLE_APPLY;
}

static int check_run_write(mu_run *run, mu_variable *variable,
                           const struct mu__effect *write, const void *buffer,
                           size_t bytes)
{
    mu_error error;
    int rv;

    if (variable == NULL)
        return mu_run_fail(run, -MU_EINVALID, "a write to no variable");
    if (variable->node != run->node)
        return mu_run_fail(run, -MU_EINVALID,
                           "variable %s was opened on another node than the run's",
                           variable->opened->name);
    rv = mu__variable_check(variable, operation_of(write), buffer, bytes, &error);
    return rv == 0 ? 0 : mu_run_fail(run, rv, "%s", error.message);
}

/* The part of one shard. */
static int add_shard(mu_run *run, const mu_variable *variable,
                     const struct mu__effect *write, const void *buffer, uint32_t shard)
{
    struct mu__opened_variable *opened = variable->opened;
    struct mu__effect effect = *write;
    uint64_t offset;

    effect.partition = mu__partition_of(mu__view_str(opened->name), shard);
    effect.opened = opened;
    effect.shard = shard;
    effect.piece = mu__slots_piece_bytes(write->rule, &opened->shape);
    effect.variable = atomic_load_explicit(&opened->ids[shard], memory_order_relaxed);
    mu__shape_shard(&opened->shape, shard, &offset, &effect.size);
    return mu__effects_add(&run->effects, &effect, (const char *)buffer + offset);
}

/* All shards, or none. */
static int add_write(mu_run *run, mu_variable *variable, const struct mu__effect *write,
                     const void *buffer, size_t bytes)
{
    struct mu__effect *last = run->effects.last;
    uint64_t before = run->effects.bytes;
    int rv = check_run_write(run, variable, write, buffer, bytes);

    if (rv != 0)
        return rv;
    for (uint32_t shard = 0; shard < variable->opened->shape.shards && rv == 0; shard++)
        rv = add_shard(run, variable, write, buffer, shard);
    if (rv == 0)
        return 0;
    mu__effects_cut(&run->effects, last, before);
    if (rv == -MU_EEXHAUSTED)
        return mu_run_fail(run, rv,
                           "variable %s: %zu bytes more are too many for one run, which "
                           "may write %d",
                           variable->opened->name, bytes, MU__EFFECTS_BYTES_MAX);
    return mu_run_fail(run, rv, "variable %s: no memory for a write of %zu bytes",
                       variable->opened->name, bytes);
}

int mu_run_assign(mu_run *run, mu_variable *variable, const void *buffer, size_t bytes)
{
    MU__REQUIRE(NULL, run);

    const struct mu__effect write = {.operation = MU__WRITE_ASSIGN};

    return add_write(run, variable, &write, buffer, bytes);
}

int mu_run_add(mu_run *run, mu_variable *variable, const void *delta, size_t bytes)
{
    MU__REQUIRE(NULL, run);

    const struct mu__effect write = {.operation = MU__WRITE_ADD};

    return add_write(run, variable, &write, delta, bytes);
}

int mu_run_apply(mu_run *run, mu_variable *variable, const void *gradient, size_t bytes,
                 const mu_optimizer *optimizer)
{
    MU__REQUIRE(NULL, run);
    if (variable == NULL)
        return mu_run_fail(run, -MU_EINVALID, "a write to no variable");
    if (optimizer == NULL)
        return mu_run_fail(run, -MU_EINVALID, "a gradient without an optimizer");

    struct mu__effect write = {.operation = MU__WRITE_GRADIENT};
    uint8_t rule[MU__RULE_BYTES_MAX];
    mu_error error;
    int rv = mu__variable_rule(variable, optimizer, rule, &error, &write.rule);

    if (rv != 0)
        return mu_run_fail(run, rv, "%s", error.message);
    return add_write(run, variable, &write, gradient, bytes);
}
