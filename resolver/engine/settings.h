/* The settings of a resolver: texts by name, and a table of specs that says which there
 * are. */
#ifndef MU_RESOLVER_SETTINGS_H
#define MU_RESOLVER_SETTINGS_H

#include "resolver/engine/request_table.h"

enum mu__setting_form {
    MU__SETTING_TEXT,
    MU__SETTING_NUMBER, /* whole, from low to high */
    MU__SETTING_SWITCH  /* 0 or 1, also true and false */
};

struct mu__setting_spec {
    const char *name; /* "port"; NULL ends the table */
    enum mu__setting_form form;
    const char *variable; /* of the environment; NULL: none */
    const char *initial;  /* the default; NULL: none */
    long low;
    long high;
    const char *help;       /* one line */
    const char *by_default; /* what messages call the default: "the default of port" */
};

/* Rows of a table: a text, a number from `low` to `high`, a switch. */
#define MU__SETTING(at, name, variable, initial, help) \
    [at] = {name, MU__SETTING_TEXT, variable, initial, 0, 0, help, "the default of " name}
#define MU__SETTING_WITHIN(at, name, variable, initial, low, high, help) \
    [at] = {name, MU__SETTING_NUMBER,    variable, initial, low, high,   \
            help, "the default of " name}
#define MU__SETTING_FLAG(at, name, variable, initial, help)       \
    [at] = {name, MU__SETTING_SWITCH,    variable, initial, 0, 1, \
            help, "the default of " name}

/* The values that the program has set, in the order of the specs. */
struct mu__settings {
    const char *resolver; /* for messages */
    const struct mu__setting_spec *specs;
    char **values; /* NULL: not set. Behind each its origin, for messages */
};

/* `resolver` and `specs` are static. */
int mu__settings_init(struct mu__settings *settings, const char *resolver,
                      const struct mu__setting_spec *specs);
void mu__settings_done(struct mu__settings *settings);

/* Set one; NULL takes it back. -MU_EINVALID: no such setting (with the one that was
 * probably meant), or a value of another form, with its range. */
int mu__settings_set(struct mu__settings *settings, const char *name, const char *value,
                     mu_error *ret_error);

/* One pass of a resolver: one call of its function, with the requests and the settings
 * that it is given. Both are borrowed. */
struct mu__pass {
    struct mu__requests *requests;
    const struct mu__settings *settings;
};

/* A setting by its index in the table: the value that was set, else that of its
 * environment variable, else the default; NULL when there is none. Valid as long as the
 * pass's requests and settings. */
const char *mu__setting(const struct mu__pass *pass, unsigned number);

/* The same of a number or switch. A variable that is no such number is -MU_EINVALID,
 * naming it; without any value *ret_number is left as it is. */
int mu__setting_number(const struct mu__pass *pass, unsigned number, mu_error *ret_error,
                       long *ret_number);

/* The origin of its value, for messages: "setting port of resolver gce", "SM_PORT",
 * "the default of port". Valid as long as the settings. */
const char *mu__setting_origin(const struct mu__pass *pass, unsigned number);

/* Whether it was set, by the program or by its environment variable. */
bool mu__setting_given(const struct mu__pass *pass, unsigned number);

/* -MU_EINVALID: "setting x of resolver y: expected EXPECTED, got VALUE". */
int mu__setting_refuse(const struct mu__pass *pass, unsigned number, const char *expected,
                       mu_error *ret_error);

/* A setting that is one of some words (NULL ends them): its place among them; without any
 * value *ret_word is left as it is. `expected` lists them for the message. */
int mu__setting_word(const struct mu__pass *pass, unsigned number,
                     const char *const *words, const char *expected, mu_error *ret_error,
                     unsigned *ret_word);

/* A setting that must be set; else -MU_EINVALID: "file: setting path (variable X) is
 * not set, expected WHAT". */
int mu__setting_required(const struct mu__pass *pass, unsigned number, const char *what,
                         mu_error *ret_error, const char **ret_text);

/* For `detect` of a resolver that only needs one setting, or one environment variable:
 * 1 when it is set, else 0 with the reason. */
int mu__setting_detect(const struct mu__pass *pass, unsigned number, mu_error *ret_why);
int mu__variable_detect(struct mu__requests *requests, const char *variable,
                        mu_error *ret_why);

#endif
