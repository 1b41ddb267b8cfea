/* Initial values of variables and tables by name of a distribution, as Keras has them.
 *
 * Each element of a variable is a function of the seed, the variable's name and the
 * element's index (Philox4x32-10), so that a variable begins alike on any number of
 * servers and shards, and its servers generate what they have, each by itself. Only
 * MU_INITIALIZER_ORTHOGONAL is computed by who creates the variable. Each number of a
 * table's row is a function of the seed, the table's name, the id and the column. */
#ifndef MUSTER_INITIALIZER_H
#define MUSTER_INITIALIZER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All but ZEROS and CONSTANT are for floats. in and out: the fans of the whole variable;
 * of rank 1, and of a table's row, both are its size, else they are the last two
 * dimensions, each times the product of the others. Truncated normal: without what is
 * beyond two deviations of the mean. */
enum mu_initializer_kind {
    MU_INITIALIZER_ZEROS = 0,            /* of any dtype */
    MU_INITIALIZER_CONSTANT = 1,         /* a; of any dtype */
    MU_INITIALIZER_UNIFORM = 2,          /* from a to b */
    MU_INITIALIZER_NORMAL = 3,           /* mean a, deviation b */
    MU_INITIALIZER_TRUNCATED_NORMAL = 4, /* the same */
    MU_INITIALIZER_GLOROT_UNIFORM = 5,   /* within sqrt(6 / (in + out)) */
    MU_INITIALIZER_GLOROT_NORMAL = 6,    /* truncated, deviation sqrt(2 / (in + out)) */
    MU_INITIALIZER_HE_UNIFORM = 7,       /* within sqrt(6 / in) */
    MU_INITIALIZER_HE_NORMAL = 8,        /* truncated, deviation sqrt(2 / in) */
    MU_INITIALIZER_LECUN_UNIFORM = 9,    /* within sqrt(3 / in) */
    MU_INITIALIZER_LECUN_NORMAL = 10,    /* truncated, deviation sqrt(1 / in) */
    MU_INITIALIZER_ORTHOGONAL = 11       /* orthonormal columns (or rows) times a; at most
                                            2^20 elements, of rank 2 or more; no rows */
};

typedef struct mu_initializer {
    int kind; /* enum mu_initializer_kind */
    uint64_t seed;
    double a;
    double b;
} mu_initializer;

#ifdef __cplusplus
}
#endif

#endif
