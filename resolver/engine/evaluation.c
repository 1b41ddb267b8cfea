#include "resolver/engine/evaluation.h"

#include "runtime/base/retry.h"
#include "runtime/base/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_BYTES = 900,
    REST = 4        /* times as long as a round took nothing is looked at, whatever
                       changes: so that many who wait for the same do not spend all
                       they have on looking */
};

struct mu__evaluation {
    struct mu__evaluation_config config;
    struct mu__notes *notes;    /* of this round; between rounds those of the last one */
    uint64_t began_ms;
    uint64_t end_ms;            /* MU__RETRY_NO_END: no limit */
    uint64_t again_ms;          /* between two rounds: when the next one begins */
    uint64_t due_ms;            /* when the first question is asked again; UINT64_MAX:
                                   none is */
    size_t answered;            /* so many of the first have had a first answer */
    uint64_t round_ms;          /* when the last round began */
    uint64_t rest_ms;           /* between two rounds: no change makes the next one begin
                                   before */
    unsigned rounds;            /* that have failed */
    bool between;
    bool news;                  /* something was settled since the last run */
    bool hurried;               /* the next pause ends as it begins */
    bool ended;                 /* the limit has passed */
    mu_error last;              /* why the last run failed */
    mu_error concluded;         /* why the last round did that came to its end by itself;
                                   code 0: none has */
};

int mu__evaluation_new(const struct mu__evaluation_config *config,
                       struct mu__evaluation **ret_evaluation)
{
    struct mu__evaluation *e = calloc(1, sizeof *e);

    if (e == NULL)
        return -MU_ENOMEM;
    e->config = *config;
    e->began_ms = config->now_ms(config->owner);
    e->end_ms = config->timeout_ms < 0 ? MU__RETRY_NO_END
                                     : e->began_ms + (uint64_t)config->timeout_ms;
    *ret_evaluation = e;
    return 0;
}

void mu__evaluation_free(struct mu__evaluation *e)
{
    if (e == NULL)
        return;
    mu__notes_free(e->notes);
    free(e);
}

struct mu__notes *mu__evaluation_notes(struct mu__evaluation *e)
{
    return e->notes;
}

static uint64_t now(const struct mu__evaluation *e)
{
    return e->config.now_ms(e->config.owner);
}

int64_t mu__evaluation_left_ms(const struct mu__evaluation *e)
{
    uint64_t now_ms = now(e);

    if (e->end_ms == MU__RETRY_NO_END)
        return -1;
    return now_ms < e->end_ms ? (int64_t)(e->end_ms - now_ms) : 0;
}

unsigned mu__evaluation_rounds(const struct mu__evaluation *e)
{
    return e->rounds;
}

static uint64_t whole_end_ms(const struct mu__evaluation *e)
{
    if (e->config.whole_ms == 0)
        return e->end_ms;
    return e->config.whole_ms < 0 ? MU__RETRY_NO_END
                                  : e->began_ms + (uint64_t)e->config.whole_ms;
}

static void say(const struct mu__evaluation *e, const struct mu__retry *retry,
                const char *what, const char *reason, unsigned tries, uint64_t due_ms)
{
    struct mu__retry whole = *retry;
    char line[LINE_BYTES];

    if (e->config.progress == NULL)
        return;
    whole.end_ms = whole_end_ms(e);
    mu__retry_words(&whole, what, reason, tries, now(e), due_ms, line, sizeof line);
    mu__hide_control(line);
    e->config.progress(e->config.owner, line);
}

/* ---- Answers ---- */

static bool status_is_passing(int status)
{
    static const int passing[] = {408, 429, 500, 502, 503, 504};

    for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++)
        if (passing[i] == status)
            return true;
    return false;
}

/* Whether the same question may have a better answer in a while. */
static bool is_passing(const struct mu__note *note)
{
    const struct mu__answer *answer = &note->answer;

    if (answer->code == -MU_EUNAVAILABLE || answer->code == -MU_EDEADLINE)
        return true;
    if (answer->code == -MU_ENOTFOUND)
        return note->question.missing_is_passing;
    if (answer->code != 0)
        return false;
    return status_is_passing(answer->status) ||
           (answer->status == 404 && note->question.missing_is_passing);
}

static void wait_until(struct mu__evaluation *e, struct mu__note *note, uint64_t due_ms)
{
    note->due_ms = due_ms;
    if (due_ms < e->due_ms)
        e->due_ms = due_ms;
    mu__note_reason(note, note->reason, sizeof note->reason);
}

