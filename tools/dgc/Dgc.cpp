// SPDX-License-Identifier: Apache-2.0
// dgc: reads flags, has compiler/ do the work, writes what comes out of it.
#include "compiler/Compile.h"
#include "compiler/ListOps.h"
#include "partitioner/schedule/ScheduleDescriptor.h"
#include "runtime/support/CacheFolder.h"
#include "runtime/support/Printable.h"
#include "tools/FlagChecks.h"
#include "tools/dgc/FatalErrors.h"
#include "tools/dgc/Report.h"
#include "tools/dgc/WriteOutput.h"
#include "tools/host/HostCache.h"

#include <cstdio>

namespace {

/// The exit code, after the message of a failure.
int endWith(const dg::Status &status) {
  if (!status)
    std::fprintf(stderr, "dgc: error: %s\n", dg::printable(status.message()).c_str());
  return status.exitCode();
}

template <typename... Args> int endWithUsage(fmt::format_string<Args...> format, Args &&...args) {
  return endWith(dg::Status::error(dg::ErrorKind::usage, format, std::forward<Args>(args)...));
}

template <typename T> using Words = std::vector<std::pair<const char *, T>>;

/// An option that takes one of a few words, each for a value.
template <typename T> CLI::Option *addChoice(CLI::App *app, const char *flag, T &to, Words<T> words, const char *help) {
  std::vector<std::string> names;
  for (const auto &word : words)
    names.push_back(word.first);
  auto take = [&to, words](const std::string &text) {
    for (const auto &[name, value] : words)
      if (text == name)
        to = value;
  };
  return app->add_option_function<std::string>(flag, take, help)->check(CLI::IsMember(names));
}

} // namespace

