// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/Status.h"

namespace dg {

const std::string &Status::message() const {
  static const std::string none;
  return failure ? failure->second : none;
}

static constexpr std::pair<ErrorKind, int> exitCodes[] = {{ErrorKind::usage, 2},
                                                          {ErrorKind::badInput, 65},
                                                          {ErrorKind::lost, 69},
                                                          {ErrorKind::defect, 70},
                                                          {ErrorKind::unwritten, 74}};

int exitCodeOf(ErrorKind kind) {
  for (const auto &[known, code] : exitCodes)
    if (known == kind)
      return code;
  return 1;
}

int Status::exitCode() const { return failure ? exitCodeOf(failure->first) : 0; }

ErrorKind kindOfExitCode(int code) {
  for (const auto &[kind, known] : exitCodes)
    if (known == code)
      return kind;
  return ErrorKind::runFailed;
}

} // namespace dg