static void try_again(struct mu__evaluation *e, struct mu__note *note,
                      const struct mu__retry *retry, uint64_t due_ms)
{
    char asked[256];
    char what[300];

    wait_until(e, note, due_ms);
    mu__question_words(&note->question, asked, sizeof asked);
    (void)snprintf(what, sizeof what, "asking %s failed", asked);
    say(e, retry, what, note->reason, note->tries, due_ms);
}

/* Less is left than the pause would take. Others may still be answered, so it waits with
 * them; but not when it is the server that wants to be left alone for longer. */
static bool waits_for_end(const struct mu__evaluation *e, const struct mu__note *note)
{
    return is_passing(note) && e->config.timeout_ms > 0 && !e->ended &&
           (note->question.tries == 0 || note->tries < note->question.tries) &&
           (int64_t)note->answer.retry_after_ms < mu__evaluation_left_ms(e);
}

/* Of the asker: nothing is run from here. */
static void on_answered(void *owner, struct mu__note *note)
{
    struct mu__evaluation *e = owner;
    struct mu__retry retry = {.tries_max = note->question.tries, .end_ms = e->end_ms};
    uint64_t due_ms;

    note->answered_ms = now(e);
    if (e->config.timeout_ms != 0 && !e->ended && is_passing(note) &&
        mu__retry_next(&retry, note->tries, now(e), e->config.random(e->config.owner),
                       note->answer.retry_after_ms, &due_ms)) {
        try_again(e, note, &retry, due_ms);
    } else if (waits_for_end(e, note)) {
        wait_until(e, note, e->end_ms);
    } else {
        mu__note_settle(note);
        e->news = true;
    }
    e->config.wake(e->config.owner);
}

/* Ask what is due; an answer may come within it. There may be thousands of questions, and
 * a turn for each answer: they are not looked at before one is due. */
static void ask_again(struct mu__evaluation *e, uint64_t now_ms)
{
    struct mu__note *note;

    if (now_ms < e->due_ms)
        return;
    e->due_ms = UINT64_MAX;
    for (size_t i = 0; (note = mu__notes_at(e->notes, i)) != NULL; i++) {
        if (note->settled || note->asked)
            continue;
        if (note->due_ms <= now_ms)
            mu__note_ask(note);
        else if (note->due_ms < e->due_ms)
            e->due_ms = note->due_ms;
    }
}

/* Whether a first answer is still to come: until then a run would not get further than
 * the last one, but for what it need not know. */
static bool first_answers_are_due(struct mu__evaluation *e)
{
    const struct mu__note *note;

    while ((note = mu__notes_at(e->notes, e->answered)) != NULL &&
           (note->settled || note->tries > 0))
        e->answered++;
    return note != NULL;
}

static uint64_t next_due(const struct mu__evaluation *e)
{
    uint64_t end_ms = e->config.timeout_ms > 0 ? e->end_ms : UINT64_MAX;

    return e->due_ms < end_ms ? e->due_ms : end_ms;
}

/* For how long, from now on, a server wants to be left alone that has not answered
 * well. */
static uint32_t wanted_pause_ms(const struct mu__evaluation *e)
{
    const struct mu__note *note;
    uint64_t now_ms = now(e);
    uint64_t until_ms = now_ms;

    for (size_t i = 0; (note = mu__notes_at(e->notes, i)) != NULL; i++)
        if (is_passing(note) && note->answer.retry_after_ms != 0 &&
            until_ms < note->answered_ms + note->answer.retry_after_ms)
            until_ms = note->answered_ms + note->answer.retry_after_ms;
    return (uint32_t)(until_ms - now_ms);
}

/* ---- What is waited for has changed ---- */

static bool is_of_paths(const struct mu__note *note)
{
    return note->question.kind == MU__ASK_FILE || note->question.kind == MU__ASK_FOLDER;
}

/* What is with the asker may have been read before the change: its pause is still to
 * come. */
static void hurry(struct mu__evaluation *e, uint64_t now_ms)
{
    struct mu__note *note;

    if (e->between) {
        if (e->rest_ms < e->again_ms)
            e->again_ms = e->rest_ms;
        e->hurried = false;
    }
    for (size_t i = 0; (note = mu__notes_at(e->notes, i)) != NULL; i++)
        if (!note->settled && !note->asked && note->due_ms > now_ms &&
            is_of_paths(note)) {
            wait_until(e, note, now_ms);
            e->hurried = false;
        }
}

void mu__evaluation_hurry(struct mu__evaluation *e)
{
    e->hurried = true;
    e->config.wake(e->config.owner);
}

/* ---- Rounds ---- */

