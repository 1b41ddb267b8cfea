/* A deal: the dealer behind a lock, and what becomes of each shard that is out.
 *
 * A shard that is out belongs to an order, which is what the future of its closure calls
 * when it is resolved, on the loop. Orders hold the deal, so it may be closed before
 * them. The lock is never held while the coordinator or a future is called: either may
 * call back at once. */
#include "muster/deal.h"

#include "actors/client/dealer.h"
#include "actors/client/future.h"
#include "api/coordinator.h"
#include "node/deal_file.h"
#include "node/node.h"
#include "runtime/message/arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RECORDS_DEFAULT = 2,
    MS_NS = 1000000,
    LOOK_AGAIN_MS = 100,
    WHY_MS = 2000           /* for the chief to say what runs, once the limit is over */
};

/* A shard that is out. */
struct order {
    struct order *next;         /* among those that nobody calls */
    mu_deal *deal;
    mu_remote_value *value;
    struct mu__dealt dealt;
};

struct mu_deal {
    mu_coordinator *coordinator;    /* used in calls of the program only */
    mu_node *node;                  /* held: see mu__node_ref */
    uv_mutex_t saving;              /* one save at a time */
    uv_mutex_t lock;                /* guards all below */
    uv_cond_t changed;
    unsigned refs;                  /* of the program and of each order */
    struct mu__dealer *dealer;
    struct order *unwatched;        /* there was no memory to be called */
};

/* ---- life ---- */

static void deal_free(mu_deal *deal)
{
    mu__dealer_free(deal->dealer);
    mu__node_unref(deal->node);
    uv_cond_destroy(&deal->changed);
    uv_mutex_destroy(&deal->lock);
    uv_mutex_destroy(&deal->saving);
    free(deal);
}

static void deal_unref(mu_deal *deal)
{
    bool is_last;

    uv_mutex_lock(&deal->lock);
    is_last = --deal->refs == 0;
    uv_mutex_unlock(&deal->lock);
    if (is_last)
        deal_free(deal);
}

static int open_lock(mu_deal *deal)
{
    if (uv_mutex_init(&deal->saving) != 0)
        return -MU_ENOMEM;
    if (uv_mutex_init(&deal->lock) != 0)
        goto err_saving;
    if (uv_cond_init(&deal->changed) != 0)
        goto err_lock;
    return 0;

err_lock:
    uv_mutex_destroy(&deal->lock);
err_saving:
    uv_mutex_destroy(&deal->saving);
    return -MU_ENOMEM;
}

/* Takes the dealer, whatever is returned. */
static int deal_new(mu_coordinator *coordinator, struct mu__dealer *dealer,
                    mu_error *error, mu_deal **ret_deal)
{
    mu_deal *deal = calloc(1, sizeof *deal);

    if (deal == NULL || open_lock(deal) != 0) {
        free(deal);
        mu__dealer_free(dealer);
        return mu_error_set(error, -MU_ENOMEM, "no memory for a deal");
    }
    deal->coordinator = coordinator;
    deal->node = coordinator->node;
    deal->refs = 1;
    deal->dealer = dealer;
    mu__node_ref(deal->node);
    *ret_deal = deal;
    return 0;
}

void mu_deal_options_init(mu_deal_options *options)
{
    MU__REQUIRE_OR(, options);
    *options = (mu_deal_options){.records = RECORDS_DEFAULT};
}

int mu_deal_open(mu_coordinator *coordinator, const mu_deal_options *options,
                 mu_error *ret_error, mu_deal **ret_deal)
{
    MU__REQUIRE(ret_error, coordinator, options, ret_deal);

    const struct mu__dealer_options dealing = {
        .shards = options->shards,
        .epochs = options->epochs,
        .records = options->records,
        .seed = options->seed,
    };
    struct mu__dealer *dealer;
    int rv = mu__dealer_new(&dealing, ret_error, &dealer);

    return rv != 0 ? rv : deal_new(coordinator, dealer, ret_error, ret_deal);
}

/* ---- orders ---- */

static struct order *order_new(mu_deal *deal)
{
    struct order *order = calloc(1, sizeof *order);

    if (order != NULL)
        order->deal = deal;
    return order;
}

/* Its shard is consumed, or comes back. */
static void order_end(struct order *order, const struct mu__consumer *consumer)
{
    mu_deal *deal = order->deal;

    uv_mutex_lock(&deal->lock);
    if (consumer != NULL)
        (void)mu__dealer_consume(deal->dealer, &order->dealt, consumer);
    else
        (void)mu__dealer_give_back(deal->dealer, &order->dealt);
    uv_cond_broadcast(&deal->changed);
    uv_mutex_unlock(&deal->lock);
    mu_remote_value_free(order->value);
    free(order);
    deal_unref(deal);
}

/* Also when the node is closed before the closure is resolved. */
static void on_resolved(mu_remote_value *value, void *user)
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

