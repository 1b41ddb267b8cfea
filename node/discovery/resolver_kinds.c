#include "node/discovery/resolver_kinds.h"

#include "resolver/kinds.h"
#include "runtime/base/text.h"
#include "runtime/message/arguments.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `lock` guards the table, and the counts of holders. In the order of registration. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mu__own_kind *kinds[MU_RESOLVER_KINDS_MAX];
static size_t kinds_count;

static void own_ref(struct mu__own_kind *own)
{
    (void)pthread_mutex_lock(&lock);
    own->refs++;
    (void)pthread_mutex_unlock(&lock);
}

static void own_unref(struct mu__own_kind *own)
{
    bool last;

    (void)pthread_mutex_lock(&lock);
    last = --own->refs == 0;
    (void)pthread_mutex_unlock(&lock);
    if (last)
        free(own);
}

static size_t find_locked(const char *name)
{
    size_t i = 0;

    while (i < kinds_count && strcmp(kinds[i]->name, name) != 0)
        i++;
    return i;
}

struct mu__own_kind *mu__own_kind_find(const char *name)
{
    struct mu__own_kind *own = NULL;
    size_t i;

    (void)pthread_mutex_lock(&lock);
    i = find_locked(name);
    if (i < kinds_count) {
        own = kinds[i];
        own->refs++;
    }
    (void)pthread_mutex_unlock(&lock);
    return own;
}

size_t mu__own_kinds_all(struct mu__own_kind **ret_kinds)
{
    size_t count;

    (void)pthread_mutex_lock(&lock);
    count = kinds_count;
    for (size_t i = 0; i < count; i++) {
        ret_kinds[i] = kinds[count - 1 - i];
        ret_kinds[i]->refs++;
    }
    (void)pthread_mutex_unlock(&lock);
    return count;
}

static bool is_kind_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-";
    size_t length = name == NULL ? 0 : strlen(name);

    return length > 0 && length < sizeof kinds[0]->name &&
           strspn(name, letters) == length;
}

static bool is_built_in_kind(const char *name)
{
    static const char *const names[] = {"auto", "static", "union"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return mu__resolver_kind_find(name) != NULL;
}

static int check_own_kind(const mu_resolver_kind *kind, mu_error *ret_error)
{
    char shown[MU__QUOTE_BYTES] = "NULL";

    if (kind == NULL || kind->resolve == NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a resolver: expected a function `resolve`, got NULL");
    if (is_kind_name(kind->name))
        return 0;
    if (kind->name != NULL)
        mu__quote(shown, sizeof shown, kind->name, strlen(kind->name));
    return mu_error_set(ret_error, -MU_EINVALID,
                        "a resolver's name: expected 1 to %zu of letters, digits, _ and "
                        "-, got %s",
                        sizeof kinds[0]->name - 1, shown);
}

static int add_locked(struct mu__own_kind *own, mu_error *ret_error)
{
    if (is_built_in_kind(own->name) || find_locked(own->name) < kinds_count)
        return mu_error_set(ret_error, -MU_EEXISTS,
                            "a resolver with the name %s is there already", own->name);
    if (kinds_count == MU_RESOLVER_KINDS_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "expected at most %d resolvers of the program's own",
                            (int)MU_RESOLVER_KINDS_MAX);
    kinds[kinds_count++] = own;
    return 0;
}

int mu_resolver_register(const mu_resolver_kind *kind, mu_error *ret_error)
{
    int rv = check_own_kind(kind, ret_error);
    struct mu__own_kind *own;

    if (rv != 0)
        return rv;
    own = calloc(1, sizeof *own);
    if (own == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    own->kind = *kind;
    (void)snprintf(own->name, sizeof own->name, "%s", kind->name);
    (void)snprintf(own->summary, sizeof own->summary, "%s",
                   kind->summary == NULL ? "" : kind->summary);
    own->kind.name = own->name;
    own->kind.summary = own->summary;
    own->ref = own_ref;
    own->unref = own_unref;
    own->refs = 1;
    (void)pthread_mutex_lock(&lock);
    rv = add_locked(own, ret_error);
    (void)pthread_mutex_unlock(&lock);
    if (rv != 0)
        free(own);
    return rv;
}

int mu_resolver_unregister(const char *name, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, name);

    struct mu__own_kind *own = NULL;
    char shown[MU__QUOTE_BYTES];
    size_t i;

    (void)pthread_mutex_lock(&lock);
    i = find_locked(name);
    if (i < kinds_count) {
        own = kinds[i];
        kinds_count--;
        memmove(&kinds[i], &kinds[i + 1], (kinds_count - i) * sizeof(void *));
    }
    (void)pthread_mutex_unlock(&lock);
    if (own != NULL) {
        own_unref(own);
        return 0;
    }
    mu__quote(shown, sizeof shown, name, strlen(name));
    return mu_error_set(ret_error, -MU_ENOTFOUND,
                        "no resolver of the program's own is called %s", shown);
}

const char *mu_resolver_name_at(size_t i)
{
    const char *name = NULL;
    size_t count;

    (void)pthread_mutex_lock(&lock);
    count = kinds_count;
    if (i < count)
        name = kinds[count - 1 - i]->name;
    (void)pthread_mutex_unlock(&lock);
    if (i < count)
        return name;
    i -= count;
    for (size_t k = 0; mu__resolver_kinds[k] != NULL; k++)
        if (k == i)
            return mu__resolver_kinds[k]->name;
    return NULL;
}
