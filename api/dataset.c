/* A dataset: the shard dispenser behind a lock, and what becomes of each shard that is
 * out.
 *
 * A shard that is out belongs to an order, which is what the future of its closure calls
 * when it is resolved, on the loop. Orders hold the dataset, so it may be closed before
 * them. The lock is never held while the coordinator or a future is called: either may
 * call back at once. */
#include "muster/dataset.h"

#include "actors/client/future.h"
#include "actors/client/shard_dispenser.h"
#include "api/internal.h"
#include "node/deadline.h"
#include "node/files/dataset_file.h"
#include "node/node.h"
#include "runtime/message/arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RECORDS_DEFAULT = 2,
    LOOK_AGAIN_MS = 100,
    WHY_MS = 2000 /* for the chief's status, after the timeout */
};

/* A shard that is out. */
struct order {
    struct order *next; /* in the dataset's `unwatched` */
    mu_dataset *dataset;
    mu_remote_value *value;
    struct mu__dispensed dispensed;
};

struct mu_dataset {
    mu_coordinator *coordinator; /* used in calls of the program only */
    mu_node *node;               /* held: see mu__node_ref */
    uv_mutex_t saving;           /* one save at a time */
    uv_mutex_t lock;             /* guards all below */
    uv_cond_t changed;
    unsigned refs; /* of the program and of each order */
    struct mu__dispenser *dispenser;
    struct order *unwatched; /* whose future has no callback yet: no memory */
};

/* ---- life ---- */

static void dataset_free(mu_dataset *dataset)
{
    mu__dispenser_free(dataset->dispenser);
    mu__node_unref(dataset->node);
    mu__lock_destroy(&dataset->lock, &dataset->changed);
    uv_mutex_destroy(&dataset->saving);
    free(dataset);
}

static void dataset_unref(mu_dataset *dataset)
{
    bool is_last;

    uv_mutex_lock(&dataset->lock);
    is_last = --dataset->refs == 0;
    uv_mutex_unlock(&dataset->lock);
    if (is_last)
        dataset_free(dataset);
}

static int open_lock(mu_dataset *dataset)
{
    if (uv_mutex_init(&dataset->saving) != 0)
        return -MU_ENOMEM;
    if (mu__lock_init(&dataset->lock, &dataset->changed) == 0)
        return 0;
    uv_mutex_destroy(&dataset->saving);
    return -MU_ENOMEM;
}

/* Takes the dispenser, whatever is returned. */
static int dataset_new(mu_coordinator *coordinator, struct mu__dispenser *dispenser,
                       mu_error *error, mu_dataset **ret_dataset)
{
    mu_dataset *dataset = calloc(1, sizeof *dataset);

    if (dataset == NULL || open_lock(dataset) != 0) {
        free(dataset);
        mu__dispenser_free(dispenser);
        return mu_error_set(error, -MU_ENOMEM, "no memory for a dataset");
    }
    dataset->coordinator = coordinator;
    dataset->node = coordinator->node;
    dataset->refs = 1;
    dataset->dispenser = dispenser;
    mu__node_ref(dataset->node);
    *ret_dataset = dataset;
    return 0;
}

void mu_dataset_options_init_sized(mu_dataset_options *options, size_t size)
{
    const mu_dataset_options defaults = {.records = RECORDS_DEFAULT};

    mu__options_init(options, size, &defaults, sizeof defaults);
}

int mu_dataset_open(mu_coordinator *coordinator, const mu_dataset_options *options,
                    mu_error *ret_error, mu_dataset **ret_dataset)
{
    MU__REQUIRE(ret_error, coordinator, options, ret_dataset);

    struct mu__dispenser *dispenser;
    mu_dataset_options o;
    int rv = MU__OPTIONS_READ(mu_dataset_options, options, ret_error, &o);

    if (rv != 0)
        return rv;
    rv = mu__dispenser_new(
        &(struct mu__dispenser_options){
            .shards = o.shards, .epochs = o.epochs, .records = o.records, .seed = o.seed},
        ret_error, &dispenser);
    return rv != 0 ? rv : dataset_new(coordinator, dispenser, ret_error, ret_dataset);
}

