#include "resolver/engine/settings.h"

#include "runtime/base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_BYTES = 300 };

static size_t count_specs(const struct mu__setting_spec *specs)
{
    size_t count = 0;

    while (specs != NULL && specs[count].name != NULL)
        count++;
    return count;
}

int mu__settings_init(struct mu__settings *settings, const char *resolver,
                      const struct mu__setting_spec *specs)
{
    char **values = calloc(count_specs(specs) + 1, sizeof *values);

    if (values == NULL)
        return -MU_ENOMEM;
    *settings = (struct mu__settings){resolver, specs, values};
    return 0;
}

void mu__settings_done(struct mu__settings *settings)
{
    for (size_t i = 0; settings->values != NULL && i < count_specs(settings->specs); i++)
        free(settings->values[i]);
    free(settings->values);
    *settings = (struct mu__settings){0};
}

/* ---- Values ---- */

static bool read_switch(const char *text, long *ret_number)
{
    static const struct {
        const char *word;
        long number;
    } words[] = {{"0", 0}, {"1", 1}, {"false", 0}, {"true", 1}};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i].word, text) != 0)
            continue;
        *ret_number = words[i].number;
        return true;
    }
    return false;
}

static bool read_setting_number(const struct mu__setting_spec *spec, const char *text,
                                long *ret_number)
{
    char *end;
    long number;

    if (spec->form == MU__SETTING_SWITCH)
        return read_switch(text, ret_number);
    if (text[0] == '\0' || text[strspn(text, "-0123456789")] != '\0')
        return false;
    errno = 0;
    number = strtol(text, &end, 10);
    if (*end != '\0' || errno != 0 || number < spec->low || number > spec->high)
        return false;
    *ret_number = number;
    return true;
}

/* A value, and behind it where it comes from. NULL: out of memory. */
static char *new_value(const struct mu__settings *settings, const char *name,
                       const char *value)
{
    static const char format[] = "%s%csetting %.40s of resolver %.40s";
    int size = snprintf(NULL, 0, format, value, '\0', name, settings->resolver);
    char *text = malloc((size_t)size + 1);

    if (text != NULL)
        (void)snprintf(text, (size_t)size + 1, format, value, '\0', name,
                       settings->resolver);
    return text;
}

static int bad_value(const struct mu__setting_spec *spec, const char *origin,
                     const char *text, mu_error *ret_error)
{
    char shown[MU__QUOTE_BYTES];

    mu__quote(shown, sizeof shown, text, strlen(text));
    if (spec->form == MU__SETTING_SWITCH)
        return mu_error_set(ret_error, -MU_EINVALID, "%s: expected 0 or 1, got %s",
                            origin, shown);
    return mu_error_set(ret_error, -MU_EINVALID,
                        "%s: expected a whole number of %ld to %ld, got %s", origin,
                        spec->low, spec->high, shown);
}

/* ---- Setting ---- */

/* All names, as far as there is room. */
static void list_setting_names(const struct mu__setting_spec *specs, char *out,
                               size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < count_specs(specs) && used < size; i++) {
        int length =
            snprintf(out + used, size - used, "%s%s", i == 0 ? "" : ", ", specs[i].name);

        used += length < 0 ? size : (size_t)length;
    }
}

static int no_such_setting(const struct mu__settings *settings, const char *name,
                           mu_error *ret_error)
{
    const char *near = NULL;
    char shown[MU__QUOTE_BYTES];
    char names[NAMES_BYTES];
    unsigned best = 3;

    for (size_t i = 0; i < count_specs(settings->specs); i++) {
        unsigned distance = mu__text_distance(name, settings->specs[i].name);

        if (distance < best && distance < strlen(name)) {
            best = distance;
            near = settings->specs[i].name;
        }
    }
    mu__quote(shown, sizeof shown, name, strlen(name));
    if (near != NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "resolver %s has no setting %s; did you mean \"%s\"?",
                            settings->resolver, shown, near);
    list_setting_names(settings->specs, names, sizeof names);
    return mu_error_set(ret_error, -MU_EINVALID,
                        "resolver %s has no setting %s; expected %s", settings->resolver,
                        shown, names[0] == '\0' ? "none at all" : names);
}

