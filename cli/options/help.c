#include "cli/options/flags.h"
#include "cli/output/table.h"
#include "cli/resolve/resolve.h"
#include "cli/service_client.h"
#include "cli/verbs.h"
#include "runtime/base/text.h"

#include <stdio.h>
#include <string.h>

enum { HELP_COLUMN = 26, HELP_WIDTH = 88, CMD_VERB_BYTES = 24 };

/* The main function of a verb: its own, or the one that sends `request` to the chief or
 * to the coordination service. */
#define ALONE(main) main, NULL
#define CHIEF(request) cmd_chief_verb, request
#define SERVICE(request) cmd_service_verb, request

const struct cmd_verb cmd_verbs[] = {
    {"node", CMD_NODE, ALONE(cmd_node), "run one task of a cluster",
     "Plays one task: loads its plugins, connects, and does what the task is there\n"
     "for. A task with a program (the chief's and the evaluator's come from a plugin)\n"
     "runs it; every other task serves until the chief says that the job is done. When\n"
     "the chief's program ends, so does the job. SIGTERM and SIGINT end the task within\n"
     "--grace-ms, a second one at once; a worker first finishes what it has, if it can\n"
     "within half of that, and ends with 0 after SIGTERM if it could. So does SIGQUIT,\n"
     "which writes the stacks of all threads into the log before; SIGHUP opens the file\n"
     "of --log-file again, and reads key and certificates again.\n",
     "  TF_CONFIG='{\"cluster\": {\"chief\": [\"a:4000\"], \"worker\": [\"b:4000\"]},\n"
     "              \"task\": {\"type\": \"worker\", \"index\": 0}}' \\\n"
     "      muster node --plugin ./digits.so\n"
     "  muster node --cluster @cluster.json --task ps:0 --bind tcp://0.0.0.0:4000\n"
     "  muster node --wait-cluster --bind tcp://10.0.0.7:4000\n",
     NULL},
    {"run", CMD_RUN, ALONE(cmd_run), "start a whole cluster of processes on this machine",
     "Starts one `muster node` for each task, with free addresses and TF_CONFIG set,\n"
     "and shows what they print, each line behind the name of its task. Ends when the\n"
     "chief ends, with the chief's exit code, or on Ctrl-C (a second one kills at\n"
     "once). No process stays behind, however it ends. Flags of `muster node` are\n"
     "passed on.\n",
     "  muster run --workers 3 --ps 2 --plugin ./digits.so --set epochs=5\n"
     "  muster run --workers 4 --restart worker=on-failure --status-file tasks.json\n",
     NULL},
    {"status", CMD_STATUS, ALONE(cmd_status),
     "show tasks, closures and metrics of a cluster",
     "Prints the tasks, closures, what is in flight, the variables and the metrics, as\n"
     "the chief knows them. With --cluster or TF_CONFIG it also names the tasks that\n"
     "are missing. --watch goes on, and prints it anew each second, until Ctrl-C or the\n"
     "chief is gone.\n",
     "  muster status --address tcp://127.0.0.1:4000\n"
     "  muster status --address tcp://127.0.0.1:4000 --watch\n"
     "  muster status --cluster @cluster.json -o json\n",
     NULL},
    {"explain", CMD_EXPLAIN, CHIEF(cmd_explain), "explain why a closure has not run",
     "Says where a closure is, how often it was run, what went wrong, and what it waits\n"
     "for. CLOSURE is its number, as the status, the log and errors show it, or its\n"
     "name. Of a closure that is resolved the chief knows nothing any more, unless it\n"
     "is a named one in its journal.\n",
     "  muster explain 4294967298 --address tcp://127.0.0.1:4000\n"
     "  muster explain epoch-7 --cluster @cluster.json -o json\n",
     "CLOSURE"},
    {"vars", CMD_VARS, CHIEF(cmd_vars), "list the variables, and which servers have them",
     "Prints name, dtype, shape, shards, bytes and version of each variable, and for\n"
     "each shard its partition, with the parameter servers that are its primary (who\n"
     "answers), its backup and its learner (who is being filled). --partitions prints\n"
     "that of all partitions.\n",
     "  muster vars --address tcp://127.0.0.1:4000\n"
     "  muster vars --partitions --cluster @cluster.json -o json\n",
     NULL},
    {"vars show", CMD_VARS_SHOW, CHIEF(cmd_vars_show), "show one variable or table",
     "Prints what the servers say of NAME: dtype, shape, optimizer, bytes, counts of\n"
     "reads and writes, and its shards with their servers; of a table its rows, what it\n"
     "was made with, and how many gradients were dropped or refused and how many rows\n"
     "have expired or were evicted.\n",
     "  muster vars show weights --address tcp://127.0.0.1:4000\n"
     "  muster vars show emb --cluster @cluster.json -o json\n",
     "NAME"},
    {"vars dump", CMD_VARS_DUMP, CHIEF(cmd_vars_dump),
     "print rows of a variable or a table",
     "Prints a line for each row: its number, or of a table its id, a tab, and its\n"
     "numbers, which read back as the same; with -o json an object for each. An id\n"
     "without a row has its initial row. The servers' addresses are those of the\n"
     "cluster, or those that the chief knows.\n",
     "  muster vars dump weights --rows 10:20 --address tcp://127.0.0.1:4000\n"
     "  muster vars dump emb --ids 7,12 --cluster @cluster.json -o json\n"
     "  muster vars dump emb --limit 0 --cluster @cluster.json >rows.tsv\n",
     "NAME"},
    {"vars export", CMD_VARS_EXPORT, CHIEF(cmd_vars_export),
     "write variables and tables to a safetensors file",
     "Writes FILE anew, which safetensors and what builds on it reads: a tensor for\n"
     "each variable; for a table its rows, and beside them their ids and numbers of\n"
     "pushes, \"emb#ids\" and \"emb#pushes\"; and what optimizers keep, as in\n"
     "checkpoints. With a NAME only that. Each partition is as it was at one moment.\n",
     "  muster vars export model.safetensors --address tcp://127.0.0.1:4000\n"
     "  muster vars export emb.safetensors emb --cluster @cluster.json\n",
     "FILE [NAME]"},
    {"drain", CMD_DRAIN, CHIEF(cmd_drain),
     "have a worker finish and leave, or a parameter server give away what it has",
     "The chief gives a worker (\"worker:1\" or \"/job:worker/task:1\") nothing more.\n"
     "Once it has finished what it has, its process ends with exit code 0, and so does\n"
     "this one, which waits for that. At --timeout-ms or on Ctrl-C the waiting ends; "
     "the\n"
     "worker leaves all the same, and draining it again waits for it again.\n"
     "A parameter server (\"ps:1\") gives its partitions to the others, and gets no\n"
     "more until it is started anew; its process goes on, until it is stopped.\n",
     "  muster drain worker:1 --address tcp://127.0.0.1:4000\n"
     "  muster drain worker:1 --cluster @cluster.json --timeout-ms 60000\n"
     "  muster drain ps:1 --cluster @cluster.json && muster stop ps:1 --cluster "
     "@cluster.json\n",
     "TASK"},
    {"stop", CMD_STOP, ALONE(cmd_stop), "stop a task as if its job was done",
     "The TASK (\"ps:0\" or \"/job:ps/task:0\") ends with exit code 0 and has REASON in\n"
     "its log; a worker finishes what it has before, for half of --timeout-ms if that "
     "is\n"
     "given. The chief passes it on; in a cluster without one the task itself is asked.\n"
     "The chief is not stopped like this, and a task that runs a program of its own\n"
     "ends when that does.\n",
     "  muster stop ps:1 --address tcp://127.0.0.1:4000\n"
     "  muster stop worker:0 \"too many\" --cluster @cluster.json -o json\n",
     "TASK [REASON]"},
    {"assign", CMD_ASSIGN, ALONE(cmd_assign), "send waiting tasks their cluster spec",
     "Tells the cluster to its tasks, or those of --tasks, each of which waits at its\n"
     "address there (`muster node --wait-cluster --bind URL`). Who has it already, as\n"
     "the same task, is fine. Waits for those that are not there yet, for "
     "--timeout-ms.\n",
     "  muster assign --cluster @cluster.json\n"
     "  muster assign --tasks worker:0-3 --cluster @cluster.json --timeout-ms 60000\n",
     NULL},
    {"kv get", CMD_KV_GET, SERVICE(cmd_kv_get),
     "print the value of a key, or of all below a prefix",
     "Prints the bytes of the key's value as they are. With --wait it waits until the\n"
     "key is there, else a key that is not there gives exit code 1. A KEY that ends\n"
     "with \"/\", or --prefix: a line for each key below it, the key, a tab, and the\n"
     "value, in which a backslash, line ends, tabs and other bytes that do not print\n"
     "are \\\\, \\n, \\t, \\xHH: as printf %b reads them. \"/\" is everything.\n",
     "  muster kv get config/rate --address tcp://127.0.0.1:4000\n"
     "  muster kv get config/ --cluster @cluster.json\n"
     "  muster kv get model/ready --wait --timeout-ms 60000 --cluster @cluster.json\n",
     "KEY"},
    {"kv put", CMD_KV_PUT, SERVICE(cmd_kv_put), "set the value of a key",
     "Prints the key's new revision. VALUE \"-\" reads standard input, up to 1 MiB; one\n"
     "that begins like a flag stands behind \"--\". With --if-absent, --if-revision or\n"
     "--if-value nothing is changed, and the exit code is 6, unless the key is as they\n"
     "say.\n",
     "  muster kv put config/rate 0.1 --address tcp://127.0.0.1:4000\n"
     "  muster kv put model/weights - --if-absent --cluster @cluster.json <weights.bin\n"
     "  muster kv put leader b --if-value a --cluster @cluster.json\n",
     "KEY VALUE"},
    {"kv txn", CMD_KV_TXN, SERVICE(cmd_kv_txn), "change several keys in one transaction",
     "Reads a transaction from standard input, a line for each part:\n"
     "\n"
     "  if KEY absent | if KEY present | if KEY revision N | if KEY value VALUE\n"
     "  put KEY VALUE\n"
     "  incr KEY [BY]\n"
     "  rm KEY                   it and all below it\n"
     "\n"
     "All changes are made at one moment if everything behind \"if\" holds; else\n"
     "nothing is changed, and the exit code is 6. KEY is one word, VALUE the rest of\n"
     "the line; one that begins with a quotation mark is a string as in JSON. Empty\n"
     "lines and those that begin with \"#\" are skipped. Prints the revision of the\n"
     "last change, and behind it, when there is an incr, the sum of the first one.\n",
     "  printf '%s\\n' 'if job/owner value a' 'put job/owner b' 'incr job/moves' |\n"
     "      muster kv txn --address tcp://127.0.0.1:4000\n",
     NULL},
    {"kv watch", CMD_KV_WATCH, SERVICE(cmd_kv_watch),
     "print each change of a key, or below a prefix",
     "Prints what is there, then \"synced\", and then each change as it comes, until\n"
     "--count of them were printed after that, or Ctrl-C. KEY is that key alone, and\n"
     "not what is below it; one that ends with \"/\", or --prefix: all below it, and\n"
     "not the key itself. \"/\" is everything.\n",
     "  muster kv watch config/ --address tcp://127.0.0.1:4000\n"
     "  muster kv watch model/ready --count 1 -o json --cluster @cluster.json\n",
     "KEY"},
    {"kv ls", CMD_KV_LS, SERVICE(cmd_kv_ls), "list the keys below a prefix",
     "Prints the keys below DIRECTORY, or all of them, in order.\n",
     "  muster kv ls config -l --address tcp://127.0.0.1:4000\n"
     "  muster kv ls -o json --cluster @cluster.json\n",
     "[DIRECTORY]"},
    {"kv rm", CMD_KV_RM, SERVICE(cmd_kv_rm), "delete a key and all below it",
     "Prints how many keys there were. With --if-revision or --if-value nothing is\n"
     "deleted, and the exit code is 6, unless the key is as they say.\n",
     "  muster kv rm config --address tcp://127.0.0.1:4000\n"
     "  muster kv rm leader --if-value \"$HOSTNAME\" --cluster @cluster.json\n",
     "KEY"},
    {"kv incr", CMD_KV_INCR, SERVICE(cmd_kv_incr), "add to a numeric key",
     "Prints the sum. BY is 1 unless it is given, and may be below 0; a key that is not\n"
     "there counts as 0.\n",
     "  muster kv incr epochs --address tcp://127.0.0.1:4000\n"
     "  muster kv incr credit -5 --cluster @cluster.json\n",
     "KEY [BY]"},
    {"kv hold", CMD_KV_HOLD, SERVICE(cmd_kv_hold), "set a key as long as a command runs",
     "Puts the key as a lease, runs the command, and deletes the key when that has\n"
     "ended; it goes, too, when this process or its machine dies. Without a command it\n"
     "prints the revision, and holds the key until Ctrl-C. Conditions are as of `kv\n"
     "put`. When the key is lost meanwhile, the command is told to end (SIGTERM, after\n"
     "5 s SIGKILL) and the exit code is 1; else it is the command's.\n",
     "  muster kv hold servers/$HOSTNAME up --cluster @cluster.json -- ./serve\n",
     "KEY VALUE [-- COMMAND [ARGUMENT...]]"},
    {"lock", CMD_LOCK, SERVICE(cmd_lock), "hold a lock while a command runs",
     "Waits until it holds the lock NAME, first come, first served, runs the command,\n"
     "and releases the lock when that has ended, or when this process or its machine\n"
     "dies. Without a command it prints the lock's number, and holds it until Ctrl-C.\n"
     "The command finds the number, which is larger each time, in MUSTER_LOCK_NUMBER,\n"
     "and the lock's key, which has it as its revision, in MUSTER_LOCK_KEY. A lock that\n"
     "is not free within --timeout-ms gives exit code 4, and says who holds it. When it\n"
     "is lost meanwhile (this process stood still or was cut off for some seconds, or\n"
     "its key was deleted), the command is told to end as soon as this process hears\n"
     "of it (SIGTERM, after 5 s SIGKILL), and the exit code is 1; else it is the\n"
     "command's.\n",
     "  muster lock deploy --address tcp://127.0.0.1:4000 -- ./deploy.sh --fast\n"
     "  muster lock deploy --timeout-ms 1000 --cluster @cluster.json -- true\n",
     "NAME [-- COMMAND [ARGUMENT...]]"},
    {"barrier", CMD_BARRIER, ALONE(cmd_barrier), "wait at a barrier for a set of tasks",
     "Takes part in a barrier as a client: --tasks says whose barrier it is, with this\n"
     "process among them, which --as names when they have several clients. So scripts\n"
     "wait for each other, and for programs that wait at a barrier of the same name\n"
     "with the same tasks.\n",
     "  muster barrier copied --tasks client:0-1 --as client:0 --cluster @cluster.json\n"
     "  muster barrier go --tasks client:0,worker:0-3 --address tcp://127.0.0.1:4000\n",
     "NAME"},
    {"tasks", CMD_TASKS, SERVICE(cmd_tasks),
     "show the tasks that the coordination service knows",
     "Prints the state of each task. The exit code is 0 when all of --tasks (without\n"
     "it: all tasks that barriers wait for) are connected, else 1. --wait waits for\n"
     "that; --watch goes on and prints a line for each change, until Ctrl-C.\n",
     "  muster tasks --address tcp://127.0.0.1:4000\n"
     "  muster tasks --tasks worker:0-3 --wait --timeout-ms 60000 --cluster @cluster.json"
     "\n",
     NULL},
    {"actors call", CMD_ACTORS_CALL, SERVICE(cmd_actors_call),
     "call a method of an actor that has a name",
     "Prints what METHOD of the actor NAME answers, as JSON. Its argument is the value\n"
     "of JSON, without it nil; whole numbers are ints. The call waits for the actor up\n"
     "to --timeout-ms. An error says who it is from, and whether the method ran: exit\n"
     "code 1, or 4 when there was no answer in time.\n",
     "  muster actors call total add 5 --cluster @cluster.json\n"
     "  muster actors call total rows '{\"from\": 3}' --address tcp://127.0.0.1:4000\n",
     "NAME METHOD [JSON]"},
    {"actors explain", CMD_ACTORS_LOOK, SERVICE(cmd_actors_explain),
     "show what an actor waits for, and who for it",
     "Prints how many messages wait for the actor NAME, which answers it has put off,\n"
     "the calls that it waits for, and the same of the actor that the oldest of these\n"
     "is to, and so on: who waits for whom, as a chain.\n",
     "  muster actors explain total --cluster @cluster.json\n", "NAME"},
    {"actors state", CMD_ACTORS_LOOK, SERVICE(cmd_actors_state),
     "show the state of an actor",
     "Prints what `save` of the actor NAME gives, as JSON, once it has handled what\n"
     "waits for it. Exit code 1: its type has no `save`.\n",
     "  muster actors state total --cluster @cluster.json\n", "NAME"},
    {"actors stop", CMD_ACTORS_STOP, SERVICE(cmd_actors_stop),
     "stop an actor that has a name, and forget the name",
     "The actor handles what waits for it, and ends; it is not started again. This\n"
     "waits for that, up to --timeout-ms.\n",
     "  muster actors stop total --address tcp://127.0.0.1:4000\n", "NAME"},
    {"actors", CMD_ACTORS, SERVICE(cmd_actors), "list the actors that have names",
     "Prints the name, type, task, state, epoch, restarts and mailbox of each actor\n"
     "that has a name, and under the table the last error of each. --type lists one\n"
     "type.\n",
     "  muster actors --address tcp://127.0.0.1:4000\n"
     "  muster actors --type counter --cluster @cluster.json -o json\n",
     NULL},
    {"task report", CMD_TASK_REPORT, SERVICE(cmd_task_report),
     "report an error of a task",
     "The TASK (\"worker:1\") is in error from now on, as if it had said that itself:\n"
     "barriers that need it fail, and unless its type is recoverable, so do others.\n",
     "  muster task report worker:1 \"a bad disk\" --address tcp://127.0.0.1:4000\n"
     "  muster task report worker:1 --code DATALOSS --cluster @cluster.json\n",
     "TASK [MESSAGE]"},
    {"task reset", CMD_TASK_RESET, SERVICE(cmd_task_reset), "clear the error of a task",
     "A TASK that is in error, by its own failure or another one's, is not any more: it\n"
     "registers again, or one that is started in its place may.\n",
     "  muster task reset worker:1 --address tcp://127.0.0.1:4000\n", "TASK"},
    {"devices", CMD_DEVICES, SERVICE(cmd_devices),
     "show hosts, cores, memory and accelerators of tasks",
     "Prints host, cores, memory, GPUs and TPUs of each task that is connected.\n",
     "  muster devices --address tcp://127.0.0.1:4000\n", NULL},
    {"preempt", CMD_PREEMPT, SERVICE(cmd_preempt),
     "give notice: all tasks agree on a step to stop at",
     "Gives notice that a machine will be preempted in --grace-ms. Prints the step that "
     "the\n"
     "programs stop at: one more than the largest that any of them has reached.\n",
     "  muster preempt \"rack 7 is moved\" --grace-ms 30000 --cluster @cluster.json\n",
     "REASON"},
    {"store ls", CMD_STORE_LS, ALONE(cmd_store_ls), "show the runs of the job in a store",
     "Asks the coordination service for the runs of its job: when each began, how it\n"
     "ended, and what the present one holds. With --store it reads the store itself,\n"
     "while nobody hosts it.\n",
     "  muster store ls --address tcp://127.0.0.1:4000\n"
     "  muster store ls --store journal:/var/lib/job/store -o json\n",
     NULL},
    {"store clear", CMD_STORE_CLEAR, ALONE(cmd_store_clear), "delete runs from a store",
     "Forgets what the flags say, without one the runs before the present one, and\n"
     "prints how much that was. Keys of programs stay, but for --keys. With --store it\n"
     "works on the store itself, while nobody hosts it.\n",
     "  muster store clear --run run-7 --address tcp://127.0.0.1:4000\n"
     "  muster store clear --ended --present --store etcd:http://10.0.0.1:2379\n",
     NULL},
    {"resolve", CMD_RESOLVE, ALONE(cmd_resolve),
     "show the cluster and task that the resolver finds",
     "Asks the resolver for the cluster, and which task of it this is, and prints that.\n"
     "--explain says which sources were tried, what they were asked, and with what\n"
     "result. -o TF_CONFIG prints one line to export. --watch goes on, and prints each\n"
     "change, until Ctrl-C. What is tried again is said on standard error.\n",
     "  muster resolve --explain\n"
     "  muster resolve --resolver slurm --resolver-set jobs=ps=2,worker=* -o json\n"
     "  export TF_CONFIG=\"$(muster resolve -o TF_CONFIG)\"\n"
     "  muster resolve --list\n",
     NULL},
    {"check", CMD_CHECK, ALONE(cmd_check),
     "diagnose a cluster: its spec, addresses and links",
     "Says all that is wrong or strange about a configuration, what each task does and\n"
     "whom it dials; then tries each address from here: does its name resolve, does\n"
     "something answer, is it muster, is it the right task of the right cluster? Those\n"
     "that answer are asked whom they reach. A running cluster is not disturbed. The\n"
     "exit code is 0 only if all is well: 2 when the configuration is wrong, 4 when a\n"
     "task does not answer, 1 for the rest.\n",
     "  muster check --cluster @cluster.json\n"
     "  muster check --cluster @cluster.json --task worker:1 --wait-ms 1000 -o json\n"
     "  muster check --resolver dns --resolver-set names=worker=muster.local:4000\n",
     NULL},
    {"key new", CMD_KEY, ALONE(cmd_key_new), "make a key for a cluster",
     "Writes 32 random bytes to FILE (default: --key-file), which nobody else may read.\n"
     "All nodes of a cluster that have this file, and --key-file or MUSTER_KEY_FILE,\n"
     "speak TLS with each other, and with nobody else. A file that is there already is\n"
     "not overwritten.\n",
     "  muster key new cluster.key\n"
     "  MUSTER_KEY_FILE=cluster.key muster node --cluster @cluster.json --task chief:0\n",
     "[FILE]"},
    {"key derive", CMD_KEY, ALONE(cmd_key_derive), "make a key for one right",
     "Makes of the cluster's key, --key-file, a key that proves one RIGHT, each with\n"
     "those before it: observe (status, explain, reading keys), use (schedule, "
     "variables,\n"
     "keys), operate (drain, stop, preempt, forgetting runs), task (be a task of the\n"
     "cluster). Nobody can make the cluster's key, or one of a higher right, of it. It\n"
     "is written to FILE, or else printed; a client uses it as its --key-file.\n",
     "  muster key derive observe watcher.key --key-file cluster.key\n"
     "  muster status --address tcp://10.0.0.7:4000 --key-file watcher.key\n",
     "RIGHT [FILE]"},
    {"key show", CMD_KEY, ALONE(cmd_key_show), "show a key's right and fingerprint",
     "Prints the right and the fingerprint of the key in FILE (default: --key-file), "
     "and\n"
     "nothing of its bytes. Nodes of one cluster have keys of one fingerprint.\n",
     "  muster key show cluster.key\n"
     "  muster key show watcher.key -o json\n",
     "[FILE]"},
    {"journal check", CMD_JOURNAL_CHECK, ALONE(cmd_journal_check), "verify a journal",
     "FILE is the journal of a chief (--journal) or of the coordination service\n"
     "(--store journal:FILE). Prints its records, and each place where it is damaged:\n"
     "which record, which bytes, what was expected. A torn end, which a crash in the\n"
     "middle of a write leaves, is no damage: the next start cuts it off. Nothing is\n"
     "changed. The exit code is 0 when the file is whole, and 1 when it is damaged or\n"
     "no journal.\n",
     "  muster journal check chief.journal\n"
     "  muster journal check keys.journal -o json\n",
     "FILE"},
    {"journal repair", CMD_JOURNAL_REPAIR, ALONE(cmd_journal_repair),
     "rewrite a damaged journal from its whole records",
     "Copies FILE to FILE.damaged-TIME, and then writes a journal of all its whole\n"
     "records in its place. Says what is lost. Where nothing is damaged nothing is\n"
     "changed. Not while a node has the file open. What the lost records said is not\n"
     "known: closures may run again, and keys may have former values.\n",
     "  muster journal repair chief.journal\n"
     "  muster journal repair keys.journal -o json\n",
     "FILE"},
    {"version", CMD_VERSION, ALONE(cmd_version), "print the version",
     "Prints the version of muster.\n", "  muster version -o json\n", NULL},
    {0},
};

