/* What somebody sees who reads along on the network: of a cluster with a key the name of
 * the key, and nothing of what its members say to each other; of an insecure one all. */
#define _GNU_SOURCE /* memmem */
#include "tests/real/launch.h"
#include "tests/real/nodes.h"

#include <sys/stat.h>

/* Capturing needs one of these, and the right to. */
enum { PROGRAM_TCPDUMP, PROGRAM_DUMPCAP, PROGRAMS };

static const char argument[] = "argument of a closure 5309";
static const char function_name[] = "function_5309";
static const char content[] = "content of a variable 5309";
static const char variable_name[] = "variable_5309";
static const char key_name[] = "key_5309";
static const char key_value[] = "value of a key 5309";

static const char *const secrets[] = {argument,      function_name, content,
                                      variable_name, key_name,      key_value};

struct capture {
    struct cli program;
    char folder[64];
    char file[96];
    int port; /* one of the cluster's */
    uint8_t *bytes;
    size_t size;
};

/* ---- reading along ---- */

/* "port 1 or port 2": those of the cluster. */
static void write_filter(const char *json, char *filter, size_t size)
{
    size_t at = 0;

    while ((json = strstr(json, "127.0.0.1:")) != NULL) {
        json += strlen("127.0.0.1:");
        at +=
            (size_t)snprintf(filter + at, size - at, "%sport %.*s", at == 0 ? "" : " or ",
                             (int)strspn(json, "0123456789"), json);
        assert_true(at < size);
    }
}

static int which_program(void)
{
    if (needs_programs("tcpdump", NULL) == NULL)
        return PROGRAM_TCPDUMP;
    return needs_programs("dumpcap", NULL) == NULL ? PROGRAM_DUMPCAP : PROGRAMS;
}

static bool has(const struct capture *capture, const char *text)
{
    return capture->bytes != NULL &&
           memmem(capture->bytes, capture->size, text, strlen(text)) != NULL;
}

/* What is in the file by now. */
static void read_capture(struct capture *capture)
{
    struct stat status;
    FILE *file = fopen(capture->file, "rb");

    free(capture->bytes);
    capture->bytes = NULL;
    capture->size = 0;
    if (file == NULL)
        return;
    assert_int_equal(fstat(fileno(file), &status), 0);
    capture->bytes = malloc((size_t)status.st_size + 1);
    assert_non_null(capture->bytes);
    capture->size = fread(capture->bytes, 1, (size_t)status.st_size, file);
    (void)fclose(file);
}

/* Say a word to one of the cluster's ports, where nobody hears it, until it is in the
 * file: then all that was said before is, too. False: it never comes. */
static bool mark(struct capture *capture, int port, const char *word)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    bool is_there = false;

    assert_true(fd >= 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < SOON_MS / 20 && !is_there; i++) {
        (void)sendto(fd, word, strlen(word), 0, (struct sockaddr *)&address,
                     sizeof address);
        for (int k = 0; k < 20; k++)
            nodes_pause();
        read_capture(capture);
        is_there = has(capture, word);
        if (waitpid(capture->program.pid, NULL, WNOHANG) != 0)
            break; /* it has ended by itself */
    }
    (void)close(fd);
    return is_there;
}

/* False: that is not permitted here. */
static bool begin_capture(struct capture *capture, const char *json)
{
    char filter[512];
    const char *const arguments[PROGRAMS][12] = {
        {"tcpdump", "-i", "lo", "-U", "-Z", "root", "-w", capture->file, filter, NULL},
        {"dumpcap", "-i", "lo", "-P", "-q", "-w", capture->file, "-f", filter, NULL},
    };

    cli_folder(capture->folder, sizeof capture->folder);
    (void)snprintf(capture->file, sizeof capture->file, "%s/pcap", capture->folder);
    write_filter(json, filter, sizeof filter);
    capture->port = atoi(strstr(filter, "port ") + 5);
    launch_start(&capture->program, arguments[which_program()]);
    return mark(capture, capture->port, "here it begins 5309");
}

static void end_capture(struct capture *capture)
{
    assert_true(mark(capture, capture->port, "that was all 5309"));
    cli_kill(&capture->program, SIGINT);
    (void)cli_wait(&capture->program);
    assert_int_equal(unlink(capture->file), 0);
    assert_int_equal(rmdir(capture->folder), 0);
}

