/* What the files of `muster check` share. */
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
    CHECK_FINE,     /* the right task answers */
    CHECK_WRONG,    /* somebody else does, or it does not let us in */
    CHECK_AWAY,     /* nobody does */
    CHECK_SKIPPED   /* it has no address that could be dialled */
};

/* A task of the cluster. The texts without size are the cluster's. */
struct check_task {
    char name[CHECK_NAME_BYTES];    /* "/job:ps/task:0" */
    const char *type;
    int index;
    const char *address;
    const char *url;
    struct mu__probe *probe;        /* of its address; NULL: none */
    int link;                       /* which of those below; -1: it does not greet */
    enum check_outcome outcome;
    char words[CHECK_WORDS_BYTES];  /* what was found */
    uint32_t took_ms;
};

/* One address at which a node greets; tasks that stand for the same share it. */
struct check_link {
    char url[CHECK_URL_BYTES];
    bool is_up;
    bool is_over;                   /* nothing more will come of it */
    char task[CHECK_NAME_BYTES];    /* who is there, once it is up */
    char why[CHECK_WORDS_BYTES];    /* it is not */
    uint32_t took_ms;
};

struct check {
    const struct cmd_options *options;
    struct cmd_log log;
    struct mu__problems problems;
    struct mu__own_proof *proof;    /* NULL: tcp is spoken plain */
    mu_cluster *cluster;            /* NULL: there is none */
    bool is_incomplete;             /* others are expected, who are not there */
    char source[64];
    char own_type[16];              /* "": unknown */
    int own_index;
    struct mu__worker_types worker_types;   /* that run closures */
    char *hosts;                    /* of the coordination service; NULL: not known */
    struct check_task *tasks;
    struct mu__probe *probes;
    struct check_link *links;
    size_t tasks_count;
    size_t links_count;
    mu_value *peers;                /* of those who answered: see actors/agent/peers.h */
    char own_address[300];          /* where answers are awaited */
};

/* ---- cmd_check_node.c ---- */

/* Be a client of all links, note who is there, and ask them whom they reach. What goes
 * wrong is a problem. */
void check_links(struct check *check);

/* ---- cmd_check_print.c ---- */

/* Whom a task does not reach though it should, one by one. */
typedef void (*check_pair_fn)(void *user, const char *from, const char *to,
                              const mu_value *peer);
size_t check_pairs(const struct check *check, check_pair_fn visit, void *user);

void check_print_text(const struct check *check);
int check_print_json(const struct check *check);

#endif
