/* The files that hold keys: who may read them, where a user's is, and who makes it. */
#include "node/files/key_file.h"
#include "tests/support/test.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/muster-keys-XXXXXX");
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    char command[96];

    (void)state;
    (void)snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
}

TEST_WITH(test_who_may_read_it, set_up, tear_down)
{
    static const struct {
        mode_t mode;
        int rv;
    } rows[] = {
        {0600, 0},
        {0400, 0},
        {0440, 0},
        {0640, 0},
        {0644, -MU_EPERMISSION},
        {0604, -MU_EPERMISSION},
        {0602, -MU_EPERMISSION},
        {0601, -MU_EPERMISSION},
        {0620, -MU_EPERMISSION},
        {0666, -MU_EPERMISSION},
    };
    char path[MU__KEY_PATH_BYTES];
    struct mu__key written;
    struct mu__key read;
    mu_error error = {0};

    (void)snprintf(path, sizeof path, "%s/key", folder);
    assert_int_equal(mu__key_new(&error, &written), 0);
    assert_int_equal(
        mu__key_file_write(path, written.bytes, sizeof written.bytes, &error), 0);
    assert_int_equal(mu__key_file_write(path, written.bytes, 3, &error), -MU_EEXISTS);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(chmod(path, rows[i].mode), 0);
        if (mu__key_file_read(path, &error, &read) != rows[i].rv)
            fail_msg("mode %04o", (unsigned)rows[i].mode);
        if (rows[i].rv != 0)
            assert_non_null(strstr(error.message, "chmod 600 it"));
    }
    assert_memory_equal(read.bytes, written.bytes, sizeof read.bytes);
}

/* In a process of another user: root may be given anybody's files. */
static int in_child(void (*check)(void))
{
    pid_t child = fork();
    int status = -1;

    assert_true(child >= 0);
    if (child == 0) {
        if (geteuid() == 0 && seteuid(65534) != 0)
            _exit(2);
        check();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_owners(void)
{
    struct stat status = {.st_mode = 0600, .st_uid = geteuid()};
    mu_error error = {0};

    if (mu__secret_check("/etc/passwd", &status, &error) != 0)
        _exit(3);
    status.st_uid = 0;
    if (mu__secret_check("/etc/passwd", &status, &error) != 0)
        _exit(4);
    status.st_uid = geteuid() + 1;
    if (mu__secret_check("/etc/passwd", &status, &error) != -MU_EPERMISSION ||
        strstr(error.message, "belongs to user") == NULL)
        _exit(5);
}

TEST(test_whose_it_is)
{
    assert_int_equal(in_child(check_owners), 0);
}

/* A folder that others may change; but for one with a sticky bit. */
TEST_WITH(test_whose_folder_it_is, set_up, tear_down)
{
    static const struct {
        mode_t mode;
        int rv;
    } rows[] = {{0700, 0}, {0755, 0}, {0775, 0}, {01777, 0}, {0777, -MU_EPERMISSION}};
    struct stat status = {.st_mode = 0600, .st_uid = geteuid()};
    char path[MU__KEY_PATH_BYTES];
    mu_error error = {0};

    (void)snprintf(path, sizeof path, "%s/key", folder);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(chmod(folder, rows[i].mode), 0);
        if (mu__secret_check(path, &status, &error) != rows[i].rv)
            fail_msg("mode %04o: %s", (unsigned)rows[i].mode, error.message);
        if (rows[i].rv != 0)
            assert_non_null(strstr(error.message, "folder that others may change"));
    }
}

/* However long the path to it is. */
TEST_WITH(test_whose_folder_it_is_by_a_long_path, set_up, tear_down)
{
    struct stat status = {.st_mode = 0600, .st_uid = geteuid()};
    const char *name = strrchr(folder, '/') + 1;
    char path[3 * MU__KEY_PATH_BYTES];
    size_t size = strlen(folder);
    mu_error error = {0};

    memcpy(path, folder, size + 1);
    while (size < 2 * MU__KEY_PATH_BYTES)
        size += (size_t)snprintf(path + size, sizeof path - size, "/../%s", name);
    (void)snprintf(path + size, sizeof path - size, "/key");
    if (mu__secret_check(path, &status, &error) != 0)
        fail_msg("%s", error.message);
    assert_int_equal(chmod(folder, 0777), 0);
    assert_int_equal(mu__secret_check(path, &status, &error), -MU_EPERMISSION);
}

static void set(const char *name, const char *value)
{
    assert_int_equal(value == NULL ? unsetenv(name) : setenv(name, value, 1), 0);
}

TEST(test_where_it_is)
{
    static const struct {
        const char *config;
        const char *home;
        const char *path; /* NULL: that of the list of users */
    } rows[] = {
        {"/a/config", "/b", "/a/config/muster/key"},
        {NULL, "/b", "/b/.config/muster/key"},
        {"", "/b", "/b/.config/muster/key"},
        {"relative", "/b", "/b/.config/muster/key"},
        {NULL, NULL, NULL},
    };
    char path[MU__KEY_PATH_BYTES];
    char long_path[600];
    mu_error error = {0};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        set("XDG_CONFIG_HOME", rows[i].config);
        set("HOME", rows[i].home);
        assert_int_equal(mu__user_key_path(&error, path), 0);
        if (rows[i].path != NULL)
            assert_string_equal(path, rows[i].path);
        else
            assert_non_null(strstr(path, "/.config/muster/key"));
    }
    memset(long_path, 'x', sizeof long_path - 1);
    long_path[0] = '/';
    long_path[sizeof long_path - 1] = '\0';
    set("XDG_CONFIG_HOME", long_path);
    assert_int_equal(mu__user_key_path(&error, path), -MU_EINVALID);
    assert_non_null(strstr(error.message, "XDG_CONFIG_HOME is longer than"));
}

