/* Batches and the runs that they belong to: lists, timers, servers, the end of a run. */
#include "actors/effects/internal.h"
#include "actors/packing.h"
#include "actors/variables/variables.h"
#include "actors/worker/function_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Lists ---- */

void mu__effects_take_out(struct write_batch *batch)
{
    if (batch->in != NULL)
        mu__list_remove(batch->in, &batch->node);
    batch->in = NULL;
}

void mu__effects_put_last(struct mu__list *list, struct write_batch *batch)
{
    mu__effects_take_out(batch);
    batch->in = list;
    mu__list_append(list, &batch->node);
}

void mu__effects_put_first(struct mu__list *list, struct write_batch *batch)
{
    mu__effects_take_out(batch);
    batch->in = list;
    mu__list_prepend(list, &batch->node);
}

struct mu__list *mu__effects_waiting_of(const struct effects *e,
                                        const struct write_batch *batch)
{
    return &e->servers[batch->server]->waiting[batch->size];
}

/* ---- Timers ---- */

void mu__effects_arm(struct mu__ctx *ctx, struct effects *e, enum effects_timer timer,
                     uint64_t delay_ms)
{
    if (e->timers[timer] == 0)
        e->timers[timer] = mu__timer_set(ctx, delay_ms, (uint64_t)timer);
}

void mu__effects_arm_at(struct mu__ctx *ctx, struct effects *e, enum effects_timer timer,
                        uint64_t due_ms)
{
    uint64_t now_ms = mu__now_ms(ctx);

    mu__effects_arm(ctx, e, timer, due_ms > now_ms ? due_ms - now_ms : 0);
}

/* ---- Servers ---- */

static struct effect_server *server_new(struct mu__ctx *ctx)
{
    struct effect_server *server = calloc(1, sizeof *server);

    if (server != NULL)
        server->down_ms = mu__now_ms(ctx);
    return server;
}

int mu__effects_need_servers(struct mu__ctx *ctx, struct effects *e, uint32_t index)
{
    struct effect_server **servers;

    if (index < e->servers_count)
        return 0;
    if (index >= MU__SERVERS_MAX)
        return -MU_ERANGE;
    servers = realloc(e->servers, ((size_t)index + 1) * sizeof *servers);
    if (servers == NULL)
        return -MU_ENOMEM;
    e->servers = servers;
    while (e->servers_count <= index) {
        servers[e->servers_count] = server_new(ctx);
        if (servers[e->servers_count] == NULL)
            return -MU_ENOMEM;
        e->servers_count++;
    }
    return 0;
}

mu__pid mu__effects_pid_of(const struct effects *e, uint32_t server)
{
    return (mu__pid){e->servers[server]->node, MU__PS};
}

static void task_text(uint32_t server, char *out, size_t size)
{
    (void)snprintf(out, size, "/job:ps/task:%" PRIu32, server);
}

/* "/job:ps/task:1 (tcp://host:port)" */
static void server_text(const struct effects *e, uint32_t server, char *out, size_t size)
{
    const char *address = e->servers[server]->address;

    if (address == NULL)
        task_text(server, out, size);
    else
        (void)snprintf(out, size, "/job:ps/task:%" PRIu32 " (%s)", server, address);
}

/* ---- Batches ---- */

static int add_slot(struct effects *e, struct write_batch *batch)
{
    if (e->slots_count == UINT32_C(1) << SLOT_BITS)
        return -MU_EEXHAUSTED;
    if (!mu__grow_for_one((void **)&e->slots, &e->slots_capacity, e->slots_count,
                          sizeof *e->slots))
        return -MU_ENOMEM;
    batch->slot = e->slots_count;
    e->slots[e->slots_count++] = batch;
    return 0;
}

int mu__effects_batch_new(struct effects *e, struct write_batch **ret_batch)
{
    struct write_batch *batch = mu__effects_first(&e->spare_batches);

    if (batch != NULL) {
        uint32_t slot = batch->slot;

        (void)mu__list_pop(&e->spare_batches);
        *batch = (struct write_batch){.slot = slot};
    } else {
        int rv;

        batch = calloc(1, sizeof *batch);
        if (batch == NULL)
            return -MU_ENOMEM;
        rv = add_slot(e, batch);
        if (rv != 0) {
            free(batch);
            return rv;
        }
    }
    *ret_batch = batch;
    return 0;
}

void mu__effects_end_flight(struct effects *e, struct write_batch *batch)
{
    e->servers[batch->server]->under_way[batch->size] -= batch->sent - batch->reported;
    batch->reported = batch->sent;
    batch->token = 0;
}

