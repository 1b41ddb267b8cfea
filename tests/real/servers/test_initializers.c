/* Variables that begin with values by name of a distribution. */
#include "tests/real/nodes.h"

#include <math.h>

struct fixture {
    struct nodes nodes;
    mu_node *chief;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    nodes_init(&f->nodes, 0, 2);
    f->chief = nodes_open(&f->nodes, "chief", 0);
    (void)nodes_open(&f->nodes, "ps", 0);
    (void)nodes_open(&f->nodes, "ps", 1);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    nodes_done(&f->nodes);
    free(f);
    return 0;
}

static const uint64_t dims[2] = {30, 20};

enum { COUNT = 600 };

static void open_and_read(struct fixture *f, const mu_initializer *initializer,
                          unsigned shards, const char *name, float out[COUNT])
{
    const mu_variable_spec spec = {.name = name,
                                   .dtype = MU_F32,
                                   .rank = 2,
                                   .dims = dims,
                                   .shards = shards,
                                   .initializer = initializer};
    mu_variable *variable = NULL;
    float expected[COUNT];
    mu_error error = {0};

    check(mu_variable_open(f->chief, &spec, SOON_MS, &error, &variable), &error);
    check(mu_variable_read(variable, out, sizeof expected, SOON_MS, &error), &error);
    check(mu_initializer_values(initializer, &spec, 0, expected, sizeof expected, &error),
          &error);
    assert_memory_equal(out, expected, sizeof expected);
    mu_variable_close(variable);
}

/* What Keras' formulas give for 30 inputs and 20 outputs: the bound of all, and the
 * deviation. */
static const struct named {
    mu_initializer initializer;
    const char *name;
    unsigned shards;
    double bound;
    double deviation;
} named[] = {
    {{MU_INITIALIZER_CONSTANT, 1, 0.25, 9}, "constant", 3, 0.25, 0},
    {{MU_INITIALIZER_UNIFORM, 1, -1, 1}, "uniform", 7, 1, 0.57735},
    {{MU_INITIALIZER_NORMAL, 1, 0, 0.05}, "normal", 2, 0.3, 0.05},
    {{MU_INITIALIZER_TRUNCATED_NORMAL, 1, 0, 0.05}, "truncated", 2, 0.1, 0.04398},
    {{MU_INITIALIZER_GLOROT_UNIFORM, 1, 0, 0}, "glorot_u", 1, 0.346410162, 0.2},
    {{MU_INITIALIZER_GLOROT_NORMAL, 1, 0, 0}, "glorot_n", 4, 0.454736157, 0.2},
    {{MU_INITIALIZER_HE_UNIFORM, 1, 0, 0}, "he_u", 5, 0.447213596, 0.258199},
    {{MU_INITIALIZER_HE_NORMAL, 1, 0, 0}, "he_n", 30, 0.587061827, 0.258199},
    {{MU_INITIALIZER_LECUN_UNIFORM, 1, 0, 0}, "lecun_u", 2, 0.316227767, 0.182574},
    {{MU_INITIALIZER_LECUN_NORMAL, 1, 0, 0}, "lecun_n", 2, 0.415115397, 0.182574},
};

TEST_ON(test_distributions, struct fixture *f, set_up, tear_down)
{
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        float values[COUNT];
        double mean = 0;
        double squares = 0;

        open_and_read(f, &named[i].initializer, named[i].shards, named[i].name, values);
        for (int j = 0; j < COUNT; j++) {
            assert_true(fabs((double)values[j]) <= named[i].bound * (1 + 1e-6));
            mean += (double)values[j] / COUNT;
        }
        for (int j = 0; j < COUNT; j++)
            squares += ((double)values[j] - mean) * ((double)values[j] - mean) / COUNT;
        assert_true(fabs(sqrt(squares) - named[i].deviation) <=
                    0.08 * named[i].deviation + 1e-9);
    }
}

/* Twenty columns of thirty, or thirty rows of a flat one. */
TEST_ON(test_orthogonal_columns, struct fixture *f, set_up, tear_down)
{
    const mu_initializer initializer = {.kind = MU_INITIALIZER_ORTHOGONAL, .a = 2};
    float values[COUNT];

    open_and_read(f, &initializer, 3, "orthogonal", values);
    for (int a = 0; a < 20; a++) {
        for (int b = 0; b < 20; b++) {
            double sum = 0;

            for (int row = 0; row < 30; row++)
                sum += (double)values[20 * row + a] * (double)values[20 * row + b];
            assert_true(fabs(sum - (a == b ? 4 : 0)) < 1e-5);
        }
    }
}

