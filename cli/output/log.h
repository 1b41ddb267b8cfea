/* Where a process's log goes: text or JSON lines, to standard error or a file. One line
 * is one write, so lines of several threads and processes do not mix. */
#ifndef MU_NODE_CMD_LOG_H
#define MU_NODE_CMD_LOG_H

#include "cli/options/flags.h"

struct cmd_log {
    int fd;
    int level;      /* the least grave level that is written */
    bool json;
};

/* By the flags --log-level, --log-format and --log-file. -MU_EINVALID when the file
 * cannot be opened; ret_error names it. */
int cmd_log_open(const struct cmd_options *options, mu_error *ret_error,
                 struct cmd_log *ret_log);
void cmd_log_close(struct cmd_log *log);

/* One line; a mu_log_fn, whose `user` is the log. Any thread. */
void cmd_log_line(void *user, int level, const char *task, const char *who,
                  const char *line);

/* One line of this program's own. */
void cmd_log_say(struct cmd_log *log, int level, const char *task, const char *format,
                 ...) MU_PRINTF(4, 5);

#endif
