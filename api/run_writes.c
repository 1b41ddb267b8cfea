/* The public calls of a run that writes: checks, then copies, cut into shards, which the
 * effects actor sends when the function has returned 0. On the thread that runs it. */
#include "api/variable.h"

#include "actors/ps/variable_store.h"
#include "actors/variables/variables.h"
#include "actors/worker/run.h"
#include "runtime/message/arguments.h"

/* What a write of a whole buffer is checked as. */
static int operation_of(const struct mu__effect *write)
{
    if (write->operation == MU__WRITE_ASSIGN)
        return MU__VARIABLE_ASSIGN;
    return write->operation == MU__WRITE_ADD ? MU__VARIABLE_ADD : MU__VARIABLE_APPLY;
}

static int check(mu_run *run, mu_variable *variable, const struct mu__effect *write,
                 const void *buffer, size_t bytes)
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
    uint64_t home = mu__name_hash(mu__view_str(opened->name)) % opened->servers_count;
    struct mu__effect effect = *write;
    uint64_t offset;

    effect.server = (uint32_t)((home + shard) % opened->servers_count);
    effect.opened = opened;
    effect.shard = shard;
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
    int rv = check(run, variable, write, buffer, bytes);

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
    if (optimizer == NULL)
        return mu_run_fail(run, -MU_EINVALID, "a gradient without an optimizer");

    bool has_momentum = optimizer->momentum > 0 || optimizer->momentum < 0;
    const struct mu__effect write = {
        .operation = has_momentum ? MU__WRITE_MOMENTUM : MU__WRITE_SGD,
        .rate = optimizer->rate,
        .momentum = optimizer->momentum,
    };

    return add_write(run, variable, &write, gradient, bytes);
}