static const struct cmd_verb *find_verb(const char *name)
{
    for (const struct cmd_verb *verb = cmd_verbs; verb->name != NULL; verb++)
        if (strcmp(verb->name, name) == 0)
            return verb;
    return NULL;
}

const struct cmd_verb *cmd_verb_find(char *const *arguments, int *ret_words)
{
    char both[CMD_VERB_BYTES] = "";
    const struct cmd_verb *verb;

    if (arguments[0] == NULL)
        return NULL;
    if (arguments[1] != NULL)
        (void)snprintf(both, sizeof both, "%s %s", arguments[0], arguments[1]);
    verb = find_verb(both);
    *ret_words = verb == NULL ? 1 : 2;
    return verb == NULL ? find_verb(arguments[0]) : verb;
}

/* Whether a verb is "kv get" for the word "kv", or has this name. */
static bool is_verb_of_group(const struct cmd_verb *verb, const char *word, size_t length)
{
    return strncmp(verb->name, word, length) == 0 &&
           (verb->name[length] == ' ' || verb->name[length] == '\0');
}

bool cmd_verb_begins(const char *word)
{
    for (const struct cmd_verb *verb = cmd_verbs; verb->name != NULL; verb++)
        if (is_verb_of_group(verb, word, strlen(word)))
            return true;
    return false;
}

