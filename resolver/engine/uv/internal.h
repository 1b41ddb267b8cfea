/* Shared by the parts of the sources; for resolver/engine/uv/ only. */
#ifndef MU_RESOLVER_ENGINE_UV_SOURCES_INTERNAL_H
#define MU_RESOLVER_ENGINE_UV_SOURCES_INTERNAL_H

#include "resolver/engine/exchange.h"
#include "runtime/base/list.h"
#include "runtime/uv/blocking.h"

#include <stdatomic.h>

struct mu__request_work;

/* How a kind of request runs as a blocking job. */
struct mu__work_kind {
    enum mu__blocking_pool pool;

    /* Write work->answer, and return its code. */
    int (*run)(struct mu__request_work *work);
    bool names_itself; /* its errors name the request */
    bool has_timeout;  /* it ends by itself at the request's timeout */
    bool is_awaited;   /* left behind, it is waited for before the end */
};

/* A request as a blocking job. The waiting thread does not touch what is the job's while
 * it runs, but for is_cancelled. */
struct mu__request_work {
    struct mu__blocking_job blocking; /* first: jobs cast */
    struct mu__sources_uv *sources;
    struct mu__exchange *exchange; /* NULL: it was left behind */
    const struct mu__work_kind *kind;
    struct mu__list_node node; /* of the sources' works, or of those left */
    uint64_t due_ms;

    /* The job's. */
    struct mu__request request; /* a copy */
    struct mu__answer answer;
    size_t room;              /* of answer.data */
    atomic_bool is_cancelled; /* the result is not wanted any more */
};

/* For the functions of jobs: set the error and return its code; make room for `size`
 * bytes of content with a zero byte behind them (-MU_ENOMEM). */
int mu__work_fail(struct mu__request_work *work, int code, const char *words);
int mu__work_reserve(struct mu__request_work *work, size_t size);

/* The functions of jobs. */
int mu__work_file(struct mu__request_work *work);
int mu__work_folder(struct mu__request_work *work);
int mu__work_write(struct mu__request_work *work);
int mu__work_remove(struct mu__request_work *work);
int mu__work_names(struct mu__request_work *work);
int mu__work_dns(struct mu__request_work *work);
int mu__work_http(struct mu__request_work *work);

/* The addresses of an IP address, which is its own: text from malloc, NULL when out of
 * memory. False: it is another request. */
bool mu__answer_number(const struct mu__request *request, char **ret_text,
                       size_t *ret_size);

#endif
