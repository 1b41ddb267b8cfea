#include "node/file_error.h"

#include <errno.h>
#include <string.h>

int mu__file_error(const char *path, const char *what, int number, mu_error *ret_error)
{
    static const struct {
        int number;
        int code;
    } codes[] = {
        {ENOENT, -MU_ENOTFOUND},       {ENOTDIR, -MU_ENOTFOUND},
        {EACCES, -MU_EPERMISSION},     {EPERM, -MU_EPERMISSION},
        {EROFS, -MU_EPERMISSION},      {ENOSPC, -MU_EEXHAUSTED},
        {EDQUOT, -MU_EEXHAUSTED},      {EFBIG, -MU_EEXHAUSTED},
        {EMFILE, -MU_EEXHAUSTED},      {ENFILE, -MU_EEXHAUSTED},
        {ENAMETOOLONG, -MU_EINVALID},  {EISDIR, -MU_EINVALID},
    };
    int code = -MU_EUNKNOWN;

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].number == number)
            code = codes[i].code;
    return mu_error_set(ret_error, code, "\"%.200s\" cannot be %s: %s", path, what,
                        strerror(number));
}
