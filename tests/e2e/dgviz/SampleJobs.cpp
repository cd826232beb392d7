// SPDX-License-Identifier: Apache-2.0
// Writes the jobs that no compiler makes, for page_test.py: names that carry HTML and script, and a plan of
// 50,000 ops.
//
//   dgviz_sample_jobs hostile|large FILE
#include "runtime/package/Package.h"
#include "tests/unit/plan/SamplePlan.h"

#include <cstdio>
#include <string>

using namespace dg;
using namespace dg::plan;
using dg::plan::testing::samplePlan;

namespace {

constexpr const char *attack = "</script><img src=x onerror=\"document.title='broken'\">";

Plan hostilePlan() {
  Plan plan = samplePlan();
  plan.model.name = plan.model.source = plan.model.optimizer = attack;
  plan.search.stopped = attack;
  plan.search.alternatives = {{attack, 1500, 4096}};
  for (Task &task : plan.tasks) {
    task.name += attack;
    task.op = task.source = attack;
    if (Kernel *kernel = task.as<Kernel>())
      kernel->symbol = attack;
  }
  for (Value &value : plan.values)
    value.name += attack;
  return plan;
}

} // namespace

int main(int argc, char **argv) {
  std::string kind = argc == 3 ? argv[1] : "";
  if (kind != "hostile" && kind != "large") {
    std::fprintf(stderr, "usage: dgviz_sample_jobs hostile|large FILE\n");
    return 2;
  }
  Plan plan = kind == "hostile" ? hostilePlan() : samplePlan({.stages = 4, .microbatches = 8, .layers = 1800});
  Status status = package::writePackage(argv[2], {package::PackageEntry::ofText("plan.json", toJson(plan))});
  if (!status)
    std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.exitCode();
}
