/* A main() for fuzz targets where there is no libFuzzer.
 *
 *     fuzz_x CORPUS [RUNS [SEED]]
 *
 * CORPUS is a folder or one file. First every file of it is given to the target as it
 * is, then RUNS inputs made from them: the same arguments make the same inputs. When the
 * target dies, the input is left in fuzz-crash-NAME, to be given back as CORPUS. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    INPUT_BYTES_MAX = 1 << 16, /* longer files are cut; mutations stop growing */
    CORPUS_FILES_MAX = 1024,   /* more are an error: such a corpus wants minimizing */
    RANDOM_BYTES_MAX = 512,    /* inputs that come from no file */
    MUTATIONS_MAX = 8,         /* of one input */
    CHUNK_BYTES_MAX = 32       /* inserted, removed or copied at once */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    uint8_t *data;
    size_t size;
};

struct corpus {
    struct input *inputs;
    size_t count;
};

/* What the crash handler saves: handlers have no owner, so these are globals. */
static const uint8_t *current_data;
static size_t current_size;
static char crash_path[256];

static uint64_t chance_state;

/* splitmix64: small, and every seed is a good one. */
static uint64_t chance(void)
{
    uint64_t z = (chance_state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* A number below `bound`, which is not zero. */
static size_t chance_below(size_t bound)
{
    return (size_t)(chance() % bound);
}

static void on_crash(int signal_number)
{
    static const char words[] = "fuzz: the target died; its input is in ";
    int file = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    if (file >= 0 && write(file, current_data, current_size) >= 0) {
        if (write(STDERR_FILENO, words, sizeof words - 1) < 0 ||
            write(STDERR_FILENO, crash_path, strlen(crash_path)) < 0 ||
            write(STDERR_FILENO, "\n", 1) < 0)
            _exit(2);
    }
    (void)raise(signal_number);
}

/* A sanitizer's own handlers come first: they report, then abort, and we see that. */
static void watch_crashes(const char *program)
{
    static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    const char *slash = strrchr(program, '/');
    struct sigaction old;
    struct sigaction action = {.sa_handler = on_crash};

    (void)snprintf(crash_path, sizeof crash_path, "fuzz-crash-%s",
                   slash == NULL ? program : slash + 1);
    action.sa_flags = (int)SA_RESETHAND;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            (void)sigaction(signals[i], &action, NULL);
    }
}

/* The target gets a copy of exactly this size, so that a sanitizer sees a read beyond. */
static void run(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);

    if (copy == NULL) {
        fprintf(stderr, "fuzz: out of memory\n");
        exit(2);
    }
    if (size > 0)
        memcpy(copy, data, size);
    current_data = copy;
    current_size = size;
    (void)LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static int corpus_add(struct corpus *corpus, const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(INPUT_BYTES_MAX);
    struct input *inputs;

    inputs = realloc(corpus->inputs, (corpus->count + 1) * sizeof *inputs);
    if (inputs != NULL)
        corpus->inputs = inputs;
    if (file == NULL || data == NULL || inputs == NULL ||
        corpus->count == CORPUS_FILES_MAX) {
        fprintf(stderr, "fuzz: cannot add %s to the corpus\n", path);
        free(data);
        if (file != NULL)
            (void)fclose(file);
        return -1;
    }
    inputs[corpus->count++] = (struct input){data, fread(data, 1, INPUT_BYTES_MAX, file)};
    (void)fclose(file);
    return 0;
}

static int corpus_add_folder(struct corpus *corpus, const char *folder)
{
    struct dirent **names = NULL;
    int count = scandir(folder, &names, NULL, alphasort);
    int rv = 0;

    for (int i = 0; i < count; i++) {
        char path[1024];

        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        if (rv == 0 && names[i]->d_name[0] != '.')
            rv = corpus_add(corpus, path);
        free(names[i]);
    }
    free(names);
    return count < 0 ? -1 : rv;
}

/* A folder that does not exist is an empty corpus: random bytes are left. */
static int corpus_load(struct corpus *corpus, const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0)
        return errno == ENOENT ? 0 : -1;
    return S_ISDIR(status.st_mode) ? corpus_add_folder(corpus, path)
                                   : corpus_add(corpus, path);
}

static void corpus_done(struct corpus *corpus)
{
    for (size_t i = 0; i < corpus->count; i++)
        free(corpus->inputs[i].data);
    free(corpus->inputs);
}

static void flip_bit(struct input *in, const struct corpus *corpus)
{
    (void)corpus;
    if (in->size > 0)
        in->data[chance_below(in->size)] ^= (uint8_t)(1U << chance_below(8));
}

