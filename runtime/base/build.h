/* Texts that are put together: urls, forms, JSON for others. Memory that is short makes
 * the text fail as a whole, which is asked about once, at the end. */
#ifndef MU_RUNTIME_BASE_BUILD_H
#define MU_RUNTIME_BASE_BUILD_H

#include <muster/error.h>

#include <stdbool.h>

struct mu__build {
    char *text;         /* a zero byte stands behind it; NULL before the first addition */
    size_t size;
    size_t room;
    bool failed;
};

/* The memory is freed, and what was in it is overwritten: it may be a secret. */
void mu__build_done(struct mu__build *build);

void mu__build_bytes(struct mu__build *build, const void *data, size_t size);
void mu__build_add(struct mu__build *build, const char *text);
void mu__build_format(struct mu__build *build, const char *format, ...) MU_PRINTF(2, 3);

/* As part of a url or form: all but letters, digits and -._~ becomes %XX. */
void mu__build_escaped(struct mu__build *build, const char *text);

/* Base64; that of the alphabet for urls is without padding. */
void mu__build_base64(struct mu__build *build, const void *data, size_t size);
void mu__build_base64url(struct mu__build *build, const void *data, size_t size);

/* As a JSON text, with its quotes. */
void mu__build_json(struct mu__build *build, const void *data, size_t size);

/* True when all that was added is there; then `text` is not NULL. */
bool mu__build_whole(struct mu__build *build);

#endif
