/* What MPI's barrier takes on this machine; run by mpirun, the first process prints it.
 * Processes give way to each other while they wait, as they must when there are more of
 * them than cores.
 *
 *     mpirun -n 8 --oversubscribe --mca mpi_yield_when_idle 1 raw_mpi [rounds=5000]
 */
#include "bench/raw/raw.h"

#include <mpi.h>

enum { WARM_SHARE = 20 }; /* one in so many rounds comes before those that count */

int main(int argc, char **argv)
{
    static const char *const names[] = {"rounds", NULL};
    unsigned rounds =
        raw_arg_number(argc, argv, "rounds", (unsigned)bench_size(200, 5000), 1, 1000000);
    uint64_t begin_ns;
    uint64_t end_ns;
    int rank;
    int size;

    raw_args_check(argc, argv, names);
    raw_check(MPI_Init(&argc, &argv) == MPI_SUCCESS, "MPI_Init");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (unsigned i = 0; i < rounds / WARM_SHARE; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    begin_ns = bench_now_ns();
    for (unsigned i = 0; i < rounds; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    end_ns = bench_now_ns();
    if (rank == 0)
        printf("{\"bench\":\"raw_mpi\",\"metric\":\"barrier\",\"processes\":%d,"
               "\"value\":%.3f,\"unit\":\"us\"}\n",
               size, (double)(end_ns - begin_ns) / 1e3 / (double)rounds);
    return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
