/* How the GPUs of a node are split among its tasks. */
#include "resolver/source/slurm.h"

#include <stdio.h>
#include <string.h>

enum { GPUS_MAX = 1024 };

static const char folder[] = "/proc/driver/nvidia/gpus";

/* The GPUs of this node. */
struct gpus {
    unsigned count;      /* of the node, those of this job */
    const char *visible; /* CUDA_VISIBLE_DEVICES, NULL when it is not set */
    unsigned visible_count;
};

/* Whether CUDA_VISIBLE_DEVICES has one of the words for no GPU. */
static bool means_none(const char *text)
{
    static const char *const words[] = {"-1", "none", "void", "NoDevFiles"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(words[i], text) == 0)
            return true;
    return false;
}

static unsigned count_parts(const char *text, char separator)
{
    unsigned count = 0;
    char both[2] = {separator, '\0'};

    while (*text != '\0' && count <= GPUS_MAX) {
        size_t size = strcspn(text, both);

        count += size > 0;
        text += size + (text[size] == separator);
    }
    return count;
}

static int count_folder(struct mu__requests *requests, unsigned *ret_count)
{
    const struct mu__request request = {
        .kind = MU__REQUEST_FOLDER, .name = folder, .tries = 1};
    const struct mu__answer *answer = mu__requests_get(requests, &request);

    *ret_count = answer->code == 0 ? count_parts(answer->data, '\n') : 0;
    return 0;
}

/* Count the GPUs: by the setting, else by Slurm, else the visible ones, else the
 * driver's. */
static int find_gpus(const struct mu__pass *pass, mu_error *ret_error,
                     struct gpus *ret_gpus)
{
    struct gpus gpus = {.visible =
                            mu__request_variable(pass->requests, "CUDA_VISIBLE_DEVICES")};
    long set = -1;
    int rv = mu__setting_number(pass, MU__SLURM_GPUS_PER_NODE, ret_error, &set);

    if (rv == 0 && gpus.visible != NULL && !means_none(gpus.visible))
        gpus.visible_count = count_parts(gpus.visible, ',');
    gpus.count = gpus.visible_count;
    if (rv == 0 && set >= 0)
        gpus.count = (unsigned)set;
    else if (rv == 0 &&
             mu__request_variable(pass->requests, "SLURM_GPUS_ON_NODE") != NULL)
        rv = mu__rank_number(pass->requests, "SLURM_GPUS_ON_NODE", "", 0, GPUS_MAX,
                             ret_error, &gpus.count);
    else if (rv == 0 && gpus.visible == NULL)
        rv = count_folder(pass->requests, &gpus.count);
    if (rv == 0)
        *ret_gpus = gpus;
    return rv;
}

/* Append the name of a visible GPU, or its number when all are visible. */
static void append_device(const struct gpus *gpus, unsigned number, char *out,
                          size_t size)
{
    size_t used = strlen(out);
    const char *at = gpus->visible;
    size_t length;

    if (at == NULL) {
        (void)snprintf(out + used, size - used, "%s%u", used == 0 ? "" : ",", number);
        return;
    }
    at += strspn(at, ",");
    for (; number > 0; number--) {
        at += strcspn(at, ",");
        at += strspn(at, ",");
    }
    length = strcspn(at, ",");
    (void)snprintf(out + used, size - used, "%s%.*s", used == 0 ? "" : ",", (int)length,
                   at);
}

static int set_visible_slice(const struct gpus *gpus, unsigned first, unsigned count,
                             mu_error *ret_error, mu_resolution *resolution)
{
    char devices[sizeof resolution->visible_devices + 256] = "";

    for (unsigned i = 0; i < count && strlen(devices) < sizeof devices - 1; i++)
        append_device(gpus, first + i, devices, sizeof devices);
    if (strlen(devices) >= sizeof resolution->visible_devices)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "CUDA_VISIBLE_DEVICES: the names of %u GPUs have more than "
                            "%zu bytes",
                            count, sizeof resolution->visible_devices - 1);
    memcpy(resolution->visible_devices, devices, strlen(devices) + 1);
    return 0;
}

/* Slurm itself has given this task a part of the node's GPUs: it keeps that part. */
static int keep_bound(struct mu__requests *requests, const struct gpus *gpus,
                      long per_task, mu_error *ret_error, mu_resolution *resolution)
{
    if (per_task > (long)gpus->visible_count)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "gpus_per_task is %ld, but Slurm has given this task %u of "
                            "the node's %u GPUs (CUDA_VISIBLE_DEVICES)",
                            per_task, gpus->visible_count, gpus->count);
    mu__requests_explain(requests,
                         "Slurm has given this task %u of the node's %u GPUs: they are "
                         "not split further",
                         gpus->visible_count, gpus->count);
    resolution->accelerators = (int)gpus->visible_count;
    return 0;
}

int mu__slurm_gpus(const struct mu__pass *pass, unsigned local, unsigned node_tasks,
                   unsigned tasks_max, mu_error *ret_error, mu_resolution *resolution)
{
    bool is_set = mu__setting_given(pass, MU__SLURM_GPUS_PER_NODE);
    unsigned sharing = is_set ? tasks_max : node_tasks;
    struct gpus gpus;
    long per_task = -1;
    long takes = 1;
    int rv = find_gpus(pass, ret_error, &gpus);

    if (rv == 0)
        rv = mu__setting_number(pass, MU__SLURM_GPUS_PER_TASK, ret_error, &per_task);
    if (rv == 0)
        rv = mu__setting_number(pass, MU__SLURM_AUTO_SET_GPU, ret_error, &takes);
    if (rv != 0)
        return rv;
    (void)snprintf(resolution->accelerator, sizeof resolution->accelerator, "GPU");
    if (gpus.visible_count > 0 && gpus.visible_count < gpus.count)
        return keep_bound(pass->requests, &gpus, per_task, ret_error, resolution);
    if (per_task < 0)
        per_task = (long)(gpus.count / tasks_max);
    if ((uint64_t)per_task * sharing > gpus.count)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "gpus_per_task: %u tasks of one node with %ld GPUs each need "
                            "more than the %u GPUs that it has",
                            sharing, per_task, gpus.count);
    resolution->accelerators = (int)per_task;
    if (per_task == 0 && gpus.count > 0)
        mu__requests_explain(pass->requests,
                             "%u GPUs are too few for the %u tasks of a node: none is "
                             "given to this task alone",
                             gpus.count, tasks_max);
    if (per_task == 0 || takes == 0)
        return 0;
    return set_visible_slice(&gpus, local * (unsigned)per_task, (unsigned)per_task,
                             ret_error, resolution);
}
