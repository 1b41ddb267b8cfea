#include "actors/ps/slots/narrow_gradients.h"

#include "runtime/base/narrow_floats.h"

#include <inttypes.h>
#include <string.h>

int mu__narrow_check(const struct mu__rule_kind *kind, uint64_t row, mu_error *ret_error)
{
    if (kind->is_whole)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s needs the norm of all: it is not for floats of 16 bits",
                            kind->name);
    if (kind->row_slots > 0 && row > MU__NARROW_ROW_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s of floats of 16 bits: a row has %" PRIu64
                            " elements: expected at most %d",
                            kind->name, row, MU__NARROW_ROW_MAX);
    return 0;
}

static float widen(int dtype, uint16_t number)
{
    return dtype == MU_F16 ? mu__f32_of_f16(number) : mu__f32_of_bf16(number);
}

static void run_narrow_block(const struct mu__rule_at *at, int dtype, uint16_t *x,
                             void *const *slots, const uint8_t *gradient, size_t count)
{
    float wide[MU__NARROW_ROW_MAX];
    float given[MU__NARROW_ROW_MAX] = {0};

    for (size_t i = 0; i < count; i++) {
        uint16_t number;

        memcpy(&number, gradient + i * sizeof number, sizeof number);
        wide[i] = widen(dtype, x[i]);
        given[i] = widen(dtype, number);
    }
    mu__rule_run(at, wide, slots, given, count);
    for (size_t i = 0; i < count; i++)
        x[i] = dtype == MU_F16 ? mu__f16_of_f32(wide[i]) : mu__bf16_of_f32(wide[i]);
}

void mu__narrow_run(const struct mu__rule_at *at, int dtype, uint16_t *x,
                    void *const *slots, const uint8_t *gradient, size_t count)
{
    const struct mu__rule_kind *kind = mu__rule_kind(at->kind);

    for (size_t done = 0; done < count; done += MU__NARROW_ROW_MAX) {
        size_t left = count - done;
        void *parts[MU__RULE_SLOTS_MAX];

        for (unsigned k = 0; k < kind->slots + kind->row_slots; k++)
            parts[k] = (float *)slots[k] + done;
        run_narrow_block(at, dtype, x + done, parts, gradient + done * sizeof *x,
                         left < MU__NARROW_ROW_MAX ? left : MU__NARROW_ROW_MAX);
    }
}
