/* Announcing this task in all registries of a tree, and taking it back. */
#include "resolver/engine/internal.h"

/* Rounds of announcing may run while other rounds of the same tree do: `announced` is
 * the only state that is theirs. */
static void begin_announcing(mu_resolver *resolver)
{
    struct mu__entry *entry;

    for (size_t i = 0; (entry = mu__resolver_entry(resolver, i)) != NULL; i++)
        entry->announced.known = false;
    for (size_t i = 0; i < resolver->members_count; i++)
        begin_announcing(resolver->members[i]);
}

static void begin_announcing_if_fresh(mu_resolver *resolver,
                                      const struct mu__requests *requests)
{
    if (mu__requests_runs(requests) <= 1)
        begin_announcing(resolver);
}

/* Once in a round, whatever the number of runs: each call may change entry->memory. */
static int announce_entry(struct mu__entry *entry, struct mu__requests *requests,
                          const mu_announcement *announcement, mu_error *ret_error)
{
    if (entry->kind == NULL || entry->kind->announce == NULL)
        return 0;
    if (!entry->announced.known) {
        int rv;

        mu__requests_begin_pass(requests, mu__entry_name(entry));
        rv = entry->kind->announce(&(struct mu__pass){requests, &entry->settings},
                                   announcement, &entry->announced.error, &entry->memory,
                                   &entry->announced.index, &entry->announced.again_ms);
        if (rv == MU__LATER)
            return rv;
        entry->announced.rv = rv;
        entry->announced.known = true;
        if (rv != 0)
            mu__entry_fails(entry, &entry->announced.error);
    }
    if (entry->announced.rv != 0 && ret_error != NULL)
        *ret_error = entry->announced.error;
    return entry->announced.rv;
}

static bool entry_announces(const struct mu__entry *entry)
{
    return entry != NULL && entry->kind != NULL && entry->kind->announce != NULL;
}

static int announce(mu_resolver *resolver, struct mu__requests *requests,
                    mu_announcement *announcement, mu_error *ret_error,
                    uint32_t *again_ms)
{
    int rv = mu__resolver_need_taken(resolver, requests, ret_error);

    for (size_t i = 0; rv == 0 && i < resolver->members_count; i++)
        rv = announce(resolver->members[i], requests, announcement, ret_error, again_ms);
    if (rv != 0 || !entry_announces(resolver->taken))
        return rv;
    rv = announce_entry(resolver->taken, requests, announcement, ret_error);
    if (rv != 0)
        return rv;
    announcement->index = resolver->taken->announced.index;
    if (*again_ms == 0 || resolver->taken->announced.again_ms < *again_ms)
        *again_ms = resolver->taken->announced.again_ms;
    return 0;
}

int mu__resolver_run_announce(mu_resolver *resolver, struct mu__requests *requests,
                              const mu_announcement *announcement, mu_error *ret_error,
                              int *ret_index, uint32_t *ret_again_ms)
{
    mu_announcement own = *announcement;
    uint32_t again_ms = 0;
    int rv;

    begin_announcing_if_fresh(resolver, requests);
    rv = announce(resolver, requests, &own, ret_error, &again_ms);
    if (mu__requests_out_of_memory(requests))
        return mu__resolver_out_of_memory(ret_error);
    if (rv != 0)
        return rv;
    *ret_index = own.index;
    *ret_again_ms = again_ms;
    return 0;
}

static int withdraw(mu_resolver *resolver, struct mu__requests *requests,
                    const mu_announcement *announcement, mu_error *ret_error)
{
    int rv = mu__resolver_need_taken(resolver, requests, ret_error);
    struct mu__entry *entry = resolver->taken;

    for (size_t i = 0; rv == 0 && i < resolver->members_count; i++)
        rv = withdraw(resolver->members[i], requests, announcement, ret_error);
    if (rv != 0 || !entry_announces(entry) || entry->kind->withdraw == NULL ||
        entry->announced.known)
        return rv;
    mu__requests_begin_pass(requests, mu__entry_name(entry));
    rv = entry->kind->withdraw(&(struct mu__pass){requests, &entry->settings},
                               announcement, ret_error, &entry->memory);
    entry->announced.known = rv == 0;   /* it is done in this round */
    return rv;
}

int mu__resolver_run_withdraw(mu_resolver *resolver, struct mu__requests *requests,
                              const mu_announcement *announcement, mu_error *ret_error)
{
    int rv;

    begin_announcing_if_fresh(resolver, requests);
    rv = withdraw(resolver, requests, announcement, ret_error);
    return mu__requests_out_of_memory(requests) ? mu__resolver_out_of_memory(ret_error)
                                                : rv;
}

bool mu__resolver_announces(const mu_resolver *resolver)
{
    bool announces = entry_announces(resolver->taken);

    for (size_t i = 0; i < resolver->members_count; i++)
        announces = announces || mu__resolver_announces(resolver->members[i]);
    return announces;
}
