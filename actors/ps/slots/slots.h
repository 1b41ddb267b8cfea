/* What an optimizer keeps beside a shard: its slots, one behind the other, and how many
 * updates these have seen. And gradients, which change both.
 *
 * Slots are made by the first gradient of a rule that has some, and stay until the shard
 * is dropped. A gradient of another rule is refused, unless it says that it replaces
 * them; rules without slots leave them as they are. */
#ifndef MU_ACTORS_SLOTS_H
#define MU_ACTORS_SLOTS_H

#include "actors/ps/rules/rules.h"
#include "actors/ps/variable_store.h"

struct variable;

struct mu__slots {
    uint32_t kind;  /* of the rule that made them; 0: there are none */
    uint64_t step;  /* updates so far */
    uint64_t bytes; /* of all of them */
    uint8_t *data;
};

/* What slot k of a kind is beside a variable of this shape, cut like it; false: the kind
 * has no slot k. */
bool mu__slots_shape(uint32_t kind, unsigned k, const struct mu__shape *shape,
                     struct mu__shape *ret_shape);

/* Bytes of the slots of a kind beside a shard of a variable. */
uint64_t mu__slots_bytes(uint32_t kind, const struct mu__shape *shape,
                         uint64_t shard_bytes);

/* Of how many bytes the pieces of a write to such a variable are: at most
 * MU__PIECE_BYTES_MAX, and whole rows if the write's rule needs them. */
uint32_t mu__slots_piece_bytes(struct mu__view rule, const struct mu__shape *shape);

/* Get memory for a kind's slots, of zeros. The shard has none. */
int mu__slots_make(struct mu__variable_store *store, struct variable *v, uint32_t kind,
                   mu_error *ret_error);
void mu__slots_drop(struct mu__variable_store *store, struct variable *v);

/* Writes of a restore: bytes of slot k, by operation MU__WRITE_SLOT + k, or the count of
 * updates, 8 bytes in host order, by MU__WRITE_STEP. The rule of the write is a kind: if
 * the shard has slots of another kind, these are dropped, and zeros made. */
enum { MU__WRITE_SLOT = 24, MU__WRITE_STEP = MU__WRITE_SLOT + MU__RULE_SLOTS_MAX };

static inline bool mu__slots_is_write(uint32_t operation)
{
    return operation >= MU__WRITE_SLOT && operation <= MU__WRITE_STEP;
}

int mu__slots_write(struct mu__variable_store *store, struct variable *v,
                    const struct mu__store_write *write, mu_error *ret_error);

/* Whether a gradient could be applied now; changes nothing else. -MU_EINVALID: no rule, a
 * number out of its range, the dtype, parts of rows, an element that is NaN or infinite
 * (which is counted). -MU_EPRECONDITION: slots of another rule. */
int mu__gradient_check(struct variable *v, const struct mu__store_write *write,
                       mu_error *ret_error);

/* Once all of a batch were checked: make the slots that it needs. */
int mu__gradient_make_slots(struct mu__variable_store *store, struct variable *v,
                            const struct mu__store_write *write, mu_error *ret_error);

/* Apply it, once that has returned 0. */
void mu__gradient_apply(struct variable *v, const struct mu__store_write *write);

#endif
