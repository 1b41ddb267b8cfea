/* Queries in virtual time. Nothing is drawn: each pause is the shortest that it may
 * be, so the first is 50 ms, the second 100, then 200. */
#include "tests/support/slow_sources.h"
#include "tests/support/test.h"

enum { BEGIN_MS = 5000 };

static struct slow_sources sources;
static mu_error error;
static struct mu__request request; /* that run_one asks */

static int evaluate(const struct slow_row *rows,
                    int (*run)(struct slow_sources *sources,
                               struct mu__requests *requests, mu_error *ret_error),
                    int64_t timeout_ms)
{
    memset(&error, 0, sizeof error);
    return slow_query(&sources, rows, run, timeout_ms, &error);
}

static uint64_t took_ms(void)
{
    return sources.now_ms - BEGIN_MS;
}

static int run_one(struct slow_sources *unused, struct mu__requests *requests,
                   mu_error *ret_error)
{
    const struct mu__answer *answer = mu__requests_get(requests, &request);

    (void)unused;
    return mu__answer_check(answer, "it", ret_error);
}

static int setup(void **state)
{
    (void)state;
    request = (struct mu__request){.kind = MU__REQUEST_HTTP, .name = "http://h/x"};
    return 0;
}

TEST_WITH(test_answered_at_once, setup, NULL)
{
    static const struct slow_row rows[] = {{"http://h/x", "200", 0}, {NULL, NULL, 0}};

    assert_int_equal(evaluate(rows, run_one, 1000), 0);
    assert_int_equal(sources.runs, 1);
    assert_int_equal(took_ms(), 0);
    assert_string_equal(sources.lines, "");
    slow_done(&sources);
}

/* Which answers are asked for again, by rows: what came of it, and after how many
 * tries. */
