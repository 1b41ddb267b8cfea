/* Files of real tests. */
#ifndef MUSTER_TESTS_REAL_FILES_H
#define MUSTER_TESTS_REAL_FILES_H

#include "tests/support/test.h"

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
