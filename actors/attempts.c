#include "actors/attempts.h"

#include <string.h>

struct mu__attempt mu__attempts_at(struct mu__view view, uint32_t bytes, uint32_t i)
{
    uint64_t numbers[3] = {0};

    memcpy(numbers, (const uint8_t *)view.data + (size_t)i * bytes, bytes);
    return (struct mu__attempt){
        .closure = numbers[0],
        .attempt = numbers[1] <= UINT32_MAX ? (uint32_t)numbers[1] : 0,
        .for_ms = numbers[2],
    };
}

uint8_t *mu__attempts_put(uint8_t *at, uint32_t bytes, const struct mu__attempt *attempt)
{
    const uint64_t numbers[3] = {attempt->closure, attempt->attempt, attempt->for_ms};

    memcpy(at, numbers, bytes);
    return at + bytes;
}