int mu__settings_set(struct mu__settings *settings, const char *name, const char *value,
                     mu_error *ret_error)
{
    size_t count = count_specs(settings->specs);
    char origin[128];
    char *copy = NULL;
    long number;
    size_t i = 0;

    while (i < count && strcmp(settings->specs[i].name, name) != 0)
        i++;
    if (i == count)
        return no_such_setting(settings, name, ret_error);
    if (value != NULL && settings->specs[i].form != MU__SETTING_TEXT &&
        !read_setting_number(&settings->specs[i], value, &number)) {
        (void)snprintf(origin, sizeof origin, "setting %s of resolver %s", name,
                       settings->resolver);
        return bad_value(&settings->specs[i], origin, value, ret_error);
    }
    if (value != NULL) {
        copy = new_value(settings, name, value);
        if (copy == NULL)
            return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    }
    free(settings->values[i]);
    settings->values[i] = copy;
    return 0;
}

/* ---- Reading ---- */

static const char *of_variable(struct mu__requests *requests,
                               const struct mu__setting_spec *spec)
{
    return spec->variable == NULL ? NULL : mu__request_variable(requests, spec->variable);
}

const char *mu__setting(const struct mu__pass *pass, unsigned number)
{
    const struct mu__setting_spec *spec = &pass->settings->specs[number];
    const char *text = pass->settings->values[number];

    if (text == NULL)
        text = of_variable(pass->requests, spec);
    return text == NULL ? spec->initial : text;
}

bool mu__setting_given(const struct mu__pass *pass, unsigned number)
{
    return pass->settings->values[number] != NULL ||
           of_variable(pass->requests, &pass->settings->specs[number]) != NULL;
}

const char *mu__setting_origin(const struct mu__pass *pass, unsigned number)
{
    const struct mu__setting_spec *spec = &pass->settings->specs[number];
    const char *value = pass->settings->values[number];

    if (value != NULL)
        return value + strlen(value) + 1;
    return of_variable(pass->requests, spec) != NULL ? spec->variable : spec->by_default;
}

int mu__setting_number(const struct mu__pass *pass, unsigned number, mu_error *ret_error,
                       long *ret_number)
{
    const char *text = mu__setting(pass, number);

    if (text == NULL ||
        read_setting_number(&pass->settings->specs[number], text, ret_number))
        return 0;
    return bad_value(&pass->settings->specs[number], mu__setting_origin(pass, number),
                     text, ret_error);
}

int mu__setting_refuse(const struct mu__pass *pass, unsigned number, const char *expected,
                       mu_error *ret_error)
{
    const char *text = mu__setting(pass, number);
    char shown[MU__QUOTE_BYTES];

    if (text == NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "setting %s of resolver %s: expected %s, got nothing",
                            pass->settings->specs[number].name, pass->settings->resolver,
                            expected);
    mu__quote(shown, sizeof shown, text, strlen(text));
    return mu_error_set(ret_error, -MU_EINVALID, "%s: expected %s, got %s",
                        mu__setting_origin(pass, number), expected, shown);
}

int mu__setting_word(const struct mu__pass *pass, unsigned number,
                     const char *const *words, const char *expected, mu_error *ret_error,
                     unsigned *ret_word)
{
    const char *text = mu__setting(pass, number);

    for (unsigned i = 0; text != NULL && words[i] != NULL; i++)
        if (strcmp(words[i], text) == 0) {
            *ret_word = i;
            return 0;
        }
    return text == NULL ? 0 : mu__setting_refuse(pass, number, expected, ret_error);
}

int mu__setting_required(const struct mu__pass *pass, unsigned number, const char *what,
                         mu_error *ret_error, const char **ret_text)
{
    const struct mu__setting_spec *spec = &pass->settings->specs[number];
    const char *text = mu__setting(pass, number);

    if (text == NULL || text[0] == '\0')
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: setting %s (variable %s) is not set, expected %s",
                            pass->settings->resolver, spec->name, spec->variable, what);
    *ret_text = text;
    return 0;
}

static int explain_not_set(const char *variable, mu_error *ret_why)
{
    (void)mu_error_set(ret_why, -MU_ENOTFOUND, "%s is not set", variable);
    return 0;
}

int mu__setting_detect(const struct mu__pass *pass, unsigned number, mu_error *ret_why)
{
    return mu__setting(pass, number) != NULL
               ? 1
               : explain_not_set(pass->settings->specs[number].variable, ret_why);
}

int mu__variable_detect(struct mu__requests *requests, const char *variable,
                        mu_error *ret_why)
{
    return mu__request_variable(requests, variable) != NULL
               ? 1
               : explain_not_set(variable, ret_why);
}
