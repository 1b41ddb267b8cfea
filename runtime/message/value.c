/* Values: reference-counted trees. Each value is one allocation; a list or map has its
 * arrays in others. */
#include "runtime/message/value_layout.h"

#include "runtime/base/text.h"
#include "runtime/message/arguments.h"
#include "runtime/message/block_pool.h"

#include <stdlib.h>
#include <string.h>

/* ---- Element types ---- */

struct dtype {
    const char *name;
    size_t bytes;
};

static const struct dtype dtypes[] = {
#define DTYPE_ROW(name, number, words, bytes) [number] = {words, bytes},
    MU_DTYPES(DTYPE_ROW)
#undef DTYPE_ROW
};

static bool is_dtype(int dtype)
{
    return dtype > MU_DTYPE_NONE && (size_t)dtype < sizeof dtypes / sizeof dtypes[0];
}

size_t mu_dtype_bytes(int dtype)
{
    return is_dtype(dtype) ? dtypes[dtype].bytes : 0;
}

const char *mu_dtype_name(int dtype)
{
    return is_dtype(dtype) ? dtypes[dtype].name : NULL;
}

int mu_dtype_find(const char *name)
{
    int dtype = MU_DTYPE_NONE + 1;

    MU__REQUIRE_OR(MU_DTYPE_NONE, name);
    while (mu_dtype_name(dtype) != NULL && strcmp(mu_dtype_name(dtype), name) != 0)
        dtype++;
    return mu_dtype_name(dtype) == NULL ? MU_DTYPE_NONE : dtype;
}

bool mu__tensor_bytes(int dtype, unsigned rank, const uint64_t *dims, size_t *ret_bytes)
{
    size_t bytes = mu_dtype_bytes(dtype);
    bool empty = false;

    if (bytes == 0 || rank > MU_TENSOR_RANK_MAX)
        return false;

    /* A dimension of 0 makes the tensor empty; the others must not overflow either. */
    for (unsigned i = 0; i < rank; i++) {
        if (dims[i] == 0) {
            empty = true;
            continue;
        }
        if (dims[i] > PTRDIFF_MAX / bytes)
            return false;
        bytes *= (size_t)dims[i];
    }
    *ret_bytes = empty ? 0 : bytes;
    return true;
}

/* ---- Making values ---- */

static void init_value(struct mu_value *value, enum mu_value_type type)
{
    atomic_init(&value->refs, 1);
    value->type = (uint8_t)type;
}

static mu_value *new_scalar(enum mu_value_type type, union mu__number number)
{
    struct mu__scalar *scalar = malloc(sizeof *scalar);

    if (scalar == NULL)
        return NULL;
    init_value(&scalar->head, type);
    scalar->as = number;
    return &scalar->head;
}

/* The one nil, which most closures return. It is never freed and its count never changes,
 * so that threads do not share a written cache line. */
static struct mu_value the_nil = {.refs = 1, .type = MU_VALUE_NIL};

mu_value *mu_value_nil(void)
{
    return &the_nil;
}

mu_value *mu_value_bool(int truth)
{
    return new_scalar(MU_VALUE_BOOL, (union mu__number){.integer = truth != 0});
}

mu_value *mu_value_int(int64_t number)
{
    return new_scalar(MU_VALUE_INT, (union mu__number){.integer = number});
}

mu_value *mu_value_float(double number)
{
    return new_scalar(MU_VALUE_FLOAT, (union mu__number){.real = number});
}

mu_value *mu__value_blob(enum mu_value_type type, const void *data, size_t size)
{
    struct mu__blob *blob;

    if (size > PTRDIFF_MAX - sizeof *blob - 1)
        return NULL;
    blob = mu__block_get(sizeof *blob + size + 1);
    if (blob == NULL)
        return NULL;
    init_value(&blob->head, type);
    blob->size = size;
    if (size > 0)
        memcpy(blob->data, data, size);
    blob->data[size] = '\0';
    mu__value_write_room(&blob->head);
    return &blob->head;
}

mu_value *mu_value_string(const char *text)
{
    size_t size;

    if (text == NULL)
        return NULL;
    size = strlen(text);
    if (!mu__utf8_valid(text, size))
        return NULL;
    return mu__value_blob(MU_VALUE_STRING, text, size);
}

mu_value *mu_value_bytes(const void *data, size_t size)
{
    if (data == NULL && size > 0)
        return NULL;
    return mu__value_blob(MU_VALUE_BYTES, data, size);
}

