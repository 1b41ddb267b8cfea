#define _DEFAULT_SOURCE /* explicit_bzero */
#include "node/files/key_file.h"

#include "node/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEY_FILE_BYTES_MAX = 4096, READ_MS = 5000 };

/* ---- any key file ---- */

/* A process of root may be given anybody's files; to all others only root and their own
 * user are none to be wary of. */
static bool is_trusted_owner(uid_t owner)
{
    return owner == 0 || geteuid() == 0 || owner == geteuid();
}

/* Who may change a folder may put another file into it, but for one whose sticky bit
 * keeps everybody to his own files. */
static int check_folder(const char *path, mu_error *ret_error)
{
    const char *slash = strrchr(path, '/');
    int length = slash == NULL ? 1 : slash == path ? 1 : (int)(slash - path);
    char folder[PATH_MAX];
    struct stat status;

    (void)snprintf(folder, sizeof folder, "%.*s", length, slash == NULL ? "." : path);
    if (stat(folder, &status) != 0)
        return mu__file_error(folder, "read", errno, ret_error);
    if (is_trusted_owner(status.st_uid) &&
        ((status.st_mode & S_IWOTH) == 0 || (status.st_mode & S_ISVTX) != 0))
        return 0;
    return mu_error_set(ret_error, -MU_EPERMISSION,
                        "\"%s\" is in a folder that others may change (\"%s\", of user "
                        "%u, mode %04o): put it elsewhere, or chmod o-w the folder",
                        path, folder, (unsigned)status.st_uid,
                        (unsigned)(status.st_mode & 07777));
}

int mu__secret_check(const char *path, const struct stat *status, mu_error *ret_error)
{
    if (!is_trusted_owner(status->st_uid))
        return mu_error_set(ret_error, -MU_EPERMISSION,
                            "\"%s\" belongs to user %u, and this process is user %u's: "
                            "who has written it knows the secret",
                            path, (unsigned)status->st_uid, (unsigned)geteuid());
    if ((status->st_mode & (S_IWGRP | S_IRWXO)) == 0)
        return check_folder(path, ret_error);
    return mu_error_set(ret_error, -MU_EPERMISSION,
                        "\"%s\" has a secret that others may read or change (mode %04o): "
                        "chmod 600 it",
                        path, (unsigned)(status->st_mode & 07777));
}

int mu__key_file_read(const char *path, mu_error *ret_error, struct mu__key *ret_key)
{
    char name[MU__KEY_PATH_BYTES + 16];
    struct stat status;
    char *text = NULL;
    size_t size = 0;
    int rv;

    if (stat(path, &status) != 0)
        return mu__file_error(path, "read", errno, ret_error);
    rv = mu__secret_check(path, &status, ret_error);
    if (rv == 0)
        rv = mu__file_read(path, KEY_FILE_BYTES_MAX, READ_MS, ret_error, &text, &size);
    if (rv != 0)
        return rv;
    (void)snprintf(name, sizeof name, "file \"%s\"", path);
    rv = mu__key_parse(name, text, size, ret_error, ret_key);
    explicit_bzero(text, size);
    free(text);
    return rv;
}

int mu__key_file_write(const char *path, const void *data, size_t size,
                       mu_error *ret_error)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int number;

    if (fd < 0 && errno == EEXIST)
        return mu_error_set(ret_error, -MU_EEXISTS,
                            "\"%s\" is there already, and is not overwritten", path);
    if (fd < 0)
        return mu__file_error(path, "made", errno, ret_error);
    number = mu__file_write_all(fd, data, size);
    if (number == 0 && fsync(fd) != 0)
        number = errno;
    if (close(fd) != 0 && number == 0)
        number = errno;
    if (number == 0)
        return 0;
    (void)unlink(path);
    return mu__file_error(path, "written", number, ret_error);
}

/* ---- the user's key ---- */

/* Relative paths count as absent, as the rules for XDG_CONFIG_HOME have it. */
static const char *get_absolute_path(const char *variable)
{
    const char *path = getenv(variable);

    return path != NULL && path[0] == '/' ? path : NULL;
}

/* The home of the list of users, for processes without HOME. False: it has none. */
static bool home_of_list(char *ret_home, size_t size)
{
    char buffer[4096];
    struct passwd entry;
    struct passwd *found = NULL;

    if (getpwuid_r(geteuid(), &entry, buffer, sizeof buffer, &found) != 0 ||
        found == NULL || found->pw_dir == NULL || found->pw_dir[0] != '/' ||
        strlen(found->pw_dir) >= size)
        return false;
    (void)snprintf(ret_home, size, "%s", found->pw_dir);
    return true;
}

int mu__user_key_path(mu_error *ret_error, char ret_path[MU__KEY_PATH_BYTES])
{
    const char *config = get_absolute_path("XDG_CONFIG_HOME");
    const char *home = get_absolute_path("HOME");
    char listed[MU__KEY_PATH_BYTES];
    int size;

    if (config == NULL && home == NULL && home_of_list(listed, sizeof listed))
        home = listed;
    if (config == NULL && home == NULL)
        return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                            "the user's key has no place: neither XDG_CONFIG_HOME nor "
                            "HOME is an absolute path");
    size = config != NULL
               ? snprintf(ret_path, MU__KEY_PATH_BYTES, "%s/muster/key", config)
               : snprintf(ret_path, MU__KEY_PATH_BYTES, "%s/.config/muster/key", home);
    if (size < MU__KEY_PATH_BYTES)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "the user's key has no place: %s is longer than %d bytes",
                        config != NULL ? "XDG_CONFIG_HOME" : "HOME",
                        MU__KEY_PATH_BYTES - 20);
}

static int make_folders(const char *path, mu_error *ret_error)
{
    char folder[PATH_MAX];

    (void)snprintf(folder, sizeof folder, "%s", path);
    for (char *at = strchr(folder + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(folder, 0700) != 0 && errno != EEXIST)
            return mu__file_error(folder, "made", errno, ret_error);
        *at = '/';
    }
    return 0;
}

/* The file appears whole, or not at all: it is written under another name, and linked. */
static int write_key_whole(const char *path, const struct mu__key *key,
                           mu_error *ret_error)
{
    char other[MU__KEY_PATH_BYTES + 40];
    int rv;

    (void)snprintf(other, sizeof other, "%s.%s.%ld", path, key->fingerprint,
                   (long)getpid());
    rv = mu__key_file_write(other, key->bytes, sizeof key->bytes, ret_error);
    if (rv != 0)
        return rv;
    if (link(other, path) != 0 && errno != EEXIST)
        rv = mu__file_error(path, "made", errno, ret_error);
    (void)unlink(other);
    mu__file_flush_folder(path);
    return rv;
}

int mu__user_key_make(const char *path, mu_error *ret_error)
{
    struct stat status;
    struct mu__key key;
    int rv;

    if (stat(path, &status) == 0)
        return 0;
    rv = make_folders(path, ret_error);
    if (rv != 0)
        return rv;
    rv = mu__key_new(ret_error, &key);
    if (rv == 0)
        rv = write_key_whole(path, &key, ret_error);
    mu__key_clear(&key);
    return rv;
}
