/* The log of a process: lines of text or JSON, to standard error or a file. Each line is
 * one write(), so that lines of several threads and processes do not mix. */
#ifndef MU_NODE_CMD_LOG_H
#define MU_NODE_CMD_LOG_H

#include "cli/options/flags.h"

struct cmd_log {
    const char *path; /* --log-file, or NULL */
    int fd;
    int level; /* lines above this level are not written */
    bool json;
};

/* Write all bytes, repeating after signals. Returns 0 or an errno. */
int cmd_write_all(int fd, const void *data, size_t size);

/* Open the log that --log-level, --log-format and --log-file describe. -MU_EINVALID when
 * the file cannot be opened; ret_error names it. */
int cmd_log_open(const struct cmd_options *options, mu_error *ret_error,
                 struct cmd_log *ret_log);
void cmd_log_close(struct cmd_log *log);

/* Go on in a new file of that name, when the old one was renamed: for who rotates logs.
 * Returns 0 or an errno; the old one is then used as before. */
int cmd_log_reopen(struct cmd_log *log);

/* The same for verbs that are clients: logs errors only, unless --log-level is given. */
int cmd_log_open_client(const struct cmd_options *options, mu_error *ret_error,
                        struct cmd_log *ret_log);

/* Write a line; a mu_log_fn whose `user` is the log. Any thread. */
void cmd_log_line(void *user, int level, const char *task, const char *who,
                  const char *line);

/* Write an error of the cluster, as one line: its text may be of any member. */
void cmd_print_error(const char *verb, const char *message);

/* Write a line of the command itself. */
void cmd_log_say(struct cmd_log *log, int level, const char *task, const char *format,
                 ...) MU_PRINTF(4, 5);

#endif
