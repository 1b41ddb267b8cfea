#include "node/etcd_access.h"

#include "node/files/files.h"
#include "resolver/spec/address.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 1 << 20, FILE_MS = 5000, PASSWORD_BYTES_MAX = 4096 };

/* *ret_text stays as it is when the variable is not set. */
static int read_named(const char *variable, mu_error *ret_error, const char **ret_text)
{
    const char *path = getenv(variable);
    char *text = NULL;
    size_t size = 0;
    mu_error error;
    int rv;

    if (path == NULL || path[0] == '\0')
        return 0;
    rv = mu__file_read(path, FILE_BYTES_MAX + 1, FILE_MS, &error, &text, &size);
    if (rv == 0 && size > FILE_BYTES_MAX) {
        free(text);
        rv = mu__file_error(path, "read", EFBIG, &error);
    }
    if (rv != 0)
        return mu_error_set(ret_error, -MU_EINVALID, "%s: %s", variable, error.message);
    *ret_text = text;
    return 0;
}

static int copy_variable(const char *variable, mu_error *ret_error, const char **ret_text)
{
    const char *text = getenv(variable);

    if (text == NULL || text[0] == '\0')
        return 0;
    *ret_text = strdup(text);
    return *ret_text != NULL ? 0 : mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
}

static int read_etcd_tls(struct mu__http_tls *tls, mu_error *ret_error)
{
    int rv = read_named("MUSTER_ETCD_CA_FILE", ret_error, &tls->ca);

    if (rv == 0)
        rv = read_named("MUSTER_ETCD_CERTIFICATE_FILE", ret_error, &tls->certificate);
    if (rv == 0)
        rv = read_named("MUSTER_ETCD_KEY_FILE", ret_error, &tls->key);
    if (rv == 0)
        rv = copy_variable("MUSTER_ETCD_SERVER_NAME", ret_error, &tls->server_name);
    if (rv == 0 && tls->server_name != NULL && !mu__address_is_host(tls->server_name))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "MUSTER_ETCD_SERVER_NAME: expected the name of a host");
    if (rv != 0 || (tls->certificate == NULL) == (tls->key == NULL))
        return rv;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "MUSTER_ETCD_CERTIFICATE_FILE and MUSTER_ETCD_KEY_FILE: expected "
                        "both or none");
}

/* From the variable, or the first line of the file. */
static int read_password(struct mu__store_access *access, mu_error *ret_error)
{
    int rv = copy_variable("MUSTER_ETCD_PASSWORD", ret_error, &access->password);

    if (rv == 0 && access->password != NULL)
        access->password_size = strlen(access->password);
    if (rv != 0 || access->password != NULL)
        return rv;
    rv = read_named("MUSTER_ETCD_PASSWORD_FILE", ret_error, &access->password);
    if (rv == 0 && access->password != NULL)
        access->password_size = strcspn(access->password, "\r\n");
    return rv;
}

static int read_etcd_user(struct mu__store_access *access, mu_error *ret_error)
{
    int rv = copy_variable("MUSTER_ETCD_USER", ret_error, &access->user);

    if (rv == 0)
        rv = read_password(access, ret_error);
    if (rv != 0)
        return rv;
    if ((access->user == NULL) != (access->password == NULL))
        return mu_error_set(ret_error, -MU_EINVALID,
                            access->user == NULL
                                ? "an etcd password is set, and no user; expected "
                                  "MUSTER_ETCD_USER"
                                : "MUSTER_ETCD_USER is set, and no password; expected "
                                  "MUSTER_ETCD_PASSWORD_FILE or MUSTER_ETCD_PASSWORD");
    if (access->user != NULL &&
        (access->password_size == 0 || access->password_size > PASSWORD_BYTES_MAX))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "etcd's password: expected 1 to %d bytes, got %zu",
                            (int)PASSWORD_BYTES_MAX, access->password_size);
    return 0;
}

int mu__etcd_access_read(struct mu__store_access *access, bool has_tls,
                         mu_error *ret_error)
{
    int rv = has_tls ? read_etcd_tls(&access->tls, ret_error) : 0;

    return rv == 0 ? read_etcd_user(access, ret_error) : rv;
}

static void free_text(const char *text)
{
    free((void *)(uintptr_t)text);
}

void mu__etcd_access_done(struct mu__store_access *access)
{
    free_text(access->tls.ca);
    free_text(access->tls.certificate);
    free_text(access->tls.key);
    free_text(access->tls.server_name);
    free_text(access->user);
    free_text(access->password);
    *access = (struct mu__store_access){0};
}
