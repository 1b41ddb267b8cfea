/* Counts forks. A forked child has none of its parent's threads and must not wait for
 * them. */
#ifndef MU_RUNTIME_UV_PROCESS_H
#define MU_RUNTIME_UV_PROCESS_H

/* From now on forks are counted. May be called more than once. Any thread. */
void mu__process_watch(void);

/* Forks between the process that began to watch and this one. Any thread; cheap. */
unsigned mu__process_forks(void);

#endif
