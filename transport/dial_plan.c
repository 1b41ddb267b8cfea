#include "transport/dial_plan.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- the order ---- */

/* The next of that family, not before `from`; `count`: there is none. */
static unsigned next_of_family(const bool *is_v6, unsigned count, unsigned from,
                               bool family)
{
    while (from < count && is_v6[from] != family)
        from++;
    return from;
}

void mu__dial_order(const bool *is_v6, unsigned count, unsigned first,
                    unsigned *ret_order)
{
    bool family = count > 0 && is_v6[0];
    unsigned at[2] = {0, 0};

    for (unsigned i = 0; i < count; i++) {
        unsigned next = next_of_family(is_v6, count, at[family], family);

        if (next == count) {
            family = !family;
            next = next_of_family(is_v6, count, at[family], family);
        }
        ret_order[(i + count - first % count) % count] = next;
        at[family] = next + 1;
        family = !family;
    }
}

/* ---- the plan ---- */

void mu__dial_plan_init(struct mu__dial_plan *plan, unsigned count, uint32_t limit_ms)
{
    assert(count <= MU__DIAL_ADDRESSES_MAX);
    *plan = (struct mu__dial_plan){.count = count, .limit_ms = limit_ms};
    plan->is_next_due = true;
}

void mu__dial_plan_fail(struct mu__dial_plan *plan, unsigned which)
{
    assert(which < plan->begun);
    plan->has_failed[which] = true;
    plan->is_next_due = true;
}

/* When the next one begins, though none has failed. */
static uint64_t next_begins_ms(const struct mu__dial_plan *plan)
{
    return plan->is_next_due ? 0 : plan->begun_ms[plan->begun - 1] + MU__DIAL_DELAY_MS;
}

static struct mu__dial_step begin(struct mu__dial_plan *plan, uint64_t now_ms)
{
    plan->is_next_due = false;
    plan->begun_ms[plan->begun] = now_ms;
    return (struct mu__dial_step){.move = MU__DIAL_BEGIN, .which = plan->begun++};
}

struct mu__dial_step mu__dial_plan_step(struct mu__dial_plan *plan, uint64_t now_ms)
{
    struct mu__dial_step step = {.move = MU__DIAL_OVER, .until_ms = UINT64_MAX};

    for (unsigned i = 0; i < plan->begun; i++) {
        uint64_t limit_ms = plan->begun_ms[i] + plan->limit_ms;

        if (plan->has_failed[i])
            continue;
        if (now_ms >= limit_ms) {
            mu__dial_plan_fail(plan, i);
            return (struct mu__dial_step){.move = MU__DIAL_GIVE_UP, .which = i};
        }
        step.move = MU__DIAL_WAIT;
        if (limit_ms < step.until_ms)
            step.until_ms = limit_ms;
    }
    if (plan->begun == plan->count)
        return step;
    if (now_ms >= next_begins_ms(plan))
        return begin(plan, now_ms);
    if (next_begins_ms(plan) < step.until_ms)
        step.until_ms = next_begins_ms(plan);
    return step;
}

/* ---- words ---- */

static void add(char *out, size_t size, const char *before, const char *text)
{
    size_t used = strlen(out);

    (void)snprintf(out + used, size - used, "%s%s", before, text);
}

static bool is_said(const struct mu__dial_failure *rows, unsigned row)
{
    for (unsigned i = 0; i < row; i++)
        if (strcmp(rows[i].why, rows[row].why) == 0)
            return true;
    return false;
}

void mu__dial_words(const struct mu__dial_failure *rows, unsigned count, char *out,
                    size_t size)
{
    out[0] = '\0';
    for (unsigned i = 0; i < count; i++) {
        if (is_said(rows, i))
            continue;
        add(out, size, out[0] == '\0' ? "" : "; ", rows[i].name);
        for (unsigned j = i + 1; j < count; j++)
            if (strcmp(rows[i].why, rows[j].why) == 0)
                add(out, size, ", ", rows[j].name);
        add(out, size, ": ", rows[i].why);
    }
}
