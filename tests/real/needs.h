/* What tests need of the machine beyond what they are built with. A test program that
 * cannot run says "skipped: " and why, and ends with NEEDS_SKIPPED, which ctest shows as
 * skipped; a single test says the same and is skipped by cmocka. scripts/test repeats
 * these lines at its end. */
#ifndef MUSTER_TESTS_REAL_NEEDS_H
#define MUSTER_TESTS_REAL_NEEDS_H

#include "tests/support/test.h"

#include <stdbool.h>
#include <unistd.h>

enum { NEEDS_SKIPPED = 77, NEEDS_PATH_BYTES = 512 };

/* Where a program is, by its name or path; false when it is not installed. Daemons are
 * often not in the PATH. */
static inline bool needs_find(const char *name, char *ret_path, size_t size)
{
    char folders[1024];

    if (name[0] == '/') {
        (void)snprintf(ret_path, size, "%s", name);
        return access(name, X_OK) == 0;
    }
    (void)snprintf(folders, sizeof folders, "%s:/usr/sbin:/sbin",
                   getenv("PATH") == NULL ? "" : getenv("PATH"));
    for (const char *at = folders; *at != '\0';) {
        size_t length = strcspn(at, ":");

        (void)snprintf(ret_path, size, "%.*s/%s", (int)length, at, name);
        if (access(ret_path, X_OK) == 0)
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}

/* NULL when all programs, up to a NULL, are installed; else words about the first that is
 * not, valid up to the next call. */
static inline const char *needs_programs(const char *name, ...)
{
    static char words[128];
    char path[NEEDS_PATH_BYTES];
    va_list names;

    va_start(names, name);
    while (name != NULL && needs_find(name, path, sizeof path))
        name = va_arg(names, const char *);
    va_end(names);
    if (name == NULL)
        return NULL;
    (void)snprintf(words, sizeof words,
                   "there is no program %s (scripts/install-deps --all)", name);
    return words;
}

/* For main(): its exit code. */
static inline int needs_skip(const char *reason)
{
    (void)printf("skipped: %s\n", reason);
    return NEEDS_SKIPPED;
}

/* A program whose tests are skipped if there is a reason, else run. */
#define NEEDS_PROGRAM(reason, begin, end)                                     \
    int main(void)                                                            \
    {                                                                         \
        const char *missing = reason;                                         \
                                                                              \
        return missing != NULL ? needs_skip(missing) : tests_run(begin, end); \
    }

/* Ends the test that is running, if there is a reason. */
static inline void needs_skip_test(const char *reason)
{
    if (reason == NULL)
        return;
    (void)printf("skipped: %s\n", reason);
    skip();
}

#endif
