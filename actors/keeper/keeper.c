#include "actors/keeper/keeper.h"

#include "actors/keep.h"
#include "actors/keeper/keeper_file.h"
#include "actors/packing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct keeper_state {
    struct keeper_file file;
    const char *path;
    struct kept_actors actors;
    struct kept_actor *touched; /* they get an answer when the file is flushed */
    struct mu__list reviewed;   /* whether they have records is asked one by one */
    struct mu__list full;       /* they were told that there is no room */
    bool is_full;
    bool is_dirty;      /* something was not flushed */
    bool is_failing;    /* the file could not be read or written, */
    uint64_t timer;     /* and is tried again then, or goes on; 0: none */
    bool is_review_due; /* once the file is read */
};

/* What it hears. */
static void on_keep_fence(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_keep_item(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_keep_review(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_keep_drop(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_keeper_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

static const struct mu__handler handlers[] = {
    {MU__KEEP_FENCE, on_keep_fence},   {MU__KEEP_ITEM, on_keep_item},
    {MU__KEEP_REVIEW, on_keep_review}, {MU__KEEP_DROP, on_keep_drop},
    {MU__TIMER, on_keeper_timer},
};

/* ---- answers ---- */

static void refuse_to_keep(struct mu__ctx *ctx, mu__pid to, struct mu__view name,
                           uint64_t epoch, uint64_t number, const mu_error *error)
{
    const struct mu__kept body = {
        .name = name,
        .epoch = epoch,
        .number = number,
        .code = (uint32_t)-error->code,
        .message = mu__view_str(error->message),
    };

    (void)mu__send_body(ctx, to, MU__KEPT, &body, sizeof body);
}

static void note_reported(struct keeper_state *keeper, struct kept_actor *actor,
                          bool is_full)
{
    if (is_full && !actor->is_reported_full)
        mu__list_append(&keeper->full, &actor->full);
    else if (!is_full && actor->is_reported_full)
        mu__list_remove(&keeper->full, &actor->full);
    actor->is_reported_full = is_full;
}

/* False: out of memory. */
static bool answer_kept(struct mu__ctx *ctx, struct keeper_state *keeper,
                        struct kept_actor *actor)
{
    const struct mu__kept body = {.name = actor->named.text,
                                  .epoch = actor->epoch,
                                  .number = actor->flushed,
                                  .is_full = keeper->is_full};

    if (mu__send_body(ctx, actor->pid, MU__KEPT, &body, sizeof body) == -MU_ENOMEM)
        return false;
    note_reported(keeper, actor, keeper->is_full);
    return true;
}

static void review_room(struct mu__ctx *ctx, struct keeper_state *keeper)
{
    bool was_full = keeper->is_full;

    keeper->is_full = keeper->actors.bytes >= keeper->actors.bytes_max;
    if (keeper->is_full && !was_full)
        mu__log(ctx, MU__LOG_WARN,
                "%s: %" PRIu64 " bytes are kept of %" PRIu32
                " actors, which is all there may be: turns that record fail until some "
                "are stopped",
                keeper->path, keeper->actors.bytes, keeper->actors.count);
}

static void report_room(struct mu__ctx *ctx, struct keeper_state *keeper)
{
    while (!keeper->is_full && !mu__list_is_empty(&keeper->full) &&
           answer_kept(ctx, keeper,
                       MU__LIST_ENTRY(keeper->full.first, struct kept_actor, full))) {
    }
}

static void touch(struct keeper_state *keeper, struct kept_actor *actor)
{
    if (actor->is_touched)
        return;
    actor->is_touched = true;
    actor->next_touched = keeper->touched;
    keeper->touched = actor;
}

static void untouch(struct keeper_state *keeper, const struct kept_actor *actor)
{
    struct kept_actor **at = &keeper->touched;

    while (*at != NULL && *at != actor)
        at = &(*at)->next_touched;
    if (*at != NULL)
        *at = actor->next_touched;
}

struct loading {
    struct mu__ctx *ctx;
    const struct kept_actor *actor;
    uint64_t count;
};

static int send_kept_item(void *owner, struct mu__msg *msg)
{
    struct loading *loading = owner;
    struct mu__keep_item body = *(struct mu__keep_item *)mu__body(msg);

    body.epoch = loading->actor->epoch;
    body.number = ++loading->count;
    return mu__send_backed(loading->ctx, loading->actor->pid, MU__KEPT_ITEM, &body,
                           sizeof body, msg->backing);
}

/* A link that breaks meanwhile makes the office ask again. */
static void send_all_kept(struct mu__ctx *ctx, struct kept_actor *actor)
{
    struct loading loading = {ctx, actor, 0};
    struct mu__keep_item end = {.name = actor->named.text, .epoch = actor->epoch};

    actor->is_loading = false;
    if (mu__kept_actor_each(actor, send_kept_item, &loading) != 0)
        return;
    end.number = loading.count;
    (void)mu__send_body(ctx, actor->pid, MU__KEPT_ITEM, &end, sizeof end);
}

/* ---- the file ---- */

static void arm_keeper(struct mu__ctx *ctx, struct keeper_state *keeper,
                       uint64_t delay_ms)
{
    if (keeper->timer == 0)
        keeper->timer = mu__timer_set(ctx, delay_ms, 0);
}

static void note_failing(struct mu__ctx *ctx, struct keeper_state *keeper,
                         const mu_error *error)
{
    if (!keeper->is_failing)
        mu__log(ctx, MU__LOG_ERROR,
                "the keeper's file cannot be used: %s; kept actors wait until it can",
                error->message);
    keeper->is_failing = true;
    arm_keeper(ctx, keeper, MU__KEEPER_RETRY_MS);
}

static void note_written(struct mu__ctx *ctx, struct keeper_state *keeper)
{
    if (keeper->is_failing)
        mu__log(ctx, MU__LOG_INFO, "%s: it can be used again", keeper->path);
    keeper->is_failing = false;
}

static void answer_touched(struct mu__ctx *ctx, struct keeper_state *keeper)
{
    while (keeper->touched != NULL) {
        struct kept_actor *actor = keeper->touched;

        keeper->touched = actor->next_touched;
        actor->is_touched = false;
        actor->flushed = actor->last;
        if (!actor->is_loading || keeper->is_full)
            (void)answer_kept(ctx, keeper, actor);
        if (actor->is_loading) /* and from then on it takes calls */
            send_all_kept(ctx, actor);
    }
}

static void flush_keeper(struct mu__ctx *ctx, void *state)
{
    struct keeper_state *keeper = state;
    mu_error error;
    int rv = 0;

    if (mu__keeper_file_is_renewed(&keeper->file))
        arm_keeper(ctx, keeper, MU__KEEPER_STEP_MS);
    if (keeper->is_dirty)
        rv = mu__keeper_file_flush(&keeper->file, &error);
    if (rv < 0)
        note_failing(ctx, keeper, &error);
    if (rv != 0)
        return;
    if (keeper->is_dirty)
        note_written(ctx, keeper);
    keeper->is_dirty = false;
    review_room(ctx, keeper);
    answer_touched(ctx, keeper);
    report_room(ctx, keeper);
}

/* A failure is one of the file only when that lacks something. */
static void renew_file(struct mu__ctx *ctx, struct keeper_state *keeper)
{
    mu_error error;
    int rv = mu__keeper_file_renew(&keeper->file, &error);

    if (rv >= 0)
        return;
    if (keeper->file.is_behind)
        note_failing(ctx, keeper, &error);
    else
        mu__log(ctx, MU__LOG_WARN, "%s: it could not be written anew: %s", keeper->path,
                error.message);
    arm_keeper(ctx, keeper, MU__KEEPER_RETRY_MS);
}

/* While something waits to be flushed nothing is known of the room there is. */
static int reserve_kept_item(struct mu__ctx *ctx, struct keeper_state *keeper,
                             const struct mu__msg *msg, mu_error *error)
{
    int rv = mu__keeper_file_reserve(&keeper->file, msg, error);

    if (rv == 0)
        return 0;
    note_failing(ctx, keeper, error);
    return rv;
}

/* ---- records ---- */

static struct kept_actor *first_reviewed(const struct keeper_state *keeper)
{
    return MU__LIST_FIRST(&keeper->reviewed, struct kept_actor, review);
}

/* One question at a time: the service answers each, or asks for all anew. */
static void request_record(struct mu__ctx *ctx, const struct keeper_state *keeper)
{
    const struct kept_actor *actor = first_reviewed(keeper);
    struct mu__keep_check *body;
    struct mu__msg *msg =
        actor == NULL
            ? NULL
            : mu__pool_get(mu__kernel_pool(ctx->kernel), MU__KEEP_CHECK,
                           sizeof(struct mu__keep_check) + actor->named.text.size);

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->name = actor->named.text;
    (void)mu__pack_view((uint8_t *)(body + 1), &body->name);
    (void)mu__send(ctx, (mu__pid){MU__NODE_SELF, MU__COORDINATION}, msg);
}

static void review_record(struct mu__ctx *ctx, struct keeper_state *keeper,
                          struct kept_actor *actor)
{
    if (actor->is_reviewed)
        return;
    actor->is_reviewed = true;
    mu__list_append(&keeper->reviewed, &actor->review);
    if (actor == first_reviewed(keeper))
        request_record(ctx, keeper);
}

/* ---- fences ---- */

/* What comes while the file is read is sent again, as for a full disk. */
static int check_file_read(const struct keeper_state *keeper, mu_error *error)
{
    const mu_error *damage = &keeper->file.damage;

    if (keeper->file.journal != NULL)
        return 0;
    return damage->code == 0
               ? mu_error_set(error, -MU_EEXHAUSTED, "%s is being read: %u %%",
                              keeper->path, mu__keeper_file_percent(&keeper->file))
               : mu_error_set(error, damage->code, "%.400s", damage->message);
}

static int check_fence(const struct kept_actor *actor, const struct mu__keep_fence *body,
                       const char *path, mu_error *error)
{
    if (body->name.size == 0 || body->epoch == 0 || body->owner == 0)
        return mu_error_set(error, -MU_EINVALID, "a fence has no name, epoch or owner");
    if (body->is_born && (actor == NULL || actor->epoch < body->number))
        return mu_error_set(error, -MU_EDATALOSS,
                            "%s has nothing of the actor: the file was lost, or this is "
                            "another one",
                            path);
    if (actor != NULL && (body->epoch < actor->epoch ||
                          (body->epoch == actor->epoch && body->owner != actor->owner)))
        return mu_error_set(error, -MU_EPERMISSION,
                            "another life of the actor has epoch %" PRIu64
                            ", this one %" PRIu64,
                            actor->epoch, body->epoch);
    return 0;
}

/* Its item in the file; from then on it counts. */
static int begin_epoch(struct mu__ctx *ctx, struct keeper_state *keeper,
                       struct kept_actor **actor, const struct mu__msg *msg,
                       mu_error *error)
{
    struct mu__keep_fence body = *(const struct mu__keep_fence *)(const void *)msg->body;
    int rv = reserve_kept_item(ctx, keeper, msg, error);

    if (rv == 0 && *actor == NULL) {
        rv = mu__kept_actor_add(&keeper->actors, body.name, actor);
        if (rv != 0)
            return mu_error_set(error, rv, "%s has no room for another actor",
                                keeper->path);
        review_record(ctx, keeper, *actor);
    }
    if (rv != 0)
        return rv;
    if ((*actor)->epoch < body.number) { /* it is of another actor */
        mu__keeper_file_put_end(&keeper->file, *actor);
        mu__kept_actor_clear(&keeper->actors, *actor);
    }
    body.number = 0;
    mu__kept_actor_fence(&keeper->actors, *actor, &body);
    keeper->is_dirty = true;
    mu__keeper_file_put_fence(&keeper->file, *actor);
    return 0;
}

static void on_keep_fence(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__keep_fence *body = mu__body(msg);
    struct keeper_state *keeper = state;
    struct kept_actor *actor = mu__kept_actor_find(&keeper->actors, body->name);
    mu_error error;
    int rv = check_file_read(keeper, &error);

    if (rv == 0)
        rv = check_fence(actor, body, keeper->path, &error);
    if (rv == 0 && (actor == NULL || actor->epoch != body->epoch))
        rv = begin_epoch(ctx, keeper, &actor, msg, &error);
    if (rv != 0) {
        refuse_to_keep(ctx, msg->from, body->name, body->epoch, 0, &error);
        return;
    }
    actor->pid = msg->from;
    actor->is_loading = true;
    touch(keeper, actor);
}

/* ---- items ---- */

static int check_item_epoch(const struct kept_actor *actor,
                            const struct mu__keep_item *body, const char *path,
                            mu_error *error)
{
    if (actor == NULL)
        return mu_error_set(error, -MU_EDATALOSS,
                            "%s has nothing of the actor: it was stopped, the file was "
                            "lost, or this is another one",
                            path);
    if (body->epoch != actor->epoch)
        return mu_error_set(error, -MU_EPERMISSION,
                            "another life of the actor has epoch %" PRIu64
                            ", this one %" PRIu64,
                            actor->epoch, body->epoch);
    return 0;
}

static int keep_one(struct mu__ctx *ctx, struct keeper_state *keeper,
                    struct kept_actor *actor, const struct mu__msg *msg, mu_error *error)
{
    const struct mu__keep_item *body = (const void *)msg->body;
    int rv = mu__kept_actor_check(&keeper->actors, actor, body, error);

    if (rv == 0)
        rv = reserve_kept_item(ctx, keeper, msg, error);
    if (rv == 0) {
        rv = mu__kept_actor_put(&keeper->actors, actor, msg);
        if (rv != 0)
            return mu_error_set(error, rv, "%s: no memory for an item", keeper->path);
    }
    if (rv != 0)
        return rv;
    actor->last = body->number;
    keeper->is_dirty = true;
    mu__keeper_file_put_item(&keeper->file, actor, msg);
    return 0;
}

/* One behind a gap follows one that was refused: it comes again. */
static void on_keep_item(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__keep_item *body = mu__body(msg);
    struct keeper_state *keeper = state;
    struct kept_actor *actor = mu__kept_actor_find(&keeper->actors, body->name);
    mu_error error;
    int rv = check_file_read(keeper, &error);

    if (rv == 0)
        rv = check_item_epoch(actor, body, keeper->path, &error);
    if (rv == 0 && body->number > actor->last + 1)
        return;
    if (rv == 0 && body->number == actor->last + 1)
        rv = keep_one(ctx, keeper, actor, msg, &error);
    if (rv != 0) {
        refuse_to_keep(ctx, msg->from, body->name, body->epoch, body->number, &error);
        return;
    }
    actor->pid = msg->from;
    touch(keeper, actor);
}

/* ---- stopped actors ---- */

static void drop_kept_actor(struct keeper_state *keeper, struct kept_actor *actor)
{
    mu__keeper_file_put_end(&keeper->file, actor);
    keeper->is_dirty = true;
    untouch(keeper, actor);
    note_reported(keeper, actor, false);
    mu__kept_actor_remove(&keeper->actors, actor);
}

static void review_all(struct mu__ctx *ctx, struct keeper_state *keeper)
{
    request_record(ctx, keeper); /* the answer to the former question may be lost */
    for (struct kept_actor *actor =
             MU__LIST_FIRST(&keeper->actors.all, struct kept_actor, node);
         actor != NULL; actor = MU__LIST_NEXT(actor, struct kept_actor, node))
        review_record(ctx, keeper, actor);
}

static void on_keep_review(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct keeper_state *keeper = state;

    (void)msg;
    if (keeper->file.journal == NULL)
        keeper->is_review_due = true;
    else
        review_all(ctx, keeper);
}

/* Of a higher epoch it is a later actor's. */
static void on_keep_drop(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__keep_drop *body = mu__body(msg);
    struct keeper_state *keeper = state;
    struct kept_actor *actor = mu__kept_actor_find(&keeper->actors, body->name);
    bool is_requested = actor != NULL && actor == first_reviewed(keeper);

    keeper->is_review_due |= keeper->file.journal == NULL; /* it is lost */
    if (keeper->file.journal == NULL || actor == NULL)
        return;
    if (actor->is_reviewed)
        mu__list_remove(&keeper->reviewed, &actor->review);
    actor->is_reviewed = false;
    if (actor->epoch <= body->epoch)
        drop_kept_actor(keeper, actor);
    if (is_requested)
        request_record(ctx, keeper);
}

/* ---- start ---- */

/* What the service has said before could not be applied. */
static void end_keeper_reading(struct mu__ctx *ctx, struct keeper_state *keeper,
                               uint64_t cut)
{
    if (cut > 0)
        mu__log(ctx, MU__LOG_WARN, "%s: %" PRIu64 " torn bytes at its end were cut off",
                keeper->path, cut);
    note_written(ctx, keeper);
    if (keeper->is_review_due)
        review_all(ctx, keeper);
}

/* A step of it, or the first one. */
static int read_file(struct mu__ctx *ctx, struct keeper_state *keeper, mu_error *error)
{
    uint64_t cut = 0;
    int rv = keeper->file.reading == NULL
                 ? mu__keeper_file_open(&keeper->file, error, &cut)
                 : mu__keeper_file_read(&keeper->file, error, &cut);

    if (rv == MU__STORAGE_NOT_YET)
        arm_keeper(ctx, keeper, MU__KEEPER_STEP_MS);
    if (rv == 0)
        end_keeper_reading(ctx, keeper, cut);
    return rv;
}

static void go_on_reading(struct mu__ctx *ctx, struct keeper_state *keeper)
{
    mu_error error;
    int rv = read_file(ctx, keeper, &error);

    if (rv < 0 && keeper->file.damage.code == 0)
        note_failing(ctx, keeper, &error);
    else if (rv < 0)
        mu__log(ctx, MU__LOG_ERROR, "%s", error.message);
}

static void on_keeper_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct keeper_state *keeper = state;

    (void)msg;
    keeper->timer = 0;
    if (keeper->file.journal == NULL)
        go_on_reading(ctx, keeper);
    else if (mu__keeper_file_is_renewed(&keeper->file))
        renew_file(ctx, keeper);
}

static int init_keeper(struct mu__ctx *ctx, void *state, const void *arg)
{
    const struct mu__keeper_config *config = arg;
    struct keeper_state *keeper = state;
    mu_error error;
    int rv;

    keeper->path = config->storage->name;
    keeper->actors.schema = mu__kernel_schema(ctx->kernel);
    keeper->actors.pool = mu__kernel_pool(ctx->kernel);
    keeper->actors.bytes_max = config->bytes_max;
    keeper->actors.by_name.secret = mu__secret(ctx);
    keeper->file.storage = config->storage;
    keeper->file.actors = &keeper->actors;
    keeper->file.rewrite_bytes = config->rewrite_bytes;
    rv = read_file(ctx, keeper, &error);
    if (rv >= 0)
        return 0;
    mu__log(ctx, MU__LOG_ERROR, "%s", error.message);
    if (config->error != NULL)
        *config->error = error;
    return rv;
}

static void end_keeper(struct mu__ctx *ctx, void *state)
{
    struct keeper_state *keeper = state;

    (void)ctx;
    mu__keeper_file_close(&keeper->file);
    mu__kept_actors_done(&keeper->actors);
}

const struct mu__behavior mu__keeper = {
    .name = "keeper",
    .state_size = sizeof(struct keeper_state),
    .mailbox_max = MU__MAILBOX_BY_SENDERS,
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init_keeper,
    .after_batch = flush_keeper,
    .done = end_keeper,
};
