/* What resolvers ask of the world, and the notes in which the answers stand.
 *
 * A resolver is a pure function that asks and concludes. mu__ask() gives the answer, or
 * NULL when it is not known yet; then the resolver returns MU__LATER, and is called again
 * from its beginning once everything that it has asked is answered. A question that was
 * asked before is answered from the notes, so whatever a resolver does, it does it again
 * in the same way; what is independent is asked first and waited for together:
 *
 *     a = mu__ask(notes, &first);
 *     b = mu__ask(notes, &second);
 *     if (a == NULL || b == NULL)
 *         return MU__LATER;
 *
 * One evaluation has one set of notes: nothing is remembered from one to the next, and
 * resolvers of a union or an auto-detection share what they find out. The notes are also
 * the record of what was tried with what result. Tries that fail for now are made again
 * by the evaluation, not by the resolver. What is secret (a header, a body, an answer's
 * content) is never in a message.
 *
 * Who answers: resolver/engine/uv/asker.c from the real world, tests/support/script.h
 * from a table. */
#ifndef MU_RESOLVER_ASK_H
#define MU_RESOLVER_ASK_H

#include <muster/error.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A resolver's "I cannot know yet"; no other error of a resolver has this code. */
#define MU__LATER (-MU_EAGAIN)

enum mu__ask_kind {
    /* Answered at once, within mu__ask. */
    MU__ASK_VARIABLE,   /* an environment variable. Empty counts as absent */
    MU__ASK_HOST_NAME,  /* of this machine; no name */
    MU__ASK_CLOCK,      /* seconds since 1970 as digits; no name */
    /* Maybe later. */
    MU__ASK_FILE,       /* the content of a file, by its path */
    MU__ASK_FOLDER,     /* the names in a folder, one each line, sorted by bytes */
    MU__ASK_ADDRESSES,  /* of a host name: numeric, one each line, sorted, each once; IPv4
                           before IPv6 */
    MU__ASK_SERVICES,   /* SRV records of a name: "PRIORITY WEIGHT PORT TARGET" each line,
                           by priority, then target and port */
    MU__ASK_HTTP,       /* a url */
    MU__ASK_SIGNATURE,  /* RS256 of `body` with `secret`, a private key as PEM; name:
                           "RS256" */
    MU__ASK_WRITE,      /* make `body` the content of a file, by its path: whole or not at
                           all; its folder must be there. The answer is empty */
    MU__ASK_REMOVE,     /* take a file away, by its path; the answer is empty */
    MU__ASK_PROGRAM,    /* run it, by its path or, without a slash, its name in PATH; what
                           it prints. `body`: texts with a zero byte behind each, "aTEXT"
                           an argument, "vNAME=VALUE" a variable. -MU_EPRECONDITION: it
                           has failed */
    MU__ASK_LIBRARY,    /* load libmuster-cloud (resolver/engine/cloud.h); the answer is
                           empty */
    MU__ASK_CALL,       /* run `call`, a function of the resolver `name`, on a thread; the
                           answer is empty: what was found is in the call */
    MU__ASK_KINDS
};

/* Of one round: one for each task of the largest cluster, and some more. */
enum { MU__ASK_QUESTIONS_MAX = 70000 };

/* Defaults where a question has 0. */
enum {
    MU__ASK_TIMEOUT_MS = 10000,           /* of one try */
    MU__ASK_BYTES_MAX = 8 << 20         /* of one answer */
};

/* How an https server is known, and how it knows us; each may be NULL. Texts of PEM. */
struct mu__ask_tls {
    const char *ca;             /* trusted instead of the system's */
    const char *certificate;    /* ours, */
    const char *key;            /* and its key */
    const char *server_name;    /* that its certificate must have instead of the url's */
    bool insecure;              /* whoever it is: only when a person asked for it */
};

/* A function of the program's own, which may block: with what it needs, and room for what
 * it finds. Counted, since its thread may go on when nobody waits for it any more. */
struct mu__ask_call {
    void (*run)(struct mu__ask_call *call);
    void (*free)(struct mu__ask_call *call);    /* the last one has let go; any thread */
    atomic_uint refs;
    atomic_int phase;       /* of ask_call.c */
};

/* One holder, who lets go of it with mu__ask_call_unref. Any thread, as all of these. */
void mu__ask_call_init(struct mu__ask_call *call, void (*run)(struct mu__ask_call *call),
                       void (*free)(struct mu__ask_call *call));