static int begin_round(struct mu__evaluation *e, mu_error *ret_error)
{
    struct mu__notes *notes;
    int rv = mu__notes_new(e->config.asker, on_answered, e, &notes);

    if (rv != 0)
        return mu_error_set(ret_error, rv, "out of memory");
    mu__notes_free(e->notes);
    e->notes = notes;
    e->due_ms = UINT64_MAX;
    e->answered = 0;
    e->round_ms = now(e);
    e->between = false;
    e->news = true;
    return 0;
}

static int run(struct mu__evaluation *e, mu_error *ret_error)
{
    e->news = false;
    mu__notes_begin(e->notes, NULL);
    return e->config.run(e->config.owner, e->notes, ret_error);
}

static int give_up(const struct mu__evaluation *e, int code, mu_error *ret_error)
{
    char tried[32];

    mu__retry_time(now(e) - e->began_ms, tried, sizeof tried);
    return mu_error_set(ret_error, code, "%.460s; tried for %s", e->last.message, tried);
}

/* Of the round that the limit has cut off: why a question failed in it; "" when none
 * had. */
static const char *late_reason(const struct mu__evaluation *e)
{
    const struct mu__note *note;

    for (size_t i = 0; (note = mu__notes_at(e->notes, i)) != NULL; i++)
        if (is_passing(note) && note->reason[0] != '\0')
            return note->reason;
    return "";
}

/* That a round was cut off says less than what the last whole one came to. */
static void remember(struct mu__evaluation *e)
{
    const char *reason = late_reason(e);

    if (!e->ended) {
        e->concluded = e->last;
        return;
    }
    if (e->concluded.code == 0)
        return;
    if (reason[0] == '\0')
        e->last = e->concluded;
    else
        (void)mu_error_set(&e->last, e->last.code, "%.300s; since then: %.120s",
                           e->concluded.message, reason);
}

/* What a server asks for counts, whatever has changed elsewhere. */
static uint64_t rest_until(const struct mu__evaluation *e)
{
    uint64_t now_ms = now(e);
    uint64_t rest_ms = REST * (now_ms - e->round_ms);
    uint64_t wanted_ms = wanted_pause_ms(e);

    return now_ms + (rest_ms > wanted_ms ? rest_ms : wanted_ms);
}

/* The end of a round that failed: another one, or the conclusion. */
static int conclude(struct mu__evaluation *e, int rv, mu_error *ret_error,
                    uint64_t *ret_due_ms)
{
    bool passing = rv == -MU_EUNAVAILABLE || rv == -MU_EDEADLINE;
    struct mu__retry retry = {.most_ms = e->config.pause_most_ms, .end_ms = e->end_ms};

    if (e->config.timeout_ms == 0 || (!passing && !e->ended)) {
        *ret_error = e->last;
        return rv;
    }
    if (passing)
        remember(e);
    e->rounds++;
    if (!passing || !mu__retry_next(&retry, e->rounds, now(e),
                                    e->config.random(e->config.owner),
                                    wanted_pause_ms(e), &e->again_ms))
        return give_up(e, passing ? -MU_EDEADLINE : rv, ret_error);
    e->between = true;
    e->rest_ms = rest_until(e);
    *ret_due_ms = e->hurried ? now(e) : e->again_ms;
    say(e, &retry, e->last.message, NULL, e->config.rounds_before + e->rounds,
        e->again_ms);
    return MU__LATER;
}

/* No more time. The resolver concludes from what there is. */
static int force(struct mu__evaluation *e, mu_error *ret_error)
{
    uint64_t due_ms;
    int rv;

    e->ended = true;
    mu__notes_end(e->notes);
    rv = run(e, &e->last);
    if (rv == MU__LATER)
        rv = mu_error_set(&e->last, -MU_EDEADLINE, "it asks for more and more");
    return rv == 0 ? 0 : conclude(e, rv, ret_error, &due_ms);
}

int mu__evaluation_turn(struct mu__evaluation *e, mu_error *ret_error,
                        uint64_t *ret_due_ms)
{
    uint64_t now_ms = now(e);
    int rv;

    if (e->hurried && e->notes != NULL)
        hurry(e, now_ms);
    if (e->between && now_ms < e->again_ms) {
        *ret_due_ms = e->again_ms;
        return MU__LATER;
    }
    if (e->notes == NULL || e->between) {
        rv = begin_round(e, ret_error);
        if (rv != 0)
            return rv;
    }
    if (e->config.timeout_ms > 0 && now_ms >= e->end_ms)
        return force(e, ret_error);
    ask_again(e, now_ms);
    while (e->news && !first_answers_are_due(e)) {
        rv = run(e, &e->last);
        if (rv == 0)
            return 0;
        if (rv != MU__LATER)
            return conclude(e, rv, ret_error, ret_due_ms);
    }
    *ret_due_ms = next_due(e);
    return MU__LATER;
}
