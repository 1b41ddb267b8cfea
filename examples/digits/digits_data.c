/* dladdr() is what finds the file beside the plugin; glibc hides it without this. */
#define _GNU_SOURCE

#include "digits_data.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where the parser is. Line and column count from 1. */
struct cursor {
    const char *at;
    const char *end;
    const char *source;
    unsigned line;
    unsigned column;
};

enum {
    NUMBER_DIGITS_MAX = 4, /* longer runs of digits are refused unread */
    FOUND_BYTES_MAX = 12   /* of the file's text in an error */
};

__attribute__((format(printf, 3, 4))) static int fail(struct digits_error *error,
                                                      int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return code;
}

/* The next few bytes up to a comma or the end of the line, fit for a terminal. */
static const char *found(const struct cursor *c, char text[FOUND_BYTES_MAX + 1])
{
    size_t size = 0;

    for (const char *p = c->at; p < c->end && size < FOUND_BYTES_MAX; p++) {
        if (*p == ',' || *p == '\n')
            break;
        text[size++] = *p > ' ' && *p <= '~' ? *p : '?';
    }
    text[size] = '\0';
    return text;
}

static int fail_field(const struct cursor *c, struct digits_error *error, unsigned max)
{
    char text[FOUND_BYTES_MAX + 1];

    return fail(error, -EINVAL,
                "%s:%u: column %u: expected an integer from 0 to %u, found \"%s\"",
                c->source, c->line, c->column, max, found(c, text));
}

/* One integer from 0 to `max`, followed by whatever cannot be part of it. */
static int parse_field(struct cursor *c, unsigned max, struct digits_error *ret_error,
                       unsigned *ret_number)
{
    const char *p = c->at;
    unsigned number = 0;

    while (p < c->end && *p >= '0' && *p <= '9' && p - c->at < NUMBER_DIGITS_MAX)
        number = number * 10 + (unsigned)(*p++ - '0');

    if (p == c->at || number > max)
        return fail_field(c, ret_error, max);
    if (p < c->end && *p != ',' && *p != '\n')
        return fail_field(c, ret_error, max);

    c->at = p;
    *ret_number = number;
    return 0;
}

/* The comma between two columns. */
static int parse_comma(struct cursor *c, struct digits_error *ret_error)
{
    if (c->at == c->end || *c->at != ',')
        return fail(ret_error, -EINVAL,
                    "%s:%u: the line ends after column %u, expected %d columns",
                    c->source, c->line, c->column, DIGITS_PIXELS + 1);
    c->at++;
    c->column++;
    return 0;
}

/* The end of the line; the file's last line may do without. */
static int parse_line_end(struct cursor *c, struct digits_error *ret_error)
{
    if (c->at < c->end && *c->at != '\n')
        return fail(ret_error, -EINVAL,
                    "%s:%u: expected the end of the line after %d columns, found more",
                    c->source, c->line, DIGITS_PIXELS + 1);
    if (c->at < c->end)
        c->at++;
    return 0;
}

static int parse_row(struct cursor *c, struct digits_error *ret_error, float *ret_pixels,
                     uint8_t *ret_label)
{
    unsigned number = 0;
    int rv;

    c->column = 1;
    for (size_t i = 0; i < DIGITS_PIXELS; i++) {
        rv = parse_field(c, DIGITS_GREY_MAX, ret_error, &number);
        if (rv == 0)
            rv = parse_comma(c, ret_error);
        if (rv != 0)
            return rv;
        ret_pixels[i] = (float)number / (float)DIGITS_GREY_MAX;
    }

    rv = parse_field(c, DIGITS_CLASSES - 1, ret_error, &number);
    if (rv != 0)
        return rv;
    *ret_label = (uint8_t)number;
    return parse_line_end(c, ret_error);
}

static int parse_all(struct cursor *c, struct digits_error *ret_error,
                     struct digits_data *data)
{
    int rv;

