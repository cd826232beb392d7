// SPDX-License-Identifier: Apache-2.0
// Plans that dgc makes, for tests that need real ones.
#pragma once

#include "runtime/plan/Plan.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>

namespace dg::plan::testing {

/// What `dgc … --emit plan` prints, read.
inline Plan planOf(const std::string &arguments) {
  std::string text, command = std::string(DG_DGC) + " " + arguments + " --emit plan";
  FILE *pipe = popen(command.c_str(), "r");
  std::array<char, 4096> part;
  for (size_t count = 0; pipe && (count = fread(part.data(), 1, part.size(), pipe)) > 0;)
    text.append(part.data(), count);
  EXPECT_EQ(pipe ? pclose(pipe) : -1, 0) << command;
  Result<Plan> plan = fromJson(text);
  EXPECT_TRUE(plan) << command << ": " << plan.status().message();
  return plan ? *plan : Plan();
}

} // namespace dg::plan::testing
