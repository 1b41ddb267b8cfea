#include "actors/ps/tables/policies/row_admission.h"

bool mu__admission_may_make(const struct mu__table *table, uint64_t id)
{
    const struct mu__table_policy *policy = &table->form.policy;

    if (policy->admit_chance != 0)
        return mu__table_policy_draw(policy, table->form.initial.seed, id,
                                     table->state.pushes + table->pending);
    return !mu__table_policy_counts(policy) ||
           mu__candidates_count(&table->candidates, id) + (uint64_t)table->pending >=
               policy->admit_after;
}

bool mu__admission_admit(struct mu__table *table, uint64_t id)
{
    const struct mu__table_policy *policy = &table->form.policy;

    if (policy->admit_chance != 0)
        return mu__table_policy_draw(policy, table->form.initial.seed, id,
                                     table->state.pushes);
    if (mu__candidates_add(&table->candidates, id) < policy->admit_after)
        return false;
    mu__candidates_forget(&table->candidates, id);
    return true;
}
