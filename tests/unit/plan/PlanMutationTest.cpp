// SPDX-License-Identifier: Apache-2.0
// Proves that the verifier is a judge of real plans: plans that dgc made for several meshes are right, and each kind of
// planted fault, at each place where it can be planted, is refused.
#include "tests/unit/plan/DgcPlan.h"
#include "tests/unit/plan/PlanFaults.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <map>

using namespace dg;
using namespace dg::plan;
using dg::plan::testing::FaultKind;
using dg::plan::testing::faultKinds;
using dg::plan::testing::planOf;

namespace {

const char *const commands[] = {
    "mlp:4-8-8-4 --batch 8 --optimizer adam:lr=0.01 --mesh data=2",
    "mlp:4-8-8-4 --batch 8 --optimizer adam:lr=0.01 --mesh tensor=2",
    "mlp:4-8-8-4 --batch 8 --optimizer sgd:lr=0.01,momentum=0.5 --mesh pipe=3 --microbatches 4 --schedule 1f1b",
    "mlp:4-8-8-4 --batch 8 --optimizer sgd:lr=0.01 --mesh data=2,tensor=2,pipe=2 --microbatches 2 --schedule gpipe",
};

const std::vector<Plan> &plans() {
  static const std::vector<Plan> all = [] {
    std::vector<Plan> made;
    for (const char *command : commands)
      made.push_back(planOf(command));
    return made;
  }();
  return all;
}

class PlanMutation : public ::testing::TestWithParam<FaultKind> {};

std::string testName(const ::testing::TestParamInfo<FaultKind> &info) {
  std::string name;
  for (const char *c = info.param.name; *c; ++c)
    if (std::isalnum(static_cast<unsigned char>(*c)))
      name += *c;
  return name;
}

} // namespace

TEST(PlanMutations, PlansOfDgcAreRight) {
  for (size_t i = 0; i < plans().size(); ++i)
    EXPECT_TRUE(verify(plans()[i])) << commands[i] << ": " << verify(plans()[i]).message();
}

TEST(PlanMutations, AreManyKindsWithDifferentNames) {
  std::map<std::string, int> names;
  for (const FaultKind &kind : faultKinds())
    EXPECT_EQ(names[kind.name]++, 0) << kind.name;
  EXPECT_GE(names.size(), 20u);
}

TEST_P(PlanMutation, IsCaughtWhereverItIsPlanted) {
  // Enough of each kind; a plan of thousands of ops would take minutes.
  constexpr size_t mostPlaces = 40;
  size_t numPlanted = 0;
  std::string message;
  for (size_t i = 0; i < plans().size(); ++i)
    for (size_t place = 0; place < mostPlaces; ++place) {
      Plan broken = plans()[i];
      if (!GetParam().plant(broken, place))
        break;
      ++numPlanted;
      Status status = verify(broken);
      EXPECT_FALSE(status) << GetParam().name << " number " << place
                           << " is not caught in the plan of: " << commands[i];
      message = status.message();
      EXPECT_NE(message.find(GetParam().says), std::string::npos) << GetParam().name << ": " << message;
    }
  EXPECT_GT(numPlanted, 0u) << GetParam().name << " could be planted nowhere";
  std::printf("%s: %zu planted, the last: %s\n", GetParam().name, numPlanted, message.c_str());
}

INSTANTIATE_TEST_SUITE_P(Kinds, PlanMutation, ::testing::ValuesIn(faultKinds()), testName);
