/* Copies of the bytes that a message's views borrow, for any row of the message table. */
#include "actors/keep.h"

#include <string.h>

enum { ALIGN = 16 };

static size_t align_copy_size(size_t size)
{
    return (size + ALIGN - 1) / ALIGN * ALIGN;
}

/* The destination of copies. With `data` NULL nothing is copied: `size` is counted. */
struct keeper {
    uint8_t *data;
    size_t size; /* used so far */
};

static const void *copy_to_keeper(struct keeper *keeper, const void *data, uint32_t size)
{
    uint8_t *at = keeper->data == NULL ? NULL : keeper->data + keeper->size;

    if (size == 0)
        return data;
    keeper->size += align_copy_size(size);
    if (at == NULL)
        return data;
    memcpy(at, data, size);
    return at;
}

static void keep_field(struct keeper *keeper, const struct mu__field *field, void *body)
{
    void *at = (uint8_t *)body + field->offset;
    struct mu__view *view = at;
    struct mu__packed *packed = at;

    if (field->type == MU__FIELD_value) {
        packed->head = copy_to_keeper(keeper, packed->head, packed->head_size);
        packed->tail = copy_to_keeper(keeper, packed->tail, packed->tail_size);
    }
    if (field->type == MU__FIELD_str || field->type == MU__FIELD_bytes ||
        field->type == MU__FIELD_raw)
        view->data = copy_to_keeper(keeper, view->data, view->size);
}

static void keep_fields(struct keeper *keeper, const struct mu__row *row, void *body)
{
    for (size_t i = 0; i < row->fields_count; i++)
        keep_field(keeper, &row->fields[i], body);
}

int mu__msg_keep(const struct mu__schema *schema, struct mu__msg *msg)
{
    const struct mu__row *row = &schema->rows[msg->kind];
    struct keeper keeper = {NULL, 0};
    struct mu__buf *buf;

    if (msg->kind >= MU__LOCAL_KINDS_BEGIN)
        return 0;
    keep_fields(&keeper, row, msg->body);
    if (keeper.size == 0)
        return 0;
    buf = mu__buf_new(keeper.size);
    if (buf == NULL)
        return -MU_ENOMEM;
    buf->size = (uint32_t)keeper.size;
    keeper = (struct keeper){buf->data, 0};
    keep_fields(&keeper, row, msg->body);
    mu__buf_unref(msg->backing);
    msg->backing = buf;
    return 0;
}

bool mu__send_is_transient(int rv)
{
    return rv == -MU_EEXHAUSTED || rv == -MU_EUNAVAILABLE || rv == -MU_EAGAIN ||
           rv == -MU_ENOMEM;
}

int mu__send_body(struct mu__ctx *ctx, mu__pid to, uint16_t kind, const void *body,
                  size_t size)
{
    struct mu__msg *msg = mu__msg_new(ctx, kind);

    if (msg != NULL)
        memcpy(msg->body, body, size);
    return mu__send_borrowed(ctx, to, msg);
}

struct mu__msg *mu__msg_backed(struct mu__ctx *ctx, uint16_t kind, const void *body,
                               size_t size, struct mu__buf *backing)
{
    struct mu__msg *msg = mu__msg_new(ctx, kind);

    if (msg != NULL) {
        memcpy(msg->body, body, size);
        if (backing != NULL)
            msg->backing = mu__buf_ref(backing);
    }
    return msg;
}

int mu__send_backed(struct mu__ctx *ctx, mu__pid to, uint16_t kind, const void *body,
                    size_t size, struct mu__buf *backing)
{
    return mu__send(ctx, to, mu__msg_backed(ctx, kind, body, size, backing));
}

int mu__send_borrowed(struct mu__ctx *ctx, mu__pid to, struct mu__msg *msg)
{
    if (msg != NULL && to.node == MU__NODE_SELF &&
        mu__msg_keep(mu__kernel_schema(ctx->kernel), msg) != 0) {
        mu__msg_free(ctx, msg);
        return -MU_ENOMEM;
    }
    return mu__send(ctx, to, msg);
}
