#include "actors/keeper/keeper_file.h"

#include "runtime/kernel/kernel.h"

#include <stdalign.h>
#include <string.h>

enum {
    FRAME_BYTES = 64,  /* around an item in the file, at most */
    ACTOR_BYTES = 512, /* of its fence there, at most */
    STEPS = 32,        /* so many for a file that is just large enough */
    READ_STEPS = 16,
    LATE_SHARE = 2, /* the new content may be so much of that behind */
#ifdef MUSTER_TINY
    REWRITE_BYTES_MIN = 1 << 12
#else
    REWRITE_BYTES_MIN = 16 << 20
#endif
};
#define REWRITE_BYTES_MAX (UINT64_C(3) << 30) /* of the 4 GiB that a journal may have */

/* ---- reading ---- */

static int read_fence(struct kept_actors *actors, const struct mu__keep_fence *body)
{
    struct kept_actor *actor = mu__kept_actor_find(actors, body->name);
    int rv = 0;

    if (body->owner == 0) {
        if (actor != NULL)
            mu__kept_actor_remove(actors, actor);
        return 0;
    }
    if (actor == NULL)
        rv = mu__kept_actor_add(actors, body->name, &actor);
    if (rv == 0)
        mu__kept_actor_fence(actors, actor, body);
    return rv;
}

static int read_kept_item(struct kept_actors *actors, struct mu__msg *msg)
{
    const struct mu__keep_item *body = mu__body(msg);
    struct kept_actor *actor = mu__kept_actor_find(actors, body->name);

    if (actor == NULL || body->epoch > actor->epoch)
        return -MU_EDATALOSS;
    if (body->epoch == actor->epoch && body->number > actor->last)
        actor->last = body->number;
    return mu__kept_actor_put(actors, actor, msg);
}

static int visit_kept(void *owner, struct mu__msg *msg)
{
    if (msg->kind == MU__KEEP_FENCE)
        return read_fence(owner, mu__body(msg));
    return msg->kind == MU__KEEP_ITEM ? read_kept_item(owner, msg) : -MU_EDATALOSS;
}

/* `bytes`: so many of it count. */
static void plan_rewrite(struct keeper_file *file, uint64_t bytes)
{
    file->rewrite_above = 2 * bytes;
    if (file->rewrite_above < file->rewrite_bytes)
        file->rewrite_above = file->rewrite_bytes;
    if (file->rewrite_above > REWRITE_BYTES_MAX)
        file->rewrite_above = REWRITE_BYTES_MAX;
}

/* It may have much that is not kept any more. */
static void plan_next_rewrite(struct keeper_file *file)
{
    const struct kept_actors *actors = file->actors;
    uint64_t bytes = mu__journal_bytes(file->journal);
    uint64_t kept = actors->bytes + (uint64_t)actors->count * ACTOR_BYTES;

    plan_rewrite(file, bytes < kept ? bytes : kept);
}

int mu__keeper_file_read(struct keeper_file *file, mu_error *ret_error, uint64_t *ret_cut)
{
    const struct mu__journal_step step = {visit_kept, file->actors, SIZE_MAX,
                                          (size_t)(file->rewrite_bytes / READ_STEPS)};
    int rv =
        mu__journal_read_step(file->reading, &step, ret_error, ret_cut, &file->journal);

    if (rv == MU__STORAGE_NOT_YET)
        return rv;
    file->reading = NULL;
    if (rv == 0) {
        plan_next_rewrite(file);
        return 0;
    }
    mu__kept_actors_done(file->actors);
    if (rv == -MU_EDATALOSS)
        file->damage = *ret_error;
    return rv;
}

int mu__keeper_file_open(struct keeper_file *file, mu_error *ret_error, uint64_t *ret_cut)
{
    int rv = mu__journal_read_begin(file->storage, file->actors->schema,
                                    file->actors->pool, ret_error, &file->reading);

    if (file->rewrite_bytes == 0)
        file->rewrite_bytes = REWRITE_BYTES_MIN;
    if (rv == 0)
        return mu__keeper_file_read(file, ret_error, ret_cut);
    if (rv == -MU_EDATALOSS)
        file->damage = *ret_error;
    return rv;
}

unsigned mu__keeper_file_percent(const struct keeper_file *file)
{
    struct mu__journal_progress progress = {.bytes = 0};

    if (file->reading != NULL)
        progress = mu__journal_read_progress(file->reading);
    return progress.bytes_all == 0
               ? 0
               : (unsigned)(progress.bytes * 100 / progress.bytes_all);
}

void mu__keeper_file_close(struct keeper_file *file)
{
    mu__journal_read_drop(file->reading);
    mu__journal_close(file->journal);
    file->reading = NULL;
    file->journal = NULL;
}

/* ---- writing ---- */

int mu__keeper_file_reserve(const struct keeper_file *file, const struct mu__msg *msg,
                            mu_error *ret_error)
{
    return mu__journal_reserve(file->journal,
                               mu__encode_bound(file->actors->schema, msg) + FRAME_BYTES,
                               ret_error);
}

