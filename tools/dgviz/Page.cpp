// SPDX-License-Identifier: Apache-2.0
// Puts the page together: template, style, script, and the two data blocks.
#include "tools/dgviz/Page.h"
#include "tools/dgviz/PageAssets.h"
#include "tools/dgviz/PageData.h"

namespace dg::viz {

namespace {

/// In JSON '<' stands only inside strings; escaped, no text can end the data block or open a comment in it.
std::string escaped(const std::string &json) {
  std::string result;
  result.reserve(json.size());
  for (char c : json)
    if (c == '<')
      result += "\\u003c";
    else
      result += c;
  return result;
}

} // namespace

Result<std::string> makePage(const Report &report) {
  Result<std::string> data = pageData(report);
  if (!data)
    return data.status();
  // The template is cut at its marks; what is put in is never searched for further marks.
  const std::pair<std::string_view, std::string> parts[] = {{"@STYLE_HASH@", std::string(styleHash)},
                                                            {"@SCRIPT_HASH@", std::string(scriptHash)},
                                                            {"@STYLE@", std::string(pageCss)},
                                                            {"@PLAN@", escaped(plan::toJson(report.job->plan))},
                                                            {"@VIEW@", escaped(*data)},
                                                            {"@SCRIPT@", std::string(pageJs)}};
  std::string page;
  std::string_view rest = pageHtml;
  for (const auto &[mark, text] : parts) {
    size_t at = rest.find(mark);
    if (at == std::string_view::npos)
      return Status::error(ErrorKind::runFailed, "page.html lacks {} in its order; build dgviz again", mark);
    page += rest.substr(0, at);
    page += text;
    rest.remove_prefix(at + mark.size());
  }
  page += rest;
  return page;
}

} // namespace dg::viz
