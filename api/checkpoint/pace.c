#include "api/checkpoint/pace.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    WORK_MS = 8,      /* between two looks */
    WAITED_PART = 10, /* a longer wait is one for others: wakes alone take less */
    REST_MS_MAX = 16,
    NS_PER_MS = 1000000
};

/* Linux has it: how long the thread was ready to run, but did not. */
static bool read_waited_ns(const struct mu__pace *pace, uint64_t *ret_ns)
{
    char text[80];
    char *behind_first;
    ssize_t size = pace->file < 0 ? -1 : pread(pace->file, text, sizeof text - 1, 0);

    if (size <= 0)
        return false;
    text[size] = '\0';
    (void)strtoull(text, &behind_first, 10); /* how long it ran */
    *ret_ns = strtoull(behind_first, NULL, 10);
    return true;
}

void mu__pace_init(struct mu__pace *pace, uint64_t now_ns)
{
    *pace = (struct mu__pace){
        .file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC),
        .since_ns = now_ns};
    (void)read_waited_ns(pace, &pace->waited_ns);
}

/* Where the system does not say it, cores are taken for busy. */
static bool has_waited(struct mu__pace *pace, uint64_t for_ns)
{
    uint64_t before_ns = pace->waited_ns;

    return !read_waited_ns(pace, &pace->waited_ns) ||
           pace->waited_ns - before_ns > for_ns / WAITED_PART;
}

unsigned mu__pace_rest_ms(struct mu__pace *pace, uint64_t now_ns)
{
    uint64_t for_ns = now_ns - pace->since_ns;
    uint64_t rest_ms = 0;

    if (for_ns < (uint64_t)WORK_MS * NS_PER_MS)
        return 0;
    if (has_waited(pace, for_ns))
        rest_ms = for_ns / NS_PER_MS;
    if (rest_ms > REST_MS_MAX)
        rest_ms = REST_MS_MAX;
    pace->since_ns = now_ns + rest_ms * NS_PER_MS;
    return (unsigned)rest_ms;
}

void mu__pace_done(struct mu__pace *pace)
{
    if (pace->file >= 0)
        (void)close(pace->file);
    pace->file = -1;
}
