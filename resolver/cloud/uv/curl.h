/* Shared by the parts of the HTTP client: http_curl.c opens and closes it and runs
 * libcurl's sockets in a loop, http_call.c makes a request on the calling thread,
 * curl_options.c turns a request into libcurl's options, curl_answer.c takes the answer
 * or the error. */
#ifndef MU_RESOLVER_CLOUD_CURL_H
#define MU_RESOLVER_CLOUD_CURL_H

#include "resolver/cloud/uv/uv.h"

#include <curl/curl.h>

struct mu__curl_pool;

/* One request with libcurl. */
struct mu__curl_job {
    struct mu__curl_job *next;
    struct mu__curl_job **link;       /* the pointer to this job in its list */
    struct mu__curl_pool *pool;       /* whose connections it uses */
    struct mu__http_request *request; /* NULL: it was answered */
    struct mu__msg *done;             /* its HTTP_DONE */
    CURL *easy;
    struct curl_slist *headers;
    struct curl_slist *connect_to;
    struct mu__buf *answer;
    size_t answer_max;
    size_t head_bytes;
    int refused; /* code with which a callback has ended it; 0 */
    char words[CURL_ERROR_SIZE];
};

/* All options of job->easy. -MU_ENOMEM. */
int mu__curl_set_options(struct mu__curl_job *job,
                         const struct mu__http_request *request);

/* libcurl's callbacks, of a job. */
size_t mu__curl_on_bytes(char *data, size_t one, size_t count, void *owner);
size_t mu__curl_on_header(char *line, size_t one, size_t count, void *owner);

/* Fill in job->request's answer or error from libcurl's result. */
void mu__curl_take_answer(struct mu__curl_job *job, CURLcode result);

/* Set the request's error: `words` behind its url, which is shown without user and
 * query. */
void mu__curl_set_words(struct mu__http_request *request, int code, const char *words);

#endif
