/* Turns of the program's actors, noted one by one: what an actor does in a turn goes into
 * the run's digest, so that two runs which differ differ at a turn, and the first such is
 * somebody's. */
#include "sim/internal.h"

#include "sim/world/inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- A digest of what was done ---- */

static void fold(uint64_t *digest, const void *bytes, size_t size)
{
    *digest = sim_digest_bytes(*digest, bytes, size);
}

static void fold_text(uint64_t *digest, const char *text)
{
    fold(digest, text, strlen(text));
}

static void fold_leaf(uint64_t *digest, const mu_value *value)
{
    const void *bytes = NULL;
    const char *text = NULL;
    int64_t number = 0;
    double real = 0;
    size_t size = 0;
    int truth = 0;

    if (mu_value_get_int(value, &number) == 0)
        fold(digest, &number, sizeof number);
    else if (mu_value_get_float(value, &real) == 0)
        fold(digest, &real, sizeof real);
    else if (mu_value_get_bool(value, &truth) == 0)
        fold(digest, &truth, sizeof truth);
    else if (mu_value_get_string(value, &text, &size) == 0)
        fold(digest, text, size);
    else if (mu_value_get_bytes(value, &bytes, &size) == 0)
        fold(digest, bytes, size);
}

/* Of a tensor only its type: its size is in the mail's bytes. */
static void fold_value(uint64_t *digest, const mu_value *value)
{
    int type = value == NULL ? 0 : (int)mu_value_type(value) + 1;
    const char *key;

    fold(digest, &type, sizeof type);
    if (value == NULL)
        return;
    fold_leaf(digest, value);
    for (size_t i = 0; i < mu_value_count(value); i++) {
        key = mu_value_key(value, i);
        if (key != NULL)
            fold_text(digest, key);
        fold_value(digest, mu_value_at(value, i));
    }
}

static void fold_mail(uint64_t *digest, const struct mail *mail)
{
    const uint64_t plain[] = {(uint64_t)mail->kind, mail->actor, mail->bytes, mail->token,
                              (uint64_t)(uint32_t)mail->code};

    fold(digest, plain, sizeof plain);
    if (mail->kind == OUT_STOP) {
        fold(digest, &mail->address.incarnation, sizeof mail->address.incarnation);
        fold(digest, &mail->address.number, sizeof mail->address.number);
    }
    if (mail->kind == MAIL_MESSAGE)
        fold_text(digest, mail->method->name);
    fold_value(digest, mail->value);
    if (mail->msg != NULL && mail->msg->backing != NULL)
        fold(digest, mail->msg->backing->data, mail->msg->backing->size);
    if (mail->error != NULL)
        fold_text(digest, mail->error->message);
}

static uint64_t digest_turn(const struct turn *turn, int code)
{
    uint64_t digest = (uint64_t)(uint32_t)code;

    for (const struct mail *mail = MU__LIST_FIRST(&turn->out, struct mail, node);
         mail != NULL; mail = MU__LIST_NEXT(mail, struct mail, node))
        fold_mail(&digest, mail);
    fold_value(&digest, turn->reply);
    if (turn->failure != NULL)
        fold_text(&digest, turn->failure->message);
    return digest;
}

/* ---- Noting ---- */

static void keep_turn(struct sim_turns *turns, const struct sim_turn *turn)
{
    if (turns->count == SIM_TURNS_MAX)
        return;
    if (turns->count == turns->capacity) {
        size_t capacity = turns->capacity * 2 + 1024;
        struct sim_turn *items = realloc(turns->items, capacity * sizeof items[0]);

        if (items == NULL)
            return;
        turns->items = items;
        turns->capacity = capacity;
    }
    turns->items[turns->count++] = *turn;
}

static void note_turn(const struct sim_type *type, const mu_actor *actor,
                      const char *function, int code)
{
    mu_sim *sim = type->task->sim;
    struct sim *world = sim->world;
    const uint64_t digest = digest_turn(actor->office->turn, code);

    fold(&world->digest, &actor->number, sizeof actor->number);
    fold_text(&world->digest, function);
    fold(&world->digest, &digest, sizeof digest);
    if (sim->plan.notes_turns) {
        struct sim_turn turn = {
            .digest = digest,
            .at_us = sim_now_us(world),
        };

        (void)snprintf(turn.who, sizeof turn.who, "%s, %s %" PRIu32 ", %s",
                       type->task->name, type->users->name, actor->number, function);
        keep_turn(&sim->turns, &turn);
    }
}

/* ---- What the office calls ---- */

static const struct sim_type *type_of(const mu_actor *self)
{
    return (const struct sim_type *)self->type;
}

static int call_method(mu_actor *self, void *state, const mu_value *args)
{
    const struct sim_type *type = type_of(self);
    const mu_actor_method *method = self->office->turn->mail->method;
    int code = type->users->methods[method - type->methods].call(self, state, args);

    note_turn(type, self, method->name, code);
    return code;
}

static int call_start(mu_actor *self, void *state, const mu_value *args)
{
    const struct sim_type *type = type_of(self);
    int code = type->users->start(self, state, args);

    note_turn(type, self, "start", code);
    return code;
}

static void call_notice(mu_actor *self, void *state, const mu_notice *notice)
{
    const struct sim_type *type = type_of(self);

    type->users->notice(self, state, notice);
    note_turn(type, self, "notice", 0);
}

struct sim_type *sim_type_new(struct sim_task *task, const mu_actor_type *users)
{
    struct sim_type *type;
    size_t count = 0;

    while (users->methods != NULL && users->methods[count].name != NULL)
        count++;
    type = sim_alloc(sizeof *type + (count + 1) * sizeof type->methods[0]);
    type->own = *users;
    type->users = users;
    type->task = task;
    for (size_t i = 0; i < count; i++) {
        type->methods[i] = users->methods[i];
        if (type->methods[i].call != NULL)
            type->methods[i].call = call_method;
    }
    if (users->methods != NULL)
        type->own.methods = type->methods;
    if (users->start != NULL)
        type->own.start = call_start;
    if (users->notice != NULL)
        type->own.notice = call_notice;
    return type;
}
