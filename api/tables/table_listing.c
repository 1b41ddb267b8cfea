/* Opening a table by what the status of the servers says of it. */
#include "api/internal.h"
#include "api/tables/opened_table.h"

#include "node/deadline.h"
#include "runtime/message/arguments.h"

#include <inttypes.h>

#include <string.h>

static uint64_t listed_number(const mu_value *map, const char *key)
{
    int64_t number = 0;

    (void)mu_value_get_int(mu_value_find(map, key), &number);
    return (uint64_t)number;
}

static const char *listed_text(const mu_value *map, const char *key)
{
    const char *text = "";
    size_t size;

    (void)mu_value_get_string(mu_value_find(map, key), &text, &size);
    return text;
}

static double listed_float(const mu_value *list, size_t i)
{
    double number = 0;

    (void)mu_value_get_float(mu_value_at(list, i), &number);
    return number;
}

static struct mu__initial listed_initial(const mu_value *map)
{
    const mu_value *numbers = mu_value_find(map, "initial");
    const char *name = listed_text(map, "initializer");
    struct mu__initial initial = {.seed = listed_number(map, "seed"),
                                  .a = listed_float(numbers, 0),
                                  .b = listed_float(numbers, 1)};

    while (initial.kind < MU__INITIAL_KINDS &&
           strcmp(name, mu__initial_name(initial.kind)) != 0)
        initial.kind++;
    return initial;
}

static struct mu__table_policy listed_policy(const mu_value *map)
{
    int zeros = 0;

    (void)mu_value_get_bool(mu_value_find(map, "unknown_zeros"), &zeros);
    return (struct mu__table_policy){
        .admit_after = (uint32_t)listed_number(map, "admit_after"),
        .admit_chance = (uint32_t)listed_number(map, "admit_chance"),
        .candidates = (uint32_t)listed_number(map, "candidates"),
        .ttl = (uint32_t)listed_number(map, "ttl"),
        .capacity = (uint32_t)listed_number(map, "capacity"),
        .eviction = (uint32_t)listed_number(map, "eviction"),
        .unknown_zeros = zeros != 0,
    };
}

static int open_listed(mu_node *node, const mu_value *listed, uint64_t deadline_ns,
                       mu_error *ret_error, mu_table **ret_table)
{
    const mu_value *map = mu_value_find(listed, "form");
    const char *name = listed_text(listed, "table");
    uint32_t dtype = (uint32_t)mu_dtype_find(listed_text(listed, "dtype"));
    uint32_t kind = mu__rule_kind_by_name(listed_text(listed, "optimizer"));
    struct mu__table_form form = {
        .dim = (uint32_t)listed_number(listed, "dim"),
        .dtype = dtype == MU_F32 ? 0 : dtype,
        .initial = listed_initial(map),
        .policy = listed_policy(map),
    };
    mu_error error;
    int rv;

    if (map == NULL || kind == 0)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "table %s: its servers do not say how it was made", name);
    form.rule = mu__rule_defaults(kind);
    rv = mu__table_form_check(&form, &error);
    if (rv != 0)
        return mu_error_set(ret_error, rv, "table %s: %s", name, error.message);
    return mu__table_open_form(node, name, &form, MU_TABLE_EXISTING, deadline_ns,
                               ret_error, ret_table);
}

/* The first server's that lists it; NULL: none does. */
static const mu_value *find_listed(const mu_value *status, const char *name)
{
    const mu_value *servers = mu_value_find(status, "variables");

    for (size_t i = 0; i < mu_value_count(servers); i++) {
        const mu_value *list = mu_value_find(mu_value_at(servers, i), "variables");

        for (size_t k = 0; k < mu_value_count(list); k++)
            if (mu_value_find(mu_value_at(list, k), "table") != NULL &&
                strcmp(listed_text(mu_value_at(list, k), "table"), name) == 0)
                return mu_value_at(list, k);
    }
    return NULL;
}

int mu_table_open_existing(mu_node *node, const char *name, int64_t timeout_ms,
                           mu_error *ret_error, mu_table **ret_table)
{
    MU__REQUIRE(ret_error, node, name, ret_table);

    uint64_t deadline_ns = mu__deadline_in(timeout_ms);
    const mu_value *listed;
    mu_value *status;
    int rv = mu_node_status(node, timeout_ms, ret_error, &status);

    if (rv != 0)
        return rv;
    listed = find_listed(status, name);
    if (listed != NULL)
        rv = open_listed(node, listed, deadline_ns, ret_error, ret_table);
    else if (listed_number(status, "servers_missing") > 0)
        rv = mu_error_set(ret_error, -MU_EUNAVAILABLE,
                          "table %s: it is not listed, and %" PRIu64
                          " parameter servers did not answer in time",
                          name, listed_number(status, "servers_missing"));
    else
        rv = mu_error_set(ret_error, -MU_ENOTFOUND, "table %s: there is none", name);
    mu_value_free(status);
    return rv;
}
