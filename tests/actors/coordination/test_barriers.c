/* Barriers as plain data: what becomes of each arrival, and of each generation, by rows;
 * against a naive model, with seeds; bounds; and as text. */
#include "tests/actors/coordination/barrier_notation.h"
#include "tests/support/test.h"

/* ---- a notation ----
 *
 * A row is a list of steps, each followed by what it must lead to:
 *   "0"        slot 0 arrives for the generation that it counts, "0@3" for the 3rd
 *   "0'"       restarted: with a new incarnation, counting from 0
 *   "0#"       calls once more, with another token; "0=" asks again under the same
 *   "0~"       names other tasks
 *   "-0"       is not there any more
 *   "X" "C"    the barrier fails; slot 0 may cancel it for its generation: "C0@1"
 * and the outcome: ":w" waits, ":ok" all went through, ":a" told the outcome of before,
 * ":slow", ":quick", ":other", ":r" waits and replaces a call, ":f" first, refused,
 * ":y" and ":n" for "C" and "-". */

static void game_begin(struct game *game, uint32_t count, bool recoverable)
{
    *game = (struct game){.count = count, .recoverable = recoverable, .incarnation = 100};
    for (uint32_t i = 0; i < SLOTS; i++) {
        game->slots[i] = i;
        game->players[i].incarnation = ++game->incarnation;
    }
}

static uint64_t number_behind(const char **at, char mark, uint64_t otherwise)
{
    char *end;
    uint64_t number;

    if (**at != mark)
        return otherwise;
    number = strtoull(*at + 1, &end, 10);
    *at = end;
    return number;
}

static const char *step_arrive(struct game *game, const char **at)
{
    uint32_t slot = (uint32_t)(*(*at)++ - '0');
    struct player *player = &game->players[slot];
    const char *set = "worker:0-2";
    uint64_t generation;
    const char *result;

    if (**at == '\'') {
        *player = (struct player){.incarnation = ++game->incarnation};
        (*at)++;
    }
    player->token += **at != '=';
    *at += **at == '=' || **at == '#';
    if (**at == '~') {
        set = "worker:0-3";
        (*at)++;
    }
    generation = number_behind(at, '@', player->generation);
    result = arrived(game, slot, set, generation);
    if (strcmp(result, "ok") == 0)
        for (uint32_t i = 0; i < SLOTS; i++)
            game->players[i].generation = running(game)->generation;
    return result;
}

static const char *step(struct game *game, const char **at)
{
    const mu_error error = {.code = -MU_EINTERNAL, .message = "failed"};
    uint32_t slot;

    if (**at == 'X') {
        (*at)++;
        (void)mu__barriers_end(&game->barriers, running(game), &error, 0, game->now_ms);
        return "x";
    }
    if (**at == '-') {
        slot = (uint32_t)((*at)[1] - '0');
        *at += 2;
        return mu__barrier_uncount(running(game), slot) ? "y" : "n";
    }
    if (**at == 'C') {
        slot = (uint32_t)((*at)[1] - '0');
        *at += 2;
        return mu__barrier_may_cancel(running(game), slot,
                                      game->players[slot].incarnation,
                                      number_behind(at, '@', 0))
                   ? "y"
                   : "n";
    }
    return step_arrive(game, at);
}

static void expect_play(struct game *game, const char *row)
{
    for (const char *at = row; *at != '\0';) {
        const char *begin = at;
        const char *result = step(game, &at);
        size_t size = strlen(result);

        if (*at != ':' || strncmp(at + 1, result, size) != 0 ||
            (at[1 + size] != ' ' && at[1 + size] != '\0'))
            fail_msg("\"%s\": at \"%.8s\" it is \"%s\"", row, begin, result);
        at += 1 + size;
        at += *at == ' ';
        assert_true(mu__barriers_check(&game->barriers));
    }
}

