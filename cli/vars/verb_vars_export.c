/* `muster vars export`: variables and tables as a safetensors file. It is the file of a
 * checkpoint, which is written beside it and removed. */
#include "cli/vars/vars.h"

#include "muster/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

static const char beside[] = ".XXXXXX";
static const char only_file[] = "00001-of-00001.safetensors";

/* What is exported. */
struct exported {
    mu_variable **variables;
    size_t variables_count;
    mu_table **tables;
    size_t tables_count;
};

static int open_exported(const struct cmd_client *client, const mu_value *found,
                         struct exported *exported, mu_error *error)
{
    int rv;

    if (cmd_vars_is_table(found)) {
        rv = cmd_vars_open_table(client, found, error,
                                 &exported->tables[exported->tables_count]);
        exported->tables_count += rv == 0;
    } else {
        rv = cmd_vars_open_variable(client, found, error,
                                    &exported->variables[exported->variables_count]);
        exported->variables_count += rv == 0;
    }
    return rv;
}

static int open_list(const struct cmd_client *client, const mu_value *list,
                     struct exported *exported, mu_error *error)
{
    int rv = 0;

    for (size_t i = 0; i < mu_value_count(list) && rv == 0; i++)
        rv = open_exported(client, mu_value_at(list, i), exported, error);
    return rv;
}

/* All of the list, or what has the name. */
static int open_all(const struct cmd_client *client, const mu_value *value,
                    struct exported *exported, mu_error *error)
{
    const mu_value *variables = mu_value_find(value, "variables");
    const mu_value *tables = mu_value_find(value, "tables");
    const char *name = client->options->operands[1];
    const mu_value *found;
    int rv;

    exported->variables = calloc(mu_value_count(variables) + 1, sizeof(mu_variable *));
    exported->tables = calloc(mu_value_count(tables) + 1, sizeof(mu_table *));
    if (exported->variables == NULL || exported->tables == NULL)
        return mu_error_set(error, -MU_ENOMEM, "out of memory");
    if (name != NULL) {
        rv = cmd_vars_find(value, name, error, &found);
        return rv == 0 ? open_exported(client, found, exported, error) : rv;
    }
    if (mu_value_count(variables) + mu_value_count(tables) == 0)
        return mu_error_set(error, -MU_ENOTFOUND, "there are no variables and no tables");
    if (cmd_map_number(value, "left_out") + cmd_map_number(value, "servers_missing") > 0)
        return mu_error_set(error, -MU_EUNAVAILABLE,
                            "the servers did not list all variables: name one");
    rv = open_list(client, variables, exported, error);
    return rv == 0 ? open_list(client, tables, exported, error) : rv;
}

static void close_all(struct exported *exported)
{
    for (size_t i = 0; i < exported->variables_count; i++)
        mu_variable_close(exported->variables[i]);
    for (size_t i = 0; i < exported->tables_count; i++)
        mu_table_close(exported->tables[i]);
    free(exported->variables);
    free(exported->tables);
}

/* ---- The file ---- */

static int give_name(const char *folder, const char *file, mu_error *error)
{
    char from[PATH_BYTES + sizeof only_file];

    (void)snprintf(from, sizeof from, "%s/%s", folder, only_file);
    if (rename(from, file) == 0)
        return 0;
    if (errno == ENOENT)
        return mu_error_set(
            error, -MU_EEXHAUSTED,
            "\"%.200s\": it would have more than 4 GiB: save a checkpoint", file);
    return mu_error_set(error, -MU_EPERMISSION, "\"%.200s\" cannot be written: %s", file,
                        strerror(errno));
}

/* Remove the checkpoint, in which there are no folders. */
static void remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;

    while (folder != NULL && (entry = readdir(folder)) != NULL)
        (void)unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder != NULL)
        (void)closedir(folder);
    (void)rmdir(path);
}

static int save_in(const struct cmd_client *client, const struct exported *exported,
                   const char *folder, mu_error *error)
{
    mu_checkpoint_options options;
    char *path = NULL;
    int rv;

    mu_checkpoint_options_init(&options);
    options.directory = folder;
    options.timeout_ms = cmd_wait_timeout_ms(client);
    options.tables = exported->tables;
    options.tables_count = exported->tables_count;
    rv = mu_checkpoint_save(&options, 0, exported->variables, exported->variables_count,
                            NULL, error, &path);
    if (rv == 0) {
        rv = give_name(path, client->options->operands[0], error);
        remove_folder(path);
    }
    free(path);
    return rv;
}

static int write_export(const struct cmd_client *client, const struct exported *exported,
                        mu_error *error)
{
    const char *file = client->options->operands[0];
    char folder[PATH_BYTES];
    int rv;

    if (strlen(file) + sizeof beside > sizeof folder)
        return mu_error_set(error, -MU_EINVALID, "the name of the file is too long");
    (void)snprintf(folder, sizeof folder, "%s%s", file, beside);
    if (mkdtemp(folder) == NULL)
        return mu_error_set(error, -MU_EPERMISSION, "\"%.200s\" cannot be written: %s",
                            file, strerror(errno));
    rv = save_in(client, exported, folder, error);
    (void)rmdir(folder);
    return rv;
}

int cmd_vars_export(struct cmd_client *client, mu_error *error)
{
    struct exported exported = {.variables = NULL};
    mu_value *value = NULL;
    int rv = cmd_vars_request(client, true, error, &value);

    if (rv == 0)
        rv = open_all(client, value, &exported, error);
    if (rv == 0)
        rv = write_export(client, &exported, error);
    close_all(&exported);
    mu_value_free(value);
    return cmd_exit_code(rv);
}
