/* Host lists against Slurm's own command: `scontrol show hostnames` needs no daemon, and
 * a configuration so that it asks nobody for one. */
#include "tests/real/launch.h"

#include "resolver/spec/host_list.h"

enum { LISTS = 250, LIST_BYTES = 512 };

static struct cli scontrol;
static char folder[64];
static uint64_t seed = 1;

static unsigned draw(unsigned bound)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(seed >> 33) % bound;
}

static int set_up(void **state)
{
    char path[128];

    (void)state;
    cli_folder(folder, sizeof folder);
    (void)snprintf(path, sizeof path, "%s/slurm.conf", folder);
    cli_write_file(path, "ClusterName=test\nSlurmctldHost=localhost(127.0.0.1)\n"
                         "NodeName=n1 NodeAddr=127.0.0.1\nPartitionName=all Nodes=ALL\n");
    return setenv("SLURM_CONF", path, 1);
}

static int clean(void **state)
{
    (void)state;
    launch_remove(folder);
    return 0;
}

/* ---- Lists that both take: nothing behind a bracket but another one ---- */

static void append(char *text, const char *format, unsigned a, unsigned b)
{
    size_t used = strlen(text);

    (void)snprintf(text + used, LIST_BYTES - used, format, a, b);
}

static void append_range(char *text)
{
    static const char *const singles[] = {"%u", "%02u", "%03u", "%05u"};
    static const char *const doubles[] = {"%u-%u", "%02u-%u", "%03u-%03u", "%04u-%u"};
    unsigned low = draw(120);
    unsigned width = draw(4);

    if (draw(2) == 0)
        append(text, singles[width], low, 0);
    else
        append(text, doubles[width], low, low + draw(6));
}

static void append_item(char *text)
{
    static const char *const prefixes[] = {"n", "node-", "r1c", "a.b", "x_", "gpu"};
    unsigned brackets = draw(4);

    append(text, prefixes[draw(6)], 0, 0);
    if (brackets == 0)
        append(text, "%u", draw(100), 0);
    for (unsigned i = 0; i < brackets; i++) {
        append(text, i == 0 ? "[" : "r[", 0, 0);
        append_range(text);
        for (unsigned more = draw(3); more > 0; more--) {
            append(text, ",", 0, 0);
            append_range(text);
        }
        append(text, "]", 0, 0);
    }
}

static char *expand(const char *text)
{
    struct mu__host_list list;
    size_t size = 1;
    mu_error error;
    char *lines;

    if (mu__host_list_parse(text, strlen(text), "LIST", &error, &list) != 0)
        fail_msg("%s: %s", text, error.message);
    for (size_t i = 0; i < list.count; i++)
        size += strlen(list.names[i]) + 1;
    lines = calloc(size, 1);
    assert_non_null(lines);
    for (size_t i = 0, at = 0; i < list.count; i++)
        at += (size_t)snprintf(lines + at, size - at, "%s\n", list.names[i]);
    mu__host_list_done(&list);
    return lines;
}

static bool compare(const char *text)
{
    const char *const arguments[] = {"scontrol", "show", "hostnames", text, NULL};
    char *lines = expand(text);
    bool same;

    launch_start(&scontrol, arguments);
    cli_expect_code(&scontrol, 0);
    same = strcmp(scontrol.text, lines) == 0;
    if (!same)
        print_error("%s:\nscontrol %s\nmuster %s\n", text, scontrol.text, lines);
    free(lines);
    return same;
}

TEST(test_same_as_scontrol)
{
    static const char *const lists[] = {
        "n[1-2],m5,o[3-4,6,7-9]", "n[09-10]",   "n[0001-0003]", "n[01-1]", "n[08-0010]",
        "127.0.0.[1-4]",          "a b\nc , d", "[1-2]"};

    needs_skip_test(needs_programs("scontrol", NULL));
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        assert_true(compare(lists[i]));
    for (int i = 0; i < LISTS; i++) {
        char text[LIST_BYTES] = "";

        append_item(text);
        for (unsigned more = draw(3); more > 0; more--) {
            append(text, ",", 0, 0);
            append_item(text);
        }
        assert_true(compare(text));
    }
}

TEST_PROGRAM_WITH(set_up, clean)
