/* Waiting gets and watches: by the key or directory that they wait for (their subject),
 * and by the node that requested them. */
#include "actors/coordination/keys/internal.h"
#include "actors/coordination/keys/key_map.h"
#include "actors/packing.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Subjects ---- */

struct subject *mu__coord_key_find_subject(const struct coord_reads *r,
                                           struct mu__view key)
{
    struct mu__key_value entry;
    struct subject *subject;

    if (!mu__key_values_find(r->subjects, key, &entry))
        return NULL;
    assert(entry.value.size == sizeof subject);
    memcpy(&subject, entry.value.data, sizeof subject);
    return subject;
}

static struct subject *add_subject(struct coord_reads *r, struct mu__view key)
{
    struct subject *subject = calloc(1, sizeof *subject + key.size);
    struct mu__key_value entry = {.key = key, .value = {&subject, sizeof subject}};

    if (subject == NULL)
        return NULL;
    subject->key_size = key.size;
    if (key.size > 0)
        memcpy(subject->key, key.data, key.size);
    if (mu__key_values_put(r->subjects, &entry, NULL) == 0)
        return subject;
    free(subject);
    return NULL;
}

void mu__coord_key_drop_subject(struct coord_reads *r, struct subject *subject)
{
    if (subject->count > 0)
        return;
    (void)mu__key_values_remove(r->subjects,
                                (struct mu__view){subject->key, subject->key_size});
    free(subject);
}

struct mu__view mu__coord_key_key_of(const struct coord_wait *wait)
{
    return (struct mu__view){wait->subject->key, wait->subject->key_size};
}

/* ---- Waits ---- */

static struct key_reader *find_reader(const struct coord_reads *r, uint32_t node)
{
    return mu__map_get(&r->readers, (uint64_t)node + 1);
}

static struct key_reader *add_reader(struct coord_reads *r, uint32_t node)
{
    struct key_reader *reader = calloc(1, sizeof *reader);

    if (reader == NULL)
        return NULL;
    reader->node = node;
    mu__map_seed(&reader->waits, r->secret);
    if (mu__map_set(&r->readers, (uint64_t)node + 1, reader) == 0)
        return reader;
    free(reader);
    return NULL;
}

void mu__coord_key_leave_pages(struct coord_reads *r, struct coord_wait *wait)
{
    if (wait->cursor == NULL)
        return;
    mu__list_remove(&r->pages, &wait->page_link);
    free(wait->cursor);
    wait->cursor = NULL;
}

void mu__coord_key_free_wait(struct coord_reads *r, struct coord_wait *wait)
{
    struct subject *subject = wait->subject;

    mu__coord_key_leave_pages(r, wait);
    mu__list_remove(&subject->waits[wait->kind], &wait->link);
    subject->count--;
    r->counts[wait->kind]--;
    mu__coord_key_drop_subject(r, subject);
    free(wait);
}

void mu__coord_key_end_wait(struct coord_reads *r, struct coord_wait *wait)
{
    (void)mu__map_remove(&wait->reader->waits, wait->token);
    mu__coord_key_free_wait(r, wait);
}

static int refuse_wait_memory(mu_error *error)
{
    return mu_error_set(error, -MU_ENOMEM, "no memory for a wait for a key");
}

/* A new subject is dropped when there is no memory for its wait. */
static int make_wait(struct coord_reads *r, struct key_reader *reader, uint64_t token,
                     enum wait_kind kind, struct mu__view key,
                     struct coord_wait **ret_wait)
{
    struct subject *subject = mu__coord_key_find_subject(r, key);
    struct coord_wait *wait = calloc(1, sizeof *wait);

    if (wait != NULL && subject == NULL)
        subject = add_subject(r, key);
    if (wait == NULL || subject == NULL) {
        free(wait);
        return -MU_ENOMEM;
    }
    if (mu__map_set(&reader->waits, token, wait) != 0) {
        free(wait);
        mu__coord_key_drop_subject(r, subject);
        return -MU_ENOMEM;
    }
    wait->token = token;
    wait->kind = kind;
    wait->reader = reader;
    wait->subject = subject;
    mu__list_append(&subject->waits[kind], &wait->link);
    subject->count++;
    r->counts[kind]++;
    *ret_wait = wait;
    return 0;
}

int mu__coord_key_add_wait(struct coord_reads *r, uint32_t node, uint64_t token,
                           enum wait_kind kind, struct mu__view key, mu_error *error,
                           struct coord_wait **ret_wait)
{
    struct key_reader *reader = find_reader(r, node);

    if (token == 0)
        return mu_error_set(error, -MU_EINVALID, "0 is no token");
    if (reader == NULL)
        reader = add_reader(r, node);
    if (reader == NULL)
        return refuse_wait_memory(error);
    if (mu__map_get(&reader->waits, token) != NULL)
        return -MU_EEXISTS;
    if (reader->waits.count >= COORD_WAITS_MAX)
        return mu_error_set(error, -MU_EEXHAUSTED,
                            "this task waits for keys %d times, "
                            "gets and watches together, as often as it may",
                            COORD_WAITS_MAX);
    if (make_wait(r, reader, token, kind, key, ret_wait) != 0)
        return refuse_wait_memory(error);
    return 0;
}

struct coord_wait *mu__coord_key_find_wait(const struct coord_reads *r, uint32_t node,
                                           uint64_t token)
{
    struct key_reader *reader = find_reader(r, node);

    return reader == NULL ? NULL : mu__map_get(&reader->waits, token);
}
