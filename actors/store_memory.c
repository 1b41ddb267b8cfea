/* Nothing is kept; minimal, replaced by the real part. */
#include "actors/store.h"

#include <stdlib.h>

struct memory {
    struct mu__store base;
    struct mu__store_config config;
    bool started;
    bool held;
};

static void start(struct mu__store *store, struct mu__ctx *ctx)
{
    (void)ctx;
    ((struct memory *)store)->started = true;
}

static int write_record(struct mu__store *store, struct mu__ctx *ctx,
                        const struct mu__msg *record)
{
    (void)store;
    (void)ctx;
    (void)record;
    return 0;
}

static void commit(struct mu__store *store, struct mu__ctx *ctx, uint64_t revision,
                   uint64_t sequence)
{
    struct memory *memory = (struct memory *)store;

    (void)revision;
    memory->config.up.committed(memory->config.up.owner, ctx, sequence);
}

static bool may_read(struct mu__store *store, struct mu__ctx *ctx)
{
    (void)ctx;
    return ((struct memory *)store)->held;
}

static void tick(struct mu__store *store, struct mu__ctx *ctx)
{
    struct memory *memory = (struct memory *)store;

    if (!memory->started || memory->held)
        return;
    memory->held = true;
    memory->config.up.held(memory->config.up.owner, ctx, 1, mu__random(ctx));
}

static void close_store(struct mu__store *store, struct mu__ctx *ctx)
{
    (void)ctx;
    free(store);
}

static const struct mu__store_ops ops = {
    .start = start,
    .write = write_record,
    .commit = commit,
    .may_read = may_read,
    .tick = tick,
    .close = close_store,
};

static int open_store(const struct mu__store_config *config, mu_error *ret_error,
                      struct mu__store **ret_store)
{
    struct memory *memory = calloc(1, sizeof *memory);

    if (memory == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    memory->base.ops = &ops;
    memory->config = *config;
    *ret_store = &memory->base;
    return 0;
}

const struct mu__store_kind mu__store_memory = {
    .name = "memory",
    .open = open_store,
};