static const struct {
    const char *code;
    const char *words;
} exit_codes[] = {
    {"0", "all is well: the job ended well, or what was asked was done"},
    {"1", "the job or its program failed, or what was asked for failed or is not there"},
    {"2", "usage or configuration: a flag, a variable, the cluster, a plugin"},
    {"3", "the task's address or its journal: in use, or not permitted"},
    {"4", "a task that was needed was not reached, or did not do its part, in time"},
    {"5", "a function or program did not end within --grace-ms at shutdown"},
    {"6", "a comparison did not hold (`kv put --if-...`, `kv txn`): nothing was changed"},
    {"128 + n", "ended by signal n: 130 after SIGINT, 143 after SIGTERM (0 if it found "
                "the task able to end in order), 137 SIGKILL"},
};

void cmd_verb_words(const char **ret_words)
{
    for (const struct cmd_verb *verb = cmd_verbs; verb->name != NULL; verb++)
        *ret_words++ = verb->name;
    *ret_words = NULL;
}

/* ---- similar words ---- */

const char *cmd_nearest(const char *word, const char *const *words)
{
    const char *best = NULL;
    unsigned best_distance = strlen(word) < 5 ? 2 : 3;

    for (; *words != NULL; words++) {
        unsigned d = mu__text_distance(word, *words);

        if (strlen(word) >= 3 && strncmp(word, *words, strlen(word)) == 0)
            d = 1;
        if (d < best_distance) {
            best = *words;
            best_distance = d;
        }
    }
    return best;
}

