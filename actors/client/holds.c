#include "actors/client/holds.h"

#include <string.h>

_Static_assert(sizeof(struct mu__held *) == 8, "a hold is where a number goes");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers travel as they are");

static struct mu__held *hold_at(const struct mu__schedule *body, uint32_t i)
{
    struct mu__held *held;

    memcpy(&held, (const uint8_t *)body->inputs.data + (size_t)8 * i, sizeof held);
    return held;
}

static uint32_t count_schedule_inputs(const struct mu__schedule *body)
{
    return body->inputs.size / 8;
}

bool mu__holds_suffice(const struct mu__references *inputs)
{
    for (size_t i = 0; i < inputs->count; i++)
        if (!inputs->held[i]->is_per_worker)
            return false;
    return inputs->count > 0;
}

void mu__holds_take(struct mu__schedule *body, void *at,
                    const struct mu__references *inputs)
{
    for (size_t i = 0; i < inputs->count; i++)
        mu__held_ref(inputs->held[i]);
    memcpy(at, inputs->held, 8 * inputs->count);
    body->inputs = (struct mu__view){at, (uint32_t)(8 * inputs->count)};
    body->flags |= MU__CLOSURE_HOLDS;
}

uint32_t mu__holds_lost(const struct mu__schedule *body, uint16_t chief_epoch)
{
    uint32_t lost = 0;

    for (uint32_t i = 0; i < count_schedule_inputs(body); i++) {
        const struct mu__held *held = hold_at(body, i);

        if (held->number == 0 || held->chief_epoch != chief_epoch)
            lost++;
    }
    return lost;
}

void mu__holds_become_numbers(struct mu__schedule *body)
{
    uint8_t *at = (uint8_t *)(uintptr_t)body->inputs.data;

    for (uint32_t i = 0; i < count_schedule_inputs(body); i++) {
        struct mu__held *held = hold_at(body, i);

        memcpy(at + (size_t)8 * i, &held->number, sizeof held->number);
        mu__held_unref(held);
    }
}

void mu__holds_drop(struct mu__schedule *body)
{
    for (uint32_t i = 0; i < count_schedule_inputs(body); i++)
        mu__held_unref(hold_at(body, i));
    body->inputs = (struct mu__view){NULL, 0};
}
