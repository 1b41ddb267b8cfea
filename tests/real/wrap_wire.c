/* Nodes of the real tests take their wire from the environment, so that a test can run
 * on each: MUSTER_WIRE=nng, with MUSTER_INSECURE. Programs that are started read it
 * themselves. */
#include "muster/node.h"

#include <stdlib.h>

void __real_mu_node_options_init_sized(mu_node_options *options, size_t size);
void __wrap_mu_node_options_init_sized(mu_node_options *options, size_t size);

void __wrap_mu_node_options_init_sized(mu_node_options *options, size_t size)
{
    __real_mu_node_options_init_sized(options, size);
    if (options == NULL || size < sizeof *options)
        return;
    options->wire = getenv("MUSTER_WIRE");
    options->insecure = getenv("MUSTER_INSECURE") != NULL;
}
