/* Addresses, and their texts. */
#include "actors/user/office.h"

#include "actors/names/name_rules.h"

#include "runtime/message/arguments.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_PREFIX "/actor:"

int mu_address_equal(const mu_address *a, const mu_address *b)
{
    MU__REQUIRE_OR(0, a, b);
    if (a->name[0] != '\0' || b->name[0] != '\0')
        return strcmp(a->name, b->name) == 0;
    return a->incarnation == b->incarnation && a->number == b->number;
}

void mu__address_write(const mu_address *address, char *out)
{
    if (address->name[0] != '\0') {
        (void)snprintf(out, MU__ADDRESS_TEXT_MAX, NAME_PREFIX "%.63s", address->name);
        return;
    }
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

static int read_name(struct mu__view text, mu_address *ret_address)
{
    const size_t prefix = sizeof NAME_PREFIX - 1;
    struct mu__view name;

    if (text.size <= prefix || memcmp(text.data, NAME_PREFIX, prefix) != 0)
        return -MU_EINVALID;
    name =
        (struct mu__view){(const char *)text.data + prefix, text.size - (uint32_t)prefix};
    if (mu__name_check(name, NULL) != 0)
        return -MU_EINVALID;
    *ret_address = (mu_address){.number = 0};
    mu__view_copy(name, ret_address->name, sizeof ret_address->name);
    return 0;
}

/* What is read is written again: only texts that were written so are addresses. */
int mu_value_get_actor(const mu_value *value, mu_address *ret_address)
{
    MU__REQUIRE(NULL, value, ret_address);

    mu_address address = {.number = 0};
    char again[MU__ADDRESS_TEXT_MAX];
    const char *text;
    size_t size;

    if (mu_value_get_string(value, &text, &size) != 0 || size >= MU__ADDRESS_TEXT_MAX)
        return -MU_EINVALID;
    if (read_name((struct mu__view){text, (uint32_t)size}, ret_address) == 0)
        return 0;
    if (sscanf(text, "/job:%15[^/]/task:%" SCNu32 "#%" SCNx64 ".%" SCNu32, address.type,
               &address.index, &address.incarnation, &address.number) != 4)
        return -MU_EINVALID;
    mu__address_write(&address, again);
    if (strcmp(text, again) != 0)
        return -MU_EINVALID;
    *ret_address = address;
    return 0;
}
