/* The program of a client actor under test: it schedules, as the public coordinator
 * does. */
#ifndef TESTS_CLIENT_PROGRAM_H
#define TESTS_CLIENT_PROGRAM_H

#include "tests/actors/client/client_world.h"

/* ---- The program ---- */

static inline void home_ref(struct mu__future_owner *home)
{
    ((struct fixture *)(void *)home->node)->holdings++;
}

static inline void home_unref(struct mu__future_owner *home)
{
    ((struct fixture *)(void *)home->node)->holdings--;
}

static inline void home_give_back(struct mu__future_owner *home, struct mu__held *held)
{
    struct fixture *f = (struct fixture *)(void *)home->node;
    struct mu__msg *msg = mu__msg_heap(MU__RELEASE_HELD, sizeof(struct mu__release_held));

    f->given_back++;
    ((struct mu__release_held *)mu__body(msg))->held = held;
    msg->to = (mu__pid){MU__NODE_SELF, MU__CLIENT};
    assert_int_equal(mu__kernel_deliver(f->kernel, msg), 0);
}

static inline void completed(struct mu__call *call)
{
    (*(unsigned *)call->owner)++;
}

static inline void post(struct fixture *f, struct mu__client_call *call)
{
    struct mu__msg *msg = mu__msg_heap(MU__CALL, sizeof(struct mu__call_msg));

    call->call.complete = completed;
    call->call.owner = &f->completed;
    ((struct mu__call_msg *)mu__body(msg))->call = call;
    deliver(f, msg, 0);
}

static inline struct mu__client_call ask(struct fixture *f, int operation)
{
    struct mu__client_call call = {
        .call.operation = operation, .call.timeout_ms = -1, .session = &f->session};
    unsigned before = f->completed;

    post(f, &call);
    assert_int_equal(f->completed, before + 1);
    return call;
}

static inline int setup(void **state)
{
    static struct fixture fixture;
    const struct mu__client_config config = {true, 1024, "the chief", 0};
    struct fixture *f = &fixture;

    *f = (struct fixture){.world = {&world_ops}, .wake_ms = UINT64_MAX};
    f->home = (struct mu__future_owner){(mu_node *)(void *)f, home_ref, home_unref,
                                        home_give_back};
    probed = f;
    assert_int_equal(mu__kernel_new(&f->world, &mu__messages, &f->kernel), 0);
    assert_int_equal(mu__spawn(f->kernel, &probe, MU__SUPERVISOR, NULL, NULL), 0);
    assert_int_equal(mu__spawn(f->kernel, &mu__client, MU__CLIENT, &config, NULL), 0);
    (void)ask(f, MU__CLIENT_OPEN);
    allow(f, 1, 1024, 1 << 30);
    *state = f;
    return 0;
}

/* Nothing is left over. */
static inline int teardown(void **state)
{
    struct fixture *f = *state;
    struct mu__error_entry *entry = atomic_load(&f->session.errors);

    run(f);
    mu__kernel_free(f->kernel);
    for (size_t i = 0; i < f->heard_count; i++)
        mu_value_free(f->heard[i].args);
    while (entry != NULL) {
        struct mu__error_entry *next = entry->next;

        free(entry);
        entry = next;
    }
    return f->holdings == 0 ? 0 : -1;
}

/* A closure without references. Takes args. */
static inline mu_remote_value *schedule(struct fixture *f)
{
    mu_remote_value *future = mu__future_new(&f->home);
    struct mu__msg *msg = mu__msg_heap(MU__SUBMIT, sizeof(struct mu__submit));
    struct mu__submit *body = mu__body(msg);

    body->future = future;
    body->function = mu__view_str("f");
    (void)atomic_fetch_add(&f->session.scheduled, 1);
    deliver(f, msg, 0);
    return future;
}

