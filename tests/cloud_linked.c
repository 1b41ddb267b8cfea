/* Programs of tests have the resolvers for clouds linked, and load no library. */
#include "resolver/cloud/resolvers.h"

static void __attribute__((constructor)) use_linked(void)
{
    mu__cloud_set(&mu__cloud_pure);
}
