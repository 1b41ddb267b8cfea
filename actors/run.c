#include "actors/run.h"

#include "actors/messages.h"
#include "actors/packing.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const mu_value *mu_run_args(mu_run *run)
{
    return run->args_value;
}

mu_node *mu_run_node(mu_run *run)
{
    return run->node;
}

int mu_run_cancelled(mu_run *run)
{
    return atomic_load_explicit(&run->cancelled, memory_order_relaxed);
}

void mu_run_return(mu_run *run, mu_value *value)
{
    mu_value_free(run->result);
    run->result = value;
}

int mu_run_fail(mu_run *run, int code, const char *format, ...)
{
    va_list args;

    if (code >= 0)
        code = -MU_EUNKNOWN;
    if (run->words == NULL)
        run->words = malloc(MU__ERROR_TEXT_MAX + 1);
    if (run->words == NULL)
        return code;
    va_start(args, format);
    (void)vsnprintf(run->words, MU__ERROR_TEXT_MAX + 1, format, args);
    va_end(args);
    return code;
}

static int unpack_args(struct mu_run *run)
{
    char why[128];

    if (run->args.head_size == 0) {
        run->args_value = mu_value_nil();
        return run->args_value == NULL ? -MU_ENOMEM : 0;
    }
    if (mu__value_unpack(&run->args, why, sizeof why, &run->args_value) == 0)
        return 0;
    return mu_run_fail(run, -MU_EDATALOSS, "the arguments cannot be read: %s", why);
}

static int pack_result(struct mu_run *run)
{
    if (run->result == NULL || mu_value_type(run->result) == MU_VALUE_NIL)
        return 0;
    run->result_buf = mu__pack_value(run->result, &run->result_packed);
    if (run->result_buf != NULL)
        return 0;
    return mu_run_fail(run, -MU_EEXHAUSTED,
                       "the result is too deep or too large to be sent");
}

void mu__run_execute(struct mu_run *run)
{
    int code = unpack_args(run);

    if (code == 0) {
        code = run->registered->function(run, run->registered->user);
        if (code > 0)
            code = mu_run_fail(run, -MU_EUNKNOWN, "the function returned %d", code);
        else if (code < -255)
            code = mu_run_fail(run, -MU_EUNKNOWN, "the function returned %d", code);
    }
    if (code == 0)
        code = pack_result(run);
    run->code = code;
}

void mu__run_clear(struct mu_run *run)
{
    mu_value_free(run->args_value);
    mu_value_free(run->result);
    mu__buf_unref(run->result_buf);
    free(run->words);
}