/* ---- help ---- */

/* Print words from `column` on, in lines of at most HELP_WIDTH. */
static void print_wrapped(const char *text, int column)
{
    int at = column;

    while (*text != '\0') {
        int length = (int)strcspn(text, " ");

        if (at > column && at + length >= HELP_WIDTH) {
            (void)printf("\n%*s", column, "");
            at = column;
        }
        (void)printf("%s%.*s", at > column ? " " : "", length, text);
        at += length + (at > column);
        text += length;
        text += strspn(text, " ");
    }
    (void)printf("\n");
}

static void print_flag(enum cmd_flag flag)
{
    const struct cmd_flag_spec *spec = &cmd_flags[flag];
    char number[CMD_INITIAL_BYTES];
    const char *initial = cmd_initial(flag, number, sizeof number);
    char letter[8] = "";
    char head[64];
    char text[400];
    int used;

    if (spec->letter != 0)
        (void)snprintf(letter, sizeof letter, "-%c, ", spec->letter);
    used = snprintf(head, sizeof head, "  %s--%s%s%s", letter, cmd_flag_name(flag),
                    spec->kind == CMD_SWITCH ? "" : " ",
                    spec->kind == CMD_SWITCH ? "" : cmd_flag_word(flag));
    if (used < HELP_COLUMN - 1)
        (void)printf("%-*s", HELP_COLUMN, head);
    else
        (void)printf("%s\n%*s", head, HELP_COLUMN, "");
    (void)snprintf(text, sizeof text, "%s%s%s (%s%s%s)",
                   spec->kind == CMD_CHOICE ? spec->choices : "",
                   spec->kind == CMD_CHOICE ? ": " : "", spec->help, cmd_variable(flag),
                   initial[0] == '\0' ? "" : "; default ", initial);
    print_wrapped(text, HELP_COLUMN);
}