mu_value *mu_value_tensor(int dtype, unsigned rank, const uint64_t *dims,
                          const void *data)
{
    struct mu__tensor *tensor;
    size_t bytes;

    if ((dims == NULL && rank > 0) || !mu__tensor_bytes(dtype, rank, dims, &bytes) ||
        bytes > PTRDIFF_MAX - sizeof *tensor)
        return NULL;
    tensor = mu__block_get(sizeof *tensor + bytes);
    if (tensor == NULL)
        return NULL;

    init_value(&tensor->head, MU_VALUE_TENSOR);
    tensor->dtype = (uint8_t)dtype;
    tensor->rank = (uint8_t)rank;
    tensor->bytes = bytes;
    memset(tensor->dims, 0, sizeof tensor->dims);
    if (rank > 0)
        memcpy(tensor->dims, dims, rank * sizeof *dims);
    if (data != NULL && bytes > 0)
        memcpy(tensor->data, data, bytes);
    else
        memset(tensor->data, 0, bytes);
    mu__value_write_room(&tensor->head);
    return &tensor->head;
}

/* ---- Holding and freeing ---- */

mu_value *mu_value_ref(const mu_value *value)
{
    /* The count is the one thing in a shared value that changes. */
    mu_value *held = (mu_value *)(uintptr_t)value;

    if (held != NULL && held->type != MU_VALUE_NIL)
        atomic_fetch_add_explicit(&held->refs, 1, memory_order_relaxed);
    return held;
}

/* True for the last holder, which sees all that the other holders wrote before theirs was
 * dropped. */
static bool drop_value_hold(mu_value *value)
{
    return value->type != MU_VALUE_NIL &&
           atomic_fetch_sub_explicit(&value->refs, 1, memory_order_acq_rel) == 1;
}

static void drop_holder(struct mu__reference *reference)
{
    if (reference->drop != NULL)
        reference->drop(reference->holder);
}

mu_value *mu__value_reference(uint64_t number, void *holder,
                              void (*drop_it)(void *holder))
{
    struct mu__reference *reference = malloc(sizeof *reference);

    if (reference == NULL)
        return NULL;
    init_value(&reference->head, MU_VALUE_REFERENCE);
    reference->number = number;
    reference->holder = holder;
    reference->drop = drop_it;
    return &reference->head;
}

/* Whether the value is a block of the block pool; others come from malloc. */
static bool is_blob(const mu_value *value)
{
    return value->type == MU_VALUE_STRING || value->type == MU_VALUE_BYTES ||
           value->type == MU_VALUE_TENSOR;
}

/* A value that nobody holds. A list or map is put on the list `dead` instead. */
static void free_dropped(mu_value *value, struct mu__container **dead)
{
    struct mu__container *container;

    if (value->type == MU_VALUE_REFERENCE)
        drop_holder((struct mu__reference *)value);
    if (is_blob(value)) {
        mu__block_put(value);
        return;
    }
    if (!mu__value_is_container(value)) {
        free(value);
        return;
    }
    container = (struct mu__container *)value;
    container->next_dead = *dead;
    *dead = container;
}

static void free_container(struct mu__container *container, struct mu__container **dead)
{
    for (uint32_t i = 0; i < container->count; i++) {
        if (drop_value_hold(container->items[i]))
            free_dropped(container->items[i], dead);
        if (container->keys != NULL)
            free(container->keys[i]);
    }
    mu__key_index_done(&container->index);
    free(container->keys);
    free(container->items);
    free(container);
}

/* No recursion: a program may have built a value of any depth. */
void mu_value_free(mu_value *value)
{
    struct mu__container *dead = NULL;

    if (value == NULL || !drop_value_hold(value))
        return;
    free_dropped(value, &dead);
    while (dead != NULL) {
        struct mu__container *container = dead;

        dead = container->next_dead;
        free_container(container, &dead);
    }
}

/* ---- Reading ---- */

enum mu_value_type mu_value_type(const mu_value *value)
{
    return value == NULL ? MU_VALUE_NIL : (enum mu_value_type)value->type;
}

/* The value as the struct of its type; NULL: it is of another type. */
static const void *as_type(const mu_value *value, enum mu_value_type type)
{
    return value != NULL && value->type == type ? value : NULL;
}

int mu_value_get_bool(const mu_value *value, int *ret_truth)
{
    MU__REQUIRE(NULL, value, ret_truth);

    const struct mu__scalar *scalar = as_type(value, MU_VALUE_BOOL);

    if (scalar == NULL)
        return -MU_EINVALID;
    *ret_truth = scalar->as.integer != 0;
    return 0;
}

int mu_value_get_int(const mu_value *value, int64_t *ret_number)
{
    MU__REQUIRE(NULL, value, ret_number);

    const struct mu__scalar *scalar = as_type(value, MU_VALUE_INT);

    if (scalar == NULL)
        return -MU_EINVALID;
    *ret_number = scalar->as.integer;
    return 0;
}

