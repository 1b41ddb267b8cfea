/* The notes of one evaluation. */
#include "resolver/engine/ask.h"

#include "resolver/engine/question.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROOM_FIRST = 16,            /* a power of two, as all that follow */
    LATE_MAX = 1000,            /* who asks for more after the end is not answered */
    SAID_MAX = 256,
    SAID_BYTES = 320
};

struct mu__notes {
    struct mu__asker *asker;
    void (*answered)(void *owner, struct mu__note *note);
    void *owner;
    struct mu__note **items;
    size_t count;
    size_t room;
    struct mu__note **buckets;  /* by what was asked; twice as many as there is room */
    bool has_ended;             /* nothing more is asked */
    unsigned late;              /* how often somebody wanted to */
    bool is_starved;            /* there was no memory for a question of this run */
    size_t pending;
    unsigned runs;
    const char *who;
    char **said;                /* "WHO: words" */
    size_t said_count;
    struct mu__answer no_memory;
    struct mu__answer too_many;
};

/* Answered within mu__ask. */
static bool is_at_once(enum mu__ask_kind kind)
{
    return kind == MU__ASK_VARIABLE || kind == MU__ASK_HOST_NAME ||
           kind == MU__ASK_CLOCK;
}

/* ---- A note ---- */

static void answer_done(struct mu__answer *answer)
{
    free(answer->data);
    *answer = (struct mu__answer){0};
}

/* What was kept of an answer is freed by the function in front of it. */
struct kept {
    void *parsed;
    void (*done)(void *parsed);
};

static void note_free(struct mu__note *note)
{
    struct kept *kept = note->answer.kept;

    if (kept != NULL && kept->done != NULL)
        kept->done(kept->parsed);
    free(kept);
    mu__question_done(&note->question);
    answer_done(&note->answer);
    free(note);
}

/* ---- Finding ---- */

static struct mu__note **bucket_of(const struct mu__notes *notes,
                                   const struct mu__question *question)
{
    return &notes->buckets[mu__question_hash(question) & (2 * notes->room - 1)];
}

static struct mu__note *find(const struct mu__notes *notes,
                             const struct mu__question *question)
{
    struct mu__note *note = notes->room == 0 ? NULL : *bucket_of(notes, question);

    while (note != NULL && !mu__question_same(&note->question, question))
        note = note->next;
    return note;
}

static void put_in_bucket(struct mu__notes *notes, struct mu__note *note)
{
    struct mu__note **bucket = bucket_of(notes, &note->question);

    note->next = *bucket;
    *bucket = note;
}

/* Room for one more. */
static bool reserve(struct mu__notes *notes)
{
    size_t room = notes->room == 0 ? ROOM_FIRST : 2 * notes->room;
    struct mu__note **buckets;
    struct mu__note **items;

    if (notes->count < notes->room)
        return true;
    items = realloc(notes->items, room * sizeof *items);
    if (items == NULL)
        return false;
    notes->items = items;
    buckets = calloc(2 * room, sizeof *buckets);
    if (buckets == NULL)
        return false;
    free(notes->buckets);
    notes->buckets = buckets;
    notes->room = room;
    for (size_t i = 0; i < notes->count; i++)
        put_in_bucket(notes, items[i]);
    return true;
}

static struct mu__note *add(struct mu__notes *notes, const struct mu__question *question)
{
    struct mu__note *note;

    if (!reserve(notes))
        return NULL;
    note = calloc(1, sizeof *note);
    if (note == NULL)
        return NULL;
    if (mu__question_copy(question, &note->question) != 0) {
        free(note);
        return NULL;
    }
    note->notes = notes;
    note->who = notes->who;
    notes->items[notes->count++] = note;
    put_in_bucket(notes, note);
    notes->pending++;
    return note;
}

/* ---- Asking ---- */

void mu__note_ask(struct mu__note *note)
{
    assert(!note->settled && !note->asked);
    answer_done(&note->answer);
    note->asked = true;
    note->due_ms = 0;
    note->notes->asker->ops->ask(note->notes->asker, note);
}

const struct mu__answer *mu__ask(struct mu__notes *notes,
                                 const struct mu__question *question)
{
    struct mu__note *note = find(notes, question);
    bool is_late = notes->has_ended && !is_at_once(question->kind);

    if (note == NULL && is_late && notes->late++ >= LATE_MAX)
        return NULL;
    if (note == NULL && notes->count >= MU__ASK_QUESTIONS_MAX &&
        !is_at_once(question->kind))
        return &notes->too_many;
    if (note == NULL) {
        note = notes->is_starved ? NULL : add(notes, question);
        notes->is_starved = note == NULL;
        if (note == NULL)
            return &notes->no_memory;
        if (is_late)
            mu__note_give_up(note);
        else
            mu__note_ask(note);
        assert(note->settled || !is_at_once(question->kind));
    }
    if (is_at_once(question->kind) && note->answer.code == -MU_ENOMEM)
        notes->is_starved = true;
    return note->settled ? &note->answer : NULL;
}

void mu__note_answer(struct mu__note *note)
{
    struct mu__notes *notes = note->notes;

    assert(note->asked && !note->settled);
    assert(note->answer.code != 0 || note->answer.data != NULL);
    note->asked = false;
    note->tries++;
    if (notes->answered == NULL || is_at_once(note->question.kind))
        mu__note_settle(note);
    else
        notes->answered(notes->owner, note);
}