/* The verbs that begin with a word, but for that one itself, if there are any. */
static void list_group(const char *head, const char *word)
{
    for (const struct cmd_verb *verb = cmd_verbs; verb->name != NULL; verb++) {
        if (!is_verb_of_group(verb, word, strlen(word)) || strcmp(verb->name, word) == 0)
            continue;
        (void)printf("%s  %-16s%s\n", head, verb->name, verb->summary);
        head = "";
    }
}

static void help_verb(const struct cmd_verb *verb)
{
    (void)printf("muster %s: %s\n\n  muster %s%s%s [flags]\n\n%s\n"
                 "flags, with their variables:\n",
                 verb->name, verb->summary, verb->name, verb->operands == NULL ? "" : " ",
                 verb->operands == NULL ? "" : verb->operands, verb->text);
    for (int flag = 0; flag < CMD_FLAGS_COUNT; flag++)
        if ((cmd_flags[flag].verbs & verb->bit) != 0)
            print_flag((enum cmd_flag)flag);
    (void)printf("\nThe command line wins over variables, which win over TF_CONFIG.\n");
    list_group("\nmore verbs:\n", verb->name);
    (void)printf("\nexamples:\n%s", verb->examples);
}

static void help_overview(void)
{
    (void)printf("muster: runs functions on a cluster of tasks\n\n"
                 "  muster VERB [flags]\n\nverbs:\n");
    for (const struct cmd_verb *verb = cmd_verbs; verb->name != NULL; verb++)
        (void)printf("  %-16s%s\n", verb->name, verb->summary);
    (void)printf(
        "\n  muster VERB --help        flags and examples of a verb\n"
        "  muster help examples      examples of all verbs\n"
        "  muster help TOPIC         flags (all, as a table), exit-codes, resolvers\n");
}

