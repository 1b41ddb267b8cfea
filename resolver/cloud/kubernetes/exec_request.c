/* Who has a program run for its credential, and when again. */
#include "resolver/cloud/kubernetes/exec.h"

#include <stdlib.h>
#include <string.h>

/* What a person can do about it. */
static int failed(const struct mu__kube_exec *exec, const struct mu__answer *answer,
                  mu_error *ret_error)
{
    if (answer->code == -MU_ENOTFOUND)
        return mu_error_set(ret_error, -MU_ENOTFOUND,
                            "%.160s: the program %.100s is not there%s%.180s",
                            exec->where, exec->command, exec->hint == NULL ? "" : "; ",
                            exec->hint == NULL ? "" : exec->hint);
    return mu__answer_check(answer, exec->where, ret_error);
}

/* What it printed, parsed once for all runs. */
static int read_answer(const struct mu__kube_exec *exec, const struct mu__answer *answer,
                       mu_error *ret_error,
                       const struct mu__kube_credential **ret_credential)
{
    struct mu__kube_credential *credential;
    int rv = answer->code != 0 ? failed(exec, answer, ret_error) : 0;

    if (rv == 0 && answer->parsed == NULL) {
        rv = mu__kube_credential_parse(exec, answer->data, answer->size, ret_error,
                                       &credential);
        if (rv == 0)
            mu__answer_set_parsed(answer, credential, mu__kube_credential_free);
    }
    if (rv != 0)
        return rv;
    *ret_credential = answer->parsed;
    return answer->parsed != NULL ? 0
                                  : mu_error_set(ret_error, -MU_ENOMEM,
                                                 "kubernetes: out of memory");
}

static bool is_over(struct mu__requests *requests,
                    const struct mu__kube_credential *credential)
{
    const struct mu__request clock = {.kind = MU__REQUEST_CLOCK};
    const struct mu__answer *answer = mu__requests_get(requests, &clock);

    return credential->until_s != 0 && answer->code == 0 &&
           credential->until_s <= strtoll(answer->data, NULL, 10);
}

/* One that is over is likely to be one that was kept: another one is made, and taken as
 * it is. */
int mu__kube_exec_request(struct mu__requests *requests, const struct mu__kube_exec *exec,
                          const struct mu__kube_exec_cluster *cluster, unsigned again,
                          mu_error *ret_error,
                          const struct mu__kube_credential **ret_credential)
{
    const struct mu__kube_credential *credential = NULL;
    struct mu__build words;
    int rv = 0;

    mu__kube_exec_words(exec, cluster, &words);
    if (!mu__build_whole(&words))
        rv = mu_error_set(ret_error, -MU_ENOMEM, "kubernetes: out of memory");
    for (unsigned i = 0; rv == 0 && i < 2; i++) {
        const struct mu__request request = {
            .kind = MU__REQUEST_PROGRAM,
            .name = exec->command,
            .again = 2 * again + i,
            .body = words.text,
            .body_size = words.size,
            .tries = 1,
            .timeout_ms = MU__KUBE_EXEC_TIMEOUT_MS,
            .bytes_max = MU__KUBE_EXEC_BYTES_MAX,
            .cache_ms = MU__KUBE_EXEC_CACHE_MS,
        };
        const struct mu__answer *answer = mu__requests_get(requests, &request);

        rv = answer == NULL ? MU__LATER
                            : read_answer(exec, answer, ret_error, &credential);
        if (rv == 0 && !is_over(requests, credential))
            break;
    }
    mu__build_done(&words);
    if (rv == 0)
        *ret_credential = credential;
    return rv;
}
