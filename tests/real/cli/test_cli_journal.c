/* `muster journal` on the store of a real service: damage in the middle is refused,
 * shown and repaired; and a disk that is full stops changes alone. */
#include "tests/real/cli.h"

#include <sys/mount.h>
#include <sys/stat.h>

enum { KEYS = 20, FILE_MAX = 1 << 20 };

static struct cli run;
static struct cli asked;
static char folder[64];
static char path[96];    /* of the journal */
static char address[64]; /* of the host */

static int make_folder(void **state)
{
    (void)state;
    cli_folder(folder, sizeof folder);
    (void)snprintf(path, sizeof path, "%s/keys", folder);
    return 0;
}

static int remove_folder(void **state)
{
    char command[128];

    (void)state;
    (void)snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
}

static void start(void)
{
    char store[128];

    (void)snprintf(store, sizeof store, "journal:%s", path);
    cli_start(&run, NULL, "run", "--workers", "1", "--ps", "0", "--color", "never",
              "--store", store, NULL);
    cli_expect_up(&run, NULL, "chief/task:0", address, sizeof address);
}

#define KV(...) cli_start(&asked, NULL, "kv", __VA_ARGS__, "--address", address, NULL)

#define expect_kv(code, ...)           \
    do {                               \
        KV(__VA_ARGS__);               \
        cli_expect_code(&asked, code); \
    } while (0)

#define expect_journal(code, words, ...)                       \
    do {                                                       \
        cli_start(&asked, NULL, "journal", __VA_ARGS__, NULL); \
        cli_expect_code(&asked, code);                         \
        if (strstr(asked.text, words) == NULL)                 \
            fail_msg("no \"%s\" in: %s", words, asked.text);   \
    } while (0)

static size_t read_whole(const char *name, uint8_t *out)
{
    FILE *file = fopen(name, "rb");
    size_t size;

    assert_non_null(file);
    size = fread(out, 1, FILE_MAX, file);
    (void)fclose(file);
    return size;
}

