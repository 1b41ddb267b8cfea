/* A strict C89 program uses the library through the one public header. */
#include <muster.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    mu_error error;
    int rv = mu_error_set(&error, -MU_ENOTFOUND, "no %s", "name");

    if (rv != -MU_ENOTFOUND || error.code != rv || strcmp(error.message, "no name")) {
        printf("mu_error_set gave %d: %s\n", rv, error.message);
        return 1;
    }
    return 0;
}
