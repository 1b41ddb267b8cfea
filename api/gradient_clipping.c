/* Clipping of gradients, where they were computed. */
#include "api/internal.h"

#include "actors/ps/initial/initial.h"
#include "runtime/base/narrow_floats.h"
#include "runtime/message/arguments.h"

#include "muster/optimizer.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 512 }; /* elements that are calculated with at a time, as doubles */

static double read_narrow(int dtype, const uint8_t *from)
{
    uint16_t bits;

    memcpy(&bits, from, sizeof bits);
    return (double)(dtype == MU_F16 ? mu__f32_of_f16(bits) : mu__f32_of_bf16(bits));
}

static double read_element(int dtype, const uint8_t *from)
{
    double number;
    float single;

    switch (dtype) {
    case MU_F64:
        memcpy(&number, from, sizeof number);
        return number;
    case MU_F32:
        memcpy(&single, from, sizeof single);
        return (double)single;
    default:
        return read_narrow(dtype, from);
    }
}

static double sum_gradient_squares(const mu_gradient *gradient)
{
    size_t bytes = mu_dtype_bytes(gradient->dtype);
    const uint8_t *from = gradient->data;
    double sum = 0;

    for (size_t i = 0; i < gradient->count; i++) {
        double element = read_element(gradient->dtype, from + i * bytes);

        sum += element * element;
    }
    return sum;
}

/* Cut to -limit and limit, then multiply. */
static void change_elements(const mu_gradient *gradient, double limit, double factor)
{
    size_t bytes = mu_dtype_bytes(gradient->dtype);
    uint8_t *at = gradient->data;
    double block[BLOCK];

    for (size_t done = 0; done < gradient->count; done += BLOCK) {
        size_t left = gradient->count - done;
        size_t some = left < BLOCK ? left : BLOCK;

        for (size_t i = 0; i < some; i++) {
            double element = read_element(gradient->dtype, at + (done + i) * bytes);

            element = element > limit ? limit : element < -limit ? -limit : element;
            block[i] = element * factor;
        }
        mu__initial_store((uint32_t)gradient->dtype, block, some, at + done * bytes);
    }
}

static void scale_to_norm(const mu_gradient *gradient, double norm, double limit)
{
    if (!isfinite(norm))
        change_elements(gradient, HUGE_VAL, (double)NAN);
    else if (norm > limit)
        change_elements(gradient, HUGE_VAL, limit / norm);
}

static int check_clipping(const mu_gradient *gradients, size_t count, int by,
                          double limit, mu_error *ret_error)
{
    if (by < MU_CLIP_VALUE || by > MU_CLIP_GLOBAL_NORM)
        return mu_error_set(ret_error, -MU_EINVALID, "no clipping %d", by);
    if (!(limit > 0))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "clipping to %g: expected a number above 0", limit);
    for (size_t i = 0; i < count; i++)
        if (mu__rule_dtype(gradients[i].dtype) == MU_DTYPE_NONE ||
            (gradients[i].data == NULL && gradients[i].count > 0))
            return mu_error_set(ret_error, -MU_EINVALID,
                                "gradient %zu has no data, or dtype %d, which is no "
                                "float",
                                i, gradients[i].dtype);
    return 0;
}

int mu_clip_gradients(const mu_gradient *gradients, size_t count, int by, double limit,
                      mu_error *ret_error)
{
    MU__REQUIRE(ret_error, gradients);

    int rv = check_clipping(gradients, count, by, limit, ret_error);
    double squares = 0;

    if (rv != 0)
        return rv;
    for (size_t i = 0; i < count && by == MU_CLIP_GLOBAL_NORM; i++)
        squares += sum_gradient_squares(&gradients[i]);
    for (size_t i = 0; i < count; i++)
        if (by == MU_CLIP_VALUE)
            change_elements(&gradients[i], limit, 1);
        else if (by == MU_CLIP_NORM)
            scale_to_norm(&gradients[i], sqrt(sum_gradient_squares(&gradients[i])),
                          limit);
        else
            scale_to_norm(&gradients[i], sqrt(squares), limit);
    return 0;
}
