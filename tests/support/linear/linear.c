/* The search of Wing and Gong, with the memory of states that Lowe added.
 *
 * Begins and ends of operations stand in one list in order. An operation may be next when
 * no end stands before its begin. When it is taken, its begin and end leave the list; an
 * end that comes first in the list, of an operation that was not taken, says that this is
 * a wrong way. Operations without an end need not be taken. A state is which ones were
 * taken and what the keys then are; one that was seen before is not searched again.
 *
 * Three things keep it short. Changes whose revisions were told come in the order of
 * these. One that only looks, and has an answer, is taken as soon as it can be: where it
 * can be later, it can be now. And those without an end are tried last. */
#include "tests/support/linear/state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- A history that is being written ---- */

void linear_done(struct linear *linear)
{
    free(linear->ops);
    *linear = (struct linear){.count = 0};
}

size_t linear_begin(struct linear *linear, const struct linear_op *op)
{
    if (linear->count == linear->capacity) {
        linear->capacity = linear->capacity == 0 ? 64 : 2 * linear->capacity;
        linear->ops = realloc(linear->ops, linear->capacity * sizeof *linear->ops);
        assert(linear->ops != NULL);
    }
    linear->ops[linear->count] = *op;
    linear->ops[linear->count].begin = ++linear->moment;
    linear->ops[linear->count].end = LINEAR_UNKNOWN;
    return linear->count++;
}

void linear_end(struct linear *linear, size_t number, int code, int64_t answer,
                uint64_t revision)
{
    struct linear_op *op = &linear->ops[number];

    assert(op->end == LINEAR_UNKNOWN);
    op->end = ++linear->moment;
    op->code = code;
    op->number = answer;
    op->revision = revision;
}

/* As a get of which nothing is known: it changes nothing. */
void linear_drop(struct linear *linear, size_t number)
{
    assert(linear->ops[number].end == LINEAR_UNKNOWN);
    linear->ops[number].kind = LINEAR_GET;
}

/* ---- The list of begins and ends ---- */

struct event {
    const struct linear_op *op;
    uint64_t moment;
    unsigned number; /* of the operation among those of the keys */
    bool is_end;
    unsigned rank; /* among the revisions of changes, from 1; 0: was not told */
    struct event *next;
    struct event *prev;
    struct event *match; /* the other one of the operation; NULL: no end */
};

struct taken {
    struct event *begin;
    bool is_only_way;
    struct linear_state before;
};

enum { KEY_BYTES = 17, WORDS_MAX = 512 }; /* of a state: its keys, and 64 bits each */

struct search {
    struct event *events;
    struct event head;
    unsigned ops_count;
    unsigned ends_left;
    struct linear_state state;
    uint64_t *bits; /* of the operations that were taken */
    unsigned words;
    struct taken *taken;
    unsigned depth;
    unsigned deepest;
    unsigned ranks_taken;
    size_t states_max;

    /* Open addressing; an entry is a state and `words` of bits. */
    unsigned char *seen;
    size_t seen_size;
    size_t seen_count;
    size_t entry_bytes;
};

/* Of equal moments begins come first: such operations overlap. */
static int compare_events(const void *a, const void *b)
{
    const struct event *left = a;
    const struct event *right = b;

    if (left->moment != right->moment)
        return left->moment < right->moment ? -1 : 1;
    if (left->is_end != right->is_end)
        return left->is_end ? 1 : -1;
    return left->number < right->number ? -1 : left->number > right->number;
}

static void lift(struct event *event)
{
    event->prev->next = event->next;
    if (event->next != NULL)
        event->next->prev = event->prev;
}

static void put_back(struct event *event)
{
    event->prev->next = event;
    if (event->next != NULL)
        event->next->prev = event;
}