    for (size_t row = 0; row < DIGITS_ROWS; row++) {
        if (c->at == c->end)
            return fail(ret_error, -EINVAL,
                        "%s:%u: the file ends after %zu rows, expected %d", c->source,
                        c->line, row, DIGITS_ROWS);
        rv = parse_row(c, ret_error, data->pixels[row], &data->labels[row]);
        if (rv != 0)
            return rv;
        c->line++;
    }
    if (c->at < c->end)
        return fail(ret_error, -EINVAL,
                    "%s:%u: expected the end of the file after %d rows, found more",
                    c->source, c->line, DIGITS_ROWS);
    return 0;
}

int digits_data_parse(const char *text, size_t size, const char *source,
                      struct digits_error *ret_error, struct digits_data **ret_data)
{
    struct cursor c = {.at = text, .end = text + size, .source = source, .line = 1};
    struct digits_data *data;
    int rv;

    assert(text != NULL && source != NULL && ret_error != NULL);

    data = malloc(sizeof *data);
    if (data == NULL)
        return fail(ret_error, -ENOMEM, "%s: out of memory", source);

    rv = parse_all(&c, ret_error, data);
    if (rv != 0) {
        free(data);
        return rv;
    }
    *ret_data = data;
    return 0;
}

/* The whole of an open file, with one byte to spare that shows when it is too long. */
static int read_text(FILE *file, const char *path, struct digits_error *ret_error,
                     char **ret_text, size_t *ret_size)
{
    char *text = malloc(DIGITS_FILE_BYTES_MAX + 1);
    size_t size;
    int rv;

    if (text == NULL)
        return fail(ret_error, -ENOMEM, "%s: out of memory", path);

    errno = 0;
    size = fread(text, 1, DIGITS_FILE_BYTES_MAX + 1, file);
    rv = ferror(file) != 0 ? -(errno != 0 ? errno : EIO) : 0;
    if (rv != 0) {
        (void)fail(ret_error, rv, "%s: cannot read: %s", path, strerror(-rv));
        goto err_text;
    }
    if (size > DIGITS_FILE_BYTES_MAX) {
        rv = fail(ret_error, -EFBIG, "%s: more than %d bytes, expected %d rows of digits",
                  path, DIGITS_FILE_BYTES_MAX, DIGITS_ROWS);
        goto err_text;
    }
    *ret_text = text;
    *ret_size = size;
    return 0;

err_text:
    free(text);
    return rv;
}

int digits_data_load(const char *path, struct digits_error *ret_error,
                     struct digits_data **ret_data)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t size = 0;
    int rv;

    if (file == NULL) {
        rv = -errno;
        return fail(ret_error, rv, "%s: cannot open: %s", path, strerror(-rv));
    }

    rv = read_text(file, path, ret_error, &text, &size);
    (void)fclose(file);
    if (rv != 0)
        return rv;

    rv = digits_data_parse(text, size, path, ret_error, ret_data);
    free(text);
    return rv;
}

void digits_data_free(struct digits_data *data)
{
    free(data);
}

/* How many bytes of the path of our own binary are its folder, with the last slash; 0
 * when there is none, or it cannot be known. */
static size_t own_folder(const char **ret_path)
{
    static const char here = 0;
    Dl_info info;
    const char *slash;

    if (dladdr(&here, &info) == 0 || info.dli_fname == NULL)
        return 0;
    slash = strrchr(info.dli_fname, '/');
    if (slash == NULL)
        return 0;
    *ret_path = info.dli_fname;
    return (size_t)(slash - info.dli_fname) + 1;
}

/* Write folder and name behind each other; false when that is too long for a path. */
static bool join(const char *folder, size_t folder_size, const char *name,
                 char ret_path[DIGITS_PATH_BYTES])
{
    size_t name_size = strlen(name);

    if (folder_size >= DIGITS_PATH_BYTES || name_size >= DIGITS_PATH_BYTES - folder_size)
        return false;
    memcpy(ret_path, folder, folder_size);
    memcpy(ret_path + folder_size, name, name_size + 1);
    return true;
}

