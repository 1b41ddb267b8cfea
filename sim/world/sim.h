/* The simulated world: many processes in one thread, with a virtual clock, a network and
 * faults that all follow from one seed.
 *
 * A node of the simulator is a place where a process can run, with a name for the trace
 * and an address. The test says with a struct sim_program how the process is made there;
 * the process gets a struct mu__world and a struct mu__wire, attaches its hooks and
 * events, and cannot tell them from the real ones. A crash takes the process away
 * between two events, without a word; a restart makes a new one. Nothing of a former life
 * (frames, turns, works, posts) reaches the next.
 *
 *     static int start(void *arg, struct sim_node *node, struct mu__world *world,
 *                      struct mu__wire *wire)
 *     {
 *         struct process *process = arg;
 *
 *         process->member = member_new(world, wire);
 *         sim_attach(node, &member_hooks, &member_wire_events, process->member);
 *         return 0;
 *     }
 *
 *     sim = sim_new(seed);
 *     node = sim_node_add(sim, "worker/0", "tcp://worker0:1", &program, &process);
 *     sim_start(node);
 *     sim_run_until(sim, 1000);
 *
 * Time is counted in microseconds inside and told in milliseconds. Events happen in a
 * total order: due time, then the order of queueing. Unless the settings are changed the
 * network is plain: a frame takes 10 ms, a piece of work 10 ms, a dial 20 ms, news of a
 * broken connection 10 ms, and nothing is lost; sim_settings_draw makes it nasty. */
#ifndef MU_SIM_WORLD_SIM_H
#define MU_SIM_WORLD_SIM_H

#include "muster/error.h"
#include "runtime/kernel/world.h"
#include "transport/wire/wire.h"

struct sim;
struct sim_node;

enum {
    SIM_NODES_MAX = 256,
    SIM_EXECUTORS_MAX = 16,
    SIM_NAMES_MAX = 8,
    SIM_TRACE_BYTES_MAX = 1 << 20,   /* the older half goes when it is reached */
    SIM_INSTANT_EVENTS_MAX = 1 << 20 /* at one virtual time; more is a livelock */
};

/* How a process is made and taken away. */
struct sim_program {
    /* Build the process and attach it. Nonzero: it could not start, and has freed what
     * there was of it. */
    int (*start)(void *arg, struct sim_node *node, struct mu__world *world,
                 struct mu__wire *wire);

    /* Free everything of it. World and wire are dead by now: what they are asked has no
     * effect, no event follows, and works that were with the executor are forgotten. */
    void (*stop)(void *arg);
};

/* Both ends included; equal ends draw nothing. */
struct sim_range {
    uint64_t min_us;
    uint64_t max_us;
};

struct sim_settings {
    struct sim_range latency; /* of a frame, one way */
    struct sim_range connect; /* from dial to `up` */
    struct sim_range notice;  /* until a lost connection is noticed */
    struct sim_range work;    /* how long an executor needs, */
    uint64_t (*work_us)(const struct mu__work *work); /* unless this says it: not 0 */
    struct sim_range post;         /* from another thread to the loop */
    struct sim_range late;         /* a turn after its due time */
    struct sim_range redial;       /* first and longest wait before dialling again */
    bool redial_drawn;             /* from half of it to all of it */
    bool refuses;                  /* the address of a process that has ended refuses
                                      connections, else nothing answers there */
    struct sim_range clock;        /* what a process's clock shows at time 0 */
    uint64_t burst_us;             /* longest burst of the wire */
    uint64_t connection_bytes_max; /* under way in one connection before EAGAIN */
    uint64_t bytes_per_ms;         /* of one connection; 0: no limit */
    unsigned executors;            /* works that run at once in a process */
    unsigned burst_percent;        /* chance that a burst goes on after an event */
    unsigned again_percent;        /* chance that send answers EAGAIN for no reason */
    unsigned lose_percent;         /* chance that a breaking connection loses frames */
    unsigned stuck_percent;        /* chance that a work hangs instead */
    struct sim_range stuck;        /* for so long, then it ends as others do */
    uint64_t stuck_until_us;       /* works that begin later do not hang */
};

struct sim_counters {
    uint64_t events;
    uint64_t frames; /* delivered */
    uint64_t frames_lost;
    uint64_t frames_overtaken; /* delivered after one of a younger connection */
    uint64_t frames_of_dead;   /* delivered after their sender's life */
    uint64_t refused;          /* connections that were not made for want of a proof */
    uint64_t works;            /* run */
    uint64_t stuck;            /* of these, hung */
    uint64_t lives;            /* processes started */
};

struct sim *sim_new(uint64_t seed);

/* Takes every process away, and everything that is under way. NULL is fine. */
void sim_free(struct sim *sim);

/* To be changed before the nodes start, or between runs. */
struct sim_settings *sim_settings(struct sim *sim);

/* Draw other settings from the seed: some runs are calm, some are nasty. */
void sim_settings_draw(struct sim *sim);

void sim_counters(const struct sim *sim, struct sim_counters *ret_counters);

/* The seeds a test of many runs should take: [*ret_first, *ret_end). `count` of them,
 * from 1; or MUSTER_SIM_SEEDS of them; or only MUSTER_SIM_SEED, to replay one. */
void sim_seeds(uint64_t count, uint64_t *ret_first, uint64_t *ret_end);

/* ---- Time ---- */

uint64_t sim_now_ms(const struct sim *sim);
uint64_t sim_now_us(const struct sim *sim);

/* Let the next event happen. False when there is none. */
bool sim_step(struct sim *sim);

/* Everything due at `until_ms` or before happens; then it is until_ms. */
void sim_run_until(struct sim *sim, uint64_t until_ms);

