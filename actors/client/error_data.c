#include "actors/client/error_data.h"

#include <stdlib.h>

static mu_value **get_error_slot(const struct mu__error_data *data, uint32_t number)
{
    return &data->items[number % MU__ERROR_DATA_ITEMS_MAX];
}

static size_t size_of(const mu_value *value)
{
    const void *bytes;
    size_t size = 0;

    return mu_value_get_bytes(value, &bytes, &size) == 0 ? size : 0;
}

static void drop_first_error(struct mu__error_data *data)
{
    mu_value **at = get_error_slot(data, data->first++);

    if (*at == NULL)
        return;
    data->bytes -= size_of(*at);
    mu_value_free(*at);
    *at = NULL;
}

/* After the last number they begin again. */
static void drop_all_errors(struct mu__error_data *data)
{
    while (data->last != 0 && data->first <= data->last && data->first != 0)
        drop_first_error(data);
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
        drop_all_errors(data);
    if (data->last == 0)
        data->first = number;
    data->bytes += size_of(value);
    while (data->first < number && (number - data->first >= MU__ERROR_DATA_ITEMS_MAX ||
                                    data->bytes > MU__ERROR_DATA_BYTES_MAX))
        drop_first_error(data);
    *get_error_slot(data, number) = value;
    data->last = number;
}

mu_value *mu__error_data_get(const struct mu__error_data *data, uint32_t number)
{
    mu_value *value;

    if (number == 0 || number < data->first || number > data->last)
        return NULL;
    value = *get_error_slot(data, number);
    return value == NULL ? NULL : mu_value_ref(value);
}

void mu__error_data_done(struct mu__error_data *data)
{
    drop_all_errors(data);
    free(data->items);
}
