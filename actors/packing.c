#include "actors/packing.h"

#include "actors/messages.h"

#include <stdlib.h>
#include <string.h>

static size_t align_tail_size(size_t size)
{
    return (size + MU__TAIL_ALIGN - 1) / MU__TAIL_ALIGN * MU__TAIL_ALIGN;
}

/* The tail is first in the buffer, as it must be aligned. */
static struct mu__buf *packed_buf(uint32_t head_size, uint32_t tail_size,
                                  struct mu__packed *ret_packed)
{
    size_t tail_room = align_tail_size(tail_size);
    struct mu__buf *buf = mu__buf_new(tail_room + head_size);

    if (buf == NULL)
        return NULL;
    buf->size = buf->capacity;
    *ret_packed = (struct mu__packed){
        .head = buf->data + tail_room,
        .tail = tail_size == 0 ? NULL : buf->data,
        .head_size = head_size,
        .tail_size = tail_size,
    };
    return buf;
}

static struct mu__buf *pack_sized(const mu_value *value, uint32_t head_size,
                                  uint32_t tail_size, struct mu__packed *ret_packed)
{
    struct mu__packed packed;
    struct mu__buf *buf = packed_buf(head_size, tail_size, &packed);

    if (buf == NULL)
        return NULL;
    mu__value_pack(value, buf->data + align_tail_size(tail_size), head_size, buf->data,
                   tail_size);
    /* Padding must not be uninitialised: callers may write the whole buffer to a file. */
    memset(buf->data + tail_size, 0, align_tail_size(tail_size) - tail_size);
    *ret_packed = packed;
    return buf;
}

/* NULL also when it would have more than `bytes_max`. */
static struct mu__buf *pack_within(const mu_value *value, uint64_t bytes_max,
                                   struct mu__packed *ret_packed)
{
    uint32_t head_size;
    uint32_t tail_size;

    if (value == NULL || mu__value_measure(value, &head_size, &tail_size) != 0 ||
        (uint64_t)head_size + tail_size > bytes_max)
        return NULL;
    return pack_sized(value, head_size, tail_size, ret_packed);
}

struct mu__buf *mu__pack_value(const mu_value *value, struct mu__packed *ret_packed)
{
    return pack_within(value, UINT64_MAX, ret_packed);
}

/* A buffer that is the memory of a value. */
struct value_buf {
    struct mu__buf buf; /* first: released by it */
    mu_value *value;
};

static void release_value(struct mu__buf *buf)
{
    struct value_buf *of = (struct value_buf *)buf;

    mu_value_free(of->value);
    free(of);
}

/* Whether the value's own memory can be sent: then *ret_buf refers to it, or is NULL if
 * memory is out. */
static bool send_in_place(const mu_value *value, bool keeps_tensors,
                          struct mu__packed *ret_packed, struct mu__buf **ret_buf)
{
    struct value_buf *of;
    size_t bytes;

    if ((!keeps_tensors && mu_value_type(value) == MU_VALUE_TENSOR) ||
        !mu__value_packed_in_place(value, ret_packed, &bytes) ||
        bytes < MU__SPLICE_BYTES_MIN || bytes > MU__VALUE_BYTES_MAX)
        return false;
    of = malloc(sizeof *of);
    *ret_buf = of == NULL ? NULL : &of->buf;
    if (of == NULL)
        return true;
    of->value = mu_value_ref(value);
    of->buf = (struct mu__buf){
        .data = (uint8_t *)of->value,
        .size = (uint32_t)bytes,
        .capacity = (uint32_t)bytes,
        .refs = 1,
        .release = release_value,
    };
    return true;
}

struct mu__buf *mu__pack_to_send(const mu_value *value, bool keeps_tensors,
                                 struct mu__packed *ret_packed)
{
    struct mu__buf *buf;

    if (value != NULL && send_in_place(value, keeps_tensors, ret_packed, &buf))
        return buf;
    return pack_within(value, MU__VALUE_BYTES_MAX, ret_packed);
}

struct mu__buf *mu__pack_measured(const mu_value *value, struct mu__packed *packed)
{
    const struct mu__packed sizes = *packed;
    struct mu__buf *buf;

    if ((uint64_t)sizes.head_size + sizes.tail_size >= MU__SPLICE_BYTES_MIN &&
        send_in_place(value, false, packed, &buf))
        return buf;
    return pack_sized(value, sizes.head_size, sizes.tail_size, packed);
}

struct mu__buf *mu__pack_copy(const struct mu__packed *packed,
                              struct mu__packed *ret_packed)
{
    struct mu__packed copy;
    struct mu__buf *buf = packed_buf(packed->head_size, packed->tail_size, &copy);

    if (buf == NULL)
        return NULL;
    if (packed->tail_size > 0)
        memcpy(buf->data, packed->tail, packed->tail_size);
    memcpy(buf->data + align_tail_size(packed->tail_size), packed->head,
           packed->head_size);
    *ret_packed = copy;
    return buf;
}

uint8_t *mu__pack_view(uint8_t *at, struct mu__view *view)
{
    if (view->size > 0)
        memcpy(at, view->data, view->size);
    view->data = at;
    return at + view->size;
}

struct mu__buf *mu__pack_two(struct mu__view *first, struct mu__view *second)
{
    struct mu__buf *buf = mu__buf_new((size_t)1 + first->size + second->size);

    if (buf != NULL)
        (void)mu__pack_view(mu__pack_view(buf->data, first), second);
    return buf;
}

void mu__clear(void *memory, size_t size)
{
    memset(memory, 0, size);
}

bool mu__grow_array(void **array, size_t count, size_t size)
{
    void *grown = realloc(*array, count * size);

    if (grown == NULL)
        return false;
    *array = grown;
    return true;
}

bool mu__grow_for_one(void **array, uint32_t *room, uint32_t count, size_t size)
{
    uint32_t grown = *room == 0 ? 4 : *room * 2;

    if (count < *room)
        return true;
    if (!mu__grow_array(array, grown, size))
        return false;
    *room = grown;
    return true;
}

bool mu__grow_zeroed(void **array, uint32_t *count, uint32_t new_count, size_t size)
{
    if (new_count <= *count)
        return true;
    if (!mu__grow_array(array, new_count, size))
        return false;
    memset((uint8_t *)*array + *count * size, 0, (new_count - *count) * size);
    *count = new_count;
    return true;
}

void mu__free_array(void *array)
{
    free(array);
}

struct mu__attempt mu__attempts_at(struct mu__view view, uint32_t bytes, uint32_t i)
{
    uint64_t numbers[3] = {0};

    memcpy(numbers, (const uint8_t *)view.data + (size_t)i * bytes, bytes);
    return (struct mu__attempt){
        .closure = numbers[0],
        .attempt = numbers[1] <= UINT32_MAX ? (uint32_t)numbers[1] : 0,
        .for_ms = numbers[2],
    };
}

uint8_t *mu__attempts_put(uint8_t *at, uint32_t bytes, const struct mu__attempt *attempt)
{
    const uint64_t numbers[3] = {attempt->closure, attempt->attempt, attempt->for_ms};

    memcpy(at, numbers, bytes);
    return at + bytes;
}
