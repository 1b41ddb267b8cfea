/* `muster check`: its data, and the functions shared by its files. */
#ifndef MU_NODE_CMD_CHECK_H
#define MU_NODE_CMD_CHECK_H

#include "actors/worker_types.h"
#include "node/own_proof.h"
#include "cli/output/log.h"
#include "resolver/spec/problems.h"
#include "transport/wire/uv/probe.h"

#include "muster/node.h"
#include "muster/value.h"

enum { CHECK_WORDS_BYTES = 600, CHECK_NAME_BYTES = 64, CHECK_URL_BYTES = 128 };

enum check_outcome {
    CHECK_FINE,     /* the expected task answers */
    CHECK_WRONG,    /* another program or task answers, or the task refuses this client */
    CHECK_AWAY,     /* nothing answers */
    CHECK_SKIPPED   /* its address cannot be dialled */
};

/* A task of the cluster. `type`, `address` and `url` are owned by the cluster. */
struct check_task {
    char name[CHECK_NAME_BYTES];    /* "/job:ps/task:0" */
    const char *type;
    int index;
    const char *address;
    const char *url;
    struct mu__probe *probe;        /* the probe of its address; NULL: none */
    int link;                       /* index of its check_link; -1: no node answers
                                       there */
    enum check_outcome outcome;
    char words[CHECK_WORDS_BYTES];  /* result, for the output */
    uint32_t took_ms;
};

/* One address at which a node answers with a greeting; tasks with the same address share
 * it. */
struct check_link {
    char url[CHECK_URL_BYTES];
    bool is_up;
    bool is_over;                   /* connected or refused for good */
    char task[CHECK_NAME_BYTES];    /* the task there, once it is up */
    char why[CHECK_WORDS_BYTES];    /* why it is not up */
    uint32_t took_ms;
};

struct check {
    const struct cmd_options *options;
    struct cmd_log log;
    struct mu__problems problems;
    struct mu__own_proof *proof;    /* NULL: tcp is spoken plain */
    mu_cluster *cluster;            /* NULL: there is none */
    bool is_incomplete;             /* tasks are expected that are not in it */
    char source[64];
    char own_type[16];              /* "": unknown */
    int own_index;
    struct mu__worker_types worker_types;   /* types that run closures */
    char *hosts;                    /* hosts of the coordination service; NULL: not
                                       known */
    struct check_task *tasks;
    struct mu__probe *probes;
    struct check_link *links;
    size_t tasks_count;
    size_t links_count;
    mu_value *peers;                /* what the answering tasks reported: see
                                       actors/agent/peers.h */
};

/* ---- check_node.c ---- */

/* Connect to all links as a client, note which task is there, and request which tasks it
 * reaches. Failures are added to `problems`. */
void check_links(struct check *check);

/* ---- check_print.c ---- */

/* Visit each pair of tasks of which the first dials the second and does not reach it;
 * returns how many there are. `visit` may be NULL. */
typedef void (*check_pair_fn)(void *user, const char *from, const char *to,
                              const mu_value *peer);
size_t check_pairs(const struct check *check, check_pair_fn visit, void *user);

/* Print the result; JSON: 0 or -MU_ENOMEM. */
void check_print_text(const struct check *check);
int check_print_json(const struct check *check);

#endif