/* Hear of its end. Without memory for that it is tried again later. */
static void watch(struct order *order)
{
    mu_remote_value *value = order->value;
    mu_deal *deal = order->deal;
    int rv;

    /* Once it is watched, the loop may end and free it at any moment. */
    order->value = NULL;
    rv = mu_remote_value_notify(value, on_resolved, order);
    if (rv == 0) {
        mu_remote_value_free(value);
        return;
    }
    order->value = value;
    if (rv == -MU_ECLOSED) {
        order_end(order, NULL);
        return;
    }
    uv_mutex_lock(&deal->lock);
    order->next = deal->unwatched;
    deal->unwatched = order;
    uv_mutex_unlock(&deal->lock);
}

static void watch_again(mu_deal *deal)
{
    struct order *order;

    uv_mutex_lock(&deal->lock);
    order = deal->unwatched;
    deal->unwatched = NULL;
    uv_mutex_unlock(&deal->lock);
    while (order != NULL) {
        struct order *next = order->next;

        watch(order);
        order = next;
    }
}

void mu_deal_close(mu_deal *deal)
{
    struct order *order;

    if (deal == NULL)
        return;
    uv_mutex_lock(&deal->lock);
    order = deal->unwatched;
    deal->unwatched = NULL;
    uv_mutex_unlock(&deal->lock);
    while (order != NULL) {
        struct order *next = order->next;

        order_end(order, NULL);
        order = next;
    }
    deal_unref(deal);
}

/* ---- waiting ---- */

/* Until when a call may wait. */
struct limit {
    int64_t timeout_ms;
    uint64_t end_ns;
};

static struct limit limit_from_now(int64_t timeout_ms)
{
    struct limit limit = {.timeout_ms = timeout_ms, .end_ns = UINT64_MAX};
    uint64_t now_ns = uv_hrtime();

    if (timeout_ms >= 0 && (uint64_t)timeout_ms < (UINT64_MAX - now_ns) / MS_NS)
        limit.end_ns = now_ns + (uint64_t)timeout_ms * MS_NS;
    return limit;
}

/* What is left for a call, which takes the same limits. */
static int64_t left_ms(const struct limit *limit)
{
    uint64_t now_ns = uv_hrtime();

    if (limit->timeout_ms <= 0 || limit->end_ns == UINT64_MAX)
        return limit->timeout_ms;
    return limit->end_ns <= now_ns ? 1 : (int64_t)((limit->end_ns - now_ns) / MS_NS) + 1;
}

static int refuse_loop(const mu_deal *deal, int64_t timeout_ms, mu_error *error)
{
    if (timeout_ms == 0 || !mu__node_on_loop(deal->node))
        return 0;
    return mu_error_set(error, -MU_EPRECONDITION,
                        "this call waits, so it must not be made on a loop's thread "
                        "(limit 0 does not wait)");
}

/* With the lock. */
static int refuse_out(const mu_deal *deal, int code, mu_error *error)
{
    struct mu__dealer_counts counts;

    mu__dealer_counts(deal->dealer, &counts);
    return mu_error_set(error, code,
                        "%u of the %u shards of epoch %llu are out, the first is %u",
                        (unsigned)counts.out, (unsigned)counts.shards,
                        (unsigned long long)counts.epoch,
                        (unsigned)mu__dealer_first_out(deal->dealer));
}

/* With the lock, which others may have meanwhile. 0 when it is worth to look again. */
static int wait_changed(mu_deal *deal, const struct limit *limit, mu_error *error)
{
    uint64_t now_ns = uv_hrtime();
    uint64_t wait_ns;

    if (limit->timeout_ms == 0)
        return refuse_out(deal, -MU_EAGAIN, error);
    if (now_ns >= limit->end_ns)
        return refuse_out(deal, -MU_EDEADLINE, error);
    wait_ns = limit->end_ns - now_ns;
    if (deal->unwatched != NULL && wait_ns > (uint64_t)LOOK_AGAIN_MS * MS_NS)
        wait_ns = (uint64_t)LOOK_AGAIN_MS * MS_NS;
    if (limit->end_ns == UINT64_MAX && deal->unwatched == NULL)
        uv_cond_wait(&deal->changed, &deal->lock);
    else
        (void)uv_cond_timedwait(&deal->changed, &deal->lock, wait_ns);
    return 0;
}

/* Who has what is out, behind the words of a limit that has passed. */
static void add_why(mu_deal *deal, mu_error *error)
{
    mu_value *status = NULL;
    char words[384];
    mu_error why;
    size_t used;

    if (error == NULL || error->code != -MU_EDEADLINE)
        return;
    if (mu_node_status(deal->node, WHY_MS, &why, &status) == 0)
        mu__client_describe_status(status, words, sizeof words);
    else
        (void)snprintf(words, sizeof words, "%.380s", why.message);
    mu_value_free(status);
    used = strlen(error->message);
    (void)snprintf(error->message + used, sizeof error->message - used, "; %s", words);
}

/* ---- dealing ---- */