/* Until nothing is left to happen: true. False when that is not so at until_ms. */
bool sim_run_idle(struct sim *sim, uint64_t until_ms);

/* Until done(arg), which is asked before each event: true. False when that is not so at
 * until_ms, or when nothing is left to happen. */
bool sim_run_to(struct sim *sim, bool (*done)(void *arg), void *arg, uint64_t until_ms);

/* Call `call` at a time. Part of the order of events. */
void sim_at(struct sim *sim, uint64_t at_ms, void (*call)(struct sim *sim, void *arg),
            void *arg);

/* Called after every event, to look for what must never be. */
void sim_set_check(struct sim *sim, void (*check)(struct sim *sim, void *arg), void *arg);

/* ---- Trace ---- */

/* What was logged since the last call, "[  400] worker/1 who: line\n" each. Valid until
 * anything else happens in the simulator. */
const char *sim_trace(struct sim *sim);

/* Keep lines up to this level only; MU__LOG_INFO at first. */
void sim_trace_level(struct sim *sim, enum mu__log_level level);

/* A number that every event, frame and line so far has gone into, kept or not: equal for
 * equal runs. */
uint64_t sim_digest(const struct sim *sim);

/* Write a line into the trace in the name of the simulator. */
void sim_note(struct sim *sim, enum mu__log_level level, const char *format, ...)
    MU_PRINTF(3, 4);

/* ---- Processes ---- */

/* `name`, `program` and `arg` are borrowed for as long as the simulator lives, `address`
 * is copied. The simulator owns the node; sim_start starts its process. */
struct sim_node *sim_node_add(struct sim *sim, const char *name, const char *address,
                              const struct sim_program *program, void *arg);

/* Called by the program's start. `events` may be NULL for a process without a wire, as
 * may single hooks and events. */
void sim_attach(struct sim_node *node, const struct mu__world_hooks *hooks,
                const struct mu__wire_events *events, void *events_owner);

/* One more name: `url` leads to the first of these addresses that can be reached, of
 * those that a process avoids to the last. All is borrowed, and may be given anew. */
void sim_name(struct sim *sim, const char *url, const char *const *addresses,
              unsigned count);

/* What the program's start returns; not running then unless 0. */
int sim_start(struct sim_node *node);

/* The process is gone at once: peers notice broken connections after a while. Inside an
 * event of that process: at its end. Nothing happens to a process that does not run. */
void sim_crash(struct sim_node *node);

/* The process dies in the middle of a turn to come: it sends `frames` more frames, then
 * whatever it still sends in that event is lost, and it is gone at the event's end. */
void sim_crash_midway(struct sim_node *node, unsigned frames);

/* Crash it if it runs, then start it. */
int sim_restart(struct sim_node *node);

/* For the process itself: it ends, at the end of this event. Chaos leaves it alone. */
void sim_exit(struct sim_node *node);

/* False before its start, after its end, and once its death is certain. */
bool sim_alive(const struct sim_node *node);

/* How many times it was started. */
unsigned sim_lives(const struct sim_node *node);

const char *sim_node_name(const struct sim_node *node);
struct sim *sim_node_sim(const struct sim_node *node);
struct mu__world *sim_node_world(struct sim_node *node);
struct mu__wire *sim_node_wire(struct sim_node *node);

/* What the process of a place proves itself with, and whom it lets in for that, as TLS
 * does it on a real wire: one key, or certificates of one CA. */
struct sim_credentials {
    enum {
        SIM_PLAIN, /* nothing: it meets those who have nothing, too */
        SIM_KEY,
        SIM_CERTIFICATE
    } kind;
    uint32_t of;           /* which cluster's key; which CA */
    enum mu__right right;  /* MU__RIGHT_ALL: the cluster's key itself */
    const char *task_type; /* that the certificate names; NULL: none */
    uint32_t task_index;
};

/* From now on, also of the process that runs: for connections that are made later. What
 * is up stays up. At first places have nothing. */
void sim_node_prove(struct sim_node *node, const struct sim_credentials *credentials);

/* The address of its next life. */
void sim_node_move(struct sim_node *node, const char *address);

/* A message from another thread of the process. Takes msg, which was made with
 * mu__msg_heap. */
void sim_post(struct sim_node *node, struct mu__msg *msg);

/* The number of works with its executor, waiting or running. */
unsigned sim_works(const struct sim_node *node);

/* ---- Faults ---- */

/* Break the connections between a and b. Both sides notice. */
void sim_cut(struct sim *sim, struct sim_node *a, struct sim_node *b);

/* Break them for a at once, while b keeps them and still gets what was under way: b hears
 * of their end `notice_ms` later. */
void sim_cut_half(struct sim *sim, struct sim_node *a, struct sim_node *b,
                  uint64_t notice_ms);

/* Silence from a to b: what a sends is held back, and no new connection can be made
 * between them, until sim_unblock. Nothing breaks by itself. */
void sim_block(struct sim *sim, struct sim_node *a, struct sim_node *b);
void sim_unblock(struct sim *sim, struct sim_node *a, struct sim_node *b);

/* Block both ways between these nodes and all others. */
void sim_partition(struct sim *sim, struct sim_node *const *side, size_t count);

/* The process stands still, as with SIGSTOP; resume before its time is fine. */
void sim_pause(struct sim_node *node, uint64_t for_ms);
void sim_resume(struct sim_node *node);

/* Everything takes `factor` times as long: works of a node; frames from a to b. */
void sim_slow(struct sim_node *node, unsigned factor);
void sim_slow_link(struct sim *sim, struct sim_node *a, struct sim_node *b,
                   unsigned factor);

/* No more blocks, pauses and slowness. Dead processes stay dead. */
void sim_heal(struct sim *sim);

#endif
