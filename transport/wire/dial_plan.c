#include "transport/wire/dial_plan.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- the order ---- */

/* The addresses that were tried before, or (`tried` false) the others. */
struct choice {
    const bool *is_v6;
    const bool *is_tried;
    unsigned count;
    bool tried;
};

/* The next address of a family from `from` on; `count`: there is none. */
static unsigned next_of_family(const struct choice *choice, unsigned from, bool family)
{
    while (from < choice->count &&
           (choice->is_v6[from] != family || choice->is_tried[from] != choice->tried))
        from++;
    return from;
}

static bool first_family(const struct choice *choice)
{
    return next_of_family(choice, 0, true) < next_of_family(choice, 0, false);
}

/* Returns the number of addresses of the choice. */
static unsigned order_of(const struct choice *choice, unsigned *ret_order)
{
    bool family = first_family(choice);
    unsigned at[2] = {0, 0};
    unsigned used = 0;

    for (;;) {
        unsigned next = next_of_family(choice, at[family], family);

        if (next == choice->count) {
            family = !family;
            next = next_of_family(choice, at[family], family);
        }
        if (next == choice->count)
            return used;
        ret_order[used++] = next;
        at[family] = next + 1;
        family = !family;
    }
}

void mu__dial_order(const bool *is_v6, const bool *is_tried, unsigned count,
                    unsigned *ret_order)
{
    struct choice choice = {is_v6, is_tried, count, false};
    unsigned used = order_of(&choice, ret_order);

    choice.tried = true;
    (void)order_of(&choice, ret_order + used);
}

/* ---- rounds ---- */

bool mu__dial_tried_has(const struct mu__dial_tried *tried, uint32_t number)
{
    for (unsigned i = 0; i < tried->count; i++)
        if (tried->numbers[i] == number)
            return true;
    return false;
}

bool mu__dial_tried_add(struct mu__dial_tried *tried, uint32_t number, unsigned count)
{
    bool is_new = !mu__dial_tried_has(tried, number);

    if (is_new && tried->count + 1 < count && tried->count < MU__DIAL_ADDRESSES_MAX) {
        tried->numbers[tried->count++] = number;
        return true;
    }
    tried->count = 0;
    return false;
}

/* ---- the plan ---- */

void mu__dial_plan_init(struct mu__dial_plan *plan, unsigned count, uint32_t timeout_ms)
{
    assert(count <= MU__DIAL_ADDRESSES_MAX);
    *plan = (struct mu__dial_plan){.count = count, .timeout_ms = timeout_ms};
    plan->is_next_due = true;
}

void mu__dial_plan_fail(struct mu__dial_plan *plan, unsigned which)
{
    assert(which < plan->begun);
    plan->has_failed[which] = true;
    plan->is_next_due = true;
}

/* When the next attempt begins. */
static uint64_t next_begins_ms(const struct mu__dial_plan *plan)
{
    return plan->is_next_due ? 0 : plan->begun_ms[plan->begun - 1] + MU__DIAL_DELAY_MS;
}

static struct mu__dial_step begin_next_attempt(struct mu__dial_plan *plan,
                                               uint64_t now_ms)
{
    plan->is_next_due = false;
    plan->begun_ms[plan->begun] = now_ms;
    return (struct mu__dial_step){.move = MU__DIAL_BEGIN, .which = plan->begun++};
}

struct mu__dial_step mu__dial_plan_step(struct mu__dial_plan *plan, uint64_t now_ms)
{
    struct mu__dial_step step = {.move = MU__DIAL_OVER, .until_ms = UINT64_MAX};

    for (unsigned i = 0; i < plan->begun; i++) {
        uint64_t deadline_ms = plan->begun_ms[i] + plan->timeout_ms;

        if (plan->has_failed[i])
            continue;
        if (now_ms >= deadline_ms) {
            mu__dial_plan_fail(plan, i);
            return (struct mu__dial_step){.move = MU__DIAL_GIVE_UP, .which = i};
        }
        step.move = MU__DIAL_WAIT;
        if (deadline_ms < step.until_ms)
            step.until_ms = deadline_ms;
    }
    if (plan->begun == plan->count)
        return step;
    if (now_ms >= next_begins_ms(plan))
        return begin_next_attempt(plan, now_ms);
    if (next_begins_ms(plan) < step.until_ms)
        step.until_ms = next_begins_ms(plan);
    return step;
}

/* ---- reasons as text ---- */

static void append_dial_words(char *out, size_t size, const char *before,
                              const char *text)
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
        append_dial_words(out, size, out[0] == '\0' ? "" : "; ", rows[i].name);
        for (unsigned j = i + 1; j < count; j++)
            if (strcmp(rows[i].why, rows[j].why) == 0)
                append_dial_words(out, size, ", ", rows[j].name);
        append_dial_words(out, size, ": ", rows[i].why);
    }
}
