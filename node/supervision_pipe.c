#include "node/supervision_pipe.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* -1: none. In a grandchild, which has inherited the variable, the descriptor may be any
 * file's: there the parent's pid is another one. */
int mu__supervision_fd(void)
{
    const char *text = getenv(MU_SUPERVISION_VARIABLE);
    long parent = 0;
    int fd = -1;

    return text == NULL || sscanf(text, "%d:%ld", &fd, &parent) != 2 ||
                   parent != (long)getppid() || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0
               ? -1
               : fd;
}

void mu__supervision_report(enum mu_supervision_event what, const char *text)
{
    char line[4096];
    int fd = mu__supervision_fd();
    int size = snprintf(line, sizeof line - 1, "%c%s", (char)what, text);

    if (fd < 0)
        return;
    if (size > (int)sizeof line - 2)
        size = (int)sizeof line - 2;
    for (int i = 0; i < size; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7F)
            line[i] = ' ';
    line[size] = '\n';
    (void)!write(fd, line, (size_t)size + 1);
}
