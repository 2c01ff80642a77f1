// tensor_values.h: a tensor of an open checkpoint as fp32, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "model/checkpoint/checkpoint.h"

namespace iha::checkpoint::testing {

// Empty and a test failure when the tensor is absent.
inline std::vector<float> Values(const Checkpoint& checkpoint, std::string_view name) {
  const auto view = checkpoint.Tensor(name);
  EXPECT_TRUE(view.ok()) << view.status();
  if (!view.ok()) return {};
  std::vector<float> values(static_cast<size_t>(view->elements()));
  EXPECT_TRUE(WidenToF32(*view, values).ok());
  return values;
}

}  // namespace iha::checkpoint::testing