static int take_named(const char *name, struct digits_error *ret_error,
                      char ret_path[DIGITS_PATH_BYTES])
{
    if (!join("", 0, name, ret_path))
        return fail(ret_error, -ENAMETOOLONG,
                    "path of the digits' data: %zu bytes, expected at most %d",
                    strlen(name), DIGITS_PATH_BYTES - 1);
    return 0;
}

int digits_data_find(const char *given, struct digits_error *ret_error,
                     char ret_path[DIGITS_PATH_BYTES])
{
    const char *named = getenv("MUSTER_DIGITS_DATA");
    const char *folder = "";
    size_t folder_size = own_folder(&folder);
    const struct {
        size_t folder_size;
        const char *name;
    } places[] = {
        {folder_size, "digits.csv"},
        {folder_size, "data/digits.csv"},
        {0, "examples/digits/data/digits.csv"},
    };
    char path[DIGITS_PATH_BYTES];

    if (given != NULL && given[0] != '\0')
        return take_named(given, ret_error, ret_path);
    if (named != NULL && named[0] != '\0')
        return take_named(named, ret_error, ret_path);

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (!join(folder, places[i].folder_size, places[i].name, path))
            continue;
        if (access(path, R_OK) == 0)
            return take_named(path, ret_error, ret_path);
    }
    return fail(ret_error, -ENOENT,
                "digits.csv: not in \"%.*s\", its data/ or "
                "examples/digits/data/; expected a path or MUSTER_DIGITS_DATA",
                (int)folder_size, folder);
}

uint64_t digits_random_next(struct digits_random *random)
{
    uint64_t z;

    random->state += UINT64_C(0x9e3779b97f4a7c15);
    z = random->state;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t digits_random_below(struct digits_random *random, uint64_t bound)
{
    uint64_t uneven;
    uint64_t drawn;

    assert(bound > 0);

    /* The first 2^64 mod bound numbers would make some answers likelier than others. */
    uneven = (UINT64_MAX - bound + 1) % bound;
    do {
        drawn = digits_random_next(random);
    } while (drawn < uneven);
    return drawn % bound;
}

float digits_random_sign(struct digits_random *random)
{
    int32_t drawn = (int32_t)(digits_random_next(random) >> 40) - (INT32_C(1) << 23);

    return (float)drawn / (float)(INT32_C(1) << 23);
}

/* Fisher-Yates: every order is equally likely. */
static void shuffle(struct digits_random *random, uint32_t *rows, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        size_t j = (size_t)digits_random_below(random, i);
        uint32_t row = rows[i - 1];

        rows[i - 1] = rows[j];
        rows[j] = row;
    }
}

void digits_split_make(uint64_t seed, struct digits_split *ret_split)
{
    struct digits_random random = {seed};
    uint32_t rows[DIGITS_ROWS];

    for (uint32_t i = 0; i < DIGITS_ROWS; i++)
        rows[i] = i;
    shuffle(&random, rows, DIGITS_ROWS);
    memcpy(ret_split->held, rows, sizeof ret_split->held);
    memcpy(ret_split->train, rows + DIGITS_HELD_ROWS, sizeof ret_split->train);
}

int digits_batch(const struct digits_split *split, uint64_t seed, uint64_t step,
                 size_t count, uint32_t *ret_rows)
{
    struct digits_random random = {seed};
    uint32_t rows[DIGITS_TRAIN_ROWS];
    uint64_t steps_in_epoch;

    if (count == 0 || count > DIGITS_TRAIN_ROWS)
        return -ERANGE;

    /* Hashing the seed first keeps epoch 1 of one seed apart from epoch 0 of the next. */
    steps_in_epoch = DIGITS_TRAIN_ROWS / count;
    random.state = digits_random_next(&random) + step / steps_in_epoch;
    memcpy(rows, split->train, sizeof rows);
    shuffle(&random, rows, DIGITS_TRAIN_ROWS);
    memcpy(ret_rows, rows + (size_t)(step % steps_in_epoch) * count,
           count * sizeof *rows);
    return 0;
}
