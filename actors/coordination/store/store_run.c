/* Runs of a job: their text, their history, and the choice of one. */
#include "actors/coordination/store/store_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const state_names[MU__RUN_STATES] = {
    [MU__RUN_RUNNING] = "running", [MU__RUN_LEFT] = "left",
    [MU__RUN_CLOSED] = "closed",   [MU__RUN_ENDED] = "ended",
    [MU__RUN_FAILED] = "failed",   [MU__RUN_ABANDONED] = "abandoned",
};

const char *mu__store_run_word(enum mu__store_run_state state)
{
    return state_names[state];
}

bool mu__store_run_is_over(const struct mu__store_run *run)
{
    return run->state != MU__RUN_RUNNING && run->state != MU__RUN_LEFT;
}

static bool is_name_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '.' || byte == '_' || byte == '-';
}

int mu__store_run_check_name(const char *name, mu_error *ret_error)
{
    size_t size = strlen(name);
    bool fits = size > 0 && size <= MU__RUN_NAME_MAX;

    for (size_t i = 0; i < size && fits; i++)
        fits = is_name_byte(name[i]);
    if (fits)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "the name of a run is \"%.80s\", expected 1 to %d letters, "
                        "digits, '.', '_' and '-'",
                        name, MU__RUN_NAME_MAX);
}

/* ---- as text: "STATE STARTED ENDED QUIET CODE NAME MESSAGE" ---- */

size_t mu__store_run_write(const struct mu__store_run *run, char out[MU__RUN_TEXT_MAX])
{
    return (size_t)snprintf(out, MU__RUN_TEXT_MAX,
                            "%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %d %s %s",
                            state_names[run->state], run->started_ms, run->ended_ms,
                            run->quiet_revision, -run->code, run->name, run->message);
}

static bool read_state(const char *word, enum mu__store_run_state *ret_state)
{
    for (int i = 0; i < MU__RUN_STATES; i++) {
        if (strcmp(word, state_names[i]) != 0)
            continue;
        *ret_state = (enum mu__store_run_state)i;
        return true;
    }
    return false;
}

int mu__store_run_read(struct mu__view text, struct mu__store_run *ret_run)
{
    char copy[MU__RUN_TEXT_MAX];
    char word[16];
    int used = 0;

    mu__view_copy(text, copy, sizeof copy);
    if (sscanf(copy, "%15s %" SCNu64 " %" SCNu64 " %" SCNu64 " %d %63s %n", word,
               &ret_run->started_ms, &ret_run->ended_ms, &ret_run->quiet_revision,
               &ret_run->code, ret_run->name, &used) != 6 ||
        !read_state(word, &ret_run->state) || ret_run->code < 0 || ret_run->code > 255 ||
        mu__store_run_check_name(ret_run->name, NULL) != 0)
        return -MU_EINVALID;
    ret_run->code = -ret_run->code;
    (void)snprintf(ret_run->message, sizeof ret_run->message, "%.255s", copy + used);
    return 0;
}

/* ---- several ---- */

void mu__store_runs_add(struct mu__store_runs *runs, const struct mu__store_run *run)
{
    unsigned at = runs->count;

    while (at > 0 && runs->runs[at - 1].number > run->number)
        at--;
    if (runs->count == MU__RUN_HISTORY_MAX + 1) {
        if (at == 0)
            return;
        memmove(runs->runs, runs->runs + 1, --runs->count * sizeof *runs->runs);
        at--;
    }
    memmove(runs->runs + at + 1, runs->runs + at,
            (runs->count - at) * sizeof *runs->runs);
    runs->runs[at] = *run;
    runs->count++;
}

struct mu__store_run *mu__store_runs_present(struct mu__store_runs *runs)
{
    return runs->count == 0 ? NULL : &runs->runs[runs->count - 1];
}

struct mu__store_run *mu__store_runs_find(struct mu__store_runs *runs, const char *name)
{
    for (unsigned i = runs->count; i-- > 0;)
        if (strcmp(runs->runs[i].name, name) == 0)
            return &runs->runs[i];
    return NULL;
}

void mu__store_runs_remove(struct mu__store_runs *runs, uint64_t number)
{
    unsigned count = 0;

    for (unsigned i = 0; i < runs->count; i++)
        if (runs->runs[i].number != number)
            runs->runs[count++] = runs->runs[i];
    runs->count = count;
}

/* ---- choosing ---- */

static enum mu__store_run_choice refuse_own_run(const struct mu__store_run *present,
                                                uint64_t own, mu_error *ret_error)
{
    (void)mu_error_set(ret_error, -MU_EABORTED,
                       "this process belongs to run %" PRIu64 " of the job, and the "
                       "store is in run %" PRIu64 ", \"%s\": start it again",
                       own, present->number, present->name);
    return MU__RUN_REFUSE;
}

static enum mu__store_run_choice choose_by_name(
    struct mu__store_runs *runs, const char *requested, mu_error *ret_error)
{
    const struct mu__store_run *present = mu__store_runs_present(runs);
    const struct mu__store_run *known = mu__store_runs_find(runs, requested);

    if (known == NULL)
        return MU__RUN_BEGIN;
    if (known == present)
        return MU__RUN_CONTINUE;
    (void)mu_error_set(ret_error, -MU_EABORTED,
                       "run \"%s\" is over (%s), and the store is in run \"%s\": "
                       "expected another name; `muster store clear --run %s` forgets the "
                       "former one",
                       requested, state_names[known->state], present->name, requested);
    return MU__RUN_REFUSE;
}

enum mu__store_run_choice mu__store_runs_choose(struct mu__store_runs *runs, uint64_t own,
                                                const char *requested, bool failed,
                                                mu_error *ret_error)
{
    const struct mu__store_run *present = mu__store_runs_present(runs);

    if (present != NULL && own == present->number)
        return MU__RUN_CONTINUE;
    if (present != NULL && own != 0 && own < present->number)
        return refuse_own_run(present, own, ret_error);
    if (requested[0] != '\0')
        return choose_by_name(runs, requested, ret_error);
    if (present == NULL || mu__store_run_is_over(present) || failed)
        return MU__RUN_BEGIN;
    return MU__RUN_CONTINUE;
}
