/* Helpers of all benchmarks: size, clock, order statistics, the result line, and
 * measuring a limit with a program of bench/raw/ in the same run.
 *
 * Under ctest (MUSTER_BENCH unset) a benchmark runs its small size once and prints
 * nothing, as a test that it works. With MUSTER_BENCH=1 it runs the full size and prints
 * one JSON line for each metric. */
#ifndef MUSTER_BENCH_H
#define MUSTER_BENCH_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BENCH_PATH_MAX 1024
#define BENCH_LINE_MAX 2048

static inline int bench_is_full(void)
{
    return getenv("MUSTER_BENCH") != NULL;
}

static inline uint64_t bench_size(uint64_t smoke, uint64_t full)
{
    return bench_is_full() ? full : smoke;
}

static inline uint64_t bench_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* Events per second: `count` of them between two readings of bench_now_ns(). */
static inline double bench_rate(uint64_t count, uint64_t start_ns, uint64_t end_ns)
{
    assert(end_ns > start_ns);
    return (double)count * 1e9 / (double)(end_ns - start_ns);
}

static inline int bench_compare_u64(const void *left, const void *right)
{
    uint64_t a;
    uint64_t b;

    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return (a > b) - (a < b);
}

/* The value below which `percent` of the samples lie (0 to 100; nearest rank). Sorts
 * `samples` in place. */
static inline uint64_t bench_percentile(uint64_t *samples, size_t count, double percent)
{
    size_t rank;

    assert(count > 0 && percent >= 0.0 && percent <= 100.0);
    qsort(samples, count, sizeof samples[0], bench_compare_u64);
    rank = (size_t)((double)(count - 1) * percent / 100.0 + 0.5);
    return samples[rank];
}

static inline uint64_t bench_median(uint64_t *samples, size_t count)
{
    return bench_percentile(samples, count, 50.0);
}

/* One result. Fields left zero are left out of the line. */
struct bench_line {
    const char *bench;
    const char *metric;
    double value;
    const char *unit;
    double limit;      /* measured without muster, in `unit`; gives "ratio" */
    double target;     /* the target, in `unit`; gives "ok" */
    bool less_is_more; /* the value is a cost: ok when at or below the target */
    const char *extra; /* further JSON members, without braces or leading comma */
};

/* Whether the value reaches its target; a line without a target is always fine. */
static inline bool bench_line_ok(const struct bench_line *line)
{
    if (line->target <= 0.0)
        return true;
    if (line->less_is_more)
        return line->value <= line->target;
    return line->value >= line->target;
}

static inline void bench_line_write(FILE *file, const struct bench_line *line)
{
    fprintf(file, "{\"bench\":\"%s\",\"metric\":\"%s\",\"value\":%.6g,\"unit\":\"%s\"",
            line->bench, line->metric, line->value, line->unit);
    if (line->limit > 0.0)
        fprintf(file, ",\"limit\":%.6g,\"ratio\":%.3f", line->limit,
                line->value / line->limit);
    if (line->target > 0.0)
        fprintf(file, ",\"target\":%.6g,\"ok\":%s", line->target,
                bench_line_ok(line) ? "true" : "false");
    if (line->extra != NULL)
        fprintf(file, ",%s", line->extra);
    fputs("}\n", file);
    fflush(file);
}

/* Print the line when the full size was run, and nothing under ctest. */
static inline void bench_report(const struct bench_line *line)
{
    if (bench_is_full())
        bench_line_write(stdout, line);
}

/* The folder of the running executable. Returns 0, or -1 when it is not known or its name
 * is too long. */
static inline int bench_own_dir(char *ret_dir, size_t capacity)
{
    ssize_t length = readlink("/proc/self/exe", ret_dir, capacity - 1);
    char *slash;

    if (length <= 0)
        return -1;
    ret_dir[length] = '\0';
    slash = strrchr(ret_dir, '/');
    if (slash == NULL)
        return -1;
    *slash = '\0';
    return 0;
}

/* Where the programs of bench/raw/ are: MUSTER_RAW_DIR, or raw/ beside the running
 * executable. Returns 0, or -1 when that is not known or too long. */
static inline int bench_raw_dir(char *ret_dir, size_t capacity)
{
    const char *given = getenv("MUSTER_RAW_DIR");
    char own[BENCH_PATH_MAX];
    int written;

    if (given != NULL) {
        written = snprintf(ret_dir, capacity, "%s", given);
        return written > 0 && (size_t)written < capacity ? 0 : -1;
    }
    if (bench_own_dir(own, sizeof own) != 0)
        return -1;
    written = snprintf(ret_dir, capacity, "%s/raw", own);
    return written > 0 && (size_t)written < capacity ? 0 : -1;
}

/* The number behind "value" in a result line. Returns 0, or -1 when there is none. */
static inline int bench_line_value(const char *text, double *ret_value)
{
    static const char key[] = "\"value\":";
    const char *found = strstr(text, key);
    char *end;
    double value;

    if (found == NULL)
        return -1;
    found += sizeof key - 1;
    value = strtod(found, &end);
    if (end == found)
        return -1;
    *ret_value = value;
    return 0;
}

/* Run a command and take the value out of the last line it prints. It runs the full size
 * when this program does, and this program waits for it. Returns 0, or -1 when it could
 * not be run, failed, or printed no value; then *ret_value is unchanged, so that a limit
 * of 0 leaves the line without one. */
static inline int bench_command(const char *command, double *ret_value)
{
    char text[BENCH_LINE_MAX];
    double value = 0.0;
    int found = -1;
    FILE *pipe = popen(command, "r");

    if (pipe == NULL)
        return -1;
    while (fgets(text, sizeof text, pipe) != NULL) {
        if (bench_line_value(text, &value) == 0)
            found = 0;
    }
    if (pclose(pipe) != 0 || found != 0)
        return -1;
    *ret_value = value;
    return 0;
}

/* The same with a program of bench/raw/, which measures the limit. `before` are words
 * before it, such as "mpirun -n 8 "; `args` are its own, such as "transport=ipc". */
static inline int bench_raw_by(const char *before, const char *program, const char *args,
                               double *ret_value)
{
    char dir[BENCH_PATH_MAX];
    char command[2 * BENCH_PATH_MAX];
    int written;

    if (bench_raw_dir(dir, sizeof dir) != 0 || strchr(dir, '\'') != NULL)
        return -1;
    written =
        snprintf(command, sizeof command, "%s'%s/%s' %s", before, dir, program, args);
    if (written < 0 || (size_t)written >= sizeof command)
        return -1;
    return bench_command(command, ret_value);
}

static inline int bench_raw(const char *program, const char *args, double *ret_value)
{
    return bench_raw_by("", program, args, ret_value);
}

/* Whether a program for comparison is installed. Without it lines have no limit, and a
 * message says so once. */
static inline bool bench_has(const char *program)
{
    char command[128];
    bool found;

    (void)snprintf(command, sizeof command, "command -v %s >/dev/null", program);
    found = bench_is_full() && system(command) == 0;
    if (bench_is_full() && !found)
        printf("%s is not installed: not compared with it\n", program);
    return found;
}

#endif
