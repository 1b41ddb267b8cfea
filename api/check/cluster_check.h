/* mu_cluster_check: its data, and the functions shared by its files. */
#ifndef MU_API_CLUSTER_CHECK_H
#define MU_API_CLUSTER_CHECK_H

#include "actors/worker_types.h"
#include "node/own_proof.h"
#include "resolver/spec/problems.h"
#include "transport/wire/uv/probe.h"

#include "muster/admin.h"

enum { CHECK_WORDS_BYTES = 600, CHECK_NAME_BYTES = 64, CHECK_URL_BYTES = 128 };

enum check_outcome {
    CHECK_FINE,   /* the expected task answers */
    CHECK_WRONG,  /* another program or task answers, or the task refuses this client */
    CHECK_AWAY,   /* nothing answers */
    CHECK_SKIPPED /* its address cannot be dialled */
};

/* A task of the cluster. `type`, `address` and `url` are owned by the cluster. */
struct check_task {
    char name[CHECK_NAME_BYTES]; /* "/job:ps/task:0" */
    const char *type;
    int index;
    const char *address;
    const char *url;
    struct mu__probe *probe; /* the probe of its address; NULL: none */
    int link;                /* index of its check_link; -1: no node answers
                                       there */
    enum check_outcome outcome;
    char words[CHECK_WORDS_BYTES]; /* result, for the output */
    uint32_t took_ms;
};

/* One address at which a node answers with a greeting; tasks with the same address share
 * it. */
struct check_link {
    char url[CHECK_URL_BYTES];
    bool is_up;
    bool is_over;                /* connected or refused for good */
    char task[CHECK_NAME_BYTES]; /* the task there, once it is up */
    char why[CHECK_WORDS_BYTES]; /* why it is not up */
    uint32_t took_ms;
};

struct cluster_check {
    const mu_node_options *options;
    unsigned timeout_ms; /* for each task */
    const mu_cluster *cluster;
    struct mu__problems problems;
    struct mu__own_proof *proof;          /* NULL: tcp is spoken plain */
    struct mu__worker_types worker_types; /* types that run closures */
    char *hosts;                          /* hosts of the coordination service; NULL: not
                                       known */
    struct check_task *tasks;
    struct mu__probe *probes;
    struct check_link *links;
    size_t tasks_count;
    size_t links_count;
    mu_value *peers; /* what the answering tasks reported: see
                                       actors/agent/peers.h */
};

/* Connect to all links as a client, note which task is there, and request which tasks it
 * reaches. Failures are added to `problems`. */
void mu__check_links(struct cluster_check *check);

/* What a task does, "schedules closures, ends the job; dials ps, worker". `out` has
 * CHECK_DOES_BYTES. */
enum { CHECK_DOES_BYTES = 320 };
void mu__check_describe(const struct cluster_check *check, const struct check_task *task,
                        char *out);

#endif
