#include "cli/run/task_output.h"

#include "cli/output/log.h"
#include "runtime/base/text.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { HEAD_BYTES = 96, PROGRESS_EVERY_MS = 2000, COLUMNS_DEFAULT = 80 };

static const char clear_line[] = "\r\033[2K";

void cmd_output_init(struct cmd_output *output, int fd, int width, bool colours)
{
    *output = (struct cmd_output){
        .fd = fd,
        .terminal = isatty(fd) == 1,
        .colours = colours,
        .width = width,
    };
}

static void write_task_output(const struct cmd_output *output, const char *text,
                              size_t size)
{
    (void)cmd_write_all(output->fd, text, size);
}

/* Write the prefix "worker/1 | ", coloured if requested. Returns its bytes. */
static size_t make_line_prefix(const struct cmd_output *output, const char *name,
                               unsigned colour, char *out)
{
    static const char *const codes[] = {"36", "32", "33", "35", "34", "96", "92", "95"};
    int used;

    if (output->colours)
        used = snprintf(out, HEAD_BYTES, "\033[%sm%-*s |\033[0m ",
                        codes[colour % (sizeof codes / sizeof codes[0])], output->width,
                        name);
    else
        used = snprintf(out, HEAD_BYTES, "%-*s | ", output->width, name);
    return used < HEAD_BYTES ? (size_t)used : HEAD_BYTES - 1;
}

static int columns_of(const struct cmd_output *output)
{
    struct winsize size;

    if (ioctl(output->fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return COLUMNS_DEFAULT;
}

/* How many bytes of `text` a terminal shows in its first line. Escapes take no room, and
 * a character is taken to be one column wide. */
static size_t bytes_of_columns(const char *text, int columns)
{
    const char *end = text + strlen(text);
    const char *at = text;

    while (at < end && columns > 1) {
        size_t length = mu__utf8_length(at, end);

        if (at[0] == '\033') {
            at += strcspn(at, "m");
            at += at < end;
            continue;
        }
        at += length == 0 ? 1 : length;
        columns--;
    }
    return (size_t)(at - text);
}

static void show_progress(const struct cmd_output *output)
{
    write_task_output(output, clear_line, sizeof clear_line - 1);
    write_task_output(output, output->progress,
                      bytes_of_columns(output->progress, columns_of(output)));
    if (output->colours)
        write_task_output(output, "\033[0m", 4);
}

void cmd_output_line(struct cmd_output *output, const char *name, unsigned colour,
                     const char *text, size_t size)
{
    char start[HEAD_BYTES];
    size_t start_size = make_line_prefix(output, name, colour, start);
    bool below = output->terminal && output->progress[0] != '\0';
    bool is_object = size > 1 && text[0] == '{' && text[size - 1] == '}';

    if (below)
        write_task_output(output, clear_line, sizeof clear_line - 1);
    if (!output->json || !is_object)
        write_task_output(output, start, start_size);
    write_task_output(output, text, size);
    write_task_output(output, "\n", 1);
    if (below)
        show_progress(output);
}

void cmd_output_progress(struct cmd_output *output, const char *name, unsigned colour,
                         const char *text, size_t size, uint64_t now_ms)
{
    size_t used = make_line_prefix(output, name, colour, output->progress);

    if (size > sizeof output->progress - 1 - used)
        size = sizeof output->progress - 1 - used;
    memcpy(output->progress + used, text, size);
    output->progress[used + size] = '\0';
    output->progress_due = true;
    (void)cmd_output_tick(output, now_ms);
}

static void flush_progress(struct cmd_output *output)
{
    output->progress_due = false;
    if (output->terminal) {
        show_progress(output);
        return;
    }
    write_task_output(output, output->progress, strlen(output->progress));
    write_task_output(output, "\n", 1);
}

int cmd_output_tick(struct cmd_output *output, uint64_t now_ms)
{
    uint64_t due_ms = output->progress_ms + PROGRESS_EVERY_MS;

    if (!output->progress_due)
        return -1;
    if (!output->terminal && output->progress_ms != 0 && now_ms < due_ms)
        return (int)(due_ms - now_ms);
    output->progress_ms = now_ms;
    flush_progress(output);
    return -1;
}

void cmd_output_end(struct cmd_output *output)
{
    if (output->progress_due)
        flush_progress(output);
    if (output->terminal && output->progress[0] != '\0')
        write_task_output(output, "\n", 1);
    output->progress[0] = '\0';
}
