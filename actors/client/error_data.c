#include "actors/client/error_data.h"

#include <stdlib.h>

static mu_value **slot(const struct mu__error_data *data, uint32_t number)
{
    return &data->items[number % MU__ERROR_DATA_ITEMS_MAX];
}

static size_t size_of(const mu_value *value)
{
    const void *bytes;
    size_t size = 0;

    return mu_value_get_bytes(value, &bytes, &size) == 0 ? size : 0;
}

static void drop_first(struct mu__error_data *data)
{
    mu_value **at = slot(data, data->first++);

    if (*at == NULL)
        return;
    data->bytes -= size_of(*at);
    mu_value_free(*at);
    *at = NULL;
}

/* After the last number they begin again. */
static void drop_all(struct mu__error_data *data)
{
    while (data->last != 0 && data->first <= data->last && data->first != 0)
        drop_first(data);
    data->first = data->last = 0;
}

void mu__error_data_put(struct mu__error_data *data, uint32_t number, mu_value *value)
{
    if (data->items == NULL)
        data->items = calloc(MU__ERROR_DATA_ITEMS_MAX, sizeof *data->items);
    if (data->items == NULL) {
        mu_value_free(value);
        return;
    }
    if (number <= data->last)
        drop_all(data);
    if (data->last == 0)
        data->first = number;
    data->bytes += size_of(value);
    while (data->first < number && (number - data->first >= MU__ERROR_DATA_ITEMS_MAX ||
                                    data->bytes > MU__ERROR_DATA_BYTES_MAX))
        drop_first(data);
    *slot(data, number) = value;
    data->last = number;
}

mu_value *mu__error_data_get(const struct mu__error_data *data, uint32_t number)
{
    mu_value *value;

    if (number == 0 || number < data->first || number > data->last)
        return NULL;
    value = *slot(data, number);
    return value == NULL ? NULL : mu_value_ref(value);
}

void mu__error_data_done(struct mu__error_data *data)
{
    drop_all(data);
    free(data->items);
}