void mu__ask_call_ref(struct mu__ask_call *call);
void mu__ask_call_unref(struct mu__ask_call *call);

/* The asker's: run it, unless it was called off. */
void mu__ask_call_run(struct mu__ask_call *call);

/* Nobody wants it: if it has not begun, it never does. True: it runs now. */
bool mu__ask_call_off(struct mu__ask_call *call);

/* Whether it has begun, and not returned; whether it has returned: only then what it has
 * found may be looked at. */
bool mu__ask_call_runs(const struct mu__ask_call *call);
bool mu__ask_call_has_run(const struct mu__ask_call *call);

/* All texts are the caller's, during the call. Two questions are the same, and have one
 * answer, when all of their fields are: also headers and what else is secret, and how
 * long and how often may be tried (resolver/engine/question.h). */
struct mu__question {
    enum mu__ask_kind kind;
    const char *name;
    unsigned again;             /* 0. Another number asks anew: for a new token, say */
    uint32_t timeout_ms;
    size_t bytes_max;           /* of the answer; a larger one is -MU_EEXHAUSTED */
    unsigned tries;             /* 1: one; 0: as many as the evaluation's time allows */
    bool missing_is_passing;    /* what is not found (a name, a file, status 404) may come
                                   to be: try again */

    bool new_only;              /* of WRITE: a file that is there already stays as it is:
                                   -MU_EEXISTS */

    /* Of HTTP, SIGNATURE and (the body) WRITE and PROGRAM alone. */
    const char *method;         /* NULL: "GET" */
    const char *const *headers; /* "Name: value", ended by NULL; may be NULL */
    const char *header;         /* name of one header of the answer that is wanted, too */
    const void *body;
    size_t body_size;
    const char *secret;
    const struct mu__ask_tls *tls;
    uint32_t keep_ms;           /* 0. An answer with status 200, or what a program has
                                   printed, may be given again for so long, to other
                                   evaluations, too; `again` takes a new one */
    bool takes_proxy;           /* the environment's https_proxy counts */
    const char *dns_server;     /* ADDRESSES, SERVICES: "127.0.0.1:53" in place of the
                                   system's; NULL */
    struct mu__ask_call *call;  /* of CALL */
};

struct mu__answer {
    int code;           /* 0; -MU_ENOTFOUND: no such variable, file, name (404 is an
                           answer); -MU_EUNAVAILABLE, -MU_EDEADLINE, -MU_EEXHAUSTED,
                           -MU_EPERMISSION, -MU_EINVALID, with words that name it */
    mu_error error;
    int status;         /* of HTTP: any that is not tried again any more */
    char content_type[64];      /* "application/json", without parameters, small letters;
                                   "" when there is none */
    uint32_t retry_after_ms;    /* how long the server asks to wait; 0: it does not */
    char header[256];           /* the one that was wanted, "" when absent */
    char *data;         /* never NULL when code is 0; a zero byte stands behind it */
    size_t size;
    void *parsed;       /* what the resolver has made of it: see mu__answer_keep */
    void *kept;         /* the notes' */
};

struct mu__notes;
struct mu__note;

/* The answer, owned by the notes and valid as long as they are; NULL: not known yet. When
 * there is no memory it answers with -MU_ENOMEM, and so it does then for all that is new
 * in the same run: who has asked before all at once may ask again one by one. Who asks on
 * and on is answered with -MU_EEXHAUSTED, after MU__ASK_QUESTIONS_MAX. */
const struct mu__answer *mu__ask(struct mu__notes *notes,
                                 const struct mu__question *question);

/* Short forms. The text of a variable, NULL when it is absent; it is answered at once. */
const char *mu__ask_variable(struct mu__notes *notes, const char *name);
const struct mu__answer *mu__ask_file(struct mu__notes *notes, const char *path);

/* Keep what was parsed of an answer, so that the next call of the resolver finds it in
 * answer->parsed; `done` frees it with the notes. Takes `parsed`; once for each answer.
 * The bytes go then: answer->data is "", and answer->size still says how many there
 * were. When there is no memory to keep it, `parsed` is freed and the bytes stay. */
void mu__answer_keep(const struct mu__answer *answer, void *parsed,
                     void (*done)(void *parsed));

/* Put into words what was found: "TF_CONFIG is not set". Part of what was tried; said
 * again when the resolver runs again. */
void mu__notes_say(struct mu__notes *notes, const char *format, ...) MU_PRINTF(2, 3);