static void link_events(struct search *s, size_t count)
{
    struct event **begins = calloc(s->ops_count, sizeof(struct event *));
    struct event *last = &s->head;

    assert(begins != NULL);
    qsort(s->events, count, sizeof *s->events, compare_events);
    for (size_t i = 0; i < count; i++) {
        struct event *event = &s->events[i];

        last->next = event;
        event->prev = last;
        event->next = NULL;
        last = event;
        if (!event->is_end) {
            begins[event->number] = event;
            continue;
        }
        event->match = begins[event->number];
        event->match->match = event;
        s->ends_left++;
    }
    free(begins);
}

/* ---- States that were seen ---- */

static size_t hash_of(const unsigned char *entry, size_t size)
{
    uint64_t hash = size;
    uint64_t word;

    for (size_t i = 0; i < size; i += sizeof word) {
        word = 0;
        memcpy(&word, entry + i, size - i < sizeof word ? size - i : sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return (size_t)hash;
}

/* The first byte says that it is in use. */
static unsigned char *place_of(const struct search *s, const unsigned char *entry)
{
    size_t i = hash_of(entry, s->entry_bytes) & (s->seen_size - 1);

    while (s->seen[i * s->entry_bytes] != 0 &&
           memcmp(s->seen + i * s->entry_bytes, entry, s->entry_bytes) != 0)
        i = (i + 1) & (s->seen_size - 1);
    return s->seen + i * s->entry_bytes;
}

static void grow_seen(struct search *s)
{
    unsigned char *old = s->seen;
    size_t old_size = s->seen_size;

    s->seen_size = old_size == 0 ? 1024 : 2 * old_size;
    s->seen = calloc(s->seen_size, s->entry_bytes);
    assert(s->seen != NULL);
    for (size_t i = 0; i < old_size; i++)
        if (old[i * s->entry_bytes] != 0)
            memcpy(place_of(s, old + i * s->entry_bytes), old + i * s->entry_bytes,
                   s->entry_bytes);
    free(old);
}

static void pack_state(const struct search *s, const struct linear_state *state,
                       unsigned char *out)
{
    for (unsigned i = 0; i < state->count; i++) {
        const struct linear_key *key = &state->keys[i];

        *out = (unsigned char)(1 + key->there + 2 * key->exact);
        memcpy(out + 1, &key->value, 8);
        memcpy(out + 9, &key->revision, 8);
        out += KEY_BYTES;
    }
    memcpy(out, s->bits, s->words * sizeof s->bits[0]);
}

/* Note what was taken with a state; false: it was seen before. */
static bool note_new(struct search *s, const struct linear_state *state)
{
    unsigned char entry[KEY_BYTES * LINEAR_TOGETHER_MAX + 8 * WORDS_MAX];
    unsigned char *place;

    if (2 * s->seen_count >= s->seen_size)
        grow_seen(s);
    pack_state(s, state, entry);
    place = place_of(s, entry);
    if (place[0] != 0)
        return false;
    memcpy(place, entry, s->entry_bytes);
    s->seen_count++;
    return true;
}

/* ---- The search ---- */

static void take(struct search *s, struct event *begin, const struct linear_state *after)
{
    s->taken[s->depth++] = (struct taken){
        begin, linear_is_look(begin->op) && linear_is_same(&s->state, after), s->state};
    if (s->depth > s->deepest)
        s->deepest = s->depth;
    s->state = *after;
    s->ranks_taken += begin->rank != 0;
    if (begin->match != NULL) {
        lift(begin->match);
        s->ends_left--;
    }
    lift(begin);
}

static const struct taken *take_back(struct search *s)
{
    const struct taken *last = &s->taken[--s->depth];
    struct event *begin = last->begin;

    s->state = last->before;
    s->ranks_taken -= begin->rank != 0;
    s->bits[begin->number / 64] &= ~(UINT64_C(1) << begin->number % 64);
    put_back(begin);
    if (begin->match != NULL) {
        put_back(begin->match);
        s->ends_left++;
    }
    return last;
}

/* Take it if it can be next, and leads to what was not seen. */
static bool try_to_take(struct search *s, struct event *begin)
{
    struct linear_state after = s->state;
    uint64_t bit = UINT64_C(1) << begin->number % 64;

    if ((begin->rank != 0 && begin->rank != s->ranks_taken + 1) ||
        !linear_do(&after, begin->op))
        return false;
    s->bits[begin->number / 64] |= bit;
    if (note_new(s, &after)) {
        take(s, begin, &after);
        return true;
    }
    s->bits[begin->number / 64] &= ~bit;
    return false;
}

/* From there on to the first end; only those with an end, or only those without. */
static bool take_one(struct search *s, struct event *from, bool known)
{
    for (struct event *at = from; at != NULL && !at->is_end; at = at->next)
        if (linear_is_known(at->op) == known && try_to_take(s, at))
            return true;
    return false;
}

/* The next way after the last one that was taken, and was not the only one. */
static bool turn_back(struct search *s)
{
    while (s->depth > 0) {
        const struct taken *last = take_back(s);
        bool known = linear_is_known(last->begin->op);

        if (last->is_only_way)
            continue;
        if (take_one(s, last->begin->next, known) ||
            (known && take_one(s, s->head.next, false)))
            return true;
    }
    return false;
}

static enum linear_verdict search(struct search *s)
{
    while (s->ends_left > 0) {
        if (s->seen_count > s->states_max)
            return LINEAR_UNDECIDED;
        if (!take_one(s, s->head.next, true) && !take_one(s, s->head.next, false) &&
            !turn_back(s))
            return LINEAR_BAD;
    }
    return LINEAR_GOOD;
}

/* ---- Keys that belong together ---- */

static void add_events(struct search *s, const struct linear_op *op, size_t *count)
{
    s->events[(*count)++] =
        (struct event){.op = op, .moment = op->begin, .number = s->ops_count};
    if (linear_is_known(op))
        s->events[(*count)++] = (struct event){
            .op = op, .moment = op->end, .number = s->ops_count, .is_end = true};
    s->ops_count++;
}

static int compare_revisions(const void *a, const void *b)
{
    const struct event *const *left = a;
    const struct event *const *right = b;
    uint64_t one = (*left)->op->revision;
    uint64_t other = (*right)->op->revision;

    return one < other ? -1 : one > other;
}

static void rank_changes(struct search *s, size_t count)
{
    struct event **changes = calloc(s->ops_count, sizeof(struct event *));
    unsigned found = 0;

    assert(changes != NULL);
    for (size_t i = 0; i < count; i++)
        if (!s->events[i].is_end && s->events[i].op->revision != 0 &&
            linear_is_change(s->events[i].op))
            changes[found++] = &s->events[i];
    qsort(changes, found, sizeof(struct event *), compare_revisions);
    for (unsigned i = 0; i < found; i++)
        changes[i]->rank = i + 1;
    free(changes);
}

static void search_begin(struct search *s, const struct linear_op *ops, size_t count,
                         const struct linear_state *keys)
{
    size_t events_count = 0;

    *s = (struct search){.state = *keys};
    s->events = calloc(2 * count, sizeof *s->events);
    assert(s->events != NULL);
    for (size_t i = 0; i < count; i++)
        if (linear_has_key(&s->state, linear_first_key(&ops[i])))
            add_events(s, &ops[i], &events_count);
    link_events(s, events_count);
    rank_changes(s, events_count);
    s->words = (s->ops_count + 63) / 64;
    assert(s->words <= WORDS_MAX);
    s->bits = calloc(s->words, sizeof s->bits[0]);
    s->taken = calloc(s->ops_count, sizeof *s->taken);
    s->entry_bytes = KEY_BYTES * (size_t)keys->count + 8 * (size_t)s->words;
    assert(s->bits != NULL && s->taken != NULL);
}

static void search_end(struct search *s)
{
    free(s->events);
    free(s->bits);
    free(s->taken);
    free(s->seen);
}

static const char *const kind_names[] = {"get",       "put",    "insert",  "compare",
                                         "increment", "delete", "transact"};
static const char *const part_names[] = {
    "if revision", "if absent", "if present", "if value", "put", "increment", "delete"};

static size_t explain_op(const struct linear_op *op, char *why, size_t size)
{
    size_t used =
        (size_t)snprintf(why, size,
                         "%s value %" PRId64 " expected %" PRIu64 " from %" PRIu64
                         " to %" PRId64 ": code %d number %" PRId64 " revision %" PRIu64
                         "\n",
                         kind_names[op->kind], op->value, op->expected, op->begin,
                         (int64_t)op->end, op->code, op->number, op->revision);

    for (unsigned i = 0; i < op->parts_count && used < size; i++)
        used += (size_t)snprintf(why + used, size - used,
                                 "    %s of %u value %" PRId64 " expected %" PRIu64 "\n",
                                 part_names[op->parts[i].kind], op->parts[i].key,
                                 op->parts[i].value, op->parts[i].expected);
    return used;
}

static void explain(const struct search *s, const struct linear_op *ops, size_t count,
                    char *why, size_t size)
{
    size_t used =
        (size_t)snprintf(why, size,
                         "key %u%s is not linearizable: at most %u "
                         "of %u operations have an order\n",
                         s->state.keys[0].key, s->state.count > 1 ? ", with others," : "",
                         s->deepest, s->ops_count);

    for (size_t i = 0; i < count && used < size; i++)
        if (linear_has_key(&s->state, linear_first_key(&ops[i])))
            used += explain_op(&ops[i], why + used, size - used);
}

static enum linear_verdict check_keys(const struct linear_op *ops, size_t count,
                                      const struct linear_state *keys, size_t states_max,
                                      char *why, size_t why_size)
{
    struct search s;
    enum linear_verdict verdict;

    search_begin(&s, ops, count, keys);
    s.states_max = states_max;
    verdict = search(&s);
    if (verdict == LINEAR_BAD && why_size > 0)
        explain(&s, ops, count, why, why_size);
    search_end(&s);
    return verdict;
}

/* Each key of a history, with the number of those that it belongs to. */
struct groups {
    unsigned keys[LINEAR_KEYS_MAX];
    unsigned group[LINEAR_KEYS_MAX];
    unsigned count;
};

static unsigned note_key(struct groups *groups, unsigned key)
{
    unsigned i = 0;

    while (i < groups->count && groups->keys[i] != key)
        i++;
    if (i < groups->count)
        return i;
    assert(groups->count < LINEAR_KEYS_MAX);
    groups->keys[i] = key;
    groups->group[i] = i;
    groups->count++;
    return i;
}

static void join_groups(struct groups *groups, unsigned a, unsigned b)
{
    unsigned from = groups->group[b];

    for (unsigned i = 0; i < groups->count; i++)
        if (groups->group[i] == from)
            groups->group[i] = groups->group[a];
}

static void note_op(struct groups *groups, const struct linear_op *op)
{
    unsigned first = note_key(groups, linear_first_key(op));

    for (unsigned i = 0; i < op->parts_count; i++)
        join_groups(groups, first, note_key(groups, op->parts[i].key));
}

enum linear_verdict linear_judge(const struct linear_op *ops, size_t count,
                                 size_t states_max, char *why, size_t why_size)
{
    struct groups groups = {.count = 0};
    enum linear_verdict worst = LINEAR_GOOD;

    for (size_t i = 0; i < count; i++)
        note_op(&groups, &ops[i]);
    for (unsigned group = 0; group < groups.count && worst != LINEAR_BAD; group++) {
        struct linear_state keys = {.count = 0};
        enum linear_verdict verdict;

        for (unsigned i = 0; i < groups.count; i++)
            if (groups.group[i] == group)
                linear_add_key(&keys, groups.keys[i]);
        if (keys.count == 0)
            continue;
        verdict = check_keys(ops, count, &keys, states_max, why, why_size);
        if (verdict != LINEAR_GOOD)
            worst = verdict;
    }
    return worst;
}

bool linear_check(const struct linear_op *ops, size_t count, char *why, size_t why_size)
{
    return linear_judge(ops, count, SIZE_MAX, why, why_size) == LINEAR_GOOD;
}