TEST_WITH(test_what_is_passing, setup, NULL)
{
    static const struct {
        const char *outcomes;
        int rv;
        unsigned requested;
    } rows[] = {
        {"200", 0, 1},
        {"refused 200", 0, 2},
        {"408 429 500 502 503 504 200", 0, 7},
        {"501 200", -MU_EUNIMPLEMENTED, 1},
        {"400 200", -MU_EINVALID, 1},
        {"401 200", -MU_EUNAUTHENTICATED, 1},
        {"403 200", -MU_EPERMISSION, 1},
        {"404 200", -MU_ENOTFOUND, 1},
        {"302 200", -MU_EINVALID, 1},
        {"missing 200", -MU_ENOTFOUND, 1},
        {"denied 200", -MU_EPERMISSION, 1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct slow_row plan[] = {{"http://h/x", rows[i].outcomes, 5}, {NULL, NULL, 0}};
        int rv = evaluate(plan, run_one, 60000);

        if (rv != rows[i].rv || sources.requested != rows[i].requested)
            fail_msg("\"%s\": %s after %u requests", rows[i].outcomes, error.message,
                     sources.requested);
        slow_done(&sources);
    }
}

TEST_WITH(test_missing_may_be_passing, setup, NULL)
{
    static const struct slow_row rows[] = {{"http://h/x", "404 missing 404 200", 5},
                                           {NULL, NULL, 0}};

    request.retry_missing = true;
    assert_int_equal(evaluate(rows, run_one, 60000), 0);
    assert_int_equal(sources.requested, 4);
    slow_done(&sources);
}

TEST_WITH(test_pauses_grow_and_are_told, setup, NULL)
{
    static const struct slow_row rows[] = {{"http://h/x", "refused 503 200", 10},
                                           {NULL, NULL, 0}};

    assert_int_equal(evaluate(rows, run_one, 60000), 0);
    assert_int_equal(took_ms(), 10 + 50 + 10 + 100 + 10);
    assert_int_equal(sources.runs, 1);
    assert_string_equal(
        sources.lines,
        "[10] asking http://h/x failed (connection refused), try 1, again in 0.0 s, "
        "59 s left\n"
        "[70] asking http://h/x failed (status 503), try 2, again in 0.1 s, 59 s left\n");
    slow_done(&sources);
}

TEST_WITH(test_server_says_how_long, setup, NULL)
{
    static const struct slow_row rows[] = {{"http://h/x", "wait:3000 200", 10},
                                           {NULL, NULL, 0}};

    assert_int_equal(evaluate(rows, run_one, 60000), 0);
    assert_int_equal(took_ms(), 10 + 3000 + 10);
    slow_done(&sources);
}

/* What the server asks for is longer than what is left: nothing is asked any more. */
TEST_WITH(test_server_says_too_long, setup, NULL)
{
    static const struct slow_row rows[] = {{"http://h/x", "wait:3000", 10},
                                           {NULL, NULL, 0}};

    assert_int_equal(evaluate(rows, run_one, 2000), -MU_EDEADLINE);
    assert_int_equal(sources.requested, 1);
    assert_int_equal(took_ms(), 10);
    assert_string_equal(error.message,
                        "it: status 503: the server has failed; Retry-After: 3.0 s; "
                        "tried for 0.0 s");
    slow_done(&sources);
}

/* A request with one try is not asked again, but the next round is not to begin before
 * the server wants it. */
TEST_WITH(test_rounds_wait_for_the_server, setup, NULL)
{
    static const struct slow_row rows[] = {{"http://h/x", "wait:3000", 10},
                                           {NULL, NULL, 0}};

    request.tries = 1;
    assert_int_equal(evaluate(rows, run_one, 8000), -MU_EDEADLINE);
    assert_int_equal(sources.requested, 3);
    assert_int_equal(took_ms(), 10 + 3000 + 10 + 3000 + 10);
    slow_done(&sources);
}

TEST_WITH(test_limit, setup, NULL)
{
    static const struct slow_row rows[] = {{"http://h/x", "refused", 10},
                                           {NULL, NULL, 0}};

    assert_int_equal(evaluate(rows, run_one, 1000), -MU_EDEADLINE);
    assert_int_equal(error.code, -MU_EDEADLINE);
    assert_int_equal(took_ms(), 1000);
    assert_string_equal(error.message,
                        "it: http://h/x: connection refused; tried for 1.0 s");
    assert_true(sources.requested >= 5);
    slow_done(&sources);
}

/* Nobody answers at all: the request is taken back, and named. */
TEST_WITH(test_limit_without_answer, setup, NULL)
{
    static const struct slow_row rows[] = {{"http://h/x", "refused never", 10},
                                           {NULL, NULL, 0}};

    assert_int_equal(evaluate(rows, run_one, 1000), -MU_EDEADLINE);
    assert_int_equal(sources.cut_off, 1);
    assert_string_equal(error.message,
                        "it: http://h/x: no answer in time; the last try: connection "
                        "refused; tried for 1.0 s");
    slow_done(&sources);
}

TEST_WITH(test_no_limit, setup, NULL)
{
    static const struct slow_row rows[] = {
        {"http://h/x",
         "refused refused refused refused refused refused refused refused "
         "refused refused 200",
         10},
        {NULL, NULL, 0}};

    assert_int_equal(evaluate(rows, run_one, -1), 0);
    assert_true(took_ms() > 10000);
    assert_null(strstr(sources.lines, "left"));
    slow_done(&sources);
}

/* One try of everything; its answer is still waited for. */
TEST_WITH(test_limit_zero, setup, NULL)
{
    static const struct slow_row late[] = {{"http://h/x", "200", 700}, {NULL, NULL, 0}};
    static const struct slow_row bad[] = {{"http://h/x", "503 200", 700},
                                          {NULL, NULL, 0}};

    assert_int_equal(evaluate(late, run_one, 0), 0);
    slow_done(&sources);
    assert_int_equal(evaluate(bad, run_one, 0), -MU_EUNAVAILABLE);
    assert_int_equal(sources.requested, 1);
    assert_string_equal(error.message, "it: status 503: the server has failed");
    assert_string_equal(sources.lines, "");
    slow_done(&sources);
}

TEST_WITH(test_tries_are_bounded, setup, NULL)
{
    static const struct slow_row rows[] = {{"http://h/x", "denied", 10}, {NULL, NULL, 0}};
    static const struct slow_row missing[] = {{"http://h/x", "404", 10}, {NULL, NULL, 0}};

    request.tries = 3;
    assert_int_equal(evaluate(rows, run_one, 60000), -MU_EPERMISSION);
    assert_int_equal(sources.requested, 1);
    slow_done(&sources);
    request.retry_missing = true;
    assert_int_equal(evaluate(missing, run_one, 60000), -MU_ENOTFOUND);
    assert_int_equal(sources.requested, 3);
    slow_done(&sources);
}

/* ---- Rounds ---- */

/* "Not now" twice, then there. */
static int run_pod(struct slow_sources *a, struct mu__requests *requests,
                   mu_error *ret_error)
{
    static unsigned rounds;
    const struct mu__answer *answer = mu__requests_get(requests, &request);

    assert_int_equal(answer->status, 200);
    if (a->requested == 1)
        rounds = 0;
    if (++rounds < 3)
        return mu_error_set(ret_error, -MU_EUNAVAILABLE, "pod a-0 does not run yet");
    return 0;
}

TEST_WITH(test_not_now_begins_anew, setup, NULL)
{
    static const struct slow_row rows[] = {{"http://h/x", "200", 10}, {NULL, NULL, 0}};

    assert_int_equal(evaluate(rows, run_pod, 60000), 0);
    assert_int_equal(sources.requested, 3);
    assert_int_equal(took_ms(), 10 + 50 + 10 + 100 + 10);
    assert_string_equal(
        sources.lines,
        "[10] pod a-0 does not run yet, try 1, again in 0.0 s, 59 s left\n"
        "[70] pod a-0 does not run yet, try 2, again in 0.1 s, 59 s left\n");
    slow_done(&sources);
}

/* A slice of something longer: lines count on, and tell what is left of the whole. */
TEST_WITH(test_lines_of_a_slice_tell_of_the_whole, setup, NULL)
{
    static const struct slow_row rows[] = {{"http://h/x", "200", 10}, {NULL, NULL, 0}};
    int rv;

    slow_whole_ms = 300000;
    slow_rounds_before = 7;
    rv = evaluate(rows, run_pod, 3000);
    slow_whole_ms = 0;
    slow_rounds_before = 0;
    assert_int_equal(rv, 0);
    assert_string_equal(
        sources.lines,
        "[10] pod a-0 does not run yet, try 8, again in 0.0 s, 4 min 59 s left\n"
        "[70] pod a-0 does not run yet, try 9, again in 0.1 s, 4 min 59 s left\n");
    slow_done(&sources);
}

/* Time goes on between two readings of the clock. */
TEST_WITH(test_time_goes_on, setup, NULL)
{
    static const struct slow_row rows[] = {{"http://h/x", "200", 10}, {NULL, NULL, 0}};
    int rv;

    slow_reading_ms = 1;
    rv = evaluate(rows, run_pod, 60000);
    slow_reading_ms = 0;
    assert_int_equal(rv, 0);
    assert_int_equal(sources.requested, 3);
    slow_done(&sources);
}

static int run_never(struct slow_sources *unused, struct mu__requests *requests,
                     mu_error *ret_error)
{
    (void)unused;
    (void)requests;
    return mu_error_set(ret_error, -MU_EUNAVAILABLE, "pod a-0 does not run yet");
}

TEST_WITH(test_not_now_for_good, setup, NULL)
{
    static const struct slow_row rows[] = {{NULL, NULL, 0}};

    assert_int_equal(evaluate(rows, run_never, 3000), -MU_EDEADLINE);
    assert_in_range(took_ms(), 2900, 3000);
    assert_non_null(strstr(error.message, "pod a-0 does not run yet; tried for 2.9 s"));
    slow_done(&sources);
    assert_int_equal(evaluate(rows, run_never, 0), -MU_EUNAVAILABLE);
    assert_string_equal(error.message, "pod a-0 does not run yet");
    slow_done(&sources);
}

/* Who waits for others looks often. */
TEST_WITH(test_longest_pause, setup, NULL)
{
    static const struct slow_row rows[] = {{NULL, NULL, 0}};

    assert_int_equal(evaluate(rows, run_never, 60000), -MU_EDEADLINE);
    assert_in_range(sources.runs, 10, 30);
    slow_done(&sources);
    slow_pause_most_ms = 1000;
    assert_int_equal(evaluate(rows, run_never, 60000), -MU_EDEADLINE);
    slow_pause_most_ms = 0;
    assert_in_range(sources.runs, 60, 150);
    slow_done(&sources);
}

/* What is waited for has changed: it is looked at at once. */
TEST_WITH(test_change_ends_a_pause, setup, NULL)
{
    static const struct slow_row rows[] = {
        {"/x", "missing missing missing missing missing missing ok", 0}, {NULL, NULL, 0}};

    request = (struct mu__request){
        .kind = MU__REQUEST_FILE, .name = "/x", .retry_missing = true};
    assert_int_equal(evaluate(rows, run_one, 60000), 0);
    assert_int_equal(took_ms(), 3150);
    slow_done(&sources);
    slow_hurry_ms = 2000;
    assert_int_equal(evaluate(rows, run_one, 60000), 0);
    assert_int_equal(took_ms(), 2000);
    slow_done(&sources);
}

static uint64_t there_ms;

/* "Not now" until there_ms, in rounds of one request. */
static int run_until_there(struct slow_sources *a, struct mu__requests *requests,
                           mu_error *ret_error)
{
    (void)mu__requests_get(requests, &request);
    if (a->now_ms - BEGIN_MS >= there_ms)
        return 0;
    return mu_error_set(ret_error, -MU_EUNAVAILABLE, "not there");
}

/* Rounds of 10 ms begin at 0, 60, 170, 380, 790, 1600, 3210. */
TEST_WITH(test_change_begins_a_round, setup, NULL)
{
    static const struct slow_row rows[] = {{"/x", "ok", 10}, {NULL, NULL, 0}};
    static const struct {
        uint64_t there_ms;
        uint64_t hurry_ms;
        uint64_t took_ms;
    } cases[] = {
        {2000, 0, 3220},    {2000, 2000, 2010},
        {1605, 1605, 1610}, /* it was read before: or not, nobody knows */
        {1611, 1605, 1660}, /* another round: after four times the first one's time */
        {1611, 1612, 1660}, {240, 200, 640}, /* it ends one pause, and not the next */
    };

    request = (struct mu__request){.kind = MU__REQUEST_FILE, .name = "/x"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        there_ms = cases[i].there_ms;
        slow_hurry_ms = cases[i].hurry_ms;
        assert_int_equal(evaluate(rows, run_until_there, 60000), 0);
        assert_int_equal(took_ms(), cases[i].took_ms);
        slow_hurry_ms = 0;
        slow_done(&sources);
    }
}

static int run_pair(struct slow_sources *unused, struct mu__requests *requests,
                    mu_error *ret_error)
{
    const struct mu__request other = {
        .kind = MU__REQUEST_HTTP, .name = "http://h/x", .tries = request.tries};
    const struct mu__request both[] = {request, other};

    (void)unused;
    mu__requests_get_all(requests, both, 2);
    return mu__answer_check(mu__requests_get(requests, &other), "it", ret_error);
}

/* Tries of what is there at once are made at 0, 50, 150, 350, 750, 1550 and 3150; a
 * change of the file is no news of a server, which is asked in its own time, and each
 * pause that has begun ends when it would have. */
TEST_WITH(test_change_within_a_round, setup, NULL)
{
    static const struct {
        const char *file;
        uint32_t file_takes_ms;
        const char *server;
        uint32_t server_takes_ms;
        int64_t timeout_ms;
        uint64_t hurry_ms;
        int rv;
        uint64_t took_ms;
        unsigned requested;
    } cases[] = {
        /* Only the file is asked again, */
        {"missing missing missing missing missing missing ok", 0,
         "503 503 503 503 503 503 200", 0, 60000, 2000, 0, 3150, 14},
        /* also when the change brought nothing: the server's time comes before the
         * file's next one, which is counted from its last. */
        {"missing missing missing missing missing missing missing ok", 0,
         "503 503 503 503 503 503 200", 0, 60000, 2000, 0, 5200, 15},
        /* What was with the sources when the change came is asked again at once. */
        {"missing missing ok", 40, "200", 0, 60000, 100, 0, 170, 4},
        /* So is what only waits for the end, since less is left than a pause. */
        {"missing missing missing missing missing missing missing missing ok", 0, "200",
         0, 1000, 995, 0, 995, 10},
        /* What is known already is not asked again. */
        {"ok", 0, "503 200", 0, 60000, 20, 0, 50, 3},
        /* The first that is due is asked first, whoever was answered last. */
        {"missing ok", 0, "503 200", 40, 60000, 0, 0, 130, 4},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct slow_row rows[] = {
            {"/x", cases[i].file, cases[i].file_takes_ms},
            {"http://h/x", cases[i].server, cases[i].server_takes_ms},
            {NULL, NULL, 0}};
        int rv;

        request = (struct mu__request){
            .kind = MU__REQUEST_FILE, .name = "/x", .retry_missing = true};
        slow_hurry_ms = cases[i].hurry_ms;
        rv = evaluate(rows, run_pair, cases[i].timeout_ms);
        if (rv != cases[i].rv || took_ms() != cases[i].took_ms ||
            sources.requested != cases[i].requested)
            fail_msg("case %zu: %d, ended at %llu, %u requests", i, rv,
                     (unsigned long long)took_ms(), sources.requested);
        slow_hurry_ms = 0;
        slow_done(&sources);
    }
}

/* Retry-After holds, whatever changes in a file. */
TEST_WITH(test_change_and_a_server_that_waits, setup, NULL)
{
    static const struct slow_row rows[] = {
        {"/x", "ok", 0}, {"http://h/x", "wait:3000", 0}, {NULL, NULL, 0}};

    request = (struct mu__request){.kind = MU__REQUEST_FILE, .name = "/x", .tries = 1};
    slow_hurry_ms = 100;
    assert_int_equal(evaluate(rows, run_pair, 7000), -MU_EDEADLINE);
    assert_int_equal(slow_hurry_ms, 0);
    assert_int_equal(took_ms(), 6000);
    assert_int_equal(sources.requested, 6);
    slow_done(&sources);
}

static unsigned rounds; /* of run_state */

/* "Not now" as long as it is answered; from its second round on it asks another one. */
static int run_state(struct slow_sources *unused, struct mu__requests *requests,
                     mu_error *ret_error)
{
    const struct mu__answer *answer;
    int rv;

    (void)unused;
    rounds++;
    request.name = rounds == 1 ? "http://h/x" : "http://h/y";
    answer = mu__requests_get(requests, &request);
    rv = mu__answer_check(answer, "it", ret_error);
    return rv != 0 ? rv
                   : mu_error_set(ret_error, -MU_EUNAVAILABLE, "TPU x: state REPAIRING");
}

/* That the last look was cut off is not all that is known. */
TEST_WITH(test_last_conclusion_is_said, setup, NULL)
{
    static const struct slow_row rows[] = {
        {"http://h/x", "200", 10}, {"http://h/y", "never", 10}, {NULL, NULL, 0}};
    static const struct slow_row worse[] = {
        {"http://h/x", "200", 10}, {"http://h/y", "refused never", 10}, {NULL, NULL, 0}};

    rounds = 0;
    assert_int_equal(evaluate(rows, run_state, 1000), -MU_EDEADLINE);
    assert_string_equal(error.message, "TPU x: state REPAIRING; tried for 1.0 s");
    slow_done(&sources);
    rounds = 0;
    assert_int_equal(evaluate(worse, run_state, 1000), -MU_EDEADLINE);
    assert_string_equal(error.message, "TPU x: state REPAIRING; since then: connection "
                                       "refused; tried for 1.0 s");
    slow_done(&sources);
}

/* What the last run asks after the limit reaches nobody: it could not be waited for. */
static int run_chain(struct slow_sources *unused, struct mu__requests *requests,
                     mu_error *ret_error)
{
    const struct mu__request write = {.kind = MU__REQUEST_WRITE, .name = "/f"};

    (void)unused;
    (void)mu__requests_get(requests, &request);
    return mu__answer_check(mu__requests_get(requests, &write), "it", ret_error);
}

TEST_WITH(test_nothing_is_asked_after_the_end, setup, NULL)
{
    static const struct slow_row rows[] = {
        {"http://h/x", "never", 10}, {"/f", "ok", 10}, {NULL, NULL, 0}};

    assert_int_equal(evaluate(rows, run_chain, 1000), -MU_EDEADLINE);
    assert_int_equal(sources.requested, 1);
    assert_string_equal(error.message,
                        "it: writing file /f: no answer in time; tried for 1.0 s");
    slow_done(&sources);
}

/* ---- Several requests ---- */

static int run_two(struct slow_sources *unused, struct mu__requests *requests,
                   mu_error *ret_error)
{
    const struct mu__request other = {.kind = MU__REQUEST_FILE, .name = "/f"};
    const struct mu__request both[] = {request, other, other};

    (void)unused;
    mu__requests_get_all(requests, both, 3);
    return mu__answer_check(mu__requests_get(requests, &request), "it", ret_error);
}

TEST_WITH(test_both_are_waited_for, setup, NULL)
{
    static const struct slow_row rows[] = {
        {"http://h/x", "200", 300}, {"/f", "ok", 100}, {NULL, NULL, 0}};

    assert_int_equal(evaluate(rows, run_two, 60000), 0);
    assert_int_equal(took_ms(), 300);
    assert_int_equal(sources.requested, 2);
    slow_done(&sources);
}

TEST_WITH(test_notes_are_kept, setup, NULL)
{
    static const struct slow_row rows[] = {{"http://h/x", "503 403", 10},
                                           {NULL, NULL, 0}};
    char words[400];

    assert_int_equal(evaluate(rows, run_one, 1000), -MU_EPERMISSION);
    mu__exchange_describe(mu__requests_at(sources.notes.requests, 0), words,
                          sizeof words);
    assert_string_equal(words, "http://h/x: status 403, 2 bytes, after 2 tries");
    slow_done(&sources);
}

TEST_PROGRAM()