static void write_whole(const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* ---- Damage ---- */

/* One bit in the middle of twenty keys: no key is lost silently. The node refuses the
 * file and leaves it as it is; what is repaired has nineteen keys or all, and a copy of
 * what was there. */
TEST_WITH(test_flipped_bit, make_folder, remove_folder)
{
    static uint8_t before[FILE_MAX];
    static uint8_t after[FILE_MAX];
    char store[128];
    char copy[512];
    size_t size;
    int found = 0;

    start();
    for (int i = 0; i < KEYS; i++) {
        char key[16];

        (void)snprintf(key, sizeof key, "k%d", i);
        expect_kv(0, "put", key, "value");
    }
    expect_journal(3, "in use by another process", "repair", path);
    cli_stop(&run);
    expect_journal(0, "nothing is damaged", "check", path);
    size = read_whole(path, before);
    before[size / 2] ^= 0x10;
    write_whole(before, size);

    (void)snprintf(store, sizeof store, "journal:%s", path);
    cli_start(&asked, NULL, "node", "--cluster", "{\"chief\": [\"127.0.0.1:0\"]}",
              "--task", "chief:0", "--store", store, NULL);
    cli_expect_code(&asked, 2);
    assert_non_null(strstr(asked.text, " is damaged: "));
    assert_non_null(strstr(asked.text, "muster journal repair"));
    assert_int_equal(read_whole(path, after), size);
    assert_memory_equal(before, after, size);

    expect_journal(1, "damaged: record ", "check", path);
    expect_journal(1, "\"records_lost\":\t1", "check", path, "-o", "json");
    expect_journal(0, "repaired: the damaged file is ", "repair", path);
    assert_int_equal(
        sscanf(strstr(asked.text, "damaged file is ") + 16, "%500[^;]", copy), 1);
    assert_int_equal(read_whole(copy, after), size);
    assert_memory_equal(before, after, size);
    expect_journal(0, "nothing is damaged", "check", path);
    size = read_whole(path, before);
    memset(before, 'x', 8); /* its header, in the same second perhaps */
    write_whole(before, size);
    expect_journal(1, "its header is damaged", "check", path);
    expect_journal(0, "repaired: the damaged file is ", "repair", path);
    expect_journal(0, "nothing is damaged", "check", path);

    start();
    for (int i = 0; i < KEYS; i++) {
        char key[16];

        (void)snprintf(key, sizeof key, "k%d", i);
        KV("get", key);
        cli_wait(&asked);
        found += strstr(asked.text, "value") != NULL;
    }
    assert_in_range(found, KEYS - 1, KEYS);
    cli_stop(&run);
}

/* Any other file: refused, with the reason, and not touched. */
TEST_WITH(test_foreign_file, make_folder, remove_folder)
{
    static const char text[] = "somebody's notes, which are no journal";
    static uint8_t after[FILE_MAX];
    char store[128];

    write_whole((const uint8_t *)text, sizeof text);
    (void)snprintf(store, sizeof store, "journal:%s", path);
    for (int i = 0; i < 2; i++) {
        cli_start(&asked, NULL, "node", "--cluster", "{\"chief\": [\"127.0.0.1:0\"]}",
                  "--task", "chief:0", i == 0 ? "--store" : "--journal",
                  i == 0 ? store : path, NULL);
        cli_expect_code(&asked, 2);
        assert_non_null(strstr(asked.text, "expected a journal of muster"));
    }
    expect_journal(1, "expected a journal of muster", "check", path);
    expect_journal(1, "expected a journal of muster", "repair", path);
    assert_int_equal(read_whole(path, after), sizeof text);
    assert_memory_equal(after, text, sizeof text);
}

/* The journal of closures and the store of the service are both journals: neither is
 * taken for the other one, which would be written anew without what is in it. */
TEST_WITH(test_file_of_another_use, make_folder, remove_folder)
{
    static uint8_t before[FILE_MAX];
    static uint8_t after[FILE_MAX];
    char value[128];
    size_t size;

    for (int i = 0; i < 2; i++) {
        (void)unlink(path);
        (void)snprintf(value, sizeof value, "%s%s", i == 0 ? "" : "journal:", path);
        cli_start(&asked, NULL, "node", "--cluster", "{\"chief\": [\"127.0.0.1:0\"]}",
                  "--task", "chief:0", i == 0 ? "--journal" : "--store", value, NULL);
        (void)cli_expect(&asked, NULL, "run \"run-1\" of the job begins");
        cli_kill(&asked, SIGTERM);
        cli_wait(&asked);
        size = read_whole(path, before);
        assert_true(size > 0);
        (void)snprintf(value, sizeof value, "%s%s", i == 1 ? "" : "journal:", path);
        cli_start(&asked, NULL, "node", "--cluster", "{\"chief\": [\"127.0.0.1:0\"]}",
                  "--task", "chief:0", i == 1 ? "--journal" : "--store", value, NULL);
        cli_expect_code(&asked, 2);
        (void)cli_expect(&asked, NULL,
                         i == 0 ? "expected the store of a coordination "
                                  "service (--store), and this is the "
                                  "journal of a chief's closures"
                                : "expected the journal of a chief's "
                                  "closures (--journal), and this is the "
                                  "store of a coordination service");
        assert_int_equal(read_whole(path, after), size);
        assert_memory_equal(after, before, size);
    }
}

TEST_WITH(test_what_is_no_file, make_folder, remove_folder)
{
    expect_journal(1, "No such file", "check", path);
    expect_journal(1, "No such file", "repair", path);
    assert_int_equal(mkfifo(path, S_IRUSR | S_IWUSR), 0);
    expect_journal(1, "expected a plain file", "check", path);
    expect_journal(1, "expected a plain file", "repair", path);
    expect_journal(1, "expected a plain file", "check", folder);
}

/* ---- A disk that is full ---- */

/* A file system of three megabytes: changes are refused at once, the rest goes on, and
 * deletions make room for changes. */
TEST_WITH(test_full_disk, make_folder, remove_folder)
{
    static char value[60000];
    char key[16];
    int keys = 0;

    if (mount("none", folder, "tmpfs", 0, "size=3m") != 0)
        skip();
    memset(value, 'x', sizeof value - 1);
    start();
    do {
        (void)snprintf(key, sizeof key, "k%d", keys++);
        KV("put", key, value);
        cli_wait(&asked);
    } while (strstr(asked.text, "the store is full: ") == NULL && keys < 100);
    assert_in_range(keys, 10, 60);
    expect_kv(1, "put", "more", value);
    assert_non_null(strstr(asked.text, "the store is full: "));
    expect_kv(0, "get", "k3");
    for (int i = 0; i < keys - 5; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        expect_kv(0, "rm", key);
    }
    do {
        KV("put", "more", value);
        cli_wait(&asked);
    } while (strstr(asked.text, "the store is full: ") != NULL);
    cli_stop(&run);
    expect_journal(0, "nothing is damaged", "check", path);
    assert_int_equal(umount(folder), 0);
}

TEST_PROGRAM()
