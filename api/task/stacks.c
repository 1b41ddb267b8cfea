/* Each thread writes its own stack in a handler, one after the other. The signal is
 * SIGTRAP, one of the few that threads of the library do not block. */
#define _GNU_SOURCE /* tgkill's number, sem_timedwait */
#include "api/task/task.h"

#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FRAMES_MAX = 64, HANDLER_FRAMES = 2, THREAD_MS = 500, NAME_BYTES = 32 };

/* Static: the handler has no other argument than the signal. */
static int stacks_fd;
static sem_t stacks_written;

static void write_own_stack(int number)
{
    void *frames[FRAMES_MAX];
    int saved = errno;
    int count = backtrace(frames, FRAMES_MAX);

    (void)number;
    if (count > HANDLER_FRAMES)
        backtrace_symbols_fd(frames + HANDLER_FRAMES, count - HANDLER_FRAMES, stacks_fd);
    (void)sem_post(&stacks_written);
    errno = saved;
}

/* "muster-loop": what the system calls the thread. */
static void read_thread_name(long id, char *out)
{
    char path[64];
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/self/task/%ld/comm", id);
    file = fopen(path, "r");
    out[0] = '\0';
    if (file == NULL)
        return;
    if (fgets(out, NAME_BYTES, file) != NULL)
        out[strcspn(out, "\n")] = '\0';
    (void)fclose(file);
}

static void write_thread(long id)
{
    char name[NAME_BYTES];
    struct timespec end;

    read_thread_name(id, name);
    (void)dprintf(stacks_fd, "thread %ld (%s):\n", id, name);
    (void)clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += THREAD_MS * 1000000L;
    end.tv_sec += end.tv_nsec / 1000000000L;
    end.tv_nsec %= 1000000000L;
    if (syscall(SYS_tgkill, (long)getpid(), id, SIGTRAP) != 0)
        return;
    while (sem_timedwait(&stacks_written, &end) != 0)
        if (errno != EINTR) {
            (void)dprintf(stacks_fd, "no answer within %d ms\n", THREAD_MS);
            return;
        }
}

void mu__write_stacks(int fd)
{
    struct sigaction action = {.sa_handler = write_own_stack, .sa_flags = SA_RESTART};
    DIR *folder = opendir("/proc/self/task");
    const struct dirent *entry;
    void *frame[1];

    if (folder == NULL)
        return;
    (void)backtrace(frame, 1); /* loads what it needs, outside of a handler */
    stacks_fd = fd;
    (void)sem_init(&stacks_written, 0, 0);
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGTRAP, &action, NULL);
    while ((entry = readdir(folder)) != NULL) {
        long id = strtol(entry->d_name, NULL, 10);

        if (id > 0 && id != syscall(SYS_gettid))
            write_thread(id);
    }
    (void)closedir(folder);
}
