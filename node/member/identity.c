/* A member's reaction when peers say that another process plays its task. */
#include "node/member/internal.h"

#include <stdio.h>
#include <string.h>

/* Peers that have a link to this process, and peers that have one to another process of
 * the same task. */
struct votes {
    const char *arbiter; /* type of the task that decides alone; NULL: none */
    bool decided;
    bool is_taken; /* the arbiter's decision, once `decided` */
    unsigned up;
    unsigned refusing;
};

static void count_vote(void *user, const struct mu__link_view *view)
{
    struct votes *votes = user;
    bool is_up = view->node != 0;

    if (strcmp(view->type, "client") == 0 || (!is_up && !view->is_taken))
        return;
    votes->up += is_up;
    votes->refusing += !is_up;
    if (votes->arbiter != NULL && view->index == 0 &&
        strcmp(view->type, votes->arbiter) == 0) {
        votes->decided = true;
        votes->is_taken = !is_up;
    }
}

/* The task that ends the job (the chief) decides which process is a task. About that task
 * itself, or without its vote, the majority of the peers decides, so that of two
 * processes that both have links, not both end. */
static bool is_task_taken(const struct mu__member *member)
{
    struct votes votes = {
        .arbiter = mu__member_ends_job(member->cluster, member->type, (int)member->index)
                       ? NULL
                       : mu__member_leader_type(member),
    };

    mu__links_each(member->links, count_vote, &votes);
    return votes.decided ? votes.is_taken : votes.refusing > votes.up;
}

void mu__member_on_taken(void *owner, const char *type, uint32_t index,
                         const char *reason)
{
    struct mu__member *member = owner;
    char words[768];

    if (member->is_taken || !is_task_taken(member))
        return;
    member->is_taken = true;
    (void)snprintf(words, sizeof words,
                   "another process is %s: this one ends (/job:%s/task:%u: %s)",
                   member->task, type, (unsigned)index, reason);
    member->world->ops->log(member->world, MU__LOG_ERROR, "links", words);
    if (member->upcalls.taken != NULL)
        member->upcalls.taken(member->upcalls.taken_owner, words);
}