void mu__note_settle(struct mu__note *note)
{
    assert(!note->settled && !note->asked);
    note->settled = true;
    note->due_ms = 0;
    note->notes->pending--;
}

void mu__note_give_up(struct mu__note *note)
{
    struct mu__notes *notes = note->notes;
    bool has_answer = !note->asked && note->tries > 0;
    char asked[256];

    assert(!note->settled);
    if (note->asked)
        notes->asker->ops->cancel(notes->asker, note);
    note->asked = false;
    if (!has_answer) {
        answer_done(&note->answer);
        mu__question_words(&note->question, asked, sizeof asked);
        note->answer.code = mu_error_set(
            &note->answer.error, -MU_EDEADLINE, "%s: no answer in time%s%s", asked,
            note->reason[0] == '\0' ? "" : "; the last try: ", note->reason);
    }
    mu__note_settle(note);
}

void mu__notes_end(struct mu__notes *notes)
{
    notes->has_ended = true;
    for (size_t i = 0; i < notes->count; i++)
        if (!notes->items[i]->settled)
            mu__note_give_up(notes->items[i]);
}

const char *mu__ask_variable(struct mu__notes *notes, const char *name)
{
    const struct mu__question question = {.kind = MU__ASK_VARIABLE, .name = name};
    const struct mu__answer *answer = mu__ask(notes, &question);

    return answer->code == 0 ? answer->data : NULL;
}

const struct mu__answer *mu__ask_file(struct mu__notes *notes, const char *path)
{
    const struct mu__question question = {.kind = MU__ASK_FILE, .name = path};

    return mu__ask(notes, &question);
}

/* A list of pods is read in pages of some megabytes each: the bytes of all of them are
 * not to stay beside what was made of them. */
static void drop_bytes(struct mu__answer *answer)
{
    char *less = realloc(answer->data, 1);

    answer->data = less == NULL ? answer->data : less;
    answer->data[0] = '\0';
}

void mu__answer_keep(const struct mu__answer *answer, void *parsed,
                     void (*done)(void *parsed))
{
    struct mu__answer *own = (struct mu__answer *)(uintptr_t)answer;
    struct kept *kept = malloc(sizeof *kept);

    assert(answer->parsed == NULL);
    if (kept == NULL) {
        done(parsed);
        return;
    }
    *kept = (struct kept){parsed, done};
    own->kept = kept;
    own->parsed = parsed;
    drop_bytes(own);
}

/* ---- Notes as a whole ---- */

int mu__notes_new(struct mu__asker *asker,
                  void (*answered)(void *owner, struct mu__note *note), void *owner,
                  struct mu__notes **ret_notes)
{
    struct mu__notes *notes = calloc(1, sizeof *notes);

    if (notes == NULL)
        return -MU_ENOMEM;
    notes->asker = asker;
    notes->answered = answered;
    notes->owner = owner;
    notes->no_memory.code =
        mu_error_set(&notes->no_memory.error, -MU_ENOMEM, "out of memory");
    notes->too_many.code =
        mu_error_set(&notes->too_many.error, -MU_EEXHAUSTED,
                     "expected at most %d questions of one evaluation",
                     (int)MU__ASK_QUESTIONS_MAX);
    *ret_notes = notes;
    return 0;
}

static void forget_said(struct mu__notes *notes)
{
    for (size_t i = 0; i < notes->said_count; i++)
        free(notes->said[i]);
    notes->said_count = 0;
}

void mu__notes_free(struct mu__notes *notes)
{
    if (notes == NULL)
        return;
    for (size_t i = 0; i < notes->count; i++)
        if (notes->items[i]->asked)
            notes->asker->ops->cancel(notes->asker, notes->items[i]);
    for (size_t i = 0; i < notes->count; i++)
        note_free(notes->items[i]);
    forget_said(notes);
    free(notes->said);
    free(notes->buckets);
    free(notes->items);
    free(notes);
}

void mu__notes_begin(struct mu__notes *notes, const char *who)
{
    if (who == NULL) {
        forget_said(notes);
        notes->runs++;
        notes->is_starved = false;
    }
    notes->who = who;
}

bool mu__notes_starved(const struct mu__notes *notes)
{
    return notes->is_starved;
}

unsigned mu__notes_runs(const struct mu__notes *notes)
{
    return notes->runs;
}

size_t mu__notes_pending(const struct mu__notes *notes)
{
    return notes->pending;
}

struct mu__note *mu__notes_at(const struct mu__notes *notes, size_t i)
{
    return i < notes->count ? notes->items[i] : NULL;
}

/* What there is no memory or no room for is not said. */
void mu__notes_say(struct mu__notes *notes, const char *format, ...)
{
    char line[SAID_BYTES];
    va_list arguments;
    int used;

    if (notes->said == NULL)
        notes->said = calloc(SAID_MAX, sizeof *notes->said);
    if (notes->said == NULL || notes->said_count == SAID_MAX)
        return;
    used = snprintf(line, sizeof line, "%s: ", notes->who == NULL ? "" : notes->who);
    va_start(arguments, format);
    (void)vsnprintf(line + used, sizeof line - (size_t)used, format, arguments);
    va_end(arguments);
    notes->said[notes->said_count] = strdup(line);
    notes->said_count += notes->said[notes->said_count] != NULL;
}

const char *mu__notes_said(const struct mu__notes *notes, size_t i)
{
    return i < notes->said_count ? notes->said[i] : NULL;
}
