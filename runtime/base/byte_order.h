/* Integers of a fixed byte order in memory of any alignment. */
#ifndef MU_RUNTIME_BYTE_ORDER_H
#define MU_RUNTIME_BYTE_ORDER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Each load is one expression, which compilers turn into one instruction. */
static inline uint32_t mu__load_big32(const uint8_t *data)
{
    return (uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 |
           data[3];
}

static inline uint64_t mu__load_big64(const uint8_t *data)
{
    return (uint64_t)mu__load_big32(data) << 32 | mu__load_big32(data + 4);
}

static inline uint32_t mu__load_little32(const uint8_t *data)
{
    return data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 |
           (uint32_t)data[3] << 24;
}

static inline uint64_t mu__load_little64(const uint8_t *data)
{
    return mu__load_little32(data) | (uint64_t)mu__load_little32(data + 4) << 32;
}

static inline void mu__store_little32(uint8_t *out, uint32_t number)
{
    const uint8_t bytes[4] = {(uint8_t)number, (uint8_t)(number >> 8),
                              (uint8_t)(number >> 16), (uint8_t)(number >> 24)};

    memcpy(out, &bytes, sizeof bytes);
}

static inline void mu__store_little64(uint8_t *out, uint64_t number)
{
    mu__store_little32(out, (uint32_t)number);
    mu__store_little32(out + 4, (uint32_t)(number >> 32));
}

/* 1, 2, 4 or 8 bytes, most significant first. */
static inline uint64_t mu__load_big(const uint8_t *data, size_t size)
{
    uint64_t number = 0;

    for (size_t i = 0; i < size; i++)
        number = number << 8 | data[i];
    return number;
}

/* The same, least significant first. */
static inline uint64_t mu__load_little(const uint8_t *data, size_t size)
{
    uint64_t number = 0;

    for (size_t i = size; i > 0; i--)
        number = number << 8 | data[i - 1];
    return number;
}

static inline void mu__store_little(uint8_t *out, uint64_t number, size_t size)
{
    for (size_t i = 0; i < size; i++)
        out[i] = (uint8_t)(number >> (8 * i));
}

#endif
