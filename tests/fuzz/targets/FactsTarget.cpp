// SPDX-License-Identifier: Apache-2.0
// The facts about a job that its package holds for people: parameters, reasons of the search, phases of the compiler.
#include "tests/fuzz/FuzzTarget.h"
#include "tools/dgviz/facts/Parameters.h"
#include "tools/dgviz/facts/Phases.h"
#include "tools/dgviz/facts/SearchReasons.h"

using namespace dg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::OneSecond limit;
  const std::string text(reinterpret_cast<const char *>(data), size);
  (void)viz::parametersFromJson(text);
  (void)viz::reasonsFromJson(text);
  auto phases = viz::phasesFromJson(text);
  if (!phases)
    return 0;
  for (const viz::CompilerPhase &phase : *phases) {
    fuzz::check(phase.ops.size() == phase.numOps && phase.graph.nodes.size() <= phase.numOps, "every node is an op");
    for (const auto &edge : phase.graph.edges)
      fuzz::check(edge.from < phase.graph.nodes.size() && edge.to < phase.graph.nodes.size(), "an edge joins nodes");
  }
  return 0;
}
