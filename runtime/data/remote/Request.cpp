// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/remote/Request.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace dg::data {

/// Of no bytes, which is what a GET sends; S3 wants it among the headers that are signed.
static constexpr const char *hashOfNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

bool isRemote(const std::string &path) {
  for (const char *scheme : {"http://", "https://", "s3://", "hdfs://"})
    if (path.starts_with(scheme))
      return true;
  return false;
}

static std::string variable(std::initializer_list<const char *> names) {
  for (const char *name : names)
    if (const char *value = std::getenv(name); value && *value)
      return value;
  return "";
}

/// All bytes but letters, digits, -._~ and / as %NN.
static std::string encodePath(std::string_view path) {
  std::string encoded;
  for (char c : path) {
    const bool isPlain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                         std::string_view("-._~/").find(c) != std::string_view::npos;
    encoded += isPlain ? std::string(1, c) : fmt::format("%{:02X}", uint8_t(c));
  }
  return encoded;
}

static Result<Request> makeS3(const std::string &name) {
  const std::string rest = name.substr(std::string_view("s3://").size());
  const size_t slash = rest.find('/');
  const std::string bucket = rest.substr(0, slash);
  const std::string key = slash == std::string::npos ? "" : rest.substr(slash + 1);
  const bool isBucket = std::all_of(bucket.begin(), bucket.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_';
  });
  if (bucket.empty() || key.empty() || !isBucket)
    return Status::error(ErrorKind::usage, "'{}': expected s3://BUCKET/KEY", name);
  std::string region = variable({"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (region.empty())
    region = "us-east-1";
  std::string endpoint = variable({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  while (endpoint.ends_with('/'))
    endpoint.pop_back();
  Request request;
  request.url = endpoint.empty() ? fmt::format("https://{}.s3.{}.amazonaws.com/{}", bucket, region, encodePath(key))
                                 : fmt::format("{}/{}/{}", endpoint, bucket, encodePath(key));
  const std::string id = variable({"AWS_ACCESS_KEY_ID"}), secret = variable({"AWS_SECRET_ACCESS_KEY"}),
                    token = variable({"AWS_SESSION_TOKEN"});
  if (id.empty() || secret.empty())
    return request; // of a bucket that is open to all
  request.signature = fmt::format("aws:amz:{}:s3", region);
  request.user = id + ":" + secret;
  request.headers.push_back(fmt::format("x-amz-content-sha256: {}", hashOfNothing));
  if (!token.empty())
    request.headers.push_back("x-amz-security-token: " + token);
  return request;
}

static Result<Request> makeHdfs(const std::string &name, uint64_t from) {
  const std::string rest = name.substr(std::string_view("hdfs://").size());
  const size_t slash = rest.find('/');
  if (slash == 0 || slash == std::string::npos || slash + 1 == rest.size())
    return Status::error(ErrorKind::usage, "'{}': expected hdfs://NAMENODE:PORT/PATH, with the port of its WebHDFS",
                         name);
  const std::string user = variable({"HADOOP_USER_NAME"});
  Request request;
  request.url = fmt::format("http://{}/webhdfs/v1{}?op=OPEN&offset={}{}", rest.substr(0, slash),
                            encodePath(std::string_view(rest).substr(slash)), from,
                            user.empty() ? "" : "&user.name=" + encodePath(user));
  request.isRangeInUrl = true;
  return request;
}

Result<Request> makeRequest(const std::string &name, uint64_t from) {
  if (std::any_of(name.begin(), name.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }))
    return Status::error(ErrorKind::usage, "'{}': has a control character", name);
  if (name.starts_with("s3://"))
    return makeS3(name);
  if (name.starts_with("hdfs://"))
    return makeHdfs(name, from);
  const size_t host = name.find("://") + 3;
  if (name.substr(host, name.find('/', host) - host).find('@') != std::string::npos)
    return Status::error(ErrorKind::usage,
                         "a source with a password in it would be printed and stored; give the name without one");
  Request request;
  request.url = name;
  return request;
}

} // namespace dg::data
