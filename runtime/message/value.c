/* Values: counted trees. Each value is one allocation, with a list's or map's arrays
 * beside it. */
#include "runtime/message/value_layout.h"

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
    return dtype > MU_DTYPE_NONE &&
           (size_t)dtype < sizeof dtypes / sizeof dtypes[0];
}

size_t mu_dtype_bytes(int dtype)
{
    return is_dtype(dtype) ? dtypes[dtype].bytes : 0;
}

const char *mu_dtype_name(int dtype)
{
    return is_dtype(dtype) ? dtypes[dtype].name : NULL;
}

bool mu__tensor_bytes(int dtype, unsigned rank, const uint64_t *dims, size_t *ret_bytes)
{
    size_t bytes = mu_dtype_bytes(dtype);
    bool empty = false;

    if (bytes == 0 || rank > MU_TENSOR_RANK_MAX)
        return false;

    /* A zero makes the tensor empty, but does not excuse the others from fitting. */
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

/* ---- UTF-8 ---- */

/* How a character of more than one byte may begin. */
struct utf8_lead {
    uint8_t first;      /* first bytes of the row */
    uint8_t last;
    uint8_t more;       /* bytes that follow */
    uint8_t second_min; /* of the first that follows: no long forms, no surrogates */
    uint8_t second_max;
};

static const struct utf8_lead utf8_leads[] = {
    {0xc2, 0xdf, 1, 0x80, 0xbf}, {0xe0, 0xe0, 2, 0xa0, 0xbf}, {0xe1, 0xec, 2, 0x80, 0xbf},
    {0xed, 0xed, 2, 0x80, 0x9f}, {0xee, 0xef, 2, 0x80, 0xbf}, {0xf0, 0xf0, 3, 0x90, 0xbf},
    {0xf1, 0xf3, 3, 0x80, 0xbf}, {0xf4, 0xf4, 3, 0x80, 0x8f},
};

static const struct utf8_lead *find_utf8_lead(uint8_t byte)
{
    for (size_t i = 0; i < sizeof utf8_leads / sizeof utf8_leads[0]; i++)
        if (byte >= utf8_leads[i].first && byte <= utf8_leads[i].last)
            return &utf8_leads[i];
    return NULL;
}

/* Bytes of the character at `text`, 0 when it is none. */
static size_t utf8_length(const uint8_t *text, size_t left)
{
    const struct utf8_lead *lead;

    if (text[0] < 0x80)
        return 1;
    lead = find_utf8_lead(text[0]);
    if (lead == NULL || left <= lead->more || text[1] < lead->second_min ||
        text[1] > lead->second_max)
        return 0;
    for (size_t i = 2; i <= lead->more; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    return (size_t)lead->more + 1;
}

static bool is_ascii8(const uint8_t *text)
{
    uint64_t word;

    memcpy(&word, text, sizeof word);
    return (word & UINT64_C(0x8080808080808080)) == 0;
}

bool mu__utf8_valid(const void *data, size_t size)
{
    const uint8_t *text = data;
    size_t at = 0;

    while (at + 8 <= size && is_ascii8(text + at))
        at += 8;
    while (at < size && text[at] < 0x80)
        at++;
    while (at < size) {
        size_t length = utf8_length(text + at, size - at);

        if (length == 0)
            return false;
        at += length;
    }
    return true;
}

/* ---- Making values ---- */

static void begin(struct mu_value *value, enum mu_value_type type)
{
    atomic_init(&value->refs, 1);
    value->type = (uint8_t)type;
}

static struct mu__scalar *new_scalar(enum mu_value_type type)
{
    struct mu__scalar *scalar = malloc(sizeof *scalar);

    if (scalar == NULL)
        return NULL;
    begin(&scalar->head, type);
    scalar->as.integer = 0;
    return scalar;
}

/* There is one, which is never freed and whose count nobody touches: what most closures
 * return. */
static struct mu_value the_nil = {.refs = 1, .type = MU_VALUE_NIL};

mu_value *mu_value_nil(void)
{
    return &the_nil;
}

mu_value *mu_value_bool(int truth)
{
    struct mu__scalar *scalar = new_scalar(MU_VALUE_BOOL);

    if (scalar == NULL)
        return NULL;
    scalar->as.integer = truth != 0;
    return &scalar->head;
}

mu_value *mu_value_int(int64_t number)
{
    struct mu__scalar *scalar = new_scalar(MU_VALUE_INT);

    if (scalar == NULL)
        return NULL;
    scalar->as.integer = number;
    return &scalar->head;
}

mu_value *mu_value_float(double number)
{
    struct mu__scalar *scalar = new_scalar(MU_VALUE_FLOAT);

    if (scalar == NULL)
        return NULL;
    scalar->as.real = number;
    return &scalar->head;
}

mu_value *mu__value_blob(enum mu_value_type type, const void *data, size_t size)
{
    struct mu__blob *blob;

    if (size > PTRDIFF_MAX - sizeof *blob - 1)
        return NULL;
    blob = mu__block_get(sizeof *blob + size + 1);
    if (blob == NULL)
        return NULL;
    begin(&blob->head, type);
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

    begin(&tensor->head, MU_VALUE_TENSOR);
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

/* True for the last holder, who then sees what all others did before they let go. */
static bool drop(mu_value *value)
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
    atomic_init(&reference->head.refs, 1);
    reference->head.type = MU_VALUE_REFERENCE;
    reference->number = number;
    reference->holder = holder;
    reference->drop = drop_it;
    return &reference->head;
}

/* In a block of the pool, unlike small values. */
static bool is_blob(const mu_value *value)
{
    return value->type == MU_VALUE_STRING || value->type == MU_VALUE_BYTES ||
           value->type == MU_VALUE_TENSOR;
}

/* Let go of one value: free it, or put it on the list `dead` when it holds others. */
static void defer_free(mu_value *value, struct mu__container **dead)
{
    struct mu__container *container;

    if (!drop(value))
        return;
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
        defer_free(container->items[i], dead);
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

    if (value == NULL)
        return;
    defer_free(value, &dead);
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

static const struct mu__scalar *as_scalar(const mu_value *value, enum mu_value_type type)
{
    if (value == NULL || value->type != type)
        return NULL;
    return (const struct mu__scalar *)value;
}

int mu_value_get_bool(const mu_value *value, int *ret_truth)
{
    MU__REQUIRE(NULL, value, ret_truth);

    const struct mu__scalar *scalar = as_scalar(value, MU_VALUE_BOOL);

    if (scalar == NULL)
        return -MU_EINVALID;
    *ret_truth = scalar->as.integer != 0;
    return 0;
}

int mu_value_get_int(const mu_value *value, int64_t *ret_number)
{
    MU__REQUIRE(NULL, value, ret_number);

    const struct mu__scalar *scalar = as_scalar(value, MU_VALUE_INT);

    if (scalar == NULL)
        return -MU_EINVALID;
    *ret_number = scalar->as.integer;
    return 0;
}

int mu_value_get_float(const mu_value *value, double *ret_number)
{
    MU__REQUIRE(NULL, value, ret_number);

    const struct mu__scalar *scalar = as_scalar(value, MU_VALUE_FLOAT);
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

static const struct mu__blob *as_blob(const mu_value *value, enum mu_value_type type)
{
    if (value == NULL || value->type != type)
        return NULL;
    return (const struct mu__blob *)value;
}

int mu_value_get_string(const mu_value *value, const char **ret_text, size_t *ret_size)
{
    MU__REQUIRE(NULL, value, ret_text, ret_size);

    const struct mu__blob *blob = as_blob(value, MU_VALUE_STRING);

    if (blob == NULL)
        return -MU_EINVALID;
    *ret_text = blob->data;
    *ret_size = blob->size;
    return 0;
}

int mu_value_get_bytes(const mu_value *value, const void **ret_data, size_t *ret_size)
{
    MU__REQUIRE(NULL, value, ret_data, ret_size);

    const struct mu__blob *blob = as_blob(value, MU_VALUE_BYTES);

    if (blob == NULL)
        return -MU_EINVALID;
    *ret_data = blob->data;
    *ret_size = blob->size;
    return 0;
}

int mu_value_get_tensor(const mu_value *value, mu_tensor *ret_tensor)
{
    MU__REQUIRE(NULL, value, ret_tensor);

    const struct mu__tensor *tensor = (const struct mu__tensor *)value;

    if (value == NULL || value->type != MU_VALUE_TENSOR)
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

static bool equal(const mu_value *a, const mu_value *b, unsigned depth);

static bool equal_lists(const mu_value *a, const mu_value *b, unsigned depth)
{
    size_t count = mu_value_count(a);

    if (count != mu_value_count(b))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!equal(mu_value_at(a, i), mu_value_at(b, i), depth))
            return false;
    return true;
}

static bool equal_maps(const mu_value *a, const mu_value *b, unsigned depth)
{
    size_t count = mu_value_count(a);

    if (count != mu_value_count(b))
        return false;
    for (size_t i = 0; i < count; i++) {
        const mu_value *other = mu_value_find(b, mu_value_key(a, i));

        if (other == NULL || !equal(mu_value_at(a, i), other, depth))
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
static bool equal(const mu_value *a, const mu_value *b, unsigned depth)
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
        return depth > 0 && equal_lists(a, b, depth - 1);
    case MU_VALUE_MAP:
        return depth > 0 && equal_maps(a, b, depth - 1);
    case MU_VALUE_TENSOR:
        return equal_tensors(a, b);
    case MU_VALUE_REFERENCE:
        return equal_references(a, b);
    }
    return false;
}

int mu_value_equal(const mu_value *a, const mu_value *b)
{
    return equal(a, b, MU_VALUE_DEPTH_MAX);
}
