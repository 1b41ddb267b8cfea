/* Members that ask for far more than they read, against a cluster at work: what they make
 * a process keep is bounded, however much it is, and the others go on; who reads gets all
 * that it has asked for. */
#include "tests/real/security/speaker.h"
#include "tests/real/slow.h"

#include "actors/ps/variable_store.h"

enum {
    KEYS = 40,
    KEY_BYTES = 400000, /* a page of a list has two of them, some 800 KB */
    ASKED = 600,        /* requests: some 480 MB of answers */
    FRAME_REQUESTS = 200,
    GROWTH_BYTES = 16 << 20, /* most that may be kept for each of them */
    PS = 3,
    SHARD_BYTES = 4 << 20,
    LOOKS = 100,
    LOOK_MS = 20,
    PING_MS = 200,
    STATUS_ROUNDS = 8,
    CROWD = 8
};

static uint64_t token;

static struct mu__buf *frame_of(struct speaker *s, size_t bytes, uint16_t count)
{
    const struct mu__frame_header header = {MU__FRAME_VERSION, MU__FRAME_DATA,
                                            s->incarnation, s->peer, count};
    struct mu__buf *frame = s->wire->ops->buffer(s->wire, bytes);

    assert_non_null(frame);
    mu__frame_write(frame, &header);
    frame->size = MU__FRAME_HEADER_BYTES;
    return frame;
}

static void say(struct speaker *s, uint16_t kind, uint32_t actor, const void *body,
                size_t size, size_t bytes)
{
    struct mu__buf *frame = frame_of(s, bytes + 4096, 1);

    speaker_put(frame, &mu__messages, kind, actor, body, size);
    assert_true(speaker_send(s, frame));
}

/* Run for some milliseconds, and be heard: who is silent is dropped. */
static void live(struct speaker *s, uint64_t ms)
{
    struct mu__frame_header header = {MU__FRAME_VERSION, MU__FRAME_PING, s->incarnation,
                                      s->peer, 0};
    struct mu__buf *frame;
    bool never = false;

    if (cli_now_ms() > s->pinged_ms + PING_MS) {
        frame = s->wire->ops->buffer(s->wire, 64);
        assert_non_null(frame);
        mu__frame_write(frame, &header);
        frame->size = MU__FRAME_HEADER_BYTES;
        (void)speaker_send(s, frame);
        s->pinged_ms = cli_now_ms();
    }
    (void)speaker_run(s, &never, ms);
}

static void await(struct speaker *s, uint16_t kind, unsigned count)
{
    uint64_t deadline_ms = cli_now_ms() + 12 * (uint64_t)SPEAKER_SOON_MS;

    while (s->heard[kind] < count && cli_now_ms() < deadline_ms)
        live(s, 5);
    if (s->heard[kind] >= count)
        return;
    cli_show(&at_work.run);
    fail_msg("%s: %u answers instead of %u", mu__messages.rows[kind].name, s->heard[kind],
             count);
}

static void enter(struct speaker *s, const char *key, const char *type, uint32_t index,
                  size_t task)
{
    const struct mu__task_register body = {.token = ++token};

    speaker_open(s, at_work_file(key), type, index, task);
    if (!speaker_run(s, &s->is_linked, SPEAKER_SOON_MS))
        fail_msg("%s is not linked: %s", key, s->refused);
    if (task == 0) {
        say(s, MU__TASK_REGISTER, MU__COORDINATION, &body, sizeof body, 0);
        await(s, MU__TASKS_ANSWER, 1);
    }
}

/* ---- what there is to be read ---- */

static void put_keys(void)
{
    static uint8_t value[KEY_BYTES];
    struct speaker s;

    enter(&s, "use", "client", 7300, 0);
    for (unsigned i = 0; i < KEYS; i++) {
        char key[32];
        struct mu__key_put body = {.token = ++token, .value = {value, sizeof value}};

        (void)snprintf(key, sizeof key, "greedy/%02u", i);
        body.key = mu__view_str(key);
        say(&s, MU__KEY_PUT, MU__COORDINATION, &body, sizeof body, sizeof value);
        await(&s, MU__KEY_DONE, i + 1);
    }
    speaker_close(&s);
}

static int begin(void **state)
{
    static const char *const rights[] = {"observe", "use", "task"};

    (void)state;
    at_work_begin();
    for (size_t i = 0; i < sizeof rights / sizeof rights[0]; i++)
        at_work_derive(rights[i]);
    put_keys();
    return 0;
}

static int finish(void **state)
{
    (void)state;
    at_work_end();
    return 0;
}

/* ---- asking ---- */

struct asking {
    uint16_t kind;
    uint32_t actor;
    const void *body; /* begins with its token */
    size_t size;
};

