/* Bytes that functions gave with their errors, by number: the last ones, as the program
 * reads them when it gets the error, perhaps never. Plain data. */
#ifndef MU_ACTORS_CLIENT_ERROR_DATA_H
#define MU_ACTORS_CLIENT_ERROR_DATA_H

#include "muster/value.h"

enum { MU__ERROR_DATA_ITEMS_MAX = 1024, MU__ERROR_DATA_BYTES_MAX = 64 << 20 };

struct mu__error_data {
    mu_value **items; /* number n at n % MU__ERROR_DATA_ITEMS_MAX; NULL: none yet */
    uint32_t first;   /* the oldest number that may be there */
    uint32_t last;    /* the latest; 0: none */
    size_t bytes;
};

/* Takes `value`, of bytes. Numbers come in order, from 1; the oldest ones make room. */
void mu__error_data_put(struct mu__error_data *data, uint32_t number, mu_value *value);

/* A new reference; NULL: it is not there. */
mu_value *mu__error_data_get(const struct mu__error_data *data, uint32_t number);

void mu__error_data_done(struct mu__error_data *data);

#endif
