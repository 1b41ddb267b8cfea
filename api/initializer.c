/* Initial values by name: what a distribution's parameters are for a shape. */
#include "api/internal.h"

#include "actors/partitions.h"
#include "actors/ps/initial/orthogonal.h"
#include "runtime/message/arguments.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Deviation of a normal distribution without what is beyond two deviations. */
static const double TRUNCATED_DEVIATION = 0.87962566103423978;

struct fans {
    double in;
    double out;
};

static struct fans fans_of(const struct mu__shape *shape)
{
    struct fans fans = {1, 1};

    if (shape->rank == 1)
        fans.in = fans.out = (double)shape->dims[0];
    if (shape->rank < 2)
        return fans;
    for (uint32_t i = 0; i < shape->rank - 2; i++)
        fans.in *= (double)shape->dims[i];
    fans.out = fans.in * (double)shape->dims[shape->rank - 1];
    fans.in = fans.in * (double)shape->dims[shape->rank - 2];
    return fans;
}

/* Keras' variance scaling. */
static struct mu__initial scaled(const mu_initializer *initializer, double variance)
{
    const struct mu__initial uniform = {.kind = MU__INITIAL_UNIFORM,
                                        .seed = initializer->seed,
                                        .a = -sqrt(3 * variance),
                                        .b = sqrt(3 * variance)};
    const struct mu__initial normal = {.kind = MU__INITIAL_TRUNCATED,
                                       .seed = initializer->seed,
                                       .b = sqrt(variance) / TRUNCATED_DEVIATION};

    switch (initializer->kind) {
    case MU_INITIALIZER_GLOROT_UNIFORM:
    case MU_INITIALIZER_HE_UNIFORM:
    case MU_INITIALIZER_LECUN_UNIFORM:
        return uniform;
    default:
        return normal;
    }
}

/* MU__INITIAL_KINDS: the kind is unknown, or no function of the index alone. */
static struct mu__initial initial_of(const mu_initializer *initializer,
                                     const struct mu__shape *shape)
{
    const struct fans fans = fans_of(shape);
    struct mu__initial initial = {
        .seed = initializer->seed, .a = initializer->a, .b = initializer->b};
    const struct mu__initial zeros = {.kind = MU__INITIAL_ZEROS};

    switch (initializer->kind) {
    case MU_INITIALIZER_ZEROS:
        return zeros;
    case MU_INITIALIZER_CONSTANT:
        initial.seed = 0;
        initial.b = 0;
        initial.kind = MU__INITIAL_CONSTANT;
        return initial;
    case MU_INITIALIZER_UNIFORM:
        initial.kind = MU__INITIAL_UNIFORM;
        return initial;
    case MU_INITIALIZER_NORMAL:
        initial.kind = MU__INITIAL_NORMAL;
        return initial;
    case MU_INITIALIZER_TRUNCATED_NORMAL:
        initial.kind = MU__INITIAL_TRUNCATED;
        return initial;
    case MU_INITIALIZER_GLOROT_UNIFORM:
    case MU_INITIALIZER_GLOROT_NORMAL:
        return scaled(initializer, 2 / (fans.in + fans.out));
    case MU_INITIALIZER_HE_UNIFORM:
    case MU_INITIALIZER_HE_NORMAL:
        return scaled(initializer, 2 / fans.in);
    case MU_INITIALIZER_LECUN_UNIFORM:
    case MU_INITIALIZER_LECUN_NORMAL:
        return scaled(initializer, 1 / fans.in);
    default:
        initial.kind = MU__INITIAL_KINDS;
        return initial;
    }
}

static int check_is_known(const mu_initializer *initializer,
                          const struct mu__initial *initial, mu_error *ret_error)
{
    if (initial->kind != MU__INITIAL_KINDS)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID, "initializer %d is unknown",
                        initializer->kind);
}

static int make_orthogonal(const mu_initializer *initializer, const char *name,
                           const struct mu__shape *shape, mu_error *ret_error,
                           void **ret_content)
{
    int rv = mu__orthogonal_check(shape, ret_error);
    void *content = NULL;

    if (rv != 0)
        return rv;
    content = malloc((size_t)mu__shape_bytes(shape));
    if (content == NULL ||
        mu__orthogonal_fill(shape, mu__view_str(name), initializer->seed, initializer->a,
                            content) != 0) {
        free(content);
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for orthogonal values");
    }
    *ret_content = content;
    return 0;
}

int mu__initializer_prepare(const mu_initializer *initializer, const char *name,
                            const struct mu__shape *shape, mu_error *ret_error,
                            struct mu__initial *ret_initial, void **ret_content)
{
    struct mu__initial initial = initial_of(initializer, shape);
    int rv;

    if (initializer->kind == MU_INITIALIZER_ORTHOGONAL)
        return make_orthogonal(initializer, name, shape, ret_error, ret_content);
    rv = check_is_known(initializer, &initial, ret_error);
    if (rv == 0)
        rv = mu__initial_check(&initial, shape->dtype, ret_error);
    if (rv == 0)
        *ret_initial = initial;
    return rv;
}

int mu__initializer_of_rows(const mu_initializer *initializer, uint64_t table,
                            uint32_t dim, mu_error *ret_error,
                            struct mu__initial *ret_initial)
{
    const struct mu__shape row = {MU_F32, 1, {dim}, 1};
    struct mu__initial initial = initial_of(initializer, &row);
    int rv;

    if (initializer->kind == MU_INITIALIZER_ORTHOGONAL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "orthogonal values are not for rows of tables");
    rv = check_is_known(initializer, &initial, ret_error);
    if (rv != 0)
        return rv;
    if (initial.kind > MU__INITIAL_CONSTANT)
        initial.seed = mu__mix64(initial.seed + table);
    else if (fpclassify(initial.a) == FP_ZERO)
        initial.kind = MU__INITIAL_ZEROS;
    *ret_initial = initial;
    return 0;
}

int mu_initializer_values(const mu_initializer *initializer, const mu_variable_spec *spec,
                          uint64_t first, void *out, size_t bytes, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, initializer, spec, out);
    MU__REQUIRE_AS(ret_error, "spec->name", spec->name);

    struct mu__shape shape;
    struct mu__initial initial;
    void *content = NULL;
    size_t element_bytes = mu_dtype_bytes(spec->dtype);
    int rv = mu__variable_make_shape(spec, 1, ret_error, &shape);

    if (rv == 0)
        rv = mu__initializer_prepare(initializer, spec->name, &shape, ret_error, &initial,
                                     &content);
    if (rv != 0)
        return rv;
    if (bytes % element_bytes != 0 || first > mu__shape_bytes(&shape) / element_bytes ||
        bytes > mu__shape_bytes(&shape) - first * element_bytes)
        rv = mu_error_set(ret_error, -MU_ERANGE,
                          "variable %s does not have %zu bytes from element %llu on",
                          spec->name, bytes, (unsigned long long)first);
    else if (content != NULL)
        memcpy(out, (const char *)content + first * element_bytes, bytes);
    else
        mu__initial_fill(&initial, mu__view_str(spec->name), shape.dtype, first,
                         bytes / element_bytes, out);
    free(content);
    return rv;
}
