/* Two real ends of a TLS session, and between them somebody who may do everything with
 * what they say: change, cut, repeat, exchange, leave out, play to the one what came from
 * it, say things of his own.
 *
 * Whatever he does, each end hears nothing but what the other has said, in order and from
 * the beginning; without the right credentials neither hears anything; and when he does
 * nothing, both are let in.
 *
 * The first byte says which identities meet. Each operation is a byte: what, and to which
 * side; some have one more. */
#include "tests/fuzz/tls_fuzzing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RECORDS_MAX = 64, OPERATIONS_MAX = 300, HEAD_BYTES = 5 };

struct record {
    uint8_t *data;
    size_t size;
};

/* What one end has said, in records. */
struct flight {
    struct record records[RECORDS_MAX];
    unsigned count;
    unsigned next; /* that has not been passed on */
};

struct meeting {
    struct end ends[2];       /* 0 connects, 1 listens */
    struct flight flights[2]; /* of that end */
    size_t step;
    bool is_changed; /* something was done to what they say */
};

static const struct {
    int client;
    int server;
    bool fits;
} meetings[] = {
    {OF_KEY, OF_KEY, true},          {OF_USE_KEY, OF_KEY, true},
    {OF_USE_KEY, OF_USE_KEY, true},  {OF_WORKER, OF_WORKER, true},
    {OF_CLIENT, OF_WORKER, true},    {OF_KEY, OF_OTHER_KEY, false},
    {OF_KEY, OF_USE_KEY, false},     {OF_KEY, OF_WORKER, false},
    {OF_WORKER, OF_KEY, false},      {OF_OTHER_CA, OF_WORKER, false},
    {OF_OTHER_KEY, OF_KEY, false},   {OF_WORKER, OF_EXPIRED, false},
    {OF_WORKER, OF_OTHER_CA, false},
};

/* ---- Records ---- */

static size_t record_size(const uint8_t *data, size_t left)
{
    size_t size = left < HEAD_BYTES ? left : HEAD_BYTES + (size_t)data[3] * 256 + data[4];

    return size < left ? size : left;
}

/* What the end has to say, into its flight. What has no place is lost, as on a line that
 * breaks. */
static void collect(struct meeting *m, int from)
{
    struct flight *flight = &m->flights[from];
    struct mu__buf *output = mu__tls_output(m->ends[from].tls);

    if (output == NULL)
        return;
    for (size_t at = 0; at < output->size;) {
        size_t size = record_size(output->data + at, output->size - at);

        if (flight->count < RECORDS_MAX) {
            struct record *record = &flight->records[flight->count++];

            record->data = malloc(size);
            must(record->data != NULL, "memory");
            memcpy(record->data, output->data + at, size);
            record->size = size;
        }
        at += size;
    }
    mu__buf_unref(output);
}

static void give(struct meeting *m, int to, const void *data, size_t size)
{
    end_feed(&m->ends[to], data, size, m->step);
    collect(m, to);
}

/* The next record from the other end, or NULL. */
static struct record *take(struct meeting *m, int to)
{
    struct flight *flight = &m->flights[!to];

    collect(m, !to);
    return flight->next == flight->count ? NULL : &flight->records[flight->next++];
}

static bool pass(struct meeting *m, int to)
{
    const struct record *record = take(m, to);

    if (record != NULL)
        give(m, to, record->data, record->size);
    return record != NULL;
}

/* ---- What is done to them ---- */

static void change(struct meeting *m, int to, uint8_t at, uint8_t with)
{
    const struct record *record = take(m, to);
    size_t place;

    if (record == NULL)
        return;
    place = (at & 128) != 0 ? (at & 127) % record->size
                            : (size_t)at * record->size / 128 % record->size;
    m->is_changed |= with != 0;
    record->data[place] ^= with;
    give(m, to, record->data, record->size);
}

static void cut(struct meeting *m, int to, uint8_t at)
{
    const struct record *record = take(m, to);

    m->is_changed = true;
    if (record != NULL)
        give(m, to, record->data, record->size * at / 256);
}

