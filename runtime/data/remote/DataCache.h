// SPDX-License-Identifier: Apache-2.0
// Files of other machines, kept in a folder of this one. A file is whole there or not there; several processes may use
// a folder at once.
#pragma once

#include "runtime/data/remote/Transfer.h"

#include <string>
#include <vector>

namespace dg::data {

class DataCache {
public:
  /// `folder` is made when it is needed; empty: there is none, and fetch says how to give one.
  DataCache(std::string folder, TransferLimits limits) : folder(std::move(folder)), limits(std::move(limits)) {}

  /// The paths here of these remote files, in their order. Each is asked for: one that is here and has not changed is
  /// not sent again. Some are fetched at once, by threads that have ended when it returns. What ends too early is gone
  /// on with, at most 6 tries without success in a row. Fails as the first that cannot be had: with badInput if the
  /// server has no such file or refuses it, with lost if it does not answer, or cuts its answers off.
  Result<std::vector<std::string>> fetch(const std::vector<std::string> &names) const;

private:
  Result<std::string> fetchOne(const std::string &name) const;
  Status download(const std::string &name, const std::string &target, const std::string &known) const;
  std::string folder;
  TransferLimits limits;
};

} // namespace dg::data
