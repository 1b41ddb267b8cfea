/* What the files of the user's simulator share. For this folder only. */
#ifndef MU_SIM_INTERNAL_H
#define MU_SIM_INTERNAL_H

#include "actors/user/actions.h"
#include "node/member/member.h"
#include "sim/world/chaos.h"
#include "sim/world/events.h"
#include "sim/world/random.h"
#include "sim/world/storage.h"

#include <muster/sim.h>

enum { SIM_TYPES_MAX = 64, SIM_WORDS_MAX = 256 };

struct sim_task;

/* A type of the program's on a task, and what the office has in its place: it notes each
 * turn (turns.c). */
struct sim_type {
    mu_actor_type own; /* first */
    const mu_actor_type *users;
    struct sim_task *task;
    mu_actor_method methods[]; /* as many as the program's */
};

/* A task and its process, if that runs. */
struct sim_task {
    mu_sim *sim;
    char name[32]; /* "worker:1" */
    char type[16];
    uint32_t index;
    char address[48];
    struct sim_node *node;
    struct mu__member member;
    bool runs;
    unsigned begun; /* lives whose process has its types */
    struct sim_type *types[SIM_TYPES_MAX];
    size_t types_count;
    mu_sim_begin_fn begin;
    void *user;
};

/* One turn of an actor. */
struct sim_turn {
    uint64_t digest; /* of what it did */
    uint64_t at_us;
    char who[160]; /* "worker:1, teller 3, notice" */
};

/* Turns in their order, of one run or to compare another run with. */
struct sim_turns {
    struct sim_turn *items; /* NULL: they are not noted */
    size_t count;
    size_t capacity;
};

enum { SIM_TURNS_MAX = 1 << 18 };

/* A fault of any run with the same tasks: these, by their place, in place of nodes. */
struct sim_planned {
    struct sim_fault_told fault;
    uint32_t a;
    uint32_t b;
};

/* What a run is to be instead of what its seed says. */
struct sim_plan {
    const struct sim_planned *faults; /* in place of those that chaos draws */
    size_t count;
    unsigned draw; /* 0: the network draws as the seed says, more: otherwise */
    bool has_faults;
    bool is_calm;
    bool notes_turns;
    bool keeps_trace;
};

/* A fault that the story tells. */
struct sim_story_fault {
    struct sim_story_fault *next;
    struct sim_fault_told fault;
};

/* Of the task that hosts the coordination service. */
struct sim_service {
    const struct sim_task *task; /* NULL: there is none */
    struct sim_storage *store;
    struct sim_storage *kept; /* what actors have kept */
};

struct mu_sim {
    uint64_t seed;
    struct sim_service service;
    struct sim *world;
    mu_cluster *cluster;
    struct sim_plan plan;
    struct sim_random random;
    struct sim_task *tasks[MU_SIM_TASKS_MAX];
    size_t tasks_count;
    bool is_started;
    bool is_calm;
    bool is_within; /* an event, or what is called after it */
    bool has_chaos;
    void (*check)(mu_sim *sim, void *user);
    void *check_user;
    struct sim_turns turns;
    struct sim_story_fault *story_faults;
    struct sim_fault_told *planned; /* plan.faults, with this run's nodes */
    uint64_t failed_ms;
    char failure[SIM_WORDS_MAX]; /* "": none */
};

/* Names of tasks, by their place. */
struct sim_names {
    char names[MU_SIM_TASKS_MAX][32];
    size_t count;
};

/* ---- tasks.c ---- */

mu_sim *sim_user_new(uint64_t seed, const struct sim_plan *plan);

/* NULL, and the story has failed: there is no such task. */
struct sim_task *sim_task_find(mu_sim *sim, const char *call, const char *name);

/* NULL: the task does not run. */
struct office *sim_office(const struct sim_task *task);

/* All tasks run from now on. */
void sim_begin_all(mu_sim *sim);

/* 0, or -MU_EABORTED: the story has failed. */
int sim_verdict(const mu_sim *sim);

/* ---- service.c ---- */

/* What the process of a task has of the service. Its process is gone: what its disk had
 * not written is lost. */
void sim_service_join(const struct sim_task *task, struct mu__member_config *config);
void sim_service_crash(const struct sim_task *task);
void sim_service_done(struct sim_service *service);

/* ---- turns.c ---- */

struct sim_type *sim_type_new(struct sim_task *task, const mu_actor_type *users);

/* ---- words.c ---- */

/* Text that grows; `bytes` NULL: there is none, or no memory was left. */
struct sim_words {
    char *bytes;
    size_t size;
};

void sim_words_add(struct sim_words *words, const char *format, ...) MU_PRINTF(2, 3);

/* A fault in words, a line. */
void sim_words_fault(struct sim_words *words, const struct sim_planned *planned,
                     const struct sim_names *names);

/* ---- runs.c ---- */

/* What a run came to. */
struct sim_run {
    uint64_t digest;
    uint64_t failed_ms;
    char failure[SIM_WORDS_MAX]; /* "": it is well */
    struct sim_planned *faults;  /* that chaos has begun; NULL: none */
    size_t faults_count;
    struct sim_names names;
    struct sim_turns turns; /* if they were noted */
    char *trace;            /* if it was asked for */
};

/* What is run. */
struct sim_told {
    uint64_t seed;
    mu_sim_story_fn story;
    void *user;
};

void sim_run_story(const struct sim_told *told, const struct sim_plan *plan,
                   struct sim_run *ret_run);
void sim_run_done(struct sim_run *run);

/* mu_sim_try; *ret_trace is that of the first run, the caller's. NULL: it is not kept. */
int sim_try_seed(const struct sim_told *told, mu_error *ret_error,
                 struct sim_words *words, char **ret_trace);

/* ---- shortest.c ---- */

/* Of a run that failed, the faults that its failure needs, in words; it becomes the
 * shortest one. */
void sim_tell_shortest(const struct sim_told *told, struct sim_run *failed,
                       struct sim_words *words);

#endif
