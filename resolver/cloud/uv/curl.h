/* What the parts of the HTTP client share: http_curl.c has its life and its sockets,
 * curl_options.c how a request is told to libcurl, curl_answer.c what comes of it. */
#ifndef MU_RESOLVER_CLOUD_CURL_H
#define MU_RESOLVER_CLOUD_CURL_H

#include "resolver/cloud/uv/uv.h"

#include <curl/curl.h>

/* One request with libcurl. */
struct mu__curl_job {
    struct mu__curl_job *next;
    struct mu__curl_job **link;                  /* what points here */
    struct mu__http_request *request;   /* NULL: it was told */
    struct mu__msg *done;               /* its HTTP_DONE */
    CURL *easy;
    struct curl_slist *headers;
    struct curl_slist *connect_to;
    struct mu__buf *answer;
    size_t answer_max;
    size_t head_bytes;
    int refused;                        /* why the answer was not taken further */
    char words[CURL_ERROR_SIZE];
};

/* All options of job->easy. -MU_ENOMEM. */
int mu__curl_set_options(struct mu__curl_job *job,
                         const struct mu__http_request *request);

/* libcurl's callbacks, of a job. */
size_t mu__curl_on_bytes(char *data, size_t one, size_t count, void *owner);
size_t mu__curl_on_header(char *line, size_t one, size_t count, void *owner);

/* Fill in job->request's answer: it has ended with this. */
void mu__curl_take_answer(struct mu__curl_job *job, CURLcode result);

/* An error of the request, behind its url without user and query. */
void mu__curl_set_words(struct mu__http_request *request, int code, const char *words);

#endif
