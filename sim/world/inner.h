/* What the files of the simulator share. Tests include sim.h. */
#ifndef MU_SIM_WORLD_INNER_H
#define MU_SIM_WORLD_INNER_H

#include "runtime/message/pool.h"
#include "sim/world/events.h"
#include "sim/world/random.h"
#include "sim/world/sim.h"

/* ---- trace.c ---- */

struct sim_text {
    char *bytes;
    size_t size; /* without the zero at the end */
    size_t capacity;
    bool taken; /* by sim_trace: the next line begins anew */
    enum mu__log_level level;
};

void sim_text_init(struct sim_text *text);
void sim_text_done(struct sim_text *text);
void sim_text_line(struct sim_text *text, uint64_t now_ms, const char *node,
                   const char *who, const char *line);

/* A fold of `bytes` into a digest. */
uint64_t sim_digest_bytes(uint64_t digest, const void *bytes, size_t size);

/* ---- credentials.c ---- */

/* What one end of a connection knows by the meeting. */
struct sim_met {
    struct mu__proof proof;   /* of the other end */
    enum mu__right own_right; /* that this one has proven */
};

/* What came of two that have met. */
struct sim_meeting {
    bool refused;
    struct sim_met dialler;  /* what is known of the dialler, to the listener */
    struct sim_met listener; /* the other way round */
    const char *dialler_why; /* refused: what it sees */
    char why[160];           /* and what is said of it */
};

void sim_meet(const struct sim_node *dialler, const struct sim_node *to,
              struct sim_meeting *ret_meeting);

void sim_wire_proof(struct mu__wire *wire, uint32_t number, struct mu__proof *ret_proof);
enum mu__right sim_wire_own_right(struct mu__wire *wire, uint32_t number);

/* ---- network.c ---- */

struct sim_frame {
    struct sim_frame *next;
    struct mu__buf *buf;
    uint64_t due_us;
    uint64_t order;
};

/* One way of a connection that was made, until both ends are done with it. */
struct sim_conn {
    struct sim_conn *next;
    struct sim_conn **link;    /* what points here */
    struct sim_conn *next_end; /* of those that end at `to` */
    struct sim_conn *back;     /* the other way */
    struct sim_node *from;
    struct sim_node *to;
    uint32_t number;         /* of the connection, as `to` knows it */
    uint32_t age;            /* later ones have higher numbers */
    struct sim_frame *first; /* under way, in order */
    struct sim_frame **last;
    uint32_t frames;
    uint64_t bytes;
    uint64_t busy_us; /* the line is taken by earlier frames until then */
    uint64_t last_due_us;
    struct sim_event arrive;   /* of the first frame, or of the end */
    struct sim_event writable; /* for `from` */
    const char *end_reason;    /* NULL while it may carry more */
    unsigned from_life;        /* of the sender, when it was made */
    unsigned addresses;        /* of the name that `to` has dialled */
    bool open;                 /* `to` has not heard of the end, nor hung up */
    bool full;                 /* has answered EAGAIN */
    bool held;                 /* by a block: not queued */
    bool cut;                  /* its end is told in spite of blocks */
    bool refused;              /* the two did not accept each other: `why` */
    struct sim_met met;        /* what `to` knows */
    char why[160];
};

/* A connection that the process has asked for, until it is there or hung up. */
struct sim_dial {
    struct sim_dial *next;
    struct sim_node *node;
    char *url;
    const struct mu__dial_tried *tried; /* borrowed; NULL: none */
    const char *refused;                /* why the last attempt was; NULL: it was not */
    struct sim_event event;             /* the next try */
    uint64_t redial_us;                 /* the wait after the next failure */
    uint32_t number;
};

extern const struct mu__wire_ops sim_wire_ops;

struct sim_node *sim_node_of_wire(struct mu__wire *wire);

/* The way to the node of a connection that its process has open; NULL: there is none. */
struct sim_conn *sim_conn_find(const struct sim_node *node, uint32_t number);

/* One way, from a to b, for one frame. */
uint64_t sim_latency_us(const struct sim_node *from, const struct sim_node *to);

/* Queue what comes next at the end of a way: a frame, or the end. */
void sim_conn_arm(struct sim_conn *conn);

/* No more frames: the end of the way hears that after the last one, `after_us` from now
 * at the earliest. */
void sim_conn_end(struct sim_conn *conn, uint64_t after_us, const char *reason);

/* The process of `node` has gone: close its ends of all connections. */
void sim_network_leave(struct sim_node *node);

/* Free connections that both ends are done with. */
void sim_network_sweep(struct sim *sim);

void sim_network_done(struct sim *sim);

/* ---- process.c ---- */

struct sim_slot {
    struct sim_event event;
    struct mu__work *work; /* NULL: free */
    uint64_t end_us;
};

struct sim_node {
    struct mu__world world;
    struct mu__wire wire;
    struct sim *sim;
    const char *name;
    char *address;
    const struct sim_program *program;
    void *arg;
    uint32_t number;

