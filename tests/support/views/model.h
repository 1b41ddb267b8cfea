/* A chief's table of views (view_table.h), and parameter servers that are told views by
 * it: each holds and reports the newest that it heard of every partition. What the chief
 * decides is recorded before it is told. */
#ifndef MU_TESTS_VIEW_MODEL_H
#define MU_TESTS_VIEW_MODEL_H

#include "actors/messages/limits.h"
#include "actors/views/view_table.h"

enum { MODEL_SERVERS = 5, MODEL_TO_ALL = 0xFF };

struct model_server {
    uint64_t incarnation; /* of its newest process, from 1, */
    uint64_t journal;     /* and of the first that wrote its journal; 0: it has none */
    bool runs;
    bool has_reported; /* over the link that it has */
    bool known;
    bool draining; /* a chief has said so */
    uint32_t node; /* what the chief calls it; 0: there is no link */
    struct mu__partition_view views[MU__PARTITIONS]; /* number 0: none was heard */
    uint64_t journaled[MU__PARTITIONS]; /* the store that its journal has; 0: none */
};

struct view_model {
    struct mu__view_config config;
    uint64_t seed;                /* of the last chief's table */
    struct mu__view_table *table; /* NULL: the chief does not run */
    uint8_t recorded[MU__VIEW_TABLE_BYTES];
    uint32_t recorded_size;
    bool goes_without; /* nothing more is recorded */
    bool journals;     /* servers have them from their first process on */
    uint64_t now_ms;
    uint64_t due_ms;
    uint32_t node_last;
    unsigned told; /* bits of the servers that hear what is sent to them */
    struct model_server servers[MODEL_SERVERS];
    uint64_t refused; /* views that were not newer than what a server held */

    /* A server hears a view that is new for it; may be NULL. */
    void (*heard)(struct view_model *model, uint32_t task,
                  const struct mu__partition_view *view);
    void *owner;
};

/* The chief runs, and no server. */
void model_init(struct view_model *model, const struct mu__view_config *config,
                uint64_t seed);
void model_done(struct view_model *model);

/* A chief that starts reads what is recorded; unless that is lost with the store. */
void model_chief_crash(struct view_model *model);
void model_chief_start(struct view_model *model);
void model_store_lost(struct view_model *model);

/* A new process of a server; the old one has crashed before. */
void model_start(struct view_model *model, uint32_t task);
void model_crash(struct view_model *model, uint32_t task);

/* The same with all that the former processes had, from their journal. */
void model_restore(struct view_model *model, uint32_t task);

/* The link to the chief; and then the server's report. */
void model_link(struct view_model *model, uint32_t task);
void model_unlink(struct view_model *model, uint32_t task);
int model_report(struct view_model *model, uint32_t task);

/* Whether this is a process before the server's, which has written its journal. */
bool model_is_former(const struct view_model *model, const struct mu__replica *replica,
                     uint32_t task);

/* What a server says of a partition, of the view that it holds: of the learner, or of the
 * backup. Without that word: of the learner if it is alone, or level. */
int model_news(struct view_model *model, uint32_t task, uint32_t partition,
               enum mu__replica_fate fate);
int model_news_of(struct view_model *model, uint32_t task, uint32_t partition,
                  enum mu__replica_fate fate, bool learner);

/* The chief decides, and sends what it owes. */
void model_settle(struct view_model *model);

/* The same, and time goes on, with what the chief wants to do meanwhile. */
void model_pass(struct view_model *model, uint64_t ms);

bool model_is_same(const struct mu__partition_view *a,
                   const struct mu__partition_view *b);
bool model_is_member(const struct mu__partition_view *view, uint32_t task,
                     uint64_t incarnation);

/* The process lives, and its link is up and reported. */
bool model_is_up(const struct view_model *model, const struct mu__replica *replica);
bool model_is_alive(const struct view_model *model, const struct mu__replica *replica);

#endif
