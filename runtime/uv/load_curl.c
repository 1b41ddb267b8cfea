#include "runtime/uv/load_curl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#define LIBRARY "libcurl.so.4"

enum { VERSION_MIN = 0x075700 };        /* 7.87.0: of the options that we set */

_Static_assert(LIBCURL_VERSION_NUM >= VERSION_MIN, "libcurl's header is too old");

struct mu__curl mu__curl;

static const char *const names[] = {
#define NAME(name) "curl_" #name,
    MU__CURL_FUNCTIONS(NAME)
#undef NAME
};

/* The table as what dlsym gives. Pointers to functions are all alike for POSIX, but not
 * for C, which therefore gets them as bytes. */
_Static_assert(sizeof(struct mu__curl) == sizeof names / sizeof names[0] * sizeof(void *),
               "pointers to functions have the size of others");

static int find_all(void *library, struct mu__curl *ret_curl)
{
    void *functions[sizeof names / sizeof names[0]];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        functions[i] = dlsym(library, names[i]);
        if (functions[i] == NULL)
            return -MU_ENOTFOUND;
    }
    memcpy(ret_curl, functions, sizeof functions);
    return 0;
}

static int start(const struct mu__curl *curl, mu_error *ret_error)
{
    const curl_version_info_data *version = curl->version_info(CURLVERSION_NOW);
    CURLcode rv;

    if (version->version_num < VERSION_MIN)
        return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                            LIBRARY " has version %s: expected 7.87.0 or later",
                            version->version);
    rv = curl->global_init(CURL_GLOBAL_DEFAULT);
    if (rv != CURLE_OK)
        return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                            LIBRARY " cannot be initialised: %s",
                            curl->easy_strerror(rv));
    return 0;
}

static int load(mu_error *ret_error)
{
    struct mu__curl curl;
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    int rv;

    if (library == NULL || find_all(library, &curl) != 0)
        rv = mu_error_set(ret_error, -MU_EUNAVAILABLE, LIBRARY " cannot be loaded: %s",
                          dlerror());
    else
        rv = start(&curl, ret_error);
    if (rv == 0)
        mu__curl = curl;
    return rv;
}

int mu__curl_load(mu_error *ret_error)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool loaded;
    int rv = 0;

    (void)pthread_mutex_lock(&lock);
    if (!loaded)
        rv = load(ret_error);
    loaded = rv == 0;
    (void)pthread_mutex_unlock(&lock);
    return rv;
}
