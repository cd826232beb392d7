// SPDX-License-Identifier: Apache-2.0
// One compilation, phase by phase: what dgc does once its flags are read.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <map>
#include <string>

namespace dg::compiler {

/// The largest size that a flag may give, so that elements and bytes can be counted in 64 bits.
inline constexpr int64_t maxBatch = INT32_MAX;

struct CompileOptions {
  std::string model;  ///< path of .mlir, .mlirbc or .onnx, or a family
  std::string output; ///< JOB.dgx, or the file of --emit; empty: no job is written, and --emit prints to stdout
  enum class Purpose { automatic, train, infer } purpose = Purpose::automatic;
  std::string loss; ///< "": the model has one
  std::string optimizer;
  std::vector<std::string> frozen; ///< patterns of parameters that are not trained
  int64_t batch = 0;
  std::map<std::string, int64_t> bindings;      ///< symbolic dimension → size, but for "batch"
  std::map<std::string, std::string> constants; ///< input → .npy file
  std::string weights;                          ///< safetensors file; "": each parameter starts as the model says
  std::string mesh;
  int64_t microbatches = 0; ///< 0: 1 without a pipeline, else 2 for each stage where the batch allows
  std::string schedule;     ///< empty: 1f1b, or searched
  int64_t accumulate = 1;
  std::vector<std::string> targets;   ///< none: native
  uint64_t memoryBytes = 0;           ///< per device; 0: no limit
  int64_t ranks = 0;                  ///< a plan is searched for so many; 0: the mesh's, or the cluster's devices
  std::string cluster;                ///< preset or file; empty: this host
  std::vector<std::string> pins;      ///< "fc1*=stage:0"; see passes/partition/Pins.h
  std::vector<std::string> forbidden; ///< axes that the plan must not use
  double planSeconds = 0;             ///< of the search; 0: no limit
  std::string simulate;               ///< "", "text" or "json": print a prediction instead of writing a job
  std::string explain;   ///< "", "text" or "json": print why the plan is as it is; with `output` also write it
  std::string precision; ///< f32, bf16 or f16; empty or auto: f32, of a simulation bf16 where the device has it
  std::vector<std::string> precisionOverrides; ///< "head.*=f32"
  double lossScale = 65536;                    ///< of f16: what it starts with; 0: the loss is not scaled
  int64_t lossScaleInterval = 2000;            ///< steps without an overflow after which it is doubled
  std::string reducePrecision = "low";         ///< of gradients over data ranks: "low" or "f32"
  std::string recompute;                       ///< of a simulation: "", "none" or "full"
  int64_t zero = -1;                           ///< 0 to 3; -1: 0, of a simulation without a mesh searched
  std::string emit;                            ///< "", "dg", "plan", "linalg", "llvm", "asm"
  bool savePhases = false;                     ///< the graph after each pass goes into the package, as phases.json
};

/// Compiles and writes the package, or prints what `emit`, `simulate` and `explain` ask for. Returns the exit code;
/// messages are on stderr.
int compile(const CompileOptions &options);

} // namespace dg::compiler
