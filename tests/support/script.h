/* The world of a resolver as a table: what it may ask, and what it is told.
 *
 * Everything that is asked and stands in no row is answered with "not found": a variable
 * that is not set, a file that is not there, a host without address; for HTTP that is a
 * failure of the test, as a request that nobody thought of. Functions of the program's
 * own are called. */
#ifndef MU_TESTS_SCRIPT_H
#define MU_TESTS_SCRIPT_H

#include "resolver/engine/kind.h"
#include "tests/support/fake_sources.h"

struct script_row {
    enum mu__request_kind kind;
    const char *name;
    const char *text;         /* the answer's content */
    int status;               /* of HTTP; 0: 200 */
    int code;                 /* not 0: this error instead, with `text` as its words */
    const char *content_type; /* NULL: "application/json" */
    const char *header;       /* what the wanted header is */
    const char *method;       /* the request must have this; NULL: GET */
    const char *body;         /* and this content, in part or whole, a line end for each
                                 zero byte; NULL: any */
    const char *has_header;   /* and a header that begins with this; NULL: any */
    unsigned again;           /* and this number */
};

/* Rows in short; more fields may follow inside the parentheses. */
#define SCRIPT(what, ...)                       \
    {                                           \
        .kind = MU__REQUEST_##what, __VA_ARGS__ \
    }
#define SCRIPT_VARIABLE(variable, value)                                  \
    {                                                                     \
        .kind = MU__REQUEST_VARIABLE, .name = (variable), .text = (value) \
    }
#define SCRIPT_FILE(path, content)                                  \
    {                                                               \
        .kind = MU__REQUEST_FILE, .name = (path), .text = (content) \
    }
#define SCRIPT_END   \
    {                \
        .name = NULL \
    }

struct script {
    struct fake_sources sources;           /* first: it casts */
    const struct script_row *rows;         /* ended by a NULL name */
    const char *clock;                     /* NULL: "1700000000" */
    const char *host_name;                 /* NULL: "this-host" */
    unsigned requested[MU__REQUEST_KINDS]; /* requests so far */
};

void script_init(struct script *script, const struct script_row *rows);

/* Evaluate a resolver of ours, with settings as "name=value" texts ended by NULL (may be
 * NULL). Runs as the query does, without a second try. The caller frees
 * ret_resolution->cluster when 0 is returned. */
int script_resolve(const struct mu__resolver_kind *kind, const struct script_row *rows,
                   const char *const *settings, mu_error *ret_error,
                   mu_resolution *ret_resolution);

/* The same of `detect`. */
int script_detect(const struct mu__resolver_kind *kind, const struct script_row *rows,
                  const char *const *settings, mu_error *ret_why);

/* That it comes to this cluster (JSON, as mu_cluster_to_json writes it; "" for none),
 * task ("worker:1", "" for unknown) */
void script_expect(const struct mu__resolver_kind *kind, const struct script_row *rows,
                   const char *const *settings, const char *cluster, const char *task);

/* That it fails with this code, and words in which `words` stands. */
void script_expect_error(const struct mu__resolver_kind *kind,
                         const struct script_row *rows, const char *const *settings,
                         int code, const char *words);

/* Announce once, with what `*own` has from the calls before (NULL at first). */
int script_announce(const struct mu__resolver_kind *kind, const struct script_row *rows,
                    const char *const *settings, const mu_announcement *announcement,
                    void **own, mu_error *ret_error, int *ret_index,
                    uint32_t *ret_again_ms);

/* The same of withdrawing. */
int script_withdraw(const struct mu__resolver_kind *kind, const struct script_row *rows,
                    const char *const *settings, const mu_announcement *announcement,
                    void **own, mu_error *ret_error);

#endif
