#include "tests/support/slow_asker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TURNS_MAX = 10000, BEGIN_MS = 5000 };

/* ---- Answers ---- */

/* The outcome of try number `tries`, from 0. */
static void outcome_of(const char *outcomes, unsigned tries, char *out)
{
    for (; tries > 0 && strchr(outcomes, ' ') != NULL; tries--)
        outcomes = strchr(outcomes, ' ') + 1;
    (void)snprintf(out, 32, "%.*s", (int)strcspn(outcomes, " "), outcomes);
}

static void give_failure(struct mu__note *note, int code, const char *words)
{
    char asked[256];

    mu__question_words(&note->question, asked, sizeof asked);
    note->answer.code = mu_error_set(&note->answer.error, code, "%s: %s", asked, words);
}

static void give(struct mu__note *note, const char *outcome)
{
    static const struct {
        const char *word;
        int code;
        const char *words;
    } failures[] = {
        {"refused", -MU_EUNAVAILABLE, "connection refused"},
        {"missing", -MU_ENOTFOUND, "not there"},
        {"denied", -MU_EPERMISSION, "not permitted"},
    };

    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++)
        if (strcmp(failures[i].word, outcome) == 0) {
            give_failure(note, failures[i].code, failures[i].words);
            return;
        }
    note->answer.data = strdup("{}");
    if (note->answer.data == NULL)
        note->answer.code = -MU_ENOMEM;
    note->answer.size = 2;
    if (strncmp(outcome, "wait:", 5) == 0) {
        note->answer.status = 503;
        note->answer.retry_after_ms = (uint32_t)strtoul(outcome + 5, NULL, 10);
    } else if (strcmp(outcome, "ok") != 0) {
        note->answer.status = (int)strtol(outcome, NULL, 10);
    }
}

static const struct slow_row *row_of(const struct slow_asker *asker,
                                     const struct mu__note *note)
{
    const struct slow_row *row = asker->rows;

    while (row->name != NULL && strcmp(row->name, note->question.name) != 0)
        row++;
    if (row->name == NULL)
        fail_msg("nobody thought of \"%s\"", note->question.name);
    return row;
}

static void answer(struct slow_asker *asker, struct mu__note *note)
{
    char outcome[32];

    outcome_of(row_of(asker, note)->outcomes, note->tries, outcome);
    give(note, outcome);
    mu__note_answer(note);
}

static void on_ask(struct mu__asker *base, struct mu__note *note)
{
    struct slow_asker *asker = (struct slow_asker *)base;
    const struct slow_row *row = row_of(asker, note);
    char outcome[32];

    asker->asked++;
    outcome_of(row->outcomes, note->tries, outcome);
    if (row->takes_ms == 0 && strcmp(outcome, "never") != 0) {
        answer(asker, note);
        return;
    }
    assert_true(asker->waiting_count < 64);
    asker->waiting[asker->waiting_count].note = note;
    asker->waiting[asker->waiting_count].due_ms =
        strcmp(outcome, "never") == 0 ? UINT64_MAX : asker->now_ms + row->takes_ms;
    asker->waiting_count++;
}

static void on_cancel(struct mu__asker *base, struct mu__note *note)
{
    struct slow_asker *asker = (struct slow_asker *)base;
    unsigned i = 0;

    while (i < asker->waiting_count && asker->waiting[i].note != note)
        i++;
    assert_true(i < asker->waiting_count);
    asker->waiting[i] = asker->waiting[--asker->waiting_count];
    asker->cancelled++;
}

/* ---- The evaluation's world ---- */

static int on_run(void *owner, struct mu__notes *notes, mu_error *ret_error)
{
    struct slow_asker *asker = owner;

    asker->runs++;
    return asker->run(asker, notes, ret_error);
}

static void on_wake(void *owner)
{
    ((struct slow_asker *)owner)->woken = true;
}

static void on_progress(void *owner, const char *line)
{
    struct slow_asker *asker = owner;
    size_t used = strlen(asker->lines);

    (void)snprintf(asker->lines + used, sizeof asker->lines - used, "[%llu] %s\n",
                   (unsigned long long)(asker->now_ms - BEGIN_MS), line);
}

