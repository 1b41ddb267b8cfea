/* What is written to the tables of a partition, as the data of a write of a batch
 * (effects.h), and how it is packed: little-endian, but for ids and numbers, which are in
 * host byte order, as contents of variables are. */
#ifndef MU_ACTORS_PS_TABLES_TABLE_WRITES_H
#define MU_ACTORS_PS_TABLES_TABLE_WRITES_H

#include "actors/ps/tables/table_part.h"
#include "runtime/message/message.h"

/* What an open does about a partition's part of a table. Each table has a home, the
 * partition of its name, which knows whether all parts were made (`sealed`). A part that
 * was pushed to is never made in the course of a creation: others are lost. */
enum mu__table_open_mode {
    MU__TABLE_FIND,     /* the home: is it sealed? Else -MU_EAGAIN */
    MU__TABLE_CREATE,   /* make it, unless it is there; -MU_EDATALOSS: it was pushed to */
    MU__TABLE_EXISTING, /* it is there; else -MU_EDATALOSS */
    MU__TABLE_RECREATE, /* make it, unless it is there */
    MU__TABLE_SEAL,     /* the home: all were made; -MU_EAGAIN: it is not there */
    MU__TABLE_MODES
};

struct mu__table_open {
    uint32_t mode;
    bool sealed; /* of a copy */
    struct mu__table_form form;
    struct mu__view name;
};

enum { MU__TABLE_OPEN_BYTES_MAX = MU__TABLE_OPEN_LIMIT };

/* The name has at most MU__VARIABLE_NAME_MAX bytes. Returns how many bytes. */
uint32_t mu__table_open_pack(const struct mu__table_open *open,
                             uint8_t to[MU__TABLE_OPEN_BYTES_MAX]);

/* With a form and a name that were checked; the name is in `bytes`. -MU_EINVALID. */
int mu__table_open_unpack(struct mu__view bytes, struct mu__table_open *ret_open,
                          mu_error *ret_error);

/* A push: ids in rising order, each once, and a gradient for each; of a delete, none. */
struct mu__table_push {
    struct mu__rule rule;
    uint32_t time; /* 0: none was given */
    uint32_t count;
    const uint8_t *ids;
    const uint8_t *gradients;
};

enum { MU__TABLE_PUSH_HEAD_MAX = 6 + MU__RULE_BYTES_MAX };

/* The head, behind which ids and gradients are. Returns how many bytes. */
uint32_t mu__table_push_pack_head_at(const struct mu__rule *rule, uint32_t time,
                                     uint32_t count,
                                     uint8_t to[MU__TABLE_PUSH_HEAD_MAX + 4]);

static inline uint32_t mu__table_push_pack_head(
    const struct mu__rule *rule, uint32_t count, uint8_t to[MU__TABLE_PUSH_HEAD_MAX + 4])
{
    return mu__table_push_pack_head_at(rule, 0, count, to);
}

/* Of a table with rows of `dim` numbers; 0: a delete. -MU_EINVALID. */
int mu__table_push_unpack(struct mu__view bytes, uint32_t dim,
                          struct mu__table_push *ret_push, mu_error *ret_error);

/* The ids of what may be a push, 8 bytes each; NULL: it is none. */
const uint8_t *mu__table_push_ids(struct mu__view bytes, uint32_t dim,
                                  uint32_t *ret_count);

/* Of a MU__WRITE_TABLE_EXPIRE: the score below which rows are removed. */
enum { MU__TABLE_EXPIRE_BYTES = 4 };

void mu__table_expire_pack(uint32_t before, uint8_t to[MU__TABLE_EXPIRE_BYTES]);

/* -MU_EINVALID. */
int mu__table_expire_unpack(struct mu__view bytes, uint32_t *ret_before,
                            mu_error *ret_error);

/* The number by which messages name a table. */
uint64_t mu__table_id(struct mu__view name);

#endif