void mu__effects_batch_free(struct effects *e, struct write_batch *batch)
{
    mu__effects_end_flight(e, batch);
    mu__effects_take_out(batch);
    batch->sending = NULL;
    mu__list_prepend(&e->spare_batches, &batch->node);
}

void mu__effects_rewind_batch(struct effects *e, struct write_batch *batch)
{
    mu__effects_end_flight(e, batch);
    batch->at = batch->first;
    batch->offset = 0;
    batch->writes_left = batch->writes_count;
    batch->pieces = 0;
    batch->sent = 0;
    batch->reported = 0;
}

struct write_batch *mu__effects_find_batch(const struct effects *e,
                                           const struct mu__msg *msg, uint64_t token)
{
    uint64_t slot = token & ((UINT64_C(1) << SLOT_BITS) - 1);
    struct write_batch *batch = slot < e->slots_count ? e->slots[slot] : NULL;

    if (token == 0 || batch == NULL || batch->token != token ||
        !mu__pid_equal(mu__effects_pid_of(e, batch->server), msg->from))
        return NULL;
    return batch;
}

/* ---- Runs ---- */

struct sending *mu__effects_sending_new(struct effects *e)
{
    struct sending *sending = MU__LIST_FIRST(&e->spare_sendings, struct sending, node);

    if (sending == NULL)
        return calloc(1, sizeof *sending);
    (void)mu__list_pop(&e->spare_sendings);
    *sending = (struct sending){.run = NULL};
    return sending;
}

void mu__effects_sending_free(struct effects *e, struct sending *sending)
{
    sending->answer = NULL;
    mu__list_prepend(&e->spare_sendings, &sending->node);
}

void mu__effects_answer(struct mu__ctx *ctx, mu__pid to, struct mu__msg *msg)
{
    if (mu__send(ctx, to, msg) != 0)
        mu__log(ctx, MU__LOG_ERROR, "the worker does not hear that a run's writes ended");
}

/* A run has ended: its writes were applied, or it has failed and has no batches any
 * more. */
static void finish(struct mu__ctx *ctx, struct effects *e, struct sending *sending)
{
    mu__list_remove(&e->sendings, &sending->node);
    mu__effects_answer(ctx, sending->requester, sending->answer);
    mu__effects_sending_free(e, sending);
}

/* An abandoned batch that was begun stays where it is until its server has been told, or
 * has answered. A batch in no list was answered. */
static void leave_batch(struct mu__ctx *ctx, struct effects *e, struct write_batch *batch)
{
    struct effect_server *server = e->servers[batch->server];

    batch->sending = NULL;
    if (batch->reopening > 0)
        mu__effects_forget_reopenings(e, batch);
    if (batch->in == &server->active && batch->pieces > 0)
        mu__effects_arm(ctx, e, RETRY, 0);
    else if (batch->in != &server->flying)
        mu__effects_batch_free(e, batch);
}

void mu__effects_fail_with(struct mu__ctx *ctx, struct effects *e,
                           struct write_batch *batch, const mu_error *error)
{
    struct sending *sending = batch->sending;
    struct mu_run *run = sending->run;

    run->code = error->code;
    if (run->failure == NULL)
        run->failure = malloc(sizeof *run->failure);
    if (run->failure != NULL) {
        *run->failure = *error;
        run->failure->kind = MU_ERROR_SERVER;
        if (error->task[0] == '\0')
            task_text(batch->server, run->failure->task, sizeof run->failure->task);
    }
    batch = sending->batches;
    while (batch != NULL) {
        struct write_batch *sibling = batch->sibling;

        leave_batch(ctx, e, batch);
        batch = sibling;
    }
    finish(ctx, e, sending);
}

void mu__effects_fail(struct mu__ctx *ctx, struct effects *e, struct write_batch *batch,
                      int code, const char *reason)
{
    char server_name[SERVER_TEXT_MAX];
    mu_error error;

    server_text(e, batch->server, server_name, sizeof server_name);
    (void)mu_error_set(&error, code, "what the run wrote: %s %s", server_name, reason);
    mu__effects_fail_with(ctx, e, batch, &error);
}

void mu__effects_complete(struct mu__ctx *ctx, struct effects *e,
                          struct write_batch *batch)
{
    struct sending *sending = batch->sending;
    struct write_batch **link = &sending->batches;

    while (*link != batch)
        link = &(*link)->sibling;
    *link = batch->sibling;
    mu__effects_batch_free(e, batch);
    if (--sending->batches_left == 0)
        finish(ctx, e, sending);
}
