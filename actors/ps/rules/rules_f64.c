#define REAL double
#define ROOT sqrt
#define BITS uint64_t
#define EXPONENT UINT64_C(0x7FF0000000000000)
#define LOOPS mu__rule_loops_f64

#include "actors/ps/rules/rule_loops.h"