/* `is_renewed`: it is for the new content, too, if there is to be one. */
static void put_to_file(struct keeper_file *file, const struct mu__msg *msg,
                        bool is_renewed)
{
    mu_error error;
    int rv;

    if (file->is_behind) {
        if (is_renewed && file->actors->walk.runs)
            (void)mu__journal_renew_append(file->journal, msg, &error);
        return; /* the commit says why not */
    }
    rv = is_renewed ? mu__journal_append(file->journal, msg, NULL)
                    : mu__journal_append_old(file->journal, msg, NULL);
    if (rv == 0)
        return;
    file->is_behind = true;
    mu__kept_walk_end(file->actors); /* it begins anew */
}

struct fence_message {
    alignas(struct mu__msg) unsigned char memory[sizeof(struct mu__msg) +
                                                 sizeof(struct mu__keep_fence)];
};

static const struct mu__msg *make_fence(struct fence_message *message,
                                        const struct kept_actor *actor)
{
    const struct mu__keep_fence body = {.name = actor->named.text,
                                        .epoch = actor->epoch,
                                        .owner = actor->owner,
                                        .number = actor->last};
    struct mu__msg *msg = (struct mu__msg *)(void *)message->memory;

    memset(message, 0, sizeof *message);
    msg->kind = MU__KEEP_FENCE;
    memcpy(msg->body, &body, sizeof body);
    return msg;
}

void mu__keeper_file_put_fence(struct keeper_file *file, const struct kept_actor *actor)
{
    struct fence_message message;

    file->came += ACTOR_BYTES;
    put_to_file(file, make_fence(&message, actor),
                mu__kept_walk_phase(file->actors, actor) != KEPT_AHEAD);
}

void mu__keeper_file_put_end(struct keeper_file *file, struct kept_actor *actor)
{
    actor->owner = 0;
    mu__keeper_file_put_fence(file, actor);
}

void mu__keeper_file_put_item(struct keeper_file *file, const struct kept_actor *actor,
                              const struct mu__msg *msg)
{
    file->came += mu__kept_item_bytes(msg);
    file->unwritten += mu__kept_item_bytes(msg);
    put_to_file(file, msg, mu__kept_walk_phase(file->actors, actor) == KEPT_BEHIND);
}

int mu__keeper_file_flush(struct keeper_file *file, mu_error *ret_error)
{
    bool is_late =
        file->actors->walk.runs && file->unwritten > file->rewrite_bytes / LATE_SHARE;

    return file->is_behind || is_late ? MU__STORAGE_NOT_YET
                                      : mu__journal_flush(file->journal, ret_error);
}

/* ---- writing it anew ---- */

static void renew_fence(void *owner, const struct kept_actor *actor)
{
    const struct keeper_file *file = owner;
    struct fence_message message;
    mu_error error;

    (void)mu__journal_renew_append(file->journal, make_fence(&message, actor), &error);
}

static void renew_item(void *owner, struct mu__msg *msg)
{
    const struct keeper_file *file = owner;
    mu_error error;

    (void)mu__journal_renew_append(file->journal, msg, &error);
}

bool mu__keeper_file_is_renewed(const struct keeper_file *file)
{
    return file->journal != NULL &&
           (file->is_behind || file->actors->walk.runs ||
            mu__journal_bytes(file->journal) > file->rewrite_above);
}

static int begin_renewal(struct keeper_file *file, mu_error *error)
{
    const struct kept_visitor visitor = {renew_fence, renew_item, file};
    int rv = mu__journal_renew_begin(file->journal, error);

    if (rv == 0)
        mu__kept_walk_begin(file->actors, &visitor);
    file->came = file->unwritten = 0;
    return rv;
}

/* As much as came, and more, so that it ends whatever comes. */
static int renew_some(struct keeper_file *file, mu_error *error)
{
    uint64_t bytes = file->rewrite_bytes / STEPS + file->came;

    if (mu__journal_renew_is_busy(file->journal))
        return MU__STORAGE_NOT_YET;
    file->came = 0;
    file->unwritten = bytes;
    return mu__kept_walk_step(file->actors, bytes)
               ? mu__journal_renew_commit(file->journal, error)
               : MU__STORAGE_NOT_YET;
}

int mu__keeper_file_renew(struct keeper_file *file, mu_error *ret_error)
{
    int rv = file->actors->walk.runs ? 0 : begin_renewal(file, ret_error);

    if (rv == 0)
        rv = renew_some(file, ret_error);
    if (rv == MU__STORAGE_NOT_YET)
        return rv;
    mu__kept_walk_end(file->actors);
    if (rv != 0) {
        plan_rewrite(file, mu__journal_bytes(file->journal));
        return rv;
    }
    file->is_behind = false;
    plan_next_rewrite(file);
    return 0;
}
