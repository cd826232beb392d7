// SPDX-License-Identifier: Apache-2.0
// libcurl is opened when the first remote file is asked for: it brings thirty libraries with it, which a run over local
// files has no use for.
#include "runtime/data/remote/Transfer.h"

#if DG_HAS_CURL
#include "runtime/support/FileWriting.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <curl/curl.h>
#include <dlfcn.h>
#include <memory>
#include <string_view>
#include <type_traits>
#endif

namespace dg::data {

#if DG_HAS_CURL

namespace {

/// The functions of libcurl that are used.
struct Library {
  decltype(&curl_global_init) globalInit;
  decltype(&curl_easy_init) make;
  decltype(&curl_easy_setopt) set;
  decltype(&curl_easy_perform) perform;
  decltype(&curl_easy_getinfo) get;
  decltype(&curl_easy_cleanup) remove;
  decltype(&curl_easy_strerror) describe;
  decltype(&curl_slist_append) append;
  decltype(&curl_slist_free_all) removeList;
  std::string failure; ///< why it cannot be used; empty: it can
};

Library openLibrary() {
  Library library{};
  void *file = ::dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (!file) {
    library.failure = ::dlerror();
    return library;
  }
  auto find = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(file, name));
    if (!function)
      library.failure = std::string("it has no ") + name;
  };
  find(library.globalInit, "curl_global_init");
  find(library.make, "curl_easy_init");
  find(library.set, "curl_easy_setopt");
  find(library.perform, "curl_easy_perform");
  find(library.get, "curl_easy_getinfo");
  find(library.remove, "curl_easy_cleanup");
  find(library.describe, "curl_easy_strerror");
  find(library.append, "curl_slist_append");
  find(library.removeList, "curl_slist_free_all");
  if (library.failure.empty() && library.globalInit(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    library.failure = "it does not start";
  return library;
}

/// Opened by the first call.
const Library &curlLibrary() {
  static const Library library = openLibrary();
  return library;
}

constexpr long statusOk = 200, statusPart = 206, mostRedirects = 5;

/// What libcurl calls back with.
struct Exchange {
  Answer answer;
  int file = -1;
  uint64_t asked = 0; ///< from which byte on
  bool isRangeInUrl = false;
  std::string tag, date; ///< of the answer that is being read; a redirect has some of its own
  const TransferLimits *limits = nullptr;
  CURL *handle = nullptr;

  /// Of the answer's own bytes; those of an error or a redirect are not kept.
  size_t keep(const char *bytes, size_t count);
  void readHeader(std::string_view line);
};

bool startsAs(std::string_view line, std::string_view name) {
  return line.size() > name.size() && std::equal(name.begin(), name.end(), line.begin(), [](char a, char b) {
           return a == (b >= 'A' && b <= 'Z' ? char(b - 'A' + 'a') : b);
         });
}

void Exchange::readHeader(std::string_view line) {
  auto value = [&](std::string_view name) {
    std::string_view rest = line.substr(name.size());
    rest = rest.substr(std::min(rest.find_first_not_of(' '), rest.size()));
    return rest.substr(0, rest.find_last_not_of(" \r\n") + 1);
  };
  auto number = [](std::string_view digits) -> std::optional<uint64_t> {
    uint64_t read = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), read);
    return error == std::errc() && end == digits.data() + digits.size() ? std::optional(read) : std::nullopt;
  };
  constexpr size_t mostIdentity = 256;
  if (line.starts_with("HTTP/")) { // the next of several answers
    tag.clear(), date.clear();
    answer.from.reset(), answer.size.reset();
  } else if (startsAs(line, "etag:")) {
    tag = value("etag:").substr(0, mostIdentity);
  } else if (startsAs(line, "last-modified:")) {
    date = value("last-modified:").substr(0, mostIdentity);
  } else if (startsAs(line, "content-range:")) { // bytes 100-199/200
    std::string_view range = value("content-range:");
    if (!range.starts_with("bytes "))
      return;
    range.remove_prefix(6);
    const size_t dash = range.find('-'), slash = range.find('/');
    if (dash == std::string_view::npos || slash == std::string_view::npos || dash > slash)
      return;
    answer.from = number(range.substr(0, dash));
    answer.size = number(range.substr(slash + 1));
  } else if (startsAs(line, "content-length:") && !answer.from) {
    answer.size = number(value("content-length:"));
  }
}

size_t Exchange::keep(const char *bytes, size_t count) {
  long code = 0;
  curlLibrary().get(handle, CURLINFO_RESPONSE_CODE, &code);
  if (code != statusOk && code != statusPart)
    return count;
  const uint64_t begin = code == statusPart ? answer.from.value_or(UINT64_MAX) : isRangeInUrl ? asked : 0;
  if (begin != asked && begin != 0) {
    answer.failure = "it sent another part of the file than was asked for";
    return 0;
  }
  if (const int error = writeAllAt(file, bytes, count, begin + answer.received); error != 0) {
    answer.failure = fmt::format("the data cache cannot be written: {}", std::strerror(error));
    answer.isHopeless = true;
    return 0;
  }
  answer.received += count;
  return count;
}