TEST_ON(test_orthogonal_rows, struct fixture *f, set_up, tear_down)
{
    static const uint64_t flat[3] = {2, 2, 50};
    const mu_initializer initializer = {.kind = MU_INITIALIZER_ORTHOGONAL, .a = 1};
    const mu_variable_spec spec = {
        .name = "flat", .dtype = MU_F64, .rank = 3, .dims = flat};
    double values[200];
    mu_error error = {0};

    (void)f;
    check(mu_initializer_values(&initializer, &spec, 0, values, sizeof values, &error),
          &error);
    for (int a = 0; a < 4; a++) {
        for (int b = 0; b < 4; b++) {
            double sum = 0;

            for (int i = 0; i < 50; i++)
                sum += values[50 * a + i] * values[50 * b + i];
            assert_true(fabs(sum - (a == b ? 1 : 0)) < 1e-12);
        }
    }
}

/* ---- What a variable cannot begin with ---- */

static const struct refused {
    mu_initializer initializer;
    int dtype;
    unsigned rank;
    uint64_t rows;
    int rv;
    const char *message;
} refused[] = {
    {{99, 0, 0, 0}, MU_F32, 2, 4, -MU_EINVALID, "variable w: initializer 99 is unknown"},
    {{MU_INITIALIZER_NORMAL, 0, 0, 1},
     MU_I32,
     2,
     4,
     -MU_EINVALID,
     "variable w: int32 has no such initial values: a whole number was expected"},
    {{MU_INITIALIZER_CONSTANT, 0, 300, 0},
     MU_U8,
     2,
     4,
     -MU_ERANGE,
     "variable w: initial values from 300 to 300 are out of the range of uint8"},
    {{MU_INITIALIZER_ORTHOGONAL, 0, 1, 0},
     MU_F32,
     1,
     4,
     -MU_EINVALID,
     "variable w: orthogonal values need two dimensions"},
    {{MU_INITIALIZER_ORTHOGONAL, 0, 1, 0},
     MU_F32,
     2,
     1 << 20,
     -MU_ERANGE,
     "variable w: orthogonal values: at most 1048576"},
    {{MU_INITIALIZER_ORTHOGONAL, 0, 1, 0},
     MU_I32,
     2,
     4,
     -MU_EINVALID,
     "variable w: int32 has no such initial values: a whole number was expected"},
};

TEST_ON(test_refused, struct fixture *f, set_up, tear_down)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const uint64_t size[2] = {refused[i].rows, 4};
        const mu_variable_spec spec = {.name = "w",
                                       .dtype = refused[i].dtype,
                                       .rank = refused[i].rank,
                                       .dims = size,
                                       .initializer = &refused[i].initializer};
        mu_variable *variable = NULL;
        mu_error error = {0};

        assert_int_equal(mu_variable_open(f->chief, &spec, SOON_MS, &error, &variable),
                         refused[i].rv);
        assert_string_equal(error.message, refused[i].message);
        assert_null(variable);
    }
}

TEST_ON(test_values_beyond_the_end, struct fixture *f, set_up, tear_down)
{
    const mu_initializer initializer = {.kind = MU_INITIALIZER_CONSTANT, .a = 1};
    const mu_variable_spec spec = {.name = "w", .dtype = MU_F32, .rank = 2, .dims = dims};
    float values[4];
    mu_error error = {0};

    (void)f;
    check(mu_initializer_values(&initializer, &spec, COUNT - 4, values, 16, &error),
          &error);
    assert_int_equal(mu_initializer_values(&initializer, &spec, COUNT - 3, values, 16,
                                           &error),
                     -MU_ERANGE);
    assert_int_equal(mu_initializer_values(&initializer, &spec, UINT64_MAX, values, 16,
                                           &error),
                     -MU_ERANGE);
    assert_int_equal(mu_initializer_values(&initializer, &spec, 0, values, 15, &error),
                     -MU_ERANGE);
}

TEST_PROGRAM()