/* ---- orders ---- */

static struct order *order_new(mu_dataset *dataset)
{
    struct order *order = calloc(1, sizeof *order);

    if (order != NULL)
        order->dataset = dataset;
    return order;
}

/* The order's shard is consumed, or with NULL given back. */
static void order_end(struct order *order, const struct mu__consumer *consumer)
{
    mu_dataset *dataset = order->dataset;

    uv_mutex_lock(&dataset->lock);
    if (consumer != NULL)
        (void)mu__dispenser_consume(dataset->dispenser, &order->dispensed, consumer);
    else
        (void)mu__dispenser_give_back(dataset->dispenser, &order->dispensed);
    uv_cond_broadcast(&dataset->changed);
    uv_mutex_unlock(&dataset->lock);
    mu_remote_value_free(order->value);
    free(order);
    dataset_unref(dataset);
}

/* Also when the node is closed before the closure is resolved. */
static void on_order_resolved(mu_remote_value *value, void *user)
{
    const struct mu__consumer consumer = {
        .closure = value->closure,
        .attempt = value->attempt,
        .worker = -1,
    };
    bool consumed =
        mu_remote_value_state(value) == MU_REMOTE_READY && value->error == NULL;

    order_end(user, consumed ? &consumer : NULL);
}

/* Set the callback of the order's future. Without memory that is tried again later. */
static void watch_order(struct order *order)
{
    mu_remote_value *value = order->value;
    mu_dataset *dataset = order->dataset;
    int rv;

    /* Once it is watched, the loop may end and free it at any moment. */
    order->value = NULL;
    rv = mu_remote_value_on_ready(value, on_order_resolved, order);
    if (rv == 0) {
        mu_remote_value_free(value);
        return;
    }
    order->value = value;
    if (rv == -MU_ECLOSED) {
        order_end(order, NULL);
        return;
    }
    uv_mutex_lock(&dataset->lock);
    order->next = dataset->unwatched;
    dataset->unwatched = order;
    uv_mutex_unlock(&dataset->lock);
}

static void watch_unwatched_orders(mu_dataset *dataset)
{
    struct order *order;

    uv_mutex_lock(&dataset->lock);
    order = dataset->unwatched;
    dataset->unwatched = NULL;
    uv_mutex_unlock(&dataset->lock);
    while (order != NULL) {
        struct order *next = order->next;

        watch_order(order);
        order = next;
    }
}

void mu_dataset_close(mu_dataset *dataset)
{
    struct order *order;

    if (dataset == NULL)
        return;
    uv_mutex_lock(&dataset->lock);
    order = dataset->unwatched;
    dataset->unwatched = NULL;
    uv_mutex_unlock(&dataset->lock);
    while (order != NULL) {
        struct order *next = order->next;

        order_end(order, NULL);
        order = next;
    }
    dataset_unref(dataset);
}

/* ---- waiting ---- */

/* Until when a call may wait. */
struct limit {
    int64_t timeout_ms;
    uint64_t deadline_ns;
};

static int refuse_loop(const mu_dataset *dataset, int64_t timeout_ms, mu_error *error)
{
    if (timeout_ms == 0 || !mu__node_on_loop(dataset->node))
        return 0;
    return mu_error_set(error, -MU_EPRECONDITION,
                        "this call waits, so it must not be made on a loop's thread "
                        "(timeout 0 does not wait)");
}

/* With the lock. */
static int refuse_shards_out(const mu_dataset *dataset, int code, mu_error *error)
{
    struct mu__dispenser_counts counts;

    mu__dispenser_counts(dataset->dispenser, &counts);
    return mu_error_set(error, code,
                        "%u of the %u shards of epoch %llu are out, the first is %u",
                        (unsigned)counts.out, (unsigned)counts.shards,
                        (unsigned long long)counts.epoch,
                        (unsigned)mu__dispenser_first_out(dataset->dispenser));
}