static void help_examples(void)
{
    for (const struct cmd_verb *verb = cmd_verbs; verb->name != NULL; verb++)
        (void)printf("%smuster %s: %s\n%s", verb == cmd_verbs ? "" : "\n", verb->name,
                     verb->summary, verb->examples);
}

static void help_group(const char *word)
{
    (void)printf("muster %s: its verbs\n\n", word);
    list_group("", word);
    (void)printf("\n  muster VERB --help        flags and examples of a verb\n"
                 "\nexamples:\n");
    for (const struct cmd_verb *verb = cmd_verbs; verb->name != NULL; verb++)
        if (is_verb_of_group(verb, word, strlen(word)))
            (void)printf("%s", verb->examples);
}

static void help_exit_codes(void)
{
    (void)printf("| code    | meaning |\n| ------- | ------- |\n");
    for (size_t i = 0; i < sizeof exit_codes / sizeof exit_codes[0]; i++)
        (void)printf("| %-7s | %s |\n", exit_codes[i].code, exit_codes[i].words);
}

/* Whether all verbs of a verb's group have a flag. */
static bool has_group_flag(const struct cmd_flag_spec *spec, const char *name,
                           size_t length)
{
    for (const struct cmd_verb *verb = cmd_verbs; verb->name != NULL; verb++)
        if (is_verb_of_group(verb, name, length) && (spec->verbs & verb->bit) == 0)
            return false;
    return true;
}