TEST(test_rows)
{
    static const struct {
        const char *what;
        uint32_t count;
        bool recoverable;
        const char *steps;
    } rows[] = {
        {"one alone", 1, false, "0:ok 0:ok"},
        {"all of three", 3, false, "0:w 1:w 2:ok"},
        {"again and again", 2, false, "0:w 1:ok 1:w 0:ok 0:w 1:ok"},
        {"who is not among them", 2, false, "0:w 4:other"},
        {"first not among them", 2, false, "4:other 0:w 1:ok"},
        {"other participants", 2, false, "0:w 1~:other"},
        {"other participants after it", 2, false, "0:w 1:ok 0~@0:other"},
        {"again after success", 2, false, "0:w 1:ok 0@0:a 1@0:a 0:w 0@0:slow"},
        {"asked again after success", 2, false, "0:w 1:ok 1=@0:a 0:w 1=@0:a"},
        {"late after failure", 2, false, "0:w X:x 1@0:ax 0@0:ax"},
        {"later after failures", 2, false,
         "0@0:w X:x 0@1:w X:x 0@2:w 1@0:ax 1@1:ax 1@2:ok"},
        {"too quick", 2, false, "0:w 1:ok 0@3:quick 0@1:w 1@2:quick"},
        {"too slow", 2, false, "0:w 1:ok 0:w 1:ok 0@0:slow 0@2:w 1@0:slow"},
        {"restarted", 2, false, "0:w 1:ok 0:w 1:ok 1'@0:slow 1@1:a"},
        {"restarted at once", 2, false, "0:w 1:ok 1'@0:a"},
        {"restarted while it runs", 2, false, "0:w 1:ok 0:w 1'@0:slow"},
        {"calls twice", 2, false, "0:w 0#:r 1:ok"},
        {"asked again", 2, false, "0:w 0=:w 0=:w 1:ok"},
        {"uncounted and back", 3, true, "0:w 1:w -1:y 2:w -1:n 1:ok"},
        {"uncounted, asked again", 3, true, "0:w 1:w -1:y 2:w 1=:ok"},
        {"uncounted before it came", 2, true, "0:w -1:n 1:ok"},
        {"all uncounted", 2, true, "0:w -0:y 1:w 0:ok"},
        {"restarted, joins what runs", 2, true, "0:w 1:ok 0:w 1:ok 0:w 1'@0:ok"},
        {"restarted, was counted", 2, true, "0:w 1:ok 0:w 0'@0:w 1@1:ok"},
        {"restarted, joins and asks again", 3, true,
         "0:w 1:w 2:ok 0@1:w 1'@0:w 1=@0:w 2@1:ok 1=@0:a 0@2:w 1=@0:a"},
        {"restarted, begins the next", 2, true, "0:w 1:ok 0:w 1:ok 1'@0:w 0@2:ok"},
        {"restarted after the first", 2, true, "0:w 1:ok 1'@0:a 1@1:w 0@1:ok"},
        {"cancel", 2, false, "0:w C0@0:y C0@1:n C1@0:n X:x C0@0:n"},
        {"cancel by who is gone", 2, true, "0:w -0:y C0@0:n"},
        {"cancel by who joined", 2, true,
         "0:w 1:ok 0:w 1:ok 1'@0:w C1@0:y C1@2:y C1@1:n"},
        {"beyond what is remembered", 2, false,
         "0@0:w X:x 0@1:w X:x 0@2:w X:x 0@3:w X:x 0@4:w X:x 0@5:w X:x 0@6:w X:x 0@7:w "
         "X:x 1@0:ax 0@8:w X:x 1@0:slow 1@1:ax"},
        {"beyond it and recoverable", 2, true,
         "0@0:w X:x 0@1:w X:x 0@2:w X:x 0@3:w X:x 0@4:w X:x 0@5:w X:x 0@6:w X:x 0@7:w "
         "X:x 0@8:w X:x 1@0:w 0@9:ok"},
        {"an unknown name begins anywhere", 2, false, "0@7:w 1@7:ok 0@7:a 0@6:slow"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct game game;

        game_begin(&game, rows[i].count, rows[i].recoverable);
        expect_play(&game, rows[i].steps);
        mu__barriers_done(&game.barriers);
    }
}

/* Sets may differ from one generation to the next: who did not take part in one is not
 * told its outcome, and has not missed it. */
TEST(test_changing_sets)
{
    struct game game;

    game_begin(&game, 2, true);
    expect_play(&game, "0:w 1:ok");
    game.count = 3;
    expect_play(&game, "0@1:w 2@0:w 1@1:ok 2@1:a 2@2:w");
    mu__barriers_done(&game.barriers);

    game_begin(&game, 2, false);
    expect_play(&game, "0:w 1:ok");
    game.count = 3;
    expect_play(&game, "0@1:w 2@0:w 1@1:ok 2@2:w 0@2:w 1@2:ok");
    game.count = 2;
    expect_play(&game, "0@3:w 1@3:ok");
    game.count = 3;
    expect_play(&game, "0@4:w 1@4:w 2@3:ok 2@3:slow 2'@0:slow");
    mu__barriers_done(&game.barriers);
}

/* Whoever parts from a generation before it is over has not missed it; whoever is there
 * to its end has, also if it never came. */
TEST(test_parted_has_missed_nothing)
{
    struct game game;

    game_begin(&game, 3, false);
    expect_play(&game, "0:w 1:w");
    mu__barrier_part(running(&game), 2);
    (void)mu__barriers_end(&game.barriers, running(&game), NULL, 0, 0);
    expect_play(&game, "2@0:w 0@1:w X:x 1@1:ax 2@0:slow 0@2:w 1@2:w 2@2:ok");
    mu__barriers_done(&game.barriers);
}

/* A task less, and a task more, while others wait. One that parts may have arrived. */
TEST(test_others_take_part)
{
    struct game game;
    struct mu__barrier *barrier;

    game_begin(&game, 4, true);
    assert_string_equal(arrived(&game, 0, "all", 0), "w");
    assert_string_equal(arrived(&game, 3, "all", 0), "w");
    barrier = running(&game);
    mu__barrier_part(barrier, 3);
    mu__barrier_part(barrier, 3);
    assert_true(mu__barriers_check(&game.barriers));
    assert_string_equal(arrived(&game, 1, "all", 0), "w");
    assert_false(mu__barrier_is_full(barrier));
    mu__barrier_part(barrier, 2);
    assert_true(mu__barrier_is_full(barrier));
    (void)mu__barriers_end(&game.barriers, barrier, NULL, 0, 0);
    assert_true(mu__barriers_check(&game.barriers));

    game.count = 2;
    game.players[0].token = game.players[1].token = 1;
    assert_string_equal(arrived(&game, 0, "all", 1), "w");
    assert_int_equal(mu__barrier_join(&game.barriers, barrier, 5), 0);
    assert_int_equal(mu__barrier_join(&game.barriers, barrier, 5), 0);
    assert_true(mu__barriers_check(&game.barriers));
    assert_string_equal(arrived(&game, 1, "all", 1), "w");
    assert_string_equal(arrived(&game, 5, "all", 0), "ok");
    assert_true(mu__barriers_check(&game.barriers));
    mu__barriers_done(&game.barriers);
}

/* Processes of a client have nothing to do with each other: the next one's first arrival
 * is for the next generation. The same one is told what it has missed, as others. */
TEST(test_begins_anew)
{
    for (int recoverable = 0; recoverable < 2; recoverable++) {
        struct game game;

        game_begin(&game, 2, recoverable == 1);
        game.anew = true;
        expect_play(&game, "0:w 1:ok 1=@0:a 1'@0:w 0'@0:ok 0=@0:a 0'@0:w 0'@0:w 1'@0:ok");
        mu__barriers_done(&game.barriers);
    }
}

/* What a former host ended is told to everybody; who has arrived here since has heard of
 * it. */
TEST(test_text)
{
    char text[MU__BARRIER_TEXT_MAX];
    char again[MU__BARRIER_TEXT_MAX];
    mu_error error = {.code = -MU_EDEADLINE,
                      .kind = MU_ERROR_LIMIT,
                      .task = "/job:ps/task:3",
                      .message = "words\nwith 3 lines\n"};
    struct mu__barriers other = {.seats = 0};
    struct game game;
    size_t size;

    game_begin(&game, 2, false);
    expect_play(&game, "0:w 1:ok 0:w");
    (void)mu__barriers_end(&game.barriers, running(&game), &error, 7, 0);
    expect_play(&game, "0@2:w 1@2:ok");
    size = mu__barrier_write(running(&game), text);
    assert_string_equal(text, "2 0 0 0 - 0 \n"
                              "1 7 4 5 /job:ps/task:3 19 words\nwith 3 lines\n\n"
                              "0 0 0 0 - 0 \n");
    assert_int_equal(
        mu__barriers_read(&other, name, (struct mu__view){text, (uint32_t)size}, 0), 0);
    mu__barriers_done(&game.barriers);
    game.barriers = other;
    assert_true(mu__barriers_check(&game.barriers));
    assert_int_equal(mu__barrier_write(running(&game), again), size);
    assert_string_equal(again, text);
    assert_string_equal(mu__barrier_outcome(running(&game), 1)->message, error.message);
    assert_null(mu__barrier_outcome(running(&game), 3));
    expect_play(&game, "0@0:a 0@1:ax 0@3:w 1@2:a 0#@2:slow 1@3:ok 1@2:slow 0@4:w");
    mu__barriers_done(&game.barriers);
}

/* An arrival of a task that was restarted, which said generation 0, counts for the third
 * one. Asked again of another host, it is still the third one's. */
TEST(test_joined)
{
    struct game game;
    struct mu__barriers other = {.seats = 0};
    const struct mu__barrier_outcome *outcome = NULL;
    char text[MU__BARRIER_TEXT_MAX];
    struct mu__barrier_arrival arrival = {.name = name,
                                          .set = "worker:0-1",
                                          .slot = 0,
                                          .recoverable = true,
                                          .incarnation = 77,
                                          .token = 5};
    struct mu__barrier_seat *seat;
    uint64_t replaced = 0;
    size_t size;

    game_begin(&game, 2, true);
    expect_play(&game, "0:w 1:ok 0:w 1:ok 1:w");
    arrival.set = running(&game)->set;
    assert_int_equal(mu__barriers_arrive(&game.barriers, &arrival, &outcome, &replaced),
                     MU__ARRIVED_LAST);
    seat = mu__barrier_seat(running(&game), 0);
    assert_int_equal(seat->awaited, 0);
    assert_int_equal(seat->generation, 2);
    (void)mu__barriers_end(&game.barriers, running(&game), NULL, 0, 0);
    size = mu__barrier_write(running(&game), text);
    assert_int_equal(
        mu__barriers_read(&other, name, (struct mu__view){text, (uint32_t)size}, 0), 0);
    assert_int_equal(mu__barriers_arrive(&other, &arrival, &outcome, &replaced),
                     MU__ARRIVED_AGAIN);
    assert_int_equal(outcome->generation, 2);
    arrival.token = 6;
    assert_int_equal(mu__barriers_arrive(&other, &arrival, &outcome, &replaced),
                     MU__ARRIVED_AGAIN);
    assert_int_equal(outcome->generation, 0);
    mu__barriers_done(&other);
    mu__barriers_done(&game.barriers);
}

/* What a former host ended, with revisions 10, 20 and 30, is told to processes that were
 * there; others join, but for the very last one. One that is not recoverable joins only
 * where it began after all of them. */
TEST(test_since)
{
    static const struct {
        uint64_t since;
        uint64_t generation;
        bool recoverable;
        bool anew;
        enum mu__arrived how;
    } rows[] = {
        {1, 0, false, false, MU__ARRIVED_AGAIN},
        {10, 0, false, false, MU__ARRIVED_AGAIN},
        {11, 0, true, false, MU__ARRIVED_FIRST},
        {11, 0, false, false, MU__ARRIVED_SLOW},
        {11, 1, true, false, MU__ARRIVED_AGAIN},
        {20, 1, false, false, MU__ARRIVED_AGAIN},
        {21, 1, true, false, MU__ARRIVED_FIRST},
        {21, 1, false, false, MU__ARRIVED_SLOW},
        {30, 2, false, false, MU__ARRIVED_AGAIN},
        {30, 2, false, true, MU__ARRIVED_AGAIN},
        {31, 0, true, false, MU__ARRIVED_FIRST},
        {31, 1, false, false, MU__ARRIVED_FIRST},
        {31, 2, false, false, MU__ARRIVED_AGAIN},
        {31, 2, false, true, MU__ARRIVED_FIRST},
        {31, 3, false, false, MU__ARRIVED_FIRST},
        {31, 4, true, false, MU__ARRIVED_QUICK},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct mu__barrier_arrival arrival = {.name = name,
                                                    .set = "worker:0-1",
                                                    .generation = rows[i].generation,
                                                    .recoverable = rows[i].recoverable,
                                                    .anew = rows[i].anew,
                                                    .since = rows[i].since,
                                                    .incarnation = 1,
                                                    .token = 1};
        const struct mu__barrier_outcome *outcome = NULL;
        struct mu__barriers barriers = {.seats = 0};
        uint64_t replaced = 0;
        enum mu__arrived how;

        assert_int_equal(
            mu__barriers_read(
                &barriers, name,
                mu__view_str("2 30 0 0 - 0 \n1 20 0 0 - 0 \n0 10 0 0 - 0 \n"), 0),
            0);
        how = mu__barriers_arrive(&barriers, &arrival, &outcome, &replaced);
        if (how != rows[i].how)
            fail_msg("row %zu: %d", i, (int)how);
        if (how == MU__ARRIVED_AGAIN)
            assert_int_equal(outcome->generation, rows[i].generation);
        mu__barriers_done(&barriers);
    }
}

/* What a former host ended last, with revision 30, and may be held back from whom. */
TEST(test_late)
{
    static const struct {
        const char *text;
        uint64_t since;
        uint64_t generation;
        uint64_t quiet;
        bool anew;
        bool is_late;
    } rows[] = {
        {"0 30 0 0 - 0 \n", 31, 0, 0, false, true},
        {"0 30 0 0 - 0 \n", 30, 0, 0, false, false},  /* it was there */
        {"0 30 0 0 - 0 \n", 31, 0, 30, false, false}, /* begins anew in any case */
        {"0 30 0 0 - 0 \n", 31, 0, 29, false, true},
        {"0 30 0 0 - 0 \n", 31, 0, 0, true, false},
        {"0 30 0 0 - 0 \n", 31, 1, 0, false, false},
        {"0 30 4 0 - 1 x\n", 31, 0, 0, false, false}, /* a failure is told */
        {"2 30 0 0 - 0 \n", 31, 2, 0, false, true},
        {"2 30 0 0 - 0 \n", 31, 0, 0, false, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct mu__barrier_arrival arrival = {.name = name,
                                                    .generation = rows[i].generation,
                                                    .since = rows[i].since,
                                                    .anew = rows[i].anew};
        struct mu__barriers barriers = {.quiet_revision = rows[i].quiet};

        assert_int_equal(
            mu__barriers_read(&barriers, name, mu__view_str(rows[i].text), 0), 0);
        if (mu__barrier_is_late(&barriers, mu__barriers_find(&barriers, name),
                                &arrival) != rows[i].is_late)
            fail_msg("row %zu", i);
        mu__barriers_done(&barriers);
    }
}

/* One of two tasks comes to what is held. It ends without the other, with the success
 * that was read, as one of this table. */
TEST(test_held)
{
    static const uint32_t slots[] = {0, 1};
    const struct mu__barrier_arrival arrival = {.name = name,
                                                .set = "worker:0-1",
                                                .recoverable = true,
                                                .is_held = true,
                                                .since = 31,
                                                .incarnation = 7,
                                                .token = 1};
    const struct mu__barrier_outcome *outcome = NULL;
    char text[MU__BARRIER_TEXT_MAX];
    struct mu__barriers barriers = {.seats = 0};
    struct mu__barrier *barrier;
    uint64_t replaced = 0;
    mu_error error;

    assert_int_equal(
        mu__barriers_read(&barriers, name, mu__view_str("0 30 0 0 - 0 \n"), 0), 0);
    assert_int_equal(mu__barriers_arrive(&barriers, &arrival, &outcome, &replaced),
                     MU__ARRIVED_FIRST);
    assert_int_equal(
        mu__barriers_begin(&barriers, &arrival, slots, 2, 0, 0, &error, &barrier), 0);
    assert_true(barrier->held);
    assert_int_equal(mu__barriers_arrive(&barriers, &arrival, &outcome, &replaced),
                     MU__ARRIVED_WAITS);
    assert_true(mu__barriers_check(&barriers));
    assert_int_equal(barrier->generation, 0);
    (void)mu_error_set(&error, -MU_EDEADLINE, "too late");
    outcome = mu__barriers_end(&barriers, barrier, &error, 40, 0);
    assert_int_equal(outcome->code, 0);
    assert_false(barrier->held);
    assert_true(mu__barriers_check(&barriers));
    assert_int_equal(barriers.running.count + barriers.begun.count, 0);
    text[mu__barrier_write(barrier, text)] = '\0';
    assert_string_equal(text, "0 40 0 0 - 0 \n");
    assert_int_equal(mu__barriers_arrive(&barriers, &arrival, &outcome, &replaced),
                     MU__ARRIVED_AGAIN);
    assert_int_equal(outcome->generation, 0);
    mu__barriers_done(&barriers);
}

TEST(test_bad_texts)
{
    static const char *const rows[] = {
        /* clang-format off */
        "x", "1", "1 5", "1 5 0", "1 5 0 0 - 0", "1 5 0 0 - 0 ", "1 5 0 0 - 1 \n",
        "1 5 0 0 - 0 x\n", "1 5 256 0 - 0 \n", "1 5 0 0 - 600 \n", "1 x 0 0 - 0 \n",
        "99999999999999999999 5 0 0 - 0 \n", "1 99999999999999999999 0 0 - 0 \n",
        "1 5 0 0 - 0 \n1 5 0 0 - 0 \n", "1 5 0 0 - 0 \n2 5 0 0 - 0 \n",
        "-1 5 0 0 - 0 \n", " 1 5 0 0 - 0 \n", "1 5 0 0 - 0 \n#", "1 5 0 0 - 0 \n+\n",
        "1 5 0 0 - 0 \n+7\n", "1 0 0 - 0 \n",
        ("1 5 0 0 - 0 \n+1 \n+2 \n+3 \n+4 \n+5 \n+6 \n+7 \n+8 \n+9 \n"),
        ("9 9 0 0 - 0 \n8 8 0 0 - 0 \n7 7 0 0 - 0 \n6 6 0 0 - 0 \n5 5 0 0 - 0 \n"
         "4 4 0 0 - 0 \n3 3 0 0 - 0 \n2 2 0 0 - 0 \n1 1 0 0 - 0 \n"),
        /* clang-format on */
    };
    struct mu__barriers barriers = {.seats = 0};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (mu__barriers_read(&barriers, name, mu__view_str(rows[i]), 0) != -MU_EINVALID)
            fail_msg("read: \"%s\"", rows[i]);
        assert_null(mu__barriers_find(&barriers, name));
    }
    assert_int_equal(mu__barriers_read(&barriers, name, (struct mu__view){NULL, 0}, 0),
                     -MU_EINVALID);
    mu__barriers_done(&barriers);
}

/* ---- bounds ---- */

static uint64_t dropped_count;

static char dropped_last[32];

static void on_dropped(void *user, const struct mu__barrier *barrier)
{
    (void)user;
    dropped_count++;
    (void)snprintf(dropped_last, sizeof dropped_last, "%s", barrier->name);
}

/* One task goes through a barrier of that name, or begins it. */
static int go_through(struct mu__barriers *barriers, const char *text, uint32_t count,
                      uint64_t now_ms, mu_error *ret_error)
{
    static uint32_t slots[MU__BARRIER_SEATS_MAX < 4096 ? MU__BARRIER_SEATS_MAX : 4096];
    const struct mu__barrier_arrival arrival = {
        .name = mu__view_str(text), .set = "worker:0", .incarnation = 1, .token = 1};
    const struct mu__barrier_outcome *outcome = NULL;
    struct mu__barrier *barrier;
    uint64_t replaced;
    int rv;

    for (uint32_t i = 0; i < count; i++)
        slots[i] = i;
    rv = mu__barriers_begin(barriers, &arrival, slots, count, 0, now_ms, ret_error,
                            &barrier);
    if (rv != 0)
        return rv;
    if (mu__barriers_arrive(barriers, &arrival, &outcome, &replaced) == MU__ARRIVED_LAST)
        (void)mu__barriers_end(barriers, barrier, NULL, 0, now_ms);
    return 0;
}

TEST(test_names_bound)
{
    struct mu__barriers barriers = {.dropped = on_dropped};
    char text[64];
    mu_error error;

    dropped_count = 0;
    for (unsigned i = 0; i < MU__BARRIERS_MAX; i++) {
        (void)snprintf(text, sizeof text, "b%u", i);
        assert_int_equal(go_through(&barriers, text, 1, 1000 + i, NULL), 0);
    }
    assert_int_equal(go_through(&barriers, "one more", 1, 1000 + MU__BARRIER_KEEP_MS - 1,
                                &error),
                     -MU_EEXHAUSTED);
    (void)snprintf(text, sizeof text, "0 barriers run and %u were over",
                   MU__BARRIERS_MAX);
    assert_non_null(strstr(error.message, text));
    assert_int_equal(dropped_count, 0);
    /* The one that is over longest goes, when it was long enough. */
    assert_int_equal(
        go_through(&barriers, "one more", 1, 1000 + MU__BARRIER_KEEP_MS, NULL), 0);
    assert_int_equal(dropped_count, 1);
    assert_string_equal(dropped_last, "b0");
    assert_null(mu__barriers_find(&barriers, mu__view_str("b0")));
    assert_true(mu__barriers_check(&barriers));
    mu__barriers_done(&barriers);
}

/* Two take part in each barrier, and only the one that begins it is there. */
static int begin_for_two(struct mu__barriers *barriers, const char *text, uint32_t slot,
                         mu_error *ret_error, struct mu__barrier **ret_barrier)
{
    static const uint32_t slots[2] = {0, 1};
    const struct mu__barrier_arrival arrival = {.name = mu__view_str(text),
                                                .set = "worker:0-1",
                                                .slot = slot,
                                                .incarnation = 1,
                                                .token = 1};

    return mu__barriers_begin(barriers, &arrival, slots, 2, 0, 0, ret_error, ret_barrier);
}

/* What one task has begun and nobody has ended leaves room for others. */
TEST(test_begun_bound)
{
    const mu_error late = {.code = -MU_EDEADLINE};
    struct mu__barriers barriers = {.dropped = on_dropped};
    struct mu__barrier *barrier = NULL;
    char text[32];
    mu_error error;

    for (unsigned i = 0; i < MU__BARRIERS_BEGUN_MAX; i++) {
        (void)snprintf(text, sizeof text, "b%u", i);
        assert_int_equal(begin_for_two(&barriers, text, 0, NULL, &barrier), 0);
    }
    assert_int_equal(begin_for_two(&barriers, "one more", 0, &error, &barrier),
                     -MU_EEXHAUSTED);
    (void)snprintf(text, sizeof text, "%d barriers run that", MU__BARRIERS_BEGUN_MAX);
    assert_non_null(strstr(error.message, text));
    assert_null(mu__barriers_find(&barriers, mu__view_str("one more")));
    assert_int_equal(begin_for_two(&barriers, "another's", 1, &error, &barrier), 0);
    (void)mu__barriers_end(&barriers, mu__barriers_find(&barriers, mu__view_str("b0")),
                           &late, 0, 0);
    assert_int_equal(begin_for_two(&barriers, "b0", 0, &error, &barrier), 0);
    assert_int_equal(begin_for_two(&barriers, "one more", 0, &error, &barrier),
                     -MU_EEXHAUSTED);
    assert_true(mu__barriers_check(&barriers));
    mu__barriers_done(&barriers);
}

TEST(test_seats_bound)
{
    enum { EACH = MU__BARRIER_SEATS_MAX / 8 < 4096 ? MU__BARRIER_SEATS_MAX / 8 : 4096 };
    struct mu__barriers barriers = {.dropped = on_dropped};
    char text[32];
    mu_error error;

    for (unsigned i = 0; i < MU__BARRIER_SEATS_MAX / EACH; i++) {
        (void)snprintf(text, sizeof text, "b%u", i);
        assert_int_equal(go_through(&barriers, text, EACH, 0, NULL), 0);
    }
    /* All of them run: none can go, however long it takes. */
    assert_int_equal(go_through(&barriers, "one more", 1, 1000000, &error),
                     -MU_EEXHAUSTED);
    assert_null(mu__barriers_find(&barriers, mu__view_str("one more")));
    assert_true(mu__barriers_check(&barriers));
    mu__barriers_done(&barriers);
}

TEST_PROGRAM()
