/* Timers of actors: under numbers of their own, so that one which was cancelled is not
 * seen although the kernel has sent it. */
#include "actors/user/actions.h"

#include "runtime/message/arguments.h"

#include <stdlib.h>

static struct mu__ctx ctx_of(const mu_actor *actor)
{
    return (struct mu__ctx){
        actor->office->ctx.kernel, {MU__NODE_SELF, actor->number}, NULL};
}

void mu__actor_timer_free(struct office *office, struct actor_timer *timer)
{
    struct mu__ctx ctx = ctx_of(timer->actor);

    mu__timer_cancel(&ctx, timer->timer);
    (void)mu__map_remove(&office->timers, timer->id);
    mu__list_remove(&timer->actor->ties->timers, &timer->node);
    free(timer);
}

void mu__actor_timers_drop(mu_actor *actor, uint64_t token)
{
    struct actor_timer *next;

    for (struct actor_timer *timer =
             MU__LIST_FIRST(&mu__actor_ties(actor)->timers, struct actor_timer, node);
         timer != NULL; timer = next) {
        next = MU__LIST_NEXT(timer, struct actor_timer, node);
        if (timer->token == token)
            mu__actor_timer_free(actor->office, timer);
    }
}

void mu__actor_timers_end(mu_actor *actor)
{
    while (!mu__list_is_empty(&actor->ties->timers))
        mu__actor_timer_free(actor->office, MU__LIST_ENTRY(actor->ties->timers.first,
                                                           struct actor_timer, node));
}

/* Set at once, so that what fails fails here; it cannot fire before the turn ends. */
static struct actor_timer *timer_new(mu_actor *self, uint64_t delay_ms, uint64_t token)
{
    struct actor_ties *ties = mu__actor_ties_get(self);
    struct actor_timer *timer = ties == NULL ? NULL : calloc(1, sizeof *timer);
    struct mu__ctx ctx = ctx_of(self);

    if (timer == NULL)
        return NULL;
    timer->actor = self;
    timer->token = token;
    timer->id = ++self->office->number_next;
    mu__list_append(&ties->timers, &timer->node);
    if (mu__map_set(&self->office->timers, timer->id, timer) == 0)
        timer->timer = mu__timer_set(&ctx, delay_ms, timer->id);
    if (timer->timer != 0)
        return timer;
    mu__actor_timer_free(self->office, timer);
    return NULL;
}

int mu_actor_timer(mu_actor *self, uint64_t delay_ms, uint64_t token)
{
    MU__REQUIRE(NULL, self);

    struct turn *turn = mu__turn_of(self);
    struct mail *mail = turn == NULL ? NULL : mu__turn_add(turn, OUT_TIMER);

    if (turn == NULL)
        return -MU_EPRECONDITION;
    if (mail == NULL)
        return -MU_ENOMEM;
    mail->of.timer = timer_new(self, delay_ms, token);
    if (mail->of.timer != NULL)
        return 0;
    mu__list_remove(&turn->out, &mail->node);
    mu__mail_free(self->office, mail);
    return -MU_EEXHAUSTED;
}