int main(int argc, char **argv) {
  using dg::compiler::Emit;
  using dg::compiler::Form;
  using dg::compiler::Purpose;
  using dg::partitioner::Recompute;
  using dg::plan::DType;
  using dg::tools::wholeNumber;
  dg::compiler::Request request;
  std::string output;
  CLI::App app(
      "dgc compiles a model into a partitioned job that dgrun runs.\n\n"
      "  dgc examples/mlp.mlir --batch 64 -o mlp.dgx\n"
      "  dgc examples/lenet.mlir --batch 64 --mesh data=2 -o lenet.dgx\n"
      "  dgc examples/gpt.mlir --batch 8 --mesh data=2,pipe=2 --microbatches 4 -o gpt.dgx\n"
      "  dgc examples/gpt.mlir --batch 8 --ranks 4 --explain -o gpt.dgx        the plan is searched, and explained\n",
      "dgc");
  app.footer("Exit codes: 0 done, 1 another failure, 2 usage, 65 the model or another file is invalid, 74 the job "
             "could not be written.");
  app.set_version_flag("--version", "dgc " DG_VERSION);
  app.add_option(
      "MODEL", request.model,
      "a model in the dg dialect (.mlir, .mlirbc) or ONNX (.onnx), or a family:\n"
      "mlp:784-1024-10  lenet  gpt:layers=4,hidden=384,heads=6,seq=256,vocab=8192  bert:layers=12,…\n"
      "llama:layers=4,hidden=384,heads=6,kv_heads=2,ffn=1024,seq=256,vocab=8192  resnet:50,classes=1000,image=224");
  app.add_option("-o,--output", output,
                 "the job to write (default: the model's name with .dgx), or the file for --emit (default: stdout)");

  bool isTrain = false, isInfer = false;
  std::string precision = "auto";
  auto *what = app.add_option_group("What to build");
  what->add_flag("--train", isTrain, "train @loss (default where the model has @loss)");
  what->add_flag("--infer", isInfer, "run @forward, or @loss up to its loss (default elsewhere)");
  what->add_flag("--training-mode", request.keepsTrainingMode,
                 "--infer of an ONNX model that was exported for training: dropout drops and batch norm uses the\n"
                 "statistics of the batch, as in the file (default: dropout is off, batch norm uses its running ones)");
  what->add_option("--loss", request.loss,
                   "loss of --train for a model without one: mse, cross_entropy:label_smoothing=0.1, nll, …; targets "
                   "become the input y (default: the model's)");
  what->add_option("--optimizer", request.optimizer,
                   "sgd:lr=0.01,momentum=0.5 | adam, adamw, adagrad, rmsprop, lamb, lion; all take weight_decay,\n"
                   "clip_norm, clip_value and grad_norm=1, the norm of all gradients in dgrun's reports;\n"
                   "';*.bias:weight_decay=0' after it sets the decay of parameters by name,\n"
                   "';head.*:lr=0.1' their rate, which dgrun's --lr and --lr-schedule scale with all others\n"
                   "(default: the model's dg.optimizer)");
  what->add_option("--freeze", request.frozen,
                   "parameters that are not trained, by name: --freeze 'features.*' (default: none)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  what->add_option("--freeze-statistics", request.frozenStatistics,
                   "running statistics that stay as they are, by name: --freeze-statistics 'features.*' holds these\n"
                   "batch norms in evaluation mode; --freeze alone holds only their weights (default: none)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  what->add_flag(
      "--metrics", request.metrics,
      "evaluations of a training job also tell top-5, F1 and accuracy of each class, of two classes the AUC,\n"
      "of a regression MSE and MAE (default: loss and accuracy)");
  what->add_option(
          "--batch", request.batch,
          "samples of a batch over all ranks: the size of dimension \"batch\" (default: the model's, where it has one)")
      ->check(wholeNumber(1, dg::compiler::maxBatch));
  std::vector<std::string> binds;
  what->add_option("--bind", binds,
                   "NAME=SIZE gives a symbolic dimension its size; --batch N is short for batch=N (default: none)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  std::vector<std::string> constants;
  what->add_option("--const", constants, "NAME=@FILE.npy makes an input of an ONNX model a constant (default: none)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  what->add_option("--weights", request.weights,
                   "FILE.safetensors, FILE.onnx, or a checkpoint as DIR/best: parameters start from its tensors, by\n"
                   "name "
                   "(default: as the model says)");
  what->add_option("--weights-rename", request.weightRenames,
                   "OLD=NEW: tensors of --weights as parameters of other names, as 'backbone.*=features.*'; the first\n"
                   "that matches decides, one that matches nothing is an error (default: none)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  what->add_option("--weights-skip", request.weightSkips,
                   "PATTERN: parameters that start as the model says although --weights has them, as a head of\n"
                   "another shape: 'head.*'; one that matches nothing is an error (default: none)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  what->add_option(
      "--precision", precision,
      "f32, bf16 or f16: products, convolutions and attention in 16 bits with f32 sums, what follows them in\n"
      "16 bits too; losses, statistics, parameters and the optimizer stay f32 (default: f32; of a simulation:\n"
      "auto, which is bf16 where the device has it)");
  what->add_option(
          "--precision-override", request.precisionOverrides,
          "PATTERN=f32, PATTERN=bf16 or PATTERN=f16 for ops by name, kind or parameter: 'head.*=f32'; the first\n"
          "that matches decides, one that matches nothing is an error (default: none)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  auto *scale =
      what->add_option(
              "--loss-scale", request.lossScale,
              "of f16: what the loss is multiplied by at first, 0 for never; a step that overflows is skipped on all\n"
              "ranks and halves it (default: 65536)")
          ->check(dg::tools::finiteNumber(true));
  auto *scaleInterval = what->add_option("--loss-scale-interval", request.lossScaleInterval,
                                         "steps without an overflow after which the scale is doubled (default: 2000)")
                            ->check(wholeNumber(1, dg::compiler::maxBatch));
  what->add_option("--accumulate", request.accumulate, "batches to a step, averaged (default: 1)")
      ->check(wholeNumber(1, dg::compiler::maxBatch));

  auto *split = app.add_option_group("How to split it");
  split->add_option("--mesh", request.mesh, "ranks on each axis, as data=2,tensor=1,pipe=2 (default: one rank)");
  split->add_option("--ranks", request.ranks, "search the fastest plan for so many ranks (default: those of --mesh)")
      ->check(wholeNumber(1, 1 << 24));
  split->add_option(
      "--cluster", request.cluster,
      "the machines that the plan is for: a JSON file, host, cpu:nodes=4, a100x8:nodes=64 or h100x8:nodes=8\n"
      "(default: host where a plan is searched or predicted, else cpu); without --mesh and --ranks the plan is\n"
      "searched for all its devices. host is this one, measured in a second or two the first time and kept in\n"
      "the folder of --cache; 'dgrun --probe' measures it anew");
  split
      ->add_option(
          "--pin", request.pins,
          "PATTERN=stage:N, PATTERN=tensor:DIMENSION or PATTERN=whole: ops or parameters of this name are on a\n"
          "stage, have a dimension cut over the tensor axis, or are not cut; the plan is searched around it\n"
          "(default: none)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  split
      ->add_option("--forbid", request.forbidden,
                   "an axis that the searched plan must not use: data, tensor or pipe (default: none)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check(CLI::IsMember({"data", "tensor", "pipe"}));
  split->add_option("--plan-seconds", request.planSeconds, "stop the search after so many seconds (default: never)")
      ->check(dg::tools::finiteNumber(true));
  split
      ->add_option("--microbatches", request.microbatches,
                   "micro-batches of a batch (default: 1, with a pipeline 2 for each stage)")
      ->check(wholeNumber(1, dg::compiler::maxBatch));
  split->add_option("--schedule", request.schedule,
                    fmt::format("order of micro-batches in a pipeline: {}\n"
                                "(CHUNKS: parts of the model to a rank; default: {}, or searched)",
                                dg::partitioner::listScheduleNames(":CHUNKS"),
                                dg::partitioner::defaultSchedule().name));
  split
      ->add_option("--zero", request.zero,
                   "cut over the data ranks: 1 the optimizer's state, 2 also gradients, 3 also parameters\n"
                   "(default: 0; of a simulation without --mesh: searched)")
      ->check(wholeNumber(0, 3));
  addChoice(split, "--reduce-precision", request.reducesWide, Words<bool>{{"low", false}, {"f32", true}},
            "type in which data ranks sum gradients: low (that of --precision, half the bytes) or f32\n"
            "(default: low)");
  split
      ->add_option("--target", request.targets,
                   "processor: native, x86-64-v3, x86-64-v4, sapphirerapids (default: native); several (a,b): the\n"
                   "job holds an object for each, and its ranks take the best that all of them can run")
      ->delimiter(',')
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  split
      ->add_option("--memory", request.memoryBytes,
                   "bytes on each device, as 4GiB; a plan that needs more is an error (default: of a searched plan "
                   "what its devices have, of one by hand no limit)")
      ->transform(CLI::AsSizeValue(false))
      ->check(wholeNumber(1, INT64_MAX));

  auto *print = app.add_option_group("What to print");
  auto *emit = addChoice(print, "--emit", request.emit,
                         Words<Emit>{{"source", Emit::source},
                                     {"dg", Emit::dg},
                                     {"plan", Emit::plan},
                                     {"linalg", Emit::linalg},
                                     {"llvm", Emit::llvm},
                                     {"asm", Emit::assembly}},
                         "print instead of writing a job: source (the model as text to edit, of a family or an ONNX\n"
                         "file too), dg, plan, linalg, llvm or asm (default: none)");
  std::string listedOp;
  auto *listsOps = print
                       ->add_option("--list-ops", listedOp,
                                    "print every op with what it has (gradient, sharding rule, …), or the operands,\n"
                                    "attributes and an example of one: --list-ops batch_norm; needs no MODEL (default: "
                                    "off)")
                       ->expected(0, 1)
                       ->excludes(emit);
  print
      ->add_flag("--json", request.parametersAsJson,
                 "print the table of parameters (name, type, role, readers) as JSON on stdout; an import of ONNX\n"
                 "prints it as text on stderr otherwise (default: off)")
      ->excludes(emit);
  print->add_flag("--save-phases", request.savePhases,
                  "keep the graph after each compiler pass in the job, for dgviz (default: off)");
  const Words<Form> forms = {{"text", Form::text}, {"json", Form::json}};
  addChoice(print, "--simulate", request.simulate, forms,
            "print the predicted step (text or json) instead of writing a job; needs no hardware (default: off)")
      ->expected(0, 1)
      ->default_str("text")
      ->excludes(emit);
  addChoice(print, "--explain", request.explain, forms,
            "print why the searched plan is as it is (text or json); only with -o it is also written as a job\n"
            "(default: off)")
      ->expected(0, 1)
      ->default_str("text")
      ->excludes(emit);
  addChoice(
      print, "--recompute", request.recompute, Words<Recompute>{{"none", Recompute::none}, {"full", Recompute::full}},
      "run the forward pass again in the backward pass: none or full (default: where a stage does not fit otherwise)");
  bool printsTiming = false;
  print->add_flag("--timing", printsTiming, "print on stderr where the time of the compilation went (default: off)");
  std::string signingKey;
  app.add_option("--sign", signingKey,
                 "KEY.pem: sign the job with this Ed25519 private key, for dgrun --require-signature\n"
                 "(default: not signed)");
  std::string cache;
  app.add_option("--cache", cache,
                 "folder that keeps machine code for other compilations, at most 1 GiB, or off\n"
                 "(default: DG_CACHE, or dg in the user's folder of caches)");
  // A model after a flag is not the flag's word.
  const std::vector<std::string> arguments =
      dg::tools::giveDefaults({argv + 1, argv + argc}, {"--simulate", "--explain"}, {"text", "json"});
  if (auto code = dg::tools::parseCommandLine(app, arguments, "dgc: error: "))
    return *code;
  dg::tools::endWithBadInputWhereNoOpCanBeBuilt();
  if (listsOps->count() > 0) {
    auto text = dg::compiler::listOps(listedOp);
    return endWith(text ? dg::tools::writeText("", *text) : text.status());
  }
  if (request.model.empty())
    return endWithUsage("MODEL is required: a file or a family (dgc --help)");
  if (isTrain && isInfer)
    return endWithUsage("--train and --infer exclude each other");
  request.purpose = isTrain ? Purpose::train : isInfer ? Purpose::infer : Purpose::automatic;
  for (DType type : {DType::f32, DType::bf16, DType::f16})
    if (precision == dg::plan::nameOf(type))
      request.precision = type;
  if (!request.precision && precision != "auto")
    return endWithUsage("--precision {}: expected auto, f32, bf16 or f16", precision);
  auto isHalf = [](const std::string &text) { return text.ends_with("=f16"); };
  if (scale->count() + scaleInterval->count() > 0 && precision != "f16" &&
      std::none_of(request.precisionOverrides.begin(), request.precisionOverrides.end(), isHalf))
    return endWithUsage("{}: only a loss of f16 is scaled; leave it out, or give --precision f16",
                        scale->count() > 0 ? "--loss-scale" : "--loss-scale-interval");
  for (const std::string &bind : binds) {
    size_t equals = bind.rfind('=');
    std::string name = bind.substr(0, equals), digits = equals == std::string::npos ? "" : bind.substr(equals + 1);
    int64_t size = -1;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    // Only a batch needs a sample.
    if (name.empty() || error != std::errc() || end != digits.data() + digits.size() || size > dg::compiler::maxBatch ||
        size < (name == "batch" ? 1 : 0))
      return endWithUsage("--bind {}: expected NAME=SIZE with a size from 1 to {}, as batch=64", bind,
                          dg::compiler::maxBatch);
    if (name == "batch" && request.batch > 0 && request.batch != size)
      return endWithUsage("--bind {} and --batch {}: they are the same; give one of them", bind, request.batch);
    if (name == "batch")
      request.batch = size;
    else
      request.bindings[name] = size;
  }
  for (const std::string &constant : constants) {
    size_t equals = constant.rfind("=@");
    if (equals == std::string::npos || equals == 0 || equals + 2 == constant.size())
      return endWithUsage("--const {}: expected NAME=@FILE.npy", constant);
    request.constants[constant.substr(0, equals)] = constant.substr(equals + 2);
  }
  if (request.parametersAsJson && (request.simulate != Form::none || request.explain != Form::none))
    return endWithUsage("--json: --simulate and --explain print something else on stdout: leave one of them out");
  if (request.simulate != Form::none && !output.empty())
    return endWithUsage("-o {}: --simulate writes no job: leave one of the two out", output);
  if (output.empty() && (request.simulate != Form::none || request.explain != Form::none))
    request.emit = Emit::nothing;
  if (output.empty() && request.emit == Emit::package) {
    std::string stem = request.model.substr(request.model.find_last_of('/') + 1);
    output = stem.substr(0, stem.find_first_of(".:")) + ".dgx";
  }
  if (!output.empty()) {
    std::vector<std::string> read = {request.model, request.weights, request.cluster, signingKey};
    for (const auto &[name, file] : request.constants)
      read.push_back(file);
    if (dg::Status status = dg::tools::checkOutput(output, read); !status)
      return endWith(status);
  }
  for (const char *ending : {".onnx", ".mlir", ".mlirbc", ".safetensors", ".pt"})
    if (request.emit == Emit::package && output.ends_with(ending))
      return endWithUsage("-o {}: a job is written, which is no {} file; name it {}.dgx", output, ending,
                          output.substr(0, output.rfind('.')));
  std::optional<dg::package::SigningKey> key;
  if (!signingKey.empty()) {
    if (request.emit != Emit::package)
      return endWithUsage("--sign {}: only a job is signed, and none is written here: leave it out", signingKey);
    auto read = dg::package::SigningKey::read(signingKey);
    if (!read)
      return endWith(read.status());
    key.emplace(std::move(*read));
  }
  request.cache = dg::cacheFolder(cache);
  if (dg::compiler::isForThisHost(request))
    if (dg::Result<dg::tools::MeasuredHost> host = dg::tools::knowHost(request.cache))
      request.host = {host->cluster, dg::tools::describeHost(*host)};
  dg::tools::Report report;
  dg::Result<dg::compiler::Output> compiled =
      dg::compiler::compile(request, [&](const dg::compiler::Message &message) { report.print(message); });
  if (!compiled)
    return compiled.status().exitCode();
  if (printsTiming)
    report.printPhases(compiled->phases);
  return endWith(dg::tools::writeOutput(*compiled, output, key ? &*key : nullptr));
}
