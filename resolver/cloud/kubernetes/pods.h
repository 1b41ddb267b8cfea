/* Lists of pods of the Kubernetes API, and the tasks that are made of them. Pure. */
#ifndef MU_RESOLVER_PODS_H
#define MU_RESOLVER_PODS_H

#include <muster/resolver.h>

#include <stdbool.h>
#include <stddef.h>

/* A named port of a container. A number of 0: it has none. */
struct mu__pod_port {
    char name[64];
    unsigned container_port;
    unsigned host_port;
};

/* One pod, as far as it is read. Texts are "" when absent. */
struct mu__pod {
    const char *name;
    const char *phase;  /* "Running" */
    const char *reason; /* why it is not: "ContainerCreating", "Evicted" */
    const char *pod_ip;
    const char *host_ip;
    const char *host_name;      /* when its specification sets one */
    const char *controller;     /* uid of the Job or StatefulSet that made it */
    int group;                  /* index of its Job in a JobSet, 0 without one */
    int index;                  /* in its StatefulSet or Indexed Job; -1: none */
    bool deleted;               /* it is being deleted */
    struct mu__pod_port *ports; /* of its containers, then of its init containers */
    size_t ports_count;
    char *texts; /* the block of all texts above */
};

/* One page of a list. */
struct mu__pods {
    struct mu__pod *items;
    size_t count;
    size_t room;
    char *next; /* token of the next page; "": this is the last one */
};

/* Parse a PodList. `source` is where it came from, for messages. On success the caller
 * frees *ret_pods. -MU_EINVALID naming the place and what was expected, -MU_ENOMEM. */
int mu__pods_parse(const char *text, size_t size, const char *source, mu_error *ret_error,
                   struct mu__pods **ret_pods);

/* Takes a struct mu__pods as void, so that it can be kept with an answer. NULL is
 * fine. */
void mu__pods_free(void *pods);

/* How the pods of one selector become tasks. */
struct mu__pods_rule {
    const char *source; /* for messages: "pods of namespace a with x=y" */
    const char *type;   /* "worker" */
    bool host;          /* addresses of hosts instead of pods */
    unsigned port;
    const char *port_name; /* a named port of its containers instead; NULL */
};

/* Order the pods of one selector, leave out those that others have replaced, and add the
 * rest to the resolution, behind the tasks of that type that it has. `pods` is
 * reordered; *count becomes how many are left: the i-th of them is task *ret_first + i.
 *
 * Order: by name; or by index, when each has one and no two have the same. Left out are
 * pods that have failed or are being deleted, whose controller makes another, and those
 * that have ended of a controller that has no living pod.
 * Returns -MU_EUNAVAILABLE naming the pod that does not run, has no address or is missing
 * between two others; -MU_EEXISTS naming two pods with one address; -MU_ENOTFOUND when a
 * pod has no such port; those of mu__resolution_add. */
int mu__pods_add(const struct mu__pod **pods, size_t *count,
                 const struct mu__pods_rule *rule, mu_error *ret_error,
                 mu_resolution *resolution, size_t *ret_first);

#endif
