// require_torch.h: skips a test where the build has no torch backend (no LibTorch, or a sanitizer).
#pragma once

#include <gtest/gtest.h>

#ifdef IHA_HAVE_TORCH
#define IHA_REQUIRE_TORCH() static_cast<void>(0)
#else
#define IHA_REQUIRE_TORCH() GTEST_SKIP() << "built without the torch backend"
#endif