/* A shard for an order, which then holds the deal; or why there is none. */
static int take_shard(mu_deal *deal, struct order *order, const struct limit *limit,
                      mu_error *error)
{
    enum mu__dealer_answer answer;
    int rv = 0;

    do {
        watch_again(deal);
        uv_mutex_lock(&deal->lock);
        answer = mu__dealer_deal(deal->dealer, &order->dealt);
        if (answer == MU__DEALER_NONE_FREE)
            rv = wait_changed(deal, limit, error);
        if (answer == MU__DEALER_DEALT)
            deal->refs++;
        uv_mutex_unlock(&deal->lock);
    } while (rv == 0 && answer == MU__DEALER_NONE_FREE);
    if (answer == MU__DEALER_OVER)
        rv = mu_error_set(error, -MU_ERANGE,
                          "every shard of every epoch is consumed");
    return rv;
}

static mu_value *closure_args(mu_deal *deal, const struct mu__dealt *dealt,
                              const mu_value *args)
{
    struct mu__dealer_counts counts;
    mu_value *map = mu_value_map();
    int rv;

    if (map == NULL)
        return NULL;
    uv_mutex_lock(&deal->lock);
    mu__dealer_counts(deal->dealer, &counts);
    uv_mutex_unlock(&deal->lock);
    rv = mu_value_set(map, "shard", mu_value_int(dealt->shard));
    if (rv == 0)
        rv = mu_value_set(map, "shards", mu_value_int(counts.shards));
    if (rv == 0)
        rv = mu_value_set(map, "epoch", mu_value_int((int64_t)dealt->epoch));
    if (rv == 0)
        rv = mu_value_set(map, "args",
                          args == NULL ? mu_value_nil() : mu_value_ref(args));
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

static int schedule_order(mu_deal *deal, struct order *order, const struct wish *wish,
                          const struct limit *limit, mu_error *error)
{
    mu_value *args = closure_args(deal, &order->dealt, wish->args);
    int rv;

    if (args == NULL)
        return mu_error_set(error, -MU_ENOMEM, "no memory for a closure's arguments");
    rv = mu_coordinator_schedule_with(deal->coordinator, wish->function, args,
                                      wish->options, left_ms(limit), error,
                                      &order->value);
    mu_value_free(args);
    return rv;
}

int mu_deal_schedule(mu_deal *deal, const char *function, const mu_value *args,
                     const mu_closure_options *options, int64_t timeout_ms,
                     mu_error *ret_error)
{
    MU__REQUIRE(ret_error, deal, function);

    const struct wish wish = {function, args, options};
    const struct limit limit = limit_from_now(timeout_ms);
    struct order *order;
    int rv = refuse_loop(deal, timeout_ms, ret_error);

    if (rv != 0)
        return rv;
    order = order_new(deal);
    if (order == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a closure");
    rv = take_shard(deal, order, &limit, ret_error);
    if (rv != 0) {
        if (rv == -MU_EDEADLINE)
            add_why(deal, ret_error);
        free(order);
        return rv;
    }
    rv = schedule_order(deal, order, &wish, &limit, ret_error);
    if (rv == 0)
        watch(order);
    else
        order_end(order, NULL);
    return rv;
}

static uint32_t out_count(const mu_deal *deal)
{
    struct mu__dealer_counts counts;

    mu__dealer_counts(deal->dealer, &counts);
    return counts.out;
}

int mu_deal_join(mu_deal *deal, int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, deal);

    const struct limit limit = limit_from_now(timeout_ms);
    bool is_out;
    int rv = refuse_loop(deal, timeout_ms, ret_error);

    if (rv != 0)
        return rv;
    do {
        watch_again(deal);
        uv_mutex_lock(&deal->lock);
        is_out = out_count(deal) > 0;
        if (is_out)
            rv = wait_changed(deal, &limit, ret_error);
        uv_mutex_unlock(&deal->lock);
    } while (rv == 0 && is_out);
    if (rv == -MU_EDEADLINE)
        add_why(deal, ret_error);
    return rv;
}

/* ---- the record ---- */

mu_value *mu_deal_record(mu_deal *deal)
{
    MU__REQUIRE_OR(NULL, deal);

    mu_value *value;

    uv_mutex_lock(&deal->lock);
    value = mu__dealer_value(deal->dealer);
    uv_mutex_unlock(&deal->lock);
    return value;
}

int mu_deal_save(mu_deal *deal, const char *path, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, deal, path);

    mu_value *value;
    int rv;

    uv_mutex_lock(&deal->saving);
    value = mu_deal_record(deal);
    rv = value == NULL
             ? mu_error_set(ret_error, -MU_ENOMEM, "no memory to save \"%.200s\"", path)
             : mu__deal_file_write(path, value, ret_error);
    uv_mutex_unlock(&deal->saving);
    mu_value_free(value);
    return rv;
}

int mu_deal_load(mu_coordinator *coordinator, const char *path, mu_error *ret_error,
                 mu_deal **ret_deal)
{
    MU__REQUIRE(ret_error, coordinator, path, ret_deal);

    struct mu__dealer *dealer;
    mu_error why = {0};
    mu_value *value;
    int rv = mu__deal_file_read(path, ret_error, &value);

    if (rv != 0)
        return rv;
    rv = mu__dealer_read(value, &why, &dealer);
    mu_value_free(value);
    if (rv != 0)
        return mu_error_set(ret_error, rv, "\"%.200s\": %.300s", path, why.message);
    return deal_new(coordinator, dealer, ret_error, ret_deal);
}