/* Print the verbs that have a flag; a group whose verbs all have it by its first word. */
static void print_users(const struct cmd_flag_spec *spec)
{
    const char *comma = "";

    for (const struct cmd_verb *verb = cmd_verbs; verb->name != NULL; verb++) {
        size_t length = strcspn(verb->name, " ");
        bool is_whole = has_group_flag(spec, verb->name, length);

        if ((spec->verbs & verb->bit) == 0 ||
            (is_whole && verb > cmd_verbs &&
             is_verb_of_group(verb - 1, verb->name, length)))
            continue;
        (void)printf("%s%.*s%s", comma, is_whole ? (int)length : (int)strlen(verb->name),
                     verb->name, is_whole || verb->name[length] == ' ' ? "" : " alone");
        comma = ", ";
    }
}

static void help_flags(void)
{
    (void)printf("| flag | variable | default | verbs | meaning |\n"
                 "| ---- | -------- | ------- | ----- | ------- |\n");
    for (int flag = 0; flag < CMD_FLAGS_COUNT; flag++) {
        const struct cmd_flag_spec *spec = &cmd_flags[flag];
        char number[CMD_INITIAL_BYTES];

        (void)printf("| `--%s%s", cmd_flag_name((enum cmd_flag)flag),
                     spec->kind == CMD_SWITCH ? "" : " ");
        if (spec->kind != CMD_SWITCH)
            cmd_print_cell(spec->kind == CMD_CHOICE ? spec->choices
                                                    : cmd_flag_word((enum cmd_flag)flag));
        (void)printf("` | `%s` | %s | ", cmd_variable((enum cmd_flag)flag),
                     cmd_initial((enum cmd_flag)flag, number, sizeof number));
        print_users(spec);
        (void)printf(" | ");
        cmd_print_cell(spec->help);
        (void)printf(" |\n");
    }
}