int mu_value_get_float(const mu_value *value, double *ret_number)
{
    MU__REQUIRE(NULL, value, ret_number);

    const struct mu__scalar *scalar = as_type(value, MU_VALUE_FLOAT);
    int64_t number;

    if (scalar != NULL) {
        *ret_number = scalar->as.real;
        return 0;
    }
    if (mu_value_get_int(value, &number) != 0)
        return -MU_EINVALID;
    *ret_number = (double)number;
    return 0;
}

int mu_value_get_string(const mu_value *value, const char **ret_text, size_t *ret_size)
{
    MU__REQUIRE(NULL, value, ret_text, ret_size);

    const struct mu__blob *blob = as_type(value, MU_VALUE_STRING);

    if (blob == NULL)
        return -MU_EINVALID;
    *ret_text = blob->data;
    *ret_size = blob->size;
    return 0;
}

int mu_value_get_bytes(const mu_value *value, const void **ret_data, size_t *ret_size)
{
    MU__REQUIRE(NULL, value, ret_data, ret_size);

    const struct mu__blob *blob = as_type(value, MU_VALUE_BYTES);

    if (blob == NULL)
        return -MU_EINVALID;
    *ret_data = blob->data;
    *ret_size = blob->size;
    return 0;
}

int mu_value_get_tensor(const mu_value *value, mu_tensor *ret_tensor)
{
    MU__REQUIRE(NULL, value, ret_tensor);

    const struct mu__tensor *tensor = as_type(value, MU_VALUE_TENSOR);

    if (tensor == NULL)
        return -MU_EINVALID;
    *ret_tensor = (mu_tensor){
        .dtype = tensor->dtype,
        .rank = tensor->rank,
        .dims = tensor->dims,
        .data = tensor->data,
        .bytes = tensor->bytes,
    };
    return 0;
}

void *mu_value_tensor_data(mu_value *value)
{
    if (value == NULL || value->type != MU_VALUE_TENSOR)
        return NULL;
    return ((struct mu__tensor *)value)->data;
}

/* ---- Comparing ---- */

static bool are_values_equal(const mu_value *a, const mu_value *b, unsigned depth);

/* Two lists, or two maps, whose keys may be in different orders. */
static bool equal_items(const mu_value *a, const mu_value *b, unsigned depth)
{
    size_t count = mu_value_count(a);

    if (depth == 0 || count != mu_value_count(b))
        return false;
    for (size_t i = 0; i < count; i++) {
        const mu_value *other = a->type == MU_VALUE_MAP
                                    ? mu_value_find(b, mu_value_key(a, i))
                                    : mu_value_at(b, i);

        if (other == NULL || !are_values_equal(mu_value_at(a, i), other, depth - 1))
            return false;
    }
    return true;
}

static bool equal_blobs(const mu_value *a, const mu_value *b)
{
    const struct mu__blob *one = (const struct mu__blob *)a;
    const struct mu__blob *two = (const struct mu__blob *)b;

    return one->size == two->size && memcmp(one->data, two->data, one->size) == 0;
}

static bool equal_tensors(const mu_value *a, const mu_value *b)
{
    const struct mu__tensor *one = (const struct mu__tensor *)a;
    const struct mu__tensor *two = (const struct mu__tensor *)b;

    return one->dtype == two->dtype && one->rank == two->rank &&
           memcmp(one->dims, two->dims, sizeof one->dims) == 0 &&
           memcmp(one->data, two->data, one->bytes) == 0;
}

static bool equal_references(const mu_value *a, const mu_value *b)
{
    const struct mu__reference *one = (const struct mu__reference *)a;
    const struct mu__reference *two = (const struct mu__reference *)b;

    return one->number == two->number && one->holder == two->holder;
}

/* `depth` is how many lists and maps may still be entered. */
static bool are_values_equal(const mu_value *a, const mu_value *b, unsigned depth)
{
    if (a == b)
        return true;
    if (mu_value_type(a) != mu_value_type(b))
        return false;

    switch (mu_value_type(a)) {
    case MU_VALUE_NIL:
        return true;
    case MU_VALUE_BOOL:
    case MU_VALUE_INT:
    case MU_VALUE_FLOAT:
        return memcmp(&((const struct mu__scalar *)a)->as,
                      &((const struct mu__scalar *)b)->as, sizeof(int64_t)) == 0;
    case MU_VALUE_STRING:
    case MU_VALUE_BYTES:
        return equal_blobs(a, b);
    case MU_VALUE_LIST:
    case MU_VALUE_MAP:
        return equal_items(a, b, depth);
    case MU_VALUE_TENSOR:
        return equal_tensors(a, b);
    case MU_VALUE_REFERENCE:
        return equal_references(a, b);
    }
    return false;
}

int mu_value_equal(const mu_value *a, const mu_value *b)
{
    return are_values_equal(a, b, MU_VALUE_DEPTH_MAX);
}
