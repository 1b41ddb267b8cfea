/* The life of a node: its states, and how it closes. */
#ifndef MU_NODE_CLOSING_H
#define MU_NODE_CLOSING_H

#include "muster/node.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

/* What a node's life goes through; closing.c has the legal moves. From SUPERSEDED on
 * calls are refused, from CLOSED on nothing of the node is used. */
enum mu__node_state {
    MU__NODE_OPENING, /* its parts are being opened */
    MU__NODE_RUNNING,
    MU__NODE_SUPERSEDED, /* another process plays its task, or its journal failed: its
                            program is to end */
    MU__NODE_LEAVING,    /* goodbye was said, calls are completed, no run begins */
    MU__NODE_DRAINING,   /* functions that run were told to stop, and are waited for */
    MU__NODE_CLOSED,     /* its parts close */
    MU__NODE_ABANDONED   /* the same; a function did not end: its thread and the node's
                            memory stay */
};

/* How a node closes. Loop thread, but for what is atomic. */
struct mu__lifecycle {
    atomic_int state;        /* enum mu__node_state */
    uv_async_t stop;         /* wakes the loop to close, */
    uv_async_t reread;       /* and to read key and certificate files again */
    uv_timer_t timer;        /* of the steps of closing */
    unsigned open_handles;   /* what must close before the node is freed */
    uint64_t began_ms;       /* loop time when closing began */
    atomic_llong timeout_ms; /* for functions that run; negative: without end */
    char superseded_by[768]; /* which process plays the task, in a sentence, or why
                                its journal cannot be used; "": none. Written
                                before SUPERSEDED is entered, */
    int superseded_code;     /* as the error of calls from then on */
    atomic_bool fails;       /* it closes because its program has failed */
    atomic_bool keeps_run;   /* it will be started again, to go on as it is now */
    char running[64];        /* the function that is waited for */
    void (*closed_cb)(void *user);
    void *closed_user;
};

/* Enter a state: false when no legal move leads there. Loop thread. */
bool mu__node_move(mu_node *node, enum mu__node_state to);

/* Close all parts; the last one's close callback frees the node. Loop thread, or before
 * it runs. */
void mu__node_teardown(mu_node *node);

/* The asyncs, and the timer of closing. */
int mu__lifecycle_open(mu_node *node, mu_error *ret_error);

/* The member's upcall: another process plays this task. The owner is the node. */
void mu__node_superseded(void *owner, const char *reason);

/* The same for any reason: calls that wait, and later ones, fail with `code`. */
void mu__node_refuse_all(mu_node *node, int code, const char *reason);

/* Close a node on its own thread whose opening has failed, and end the thread. The memory
 * stays. */
void mu__node_end_opening(mu_node *node);

/* The files of the task's journal and of the service's store. */
void mu__node_close_files(mu_node *node);

/* The memory of a node that has no open handles. */
void mu__node_free(mu_node *node);

/* One of the parts of `node`, a mu_node, that the teardown counts is closed. Loop
 * thread. */
void mu__node_part_closed(void *node);

/* Whether calls and posts are refused, with -MU_ECLOSED. Any thread. */
bool mu__node_refuses_calls(const mu_node *node);

/* Once they are refused: wait until no thread is in the middle of a post. All that was
 * posted is in the inbox then. Loop thread. */
void mu__node_await_posters(mu_node *node);

#endif
