/* Errors: the codes that functions return, and mu_error with the details.
 *
 * Functions return 0 or one of the codes below, negated: MU_ENOTFOUND comes back as
 * -MU_ENOTFOUND. Codes 1 to 16 are gRPC's status codes, with gRPC's numbers.
 *
 * Arguments: NULL is allowed only where a function's comment says so. Elsewhere a
 * function that returns codes returns -MU_EINVALID, with the argument's name in its
 * mu_error; a function that returns no code returns NULL or 0 (or what its comment says),
 * and does nothing else. */
#ifndef MUSTER_ERROR_H
#define MUSTER_ERROR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MU_EXPORT __attribute__((visibility("default")))
#define MU_PRINTF(words, first) __attribute__((__format__(__printf__, words, first)))
#else
#define MU_EXPORT
#define MU_PRINTF(words, first)
#endif

/* Every code with its number and its text; the only such list. Numbers are part of the
 * ABI and of the wire format, and are never reused. */
#define MU_ERRORS(X)                           \
    X(ECANCELLED, 1, "cancelled")              \
    X(EUNKNOWN, 2, "unknown error")            \
    X(EINVALID, 3, "invalid argument")         \
    X(EDEADLINE, 4, "deadline exceeded")       \
    X(ENOTFOUND, 5, "not found")               \
    X(EEXISTS, 6, "already exists")            \
    X(EPERMISSION, 7, "permission denied")     \
    X(EEXHAUSTED, 8, "resource exhausted")     \
    X(EPRECONDITION, 9, "failed precondition") \
    X(EABORTED, 10, "aborted")                 \
    X(ERANGE, 11, "out of range")              \
    X(EUNIMPLEMENTED, 12, "unimplemented")     \
    X(EINTERNAL, 13, "internal error")         \
    X(EUNAVAILABLE, 14, "unavailable")         \
    X(EDATALOSS, 15, "data loss")              \
    X(EUNAUTHENTICATED, 16, "unauthenticated") \
    X(ENOMEM, 17, "out of memory")             \
    X(EAGAIN, 18, "would block; try again")    \
    X(ECLOSED, 19, "closed")

enum mu_code {
#define MU_ERROR_CODE(name, number, words) MU_##name = number,
    MU_ERRORS(MU_ERROR_CODE)
#undef MU_ERROR_CODE
        MU_CODE_OK = 0
};

/* The origin of an error. Programs decide by this and by `code`, never by the text. */
enum mu_error_kind {
    MU_ERROR_OTHER = 0,    /* of the call itself: bad arguments, no memory, a closed
                              node */
    MU_ERROR_FUNCTION = 1, /* the closure's function returned it */
    MU_ERROR_INPUT = 2,    /* an input of the closure failed, or could not be computed */
    MU_ERROR_WORKER = 3,   /* workers were lost, or one did not come back */
    MU_ERROR_SERVER = 4,   /* a parameter server; `task` names it */
    MU_ERROR_LIMIT = 5,    /* a timeout, or a bound on a number, was reached */
    MU_ERROR_CHIEF = 6,    /* the chief was lost */
    MU_ERROR_ACTOR = 7     /* an actor; `task` says where, `ran` whether it ran */
};

/* Of an error of a call to an actor: whether its method ran. */
enum mu_ran {
    MU_RAN_UNKNOWN = 0, /* the error is not that of a call to an actor */
    MU_RAN_NO = 1,      /* surely not: the call may be repeated */
    MU_RAN_MAYBE = 2,   /* it was begun, or its node was lost meanwhile */
    MU_RAN_YES = 3      /* to its end: it returned this error */
};

/* One error. The caller provides the struct (on the stack, say) and owns it; it holds no
 * pointers. Functions that take a `mu_error *ret_error` accept NULL, and write it on
 * failure only. Programs decide what to do by `code`, `kind`, `task` and `closure`, never
 * by the text in `message`. */
typedef struct mu_error {
    int code;          /* negative: -MU_E...; 0 when there was no error */
    uint32_t attempt;  /* number of the closure's run, from 1; 0 without a run */
    int kind;          /* enum mu_error_kind */
    uint32_t data;     /* number of bytes that the function attached to it, for
                          mu_coordinator_error_data; 0: none */
    uint64_t closure;  /* the closure's id; 0 when no closure is concerned */
    char task[64];     /* where the error arose, "/job:worker/task:1"; "" when unknown */
    char function[64]; /* name of the closure's function, or "type.method" of an actor;
                          "" without either */
    char message[512]; /* one sentence for a person: what, where, what was expected */
    char detail[1024]; /* the function's stack trace, or the last lines of its log; ""
                          without either */
    int ran;           /* enum mu_ran */
} mu_error;

/* The text of a code, which may be negative or positive; never NULL. The string is
 * static. */
MU_EXPORT const char *mu_strerror(int code);

/* The code's name, "ENOTFOUND" for -MU_ENOTFOUND; "EUNKNOWN" for a number that is not
 * a code. */
MU_EXPORT const char *mu_err_name(int code);

/* Fill `error` (which may be NULL) with a code and a formatted message; clears the other
 * fields. Returns `code`, so that a caller can write `return mu_error_set(...)`. */
MU_EXPORT int mu_error_set(mu_error *error, int code, const char *format, ...)
    MU_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif

#endif
