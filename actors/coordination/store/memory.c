/* The store that keeps nothing: its content is in the memory of its holder alone. */
#include "actors/coordination/store/store.h"

#include <stdlib.h>

struct memory {
    struct mu__store base;
    struct mu__store_upcalls up;
    bool started;
    bool held;
};

static struct memory *memory_of(struct mu__store *base)
{
    return (struct memory *)base; /* the base is its first member */
}

static void memory_start(struct mu__store *base, struct mu__ctx *ctx)
{
    (void)ctx;
    memory_of(base)->started = true;
}

static int memory_write(struct mu__store *base, struct mu__ctx *ctx,
                        const struct mu__msg *record)
{
    (void)base;
    (void)ctx;
    (void)record;
    return 0;
}

static void memory_commit(struct mu__store *base, struct mu__ctx *ctx, uint64_t revision,
                          uint64_t sequence)
{
    struct memory *memory = memory_of(base);

    (void)revision;
    memory->up.committed(memory->up.owner, ctx, sequence);
}

static bool memory_may_read(struct mu__store *base, struct mu__ctx *ctx)
{
    (void)ctx;
    return memory_of(base)->held;
}

static void memory_tick(struct mu__store *base, struct mu__ctx *ctx)
{
    struct memory *memory = memory_of(base);
    uint64_t number;

    if (!memory->started || memory->held)
        return;
    memory->held = true;
    number = mu__random(ctx);
    memory->up.reading(memory->up.owner);
    memory->up.held(memory->up.owner, ctx, 1, number == 0 ? 1 : number);
}

static void memory_close(struct mu__store *base, struct mu__ctx *ctx)
{
    (void)ctx;
    free(memory_of(base));
}

static const struct mu__store_ops memory_ops = {
    .start = memory_start,
    .write = memory_write,
    .commit = memory_commit,
    .may_read = memory_may_read,
    .tick = memory_tick,
    .close = memory_close,
};

static int memory_open(const struct mu__store_config *config, mu_error *ret_error,
                       struct mu__store **ret_store)
{
    struct memory *memory = calloc(1, sizeof *memory);

    if (memory == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a store");
    memory->base.ops = &memory_ops;
    memory->up = config->up;
    *ret_store = &memory->base;
    return 0;
}

const struct mu__store_kind mu__store_memory = {
    .name = "memory",
    .open = memory_open,
};