/* One of many processes that need it at the same moment: its fingerprint, to the pipe. */
static void make_and_tell(const char *path, int begin, int out)
{
    struct mu__key key;
    char byte;

    (void)read(begin, &byte, 1); /* until the parent closes it */
    if (mu__user_key_make(path, NULL) != 0 || mu__key_file_read(path, NULL, &key) != 0 ||
        write(out, key.fingerprint, sizeof key.fingerprint) !=
            (ssize_t)sizeof key.fingerprint)
        _exit(1);
    _exit(0);
}

TEST_WITH(test_all_get_the_same, set_up, tear_down)
{
    enum { PROCESSES = 16 };
    char fingerprints[PROCESSES][MU__KEY_FINGERPRINT_BYTES];
    char path[MU__KEY_PATH_BYTES];
    struct stat status;
    int begin[2];
    int told[2];
    int code;

    (void)snprintf(path, sizeof path, "%s/new/folders/key", folder);
    assert_int_equal(pipe(begin), 0);
    assert_int_equal(pipe(told), 0);
    for (int i = 0; i < PROCESSES; i++) {
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid > 0)
            continue;
        (void)close(begin[1]);
        make_and_tell(path, begin[0], told[1]);
    }
    (void)close(begin[0]);
    (void)close(begin[1]);
    for (int i = 0; i < PROCESSES; i++) {
        assert_true(wait(&code) > 0);
        assert_int_equal(code, 0);
        assert_int_equal(read(told[0], fingerprints[i], sizeof fingerprints[i]),
                         sizeof fingerprints[i]);
        assert_string_equal(fingerprints[i], fingerprints[0]);
    }
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(status.st_nlink, 1);
    (void)close(told[0]);
    (void)close(told[1]);
}

TEST_WITH(test_no_place, set_up, tear_down)
{
    char path[MU__KEY_PATH_BYTES];
    mu_error error = {0};

    (void)snprintf(path, sizeof path, "%s/file", folder);
    assert_int_equal(mu__key_file_write(path, "x", 1, &error), 0);
    (void)snprintf(path, sizeof path, "%s/file/below/key", folder);
    assert_true(mu__user_key_make(path, &error) < 0);
    assert_non_null(strstr(error.message, "cannot be made"));
}

TEST_PROGRAM()
