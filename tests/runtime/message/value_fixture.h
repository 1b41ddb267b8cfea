/* Values: building, reading, comparing, freeing, packing; and bytes that are no value. */
#ifndef MU_TESTS_RUNTIME_MESSAGE_VALUE_FIXTURE_H
#define MU_TESTS_RUNTIME_MESSAGE_VALUE_FIXTURE_H

#include "runtime/message/codec.h"
#include "tests/support/golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>



#endif
