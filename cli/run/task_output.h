/* The output of `muster run`: lines of the tasks, prefixed with the task's name, and on a
 * terminal one progress line below them, which is overwritten. If it is not a terminal,
 * progress lines are printed like others, at intervals. */
#ifndef MU_NODE_CMD_OUTPUT_H
#define MU_NODE_CMD_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CMD_PROGRESS_BYTES = 512 };

struct cmd_output {
    int fd;
    bool terminal;
    bool colours;
    bool json; /* lines that are objects get no name before them */
    int width; /* of the column of names */
    char progress[CMD_PROGRESS_BYTES]; /* the latest progress line, with its name; "" for
                                          none */
    bool progress_due;                 /* it was not shown yet */
    uint64_t progress_ms;              /* when a progress line was shown last */
};

/* `width` is the length of the longest name; `colours`: whether names are coloured. */
void cmd_output_init(struct cmd_output *output, int fd, int width, bool colours);

/* Print a line of a task; `colour` is the number of the name's colour. */
void cmd_output_line(struct cmd_output *output, const char *name, unsigned colour,
                     const char *text, size_t size);

/* Set the progress line, and show it when due. */
void cmd_output_progress(struct cmd_output *output, const char *name, unsigned colour,
                         const char *text, size_t size, uint64_t now_ms);

/* Show the progress line if it is due. Returns in how many milliseconds it will be due,
 * -1 for never. */
int cmd_output_tick(struct cmd_output *output, uint64_t now_ms);

/* End the output; the last progress line stays visible. */
void cmd_output_end(struct cmd_output *output);

#endif
