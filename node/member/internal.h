/* Shared by the files of a member. */
#ifndef MU_NODE_MEMBER_INTERNAL_H
#define MU_NODE_MEMBER_INTERNAL_H

#include "node/member/member.h"

/* Whether a task is this one. */
bool mu__member_is(const struct mu__member *member, const char *type, uint32_t index);

/* Whether this task dials another one. */
bool mu__member_needs_link(const struct mu__member *member, const char *type,
                           uint32_t index);

/* Set the error of a task that cannot be dialled; returns `rv`. */
int mu__member_cannot_dial(int rv, const char *type, uint32_t index, const char *url,
                           mu_error *ret_error);

/* Write the names of the chief and of the job's owner for messages: the actors borrow
 * them. */
void mu__member_name_leaders(struct mu__member *member);

/* In each turn: take some more of the changes of the cluster, if there are. */
void mu__member_take_changes(struct mu__member *member);

/* Drop the changes that were not taken yet. */
void mu__member_forget_changes(struct mu__member *member);

/* The type of the task, of index 0, with whose program the job ends. */
const char *mu__member_leader_type(const struct mu__member *member);

/* Whether it has the view service of the parameter servers: the chief, or worker 0
 * without one. */
bool mu__member_has_views(const struct mu__member *member);

/* Start the actors of the task's role. */
int mu__member_spawn(struct mu__member *member, const struct mu__member_config *config,
                     mu_error *ret_error);

/* ---- identity.c ---- */

/* An upcall of the links: a peer knows another process as this task. */
void mu__member_on_taken(void *owner, const char *type, uint32_t index,
                         const char *reason);

#endif
