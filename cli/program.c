/* The main function of the program `muster`; the rest of the command is in the
 * library. */
#include "muster/main.h"

int main(int count, char **arguments)
{
    return mu_main(count, arguments);
}
