/* Files that are written past the system's cache: what is in them does not depend on
 * which way a piece goes. */
#include "node/files/direct_file.h"

#include "tests/real/files.h"
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BYTES = 3 << 20, PIECE = 1 << 20, ROOM = BYTES + 2 * MU__DIRECT_ALIGN };

struct fixture {
    char path[64];
    int folder;
    uint8_t *expected; /* of the file */
    uint8_t *memory;   /* aligned */
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    (void)snprintf(f->path, sizeof f->path, "/tmp/muster-direct-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    f->folder = open(f->path, O_RDONLY | O_DIRECTORY);
    assert_true(f->folder >= 0);
    f->expected = malloc(BYTES);
    f->memory = aligned_alloc(MU__DIRECT_ALIGN, ROOM);
    assert_true(f->expected != NULL && f->memory != NULL);
    for (uint32_t i = 0; i < BYTES; i++)
        f->expected[i] = (uint8_t)(i * UINT32_C(2654435761) >> 11);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    (void)unlinkat(f->folder, "file", 0);
    (void)close(f->folder);
    (void)rmdir(f->path);
    free(f->expected);
    free(f->memory);
    free(f);
    return 0;
}

static void check_file(const struct fixture *f)
{
    int fd = openat(f->folder, "file", O_RDONLY);
    struct stat status;

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &status), 0);
    assert_int_equal(status.st_size, BYTES);
    assert_int_equal(pread(fd, f->memory, BYTES, 0), BYTES);
    assert_memory_equal(f->memory, f->expected, BYTES);
    (void)close(fd);
    assert_int_equal(unlinkat(f->folder, "file", 0), 0);
}

/* In pieces, the last one first, which begin so far behind a multiple of the alignment in
 * the file, and in memory. */
static void write_pieces(const struct fixture *f, struct mu__direct_file *file,
                         uint32_t phase, uint32_t in_memory)
{
    for (int i = BYTES / PIECE - 1; i >= 0; i--) {
        uint64_t from = (uint64_t)i * PIECE + (i == 0 ? 0 : phase);
        uint64_t end = (uint64_t)(i + 1) * PIECE + phase;

        if (end > BYTES)
            end = BYTES;
        memcpy(f->memory + in_memory, f->expected + from, end - from);
        assert_int_equal(
            mu__direct_file_write_at(file, f->memory + in_memory, end - from, from), 0);
    }
}

TEST_ON(test_pieces_at_any_place, struct fixture *f, set_up, tear_down)
{
    static const uint32_t phases[] = {0, 1, 100, MU__DIRECT_ALIGN - 1};

    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 4; k++) {
            struct mu__direct_file file;

            assert_int_equal(mu__direct_file_create(f->folder, "file", &file), 0);
            assert_int_equal(mu__direct_file_resize(&file, BYTES), 0);
            write_pieces(f, &file, phases[i], phases[k]);
            assert_int_equal(mu__direct_file_flush(&file), 0);
            mu__direct_file_close(&file);
            check_file(f);
        }
}

/* Past the cache goes only what the file system takes there: all else, and all that
 * fails, goes through it. */
TEST_ON(test_without_direct_writes, struct fixture *f, set_up, tear_down)
{
    for (int i = 0; i < 2; i++) {
        struct mu__direct_file file;

        assert_int_equal(mu__direct_file_create(f->folder, "file", &file), 0);
        if (file.direct >= 0)
            (void)close(file.direct);
        file.direct = i == 0 ? -1 : openat(f->folder, "file", O_RDONLY);
        write_pieces(f, &file, 100, 100);
        mu__direct_file_close(&file);
        check_file(f);
    }
}

/* A file that is there is not taken; one that may not grow says so at once. */
TEST_ON(test_refused, struct fixture *f, set_up, tear_down)
{
    const struct rlimit small = {PIECE, RLIM_INFINITY};
    const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    struct mu__direct_file file;
    struct mu__direct_file other;

    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(mu__direct_file_create(f->folder, "file", &file), 0);
    assert_int_equal(mu__direct_file_create(f->folder, "file", &other), EEXIST);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(mu__direct_file_resize(&file, BYTES), EFBIG);
    assert_int_equal(mu__direct_file_write_at(&file, f->memory, BYTES, 0), EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
    (void)signal(SIGXFSZ, SIG_DFL);
    mu__direct_file_close(&file);
}

TEST_PROGRAM()
