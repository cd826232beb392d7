// SPDX-License-Identifier: Apache-2.0
// Proves what SplitEquivalenceTest does for models whose hundred steps take minutes in the reference executor.
#include "tests/unit/passes/SplitCases.h"

#include <gtest/gtest.h>

using namespace dg::passes::test;

namespace {

TEST(SplitEquivalenceSlow, Lenet) { expectEqualOnMeshes(lenetCase(100), allMeshes()); }
TEST(SplitEquivalenceSlow, WideMlpOfTheExample) { expectEqualOnMeshes(wholeWideCase(100), allMeshes(), {2}); }
TEST(SplitEquivalenceSlow, GptAsDeepAsTheExample) { expectEqualOnMeshes(deepGptCase(100), allMeshes(), {2}); }

} // namespace