/* ---- a cluster that does a bit of everything ---- */

static int echo(mu_run *run, void *user)
{
    (void)user;
    mu_run_return(run, mu_value_ref(mu_run_args(run)));
    return 0;
}

static mu_node *open_node(struct nodes *nodes, const char *type, const char *key_file)
{
    mu_node_options options;

    nodes_options(nodes, type, 0, &options);
    options.key_file = key_file;
    return nodes_open_with(nodes, &options);
}

static void run_a_closure(mu_node *chief)
{
    mu_coordinator *coordinator = nodes_coordinator(chief);
    mu_value *args = mu_value_list();
    mu_remote_value *future = NULL;
    mu_error error = {0};

    assert_int_equal(mu_value_append(args, mu_value_string(argument)), 0);
    check(mu_coordinator_schedule(coordinator, function_name, args, SOON_MS, &error,
                                  &future),
          &error);
    mu_value_free(args);
    check(mu_coordinator_join(coordinator, SOON_MS, &error), &error);
    mu_remote_value_free(future);
    mu_coordinator_close(coordinator);
}

static void write_a_variable(mu_node *chief)
{
    const uint64_t dims[] = {sizeof content};
    const mu_variable_spec spec = {
        .name = variable_name, .dtype = MU_U8, .dims = dims, .rank = 1};
    mu_variable *variable = NULL;
    mu_error error = {0};

    check(mu_variable_open(chief, &spec, SOON_MS, &error, &variable), &error);
    check(mu_variable_assign(variable, content, sizeof content, SOON_MS, &error), &error);
    mu_variable_close(variable);
}

static void work(struct nodes *nodes, const char *key_file)
{
    mu_node *chief = open_node(nodes, "chief", key_file);
    mu_node *worker = open_node(nodes, "worker", key_file);
    mu_error error = {0};

    (void)open_node(nodes, "ps", key_file);
    check(mu_node_register_function(worker, function_name, echo, NULL, 0), &error);
    check(mu_node_serve(worker), &error);
    run_a_closure(chief);
    write_a_variable(chief);
    check(mu_agent_register(worker, 1, SOON_MS, &error), &error);
    check(mu_kv_put(worker, key_name, key_value, strlen(key_value), 0, 0, SOON_MS, &error,
                    NULL),
          &error);
}

static void capture_work(struct capture *capture, const char *key_file)
{
    static struct nodes nodes; /* its log is large */

    nodes_init(&nodes, 1, 1);
    nodes.insecure = key_file == NULL;
    if (!begin_capture(capture, nodes.json)) {
        nodes_done(&nodes);
        (void)unlink(capture->file);
        (void)rmdir(capture->folder);
        needs_skip_test("reading along on lo is not permitted");
    }
    work(&nodes, key_file);
    nodes_done(&nodes);
    end_capture(capture);
}

/* ---- tests ---- */

TEST(test_with_a_key)
{
    static const char key[] = "32 bytes of text are a key, too.";
    struct capture capture = {.size = 0};
    char folder[64];
    char path[96];

    cli_folder(folder, sizeof folder);
    (void)snprintf(path, sizeof path, "%s/key", folder);
    cli_write_file(path, key);
    assert_int_equal(chmod(path, 0600), 0);
    capture_work(&capture, path);
    assert_true(has(&capture, "muster cluster "));
    assert_false(has(&capture, key));
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++)
        if (has(&capture, secrets[i]))
            fail_msg("\"%s\" can be read along", secrets[i]);
    free(capture.bytes);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* What shows that the other test would see something. */
TEST(test_insecure)
{
    struct capture capture = {.size = 0};

    capture_work(&capture, NULL);
    assert_false(has(&capture, "muster cluster "));
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++)
        if (!has(&capture, secrets[i]))
            fail_msg("\"%s\" was said, and is not in the capture", secrets[i]);
    free(capture.bytes);
}

int main(void)
{
    if (which_program() == PROGRAMS)
        return needs_skip(needs_programs("tcpdump", NULL));
    return tests_run(NULL, NULL);
}
