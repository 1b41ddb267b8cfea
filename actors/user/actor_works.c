/* Works: functions of actors that may block, on executor threads. They belong to the
 * office, since their actor may end before them. */
#include "actors/user/actions.h"

#include "runtime/message/arguments.h"

#include <stdlib.h>

static void run_actor_work(struct mu__work *work)
{
    struct actor_work *of = (struct actor_work *)work;

    of->code = of->function(of->arg);
}

void mu__actor_work_submit(struct office *office, struct actor_work *work)
{
    mu__list_append(&office->works, &work->listed);
    mu__submit(&office->ctx, &work->work);
}

static void free_work(struct office *office, struct actor_work *work)
{
    mu__list_remove(&office->works, &work->listed);
    free(work);
}

void mu__actor_on_work_done(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct actor_work *work =
        (struct actor_work *)((struct mu__work_done *)mu__body(msg))->work;
    struct mail *mail =
        mu__mail_notice(state, work->actor, MU_NOTICE_WORK, work->token, NULL);

    (void)ctx;
    if (mail != NULL)
        mail->code = work->code;
    free_work(state, work);
}

void mu__actors_leave(void *state, struct mu__list unstarted)
{
    struct mu__list_node *node;

    while ((node = mu__list_pop(&unstarted)) != NULL)
        free_work(state,
                  (struct actor_work *)MU__LIST_ENTRY(node, struct mu__work, node));
}

void mu__actors_forget_works(void *state)
{
    struct office *office = state;

    while (!mu__list_is_empty(&office->works))
        free_work(office, MU__LIST_ENTRY(office->works.first, struct actor_work, listed));
}

int mu_actor_work(mu_actor *self, int (*blocking)(void *arg), void *arg, uint64_t token)
{
    MU__REQUIRE(NULL, self, blocking);

    struct turn *turn = mu__turn_of(self);
    struct actor_work *work = turn == NULL ? NULL : calloc(1, sizeof *work);
    struct mail *mail = work == NULL ? NULL : mu__turn_add(turn, OUT_WORK);

    if (turn == NULL)
        return -MU_EPRECONDITION;
    if (mail == NULL) {
        free(work);
        return -MU_ENOMEM;
    }
    *work = (struct actor_work){
        .work.run = run_actor_work,
        .actor = self->number,
        .token = token,
        .function = blocking,
        .arg = arg,
    };
    mail->of.work = work;
    return 0;
}
