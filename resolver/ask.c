/* The notes of one evaluation. */
#include "resolver/ask.h"

#include "resolver/json.h"
#include "resolver/retry.h"
#include "resolver/text.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROOM_FIRST = 16,            /* a power of two, as all that follow */
    LATE_MAX = 1000,            /* who asks for more after the end is not answered */
    SAID_MAX = 256,
    SAID_BYTES = 320,
    SECRET_BYTES = 8            /* a shorter word of a header may stand anywhere */
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
};

/* The kinds of questions: what they are called, and whether they are answered at once. */
static const struct {
    const char *word;
    bool at_once;
} kinds[MU__ASK_KINDS] = {
    [MU__ASK_VARIABLE] = {"variable ", true},
    [MU__ASK_HOST_NAME] = {"the host's name", true},
    [MU__ASK_CLOCK] = {"the time", true},
    [MU__ASK_FILE] = {"file ", false},
    [MU__ASK_FOLDER] = {"folder ", false},
    [MU__ASK_ADDRESSES] = {"addresses of ", false},
    [MU__ASK_SERVICES] = {"SRV records of ", false},
    [MU__ASK_HTTP] = {"", false},
    [MU__ASK_SIGNATURE] = {"signature ", false},
    [MU__ASK_WRITE] = {"writing file ", false},
    [MU__ASK_REMOVE] = {"removing file ", false},
};

/* ---- A question's copy ---- */

static bool copy_text(const char *text, const char **ret_copy)
{
    *ret_copy = text == NULL ? NULL : strdup(text);
    return text == NULL || *ret_copy != NULL;
}

static void headers_free(const char *const *headers)
{
    for (size_t i = 0; headers != NULL && headers[i] != NULL; i++)
        free((void *)(uintptr_t)headers[i]);
    free((void *)(uintptr_t)headers);
}

static bool copy_headers(const char *const *headers, const char *const **ret_copy)
{
    size_t count = 0;
    char **copy;

    *ret_copy = NULL;
    if (headers == NULL)
        return true;
    while (headers[count] != NULL)
        count++;
    copy = calloc(count + 1, sizeof *copy);
    *ret_copy = (const char *const *)copy;
    for (size_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = strdup(headers[i]);
        if (copy[i] == NULL)
            return false;
    }
    return copy != NULL;
}

static void text_free(const char *text)
{
    free((void *)(uintptr_t)text);
}

static void tls_free(const struct mu__ask_tls *tls)
{
    if (tls == NULL)
        return;
    text_free(tls->ca);
    text_free(tls->certificate);
    text_free(tls->key);
    text_free(tls->server_name);
    free((void *)(uintptr_t)tls);
}

static bool copy_tls(const struct mu__ask_tls *tls, const struct mu__ask_tls **ret_copy)
{
    struct mu__ask_tls *copy;

    *ret_copy = NULL;
    if (tls == NULL)
        return true;
    copy = calloc(1, sizeof *copy);
    *ret_copy = copy;
    if (copy == NULL)
        return false;
    copy->insecure = tls->insecure;
    return copy_text(tls->ca, &copy->ca) &&
           copy_text(tls->certificate, &copy->certificate) &&
           copy_text(tls->key, &copy->key) &&
           copy_text(tls->server_name, &copy->server_name);
}

static bool copy_body(const struct mu__question *question, struct mu__question *copy)
{
    void *body;

    copy->body = NULL;
    if (question->body == NULL)
        return true;
    body = malloc(question->body_size + 1);
    if (body != NULL)
        memcpy(body, question->body, question->body_size);
    copy->body = body;
    return body != NULL;
}

/* What could be copied is in *copy also after a failure. */
static bool copy_question(const struct mu__question *question, struct mu__question *copy)
{
    bool whole = true;

    *copy = *question;
    whole &= copy_text(question->name == NULL ? "" : question->name, &copy->name);
    whole &= copy_text(question->method, &copy->method);
    whole &= copy_text(question->header, &copy->header);
    whole &= copy_text(question->secret, &copy->secret);
    whole &= copy_text(question->dns_server, &copy->dns_server);
    whole &= copy_headers(question->headers, &copy->headers);
    whole &= copy_body(question, copy);
    whole &= copy_tls(question->tls, &copy->tls);
    return whole;
}

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
    text_free(note->question.name);
    text_free(note->question.method);
    text_free(note->question.header);
    text_free(note->question.secret);
    text_free(note->question.dns_server);
    headers_free(note->question.headers);
    free((void *)(uintptr_t)note->question.body);
    tls_free(note->question.tls);
    answer_done(&note->answer);
    free(note);
}

