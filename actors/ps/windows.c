#include "actors/ps/windows.h"

#include <stdlib.h>
#include <string.h>

enum { OF_WRITES = 0, OF_RUNS = 1 };

static uint64_t get_number(const uint8_t *at)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < 8; i++)
        number |= (uint64_t)at[i] << (8 * i);
    return number;
}

static uint8_t *put_number(uint8_t *at, uint64_t number)
{
    for (unsigned i = 0; i < 8; i++)
        at[i] = (uint8_t)(number >> (8 * i));
    return at + 8;
}

/* ---- One window ---- */

static uint64_t count_bit_bytes(uint64_t base, uint64_t end)
{
    return (end - base + 7) / 8;
}

static void put_bits(const struct mu__id_window *window, uint8_t *bits)
{
    for (uint64_t id = window->base; id < window->end; id++)
        if (mu__id_window_has(window, id))
            bits[(id - window->base) / 8] |= (uint8_t)(1u << (id - window->base) % 8);
}

uint8_t *mu__window_pack(const struct mu__id_window *window, struct mu__view *ret_view)
{
    uint32_t size = (uint32_t)count_bit_bytes(window->base, window->end);
    uint8_t *bits = calloc(1, (size_t)size + 1);

    if (bits == NULL)
        return NULL;
    put_bits(window, bits);
    *ret_view = (struct mu__view){bits, size};
    return bits;
}

static bool is_packed(const struct mu__packed_window *packed)
{
    return packed->end >= packed->base &&
           packed->bits.size >= (packed->end - packed->base) / 8;
}

/* Add the numbers to those of a window; those below its base are there. */
static int add_window_numbers(const struct mu__packed_window *packed,
                              struct mu__id_window *window)
{
    const uint8_t *bits = packed->bits.data;
    int rv = 0;

    mu__id_window_raise(window, packed->base);
    for (uint64_t i = 0; rv == 0 && i < (uint64_t)packed->bits.size * 8; i++)
        if ((bits[i / 8] >> i % 8 & 1) != 0 &&
            !mu__id_window_has(window, packed->base + i))
            rv = mu__id_window_add(window, packed->base + i);
    return rv;
}

int mu__window_unpack(const struct mu__packed_window *packed,
                      struct mu__id_window *window)
{
    if (!is_packed(packed))
        return -MU_EINVALID;
    mu__id_window_done(window);
    mu__id_window_init(window, packed->base);
    return add_window_numbers(packed, window);
}

/* ---- All windows of a partition ---- */

static uint64_t count_entry_bytes(uint64_t base, uint64_t end)
{
    return MU__WINDOW_HEAD_BYTES + (count_bit_bytes(base, end) + 7) / 8 * 8;
}

static uint8_t *put_entry(uint8_t *at, uint64_t kind, uint64_t origin,
                          const struct mu__id_window *window)
{
    at = put_number(at, kind);
    at = put_number(at, origin);
    at = put_number(at, window->base);
    at = put_number(at, window->end);
    put_bits(window, at);
    return at + (count_entry_bytes(window->base, window->end) - MU__WINDOW_HEAD_BYTES);
}

/* A window of runs that waits for its fence is not lost either. */
static bool has_origin(const struct mu__applied *applied)
{
    return applied->fenced || applied->origin != 0;
}

static uint64_t count_windows_bytes(const struct mu__applied *applied,
                                    const struct mu__writers *writers)
{
    uint64_t bytes = 0;

    if (has_origin(applied))
        bytes += count_entry_bytes(applied->window.base, applied->window.end);
    for (const struct mu__known_writer *writer = mu__writers_first(writers);
         writer != NULL; writer = mu__writers_next(writer))
        bytes += count_entry_bytes(writer->window.base, writer->window.end);
    return bytes;
}

uint8_t *mu__windows_pack(const struct mu__applied *applied,
                          const struct mu__writers *writers, uint64_t *ret_bytes)
{
    uint64_t bytes = count_windows_bytes(applied, writers);
    uint8_t *packed = calloc(1, (size_t)bytes + 1);
    uint8_t *at = packed;

    if (packed == NULL)
        return NULL;
    if (has_origin(applied))
        at = put_entry(at, OF_RUNS, applied->origin, &applied->window);
    for (const struct mu__list_node *node = writers->by_use.last; node != NULL;
         node = node->prev) {
        const struct mu__known_writer *writer =
            MU__LIST_ENTRY(node, struct mu__known_writer, node);

        at = put_entry(at, OF_WRITES, writer->origin, &writer->window);
    }
    *ret_bytes = bytes;
    return packed;
}

uint64_t mu__windows_entry_bytes(const uint8_t *bytes, uint64_t size)
{
    uint64_t base;
    uint64_t end;
    uint64_t entry;

    if (size < MU__WINDOW_HEAD_BYTES || get_number(bytes) > OF_RUNS ||
        get_number(bytes + 8) == 0)
        return 0;
    base = get_number(bytes + 16);
    end = get_number(bytes + 24);
    if (end < base || end - base > MU__ID_WINDOW_SPAN_MAX)
        return 0;
    entry = count_entry_bytes(base, end);
    return entry <= size ? entry : 0;
}

static int add_of_runs(struct mu__applied *applied, uint64_t origin,
                       const struct mu__packed_window *packed)
{
    if (!has_origin(applied)) {
        applied->origin = origin;
        mu__id_window_init(&applied->window, 1);
    }
    return applied->origin == origin ? add_window_numbers(packed, &applied->window) : 0;
}

static int add_window_entry(const uint8_t *bytes, struct mu__applied *applied,
                            struct mu__writers *writers)
{
    uint64_t origin = get_number(bytes + 8);
    struct mu__packed_window packed = {.base = get_number(bytes + 16),
                                       .end = get_number(bytes + 24)};
    struct mu__known_writer *writer;

    packed.bits = (struct mu__view){bytes + MU__WINDOW_HEAD_BYTES,
                                    (uint32_t)count_bit_bytes(packed.base, packed.end)};
    if (get_number(bytes) == OF_RUNS)
        return add_of_runs(applied, origin, &packed);
    writer = mu__writers_need(writers, origin);
    return writer == NULL ? -MU_ENOMEM : add_window_numbers(&packed, &writer->window);
}

int mu__windows_add(struct mu__view bytes, struct mu__applied *applied,
                    struct mu__writers *writers)
{
    const uint8_t *at = bytes.data;
    uint64_t left = bytes.size;

    while (left > 0) {
        uint64_t entry = mu__windows_entry_bytes(at, left);
        int rv = entry == 0 ? -MU_EINVALID : add_window_entry(at, applied, writers);

        if (rv != 0)
            return rv;
        at += entry;
        left -= entry;
    }
    return 0;
}
