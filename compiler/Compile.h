// SPDX-License-Identifier: Apache-2.0
// The compiler as one function: a request in, a package or a report out. Nothing is written to stdout or stderr, or to
// a file but those of the cache, and nothing else outlives a call: what dgc, Python and a search over many compilations
// share.
#pragma once

#include "compiler/Messages.h"
#include "partitioner/model/Cluster.h"
#include "partitioner/search/StageSearch.h"
#include "runtime/plan/Plan.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dg::compiler {

/// The largest size that a flag may give, so that elements and bytes can be counted in 64 bits.
inline constexpr int64_t maxBatch = INT32_MAX;

/// What a request asks to build.
enum class Purpose {
  automatic, ///< training where the model has a loss
  train,
  infer,
};

/// What comes out of a compilation.
enum class Emit {
  package,
  source, ///< the model as it was read
  dg,     ///< the model after all passes
  plan,   ///< plan.json
  linalg,
  llvm,
  assembly,
  nothing, ///< but what `simulate` and `explain` ask for
};

enum class Form { none, text, json };

/// This host as it was measured, for plans of no other.
struct Host {
  partitioner::Cluster cluster; ///< one node, a device for each core
  std::string description;      ///< what was measured and when, for people
};

/// All that a compilation depends on, with the defaults of dgc's flags. Texts are in the notation of these flags.
struct Request {
  std::string model; ///< path of .mlir, .mlirbc or .onnx, or a family
  Emit emit = Emit::package;
  Form simulate = Form::none;    ///< a prediction; with Emit::nothing only
  Form explain = Form::none;     ///< why the plan is as it is; with Emit::nothing or Emit::package
  bool savePhases = false;       ///< the graph after each pass goes into the package, as phases.json
  std::string cache;             ///< folder of machine code of other compilations; "": none
  bool parametersAsJson = false; ///< the table of parameters goes into the output's text, not into a message

  Purpose purpose = Purpose::automatic;
  bool keepsTrainingMode = false; ///< of an inference of ONNX: batch norm and dropout as the file was exported
  std::string loss;               ///< "": the model has one
  std::string optimizer;
  std::vector<std::string> frozen;           ///< patterns of parameters that are not trained
  std::vector<std::string> frozenStatistics; ///< of running statistics that are not moved
  bool metrics = false;                      ///< evaluations compute more than loss and accuracy
  int64_t batch = 0;
  std::map<std::string, int64_t> bindings;      ///< symbolic dimension → size, but for "batch"
  std::map<std::string, std::string> constants; ///< input → .npy file
  std::string weights;                    ///< safetensors or ONNX file; "": each parameter starts as the model says
  std::vector<std::string> weightRenames; ///< "backbone.*=features.*": tensors of it as parameters
  std::vector<std::string> weightSkips;   ///< patterns of parameters that do not start from it
  int64_t accumulate = 1;
  /// f32, bf16 or f16; none: f32, of a simulation bf16 where the device has it.
  std::optional<plan::DType> precision;
  std::vector<std::string> precisionOverrides; ///< "head.*=f32"
  double lossScale = 65536;                    ///< of f16: what it starts with; 0: the loss is not scaled
  int64_t lossScaleInterval = 2000;            ///< steps without an overflow after which it is doubled

  std::string mesh;
  int64_t ranks = 0;                  ///< a plan is searched for so many; 0: the mesh's, or the cluster's devices
  std::string cluster;                ///< preset, file, or "host": this host; empty: this host where a plan is searched
  std::optional<Host> host;           ///< none: figures of the preset cpu, of which a note says so
  int64_t microbatches = 0;           ///< 0: 1 without a pipeline, else 2 for each stage where the batch allows
  std::string schedule;               ///< empty: 1f1b, or searched
  std::optional<uint32_t> zero;       ///< 0 to 3; none: 0, or searched
  bool reducesWide = false;           ///< data ranks sum gradients in f32 instead of in `precision`
  std::vector<std::string> targets;   ///< none: native
  uint64_t memoryBytes = 0;           ///< per device; 0: no limit
  std::vector<std::string> pins;      ///< "fc1*=stage:0"; see passes/partition/Pins.h
  std::vector<std::string> forbidden; ///< axes that the plan must not use
  double planSeconds = 0;             ///< of the search; 0: no limit
  partitioner::Recompute recompute = partitioner::Recompute::automatic; ///< automatic: where it must
};

/// One file of the package.
struct PackageFile {
  std::string name, bytes;
};

/// A part of a compilation and the seconds that it took.
struct Phase {
  std::string name;
  double seconds = 0;
};

struct Output {
  std::vector<PackageFile> package; ///< of Emit::package: what package::writePackage takes
  std::string text;                 ///< of any other Emit; then the reports that were asked for
  std::vector<Message> messages;    ///< notes and warnings
  std::vector<Phase> phases;        ///< where the time went
};

/// Whether the request is for this host as it was measured, so that `host` counts. A plan by hand is not: its job would
/// change with every measurement.
bool isForThisHost(const Request &request);

/// Compiles. A failure's message holds all that was said of it, diagnostics included; its kind is usage for a request
/// that cannot be met and badInput for a file that is not right. `sink` also gets every message as it is said, of
/// failures too. Any thread, several at once. Two things end the process nevertheless: LLVM's own fatal errors, for
/// which dgc installs a handler, and memory that runs out.
Result<Output> compile(const Request &request, MessageSink sink = nullptr);

} // namespace dg::compiler
