#include "actors/ps/initial/orthogonal.h"

#include "actors/ps/initial/initial.h"

#include <math.h>
#include <stdlib.h>

int mu__orthogonal_check(const struct mu__shape *shape, mu_error *ret_error)
{
    const struct mu__initial one = {.kind = MU__INITIAL_UNIFORM, .a = -1, .b = 1};

    if (shape->rank < 2)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "orthogonal values need two dimensions");
    if (mu__shape_bytes(shape) / mu_dtype_bytes((int)shape->dtype) > MU__ORTHOGONAL_MAX)
        return mu_error_set(ret_error, -MU_ERANGE, "orthogonal values: at most %d",
                            MU__ORTHOGONAL_MAX);
    return mu__initial_check(&one, shape->dtype, ret_error);
}

static double dot(const double *a, const double *b, uint64_t count)
{
    double sum = 0;

    for (uint64_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Gram and Schmidt's way, twice, so that rounding leaves nothing: `count` vectors of
 * `size` numbers, one behind the other. */
static void make_orthonormal(double *vectors, uint64_t count, uint64_t size)
{
    for (uint64_t i = 0; i < count; i++) {
        double *vector = vectors + i * size;
        double length;

        for (uint64_t j = 0; j < 2 * i; j++) {
            const double *other = vectors + j % i * size;
            double share = dot(vector, other, size);

            for (uint64_t k = 0; k < size; k++)
                vector[k] -= share * other[k];
        }
        length = sqrt(dot(vector, vector, size));
        for (uint64_t k = 0; k < size; k++)
            vector[k] /= length;
    }
}

/* Rows of a matrix that has `rows` vectors: they are its rows, or its columns. */
static void put_vectors(const double *vectors, uint64_t rows, uint64_t columns,
                        double gain, double *out)
{
    bool are_rows = rows < columns;

    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < columns; j++)
            out[i * columns + j] =
                gain * (are_rows ? vectors[i * columns + j] : vectors[j * rows + i]);
}

int mu__orthogonal_fill(const struct mu__shape *shape, struct mu__view name,
                        uint64_t seed, double gain, void *out)
{
    const struct mu__initial normal = {
        .kind = MU__INITIAL_NORMAL, .seed = seed, .a = 0, .b = 1};
    uint64_t columns = shape->dims[shape->rank - 1];
    uint64_t count = mu__shape_bytes(shape) / mu_dtype_bytes((int)shape->dtype);
    uint64_t rows = count / columns;
    double *vectors = malloc((size_t)count * sizeof *vectors);
    double *matrix = malloc((size_t)count * sizeof *matrix);

    if (vectors != NULL && matrix != NULL) {
        mu__initial_fill(&normal, name, MU_F64, 0, count, vectors);
        if (rows < columns)
            make_orthonormal(vectors, rows, columns);
        else
            make_orthonormal(vectors, columns, rows);
        put_vectors(vectors, rows, columns, gain, matrix);
        mu__initial_store(shape->dtype, matrix, (size_t)count, out);
    }
    free(vectors);
    free(matrix);
    return vectors != NULL && matrix != NULL ? 0 : -MU_ENOMEM;
}
