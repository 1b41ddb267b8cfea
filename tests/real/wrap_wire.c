/* Nodes of the real tests take their wire from the environment, so that a test can run
 * on each: MUSTER_WIRE=nng, with MUSTER_INSECURE. Programs that are started read it
 * themselves. */
#include "muster/node.h"

#include <stdlib.h>

void __real_mu_node_options_init(mu_node_options *options);
void __wrap_mu_node_options_init(mu_node_options *options);

void __wrap_mu_node_options_init(mu_node_options *options)
{
    __real_mu_node_options_init(options);
    if (options == NULL)
        return;
    options->wire = getenv("MUSTER_WIRE");
    options->tls.insecure = getenv("MUSTER_INSECURE") != NULL;
}