uint64_t slow_reading_ms;
uint32_t slow_pause_most_ms;
int64_t slow_whole_ms;
unsigned slow_rounds_before;
uint64_t slow_hurry_ms;

static uint64_t on_now(void *owner)
{
    struct slow_asker *asker = owner;

    asker->now_ms += slow_reading_ms;
    return asker->now_ms;
}

static void go_to(struct slow_asker *asker, uint64_t due_ms)
{
    assert_true(due_ms >= asker->now_ms || slow_reading_ms > 0);
    if (due_ms > asker->now_ms)
        asker->now_ms = due_ms;
}

/* The longest pause: its half, and the other half. */
static uint64_t on_random(void *owner)
{
    (void)owner;
    return 0;
}

/* The place of the first that is answered; 0 when there is none. */
static unsigned first_waiting(const struct slow_asker *asker)
{
    unsigned first = 0;

    for (unsigned i = 1; i < asker->waiting_count; i++)
        if (asker->waiting[i].due_ms < asker->waiting[first].due_ms)
            first = i;
    return first;
}

/* Whether the change comes before `due_ms` and all answers. */
static bool hurries(struct slow_asker *asker, uint64_t due_ms)
{
    uint64_t at_ms = BEGIN_MS + slow_hurry_ms;

    if (asker->waiting_count > 0 &&
        asker->waiting[first_waiting(asker)].due_ms < due_ms)
        due_ms = asker->waiting[first_waiting(asker)].due_ms;
    if (slow_hurry_ms == 0 || at_ms >= due_ms)
        return false;
    go_to(asker, at_ms);
    slow_hurry_ms = 0;
    mu__evaluation_hurry(asker->evaluation);
    return true;
}

/* Go to the next answer, or to `due_ms`. */
static void advance(struct slow_asker *asker, uint64_t due_ms)
{
    unsigned first = first_waiting(asker);

    if (hurries(asker, due_ms)) {
        assert_true(asker->woken);
        return;
    }
    if (asker->waiting_count > 0 && asker->waiting[first].due_ms <= due_ms) {
        struct mu__note *note = asker->waiting[first].note;

        assert_true(asker->waiting[first].due_ms != UINT64_MAX);
        go_to(asker, asker->waiting[first].due_ms);
        asker->waiting[first] = asker->waiting[--asker->waiting_count];
        answer(asker, note);
        assert_true(asker->woken);
        return;
    }
    assert_true(due_ms != UINT64_MAX);
    go_to(asker, due_ms);
}

int slow_evaluate(struct slow_asker *asker, const struct slow_row *rows,
                  int (*run)(struct slow_asker *asker, struct mu__notes *notes,
                             mu_error *ret_error),
                  int64_t timeout_ms, mu_error *ret_error)
{
    static const struct mu__asker_ops ops = {on_ask, on_cancel};
    const struct mu__evaluation_config config = {
        .asker = &asker->asker,
        .run = on_run,
        .wake = on_wake,
        .progress = on_progress,
        .now_ms = on_now,
        .random = on_random,
        .owner = asker,
        .timeout_ms = timeout_ms,
        .whole_ms = slow_whole_ms,
        .rounds_before = slow_rounds_before,
        .pause_most_ms = slow_pause_most_ms,
    };
    int rv;

    *asker = (struct slow_asker){
        .asker.ops = &ops, .rows = rows, .now_ms = BEGIN_MS, .run = run};
    rv = mu__evaluation_new(&config, &asker->evaluation);
    if (rv != 0)
        return mu_error_set(ret_error, rv, "out of memory");
    for (unsigned i = 0; i < TURNS_MAX; i++) {
        uint64_t due_ms = 0;

        asker->woken = false;
        rv = mu__evaluation_turn(asker->evaluation, ret_error, &due_ms);
        if (rv != MU__LATER)
            return rv;
        if (!asker->woken)
            advance(asker, due_ms);
    }
    fail_msg("%d turns, and it has not ended", (int)TURNS_MAX);
    return rv;
}

void slow_done(struct slow_asker *asker)
{
    mu__evaluation_free(asker->evaluation);
    assert_int_equal(asker->waiting_count, 0);
}
