/* The program `muster`: the command, with nothing around it. */
#include "muster/main.h"

int main(int count, char **arguments)
{
    return mu_main(count, arguments);
}
