/* Values: building, reading, comparing, freeing, packing; and bytes that are no value. */
#ifndef MU_TESTS_RUNTIME_MESSAGE_VALUE_FIXTURE_H
#define MU_TESTS_RUNTIME_MESSAGE_VALUE_FIXTURE_H

#include "runtime/message/codec.h"
#include "tests/support/golden.h"
#include "tests/support/test.h"

#endif
