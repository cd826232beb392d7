// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/Status.h"

namespace dg {

const std::string &Status::message() const {
  static const std::string none;
  return failure ? failure->second : none;
}

int Status::exitCode() const {
  if (!failure)
    return 0;
  switch (failure->first) {
  case ErrorKind::usage:
    return 2;
  case ErrorKind::badInput:
    return 65;
  case ErrorKind::runFailed:
    return 1;
  }
  return 1;
}

} // namespace dg
