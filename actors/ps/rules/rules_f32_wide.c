/* The loops of rules_f32.c for processors with AVX2, which do eight elements at once:
 * with the same bits, as each operation is rounded by itself at any width. */
#include "actors/ps/rules/internal.h"

#ifdef __AVX2__
#define REAL float
#define ROOT sqrtf
#define BITS uint32_t
#define EXPONENT UINT32_C(0x7F800000)
#define LOOPS mu__rule_loops_f32_wide

#include "actors/ps/rules/rule_loops.h"
#endif
