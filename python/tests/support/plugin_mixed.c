/* A plugin in C: functions that Python schedules, and a chief that schedules functions of
 * Python. */
#include <muster.h>
#include <stdio.h>
#include <stdlib.h>

int mu_plugin_open(mu_node *node);

enum { TIMEOUT_MS = 30000 };

/* [array of float64, factor] -> the array times the factor */
static int scale(mu_run *run, void *user)
{
    mu_tensor tensor;
    mu_value *result;
    double factor = 0;
    double *data;

    (void)user;
    if (mu_value_get_tensor(mu_value_at(mu_run_args(run), 0), &tensor) != 0 ||
        tensor.dtype != MU_F64 ||
        mu_value_get_float(mu_value_at(mu_run_args(run), 1), &factor) != 0)
        return mu_run_fail(run, -MU_EINVALID, "c.scale expects float64 and a factor");
    result = mu_value_tensor(tensor.dtype, tensor.rank, tensor.dims, tensor.data);
    data = mu_value_tensor_data(result);
    for (size_t i = 0; i < tensor.bytes / sizeof *data; i++)
        data[i] *= factor;
    mu_run_return(run, result);
    return 0;
}

/* What was given, back. */
static int same(mu_run *run, void *user)
{
    (void)user;
    mu_run_return(run, mu_value_ref(mu_run_args(run)));
    return 0;
}

/* Takes `args`. NULL, and words on standard output, when it fails. */
static mu_value *call(mu_coordinator *coordinator, const char *function, mu_value *args)
{
    mu_remote_value *remote = NULL;
    mu_value *value = NULL;
    mu_error error = {0};
    int rv =
        mu_coordinator_schedule(coordinator, function, args, TIMEOUT_MS, &error, &remote);

    mu_value_free(args);
    if (rv == 0)
        rv = mu_remote_value_fetch(remote, TIMEOUT_MS, &error, &value);
    if (rv != 0)
        printf("%s %s failed: %s | %s\n", mu_err_name(rv), error.function, error.message,
               error.kind == MU_ERROR_FUNCTION ? "function" : "other");
    mu_remote_value_free(remote);
    if (rv != 0) /* it is the coordinator's first error, too */
        (void)mu_coordinator_join(coordinator, TIMEOUT_MS, NULL);
    return rv == 0 ? value : NULL;
}

static void call_with_numbers(mu_coordinator *coordinator)
{
    mu_value *args = mu_value_list();
    mu_value *value;
    int64_t number = 0;

    (void)mu_value_append(args, mu_value_int(40));
    (void)mu_value_append(args, mu_value_int(2));
    value = call(coordinator, "py.add", args);
    (void)mu_value_get_int(value, &number);
    printf("sum %lld\n", (long long)number);
    mu_value_free(value);
}

static void call_with_keywords(mu_coordinator *coordinator)
{
    mu_value *args = mu_value_map();
    mu_value *value;
    const char *text = "";
    size_t size;

    (void)mu_value_set(args, "a", mu_value_string("ab"));
    (void)mu_value_set(args, "b", mu_value_string("cd"));
    value = call(coordinator, "py.add", args);
    (void)mu_value_get_string(value, &text, &size);
    printf("text %s\n", text);
    mu_value_free(value);
}

static void call_with_an_array(mu_coordinator *coordinator)
{
    const uint64_t dims[] = {2, 3};
    const double data[] = {1, 2, 3, 4, 5, 6};
    mu_value *value =
        call(coordinator, "py.double", mu_value_tensor(MU_F64, 2, dims, data));
    mu_tensor tensor;

    if (value != NULL && mu_value_get_tensor(value, &tensor) == 0)
        printf("array %s %ux%u last %g\n", mu_dtype_name(tensor.dtype),
               (unsigned)tensor.dims[0], (unsigned)tensor.dims[1],
               ((const double *)tensor.data)[5]);
    mu_value_free(value);
}

static int chief(mu_node *node, void *user)
{
    mu_coordinator *coordinator;
    mu_error error;

    (void)user;
    if (mu_coordinator_open(node, TIMEOUT_MS, &error, &coordinator) != 0)
        return error.code;
    call_with_numbers(coordinator);
    call_with_keywords(coordinator);
    call_with_an_array(coordinator);
    mu_value_free(call(coordinator, "py.fail", mu_value_string("words")));
    mu_value_free(call(coordinator, "py.absent", mu_value_nil()));
    mu_value_free(call(coordinator, "py.object", mu_value_nil()));
    call_with_numbers(coordinator);
    mu_coordinator_close(coordinator);
    return 0;
}

int mu_plugin_open(mu_node *node)
{
    int rv = mu_node_register_function(node, "c.scale", scale, NULL, 0);

    if (rv == 0)
        rv = mu_node_register_function(node, "c.same", same, NULL, 0);
    if (rv == 0 && getenv("CHIEF_IN_C") != NULL)
        rv = mu_node_register_program(node, "chief", chief, NULL);
    return rv;
}
