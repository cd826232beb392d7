// SPDX-License-Identifier: Apache-2.0
// The measurement of this host, kept in the user's folder of caches so that it is made once.
#pragma once

#include "tools/host/HostProbe.h"

#include <optional>
#include <string>

namespace dg::tools {

/// What a measurement is good for: a host with the same processor, cores, memory and DG. The name of its file follows
/// from it, so that several hosts may share a home folder.
std::string hostKey();

/// What was kept of the host `key`; nothing where there is no file, or one that is damaged, of another key, or that
/// others could have written. A measurement beside other work counts for an hour.
std::optional<MeasuredHost> findHost(const std::string &folder, const std::string &key);

/// Keeps it. Fails with usage or unwritten where the folder cannot be used; the measurement is as good without.
Status keepHost(const std::string &folder, const std::string &key, const MeasuredHost &host);

/// The host as it was measured before, else measured now, and kept where `folder` is not empty.
Result<MeasuredHost> knowHost(const std::string &folder);

/// "2 cores of AMD EPYC, 290 Gflop/s and 43.4 GB/s each, 23.5 GiB, measured 2026-11-19 22:10 UTC"
std::string describeHost(const MeasuredHost &host);

} // namespace dg::tools
