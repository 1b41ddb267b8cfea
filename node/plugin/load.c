/* Loading plugins. What a plugin does while it is loaded (its constructors, and
 * mu_plugin_open) runs in this process, and can end it; guard.h names the plugin then.
 * One plugin is loaded at a time in the process; mu_plugin_open may load another one. */
#define _GNU_SOURCE /* dladdr1() */
#include "node/node.h"
#include "node/plugin/guard.h"
#include "runtime/message/arguments.h"

#include <dlfcn.h>
#include <elf.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The interface ---- */

/* Whether the ELF type of a symbol fits. False when the system does not say it. */
static bool is_symbol_of_type(void *symbol, bool (*fits)(unsigned type))
{
#ifdef __GLIBC__
    const ElfW(Sym) *entry = NULL;
    Dl_info info;

    if (dladdr1(symbol, &info, (void **)&entry, RTLD_DL_SYMENT) != 0 && entry != NULL)
        return fits(ELF64_ST_TYPE(entry->st_info));
#else
    (void)symbol;
    (void)fits;
#endif
    return false;
}

static bool is_data_symbol(unsigned type)
{
    return type == STT_OBJECT || type == STT_COMMON || type == STT_TLS;
}

static bool is_code_symbol(unsigned type)
{
    return type == STT_FUNC || type == STT_GNU_IFUNC;
}

static int check_plugin_version(void *handle, const char *path, mu_error *ret_error)
{
    const unsigned *version = dlsym(handle, "mu_plugin_api_version");

    if (version == NULL)
        return 0;
    if (is_symbol_of_type((void *)(uintptr_t)version, is_code_symbol))
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "plugin \"%s\": mu_plugin_api_version is a function: "
                            "expected the number that MU_PLUGIN defines",
                            path);
    if (*version == MU_PLUGIN_API_VERSION)
        return 0;
    return mu_error_set(ret_error, -MU_EPRECONDITION,
                        "plugin \"%s\" is made for version %u of the plugin interface: "
                        "this muster has version %d",
                        path, *version, MU_PLUGIN_API_VERSION);
}

static int find_open(void *handle, const char *path, mu_error *ret_error,
                     mu_plugin_open_fn *ret_open)
{
    void *symbol = dlsym(handle, "mu_plugin_open");

    if (symbol == NULL)
        return mu_error_set(ret_error, -MU_ENOTFOUND,
                            "plugin \"%s\" has no function \"mu_plugin_open\"", path);
    if (is_symbol_of_type(symbol, is_data_symbol))
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "plugin \"%s\": \"mu_plugin_open\" is data: expected a "
                            "function",
                            path);
    *(void **)ret_open = symbol;
    return 0;
}

/* ---- Loading ---- */

/* A name without a slash is a file of the current folder, if there is one: dlopen would
 * look for it among the system's libraries alone. */
static void *open_library(const char *path)
{
    char here[PATH_MAX];

    if (strchr(path, '/') != NULL || access(path, F_OK) != 0 ||
        (size_t)snprintf(here, sizeof here, "./%s", path) >= sizeof here)
        return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return dlopen(here, RTLD_NOW | RTLD_LOCAL);
}

static int cannot_load(const char *path, mu_error *ret_error)
{
    const char *reason = dlerror();
    char here[PATH_MAX];

    if (strchr(path, '/') != NULL || access(path, F_OK) == 0 ||
        getcwd(here, sizeof here) == NULL)
        return mu_error_set(ret_error, -MU_ENOTFOUND, "plugin \"%s\" does not load: %s",
                            path, reason);
    return mu_error_set(ret_error, -MU_ENOTFOUND,
                        "plugin \"%s\" does not load: there is no such file in %s, and "
                        "no such library: %s",
                        path, here, reason);
}

/* A file that ends before its segments do: dlopen maps what is not there, and the first
 * touch of that ends the process. What is no ELF file at all, dlopen refuses itself. */
static int check_whole(const char *path, uint64_t size, mu_error *ret_error)
{
    FILE *file = fopen(path, "re");
    ElfW(Ehdr) head;
    ElfW(Phdr) part;
    uint64_t needed = 0;

    if (file == NULL)
        return 0;
    if (fread(&head, sizeof head, 1, file) == 1 &&
        memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_phentsize == sizeof part &&
        head.e_phoff <= INT32_MAX && fseek(file, (long)head.e_phoff, SEEK_SET) == 0)
        for (unsigned i = 0; i < head.e_phnum && fread(&part, sizeof part, 1, file) == 1;
             i++)
            if (part.p_type == PT_LOAD && part.p_offset + part.p_filesz > needed)
                needed = part.p_offset + part.p_filesz;
    (void)fclose(file);
    if (needed <= size)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "plugin \"%s\" does not load: it is cut "
                        "short: it has %" PRIu64 " bytes, and its segments need %" PRIu64,
                        path, size, needed);
}

/* A plugin stays loaded: its functions may still be running when a node is closed. */
static int load_plugin(mu_node *node, const char *path, mu_error *ret_error)
{
    mu_plugin_open_fn open_plugin = NULL;
    struct stat status;
    void *handle;
    int rv = 0;

    if (stat(path, &status) == 0) {
        /* dlopen would wait for a writer of a pipe. */
        if (!S_ISREG(status.st_mode))
            return mu_error_set(ret_error, -MU_EINVALID,
                                "plugin \"%s\" does not load: it is no regular file",
                                path);
        rv = check_whole(path, (uint64_t)status.st_size, ret_error);
    }
    if (rv != 0)
        return rv;
    handle = open_library(path);
    if (handle == NULL)
        return cannot_load(path, ret_error);
    rv = check_plugin_version(handle, path, ret_error);
    if (rv == 0)
        rv = find_open(handle, path, ret_error, &open_plugin);
    if (rv != 0) {
        (void)dlclose(handle);
        return rv;
    }
    rv = open_plugin(node);
    if (rv == 0)
        return 0;
    return mu_error_set(ret_error, rv < 0 ? rv : -MU_EUNKNOWN,
                        "plugin \"%s\" could not be opened: mu_plugin_open returned %d "
                        "(%s)",
                        path, rv, mu_strerror(rv));
}

int mu_node_load_plugin(mu_node *node, const char *path, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, node, path);

    struct mu__plugin_guard guard;
    int rv;

    mu__plugin_guard_begin(&guard, node, path);
    rv = load_plugin(node, path, ret_error);
    mu__plugin_guard_end(&guard);
    return rv;
}