/* ---- Finding ---- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_body(const struct mu__question *a, const struct mu__question *b)
{
    if (a->body == NULL || b->body == NULL)
        return a->body == b->body;
    return a->body_size == b->body_size && memcmp(a->body, b->body, a->body_size) == 0;
}

static bool same(const struct mu__question *a, const struct mu__question *b)
{
    return a->kind == b->kind && a->again == b->again &&
           same_text(a->name, b->name == NULL ? "" : b->name) &&
           same_text(a->method, b->method) && same_text(a->header, b->header) &&
           same_text(a->dns_server, b->dns_server) && same_body(a, b);
}

/* FNV-1a of kind, name and `again`: of the rest few differ where these are the same. */
static struct mu__note **bucket_of(const struct mu__notes *notes,
                                   const struct mu__question *question)
{
    uint64_t hash = (UINT64_C(14695981039346656037) ^ (unsigned)question->kind ^
                     ((uint64_t)question->again << 8)) * UINT64_C(1099511628211);

    for (const char *at = question->name; at != NULL && *at != '\0'; at++)
        hash = (hash ^ (uint8_t)*at) * UINT64_C(1099511628211);
    return &notes->buckets[(hash ^ hash >> 32) & (2 * notes->room - 1)];
}

static struct mu__note *find(const struct mu__notes *notes,
                             const struct mu__question *question)
{
    struct mu__note *note = notes->room == 0 ? NULL : *bucket_of(notes, question);

    while (note != NULL && !same(&note->question, question))
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
    if (!copy_question(question, &note->question)) {
        note_free(note);
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

    bool is_late = notes->has_ended && !kinds[question->kind].at_once;

    if (note == NULL && is_late && notes->late++ >= LATE_MAX)
        return NULL;
    if (note == NULL) {
        note = notes->is_starved ? NULL : add(notes, question);
        notes->is_starved = note == NULL;
        if (note == NULL)
            return &notes->no_memory;
        if (is_late)
            mu__note_give_up(note);
        else
            mu__note_ask(note);
        assert(note->settled || !kinds[question->kind].at_once);
    }
    return note->settled ? &note->answer : NULL;
}

void mu__note_answer(struct mu__note *note)
{
    struct mu__notes *notes = note->notes;

    assert(note->asked && !note->settled);
    assert(note->answer.code != 0 || note->answer.data != NULL);
    note->asked = false;
    note->tries++;
    if (notes->answered == NULL || kinds[note->question.kind].at_once)
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

/* ---- Words ---- */

/* A url without user and query: those may be secret. */
static void url_words(const char *url, char *out, size_t size)
{
    const char *host = strstr(url, "://");
    const char *end = url + strcspn(url, "?#");
    const char *at;
    size_t scheme;

    host = host == NULL || host > end ? url : host + 3;
    scheme = (size_t)(host - url);
    for (at = host; at < end && *at != '/'; at++)
        if (*at == '@')
            host = at + 1;
    (void)snprintf(out, size, "%.*s%.*s", (int)scheme, url, (int)(end - host), host);
}

void mu__question_words(const struct mu__question *question, char *out, size_t size)
{
    const char *method = question->method == NULL ? "GET" : question->method;
    const char *name = question->name == NULL ? "" : question->name;
    char url[220];

    if (question->kind != MU__ASK_HTTP) {
        (void)snprintf(out, size, "%s%.200s", kinds[question->kind].word, name);
        return;
    }
    url_words(name, url, sizeof url);
    (void)snprintf(out, size, "%s%s%s", strcmp(method, "GET") == 0 ? "" : method,
                   strcmp(method, "GET") == 0 ? "" : " ", url);
}

/* An error's words without the name of what was asked, with which they begin. */
static const char *bare_words(const struct mu__note *note)
{
    const char *words = note->answer.error.message;
    char asked[256];
    size_t length;

    mu__question_words(&note->question, asked, sizeof asked);
    length = strlen(asked);
    if (strncmp(words, asked, length) == 0 && strncmp(words + length, ": ", 2) == 0)
        return words + length + 2;
    return words;
}

static bool is_missing(const struct mu__note *note)
{
    return note->answer.code == -MU_ENOTFOUND && note->question.kind != MU__ASK_HTTP;
}

void mu__note_reason(const struct mu__note *note, char *out, size_t size)
{
    if (is_missing(note))
        (void)snprintf(out, size, "%s",
                       note->question.kind == MU__ASK_VARIABLE ? "not set" : "not there");
    else if (note->answer.code != 0)
        (void)snprintf(out, size, "%s", bare_words(note));
    else
        (void)snprintf(out, size, "status %d", note->answer.status);
}

static void outcome_words(const struct mu__note *note, char *out, size_t size)
{
    const struct mu__answer *answer = &note->answer;

    if (!note->settled)
        (void)snprintf(out, size, "not answered%s%s",
                       note->reason[0] == '\0' ? "" : ", the last try: ", note->reason);
    else if (answer->code != 0)
        mu__note_reason(note, out, size);
    else if (note->question.kind == MU__ASK_HTTP)
        (void)snprintf(out, size, "status %d, %zu bytes", answer->status, answer->size);
    else if (note->question.kind == MU__ASK_VARIABLE)
        (void)snprintf(out, size, "set, %zu bytes", answer->size);
    else
        (void)snprintf(out, size, "%zu bytes", answer->size);
}

void mu__note_words(const struct mu__note *note, char *out, size_t size)
{
    char asked[256];
    char outcome[MU__QUOTE_BYTES + 512];
    char tries[32] = "";

    mu__question_words(&note->question, asked, sizeof asked);
    outcome_words(note, outcome, sizeof outcome);
    if (note->tries > 1)
        (void)snprintf(tries, sizeof tries, ", after %u tries", note->tries);
    (void)snprintf(out, size, "%s: %s%s", asked, outcome, tries);
}

/* ---- Problems ---- */

static const struct {
    int low;
    int high;
    int code;
    const char *words;
} statuses[] = {
    {300, 399, -MU_EINVALID, "a redirect, which is not followed"},
    {400, 400, -MU_EINVALID, "the server does not accept the request"},
    {401, 401, -MU_EUNAUTHENTICATED, "the server does not accept the credentials"},
    {403, 403, -MU_EPERMISSION, "the credentials do not permit this"},
    {404, 404, -MU_ENOTFOUND, "there is no such thing"},
    {408, 408, -MU_EUNAVAILABLE, "the server has waited too long for the request"},
    {429, 429, -MU_EUNAVAILABLE, "too many requests"},
    {501, 501, -MU_EUNIMPLEMENTED, "the server cannot do this"},
    {500, 599, -MU_EUNAVAILABLE, "the server has failed"},
    {INT_MIN, INT_MAX, -MU_EINVALID, "unexpected"},
};

/* Whether a text has a word of this header's value, a token say. */
static bool has_word_of(const char *text, const char *header)
{
    const char *at = header + strcspn(header, ":");
    char word[256];

    if (strncmp(header, "Accept:", 7) == 0 || strncmp(header, "Content-Type:", 13) == 0)
        return false;
    while (*at != '\0') {
        size_t size = strcspn(at += strspn(at, ": "), " ");

        (void)snprintf(word, sizeof word, "%.*s", (int)(size < 255 ? size : 255), at);
        if (size >= SECRET_BYTES && strstr(text, word) != NULL)
            return true;
        at += size;
    }
    return false;
}

static bool has_header(const char *text, const struct mu__question *question)
{
    for (const char *const *at = question->headers; at != NULL && *at != NULL; at++)
        if (has_word_of(text, *at))
            return true;
    return false;
}

static const struct mu__note *note_of(const struct mu__answer *answer)
{
    return (const struct mu__note *)(const void *)((const char *)answer -
                                                   offsetof(struct mu__note, answer));
}

/* {"error": {"message": ...}} of Google's APIs, {"message": ...} of Kubernetes. "" when
 * there is none, or it repeats what is secret. */
static void server_words(const struct mu__answer *answer, char *out, size_t size)
{
    char quoted[MU__QUOTE_BYTES * 2];
    const cJSON *message;
    cJSON *root = NULL;

    out[0] = '\0';
    if (mu__json_parse(answer->data, answer->size, "", NULL, &root) != 0)
        return;
    message = cJSON_GetObjectItemCaseSensitive(root, "error");
    message = cJSON_GetObjectItemCaseSensitive(cJSON_IsObject(message) ? message : root,
                                               "message");
    if (cJSON_IsString(message) &&
        !has_header(message->valuestring, &note_of(answer)->question)) {
        mu__quote(quoted, sizeof quoted, message->valuestring,
                  strlen(message->valuestring));
        (void)snprintf(out, size, "; it says %s", quoted);
    }
    cJSON_Delete(root);
}

static void pause_words(const struct mu__answer *answer, char *out, size_t size)
{
    char time[32];

    mu__retry_time(answer->retry_after_ms, time, sizeof time);
    if (answer->retry_after_ms != 0)
        (void)snprintf(out, size, "; it wants to be left alone for %s", time);
}

int mu__answer_check(const struct mu__answer *answer, const char *what,
                     mu_error *ret_error)
{
    char said[MU__QUOTE_BYTES * 2 + 16];
    char pause[80] = "";
    size_t i = 0;

    if (answer->code != 0)
        return mu_error_set(ret_error, answer->code, "%s: %.400s", what,
                            answer->error.message);
    if (answer->status == 0 || (answer->status >= 200 && answer->status <= 299))
        return 0;
    while (answer->status < statuses[i].low || answer->status > statuses[i].high)
        i++;
    server_words(answer, said, sizeof said);
    pause_words(answer, pause, sizeof pause);
    return mu_error_set(ret_error, statuses[i].code, "%s: status %d: %s%s%s", what,
                        answer->status, statuses[i].words, said, pause);
}
