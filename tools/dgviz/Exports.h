// SPDX-License-Identifier: Apache-2.0
// The plan for other tools: Perfetto, Graphviz, Model Explorer, a spreadsheet, a picture.
#pragma once

#include "tools/dgviz/facts/ProgramView.h"

#include <string>
#include <vector>

namespace dg::viz {

/// Timelines for ui.perfetto.dev: predicted times with a process for each stage and, with a trace, measured ones with a
/// process for each rank.
std::string toPerfetto(const plan::Plan &plan, const std::vector<ProgramView> &programs);
/// The ops of one program, nested as clusters.
std::string toDot(const plan::Plan &plan, const ProgramView &program);
/// The outermost level of one program as a picture. Fails only if Graphviz does.
Result<std::string> toSvg(const plan::Plan &plan, const ProgramView &program);
/// A graph collection for Google's Model Explorer: a graph for each program, layers as namespaces.
std::string toModelExplorer(const plan::Plan &plan, const std::vector<ProgramView> &programs);
/// A line for each op of each program. Fields that a spreadsheet would run as a formula get a leading apostrophe.
std::string toCsv(const plan::Plan &plan, const std::vector<ProgramView> &programs);

} // namespace dg::viz
