/* The actors of a few processes, each on a kernel of its own, joined by a small world
 * that keeps all frames in one queue: a test can stop, cut and crash between any two.
 * Nothing is late or out of order, and time goes on when nothing is left to do. */
#ifndef MU_TESTS_NET_H
#define MU_TESTS_NET_H

#include "actors/messages.h"
#include "runtime/kernel/kernel.h"
#include "sim/world/random.h"

enum { NET_PROCESSES_MAX = 8 };

struct net_process;

struct net_frame {
    struct net_frame *next;
    struct net_process *from;
    struct net_process *to;
    uint16_t kind;
    struct mu__buf *bytes;
};

struct net_process {
    struct mu__world world; /* first: a world is its process */
    struct net *net;
    struct mu__kernel *kernel; /* NULL: not running */
    uint64_t incarnation;      /* 1 at its first start, 2 at the next */
    const char *type;          /* of its task */
    uint32_t index;
    char address[32];
    int (*spawn)(struct net_process *p); /* its actors, at each net_start() */
    const void *arg;                     /* for spawn() */
    uint64_t wake_ms;                    /* UINT64_MAX: none asked for */
    uint32_t numbers[NET_PROCESSES_MAX]; /* what it calls the others; 0: not
                                            connected */
    bool deaf;                           /* what is sent to it is lost without a word */
    bool full;                           /* links to it have no room */
};

/* Zeroed, but for what net_init() sets. */
struct net {
    uint64_t now_ms;
    struct sim_random random;
    uint32_t number_last;
    size_t processes_count;
    struct net_process processes[NET_PROCESSES_MAX];
    struct net_frame *first;
    struct net_frame **last;
    uint64_t bytes;                 /* in the queue now, */
    uint64_t bytes_peak;            /* and at most */
    uint64_t counts[MU__KINDS_END]; /* of frames sent */
    char warning[256];              /* the last line of a log that was one, or an error */
};

void net_init(struct net *net, uint64_t seed);

/* All processes crash; nothing is under way then. */
void net_done(struct net *net);

/* A process that does not run yet, at "tcp://TYPEINDEX:1". */
struct net_process *net_add(struct net *net, const char *type, uint32_t index,
                            int (*spawn)(struct net_process *p));

/* It has links to all that run; it has none any more, and what was under way is lost. */
void net_start(struct net_process *p);
void net_crash(struct net_process *p);
void net_restart(struct net_process *p);

/* Between two of them; what is under way on a link that goes down is lost. */
void net_link_up(struct net_process *a, struct net_process *b);
void net_link_down(struct net_process *a, struct net_process *b);

/* The same with all others. */
void net_cut(struct net_process *p);
void net_heal(struct net_process *p);

/* Only `p` hears that its link to `peer` broke, and that it is up again. */
void net_link_anew(struct net_process *p, struct net_process *peer);

/* What is under way is lost without a word: between two of them, or all of it. */
void net_drop_between(struct net_process *a, struct net_process *b);
void net_drop_all(struct net *net);

/* Give a message to an actor of a process, and let it be handled. */
void net_deliver(struct net_process *p, struct mu__msg *msg);
void net_turn(struct net_process *p);

/* The next thing that happens now: a turn, or the arrival of a frame. False: there is
 * nothing. */
bool net_step(struct net *net);

/* Until nothing is left to do now; until then; for so long. */
void net_settle(struct net *net);
void net_run_until(struct net *net, uint64_t until_ms);
void net_run_for(struct net *net, uint64_t ms);

/* Until a frame of this kind would be the next to arrive. */
void net_run_to_frame(struct net *net, uint16_t kind);

#endif
