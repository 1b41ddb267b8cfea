#include "cli/run/place.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ADDRESS_BYTES = 128 };

/* All sockets stay open until every port is chosen, so that no two are the same. */
struct ports {
    int *fds;
    int count;
};

static int take_port(struct ports *ports, char *ret_address)
{
    struct sockaddr_in own = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t size = sizeof own;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    ports->fds[ports->count++] = fd;
    if (bind(fd, (struct sockaddr *)&own, size) != 0 ||
        getsockname(fd, (struct sockaddr *)&own, &size) != 0)
        return -1;
    (void)snprintf(ret_address, ADDRESS_BYTES, "127.0.0.1:%d", ntohs(own.sin_port));
    return 0;
}

static int place_task(mu_cluster *cluster, struct ports *ports, const char *folder,
                      const char *type, int index, mu_error *error)
{
    char address[ADDRESS_BYTES];

    if (folder[0] != '\0')
        (void)snprintf(address, sizeof address, "ipc://%s/%s-%d", folder, type, index);
    else if (take_port(ports, address) != 0)
        return mu_error_set(error, -MU_EEXHAUSTED, "no free port for %s/%d: %s", type,
                            index, strerror(errno));
    return mu_cluster_add(cluster, type, index, address, error);
}

static int make_folder(char *ret_folder, mu_error *error)
{
    const char *base = getenv("TMPDIR");

    if (base == NULL || base[0] != '/' || strlen(base) > CMD_FOLDER_BYTES - 20)
        base = "/tmp";
    (void)snprintf(ret_folder, CMD_FOLDER_BYTES, "%s/muster-XXXXXX", base);
    if (mkdtemp(ret_folder) != NULL)
        return 0;
    ret_folder[0] = '\0';
    return mu_error_set(error, -MU_EUNAVAILABLE, "no folder can be made in %s: %s", base,
                        strerror(errno));
}

static size_t total_of(const struct cmd_wanted *wanted)
{
    size_t total = 0;

    for (; wanted->type != NULL; wanted++)
        total += (size_t)wanted->count;
    return total;
}

int cmd_place(const struct cmd_wanted *wanted, int ipc, mu_error *ret_error,
              char *ret_folder, mu_cluster **ret_cluster)
{
    struct ports ports = {.fds = calloc(total_of(wanted) + 1, sizeof *ports.fds)};
    mu_cluster *cluster = mu_cluster_new();
    int rv = 0;

    ret_folder[0] = '\0';
    if (cluster == NULL || ports.fds == NULL) {
        mu_cluster_free(cluster);
        free(ports.fds);
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    }
    if (ipc)
        rv = make_folder(ret_folder, ret_error);
    for (; rv == 0 && wanted->type != NULL; wanted++)
        for (int index = 0; rv == 0 && index < wanted->count; index++)
            rv = place_task(cluster, &ports, ret_folder, wanted->type, index, ret_error);
    for (int i = 0; i < ports.count; i++)
        (void)close(ports.fds[i]);
    free(ports.fds);
    if (rv != 0) {
        cmd_place_done(ret_folder, cluster);
        mu_cluster_free(cluster);
        return rv;
    }
    *ret_cluster = cluster;
    return 0;
}

/* A task that ended well has removed its socket; one that was killed has not. */
void cmd_place_done(const char *folder, const mu_cluster *cluster)
{
    const char *type;
    const char *address;
    int index;

    if (folder[0] == '\0')
        return;
    for (size_t i = 0; mu_cluster_task_at(cluster, i, &type, &index, &address) == 0; i++)
        (void)unlink(address + strlen("ipc://"));
    (void)rmdir(folder);
}
