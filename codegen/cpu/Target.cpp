// SPDX-License-Identifier: Apache-2.0
// Names of targets, and what the host is.
#include "codegen/cpu/Target.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;

namespace dg::codegen {

namespace {
/// Instruction sets that decide whether an object runs, from the oldest; each level has those of the levels before it.
struct Level {
  const char *name;
  int64_t vectorBytes, vectorRegisters;
  std::initializer_list<const char *> adds;
  const char *leaves = ""; ///< what the processor has and objects do without, in LLVM's form
};
const Level levels[] = {
    {"x86-64-v3", 32, 16, {"avx", "avx2", "bmi", "bmi2", "fma", "f16c"}},
    {"x86-64-v4", 64, 32, {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}},
    {"sapphirerapids", 64, 32, {"avx512vnni", "avx512bf16", "avx512vbmi", "amx-tile", "amx-bf16"}, "-avx512fp16"},
};
} // namespace

FailureOr<Target> Target::parse(llvm::StringRef name, std::string &error) {
  Target target;
  target.name = name.str();
  if (name == "native") {
    target.cpu = llvm::sys::getHostCPUName().str();
    llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
    llvm::SmallVector<std::string> features;
    for (auto &feature : host)
      features.push_back((feature.second ? "+" : "-") + feature.first().str());
    llvm::sort(features);
    target.features = llvm::join(features, ",");
    for (const Level &level : levels)
      if (llvm::all_of(level.adds, [&](const char *feature) { return host.lookup(feature); }))
        target.vectorBytes = level.vectorBytes, target.vectorRegisters = level.vectorRegisters;
      else
        break;
    return target;
  }
  for (const Level &level : levels)
    if (name == level.name) {
      target.cpu = level.name;
      target.features = level.leaves;
      target.vectorBytes = level.vectorBytes;
      target.vectorRegisters = level.vectorRegisters;
      return target;
    }
  error = "unknown target '" + name.str() + "': expected native, x86-64-v3, x86-64-v4 or sapphirerapids";
  return failure();
}

bool Target::multipliesPairs() const {
  return vectorBytes == 64 && llvm::is_contained(requiredFeatures(), "avx512bf16");
}

bool Target::multipliesTiles() const {
  return multipliesPairs() && llvm::is_contained(requiredFeatures(), "amx-tile") &&
         llvm::is_contained(requiredFeatures(), "amx-bf16");
}

llvm::SmallVector<std::string> Target::requiredFeatures() const {
  llvm::SmallVector<std::string> required;
  llvm::SmallVector<llvm::StringRef> list;
  llvm::StringRef(features).split(list, ',');
  for (const Level &level : levels) {
    for (const char *feature : level.adds)
      if (name != "native" || llvm::is_contained(list, std::string("+") + feature))
        required.push_back(feature);
    if (name == level.name)
      break;
  }
  return required;
}

} // namespace dg::codegen
