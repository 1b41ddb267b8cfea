#define REAL float
#define ROOT sqrtf
#define BITS uint32_t
#define EXPONENT UINT32_C(0x7F800000)
#define LOOPS mu__rule_loops_f32

#include "actors/ps/rules/rule_loops.h"
