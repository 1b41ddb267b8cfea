/* The results of calls, as maps; and one of them as bytes, for another process. */
#include "api/distribute/internal.h"
#include "runtime/base/byte_order.h"
#include "runtime/message/codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALIGN = 16,      /* of the tail of a packed value, */
    LENGTH_BYTES = 4 /* behind the length of its head */
};

/* ---- maps ---- */

static int set_result_text(mu_value *map, const char *key, const char *text)
{
    mu_value *value = mu_value_string(text);

    /* Text from another process may be no UTF-8. */
    return mu_value_set(map, key, value != NULL ? value : mu_value_string("?"));
}

mu_value *mu__result_make(int code, const mu_value *value, const mu_error *error)
{
    mu_value *map = mu_value_map();
    int rv;

    if (map == NULL)
        return NULL;
    rv = mu_value_set(map, "code", mu_value_int(code));
    if (rv == 0)
        rv = mu_value_set(map, "value",
                          value == NULL ? mu_value_nil() : mu_value_ref(value));
    if (rv == 0 && code != 0) {
        rv = set_result_text(map, "error", mu_err_name(code));
        if (rv == 0)
            rv = set_result_text(map, "message", error->message);
        if (rv == 0)
            rv = set_result_text(map, "task", error->task);
    }
    if (rv == 0)
        return map;
    mu_value_free(map);
    return NULL;
}

static const char *get_result_text(const mu_value *map, const char *key)
{
    const char *text = "";
    size_t size;

    (void)mu_value_get_string(mu_value_find(map, key), &text, &size);
    return text;
}

void mu__result_error(const mu_value *result, mu_error *ret_error)
{
    int64_t code = 0;

    *ret_error = (mu_error){0};
    (void)mu_value_get_int(mu_value_find(result, "code"), &code);
    if (code >= 0 || code < -255)
        return;
    (void)mu_error_set(ret_error, (int)code, "%s", get_result_text(result, "message"));
    (void)snprintf(ret_error->task, sizeof ret_error->task, "%s",
                   get_result_text(result, "task"));
}

void mu__result_keep(struct mu__distribution *run, const char *name, mu_value *result)
{
    bool over;
    int rv = 0;

    uv_mutex_lock(&run->lock);
    over = run->results == NULL;
    if (!over)
        rv = mu_value_set(run->results, name, result);
    uv_mutex_unlock(&run->lock);
    if (over)
        mu_value_free(result);
    if (rv != 0)
        mu__distribution_say(run, MU_LOG_ERROR, "the result of %s is lost: %s", name,
                             mu_strerror(rv));
}

/* ---- bytes: the length of the head, the head, zeros up to 16, the tail ---- */

static size_t tail_at(uint32_t head)
{
    return ((size_t)LENGTH_BYTES + head + ALIGN - 1) / ALIGN * ALIGN;
}

int mu__result_pack(const mu_value *result, mu_error *ret_error, void **ret_bytes,
                    size_t *ret_size)
{
    uint32_t head = 0;
    uint32_t tail = 0;
    int rv = mu__value_measure(result, &head, &tail);
    uint8_t *bytes;
    size_t size;

    if (rv != 0)
        return mu_error_set(ret_error, rv, "a result is too deep or large to be sent");
    size = tail_at(head) + tail;
    bytes = aligned_alloc(ALIGN, (size + ALIGN - 1) / ALIGN * ALIGN);
    if (bytes == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a result");
    memset(bytes, 0, size);
    for (size_t i = 0; i < LENGTH_BYTES; i++)
        bytes[i] = (uint8_t)(head >> 8 * i);
    mu__value_pack(result, bytes + LENGTH_BYTES, head, bytes + tail_at(head), tail);
    *ret_bytes = bytes;
    *ret_size = size;
    return 0;
}

static int bad_bytes(mu_error *ret_error, const char *why)
{
    return mu_error_set(ret_error, -MU_EDATALOSS, "the bytes of a result are none: %s",
                        why);
}

int mu__result_unpack(const void *bytes, size_t size, mu_error *ret_error,
                      mu_value **ret_result)
{
    struct mu__packed packed = {0};
    const uint8_t *from = bytes;
    char why[160] = "";
    uint32_t head = 0;
    uint8_t *copy;
    mu_value *result;
    int rv;

    if (size >= LENGTH_BYTES)
        head = mu__load_little32(from);
    if (size < LENGTH_BYTES || head > size || tail_at(head) > size)
        return bad_bytes(ret_error, "they are cut short");
    copy = aligned_alloc(ALIGN, (size + ALIGN - 1) / ALIGN * ALIGN);
    if (copy == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a result");
    memcpy(copy, bytes, size);
    packed = (struct mu__packed){
        .head = copy + LENGTH_BYTES,
        .head_size = head,
        .tail = size > tail_at(head) ? copy + tail_at(head) : NULL,
        .tail_size = (uint32_t)(size - tail_at(head)),
    };
    rv = mu__value_unpack(&packed, why, sizeof why, &result);
    free(copy);
    if (rv != 0)
        return rv == -MU_EDATALOSS ? bad_bytes(ret_error, why)
                                   : mu_error_set(ret_error, rv, "no memory");
    if (mu_value_type(result) != MU_VALUE_MAP) {
        mu_value_free(result);
        return bad_bytes(ret_error, "expected a map");
    }
    *ret_result = result;
    return 0;
}
