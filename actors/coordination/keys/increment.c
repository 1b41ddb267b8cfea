/* Numbers as values of keys. */
#include "actors/coordination/keys/internal.h"
#include "actors/coordination/keys/key_map.h"

/* A decimal number of 64 bits, all of the text. */
static bool parse_counter(struct mu__view text, int64_t *ret_number)
{
    const char *at = text.data;
    bool negative = text.size > 0 && at[0] == '-';
    uint64_t most = (uint64_t)INT64_MAX + negative;
    uint64_t number = 0;

    if (text.size == negative || text.size > MU__NUMBER_BYTES)
        return false;
    for (uint32_t i = negative; i < text.size; i++) {
        unsigned figure = (unsigned)(uint8_t)at[i] - '0';

        if (figure > 9 || number > (most - figure) / 10)
            return false;
        number = number * 10 + figure;
    }
    *ret_number = negative ? (int64_t)(0 - number) : (int64_t)number;
    return true;
}

static struct mu__view write_number(int64_t number, char out[MU__NUMBER_BYTES])
{
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    uint32_t at = MU__NUMBER_BYTES;

    do {
        out[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (number < 0)
        out[--at] = '-';
    return (struct mu__view){out + at, MU__NUMBER_BYTES - at};
}

static bool sum_fits(int64_t a, int64_t b)
{
    return b >= 0 ? a <= INT64_MAX - b : a >= INT64_MIN - b;
}

int mu__coord_key_sum(const struct mu__key_value *before, int64_t by, mu_error *ret_error,
                      char text[MU__NUMBER_BYTES], struct mu__key_value *entry,
                      int64_t *ret_sum)
{
    int64_t number = 0;

    if (before != NULL && !parse_counter(before->value, &number))
        return mu__coord_key_error(ret_error, -MU_EPRECONDITION, entry->key,
                                   "has no decimal number of 64 bits to increment");
    if (!sum_fits(number, by))
        return mu__coord_key_error(ret_error, -MU_ERANGE, entry->key,
                                   "would exceed 64 bits");
    entry->value = write_number(number + by, text);
    entry->owner = before == NULL ? 0 : before->owner;
    *ret_sum = number + by;
    return 0;
}