/* One connection is not read, and then so much is asked on the other one. */
static void ask(struct speaker *s, const struct asking *asking)
{
    _Alignas(16) uint8_t body[512];

    s->wire->ops->hold(s->wire, 1, true);
    memcpy(body, asking->body, asking->size);
    for (unsigned i = 0; i < ASKED; i += FRAME_REQUESTS) {
        struct mu__buf *frame = frame_of(s, 64 << 10, FRAME_REQUESTS);

        for (unsigned j = 0; j < FRAME_REQUESTS; j++) {
            token++;
            memcpy(body, &token, sizeof token);
            speaker_put(frame, &mu__messages, asking->kind, asking->actor, body,
                        asking->size);
        }
        assert_true(speaker_send(s, frame));
    }
}

/* A crowd that asks side by side. */
struct crowd {
    struct speaker *speakers;
    unsigned count;
};

/* What is seen of a process, and of the others' closures, for a while. */
struct look {
    size_t largest;    /* bytes that the process is */
    long closures;     /* in a second */
    uint64_t pause_ms; /* the longest that was seen without one */
};

static struct look look_at(const struct crowd *crowd, size_t task)
{
    uint64_t began_ms = cli_now_ms();
    uint64_t changed_ms = began_ms;
    uint64_t now_ms = began_ms;
    long first = at_work_count();
    long count = first;
    struct look look = {0, 0, 0};

    for (int i = 0; i < LOOKS; i++) {
        size_t bytes = at_work_resident(at_work.pids[task]);
        long last = count;

        look.largest = bytes > look.largest ? bytes : look.largest;
        for (unsigned j = 0; j < crowd->count; j++)
            live(&crowd->speakers[j], LOOK_MS / crowd->count);
        now_ms = cli_now_ms();
        count = at_work_count();
        if (count != last)
            changed_ms = now_ms;
        else if (now_ms - changed_ms > look.pause_ms)
            look.pause_ms = now_ms - changed_ms;
    }
    look.closures = (count - first) * 1000 / (long)(now_ms - began_ms + 1);
    return look;
}

static void others_go_on(struct speaker *s)
{
    uint64_t deadline_ms = cli_now_ms() + CLI_SOON_MS;
    long from = at_work_count();

    while (at_work_count() < from + AT_WORK_MORE) {
        cli_read(&at_work.run);
        assert_true(cli_now_ms() < deadline_ms);
        live(s, LOOK_MS);
    }
}

/* Prints what the others have of it. */
static void expect_crowd_bounded(const struct crowd *crowd, size_t task,
                                 const struct asking *asking)
{
    size_t before = at_work_resident(at_work.pids[task]);
    struct look alone = look_at(crowd, task);
    struct look asked;

    for (unsigned i = 0; i < crowd->count; i++)
        ask(&crowd->speakers[i], asking);
    asked = look_at(crowd, task);
    print_message("%s, %u ask: %ld closures/s (before: %ld), longest pause %" PRIu64
                  " ms (%" PRIu64 "), %zu KiB more\n",
                  at_work_tasks[task], crowd->count, asked.closures, alone.closures,
                  asked.pause_ms, alone.pause_ms,
                  asked.largest > before ? (asked.largest - before) / 1024 : 0);
    if (COUNTS_MEMORY && asked.largest > before + crowd->count * (size_t)GROWTH_BYTES)
        fail_msg("%s has grown from %zu to %zu bytes for answers that are not read",
                 at_work_tasks[task], before, asked.largest);
    others_go_on(&crowd->speakers[0]);
}

static void expect_bounded(struct speaker *s, size_t task, const struct asking *asking)
{
    expect_crowd_bounded(&(struct crowd){s, 1}, task, asking);
}

static void expect_all(struct speaker *s, uint16_t kind)
{
    s->wire->ops->hold(s->wire, 1, false);
    await(s, kind, ASKED);
}

/* ---- the tests ---- */

TEST(test_lists)
{
    static const struct {
        const char *key;
        const char *type;
        uint32_t index;
    } rows[] = {{"observe", "client", 7301}, {"task", "evaluator", 0}};
    const struct mu__key_list body = {.key = mu__view_str("greedy")};
    const struct asking lists = {MU__KEY_LIST, MU__COORDINATION, &body, sizeof body};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct speaker s;

        enter(&s, rows[i].key, rows[i].type, rows[i].index, 0);
        expect_bounded(&s, 0, &lists);
        expect_all(&s, MU__KEY_LISTED);
        assert_int_equal(s.heard[MU__KEY_LISTED], ASKED);
        speaker_close(&s);
    }
}

