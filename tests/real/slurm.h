/* A real Slurm of a test's own: its key, munged, slurmctld, and a slurmd for each of four
 * nodes, all on this machine, on loopback and in a fresh folder. Everything dies with the
 * test, and every wait has a limit. Needs neither root nor systemd nor cgroups. */
#ifndef MUSTER_TESTS_REAL_SLURM_H
#define MUSTER_TESTS_REAL_SLURM_H

#include "tests/real/launch.h"

#include <pwd.h>
#include <sys/stat.h>

enum { SLURM_NODES = 4, SLURM_DAEMONS = SLURM_NODES + 2, SLURM_TEXT_BYTES = 4096 };

struct slurm {
    char folder[64];
    pid_t daemons[SLURM_DAEMONS];
    int daemons_count;
};

/* How many processors the nodes 127.0.0.1 to 127.0.0.4 have: no two tasks share one. */
static const int slurm_processors[SLURM_NODES] = {4, 2, 3, 4};

/* NULL, or which program is missing. */
static inline const char *slurm_missing(void)
{
    return needs_programs("munged", "slurmctld", "slurmd", "srun", "sinfo", NULL);
}

/* A path in its folder; valid up to the next call but three. */
static inline const char *slurm_path(const struct slurm *slurm, const char *name)
{
    static char paths[4][160];
    static unsigned next;
    char *path = paths[next++ % 4];

    (void)snprintf(path, sizeof paths[0], "%s/%.80s", slurm->folder, name);
    return path;
}

static inline void slurm_write_key(const struct slurm *slurm)
{
    unsigned char key[128];
    FILE *random = fopen("/dev/urandom", "r");
    FILE *file = fopen(slurm_path(slurm, "key"), "w");

    assert_non_null(random);
    assert_non_null(file);
    assert_int_equal(fread(key, 1, sizeof key, random), sizeof key);
    assert_int_equal(fwrite(key, 1, sizeof key, file), sizeof key);
    assert_int_equal(fclose(file), 0);
    (void)fclose(random);
    assert_int_equal(chmod(slurm_path(slurm, "key"), 0400), 0);
}

static inline void slurm_write_nodes(FILE *file, const char *host)
{
    for (int i = 0; i < SLURM_NODES; i++)
        (void)fprintf(file,
                      "NodeName=127.0.0.%d NodeHostname=%s NodeAddr=127.0.0.1 Port=%d "
                      "CPUs=%d RealMemory=100 Gres=gpu:4\n",
                      i + 1, host, ports_free_run(4), slurm_processors[i]);
}

/* The nodes' names are addresses of loopback, so that nobody has to look them up. */
static inline void slurm_write_config(const struct slurm *slurm)
{
    const struct passwd *user = getpwuid(geteuid());
    const char *name = user == NULL ? "root" : user->pw_name;
    FILE *file = fopen(slurm_path(slurm, "slurm.conf"), "w");
    const char *f = slurm->folder;
    char host[256];

    assert_non_null(file);
    assert_int_equal(gethostname(host, sizeof host), 0);
    host[strcspn(host, ".")] = '\0';
    (void)fprintf(
        file,
        "ClusterName=test\nSlurmctldHost=localhost(127.0.0.1)\nSlurmUser=%s\n"
        "SlurmdUser=%s\nAuthType=auth/munge\nCredType=cred/munge\n"
        "AuthInfo=socket=%s/munge.socket\nSlurmctldPort=%d\n"
        "StateSaveLocation=%s/state\nSlurmdSpoolDir=%s/spool.%%n\n"
        "SlurmctldPidFile=%s/slurmctld.pid\nSlurmdPidFile=%s/slurmd.%%n.pid\n"
        "ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nSwitchType=switch/none\n"
        "MpiDefault=none\nJobAcctGatherType=jobacct_gather/none\n"
        "AccountingStorageType=accounting_storage/none\nJobCompType=jobcomp/none\n"
        "SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\n"
        "SlurmdParameters=config_overrides\nReturnToService=2\nMailProg=/bin/true\n"
        "KillWait=2\nGresTypes=gpu\nSchedulerParameters=bf_interval=1\n",
        name, name, f, ports_free_run(4), f, f, f, f);
    slurm_write_nodes(file, host);
    (void)fprintf(file, "PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=10\n");
    assert_int_equal(fclose(file), 0);
}

/* GPUs are files, as far as Slurm is concerned. */
static inline void slurm_write_gpus(const struct slurm *slurm)
{
    char text[256];

    for (int i = 0; i < 4; i++) {
        (void)snprintf(text, sizeof text, "gpu%d", i);
        cli_write_file(slurm_path(slurm, text), "");
    }
    (void)snprintf(text, sizeof text,
                   "NodeName=127.0.0.[1-4] Name=gpu File=%s/gpu[0-3]\n", slurm->folder);
    cli_write_file(slurm_path(slurm, "gres.conf"), text);
}