/* With the lock, which is released while it waits. 0: look again. */
static int wait_changed(mu_dataset *dataset, const struct limit *limit, mu_error *error)
{
    uint64_t again_ns = mu__deadline_in(dataset->unwatched != NULL ? LOOK_AGAIN_MS : -1);

    if (limit->timeout_ms == 0)
        return refuse_shards_out(dataset, -MU_EAGAIN, error);
    if (mu__deadline_left_ms(limit->deadline_ns) == 0)
        return refuse_shards_out(dataset, -MU_EDEADLINE, error);
    (void)mu__deadline_wait(again_ns < limit->deadline_ns ? again_ns : limit->deadline_ns,
                            &dataset->changed, &dataset->lock);
    return 0;
}

/* Append the chief's status to the message of a timeout: which workers have what. */
static void append_chief_status(mu_dataset *dataset, mu_error *error)
{
    mu_value *status = NULL;
    char words[384];
    mu_error why;
    size_t used;

    if (error == NULL || error->code != -MU_EDEADLINE)
        return;
    if (mu_node_status(dataset->node, WHY_MS, &why, &status) == 0)
        mu__client_describe_status(status, words, sizeof words);
    else
        (void)snprintf(words, sizeof words, "%.380s", why.message);
    mu_value_free(status);
    used = strlen(error->message);
    (void)snprintf(error->message + used, sizeof error->message - used, "; %s", words);
}

/* ---- handing out ---- */

/* A shard for an order, which then holds the dataset; or the error why there is none. */
static int take_next_shard(mu_dataset *dataset, struct order *order,
                           const struct limit *limit, mu_error *error)
{
    enum mu__dispenser_outcome answer;
    int rv = 0;

    do {
        watch_unwatched_orders(dataset);
        uv_mutex_lock(&dataset->lock);
        answer = mu__dispenser_next(dataset->dispenser, &order->dispensed);
        if (answer == MU__SHARD_NONE_FREE)
            rv = wait_changed(dataset, limit, error);
        if (answer == MU__SHARD_DISPENSED)
            dataset->refs++;
        uv_mutex_unlock(&dataset->lock);
    } while (rv == 0 && answer == MU__SHARD_NONE_FREE);
    if (answer == MU__SHARD_ALL_CONSUMED)
        rv = mu_error_set(error, -MU_ERANGE, "every shard of every epoch is consumed");
    return rv;
}

static mu_value *closure_args(mu_dataset *dataset, const struct mu__dispensed *dispensed,
                              const mu_value *args)
{
    struct mu__dispenser_counts counts;
    mu_value *map = mu_value_map();
    int rv;

    if (map == NULL)
        return NULL;
    uv_mutex_lock(&dataset->lock);
    mu__dispenser_counts(dataset->dispenser, &counts);
    uv_mutex_unlock(&dataset->lock);
    rv = mu_value_set(map, "shard", mu_value_int(dispensed->shard));
    if (rv == 0)
        rv = mu_value_set(map, "shards", mu_value_int(counts.shards));
    if (rv == 0)
        rv = mu_value_set(map, "epoch", mu_value_int((int64_t)dispensed->epoch));
    if (rv == 0)
        rv =
            mu_value_set(map, "args", args == NULL ? mu_value_nil() : mu_value_ref(args));
    if (rv == 0)
        return map;
    mu_value_free(map);
    return NULL;
}

/* What a closure is scheduled with. */
struct wish {
    const char *function;
    const mu_value *args;
    const mu_closure_options *options;
};

