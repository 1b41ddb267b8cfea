#include "node/etcd_tls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 1 << 20 };

/* All of an open file as a text, NULL with errno when that cannot be. */
static char *read_text(FILE *file)
{
    char *text = malloc(FILE_BYTES_MAX + 1);
    char *fitting;
    size_t size;

    if (text == NULL)
        return NULL;
    size = fread(text, 1, FILE_BYTES_MAX + 1, file);
    if (ferror(file) != 0 || size > FILE_BYTES_MAX) {
        if (ferror(file) == 0)
            errno = EFBIG;
        free(text);
        return NULL;
    }
    text[size] = '\0';
    fitting = realloc(text, size + 1);
    return fitting == NULL ? text : fitting;
}

/* *ret_text stays as it is when the variable is not set. */
static int read_named(const char *variable, mu_error *ret_error, const char **ret_text)
{
    const char *path = getenv(variable);
    char *text = NULL;
    FILE *file;

    if (path == NULL || path[0] == '\0')
        return 0;
    file = fopen(path, "rb");
    if (file != NULL) {
        text = read_text(file);
        (void)fclose(file);
    }
    if (text == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "%s: \"%.200s\" cannot be read: %s",
                            variable, path, strerror(errno));
    *ret_text = text;
    return 0;
}

static int copy_server_name(mu_error *ret_error, const char **ret_name)
{
    const char *name = getenv("MUSTER_ETCD_SERVER_NAME");

    if (name == NULL || name[0] == '\0')
        return 0;
    *ret_name = strdup(name);
    return *ret_name != NULL ? 0 : mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
}

int mu__etcd_tls_read(struct mu__etcd_tls *etcd, mu_error *ret_error)
{
    struct mu__http_tls *tls = &etcd->tls;
    int rv = read_named("MUSTER_ETCD_CA_FILE", ret_error, &tls->ca);

    if (rv == 0)
        rv = read_named("MUSTER_ETCD_CERTIFICATE_FILE", ret_error, &tls->certificate);
    if (rv == 0)
        rv = read_named("MUSTER_ETCD_KEY_FILE", ret_error, &tls->key);
    if (rv == 0)
        rv = copy_server_name(ret_error, &tls->server_name);
    if (rv != 0 || (tls->certificate == NULL) == (tls->key == NULL))
        return rv;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "MUSTER_ETCD_CERTIFICATE_FILE and MUSTER_ETCD_KEY_FILE: expected "
                        "both or none");
}

static void text_free(const char *text)
{
    free((void *)(uintptr_t)text);
}

void mu__etcd_tls_done(struct mu__etcd_tls *etcd)
{
    text_free(etcd->tls.ca);
    text_free(etcd->tls.certificate);
    text_free(etcd->tls.key);
    text_free(etcd->tls.server_name);
    *etcd = (struct mu__etcd_tls){{0}};
}