/* Its output goes to FOLDER/log. */
static inline void slurm_daemon(struct slurm *slurm, const char *const *arguments)
{
    pid_t parent = getpid();
    char path[512];
    pid_t pid;
    int log;

    assert_true(needs_find(arguments[0], path, sizeof path));
    pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) {
        assert_true(slurm->daemons_count < SLURM_DAEMONS);
        slurm->daemons[slurm->daemons_count++] = pid;
        return;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    log = open(slurm_path(slurm, "log"), O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (getppid() == parent && log >= 0 && dup2(log, STDOUT_FILENO) >= 0 &&
        dup2(log, STDERR_FILENO) >= 0)
        (void)execv(path, (char *const *)arguments);
    _exit(126);
}

static inline void slurm_start_munged(struct slurm *slurm)
{
    static const char *const options[] = {
        "--key-file=%s/key", "--socket=%s/munge.socket", "--pid-file=%s/munge.pid",
        "--seed-file=%s/seed", "--log-file=%s/munge.log"};
    const char *arguments[10] = {"munged", "--foreground", "--force"};
    char texts[5][128];

    for (int i = 0; i < 5; i++) {
        size_t place = (size_t)(strstr(options[i], "%s") - options[i]);

        (void)snprintf(texts[i], sizeof texts[i], "%.*s%s%s", (int)place, options[i],
                       slurm->folder, options[i] + place + 2);
        arguments[3 + i] = texts[i];
    }
    slurm_daemon(slurm, arguments);
}

static inline void slurm_start_daemons(struct slurm *slurm)
{
    char config[160];
    const char *const controller[] = {"slurmctld", "-D", "-f", config, NULL};
    char name[32];
    const char *const node[] = {"slurmd", "-D", "-N", name, "-f", config, NULL};

    (void)snprintf(config, sizeof config, "%s", slurm_path(slurm, "slurm.conf"));
    (void)setenv("SLURM_CONF", config, 1);
    slurm_daemon(slurm, controller);
    for (int i = 0; i < SLURM_NODES; i++) {
        (void)snprintf(name, sizeof name, "spool.127.0.0.%d", i + 1);
        assert_int_equal(mkdir(slurm_path(slurm, name), 0755), 0);
        (void)snprintf(name, sizeof name, "127.0.0.%d", i + 1);
        slurm_daemon(slurm, node);
    }
}

static inline bool slurm_runs(const struct slurm *slurm)
{
    for (int i = 0; i < slurm->daemons_count; i++)
        if (waitpid(slurm->daemons[i], NULL, WNOHANG) != 0)
            return false;
    return true;
}

/* Whether all nodes are idle, by `sinfo`. */
static inline bool slurm_is_idle(void)
{
    static struct cli sinfo;
    static const char *const arguments[] = {"sinfo", "-h", "-o", "%D %t", NULL};

    launch_start(&sinfo, arguments);
    return cli_wait(&sinfo) == 0 && strcmp(sinfo.text, "4 idle\n") == 0;
}

/* Wait for its end; false when it does not come. */
static inline bool slurm_ends(pid_t pid)
{
    uint64_t deadline_ms = cli_now_ms() + 5000;

    while (cli_now_ms() < deadline_ms) {
        if (waitpid(pid, NULL, WNOHANG) != 0)
            return true;
        cli_pause();
    }
    return false;
}

/* Steps have processes of their own, which end before their daemons. */
static inline void slurm_stop(struct slurm *slurm)
{
    const struct timespec moment = {0, 50000000};
    uint64_t deadline_ms = cli_now_ms() + 10000;

    while (slurm_runs(slurm) && cli_now_ms() < deadline_ms && !slurm_is_idle())
        (void)nanosleep(&moment, NULL);
    while (slurm->daemons_count > 0) {
        pid_t pid = slurm->daemons[--slurm->daemons_count];

        if (kill(pid, SIGTERM) == 0 && slurm_ends(pid))
            continue;
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
    launch_remove(slurm->folder);
}

static inline void slurm_show_log(const struct slurm *slurm)
{
    static char text[SLURM_TEXT_BYTES];

    cli_read_file(slurm_path(slurm, "log"), text, sizeof text);
    print_message("Slurm does not start here:\n%s\n", text);
}

/* False when it cannot be started on this machine, after having said why. */
static inline bool slurm_start(struct slurm *slurm)
{
    const struct timespec moment = {0, 50000000};
    uint64_t deadline_ms = cli_now_ms() + CLI_SOON_MS;

    *slurm = (struct slurm){.daemons_count = 0};
    (void)snprintf(slurm->folder, sizeof slurm->folder, "/tmp/muster-slurm-XXXXXX");
    assert_non_null(mkdtemp(slurm->folder));
    assert_int_equal(chmod(slurm->folder, 0755), 0);
    assert_int_equal(mkdir(slurm_path(slurm, "state"), 0755), 0);
    slurm_write_key(slurm);
    slurm_write_config(slurm);
    slurm_write_gpus(slurm);
    slurm_start_munged(slurm);
    while (access(slurm_path(slurm, "munge.socket"), F_OK) != 0 && slurm_runs(slurm) &&
           cli_now_ms() < deadline_ms)
        cli_pause();
    slurm_start_daemons(slurm);
    while (slurm_runs(slurm) && cli_now_ms() < deadline_ms) {
        if (slurm_is_idle())
            return true;
        (void)nanosleep(&moment, NULL);
    }
    slurm_show_log(slurm);
    slurm_stop(slurm);
    return false;
}

#endif
