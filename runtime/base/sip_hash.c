#include "runtime/base/sip_hash.h"

#include <string.h>

struct sip {
    uint64_t v[4];
};

static uint64_t rotate_sip_word(uint64_t bits, unsigned by)
{
    return bits << by | bits >> (64 - by);
}

static inline void sip_round(struct sip *s)
{
    uint64_t *v = s->v;

    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate_sip_word(v[1], 13) ^ v[0];
    v[3] = rotate_sip_word(v[3], 16) ^ v[2];
    v[0] = rotate_sip_word(v[0], 32) + v[3];
    v[2] += v[1];
    v[3] = rotate_sip_word(v[3], 21) ^ v[0];
    v[1] = rotate_sip_word(v[1], 17) ^ v[2];
    v[2] = rotate_sip_word(v[2], 32);
}

static inline void sip_add(struct sip *s, uint64_t word)
{
    s->v[3] ^= word;
    sip_round(s);
    s->v[0] ^= word;
}

uint64_t mu__sip_hash(uint64_t secret, const void *data, size_t size)
{
    uint64_t other = rotate_sip_word(secret, 29) * UINT64_C(0x9e3779b97f4a7c15);
    const uint8_t *at = data;
    struct sip s = {
        {secret ^ UINT64_C(0x736f6d6570736575), other ^ UINT64_C(0x646f72616e646f6d),
         secret ^ UINT64_C(0x6c7967656e657261), other ^ UINT64_C(0x7465646279746573)}};
    uint64_t last = (uint64_t)size << 56;
    uint64_t hash;
    size_t i = 0;

    for (; i + 8 <= size; i += 8) {
        uint64_t word;

        memcpy(&word, at + i, 8);
        sip_add(&s, word);
    }
    if (i > 0 && i < size) {
        uint64_t word;

        memcpy(&word, at + size - 8, 8);
        last |= word >> (8 - size % 8) * 8;
        i = size;
    }
    for (unsigned shift = 0; i < size; i++, shift += 8)
        last |= (uint64_t)at[i] << shift;
    sip_add(&s, last);
    s.v[2] ^= 0xff;
    for (int i_end = 0; i_end < 3; i_end++)
        sip_round(&s);
    hash = s.v[0] ^ s.v[1] ^ s.v[2] ^ s.v[3];
    return hash == 0 ? 1 : hash;
}
