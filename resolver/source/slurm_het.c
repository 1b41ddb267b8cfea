/* Steps that span several components of a heterogeneous job.
 *
 * Slurm numbers the tasks component by component, but lists the hosts of the step in an
 * order of its own, and one component's distribution for all. The variables of each
 * component, from salloc and sbatch, are in the right order. */
#include "resolver/source/slurm.h"

#include "runtime/base/build.h"

#include <muster/cluster.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPONENTS_MAX = 128 };

/* SLURM_<what>_HET_GROUP_<number> */
static void name_of(const char *what, unsigned number, char *out, size_t size)
{
    (void)snprintf(out, size, "SLURM_%s_HET_GROUP_%u", what, number);
}

/* The texts of all components, with commas between. */
static int join(struct mu__requests *requests, const char *what, unsigned components,
                mu_error *ret_error, char **ret_text)
{
    struct mu__build whole = {0};
    char name[64];

    for (unsigned i = 0; i < components; i++) {
        const char *text;

        name_of(what, i, name, sizeof name);
        text = mu__request_variable(requests, name);
        if (text == NULL) {
            mu__build_done(&whole);
            return mu_error_set(ret_error, -MU_ENOTFOUND,
                                "%s is not set, though SLURM_HET_SIZE is %u", name,
                                components);
        }
        mu__build_add(&whole, i == 0 ? "" : ",");
        mu__build_add(&whole, text);
    }
    if (!mu__build_whole(&whole))
        return mu_error_set(ret_error, -MU_ENOMEM, "SLURM_HET_SIZE: out of memory");
    *ret_text = whole.text;
    return 0;
}

/* Nodes of the step, and of all components. */
static int count_nodes(struct mu__requests *requests, unsigned components,
                       mu_error *ret_error, unsigned *ret_step, unsigned *ret_all)
{
    static const char hint[] = ": srun has made this heterogeneous job by itself, and "
                               "Slurm does not tell then which hosts are whose; start "
                               "it with srun --het-group within salloc or sbatch";
    unsigned all = 0;
    unsigned nodes = 0;
    int rv = mu__rank_number(requests, "SLURM_STEP_NUM_NODES", "", 1,
                             MU_CLUSTER_TASKS_MAX, ret_error, ret_step);

    for (unsigned i = 0; rv == 0 && i < components; i++) {
        char name[64];

        name_of("NNODES", i, name, sizeof name);
        rv = mu__rank_number(requests, name, hint, 1, MU_CLUSTER_TASKS_MAX, ret_error,
                             &nodes);
        all += nodes;
    }
    *ret_all = all;
    return rv;
}

int mu__slurm_het(struct mu__requests *requests, mu_error *ret_error,
                  struct mu__slurm_het *ret_het)
{
    static const char size_variable[] = "SLURM_HET_SIZE";
    struct mu__slurm_het het = {NULL, NULL};
    unsigned components = 1;
    unsigned step = 0;
    unsigned all = 1;
    int rv = 0;

    if (mu__request_variable(requests, size_variable) != NULL)
        rv = mu__rank_number(requests, size_variable, "", 1, COMPONENTS_MAX, ret_error,
                             &components);
    if (rv == 0 && components > 1)
        rv = count_nodes(requests, components, ret_error, &step, &all);
    if (rv == 0 && step == all)
        rv = join(requests, "JOB_NODELIST", components, ret_error, &het.hosts);
    if (rv == 0 && step == all)
        rv = join(requests, "TASKS_PER_NODE", components, ret_error, &het.counts);
    if (rv == 0)
        *ret_het = het;
    else
        mu__slurm_het_done(&het);
    return rv;
}

void mu__slurm_het_done(struct mu__slurm_het *het)
{
    free(het->hosts);
    free(het->counts);
    *het = (struct mu__slurm_het){NULL, NULL};
}