    /* Of the present life. */
    struct mu__world_hooks hooks;
    struct mu__wire_events events;
    void *events_owner;
    struct sim_random random;
    uint64_t clock_ms; /* what its clock shows more than ours */
    struct sim_event wake;
    struct sim_event posted;
    struct mu__msg *post_first;
    struct mu__msg **post_last;
    struct sim_slot slots[SIM_EXECUTORS_MAX];
    struct mu__list work_queue; /* works that wait for a slot */
    unsigned works;
    struct sim_dial *dials;
    struct sim_conn *ends;            /* ways that end here */
    uint32_t ins;                     /* accepted connections so far */
    uint32_t youngest[SIM_NODES_MAX]; /* by sender: of these, the last one that
                                         has brought a frame */
    struct sim_event burst;           /* queued while a burst is open */
    uint64_t read_us;                 /* asked for a pause: nothing arrives before */
    unsigned sends_left;              /* with `midway`: frames until it dies */
    bool midway;
    bool running;
    bool doomed; /* dies at the end of this event */
    bool exited; /* has ended by itself */

    /* Of the place. */
    struct sim_credentials credentials;
    unsigned lives;
    unsigned slow;
    uint32_t spared; /* bits of enum sim_fault */
    bool paused;
    struct sim_event resume;
    struct sim_event **parked; /* what waits for the end of the pause */
    size_t parked_count;
    size_t parked_capacity;
    uint64_t blocked[SIM_NODES_MAX / 64]; /* whom its frames do not reach */
    uint16_t slow_to[SIM_NODES_MAX];      /* factor of latency; 0 is 1 */
};

extern const struct mu__world_ops sim_world_ops;

/* Events of the wire come in bursts: to be called after each one. */
void sim_burst_after(struct sim_node *node);

/* The burst ends here, if one is open. */
void sim_burst_close(struct sim_node *node);

/* Take the process away. Frees what is under way for it. */
void sim_process_end(struct sim_node *node);

void sim_node_free(struct sim_node *node);

char *sim_copy(const char *text);

/* ---- chaos.c ---- */

void sim_chaos_free(struct sim *sim);

/* ---- sim.c ---- */

/* A call at a time: of the test, or of chaos. */
struct sim_call {
    struct sim_call *next;
    struct sim_call **link;
    struct sim_event event;
    struct sim *sim;
    void (*call)(struct sim *sim, void *arg);
    void (*apply)(struct sim_node *a, struct sim_node *b);
    void *arg;
    struct sim_node *a;
    struct sim_node *b;
};

/* A name with several addresses. */
struct sim_name {
    const char *url;
    const char *const *addresses;
    unsigned count;
};

struct sim {
    uint64_t seed;
    uint64_t now_us;
    uint64_t order;
    struct sim_random random; /* of the network and the executors */
    struct sim_random chaos_random;
    struct sim_settings settings;
    struct sim_queue queue;
    struct sim_node *nodes[SIM_NODES_MAX];
    uint32_t nodes_count;
    struct sim_name names[SIM_NAMES_MAX];
    unsigned names_count;
    struct sim_conn *conns;
    uint32_t conns_made;
    struct sim_frame *frames_free;
    struct sim_call *calls;
    struct sim_node *current; /* whose event this is */
    struct sim_text text;
    uint64_t digest;
    struct sim_counters counters;
    uint64_t instant_us; /* how many events there were at this time */
    uint64_t instant_events;
    void (*check)(struct sim *sim, void *arg);
    void *check_arg;
    struct mu__pool pool; /* for freeing messages that nobody gets */
    void *chaos;          /* chaos.c; NULL: none started */
    bool sweep;           /* there are connections to be freed */
};

/* Set an event up; it is idle. */
void sim_event_init(struct sim_event *event, struct sim_node *node,
                    enum sim_context context, void (*fire)(void *owner), void *owner);

/* Queue an idle event, or queue it anew. A time already past means now. */
void sim_event_at(struct sim *sim, struct sim_event *event, uint64_t due_us);

/* The same, a drawn while from now. */
void sim_event_in(struct sim *sim, struct sim_event *event, struct sim_range after);

/* The same with a place in the order that was given out before. */
void sim_event_at_order(struct sim *sim, struct sim_event *event, uint64_t due_us,
                        uint64_t order);

void sim_event_cancel(struct sim *sim, struct sim_event *event);

uint64_t sim_draw_range(struct sim *sim, struct sim_range range);

/* Of the event that ends a node's pause. */
void sim_pause_end(void *owner);

/* Apply to a pair of nodes at a time. */
void sim_apply_at(struct sim *sim, uint64_t at_us,
                  void (*apply)(struct sim_node *a, struct sim_node *b),
                  struct sim_node *a, struct sim_node *b);

/* The first half of sim_unblock: of many pairs at once, the last one does the other half
 * for all. */
void sim_unblock_later(struct sim_node *a, struct sim_node *b);

static inline bool sim_is_blocked(const struct sim_node *from, const struct sim_node *to)
{
    return (from->blocked[to->number / 64] >> (to->number % 64) & 1) != 0;
}

/* faults.c: whether the system of a process that does not run says so to who dials it. */
bool sim_is_refused(const struct sim_node *node, const char *url);

#endif
