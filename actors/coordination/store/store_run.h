/* The runs of a job, for a persistent store. Plain data: knows no messages, no clock.
 *
 *   RUNNING --> ENDED, FAILED    the leading task has ended the job
 *           --> CLOSED           the host was closed, and no other task was connected
 *           --> LEFT             the host was closed while others were connected
 *           --> ABANDONED        another run was begun before it had ended
 *
 * The last one is the present run; those before it are a short history. */
#ifndef MU_ACTORS_COORDINATION_STORE_RUN_H
#define MU_ACTORS_COORDINATION_STORE_RUN_H

#include "muster/error.h"
#include "runtime/message/message.h"

enum {
    MU__RUN_NAME_MAX = 63,
    MU__RUN_HISTORY_MAX = 16, /* runs that are over and remembered */
    MU__RUN_TEXT_MAX = 512    /* of one as text */
};

enum mu__store_run_state {
    MU__RUN_RUNNING,
    MU__RUN_LEFT,
    MU__RUN_CLOSED,
    MU__RUN_ENDED,
    MU__RUN_FAILED,
    MU__RUN_ABANDONED,
    MU__RUN_STATES
};

struct mu__store_run {
    uint64_t number; /* ascending, from 1; 0: there is no run */
    char name[MU__RUN_NAME_MAX + 1];
    enum mu__store_run_state state;
    uint64_t started_ms;     /* since 1970 */
    uint64_t ended_ms;       /* 0: it has not ended */
    uint64_t quiet_revision; /* of the store when the host was closed: outcomes up to
                                it are only for processes of that time */
    int code;                /* of FAILED, negative */
    char message[256];       /* of FAILED or ENDED */
};

/* In ascending order. */
struct mu__store_runs {
    struct mu__store_run runs[MU__RUN_HISTORY_MAX + 1];
    unsigned count;
};

/* "running", "left" ... */
const char *mu__store_run_word(enum mu__store_run_state state);

/* Whether a process that starts anew begins another run after it. */
bool mu__store_run_is_over(const struct mu__store_run *run);

/* 1 to 63 letters, digits, '.', '_' and '-'. -MU_EINVALID with a message. */
int mu__store_run_check_name(const char *name, mu_error *ret_error);

/* A run as text for a store, without its number; and back. -MU_EINVALID: other text. */
size_t mu__store_run_write(const struct mu__store_run *run, char out[MU__RUN_TEXT_MAX]);
int mu__store_run_read(struct mu__view text, struct mu__store_run *ret_run);

/* Add a run; beyond MU__RUN_HISTORY_MAX + 1 those with the lowest numbers are dropped. */
void mu__store_runs_add(struct mu__store_runs *runs, const struct mu__store_run *run);

/* The present one; NULL: there is none. */
struct mu__store_run *mu__store_runs_present(struct mu__store_runs *runs);
struct mu__store_run *mu__store_runs_find(struct mu__store_runs *runs, const char *name);
void mu__store_runs_remove(struct mu__store_runs *runs, uint64_t number);

/* What a host does when it has come to hold the store. */
enum mu__store_run_choice {
    MU__RUN_CONTINUE, /* the present run goes on */
    MU__RUN_BEGIN,    /* another one begins */
    MU__RUN_REFUSE    /* this process may not host it; with a message */
};

/* `own`: the number of the run that this process takes part in; 0: none yet. `requested`:
 * the name that it was started for; "": none. `failed`: a function of the present run has
 * failed. */
enum mu__store_run_choice mu__store_runs_choose(struct mu__store_runs *runs, uint64_t own,
                                                const char *requested, bool failed,
                                                mu_error *ret_error);

#endif
