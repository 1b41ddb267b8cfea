/* Announcing this task in all registries of a tree, and taking it back. Runs of the same
 * tree may be under way on another thread: `registry` and an entry's `memory` are the
 * only state that is used here. */
#include "resolver/engine/internal.h"

static int announce_in_tree(mu_resolver *resolver, struct mu__requests *requests,
                            mu_announcement *announcement, mu_error *ret_error,
                            uint32_t *again_ms)
{
    struct mu__entry *entry = atomic_load(&resolver->registry);
    uint32_t entry_again_ms = 0;
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < resolver->members_count; i++)
        rv = announce_in_tree(resolver->members[i], requests, announcement, ret_error,
                              again_ms);
    if (rv != 0 || entry == NULL)
        return rv;
    mu__requests_begin_pass(requests, mu__entry_name(entry));
    rv = entry->kind->announce(&(struct mu__pass){requests, &entry->settings},
                               announcement, ret_error, &entry->memory,
                               &announcement->index, &entry_again_ms);
    if (rv == 0 && (*again_ms == 0 || entry_again_ms < *again_ms))
        *again_ms = entry_again_ms;
    return rv;
}

int mu__resolver_run_announce(mu_resolver *resolver, struct mu__requests *requests,
                              const mu_announcement *announcement, mu_error *ret_error,
                              int *ret_index, uint32_t *ret_again_ms)
{
    mu_announcement own = *announcement;
    uint32_t again_ms = 0;
    int rv = announce_in_tree(resolver, requests, &own, ret_error, &again_ms);

    if (mu__requests_out_of_memory(requests))
        return mu__resolver_out_of_memory(ret_error);
    if (rv != 0)
        return rv;
    *ret_index = own.index;
    *ret_again_ms = again_ms;
    return 0;
}

static int withdraw_from_tree(mu_resolver *resolver, struct mu__requests *requests,
                              const mu_announcement *announcement, mu_error *ret_error)
{
    struct mu__entry *entry = atomic_load(&resolver->registry);
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < resolver->members_count; i++)
        rv = withdraw_from_tree(resolver->members[i], requests, announcement, ret_error);
    if (rv != 0 || entry == NULL || entry->kind->withdraw == NULL)
        return rv;
    mu__requests_begin_pass(requests, mu__entry_name(entry));
    return entry->kind->withdraw(&(struct mu__pass){requests, &entry->settings},
                                 announcement, ret_error, &entry->memory);
}

int mu__resolver_run_withdraw(mu_resolver *resolver, struct mu__requests *requests,
                              const mu_announcement *announcement, mu_error *ret_error)
{
    int rv = withdraw_from_tree(resolver, requests, announcement, ret_error);

    return mu__requests_out_of_memory(requests) ? mu__resolver_out_of_memory(ret_error)
                                                : rv;
}

bool mu__resolver_announces(const mu_resolver *resolver)
{
    bool announces = atomic_load(&resolver->registry) != NULL;

    for (size_t i = 0; i < resolver->members_count; i++)
        announces = announces || mu__resolver_announces(resolver->members[i]);
    return announces;
}
