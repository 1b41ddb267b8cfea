/* A string builder, for URLs, forms and JSON. When an addition runs out of memory the
 * whole text fails, so callers check once, at the end (mu__build_whole). */
#ifndef MU_RUNTIME_BASE_BUILD_H
#define MU_RUNTIME_BASE_BUILD_H

#include <muster/error.h>

#include <stdbool.h>

struct mu__build {
    char *text; /* a zero byte stands behind it; NULL before the first addition */
    size_t size;
    size_t room;
    bool failed;
};

/* Overwrites the text, which may be a secret, and frees it. */
void mu__build_done(struct mu__build *build);

void mu__build_bytes(struct mu__build *build, const void *data, size_t size);
void mu__build_add(struct mu__build *build, const char *text);
void mu__build_format(struct mu__build *build, const char *format, ...) MU_PRINTF(2, 3);

/* Percent-encoded, for URLs and forms: all but letters, digits and -._~ becomes %XX. */
void mu__build_escaped(struct mu__build *build, const char *text);

/* Base64; base64url (the alphabet for URLs) is without padding. */
void mu__build_base64(struct mu__build *build, const void *data, size_t size);
void mu__build_base64url(struct mu__build *build, const void *data, size_t size);

/* As a JSON string, with its quotes. */
void mu__build_json(struct mu__build *build, const void *data, size_t size);

/* True when no addition failed; then `text` is not NULL. */
bool mu__build_whole(struct mu__build *build);

#endif