static void exchange(struct meeting *m, int to)
{
    struct record *first = take(m, to);
    struct record *second = take(m, to);

    m->is_changed = true;
    if (second != NULL)
        give(m, to, second->data, second->size);
    if (first != NULL)
        give(m, to, first->data, first->size);
}

/* Something that was said before, by the end `from`. */
static void again(struct meeting *m, int to, int from, uint8_t which)
{
    const struct flight *flight = &m->flights[from];

    m->is_changed = true;
    if (flight->count > 0)
        give(m, to, flight->records[which % flight->count].data,
             flight->records[which % flight->count].size);
}

/* How many bytes of `rest` it has used. */
static size_t operate(struct meeting *m, uint8_t what, const uint8_t *rest, size_t left)
{
    int to = (what & 16) != 0;
    uint8_t with = (uint8_t)(1U << (what >> 5));
    size_t size = left > 0 && rest[0] < left ? rest[0] : 0;

    switch (what & 15) {
    case 4:
    case 5:
        change(m, to, left > 0 ? rest[0] : 0, with);
        return 1;
    case 6:
        cut(m, to, left > 0 ? rest[0] : 0);
        return 1;
    case 7:
        exchange(m, to);
        return 0;
    case 8:
        m->is_changed = true;
        (void)take(m, to);
        return 0;
    case 9:
        again(m, to, !to, left > 0 ? rest[0] : 0);
        return 1;
    case 10:
        again(m, to, to, left > 0 ? rest[0] : 0);
        return 1;
    case 11:
        m->is_changed |= size > 0;
        give(m, to, rest + 1, size);
        return 1 + size;
    case 12:
    case 13:
        end_say(&m->ends[to], with);
        return 0;
    case 14:
        m->step = left > 0 ? 1U + rest[0] : 1;
        return 1;
    case 15:
        m->ends[to].pauses = !m->ends[to].pauses;
        return 0;
    default:
        (void)pass(m, to);
        return 0;
    }
}

/* ---- How it ends ---- */

/* Nobody is in the way any more. */
static void pass_all(struct meeting *m)
{
    bool moved = true;

    for (int i = 0; i < 2; i++)
        m->ends[i].pauses = false;
    while (moved) {
        moved = pass(m, 1);
        moved |= pass(m, 0);
    }
    for (int i = 0; i < 2; i++) {
        chance_of_now = &m->ends[i].chance;
        if (!m->ends[i].is_over)
            end_read(&m->ends[i]);
    }
}

static void check(const struct meeting *m, bool fits)
{
    for (int i = 0; i < 2; i++) {
        const struct end *end = &m->ends[i];
        const struct end *other = &m->ends[!i];

        must(end->heard <= other->said, "nothing is heard that was not said");
        must(fits || end->listens || end->heard == 0, "strangers hear nothing");
        must(fits || !mu__tls_is_open(m->ends[1].tls), "strangers are not let in");
        if (!fits || m->is_changed || m->flights[i].count == RECORDS_MAX ||
            m->flights[!i].count == RECORDS_MAX)
            continue;
        must(mu__tls_is_open(end->tls) && !end->is_over, "who fits is let in");
        must(end->heard == other->said, "all is heard");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct meeting m; /* chance is drawn from its ends after it, too */
    unsigned which = size == 0 ? 0 : data[0] % (sizeof meetings / sizeof meetings[0]);
    bool fits = meetings[which].fits;

    m = (struct meeting){.step = 100000};
    make_identities();
    end_open(&m.ends[0], identities[meetings[which].client], false);
    end_open(&m.ends[1], identities[meetings[which].server], true);
    for (size_t at = 1, i = 0; at < size && i < OPERATIONS_MAX; i++) {
        uint8_t what = data[at++];

        at += operate(&m, what, data + at, size - at);
    }
    pass_all(&m);
    check(&m, fits);
    for (int i = 0; i < 2; i++) {
        mu__tls_free(m.ends[i].tls);
        for (unsigned k = 0; k < m.flights[i].count; k++)
            free(m.flights[i].records[k].data);
    }
    return 0;
}