/* Print a table that the documents contain, too, or the examples. */
static bool help_table(const char *topic)
{
    static const struct {
        const char *topic;
        void (*print)(void);
    } tables[] = {
        {"examples", help_examples},
        {"exit-codes", help_exit_codes},
        {"flags", help_flags},
        {"resolvers", resolve_help},
    };

    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (strcmp(topic, tables[i].topic) == 0) {
            tables[i].print();
            return true;
        }
    return false;
}

int cmd_help(const char *topic)
{
    const char *topics[CMD_WORDS_MAX + 1] = {"examples", "exit-codes", "flags",
                                             "resolvers"};
    const char *near;

    if (topic == NULL) {
        help_overview();
        return CMD_FINE;
    }
    if (find_verb(topic) != NULL) {
        help_verb(find_verb(topic));
        return CMD_FINE;
    }
    if (cmd_verb_begins(topic)) {
        help_group(topic);
        return CMD_FINE;
    }
    if (help_table(topic))
        return CMD_FINE;
    cmd_verb_words(topics + 4);
    near = cmd_nearest(topic, topics);
    (void)fprintf(stderr, "muster help: no topic \"%.40s\"%s%s%s\n", topic,
                  near == NULL ? "" : "; did you mean ", near == NULL ? "" : near,
                  near == NULL ? "" : "?");
    return CMD_USAGE;
}
