/* The options of a node as they are read, from MU_NODE_OPTIONS. */
#ifndef MU_NODE_OPTIONS_H
#define MU_NODE_OPTIONS_H

#include "muster/node_options.h"

#include <stdbool.h>

#define MU__OPTION_NUMBER(NAME, ...) MU__OPTION_##NAME,
enum mu__option_number {
    MU_NODE_OPTIONS(MU__OPTION_NUMBER, MU__OPTION_NUMBER, MU__OPTION_NUMBER)
        MU__OPTION_RESTART_EXIT_CODE,
    MU__OPTIONS_COUNT
};

enum mu__option_kind {
    MU__OPTION_UNSIGNED,
    MU__OPTION_U64,
    MU__OPTION_TEXT,
    MU__OPTION_NO_FIELD /* a number that is no option of the node */
};

struct mu__option {
    const char *name;     /* of the field in mu_node_options */
    const char *variable; /* "MUSTER_..." */
    enum mu__option_kind kind;
    size_t offset; /* of the field */
    uint64_t initial;
    const char *initial_words; /* how the default is shown where its number says little;
                                  of a text, the default itself */
    uint64_t low;              /* the default is fine beside these two */
    uint64_t high;
};

extern const struct mu__option mu__options[MU__OPTIONS_COUNT];

/* The variable by TensorFlow's name; NULL: none. */
const char *mu__option_tensorflow(const struct mu__option *option);

/* An option's value as the environment or a flag gives it. */
struct mu__option_value {
    const char *origin; /* the variable or flag */
    const char *text;   /* as it was given, borrowed; NULL: it was not given */
    uint64_t number;
};

/* What the environment says; an empty variable counts as absent. -MU_EINVALID with the
 * variable, its text and what was expected. */
int mu__option_environment(const struct mu__option *option, mu_error *ret_error,
                           struct mu__option_value *ret_value);

/* Read a text that was given under `origin`, with our meaning and unit. */
int mu__option_read(const struct mu__option *option, const char *origin, const char *text,
                    mu_error *ret_error, struct mu__option_value *ret_value);

void mu__option_store(const struct mu__option *option,
                      const struct mu__option_value *value, mu_node_options *options);

/* Take a resolver's name of the cluster where none was chosen: where the option is at its
 * default. Keeps the pointer. "" changes nothing. */
void mu__options_name_cluster(mu_node_options *options, const char *name);

/* Every number in its range; -MU_EINVALID names the option that is not. */
int mu__options_check(const mu_node_options *options, mu_error *ret_error);

#endif
