/* Minimal: replaced by the real part. */
#include "actors/coordination_inner.h"

int mu__coord_keys_init(struct mu__ctx *ctx, struct coordination *c)
{
    (void)ctx;
    (void)c;
    return 0;
}

void mu__coord_keys_done(struct coordination *c)
{
    (void)c;
}

void mu__coord_on_key_put(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
}

void mu__coord_on_key_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
}

void mu__coord_on_key_increment(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
}

void mu__coord_on_key_delete(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
}

void mu__coord_on_key_cancel(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
}

void mu__coord_on_key_list(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
}

void mu__coord_on_key_watch(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
}

void mu__coord_on_key_unwatch(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
}

int mu__coord_keys_visit(struct mu__ctx *ctx, struct coordination *c, struct mu__msg *record)
{
    (void)ctx;
    (void)c;
    (void)record;
    return 0;
}

void mu__coord_keys_forget(struct coordination *c)
{
    (void)c;
}

int mu__coord_keys_rewrite(struct mu__ctx *ctx, struct coordination *c)
{
    (void)ctx;
    (void)c;
    return 0;
}

void mu__coord_keys_tick(struct mu__ctx *ctx, struct coordination *c)
{
    (void)ctx;
    (void)c;
}

int mu__coord_keys_put_own(struct mu__ctx *ctx, struct coordination *c, const char *key, const void *value, size_t size)
{
    (void)ctx;
    (void)c;
    (void)key;
    (void)value;
    (void)size;
    return 0;
}

bool mu__coord_keys_get_own(struct coordination *c, const char *key, struct mu__view *ret_value)
{
    (void)c;
    (void)key;
    (void)ret_value;
    return false;
}

int mu__coord_keys_delete_own(struct mu__ctx *ctx, struct coordination *c, const char *key)
{
    (void)ctx;
    (void)c;
    (void)key;
    return 0;
}

void mu__coord_keys_task_ended(struct mu__ctx *ctx, struct coordination *c, uint64_t incarnation)
{
    (void)ctx;
    (void)c;
    (void)incarnation;
}

void mu__coord_keys_node_down(struct mu__ctx *ctx, struct coordination *c, uint32_t node)
{
    (void)ctx;
    (void)c;
    (void)node;
}

bool mu__coord_keys_next_own(const struct coordination *c, struct mu__view from, struct mu__key_value *ret_entry)
{
    (void)c;
    (void)from;
    (void)ret_entry;
    return false;
}
