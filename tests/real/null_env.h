/* What the calls that tests/null_calls.py writes are made with. */
#ifndef MUSTER_TESTS_REAL_NULL_ENV_H
#define MUSTER_TESTS_REAL_NULL_ENV_H

#include <muster.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NULL_TIMEOUT_MS = 50, NULL_VARIABLE_BYTES = 16, NULL_ROOM_BYTES = 1 << 16 };

/* One of everything that a call may need. */
struct null_env {
    mu_cluster *cluster;
    mu_node *node; /* the chief */
    mu_coordinator *coordinator;
    mu_dataset *dataset;
    mu_kv_watch *watch;
    mu_resolver_watch *resolver_watch;
    mu_lock *lock;
    mu_per_worker *per_worker;
    mu_remote_value *remote;
    mu_resolver *resolver;
    mu_server *server;
    mu_session *session;
    mu_tpu *tpu;
    mu_variable *variable;
    mu_table *table;
    mu_table_reader *table_reader;
    mu_clock *clock;
    mu_actor *actor;   /* not in its turn, and */
    mu_reply *reply;   /* what it is to answer later, */
    mu_stream *stream; /* and what it gives to: */
    mu_stream_reader *stream_reader;
    mu_run *run;         /* while its function runs, and */
    mu_context *context; /* during its call */
    mu_value *list;
    mu_value *map;
    mu_value *truth;
    mu_value *number;
    mu_value *text;
    mu_value *bytes;
    mu_value *tensor;
    mu_actor_options actor_options;
    mu_actor_type actor_type;
    mu_address address;
    mu_barrier_options barrier_options;
    mu_checkpoint_options checkpoint_options;
    mu_closure_options closure_options;
    mu_dataset_options dataset_options;
    mu_distribute_options distribute_options;
    mu_gradient gradient;
    mu_initializer initializer;
    mu_kv_request kv_request;
    mu_kv_transaction kv_transaction;
    mu_node_options node_options;
    mu_optimizer optimizer;
    mu_resolution resolution;
    mu_resolver_kind resolver_kind;
    mu_rows rows;
    mu_server_options server_options;
    mu_main_options main_options;
    mu_session_config session_config;
    mu_task_options task_options;
    mu_session_options session_options;
    mu_variable_request variable_request;
    mu_variable_spec variable_spec;
    mu_table_spec table_spec;
    mu_table_bags table_bags;
    mu_table_ids table_ids;
    mu_error error; /* as an argument */
    const char *names[1];
    uint64_t zeros[8];
    void *made; /* handles and values that a call makes */
    max_align_t room[NULL_ROOM_BYTES / sizeof(max_align_t)];
};

enum null_expects {
    NULL_REFUSED,  /* -MU_EINVALID, with words where the call has an error */
    NULL_ANSWERED, /* with `answer`; a pointer is 0 */
    NULL_FINE      /* NULL is an argument like others: the call comes back */
};

struct null_row {
    const char *function;
    const char *parameter; /* that is NULL; "all" of them */
    intmax_t (*call)(struct null_env *env, mu_error *error);
    enum null_expects expects;
    intmax_t answer;
    bool says_why; /* the call has a ret_error */
};

extern const struct null_row null_rows[];
extern const size_t null_rows_count;

/* Callbacks. */
void null_on_error(void *user, const mu_error *error);
void null_on_done(void *user, int code, const mu_error *error);
void null_on_cluster(mu_node *node, const mu_cluster_change *change, void *user);
void null_on_answer(void *user, const mu_kv_response *answer);
int null_on_rows(void *user, const uint64_t *ids, const float *rows, size_t count);
void null_on_line(void *user, const char *line);
void null_on_ready(mu_remote_value *value, void *user);
void null_drop(void *state);
int null_next(void *state, mu_value **ret_element);
int null_function(mu_run *run, void *user);
int null_work(void *arg);
int null_program(mu_node *node, void *user);

#endif
