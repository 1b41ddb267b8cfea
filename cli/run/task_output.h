/* What `muster run` shows of its tasks: lines behind the name of their task, and below
 * them, on a terminal, one progress line that is written over. Elsewhere progress lines
 * are ordinary ones, and few. */
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
    int width;              /* of the names */
    char progress[CMD_PROGRESS_BYTES];  /* the last one, with its name; "" for none */
    bool progress_due;      /* not shown yet */
    uint64_t progress_ms;   /* when one was shown last */
};

/* `width` is the longest name's; `colours` whether names are coloured. */
void cmd_output_init(struct cmd_output *output, int fd, int width, bool colours);

/* One line of a task; `colour` tells tasks apart. */
void cmd_output_line(struct cmd_output *output, const char *name, unsigned colour,
                     const char *text, size_t size);

/* The new progress. */
void cmd_output_progress(struct cmd_output *output, const char *name, unsigned colour,
                         const char *text, size_t size, uint64_t now_ms);

/* Show what progress is due by now. Returns in how many milliseconds there will be some,
 * -1 for never. */
int cmd_output_tick(struct cmd_output *output, uint64_t now_ms);

/* The end: the last progress stays visible. */
void cmd_output_end(struct cmd_output *output);

#endif
