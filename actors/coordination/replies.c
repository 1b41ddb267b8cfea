/* Messages of the service: none leaves before the changes it depends on are safe in the
 * store. */
#include "actors/coordination/coordination.h"

#include "actors/coordination/internal.h"
#include "actors/coordination/job_runs.h"
#include "actors/coordination/replies.h"
#include "actors/coordination/tasks.h"
#include "actors/packing.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- Sending ---- */

void mu__coord_back(struct mu__msg *msg, struct mu__view *first, struct mu__view *second)
{
    struct mu__view none = {"", 0};

    if (msg->backing != NULL)
        return;
    if (second == NULL)
        second = &none;
    msg->backing = mu__pack_two(first, second);
    if (msg->backing == NULL)
        first->size = second->size = 0;
}

void mu__coord_send_now(struct mu__ctx *ctx, uint32_t node, struct mu__msg *msg)
{
    uint32_t actor = MU__AGENT;

    if (msg != NULL && msg->kind >= MU__NAME_MAKE && msg->kind <= MU__NAME_STOP)
        actor = MU__ACTORS;
    if (msg != NULL && (msg->kind == MU__KEEP_REVIEW || msg->kind == MU__KEEP_DROP))
        actor = MU__KEEPER;
    /* A failure is that of the link: NODE_DOWN follows, and the agent asks again. */
    (void)mu__send(ctx, (mu__pid){node, actor}, msg);
}

/* What an answer that waits for the store takes of memory, or will take when sent. */
static int64_t get_reply_bytes(const struct mu__msg *msg)
{
    return msg->backing == NULL ? 0 : (int64_t)msg->backing->size;
}

static void hold_until_safe(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                            struct mu__msg *msg)
{
    struct coord_later *later =
        c->commits.later_count < COORD_LATER_MAX ? malloc(sizeof *later) : NULL;

    if (later == NULL) {
        mu__log(ctx, MU__LOG_ERROR,
                "an answer is dropped: %" PRIu32 " others wait for the store",
                c->commits.later_count);
        mu__msg_free(ctx, msg);
        return;
    }
    *later = (struct coord_later){
        .sequence = c->commits.sequence + (c->commits.dirty ? 1 : 0),
        .node = node,
        .msg = msg,
    };
    mu__list_append(&c->commits.later, &later->link);
    c->commits.later_count++;
    mu__owe(ctx, node, get_reply_bytes(msg));
}

void mu__coord_send(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                    struct mu__msg *msg)
{
    if (msg == NULL)
        return;
    if (c->commits.broken)
        mu__msg_free(ctx, msg);
    else if (c->commits.dirty || c->commits.safe < c->commits.sequence)
        hold_until_safe(ctx, c, node, msg);
    else
        mu__coord_send_now(ctx, node, msg);
}

static struct coord_later *first_later(const struct coordination *c)
{
    return MU__LIST_FIRST(&c->commits.later, struct coord_later, link);
}

static void free_first_later(struct coordination *c)
{
    c->commits.later_count--;
    free(MU__LIST_ENTRY(mu__list_pop(&c->commits.later), struct coord_later, link));
}

void mu__coord_send_later(struct mu__ctx *ctx, struct coordination *c)
{
    struct coord_later *later;

    while ((later = first_later(c)) != NULL && later->sequence <= c->commits.safe) {
        mu__owe(ctx, later->node, -get_reply_bytes(later->msg));
        mu__coord_send_now(ctx, later->node, later->msg);
        free_first_later(c);
    }
}

void mu__coord_drop_later(struct mu__ctx *ctx, struct coordination *c)
{
    struct coord_later *later;

    while ((later = first_later(c)) != NULL) {
        mu__owe(ctx, later->node, -get_reply_bytes(later->msg));
        mu__msg_free(ctx, later->msg);
        free_first_later(c);
    }
}

