/* The file of a keeper: a journal of fences and items, which is read and written anew in
 * steps. */
#ifndef MU_ACTORS_KEEPER_FILE_H
#define MU_ACTORS_KEEPER_FILE_H

#include "actors/coordination/store/journal.h"
#include "actors/keeper/keeper_items.h"

enum { MU__KEEPER_STEP_MS = 1 }; /* between steps */

struct keeper_file {
    struct mu__journal *journal; /* NULL: it is not read yet */
    struct mu__journal_reading *reading;
    struct mu__storage *storage;
    struct kept_actors *actors;
    uint64_t rewrite_bytes; /* it is not written anew below */
    uint64_t rewrite_above; /* bytes of the file */
    uint64_t came;          /* bytes since the last step */
    uint64_t unwritten;     /* bytes of the new content that the disk may not have yet */
    bool is_behind;         /* it lacks something: it has to be written anew */
    mu_error damage;        /* it cannot be read; code 0: it can */
};

/* Begin to read it, to `actors`, which are empty: all of it, if it is small.
 * MU__STORAGE_NOT_YET: there are more steps. After a failure the file may be opened
 * again; `damage` is set where that is of no use. *ret_cut: torn bytes at its end, which
 * were cut off. */
int mu__keeper_file_open(struct keeper_file *file, mu_error *ret_error,
                         uint64_t *ret_cut);
int mu__keeper_file_read(struct keeper_file *file, mu_error *ret_error,
                         uint64_t *ret_cut);
unsigned mu__keeper_file_percent(const struct keeper_file *file);
void mu__keeper_file_close(struct keeper_file *file);

/* Room for one more item or fence. */
int mu__keeper_file_reserve(const struct keeper_file *file, const struct mu__msg *msg,
                            mu_error *ret_error);

/* The actor has this epoch from now on. What cannot be appended is in the file when it is
 * written anew. */
void mu__keeper_file_put_fence(struct keeper_file *file, const struct kept_actor *actor);

/* Nothing before counts for the actor. */
void mu__keeper_file_put_end(struct keeper_file *file, struct kept_actor *actor);

/* One that was taken in. */
void mu__keeper_file_put_item(struct keeper_file *file, const struct kept_actor *actor,
                              const struct mu__msg *msg);

/* All that was put survives. MU__STORAGE_NOT_YET: once the file is written anew, or its
 * new content is not so far behind: what comes waits for the disk, and the loop does not.
 */
int mu__keeper_file_flush(struct keeper_file *file, mu_error *ret_error);

/* A step is due, of writing it anew. It returns MU__STORAGE_NOT_YET until that is done;
 * then all that was put survives. After a failure the file is as it was. */
bool mu__keeper_file_is_renewed(const struct keeper_file *file);
int mu__keeper_file_renew(struct keeper_file *file, mu_error *ret_error);

#endif