/* ---- For those who run resolvers ---- */

/* Who answers. `ask` may call mu__note_answer within it, and does so for those that are
 * answered at once; else later, on the same thread. */
struct mu__asker {
    const struct mu__asker_ops *ops;
};

struct mu__asker_ops {
    void (*ask)(struct mu__asker *asker, struct mu__note *note);

    /* Nobody wants the answer any more; mu__note_answer is not called for it. Of those
     * that were asked and are not answered. */
    void (*cancel)(struct mu__asker *asker, struct mu__note *note);
};

/* One question and its answer. */
struct mu__note {
    struct mu__question question;   /* a copy, with all its texts */
    struct mu__answer answer;
    bool settled;               /* the answer is final */
    bool asked;                 /* it is with the asker */
    unsigned tries;             /* how often it was answered */
    uint64_t due_ms;            /* the evaluation's: when it is asked again; 0: not */
    uint64_t answered_ms;       /* the evaluation's: when it was answered last */
    char reason[160];           /* why the last try failed that was not the final one */
    const char *who;            /* the resolver that asked first, static */
    struct mu__note *next;      /* in its bucket */
    void *own;                  /* the asker's */
    struct mu__notes *notes;
};

/* `asker` is borrowed. `answered` is called with each answer of those kinds that may come
 * later, and decides: mu__note_settle, at once or later, or mu__note_ask to try again.
 * NULL: all answers are final. */
int mu__notes_new(struct mu__asker *asker,
                  void (*answered)(void *owner, struct mu__note *note), void *owner,
                  struct mu__notes **ret_notes);

/* Cancels what is under way. NULL is fine. */
void mu__notes_free(struct mu__notes *notes);

/* The asker's: fill in note->answer first (data from malloc, now the note's). */
void mu__note_answer(struct mu__note *note);

/* The answer is final: resolvers see it. */
void mu__note_settle(struct mu__note *note);

/* Ask once more; the answer so far is dropped. Of a note that is not settled. */
void mu__note_ask(struct mu__note *note);

/* No more time: what is under way is cancelled, and the note settled with the answer that
 * it has, else with -MU_EDEADLINE and the reason of the last failure. */
void mu__note_give_up(struct mu__note *note);

/* The same of all, and of each that is asked from now on: it reaches no asker. Who then
 * asks on and on hears that the answer is not known yet. */
void mu__notes_end(struct mu__notes *notes);

/* Why a try failed, without the name of what was asked: "Connection refused",
 * "status 503". */
void mu__note_reason(const struct mu__note *note, char *out, size_t size);

/* Before each run of a resolver: what was said is forgotten, what is asked from now on is
 * asked by `who` (static). */
void mu__notes_begin(struct mu__notes *notes, const char *who);

/* Whether there was no memory for a question of this run, or for what is answered at
 * once: then what came of it counts for nothing, since a variable that could not be asked
 * for looks as if it were not set. */
bool mu__notes_starved(const struct mu__notes *notes);

/* How often a run has begun with these notes (mu__notes_begin with NULL). */
unsigned mu__notes_runs(const struct mu__notes *notes);

/* How many are not settled; the i-th note in the order of asking, NULL past the end. */
size_t mu__notes_pending(const struct mu__notes *notes);
struct mu__note *mu__notes_at(const struct mu__notes *notes, size_t i);

/* What the resolvers have said since mu__notes_begin with NULL; each line is "WHO:
 * words". NULL past the end. */
const char *mu__notes_said(const struct mu__notes *notes, size_t i);

/* Write what a note asked and how it ended, for people: `variable TF_CONFIG: not set`,
 * `https://host/path: status 403, 211 bytes, after 3 tries`. Nothing secret: of urls no
 * user and no query. */
void mu__note_words(const struct mu__note *note, char *out, size_t size);

/* The same of what is asked alone: "variable TF_CONFIG", "file /x",
 * "https://host/path". */
void mu__question_words(const struct mu__question *question, char *out, size_t size);

/* A problem with an answer, as an error of the resolver: if answer->code is not 0, that
 * with its words, "WHAT: " before them; for HTTP with a status other than 2xx the status,
 * what it is about (401, 403, 404, 429, 3xx each have words of their own) and the
 * server's message if the body is JSON with one. Returns 0 when there is no problem. */
int mu__answer_check(const struct mu__answer *answer, const char *what,
                     mu_error *ret_error);

#endif
