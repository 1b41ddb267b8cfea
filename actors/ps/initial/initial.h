/* Initial values by name of a distribution. Each element of a variable is a function of
 * the seed, the variable's name and the element's index in the variable; those of a
 * table's row are in actors/ps/tables/initial_row.h. So they are the same on any number
 * of servers and shards, and on each replica. */
#ifndef MU_ACTORS_PS_INITIAL_INITIAL_H
#define MU_ACTORS_PS_INITIAL_INITIAL_H

#include "actors/ps/shape.h"

/* A write of the initial content of a shard, piece by piece, beside
 * enum mu__write_operation. Its data says what is generated, and how many bytes of it. */
enum { MU__WRITE_INITIAL = 32, MU__INITIAL_BYTES = 40 };

/* The numbers are part of the wire format. */
enum mu__initial_kind {
    MU__INITIAL_ZEROS = 0,     /* whatever a and b are */
    MU__INITIAL_CONSTANT = 1,  /* a */
    MU__INITIAL_UNIFORM = 2,   /* from a to b; floats, as all below */
    MU__INITIAL_NORMAL = 3,    /* mean a, deviation b */
    MU__INITIAL_TRUNCATED = 4, /* the same within two deviations of the mean */
    MU__INITIAL_KINDS
};

/* "truncated normal"; "" of none of them. */
const char *mu__initial_name(uint32_t kind);

struct mu__initial {
    uint32_t kind;
    uint64_t seed;
    double a;
    double b;
};

/* Whether a dtype can have such values: -MU_EINVALID (kind, parameters, a dtype that is
 * no float), -MU_ERANGE (a constant that the dtype does not have). */
int mu__initial_check(const struct mu__initial *initial, uint32_t dtype,
                      mu_error *ret_error);

/* Elements from index `first` on, of what was checked; `out` is aligned to them. */
void mu__initial_fill(const struct mu__initial *initial, struct mu__view name,
                      uint32_t dtype, uint64_t first, uint64_t count, void *out);

/* Turn numbers between 0 and 1, without both, into values of what was checked. */
void mu__initial_values(const struct mu__initial *initial, double *values, size_t count);

/* Doubles as elements; they are in the dtype's range. */
void mu__initial_store(uint32_t dtype, const double *values, size_t count, void *out);

/* The data of a write of `size` bytes of it. Unpacking: -MU_EINVALID. */
void mu__initial_pack(const struct mu__initial *initial, uint64_t size,
                      uint8_t out[MU__INITIAL_BYTES]);
int mu__initial_unpack(struct mu__view data, struct mu__initial *ret_initial,
                       uint64_t *ret_size);

/* ---- initial_writes.c: for the store ---- */

struct mu__store_write;
struct variable;

/* Bytes of content that a write is about: those of its data, or those that it says. */
uint64_t mu__write_bytes(const struct mu__store_write *write);

/* Whether a shard can take such a write: -MU_EINVALID, -MU_ERANGE. Then do it. */
int mu__initial_check_write(const struct variable *v, const struct mu__store_write *write,
                            mu_error *ret_error);
void mu__initial_write(struct variable *v, const struct mu__store_write *write);

#endif
