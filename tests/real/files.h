/* Files of real tests. */
#ifndef MUSTER_TESTS_REAL_FILES_H
#define MUSTER_TESTS_REAL_FILES_H

#include "tests/support/test.h"

#include <dirent.h>
#include <unistd.h>

/* With all that is in it. */
static inline void files_remove_folder(const char *folder)
{
    DIR *directory = opendir(folder);
    struct dirent *entry;
    char path[512];

    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        assert_true((size_t)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) <
                    sizeof path);
        if (unlink(path) != 0)
            files_remove_folder(path);
    }
    (void)closedir(directory);
    assert_int_equal(rmdir(folder), 0);
}

/* How many names in a folder end with `end`. */
static inline int files_count(const char *folder, const char *end)
{
    DIR *directory = opendir(folder);
    struct dirent *entry;
    int count = 0;

    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        size_t length = strlen(entry->d_name);

        count += entry->d_name[0] != '.' && length >= strlen(end) &&
                 strcmp(entry->d_name + length - strlen(end), end) == 0;
    }
    (void)closedir(directory);
    return count;
}

/* As a whole: whoever reads it has the old text or the new one. */
static inline void files_replace(const char *path, const char *text)
{
    char other[192];
    FILE *file;

    (void)snprintf(other, sizeof other, "%s.new", path);
    file = fopen(other, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(other, path), 0);
}

#endif
