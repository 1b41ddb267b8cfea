/* mu_key_...: files with the keys of a cluster. */
#include "node/files/key_file.h"
#include "runtime/message/arguments.h"

#include "muster/admin.h"

#include <stdio.h>
#include <string.h>

_Static_assert((int)MU_KEY_PATH_BYTES == (int)MU__KEY_PATH_BYTES,
               "a key's path has MU_KEY_PATH_BYTES");
_Static_assert(sizeof((mu_key_info *)0)->text >= MU__KEY_TEXT_BYTES,
               "a derived key has room");

static mu_key_info info_of(const struct mu__key *key)
{
    mu_key_info info = {.text = ""};

    (void)snprintf(info.right, sizeof info.right, "%s", mu__right_name(key->right));
    (void)snprintf(info.fingerprint, sizeof info.fingerprint, "%s", key->fingerprint);
    return info;
}

int mu_key_path(mu_error *ret_error, char *ret_path)
{
    MU__REQUIRE(ret_error, ret_path);
    return mu__user_key_path(ret_error, ret_path);
}

int mu_key_new(const char *path, mu_error *ret_error, mu_key_info *ret_info)
{
    MU__REQUIRE(ret_error, path, ret_info);

    struct mu__key key;
    int rv = mu__key_new(ret_error, &key);

    if (rv == 0)
        rv = mu__key_file_write(path, key.bytes, sizeof key.bytes, ret_error);
    if (rv == 0)
        *ret_info = info_of(&key);
    mu__key_clear(&key);
    return rv;
}

int mu_key_read(const char *path, mu_error *ret_error, mu_key_info *ret_info)
{
    MU__REQUIRE(ret_error, path, ret_info);

    struct mu__key key;
    int rv = mu__key_file_read(path, ret_error, &key);

    if (rv != 0)
        return rv;
    *ret_info = info_of(&key);
    mu__key_clear(&key);
    return 0;
}

/* The derived key's line into a new file, or into ret_info. */
static int write_key_out(const struct mu__key *key, const char *new_path,
                         mu_error *ret_error, mu_key_info *ret_info)
{
    char text[MU__KEY_TEXT_BYTES + 1];
    size_t size;

    *ret_info = info_of(key);
    mu__key_write(key, text);
    if (new_path == NULL) {
        memcpy(ret_info->text, text, MU__KEY_TEXT_BYTES);
        return 0;
    }
    size = strlen(text);
    text[size++] = '\n';
    return mu__key_file_write(new_path, text, size, ret_error);
}

int mu_key_derive(const char *path, const char *right, const char *new_path,
                  mu_error *ret_error, mu_key_info *ret_info)
{
    MU__REQUIRE(ret_error, path, right, ret_info);

    enum mu__right of = mu__right_of(right, (unsigned)strlen(right));
    struct mu__key key;
    struct mu__key derived;
    int rv;

    if (of == MU__RIGHT_NONE || of == MU__RIGHT_ALL)
        return mu_error_set(ret_error, -MU_ERANGE,
                            "expected RIGHT to be observe, use, operate or task, got "
                            "\"%.40s\"",
                            right);
    rv = mu__key_file_read(path, ret_error, &key);
    if (rv != 0)
        return rv;
    rv = mu__key_derive(&key, of, ret_error, &derived);
    mu__key_clear(&key);
    if (rv != 0)
        return rv;
    rv = write_key_out(&derived, new_path, ret_error, ret_info);
    mu__key_clear(&derived);
    return rv;
}
