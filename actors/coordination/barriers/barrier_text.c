/* The outcomes of a barrier as text, for the store: "GENERATION REVISION CODE KIND TASK
 * SIZE MESSAGE\n" for each outcome, then "+MARK \n" for each arrival that joined. */
#include "actors/coordination/barriers/barrier_names.h"

#include "actors/packing.h"
#include "runtime/base/sip_hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t mu__barrier_write(const struct mu__barrier *barrier,
                         char out[MU__BARRIER_TEXT_MAX])
{
    size_t used = 0;

    out[0] = '\0';
    for (const struct mu__barrier_outcome *at = barrier->outcomes; at != NULL;
         at = at->next) {
        const char *message = at->message == NULL ? "" : at->message;

        used += (size_t)snprintf(out + used, MU__BARRIER_TEXT_MAX - used,
                                 "%" PRIu64 " %" PRIu64 " %d %d %s %zu %s\n",
                                 at->generation, at->revision, -at->code, at->kind,
                                 at->task[0] == '\0' ? "-" : at->task, strlen(message),
                                 message);
        for (uint32_t i = 0; i < at->joined_count; i++)
            used += (size_t)snprintf(out + used, MU__BARRIER_TEXT_MAX - used,
                                     "+%" PRIu64 " \n", at->joined[i]);
    }
    return used;
}

/* The unread rest of a text; `bad` once it is of another form. */
struct outcome_reader {
    const char *at;
    const char *end;
    bool bad;
};

/* A decimal number and the space behind it. */
static uint64_t parse_outcome_number(struct outcome_reader *reader, uint64_t max)
{
    const char *begin = reader->at;
    uint64_t number = 0;

    while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9' &&
           reader->at - begin < 19)
        number = number * 10 + (uint64_t)(*reader->at++ - '0');
    if (reader->at == begin || reader->at == reader->end || *reader->at != ' ' ||
        number > max) {
        reader->bad = true;
        return 0;
    }
    reader->at++;
    return number;
}

/* Some bytes and the one behind them. */
static struct mu__view parse_outcome_bytes(struct outcome_reader *reader, size_t size,
                                           char behind)
{
    const char *begin = reader->at;

    if (reader->bad || (size_t)(reader->end - begin) <= size || begin[size] != behind) {
        reader->bad = true;
        return (struct mu__view){.size = 0};
    }
    reader->at += size + 1;
    return (struct mu__view){.data = begin, .size = (uint32_t)size};
}

static struct mu__view parse_outcome_word(struct outcome_reader *reader)
{
    size_t size = 0;

    while (reader->at + size < reader->end && reader->at[size] != ' ')
        size++;
    return parse_outcome_bytes(reader, size, ' ');
}

static void read_joined(struct outcome_reader *reader,
                        struct mu__barrier_outcome *outcome)
{
    while (!reader->bad && reader->at < reader->end && *reader->at == '+') {
        reader->at++;
        if (outcome->joined_count == MU__BARRIER_JOINED_MAX) {
            reader->bad = true;
            return;
        }
        outcome->joined[outcome->joined_count++] =
            parse_outcome_number(reader, UINT64_C(1) << 62);
        (void)parse_outcome_bytes(reader, 0, '\n');
    }
}

static struct mu__barrier_outcome *read_outcome(struct outcome_reader *reader)
{
    uint64_t generation = parse_outcome_number(reader, UINT64_C(1) << 62);
    uint64_t revision = parse_outcome_number(reader, UINT64_C(1) << 62);
    mu_error error = {.code = -(int)parse_outcome_number(reader, 255)};
    struct mu__barrier_outcome *outcome;
    struct mu__view task;
    size_t size;

    error.kind = (int)parse_outcome_number(reader, 255);
    task = parse_outcome_word(reader);
    size = (size_t)parse_outcome_number(reader, sizeof error.message - 1);
    mu__view_copy(parse_outcome_bytes(reader, size, '\n'), error.message,
                  sizeof error.message);
    if (!mu__view_is(task, "-"))
        mu__view_copy(task, error.task, sizeof error.task);
    if (reader->bad)
        return NULL;
    outcome = calloc(1, sizeof *outcome);
    if (outcome == NULL)
        return NULL;
    outcome->generation = generation;
    outcome->revision = revision;
    if (error.code != 0)
        mu__barrier_describe(outcome, &error);
    read_joined(reader, outcome);
    return outcome;
}

/* Generations descend. */
static int read_outcomes(struct outcome_reader *reader, struct mu__barrier *barrier)
{
    struct mu__barrier_outcome **end = &barrier->outcomes;
    uint64_t before = UINT64_MAX;

    for (int i = 0; reader->at < reader->end; i++) {
        struct mu__barrier_outcome *outcome = read_outcome(reader);

        if (outcome == NULL)
            return reader->bad ? -MU_EINVALID : -MU_ENOMEM;
        *end = outcome;
        end = &outcome->next;
        if (reader->bad || i == MU__BARRIER_OUTCOMES_MAX || outcome->generation >= before)
            return -MU_EINVALID;
        before = outcome->generation;
    }
    return barrier->outcomes == NULL ? -MU_EINVALID : 0;
}

int mu__barriers_read(struct mu__barriers *barriers, struct mu__view name,
                      struct mu__view text, uint64_t now_ms)
{
    struct outcome_reader reader = {.at = text.data};
    struct mu__barrier *barrier;
    int rv = mu__barrier_make_room(barriers, NULL, 0, now_ms, NULL);

    if (rv != 0)
        return rv;
    if (text.size == 0)
        return -MU_EINVALID;
    reader.end = reader.at + text.size;
    barrier = mu__barrier_new_barrier(barriers, name);
    if (barrier == NULL)
        return -MU_ENOMEM;
    rv = read_outcomes(&reader, barrier);
    if (rv != 0) {
        mu__barrier_discard(barriers, barrier);
        return rv;
    }
    barrier->generation = barrier->outcomes->generation + 1;
    barrier->read_end = barrier->generation;
    barrier->read_revision = barrier->outcomes->revision;
    barrier->since_ms = now_ms;
    mu__barrier_append(&barriers->over, barrier);
    return 0;
}