static int schedule_order(mu_dataset *dataset, struct order *order,
                          const struct wish *wish, const struct limit *limit,
                          mu_error *error)
{
    mu_value *args = closure_args(dataset, &order->dispensed, wish->args);
    int rv;

    if (args == NULL)
        return mu_error_set(error, -MU_ENOMEM, "no memory for a closure's arguments");
    rv = mu_coordinator_schedule_with(
        dataset->coordinator, wish->function, args, wish->options,
        mu__deadline_wait_ms(limit->deadline_ns, limit->timeout_ms), error,
        &order->value);
    mu_value_free(args);
    return rv;
}

int mu_dataset_schedule(mu_dataset *dataset, const char *function, const mu_value *args,
                        const mu_closure_options *options, int64_t timeout_ms,
                        mu_error *ret_error)
{
    MU__REQUIRE(ret_error, dataset, function);

    const struct wish wish = {function, args, options};
    const struct limit limit = {timeout_ms, mu__deadline_in(timeout_ms)};
    struct order *order;
    int rv = refuse_loop(dataset, timeout_ms, ret_error);

    if (rv != 0)
        return rv;
    order = order_new(dataset);
    if (order == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a closure");
    rv = take_next_shard(dataset, order, &limit, ret_error);
    if (rv != 0) {
        if (rv == -MU_EDEADLINE)
            append_chief_status(dataset, ret_error);
        free(order);
        return rv;
    }
    rv = schedule_order(dataset, order, &wish, &limit, ret_error);
    if (rv == 0)
        watch_order(order);
    else
        order_end(order, NULL);
    return rv;
}

static uint32_t out_count(const mu_dataset *dataset)
{
    struct mu__dispenser_counts counts;

    mu__dispenser_counts(dataset->dispenser, &counts);
    return counts.out;
}

int mu_dataset_join(mu_dataset *dataset, int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, dataset);

    const struct limit limit = {timeout_ms, mu__deadline_in(timeout_ms)};
    bool is_out;
    int rv = refuse_loop(dataset, timeout_ms, ret_error);

    if (rv != 0)
        return rv;
    do {
        watch_unwatched_orders(dataset);
        uv_mutex_lock(&dataset->lock);
        is_out = out_count(dataset) > 0;
        if (is_out)
            rv = wait_changed(dataset, &limit, ret_error);
        uv_mutex_unlock(&dataset->lock);
    } while (rv == 0 && is_out);
    if (rv == -MU_EDEADLINE)
        append_chief_status(dataset, ret_error);
    return rv;
}

/* ---- the record ---- */

mu_value *mu_dataset_record(mu_dataset *dataset)
{
    MU__REQUIRE_OR(NULL, dataset);

    mu_value *value;

    uv_mutex_lock(&dataset->lock);
    value = mu__dispenser_value(dataset->dispenser);
    uv_mutex_unlock(&dataset->lock);
    return value;
}

int mu_dataset_save(mu_dataset *dataset, const char *path, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, dataset, path);

    mu_value *value;
    int rv;

    uv_mutex_lock(&dataset->saving);
    value = mu_dataset_record(dataset);
    rv = value == NULL
             ? mu_error_set(ret_error, -MU_ENOMEM, "no memory to save \"%.200s\"", path)
             : mu__dataset_file_write(path, value, ret_error);
    uv_mutex_unlock(&dataset->saving);
    mu_value_free(value);
    return rv;
}

int mu_dataset_load(mu_coordinator *coordinator, const char *path, mu_error *ret_error,
                    mu_dataset **ret_dataset)
{
    MU__REQUIRE(ret_error, coordinator, path, ret_dataset);

    struct mu__dispenser *dispenser;
    mu_error why = {0};
    mu_value *value;
    int rv = mu__dataset_file_read(path, ret_error, &value);

    if (rv != 0)
        return rv;
    rv = mu__dispenser_read(value, &why, &dispenser);
    mu_value_free(value);
    if (rv != 0)
        return mu_error_set(ret_error, rv, "\"%.200s\": %.300s", path, why.message);
    return dataset_new(coordinator, dispenser, ret_error, ret_dataset);
}
