// SPDX-License-Identifier: Apache-2.0
// Proves that external data is read where it is, and that nothing outside of the model's folder, and nothing beyond the
// end of a file, is ever touched.
#include "tests/unit/TemporaryFolder.h"
#include "tests/unit/onnx/ModelText.h"

#include <filesystem>
#include <fstream>
#include <sys/stat.h>

using namespace dg::ir;
using namespace dg::ir::test;
using dg::test::TemporaryFolder;
using mlir::failed;
using mlir::succeeded;
namespace fs = std::filesystem;

static std::string modelWith(const std::string &location, const std::string &more = "") {
  return modelBytes(
      valueInfo("input", "x", "2") + valueInfo("output", "y", "2") +
      "initializer { name: 'w' dims: 2 data_type: 1 data_location: EXTERNAL external_data { key: 'location' "
      "value: '" +
      location + "' } " + more + " } node { op_type: 'Add' input: 'x' input: 'w' output: 'y' }");
}

static void write(const std::string &path, size_t bytes) { std::ofstream(path) << std::string(bytes, '\1'); }

/// outer/secret.bin, outer/model/weights.bin, outer/model/deeper/weights.bin
struct ExternalData : testing::Test {
  ExternalData() {
    fs::create_directories(folder.path("model/deeper"));
    write(folder.path("secret.bin"), 8);
    write(folder.path("model/weights.bin"), 16);
    write(folder.path("model/deeper/weights.bin"), 8);
  }
  std::string refusal(const std::string &location, const std::string &more = "") {
    Import import(modelWith(location, more), {}, folder.path("model/model.onnx"));
    EXPECT_TRUE(failed(import.model)) << location;
    return import.messages;
  }
  static std::string entry(const char *key, const char *value) {
    return std::string("external_data { key: '") + key + "' value: '" + value + "' } ";
  }
  TemporaryFolder folder;
};

TEST_F(ExternalData, isReadWithOffsetAndLength) {
  for (const auto &[location, more] : {std::pair<std::string, std::string>{"deeper/weights.bin", ""},
                                       {"weights.bin", entry("offset", "8")},
                                       {"weights.bin", entry("offset", "4") + entry("length", "8")}}) {
    Import import(modelWith(location, more), {}, folder.path("model/model.onnx"));
    ASSERT_TRUE(succeeded(import.model)) << import.messages;
    ASSERT_EQ(import.model->weights.size(), 1u);
    EXPECT_EQ(import.model->weights[0].bytes.size(), 8u);
    EXPECT_EQ(import.model->weights[0].bytes[7], '\1');
  }
}

TEST_F(ExternalData, mustStayInTheFolder) {
  EXPECT_NE(refusal("../secret.bin").find("leads out of the model's folder"), std::string::npos);
  EXPECT_NE(refusal("deeper/../../secret.bin").find("leads out of the model's folder"), std::string::npos);
  EXPECT_NE(refusal(folder.path("secret.bin")).find("leads out of the model's folder"), std::string::npos);
  fs::create_symlink(folder.path("secret.bin"), folder.path("model/link.bin"));
  EXPECT_NE(refusal("link.bin").find("symbolic link"), std::string::npos);
  fs::create_directory_symlink(folder.path(""), folder.path("model/up"));
  EXPECT_NE(refusal("up/secret.bin").find("symbolic link"), std::string::npos);
  fs::create_hard_link(folder.path("secret.bin"), folder.path("model/hard.bin"));
  EXPECT_NE(refusal("hard.bin").find("has 2 names (hard links), expected one"), std::string::npos);
}

TEST_F(ExternalData, mustBeAPlainFile) {
  EXPECT_NE(refusal("deeper").find("is not a plain file"), std::string::npos);
  EXPECT_NE(refusal("missing.bin").find("cannot be opened"), std::string::npos);
  EXPECT_NE(refusal("").find("is no file name"), std::string::npos);
  ASSERT_EQ(::mkfifo(folder.path("model/pipe.bin").c_str(), 0600), 0);
  EXPECT_NE(refusal("pipe.bin").find("is not a plain file"), std::string::npos); // and nobody waits for a writer
}

TEST_F(ExternalData, mustFitTheFile) {
  EXPECT_NE(refusal("weights.bin").find("has 16 bytes of data, expected 8"), std::string::npos);
  EXPECT_NE(refusal("weights.bin", entry("offset", "9")).find("has 7 bytes of data, expected 8"), std::string::npos);
  EXPECT_NE(refusal("weights.bin", entry("offset", "17")).find("has 16 bytes, expected some from 17 on"),
            std::string::npos);
  EXPECT_NE(
      refusal("weights.bin", entry("offset", "9") + entry("length", "8")).find("has 16 bytes, expected 8 from 9 on"),
      std::string::npos);
  EXPECT_NE(refusal("weights.bin", entry("length", "9223372036854775807")).find("expected 9223372036854775807 from 0"),
            std::string::npos);
  EXPECT_NE(refusal("weights.bin", entry("offset", "-8")).find("expected some from -8 on"), std::string::npos);
  EXPECT_NE(refusal("weights.bin", entry("length", "many")).find("'many', expected a whole number"), std::string::npos);
}
