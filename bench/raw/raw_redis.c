/* What Redis does on this machine, by its own benchmark, with nothing kept on the disk.
 *
 *     raw_redis [operation=set|get|incr] [clients=1] [pipeline=1] [requests=100000]
 */
#include "bench/raw/raw.h"

enum { START_TRIES = 200 };

static char folder[] = "/tmp/muster-redis-XXXXXX";
static pid_t redis;

static void end_redis(void)
{
    if (redis > 0) {
        kill(redis, SIGKILL);
        waitpid(redis, NULL, 0);
        redis = 0;
    }
    (void)rmdir(folder);
}

/* Over tcp, as its clients would: the port is one that the kernel would give. */
static void begin_redis(const char *port)
{
    raw_check(mkdtemp(folder) != NULL, "a folder");
    redis = fork();
    raw_check(redis >= 0, "fork");
    if (redis == 0) {
        alarm(RAW_SECONDS_MAX);
        raw_check(freopen("/dev/null", "w", stdout) != NULL, "quiet");
        execlp("redis-server", "redis-server", "--port", port, "--bind", "127.0.0.1",
               "--save", "", "--appendonly", "no", "--dir", folder, (char *)NULL);
        _exit(1);
    }
    (void)atexit(end_redis);
}

static void await_redis(const char *port)
{
    const struct timespec moment = {.tv_nsec = 50000000};
    char command[128];
    int tries = 0;

    (void)snprintf(command, sizeof command,
                   "redis-cli -h 127.0.0.1 -p %s ping >/dev/null 2>&1", port);
    while (system(command) != 0) {
        raw_check(tries++ < START_TRIES, "redis does not answer: its start");
        (void)nanosleep(&moment, NULL);
    }
}

/* The requests per second of a line of its table: "SET","21000.00",... */
static double rate_of(const char *command)
{
    char line[BENCH_LINE_MAX];
    double rate = 0.0;
    FILE *pipe = popen(command, "r");

    raw_check(pipe != NULL, "redis-benchmark");
    while (fgets(line, sizeof line, pipe) != NULL) {
        const char *comma = strstr(line, ",\"");

        if (comma != NULL && strtod(comma + 2, NULL) > 0.0)
            rate = strtod(comma + 2, NULL);
    }
    raw_check(pclose(pipe) == 0 && rate > 0.0, "redis-benchmark");
    return rate;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"operation", "clients", "pipeline", "requests",
                                        NULL};
    static const char *const operations[] = {"set", "get", "incr", NULL};
    unsigned operation = raw_arg_word(argc, argv, "operation", operations);
    unsigned clients = raw_arg_number(argc, argv, "clients", 1, 1, 1000);
    unsigned pipeline = raw_arg_number(argc, argv, "pipeline", 1, 1, 10000);
    unsigned requests = raw_arg_number(argc, argv, "requests",
                                       (unsigned)bench_size(1000, 100000), 1, 100000000);
    char command[256];
    char port[16];

    raw_args_check(argc, argv, names);
    (void)snprintf(port, sizeof port, "%d", 20000 + getpid() % 20000);
    begin_redis(port);
    await_redis(port);
    (void)snprintf(command, sizeof command,
                   "redis-benchmark -h 127.0.0.1 -p %s -t %s -c %u -P %u -n %u -d 64 "
                   "-r 100000 --csv 2>/dev/null",
                   port, operations[operation], clients, pipeline, requests);
    printf("{\"bench\":\"raw_redis\",\"metric\":\"%s\",\"clients\":%u,\"pipeline\":%u,"
           "\"value\":%.0f,\"unit\":\"1/s\"}\n",
           operations[operation], clients, pipeline, rate_of(command));
    return 0;
}
