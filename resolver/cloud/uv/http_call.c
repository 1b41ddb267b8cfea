/* One request by libcurl on the calling thread, which waits for its answer. */
#include "resolver/cloud/uv/curl.h"

enum { TICK_MS = 50 }; /* how often it is looked whether the request is still wanted */

/* Until the transfer has ended, or is not wanted any more. */
static CURLcode wait_for_transfer(CURLM *multi, const atomic_bool *cancelled)
{
    int running = 1;
    int left;
    CURLMsg *news;

    while (running > 0 && !atomic_load(cancelled)) {
        if (curl_multi_perform(multi, &running) != CURLM_OK)
            return CURLE_OUT_OF_MEMORY;
        if (running > 0)
            (void)curl_multi_poll(multi, NULL, 0, TICK_MS, NULL);
    }
    news = curl_multi_info_read(multi, &left);
    return news == NULL ? CURLE_ABORTED_BY_CALLBACK : news->data.result;
}

void mu__curl_perform(struct mu__http_request *request, const atomic_bool *cancelled)
{
    struct mu__curl_job job = {.request = request, .easy = curl_easy_init()};
    CURLM *multi = curl_multi_init();

    if (multi == NULL || job.easy == NULL || mu__curl_set_options(&job, request) != 0 ||
        curl_multi_add_handle(multi, job.easy) != CURLM_OK) {
        mu__curl_set_words(request, -MU_ENOMEM, "out of memory");
    } else {
        mu__curl_take_answer(&job, wait_for_transfer(multi, cancelled));
        (void)curl_multi_remove_handle(multi, job.easy);
    }
    curl_easy_cleanup(job.easy);
    (void)curl_multi_cleanup(multi);
    curl_slist_free_all(job.headers);
    curl_slist_free_all(job.connect_to);
    mu__buf_unref(job.answer);
}