/* Several at once: so much for each, and the others go on as before. */
TEST(test_lists_for_a_crowd)
{
    const struct mu__key_list body = {.key = mu__view_str("greedy")};
    const struct asking lists = {MU__KEY_LIST, MU__COORDINATION, &body, sizeof body};
    struct speaker speakers[CROWD];

    for (unsigned i = 0; i < CROWD; i++)
        enter(&speakers[i], "observe", "client", 7310 + i, 0);
    expect_crowd_bounded(&(struct crowd){speakers, CROWD}, 0, &lists);
    for (unsigned i = 0; i < CROWD; i++)
        speaker_close(&speakers[i]);
}

/* Each gets all keys at first. */
TEST(test_watches_of_a_directory)
{
    const struct mu__key_watch body = {.key = mu__view_str("greedy"), .below = true};
    const struct asking watches = {MU__KEY_WATCH, MU__COORDINATION, &body, sizeof body};
    struct speaker s;

    enter(&s, "observe", "client", 7302, 0);
    expect_bounded(&s, 0, &watches);
    s.wire->ops->hold(s.wire, 1, false);
    await(&s, MU__KEY_EVENT, 4 * KEYS);
    assert_true(s.heard[MU__KEY_EVENT] >= 4 * KEYS);
    speaker_close(&s);
}

/* Its creator writes zeros, and says that this is the content. */
static void fill(struct speaker *s, uint64_t open_token)
{
    static const uint32_t operations[] = {MU__WRITE_ZERO, MU__WRITE_COMMIT};

    for (unsigned i = 0; i < 2; i++) {
        const struct mu__var_write body = {.token = ++token,
                                           .variable = s->variable,
                                           .operation = operations[i],
                                           .transfer = open_token,
                                           .generation = s->generation};

        say(s, MU__VAR_WRITE, MU__PS, &body, sizeof body, 0);
        await(s, MU__VAR_WRITTEN, i + 1);
    }
}

TEST(test_reads_of_a_variable)
{
    static const uint64_t dims[] = {SHARD_BYTES / 4};
    struct mu__var_open open = {
        .token = 1,
        .name = mu__view_str("greedy"),
        .dtype = MU_F32,
        .dims = {(const uint8_t *)dims, sizeof dims},
        .shards = 1,
        .size = SHARD_BYTES,
    };
    struct mu__var_read body = {.size = MU__PIECE_BYTES_MAX};
    const struct asking reads = {MU__VAR_READ, MU__PS, &body, sizeof body};
    struct speaker s;

    enter(&s, "use", "client", 7303, PS);
    await(&s, MU__SERVES, 1);
    open.generation = s.generation;
    say(&s, MU__VAR_OPEN, MU__PS, &open, sizeof open, 0);
    await(&s, MU__VAR_OPENED, 1);
    assert_true(s.variable != 0);
    fill(&s, open.token);
    body.variable = s.variable;
    body.generation = s.generation;
    expect_bounded(&s, PS, &reads);
    expect_all(&s, MU__VAR_DATA);
    if (s.code != 0)
        fail_msg("the variable cannot be read: %s", s.words);
    speaker_close(&s);
}

static unsigned times_in(const char *text, const char *words)
{
    unsigned count = 0;

    while ((text = strstr(text, words)) != NULL) {
        text += strlen(words);
        count++;
    }
    return count;
}

/* All are answered, most of them with RESOURCE EXHAUSTED; the log has a line a second. */
static void expect_refusals(const struct mu__status_get *body, unsigned index)
{
    static const char words[] = "too many status requests";
    const struct asking statuses = {MU__STATUS_GET, MU__SUPERVISOR, body, sizeof *body};
    uint64_t began_ms = cli_now_ms();
    struct speaker s;
    unsigned before;

    cli_read(&at_work.run);
    before = times_in(at_work.run.text, words);
    enter(&s, "observe", "client", index, 0);
    for (unsigned i = 1; i <= STATUS_ROUNDS || cli_now_ms() < began_ms + 1500; i++) {
        ask(&s, &statuses);
        s.wire->ops->hold(s.wire, 1, false);
        await(&s, MU__STATUS, i * ASKED);
    }
    others_go_on(&s);
    cli_read(&at_work.run);
    assert_in_range(times_in(at_work.run.text, words) - before, 1,
                    (cli_now_ms() - began_ms) / 1000 + 2);
    speaker_close(&s);
}

TEST(test_statuses)
{
    const struct mu__status_get whole = {.token = 1};

    expect_refusals(&whole, 7304);
}

TEST(test_explanations)
{
    const struct mu__status_get one = {.token = 1, .name = mu__view_str("of-nobody")};

    expect_refusals(&one, 7305);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return tests_run(begin, finish);
}
