/* Which process this is. Threads do not live on in a process that was forked, so what
 * belongs to some of them must not be waited for there. */
#ifndef MU_RUNTIME_UV_PROCESS_H
#define MU_RUNTIME_UV_PROCESS_H

/* From now on forks are counted. May be called more than once. Any thread. */
void mu__process_watch(void);

/* Forks between the process that began to watch and this one. Any thread; cheap. */
unsigned mu__process_forks(void);

#endif
