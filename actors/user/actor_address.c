/* Addresses, and their texts. */
#include "actors/user/office.h"

#include "runtime/message/arguments.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int mu_address_equal(const mu_address *a, const mu_address *b)
{
    MU__REQUIRE_OR(0, a, b);
    return a->incarnation == b->incarnation && a->number == b->number;
}

void mu__address_write(const mu_address *address, char *out)
{
    (void)snprintf(out, MU__ADDRESS_TEXT_MAX,
                   "/job:%.15s/task:%" PRIu32 "#%016" PRIx64 ".%" PRIu32, address->type,
                   address->index, address->incarnation, address->number);
}

mu_value *mu_value_actor(const mu_address *address)
{
    char text[MU__ADDRESS_TEXT_MAX];

    MU__REQUIRE_OR(NULL, address);
    mu__address_write(address, text);
    return mu_value_string(text);
}

/* What is read is written again: only texts that were written so are addresses. */
int mu_value_get_actor(const mu_value *value, mu_address *ret_address)
{
    MU__REQUIRE(NULL, value, ret_address);

    mu_address address = {.number = 0};
    char again[MU__ADDRESS_TEXT_MAX];
    const char *text;
    size_t size;

    if (mu_value_get_string(value, &text, &size) != 0 || size >= MU__ADDRESS_TEXT_MAX ||
        sscanf(text, "/job:%15[^/]/task:%" SCNu32 "#%" SCNx64 ".%" SCNu32, address.type,
               &address.index, &address.incarnation, &address.number) != 4)
        return -MU_EINVALID;
    mu__address_write(&address, again);
    if (strcmp(text, again) != 0)
        return -MU_EINVALID;
    *ret_address = address;
    return 0;
}
