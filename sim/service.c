/* The coordination service of a story: its host, and the disk of that. */
#include "sim/internal.h"

#include "actors/coordination/store/store.h"

enum { SUSPECT_MS = 500, DEAD_MS = 1000, RECONNECT_MS = 200 };

int mu_sim_service(mu_sim *sim, const char *task)
{
    const struct sim_task *host;

    if (sim == NULL)
        return -MU_EINVALID;
    host = sim_task_find(sim, "mu_sim_service", task);
    if (sim->is_started || sim->service.task != NULL)
        mu_sim_fail(sim, "mu_sim_service: %s",
                    sim->is_started ? "time has passed" : "there is one already");
    if (sim_verdict(sim) != 0)
        return -MU_EABORTED;
    sim->service = (struct sim_service){
        .task = host,
        .store = sim_storage_new("store", sim->seed),
        .kept = sim_storage_new("store.kept", ~sim->seed),
    };
    return 0;
}

void sim_service_join(const struct sim_task *task, struct mu__member_config *config)
{
    const struct sim_service *service = &task->sim->service;

    if (service->task == NULL)
        return;
    config->hosts = service->task->name;
    config->coordination = (struct mu__coordination_config){
        .store = &mu__store_journal,
        .tasks = service->task->name,
        .recoverable = "all",
        .suspect_ms = SUSPECT_MS,
        .dead_ms = DEAD_MS,
        .reconnect_ms = RECONNECT_MS,
    };
    if (service->task != task)
        return;
    config->coordination.storage = &service->store->base;
    config->coordination.kept = &service->kept->base;
}

void sim_service_crash(const struct sim_task *task)
{
    const struct sim_service *service = &task->sim->service;

    if (service->task != task)
        return;
    sim_storage_crash(service->store);
    sim_storage_crash(service->kept);
}

void sim_service_done(struct sim_service *service)
{
    if (service->task == NULL)
        return;
    sim_storage_free(service->store);
    sim_storage_free(service->kept);
}