/* One with references, as the public coordinator makes it. Takes args. */
static inline mu_remote_value *schedule_pending(struct fixture *f, mu_value *args,
                                                uint64_t deadline_ms)
{
    mu_remote_value *future = mu__future_new(&f->home);
    struct mu__msg *msg =
        mu__msg_heap(MU__SCHEDULE_PENDING, sizeof(struct mu__schedule_pending));
    struct mu__references references = {0};
    struct mu__pending_closure *closure;
    struct mu__schedule *body;

    assert_int_equal(mu__references_collect(args, &references), 0);
    closure = mu__pending_new(references.held, (uint32_t)references.count, args);
    assert_non_null(closure);
    closure->msg =
        mu__msg_heap(MU__SUBMIT, sizeof(struct mu__submit) + 8 * references.count);
    body = mu__body(closure->msg);
    body->function = mu__view_str("g");
    body->deadline_ms = deadline_ms;
    closure->numbers = (uint8_t *)body + sizeof(struct mu__submit);
    closure->future = future;
    mu__references_done(&references);
    mu_value_free(args);
    ((struct mu__schedule_pending *)mu__body(msg))->pending = closure;
    (void)atomic_fetch_add(&f->session.scheduled, 1);
    deliver(f, msg, 0);
    return future;
}

/* One with references to per-worker values alone, as the public coordinator makes it.
 * Takes args. */
static inline mu_remote_value *schedule_holds(struct fixture *f, mu_value *args)
{
    mu_remote_value *future = mu__future_new(&f->home);
    struct mu__references references = {0};
    struct mu__schedule *body;
    struct mu__msg *msg;

    assert_int_equal(mu__references_collect(args, &references), 0);
    assert_true(mu__holds_suffice(&references));
    msg = mu__msg_heap(MU__SUBMIT, sizeof(struct mu__submit) + 8 * references.count);
    body = mu__body(msg);
    ((struct mu__submit *)mu__body(msg))->future = future;
    body->function = mu__view_str("h");
    msg->backing = mu__pack_value(args, &body->args);
    mu__holds_take(body, (uint8_t *)body + sizeof(struct mu__submit), &references);
    mu__references_done(&references);
    mu_value_free(args);
    (void)atomic_fetch_add(&f->session.scheduled, 1);
    deliver(f, msg, 0);
    return future;
}

/* One that the chief has made in its present life. */
static inline mu_per_worker *per_worker_at(struct fixture *f, uint64_t number)
{
    mu_per_worker *per_worker = mu__per_worker_new(&f->home);

    per_worker->held.number = MU__PER_WORKER_BIT | number;
    per_worker->held.chief_epoch = 0;
    return per_worker;
}

/* References to as many of them. Lets go of them. */
static inline mu_value *references_to(mu_per_worker **per_workers, size_t count)
{
    mu_value *list = mu_value_list();

    for (size_t i = 0; i < count; i++) {
        (void)mu_value_append(list, mu__reference_to(&per_workers[i]->held));
        mu__held_unref(&per_workers[i]->held);
    }
    return list;
}

static inline mu_value *pair(mu_remote_value *a, mu_remote_value *b)
{
    mu_value *list = mu_value_list();
    mu_value *map = mu_value_map();

    assert_int_equal(mu_value_append(list, mu_value_remote(a)), 0);
    assert_int_equal(mu_value_set(map, "deep", mu_value_remote(b)), 0);
    assert_int_equal(mu_value_append(list, map), 0);
    return list;
}

static inline const struct heard *last(const struct fixture *f)
{
    return &f->heard[f->heard_count - 1];
}

static inline uint64_t count(const atomic_uint_fast64_t *counter)
{
    return atomic_load(counter);
}

static inline int64_t int_at(const mu_value *value)
{
    int64_t number = -1;

    (void)mu_value_get_int(value, &number);
    return number;
}

#define FREE(...) free_all((mu_remote_value *[]){__VA_ARGS__, NULL})

static inline void free_all(mu_remote_value **values)
{
    for (; *values != NULL; values++)
        mu_remote_value_free(*values);
}

static inline void cancel(struct fixture *f, mu_remote_value *future)
{
    struct mu__msg *msg =
        mu__msg_heap(MU__CANCEL_FUTURE, sizeof(struct mu__cancel_future));

    mu__held_ref(&future->held);
    ((struct mu__cancel_future *)mu__body(msg))->future = future;
    deliver(f, msg, 0);
}

#endif
