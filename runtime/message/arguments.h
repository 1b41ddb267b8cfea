/* Arguments of public calls: those that must not be NULL, and options.
 *
 *     int mu_kv_get(mu_node *node, const char *key, mu_error *ret_error, mu_kv_item *ret)
 *     {
 *         MU__REQUIRE(ret_error, node, key, ret);
 *
 * returns -MU_EINVALID, with a message that names the call and the argument. It is the
 * first line of a function, because initialisers of variables may use the arguments. */
#ifndef MU_RUNTIME_MESSAGE_ARGUMENTS_H
#define MU_RUNTIME_MESSAGE_ARGUMENTS_H

#include <muster/error.h>

/* Return -MU_EINVALID: of the comma-separated `names`, the one with this number (from 1)
 * is NULL. ret_error may be NULL. */
int mu__refuse_null(mu_error *ret_error, const char *call, const char *names,
                    unsigned number);

/* The number, from 1, of the first of one to six arguments that is NULL; 0: none is. */
#define MU__NULL_1(n, a) ((a) == NULL ? (n) : 0U)
#define MU__NULL_2(n, a, ...) ((a) == NULL ? (n) : MU__NULL_1((n) + 1, __VA_ARGS__))
#define MU__NULL_3(n, a, ...) ((a) == NULL ? (n) : MU__NULL_2((n) + 1, __VA_ARGS__))
#define MU__NULL_4(n, a, ...) ((a) == NULL ? (n) : MU__NULL_3((n) + 1, __VA_ARGS__))
#define MU__NULL_5(n, a, ...) ((a) == NULL ? (n) : MU__NULL_4((n) + 1, __VA_ARGS__))
#define MU__NULL_6(n, a, ...) ((a) == NULL ? (n) : MU__NULL_5((n) + 1, __VA_ARGS__))
#define MU__NULL_PICK(a, b, c, d, e, f, picked, ...) picked
#define MU__NULL_OF(...)                                                       \
    MU__NULL_PICK(__VA_ARGS__, MU__NULL_6, MU__NULL_5, MU__NULL_4, MU__NULL_3, \
                  MU__NULL_2, MU__NULL_1, 0)                                   \
    (1U, __VA_ARGS__)

#define MU__REQUIRE_AS(ret_error, names, ...)                             \
    do {                                                                  \
        unsigned mu__null = MU__NULL_OF(__VA_ARGS__);                     \
        if (mu__null != 0)                                                \
            return mu__refuse_null(ret_error, __func__, names, mu__null); \
    } while (0)

#define MU__REQUIRE(ret_error, ...) MU__REQUIRE_AS(ret_error, #__VA_ARGS__, __VA_ARGS__)

/* The same for the first `count` handles of a list, and for the list itself. */
#define MU__REQUIRE_MANY(ret_error, list, count)                   \
    do {                                                           \
        if ((count) > 0)                                           \
            MU__REQUIRE(ret_error, list);                          \
        for (size_t mu__i = 0; mu__i < (count); mu__i++)           \
            MU__REQUIRE_AS(ret_error, #list "[i]", (list)[mu__i]); \
    } while (0)

/* The same for functions that return no code but `answer`; empty: they return void. */
#define MU__REQUIRE_OR(answer, ...)        \
    do {                                   \
        if (MU__NULL_OF(__VA_ARGS__) != 0) \
            return answer;                 \
    } while (0)

/* ---- options: see muster.h ---- */

/* The size of no struct of options: a larger one is memory that was not initialized. */
enum { MU__OPTIONS_BYTES_MAX = 4096 };

/* Copy `known` bytes of defaults to a program's struct, which has `size`. */
void mu__options_init(void *options, size_t size, const void *defaults, size_t known);

/* Copy a program's struct, which begins with its size, over the defaults in ret_options,
 * which has `known` bytes. NULL: the defaults remain. */
int mu__options_read(const char *type, const void *options, size_t known,
                     mu_error *ret_error, void *ret_options);

#define MU__OPTIONS_READ(type, options, ret_error, ret_options) \
    (type##_init(ret_options),                                  \
     mu__options_read(#type, options, sizeof(type), ret_error, ret_options))

#endif