static void send_tasks_answer(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                              struct mu__tasks_answer *body, struct mu__msg *msg,
                              const mu_error *error)
{
    body->code = (uint32_t)-error->code;
    body->message = mu__view_str(error->message);
    body->task = mu__view_str(error->task);
    body->error_kind = (uint32_t)error->kind;
    mu__coord_back(msg, &body->message, &body->task);
    mu__coord_send(ctx, c, node, msg);
}

void mu__coord_answer(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                      uint64_t token, const mu_error *error)
{
    const mu_error none = {.code = 0};
    struct mu__msg *msg = mu__msg_new(ctx, MU__TASKS_ANSWER);
    struct mu__tasks_answer *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->token = token;
    send_tasks_answer(ctx, c, node, body, msg, error == NULL ? &none : error);
}

void mu__coord_answer_packed(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                             const struct mu__tasks_answer *answer, struct mu__buf *buf)
{
    uint64_t bytes = (uint64_t)answer->content.head_size + answer->content.tail_size;
    bool fits = buf != NULL && bytes <= MU__TASKS_CONTENT_MAX;
    struct mu__msg *msg = fits ? mu__msg_new(ctx, MU__TASKS_ANSWER) : NULL;
    mu_error error;

    if (msg != NULL) {
        *(struct mu__tasks_answer *)mu__body(msg) = *answer;
        msg->backing = mu__buf_ref(buf);
        mu__coord_send(ctx, c, node, msg);
        return;
    }
    if (buf != NULL && !fits)
        (void)mu_error_set(&error, -MU_EEXHAUSTED,
                           "the records of these tasks at %s have %" PRIu64
                           " bytes, and at most %d are sent: request fewer tasks",
                           c->config.task, bytes, MU__TASKS_CONTENT_MAX);
    else
        (void)mu_error_set(&error, -MU_ENOMEM, "%s is out of memory", c->config.task);
    mu__coord_answer(ctx, c, node, answer->token, &error);
}

void mu__coord_answer_value(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                            uint64_t token, uint64_t version, mu_value *content)
{
    struct mu__tasks_answer answer = {.token = token, .version = version};
    struct mu__buf *buf =
        content == NULL ? NULL : mu__pack_value(content, &answer.content);

    mu_value_free(content);
    mu__coord_answer_packed(ctx, c, node, &answer, buf);
    mu__buf_unref(buf);
}

void mu__coord_send_here(struct mu__ctx *ctx, const struct coordination *c, uint32_t node)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__SERVICE_HERE);
    struct mu__service_here *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->leads = c->leads;
    body->epoch = c->epoch;
    body->store = c->number;
    if (!c->leads) {
        body->reason = mu__view_str(c->reason);
        mu__coord_back(msg, &body->reason, NULL);
    }
    mu__coord_send_now(ctx, node, msg);
}

void mu__coord_send_here_to_all(struct mu__ctx *ctx, const struct coordination *c)
{
    for (size_t i = 0; i < c->peers.capacity; i++)
        if (c->peers.entries[i].key != 0)
            mu__coord_send_here(ctx, c, (uint32_t)(c->peers.entries[i].key - 1));
}

/* ---- Notes ---- */

uint64_t mu__coord_note_next(uint64_t since_ms, uint64_t now_ms)
{
    uint64_t waited_ms = now_ms - since_ms;

    if (waited_ms < COORD_NOTE_FIRST_MS)
        return since_ms + COORD_NOTE_FIRST_MS;
    return now_ms +
           (waited_ms < COORD_NOTE_STEP_MAX_MS ? waited_ms : COORD_NOTE_STEP_MAX_MS);
}

void mu__coord_note(struct mu__ctx *ctx, uint32_t node, uint64_t token, const char *text)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__WAIT_NOTE);
    struct mu__wait_note *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->token = token;
    body->message = mu__view_str(text);
    mu__coord_back(msg, &body->message, NULL);
    mu__coord_send_now(ctx, node, msg);
}
