// SPDX-License-Identifier: Apache-2.0
// What a remote name means: which URL is asked, and what is sent along.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dg::data {

/// Whether a source is on another machine: http://, https://, s3:// or hdfs://.
bool isRemote(const std::string &path);

/// A file on another machine, from some byte on.
struct Request {
  std::string url;
  std::vector<std::string> headers;
  std::string signature;     ///< for CURLOPT_AWS_SIGV4; empty: not signed
  std::string user;          ///< KEY:SECRET of the signature
  bool isRangeInUrl = false; ///< WebHDFS: the URL says from where, not a header
};

/// s3://BUCKET/KEY is signed with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN where they are set,
/// for AWS_REGION or AWS_DEFAULT_REGION (us-east-1), at AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL (Amazon's).
/// hdfs://HOST:PORT/PATH asks the namenode's WebHDFS there, as HADOOP_USER_NAME where that is set. Fails (usage) if the
/// name is malformed.
Result<Request> makeRequest(const std::string &name, uint64_t from);

} // namespace dg::data