static void set_byte(struct input *in, const struct corpus *corpus)
{
    static const uint8_t telling[] = {0x00, 0x01, 0x7f, 0x80, 0xc0, 0xc1, 0xd9, 0xdf,
                                      0xff, '"',  '{',  '[',  ',',  '-',  '9',  '\\'};

    (void)corpus;
    if (in->size > 0)
        in->data[chance_below(in->size)] = chance_below(2) == 0
                                               ? telling[chance_below(sizeof telling)]
                                               : (uint8_t)chance();
}

static void remove_bytes(struct input *in, const struct corpus *corpus)
{
    size_t at;
    size_t count;

    (void)corpus;
    if (in->size == 0)
        return;
    at = chance_below(in->size);
    count = 1 + chance_below(CHUNK_BYTES_MAX);
    if (count > in->size - at)
        count = in->size - at;
    memmove(in->data + at, in->data + at + count, in->size - at - count);
    in->size -= count;
}

static void cut_short(struct input *in, const struct corpus *corpus)
{
    (void)corpus;
    if (in->size > 0)
        in->size = chance_below(in->size);
}

/* Put `count` bytes in at `at`; the caller fills them. Gives 0 when there is no room. */
static size_t make_room(struct input *in, size_t at, size_t count)
{
    if (count > INPUT_BYTES_MAX - in->size)
        return 0;
    memmove(in->data + at + count, in->data + at, in->size - at);
    in->size += count;
    return count;
}

static void insert_random(struct input *in, const struct corpus *corpus)
{
    size_t at = chance_below(in->size + 1);
    size_t count = make_room(in, at, 1 + chance_below(CHUNK_BYTES_MAX));

    (void)corpus;
    for (size_t i = 0; i < count; i++)
        in->data[at + i] = (uint8_t)chance();
}

static void insert_again(struct input *in, const struct corpus *corpus)
{
    uint8_t chunk[CHUNK_BYTES_MAX];
    size_t from;
    size_t count;
    size_t at;

    (void)corpus;
    if (in->size == 0)
        return;
    from = chance_below(in->size);
    count = 1 + chance_below(sizeof chunk);
    if (count > in->size - from)
        count = in->size - from;
    memcpy(chunk, in->data + from, count);
    at = chance_below(in->size + 1);
    memcpy(in->data + at, chunk, make_room(in, at, count));
}

/* The rest comes from another file of the corpus. */
static void splice(struct input *in, const struct corpus *corpus)
{
    const struct input *other;
    size_t keep = chance_below(in->size + 1);
    size_t from;
    size_t count;

    if (corpus->count == 0)
        return;
    other = &corpus->inputs[chance_below(corpus->count)];
    from = chance_below(other->size + 1);
    count = other->size - from;
    if (count > INPUT_BYTES_MAX - keep)
        count = INPUT_BYTES_MAX - keep;
    memcpy(in->data + keep, other->data + from, count);
    in->size = keep + count;
}

static void (*const mutations[])(struct input *in, const struct corpus *corpus) = {
    flip_bit,      set_byte,     remove_bytes, cut_short,
    insert_random, insert_again, splice,       set_byte,
};

static void random_bytes(struct input *in)
{
    in->size = chance_below(RANDOM_BYTES_MAX);
    for (size_t i = 0; i < in->size; i++)
        in->data[i] = (uint8_t)chance();
}

/* One input in eight comes from no file; where there are no files, all of them. */
static void make_input(struct input *in, const struct corpus *corpus)
{
    const struct input *base;

    if (corpus->count == 0 || chance_below(8) == 0) {
        random_bytes(in);
        return;
    }
    base = &corpus->inputs[chance_below(corpus->count)];
    memcpy(in->data, base->data, base->size);
    in->size = base->size;
    for (size_t i = 1 + chance_below(MUTATIONS_MAX); i > 0; i--)
        mutations[chance_below(sizeof mutations / sizeof mutations[0])](in, corpus);
}

int main(int argc, char **argv)
{
    static uint8_t buffer[INPUT_BYTES_MAX];
    struct corpus corpus = {0};
    struct input input = {buffer, 0};
    uint64_t runs = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;

    if (argc < 2 || corpus_load(&corpus, argv[1]) != 0) {
        fprintf(stderr, "usage: %s CORPUS [RUNS [SEED]]\n", argv[0]);
        corpus_done(&corpus);
        return 2;
    }
    watch_crashes(argv[0]);
    run(buffer, 0);
    for (size_t i = 0; i < corpus.count; i++)
        run(corpus.inputs[i].data, corpus.inputs[i].size);
    for (uint64_t i = 0; i < runs; i++) {
        chance_state = seed * UINT64_C(1000003) + i;
        make_input(&input, &corpus);
        run(input.data, input.size);
    }
    printf("fuzz: %zu files, %" PRIu64 " runs, seed %" PRIu64 "\n", corpus.count, runs,
           seed);
    corpus_done(&corpus);
    return 0;
}
