/* The stream wire: peers that are killed, and where it can listen and dial. */
#include "tests/real/wire/wire_uv_fixture.h"

/* ---- A counting listener for the tests below ---- */

static bool was_down(void *arg)
{
    return ((struct counts *)arg)->downs > 0;
}

/* ---- Another process ---- */

/* What the test runs itself as: listens, says where, and lives until it is killed. */
static int child_main(const char *bind_url)
{
    struct counts counts = {.ups = 0};
    struct mu__wire_uv *wire;
    mu_error error;
    uv_loop_t loop;

    (void)uv_loop_init(&loop);
    if (mu__wire_uv_open(&loop, bind_url, &count_events, &counts, &error, &wire) != 0)
        return 1;
    (void)printf("%s\n", mu__wire_uv_url(wire));
    (void)fflush(stdout);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    return 0;
}

static pid_t child_start(const char *bind_url, char url[ADDRESS_MAX])
{
    int ends[2];
    pid_t pid;
    FILE *said;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)execl("/proc/self/exe", "test_wire_uv", "child", bind_url, (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    said = fdopen(ends[0], "r");
    assert_non_null(said);
    assert_non_null(fgets(url, ADDRESS_MAX, said));
    url[strcspn(url, "\n")] = '\0';
    (void)fclose(said);
    return pid;
}

static void child_kill(pid_t pid)
{
    int status;

    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}

/* A killed peer is noticed at once, not by silence; a new process can be at the same
 * address. */
TEST_ON(test_killed_peer, struct listener *listener, listener_setup, listener_teardown)
{
    struct counts *sender = &listener->counts[0];
    char url[ADDRESS_MAX];
    char same[ADDRESS_MAX];
    pid_t pid = child_start("tcp://127.0.0.1:0", url);
    uint64_t begin_ms;

    assert_int_equal(sender->wire->ops->dial(sender->wire, 9, url), 0);
    run_until(listener, is_up, 0);
    begin_ms = uv_hrtime() / 1000000;
    child_kill(pid);
    run_until(listener, was_down, 0);
    assert_true(uv_hrtime() / 1000000 - begin_ms < 5000);

    pid = child_start(url, same);
    assert_string_equal(same, url);
    assert_int_equal(sender->wire->ops->dial(sender->wire, 9, url), 0);
    run_until(listener, is_up, 0);
    child_kill(pid);
}

/* The socket file of a living process is not taken over, that of a dead one is. */
TEST(test_stale_socket_file)
{
    struct place *place = place_new(true);
    struct counts counts = {.ups = 0};
    char url[ADDRESS_MAX];
    pid_t pid = child_start(place_url(place, 0), url);
    struct mu__wire_uv *thief;
    mu_error error;

    assert_int_equal(mu__wire_uv_open(&place->loop, place_url(place, 0), &count_events,
                                      &counts, &error, &thief),
                     -MU_EEXISTS);
    assert_non_null(strstr(error.message, place_url(place, 0)));
    child_kill(pid);
    assert_int_equal(access(url + strlen("ipc://"), F_OK), 0);
    counts.wire = place_open(place, 0, &count_events, &counts);
    assert_int_equal(counts.wire->ops->dial(counts.wire, 1, place_url(place, 0)), 0);
    assert_true(place_run(place, is_up, &counts));
    place_close(place, 0);
    place_free(place);
}

/* ---- Addresses ---- */

TEST(test_where_it_can_listen)
{
    static const struct {
        const char *bind;
        const char *begins;
    } rows[] = {
        {"tcp://127.0.0.1:0", "tcp://127.0.0.1:"},
        {"tcp://0.0.0.0:0", "tcp://0.0.0.0:"},
        {"tcp://localhost:0", "tcp://localhost:"},
        {"tcp://[::1]:0", "tcp://[::1]:"},
    };
    struct place *place = place_new(false);
    struct counts counts = {.ups = 0};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t length = strlen(rows[i].begins);

        set_url(place, 0, rows[i].bind);
        counts.wire = place_open(place, 0, &count_events, &counts);
        assert_int_equal(strncmp(place->urls[0], rows[i].begins, length), 0);
        assert_true(strtoul(place->urls[0] + length, NULL, 10) > 0);
        counts.ups = 0;
        counts.downs = 0;
        assert_int_equal(counts.wire->ops->dial(counts.wire, 1, place->urls[0]), 0);
        assert_true(place_run(place, is_up, &counts));
        place_close(place, 0);
    }
    place_free(place);
}

