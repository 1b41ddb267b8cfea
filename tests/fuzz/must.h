/* What has to hold whatever the input is; unlike assert(), in every build. */
#ifndef MUSTER_TESTS_FUZZ_MUST_H
#define MUSTER_TESTS_FUZZ_MUST_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static inline void must(bool truth, const char *what)
{
    if (truth)
        return;
    (void)fprintf(stderr, "broken: %s\n", what);
    abort();
}

#endif
