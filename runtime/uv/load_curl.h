/* libcurl, loaded when it is first needed.
 *
 * It brings some thirty libraries with it, whose relocated pages every process would have
 * in memory from its start on. Only who makes a request needs them, so nothing is linked
 * with libcurl: its types come from its header, its functions from here. Once loaded it
 * stays, since others in the process may use it, too. */
#ifndef MU_RUNTIME_LOAD_CURL_H
#define MU_RUNTIME_LOAD_CURL_H

#include "muster/error.h"

#include <curl/curl.h>

/* The functions that are used, without their curl_. */
#define MU__CURL_FUNCTIONS(X) \
    X(global_init)            \
    X(version_info)           \
    X(slist_append)           \
    X(slist_free_all)         \
    X(easy_init)              \
    X(easy_cleanup)           \
    X(easy_setopt)            \
    X(easy_getinfo)           \
    X(easy_strerror)          \
    X(url)                    \
    X(url_cleanup)            \
    X(url_get)                \
    X(url_set)                \
    X(free)                   \
    X(multi_init)             \
    X(multi_cleanup)          \
    X(multi_setopt)           \
    X(multi_assign)           \
    X(multi_add_handle)       \
    X(multi_remove_handle)    \
    X(multi_info_read)        \
    X(multi_socket_action)

struct mu__curl {
#define MU__CURL_MEMBER(name) __typeof__(curl_##name) *name;
    MU__CURL_FUNCTIONS(MU__CURL_MEMBER)
#undef MU__CURL_MEMBER
};

/* To be used by a thread for which mu__curl_load() has returned 0. */
extern struct mu__curl mu__curl;

/* Any thread. Loads and initialises libcurl, unless that was done. What failed is tried
 * again by the next call: files or memory may have been short for a moment. It takes as
 * long as the loader takes. -MU_EUNAVAILABLE with words. */
int mu__curl_load(mu_error *ret_error);

#endif
