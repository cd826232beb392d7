// SPDX-License-Identifier: Apache-2.0
// --weights-rename and --weights-skip give tensors the names that a regular expression gives them, and refuse what
// matches nothing or makes two tensors one.
#include "compiler/WeightNames.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <regex>

using namespace dg;
using namespace dg::compiler;

namespace {

/// A file of scalars with these names.
class File {
public:
  explicit File(const std::vector<std::string> &names) {
    std::vector<package::TensorSpec> specs;
    for (const std::string &name : names)
      specs.push_back({name, "F32", {}});
    auto layout = package::layoutSafetensors(specs);
    EXPECT_TRUE(layout);
    bytes.resize(layout->fileBytes);
    std::memcpy(bytes.data(), layout->header.data(), layout->header.size());
    auto parsed = package::Safetensors::parse(bytes, "file");
    EXPECT_TRUE(parsed) << parsed.status().message();
    tensors = std::move(*parsed);
  }
  Result<NamedWeights> name(const std::vector<std::string> &renames, const std::vector<std::string> &skips = {}) const {
    return nameWeights(tensors, "file", renames, skips);
  }

private:
  std::vector<std::byte> bytes;
  package::Safetensors tensors;
};

std::string namesOf(const std::map<std::string, const package::Tensor *, std::less<>> &tensors) {
  std::string text;
  for (const auto &[name, tensor] : tensors)
    text += name + "<-" + tensor->name + " ";
  return text;
}

TEST(WeightNames, theFirstRuleDecidesAndSkipsSeeNewNames) {
  File file({"net.0.w", "net.1.w", "net.head.w", "other"});
  auto named = file.name({"net.head.*=head.*", "net.*.w=features.*.weight"}, {"head.?"});
  ASSERT_TRUE(named) << named.status().message();
  EXPECT_EQ(namesOf(named->tensors), "features.0.weight<-net.0.w features.1.weight<-net.1.w other<-other ");
  EXPECT_EQ(namesOf(named->skipped), "head.w<-net.head.w ");
}

TEST(WeightNames, whatMatchesNothingOrIsMalformedIsRefused) {
  File file({"a.w", "b.w"});
  for (const auto &[renames, skips, expected] : std::vector<std::array<std::vector<std::string>, 3>>{
           {{{"c.*=d.*"}, {}, {"--weights-rename 'c.*=d.*': file has no tensor of that name; it has a.w, b.w"}}},
           {{{"a.*=c.*"}, {"a.*"}, {"--weights-skip 'a.*': file has no tensor of that name after renaming"}}},
           {{{}, {"c"}, {"--weights-skip 'c': file has no tensor of that name; it has"}}},
           {{{"*.w=x"}, {}, {"as many * in NEW as in OLD"}}},
           {{{"a.w"}, {}, {"expected OLD=NEW"}}},
           {{{"=b"}, {}, {"expected OLD=NEW"}}},
           {{{"a.w=b.w"}, {}, {"'a.w' and 'b.w' of file both become 'b.w'"}}},
           {{{"a.w=b.w"}, {"b.*"}, {"'a.w' and 'b.w' of file both become 'b.w'"}}}}) {
    auto named = file.name(renames, skips);
    ASSERT_FALSE(named);
    EXPECT_EQ(named.status().kind(), ErrorKind::usage);
    EXPECT_NE(named.status().message().find(expected[0]), std::string::npos) << named.status().message();
  }
}

/// The oracle: each * of the old name is a group that takes as little as it can.
TEST(WeightNames, starsTakeWhatLazyGroupsTake) {
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  auto text = [&](const std::string &letters, size_t most) {
    std::string made(1 + random() % most, ' ');
    for (char &c : made)
      c = letters[random() % letters.size()];
    return made;
  };
  int numMatches = 0;
  for (int round = 0; round < 5000; ++round) {
    const std::string name = text("ab.", 8), from = text("ab.**", 6);
    std::string expression, to = "<", format = "<";
    int groups = 0;
    for (char c : from)
      if (c == '*') {
        expression += "([^]*?)", to += "*|", format += "$" + std::to_string(++groups) + "|";
      } else {
        expression += c == '.' ? "\\." : std::string(1, c);
      }
    const bool matches = std::regex_match(name, std::regex(expression));
    auto named = File({name}).name({from + "=" + to});
    ASSERT_EQ(bool(named), matches) << name << " by " << from;
    if (matches) {
      ++numMatches;
      std::smatch found;
      std::regex_match(name, found, std::regex(expression));
      EXPECT_EQ(named->tensors.begin()->first, found.format(format)) << name << " by " << from;
    }
  }
  EXPECT_GT(numMatches, 100);
}

} // namespace
