/* What the status shows of the views. */
#include "actors/views/internal.h"

static void set_number(mu_value *map, const char *key, uint64_t number)
{
    (void)mu_value_set(map, key, mu_value_int((int64_t)number));
}

static void set_replica(mu_value *map, const char *key, const struct mu__replica *replica)
{
    if (replica->incarnation != 0)
        set_number(map, key, replica->task);
}

static mu_value *partition_view_value(const struct mu__partition_view *view)
{
    mu_value *map = mu_value_map();

    set_number(map, "partition", view->partition);
    set_number(map, "number", view->number);
    set_replica(map, "primary", &view->primary);
    set_replica(map, "backup", &view->backup);
    set_replica(map, "learner", &view->learner);
    if (view->handover)
        (void)mu_value_set(map, "handover", mu_value_bool(true));
    return map;
}

static mu_value *all_views(const struct mu__view_table *table)
{
    mu_value *list = mu_value_list();

    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        const struct mu__partition_view *view = mu__view_table_at(table, i);

        if (view != NULL)
            (void)mu_value_append(list, partition_view_value(view));
    }
    return list;
}

static mu_value *roles_value(const struct mu__view_roles *roles)
{
    mu_value *map = mu_value_map();

    set_number(map, "ps", roles->task);
    (void)mu_value_set(map, "up", mu_value_bool(roles->is_up));
    if (roles->is_draining)
        (void)mu_value_set(map, "draining", mu_value_bool(true));
    set_number(map, "primary", roles->primary);
    set_number(map, "backup", roles->backup);
    set_number(map, "learner", roles->learner);
    set_number(map, "degraded", roles->degraded);
    set_number(map, "lost", roles->lost);
    return map;
}

static bool is_worth_telling(const struct mu__view_roles *roles)
{
    return roles->is_up || roles->is_draining || roles->lost > 0 ||
           roles->primary + roles->backup + roles->learner > 0;
}

static mu_value *all_roles(const struct mu__view_table *table)
{
    mu_value *list = mu_value_list();
    struct mu__view_roles roles;

    for (uint32_t i = 0; mu__view_table_roles(table, i, &roles); i++)
        if (is_worth_telling(&roles))
            (void)mu_value_append(list, roles_value(&roles));
    return list;
}

mu_value *mu__views_value(const struct mu__view_table *table)
{
    struct mu__view_totals totals;
    mu_value *map = mu_value_map();

    mu__view_table_totals(table, &totals);
    set_number(map, "backups", table->backups);
    set_number(map, "placed", totals.placed);
    set_number(map, "without_primary", totals.without_primary);
    set_number(map, "degraded", totals.degraded);
    set_number(map, "filling", totals.filling);
    set_number(map, "moving", totals.moving);
    set_number(map, "lost", totals.lost);
    (void)mu_value_set(map, "servers", all_roles(table));
    (void)mu_value_set(map, "views", all_views(table));
    return map;
}