size_t onBytes(char *bytes, size_t, size_t count, void *exchange) {
  return static_cast<Exchange *>(exchange)->keep(bytes, count);
}

size_t onHeader(char *bytes, size_t, size_t count, void *exchange) {
  static_cast<Exchange *>(exchange)->readHeader({bytes, count});
  return count;
}

int onProgress(void *exchange, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const auto &isStopped = static_cast<Exchange *>(exchange)->limits->isStopped;
  return isStopped && isStopped() ? 1 : 0;
}

struct Closer {
  void operator()(CURL *handle) const { curlLibrary().remove(handle); }
  void operator()(curl_slist *list) const { curlLibrary().removeList(list); }
};

} // namespace

Status prepareTransfers() {
  const std::string &failure = curlLibrary().failure;
  return failure.empty()
             ? Status::ok()
             : Status::error(ErrorKind::usage,
                             "http, s3 and hdfs need libcurl.so.4 ({}); install libcurl4, or copy the files", failure);
}

Answer transfer(const Request &request, uint64_t from, const std::string &identity, const std::string &unless, int file,
                const TransferLimits &limits) {
  const Library &library = curlLibrary();
  std::unique_ptr<CURL, Closer> handle(library.make());
  Exchange exchange;
  if (!handle) {
    exchange.answer.failure = "no memory for libcurl";
    return exchange.answer;
  }
  exchange.file = file, exchange.asked = from, exchange.isRangeInUrl = request.isRangeInUrl;
  exchange.limits = &limits, exchange.handle = handle.get();
  curl_slist *headers = nullptr;
  auto add = [&](const std::string &header) { headers = library.append(headers, header.c_str()); };
  for (const std::string &header : request.headers)
    add(header);
  if (!unless.empty())
    add((unless.starts_with('"') || unless.starts_with("W/") ? "If-None-Match: " : "If-Modified-Since: ") + unless);
  if (from > 0 && !request.isRangeInUrl) {
    add(fmt::format("Range: bytes={}-", from));
    if (identity.starts_with('"'))
      add("If-Range: " + identity);
  }
  std::unique_ptr<curl_slist, Closer> owner(headers);
  CURL *curl = handle.get();
  const bool isSecure = request.url.starts_with("https://");
  const long seconds = std::max(long(limits.silence.count() / 1000), 1L);
  library.set(curl, CURLOPT_URL, request.url.c_str());
  library.set(curl, CURLOPT_PROTOCOLS_STR, isSecure ? "https" : "http");
  library.set(curl, CURLOPT_REDIR_PROTOCOLS_STR, isSecure ? "https" : "http,https");
  // A signature, and the token beside it, are for the server that was named, not for another one.
  library.set(curl, CURLOPT_FOLLOWLOCATION, request.signature.empty() ? 1L : 0L);
  library.set(curl, CURLOPT_MAXREDIRS, mostRedirects);
  library.set(curl, CURLOPT_NOSIGNAL, 1L);
  library.set(curl, CURLOPT_CONNECTTIMEOUT, seconds);
  library.set(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  library.set(curl, CURLOPT_LOW_SPEED_TIME, seconds);
  library.set(curl, CURLOPT_USERAGENT, "dgrun");
  library.set(curl, CURLOPT_HTTPHEADER, headers);
  library.set(curl, CURLOPT_WRITEFUNCTION, onBytes);
  library.set(curl, CURLOPT_WRITEDATA, &exchange);
  library.set(curl, CURLOPT_HEADERFUNCTION, onHeader);
  library.set(curl, CURLOPT_HEADERDATA, &exchange);
  library.set(curl, CURLOPT_XFERINFOFUNCTION, onProgress);
  library.set(curl, CURLOPT_XFERINFODATA, &exchange);
  library.set(curl, CURLOPT_NOPROGRESS, 0L);
  if (const char *authorities = std::getenv("SSL_CERT_FILE"); authorities && *authorities)
    library.set(curl, CURLOPT_CAINFO, authorities);
  if (!request.signature.empty()) {
    library.set(curl, CURLOPT_AWS_SIGV4, request.signature.c_str());
    library.set(curl, CURLOPT_USERPWD, request.user.c_str());
  }
  const CURLcode code = library.perform(curl);
  Answer &answer = exchange.answer;
  long status = 0;
  library.get(curl, CURLINFO_RESPONSE_CODE, &status);
  answer.code = status;
  answer.identity = exchange.tag.empty() ? exchange.date : exchange.tag;
  if (status == statusOk && request.isRangeInUrl && answer.size)
    answer.size = *answer.size + from;
  if (code != CURLE_OK && answer.failure.empty()) {
    answer.failure = library.describe(code);
    answer.isHopeless = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_TOO_MANY_REDIRECTS ||
                        code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL ||
                        code == CURLE_SSL_CACERT_BADFILE || code == CURLE_ABORTED_BY_CALLBACK;
  }
  return answer;
}

#else

Status prepareTransfers() {
  return Status::error(ErrorKind::usage,
                       "http, s3 and hdfs were left out of this build; install libcurl4-openssl-dev and "
                       "build again, or copy the files");
}

Answer transfer(const Request &, uint64_t, const std::string &, const std::string &, int, const TransferLimits &) {
  return {};
}

#endif

} // namespace dg::data
