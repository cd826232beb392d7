// SPDX-License-Identifier: Apache-2.0
// dgviz: draws the plan inside a package as one self-contained HTML page, prints it, serves it, or exports it.
#include "runtime/support/FileWriting.h"
#include "runtime/support/Printable.h"
#include "tools/dgviz/Exports.h"
#include "tools/dgviz/Page.h"
#include "tools/dgviz/Server.h"
#include "tools/dgviz/TextSummary.h"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

using namespace dg;

namespace {

constexpr const char *description =
    "Draws the plan of a compiled job as one HTML page: summary, graph, timeline, memory, communication, "
    "alternatives.\n"
    "The page needs no network and no other file; open it in any browser, send it to a colleague.\n\n"
    "  dgviz lenet.dgx -o plan.html              draw the plan\n"
    "  dgviz lenet.dgx trace.json -o plan.html   with what dgrun --trace measured beside what was predicted\n"
    "  dgviz before.dgx after.dgx -o plan.html   draw the second, with what differs from the first\n"
    "  dgviz lenet.dgx --text                    print summary and timeline instead\n"
    "  dgviz lenet.dgx --export csv -o ops.csv   write it for another tool\n";

constexpr const char *exitCodes = "Exit codes: 0 done, 1 the page could not be served, 2 usage, 65 a job or trace is "
                                  "not readable, 74 the page could not be written.";

struct Options {
  std::vector<std::string> files;
  std::string output, format, cluster;
  int64_t replicas = 1;
  bool asText = false, serves = false;
  uint16_t port = 0;
};

/// What is read must not be written over.
Status checkOutput(const Options &options) {
  std::error_code error;
  if (options.serves || options.asText || options.output == "-")
    return Status::ok();
  if (std::filesystem::is_directory(options.output, error))
    return Status::error(ErrorKind::usage, "-o {}: is a folder, expected the name of a file, as {}/plan.html",
                         options.output, options.output);
  for (const std::string &file : options.files)
    if (std::filesystem::equivalent(file, options.output, error))
      return Status::error(ErrorKind::usage, "-o {}: is what dgviz reads; choose another name for the page",
                           options.output);
  return Status::ok();
}

Status print(const std::string &text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    return Status::error(ErrorKind::unwritten, "standard output: {}", std::strerror(errno));
  return Status::ok();
}

/// The last package is drawn, one before it is what it is compared with; a file that is no package is the trace.
Result<viz::ReportInputs> sortFiles(const Options &options) {
  viz::ReportInputs inputs;
  inputs.cluster = options.cluster;
  inputs.replicas = options.replicas;
  inputs.job = options.files.front();
  for (size_t i = 1; i < options.files.size(); ++i) {
    const std::string &file = options.files[i];
    bool isPackage = viz::looksLikePackage(file);
    if (isPackage ? !inputs.before.empty() : !inputs.trace.empty())
      return Status::error(ErrorKind::usage, "{}: is a {} too many: expected at most two jobs and one trace", file,
                           isPackage ? "job" : "trace");
    if (isPackage)
      inputs.before = std::exchange(inputs.job, file);
    else
      inputs.trace = file;
  }
  return inputs;
}

Result<std::string> exported(const viz::Report &report, const std::string &format) {
  const plan::Plan &plan = report.job->plan;
  if (format == "perfetto")
    return viz::toPerfetto(plan, report.programs);
  if (format == "model-explorer")
    return viz::toModelExplorer(plan, report.programs);
  if (format == "csv")
    return viz::toCsv(plan, report.programs);
  if (report.programs.empty())
    return Status::error(ErrorKind::badInput, "{}: has no program that could be drawn", report.job->path);
  return format == "dot" ? viz::toDot(plan, report.programs.front()) : viz::toSvg(plan, report.programs.front());
}

Status run(const Options &options) {
  DG_RETURN_IF_ERROR(checkOutput(options));
  Result<viz::ReportInputs> inputs = sortFiles(options);
  if (!inputs)
    return inputs.status();
  Result<viz::Report> report = viz::makeReport(*inputs);
  if (!report)
    return report.status();
  if (options.asText)
    return print(printable(viz::textSummary(*report)));
  Result<std::string> result = options.format == "html" ? viz::makePage(*report) : exported(*report, options.format);
  if (!result)
    return result.status();
  if (options.serves)
    return viz::serve(*result, options.port, [](const std::string &address) {
      std::printf("%s\n", address.c_str());
      std::fflush(stdout);
    });
  return options.output == "-" ? print(*result) : writeFile(options.output, *result);
}

} // namespace

int main(int argc, char **argv) {
  std::signal(SIGXFSZ, SIG_IGN); // a limit on file sizes is a failed write, with its message
  CLI::App app(description, "dgviz");
  Options options;
  options.format = "html";
  app.add_option("FILES", options.files,
                 "JOB.dgx that dgc wrote; also an older job to compare it with (before it), and the trace of dgrun")
      ->required()
      ->expected(1, 3);
  auto *output = app.add_option("-o,--output", options.output,
                                "the file to write, - for standard output (default: plan.html; exports: -)");
  auto *format = app.add_option("--export", options.format,
                                "what to write: the page, or the plan for another tool (default: html)")
                     ->check(CLI::IsMember({"html", "perfetto", "dot", "svg", "model-explorer", "csv"}))
                     ->capture_default_str();
  auto *text = app.add_flag("--text", options.asText, "print summary and timeline; no page is written (default: off)");
  auto *serve = app.add_flag("--serve", options.serves,
                             "show the page on 127.0.0.1 until Ctrl-C; nothing is written (default: off)");
  app.add_option("--port", options.port, "with --serve: the port (default: 0, a free one)")->needs(serve);
  app.add_option(
      "--cluster", options.cluster,
      "predict on other machines: a preset as a100x8:nodes=2, or cluster.json (default: what the job was made for)");
  app.add_option("--replicas", options.replicas,
                 "show and predict so many replicas, as dgrun -n with that many times the job's ranks runs them; "
                 "machines are as many as they need (default: 1)")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 20));
  text->excludes(output)->excludes(format)->excludes(serve);
  serve->excludes(output)->excludes(format);
  app.set_version_flag("--version", "dgviz " DG_VERSION);
  app.footer(exitCodes);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (options.output.empty())
    options.output = options.format == "html" ? "plan.html" : "-";
  Status status = run(options);
  if (!status)
    std::fprintf(stderr, "dgviz: error: %s\n", printable(status.message()).c_str());
  return status.exitCode();
}
