#include "resolver/engine/uv/cloud_library.h"

#include "resolver/engine/uv/http_client.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static int no_library(const char *words, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EPRECONDITION,
                        "%s cannot be loaded (%.240s): it is installed with muster, and "
                        "needs libcurl, libyaml and libcrypto (Debian: libcurl4, "
                        "libyaml-0-2, libssl3)",
                        MU__CLOUD_LIBRARY, words);
}

static int load_cloud_library(mu_error *ret_error, const struct mu__cloud **ret_cloud)
{
    void *library = dlopen(MU__CLOUD_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library == NULL ? NULL : dlsym(library, MU__CLOUD_OPEN);
    mu__cloud_open_fn *open;

    if (symbol == NULL)
        return no_library(dlerror(), ret_error);
    memcpy(&open, &symbol, sizeof open); /* a cast that C does not have, but POSIX */
    *ret_cloud = open(mu__cloud_layout());
    return *ret_cloud != NULL
               ? 0
               : no_library("it is of another build, or libcurl cannot begin", ret_error);
}

int mu__cloud_load(mu_error *ret_error, const struct mu__cloud **ret_cloud)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const struct mu__cloud *loaded;
    int rv = 0;

    (void)pthread_mutex_lock(&lock);
    if (loaded == NULL) {
        rv = load_cloud_library(ret_error, &loaded);
        if (rv == 0)
            mu__cloud_set(loaded);
    }
    *ret_cloud = loaded;
    (void)pthread_mutex_unlock(&lock);
    return rv;
}

/* For a client that is open: it has loaded the library. */
static const struct mu__cloud *loaded_cloud(void)
{
    const struct mu__cloud *cloud;

    (void)mu__cloud_load(NULL, &cloud);
    return cloud;
}

int mu__http_client_open(const struct mu__http_client_config *config, mu_error *ret_error,
                         struct mu__http_client **ret_client)
{
    const struct mu__cloud *cloud;
    int rv = mu__cloud_load(ret_error, &cloud);

    if (rv == 0 && cloud->http_open(config, ret_client) != 0)
        rv = mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    return rv;
}

struct mu__http *mu__http_client_door(struct mu__http_client *client)
{
    return loaded_cloud()->http_door(client);
}

void mu__http_client_close(struct mu__http_client *client, void (*closed)(void *arg),
                           void *arg)
{
    loaded_cloud()->http_close(client, closed, arg);
}

int mu__sign_rs256(const char *key, const void *data, size_t size, mu_error *ret_error,
                   unsigned char **ret_signature, size_t *ret_size)
{
    const struct mu__cloud *cloud;
    int rv = mu__cloud_load(ret_error, &cloud);

    return rv != 0
               ? rv
               : cloud->sign_rs256(key, data, size, ret_error, ret_signature, ret_size);
}