TEST(test_where_it_cannot_listen)
{
    static const struct {
        const char *bind;
        int rv;
    } rows[] = {
        {"", -MU_EINVALID},
        {"127.0.0.1:80", -MU_EINVALID},
        {"http://127.0.0.1:80", -MU_EINVALID},
        {"inproc://x", -MU_EINVALID},
        {"tcp://", -MU_EINVALID},
        {"tcp://127.0.0.1", -MU_EINVALID},
        {"tcp://127.0.0.1:", -MU_EINVALID},
        {"tcp://127.0.0.1:65536", -MU_EINVALID},
        {"tcp://127.0.0.1:99999999999999999999", -MU_EINVALID},
        {"tcp://127.0.0.1:8o", -MU_EINVALID},
        {"tcp://127.0.0.1:-1", -MU_EINVALID},
        {"tcp://127.0.0.1:0/path", -MU_EINVALID},
        {"tcp://[::1:0", -MU_EINVALID},
        {"tcp://a b:0", -MU_EINVALID},
        {"tcp://192.0.2.7:0", -MU_EINVALID},
        {"tcp://no-such-host.invalid:0", -MU_EINVALID},
        {"ipc://", -MU_EINVALID},
        {"ipc://relative", -MU_EINVALID},
        {"ipc:///no/such/directory/x", -MU_EINVALID},
        {"ipc:///tmp/a-path-that-is-longer-than-the-one-hundred-and-seven-bytes-which-"
         "the-system-allows-for-the-name-of-a-socket",
         -MU_EINVALID},
    };
    struct place *place = place_new(false);
    struct mu__wire_uv *untouched = NULL;
    mu_error error;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int rv = mu__wire_uv_open(&place->loop, rows[i].bind, &count_events, NULL, &error,
                                  &untouched);

        if (rv != rows[i].rv)
            fail_msg("\"%s\" gave %s", rows[i].bind, mu_err_name(rv));
        assert_int_equal(error.code, rv);
        assert_non_null(strstr(error.message, rows[i].bind));
        assert_null(untouched);
        assert_int_equal(mu__wire_uv_open(&place->loop, rows[i].bind, &count_events, NULL,
                                          NULL, &untouched),
                         rv);
    }
    place_free(place);
}

TEST_ON(test_port_in_use, struct listener *listener, listener_setup, listener_teardown)
{
    struct mu__wire_uv *second = NULL;
    mu_error error;

    assert_int_equal(mu__wire_uv_open(&listener->place->loop,
                                      place_url(listener->place, 1), &count_events, NULL,
                                      &error, &second),
                     -MU_EEXISTS);
    assert_non_null(strstr(error.message, place_url(listener->place, 1)));
    assert_null(second);
    assert_others_go_on(listener);
}

TEST_ON(test_where_it_cannot_dial, struct listener *listener, listener_setup,
        listener_teardown)
{
    static const char *const bad[] = {
        "",
        "x",
        "tcp://",
        "tcp://127.0.0.1",
        "tcp://127.0.0.1:0",
        "tcp://127.0.0.1:65536",
        "tcp://:80",
        "tcp://a b:1",
        "tcp://[::1:1",
        "tcp://h:1/x",
        "ipc://relative",
        "inproc://x",
        "http://127.0.0.1:80",
    };
    struct mu__wire *wire = listener->counts[0].wire;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(wire->ops->dial(wire, 1, bad[i]), -MU_EINVALID);
    assert_others_go_on(listener);
    assert_int_equal(wire->ops->dial(wire, 1, place_url(listener->place, 1)),
                     -MU_EEXISTS);
}

/* A buffer that no frame may fill is refused. */
TEST_ON(test_buffer_bounds, struct listener *listener, listener_setup, listener_teardown)
{
    struct mu__wire *wire = listener->counts[0].wire;
    struct mu__buf *buf = wire->ops->buffer(wire, MU__FRAME_BYTES_MAX);

    assert_non_null(buf);
    mu__buf_unref(buf);
    assert_null(wire->ops->buffer(wire, MU__FRAME_BYTES_MAX + 1));
    assert_null(wire->ops->buffer(wire, SIZE_MAX));
}

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN);
    if (argc == 3 && strcmp(argv[1], "child") == 0)
        return child_main(argv[2]);
    return tests_run(NULL, NULL);
}
