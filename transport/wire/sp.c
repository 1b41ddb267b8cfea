#include "transport/wire/sp.h"

#include <string.h>

enum { IS_REQUEST = 0x80, COUNTS = 1, NOTE = 2 };

void mu__sp_greeting(uint8_t *out, uint8_t protocol)
{
    const uint8_t greeting[MU__SP_GREETING_BYTES] = {0, 'S', 'P', 0, 0, protocol, 0, 0};

    memcpy(out, greeting, sizeof greeting);
}

bool mu__sp_is_greeting(const uint8_t *greeting, uint8_t protocol)
{
    uint8_t expected[MU__SP_GREETING_BYTES];

    mu__sp_greeting(expected, protocol);
    return memcmp(greeting, expected, sizeof expected) == 0;
}

/* ---- prefaces ---- */

static void put_big(uint8_t *at, uint64_t number, size_t bytes)
{
    for (size_t i = bytes; i > 0; i--) {
        at[i - 1] = (uint8_t)number;
        number >>= 8;
    }
}

static uint64_t get_big(const uint8_t *at, size_t bytes)
{
    uint64_t number = 0;

    for (size_t i = 0; i < bytes; i++)
        number = number << 8 | at[i];
    return number;
}

void mu__sp_write(uint8_t *out, const struct mu__sp_preface *preface)
{
    put_big(out, 0, 4);
    out[0] = IS_REQUEST;
    out[3] = (uint8_t)((preface->counts ? COUNTS : 0) | (preface->is_note ? NOTE : 0));
    put_big(out + 4, preface->frames, 4);
    put_big(out + 8, preface->bytes, 8);
}

bool mu__sp_read(const uint8_t *in, struct mu__sp_preface *ret_preface)
{
    if (in[0] != IS_REQUEST || in[1] != 0 || in[2] != 0 || in[3] > (COUNTS | NOTE))
        return false;
    ret_preface->counts = (in[3] & COUNTS) != 0;
    ret_preface->is_note = (in[3] & NOTE) != 0;
    ret_preface->frames = (uint32_t)get_big(in + 4, 4);
    ret_preface->bytes = get_big(in + 8, 8);
    return true;
}

/* ---- what was taken ---- */

void mu__sp_take(struct mu__sp_taken *taken, const struct mu__sp_preface *preface,
                 size_t size)
{
    taken->counts = preface->counts;
    if (preface->is_note)
        return;
    taken->frames++;
    taken->bytes += size;
}

bool mu__sp_owes_note(const struct mu__sp_taken *taken)
{
    return taken->counts && (taken->frames - taken->said_frames >= MU__SP_NOTE_FRAMES ||
                             taken->bytes - taken->said_bytes >= MU__SP_NOTE_BYTES);
}

void mu__sp_say(struct mu__sp_taken *taken, struct mu__sp_preface *ret_preface)
{
    taken->said_frames = taken->frames;
    taken->said_bytes = taken->bytes;
    ret_preface->frames = taken->frames;
    ret_preface->bytes = taken->bytes;
}

/* ---- windows ---- */

bool mu__sp_may_send(const struct mu__sp_window *window)
{
    return window->frames - window->taken_frames < MU__SP_WINDOW_FRAMES &&
           window->bytes - window->taken_bytes < MU__SP_WINDOW_BYTES;
}

void mu__sp_sent(struct mu__sp_window *window, size_t size)
{
    window->frames++;
    window->bytes += size;
}

bool mu__sp_was_taken(struct mu__sp_window *window, const struct mu__sp_preface *preface)
{
    uint32_t frames = window->frames - window->taken_frames;

    if (preface->frames - window->taken_frames > frames ||
        preface->bytes - window->taken_bytes > window->bytes - window->taken_bytes)
        return false;
    window->taken_frames = preface->frames;
    window->taken_bytes = preface->bytes;
    return true;
}
