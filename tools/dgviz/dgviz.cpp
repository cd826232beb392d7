// SPDX-License-Identifier: Apache-2.0
// dgviz: draws the plan inside a package as one self-contained HTML page, or prints its summary.
#include "runtime/package/Package.h"
#include "runtime/plan/Plan.h"
#include "tools/dgviz/Page.h"
#include "tools/dgviz/TextSummary.h"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include <unistd.h>

using namespace dg;

namespace {

constexpr const char *description =
    "Draws the plan of a compiled job as one HTML page: summary, graph coloured by pipeline stage, schedule, traffic "
    "and\n"
    "memory. The page needs no network and no other file; open it in any browser, send it to a colleague.\n\n"
    "  dgc lenet.mlir -o lenet.dgx --mesh data=2\n"
    "  dgviz lenet.dgx -o plan.html      draw it\n"
    "  dgviz lenet.dgx --text            print the summary instead\n";

constexpr const char *exitCodes =
    "Exit codes: 0 done, 1 the page could not be written, 2 usage, 65 the job is not readable.";

/// Writes "<path>.partial" and renames it, so that no half-written page stays.
Status writeFile(const std::string &path, const std::string &text) {
  std::string partial = path + ".partial";
  std::FILE *file = std::fopen(partial.c_str(), "wb");
  bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file)
    written = std::fclose(file) == 0 && written;
  written = written && std::rename(partial.c_str(), path.c_str()) == 0;
  if (written)
    return Status::ok();
  Status failure = Status::error(ErrorKind::runFailed, "{}: cannot be written: {}", path, std::strerror(errno));
  if (file)
    unlink(partial.c_str());
  return failure;
}

Status run(const std::string &job, const std::string &output, bool asText) {
  Result<package::Package> package = package::Package::open(job);
  if (!package)
    return package.status();
  Result<std::string_view> text = package->text("plan.json");
  if (!text)
    return text.status();
  Result<plan::Plan> plan = plan::fromJson(std::string(*text));
  if (!plan)
    return Status::error(plan.status().kind(), "{}: {}", job, plan.status().message());
  if (asText) {
    std::string summary = viz::textSummary(*plan);
    std::fwrite(summary.data(), 1, summary.size(), stdout);
    if (std::fflush(stdout) != 0)
      return Status::error(ErrorKind::runFailed, "standard output: {}", std::strerror(errno));
    return Status::ok();
  }
  Result<std::string> page = viz::makePage(*plan);
  if (!page)
    return page.status();
  return writeFile(output, *page);
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app(description, "dgviz");
  std::string job, output = "plan.html";
  bool asText = false;
  app.add_option("JOB", job, "the package that dgc wrote (JOB.dgx)")->required();
  auto *outputOption =
      app.add_option("-o,--output", output, "the page to write")->capture_default_str()->type_name("FILE");
  app.add_flag("--text", asText, "print the summary to standard output; no page is written")->excludes(outputOption);
  app.set_version_flag("--version", "dgviz " DG_VERSION);
  app.footer(exitCodes);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  Status status = run(job, output, asText);
  if (!status)
    std::fprintf(stderr, "dgviz: error: %s\n", status.message().c_str());
  return status.exitCode();
}
