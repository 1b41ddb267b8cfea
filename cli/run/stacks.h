/* The stacks of a process that seems to hang. */
#ifndef MU_CLI_STACKS_H
#define MU_CLI_STACKS_H

/* Write the frames of each other thread of this process: of each the binary and the
 * address in it, and its name where it is exported. A thread that does not answer within
 * some time, since it blocks all signals or waits in the kernel, is named only. */
void cmd_write_stacks(int fd);

#endif
