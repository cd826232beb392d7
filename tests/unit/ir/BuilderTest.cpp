// SPDX-License-Identifier: Apache-2.0
// Proves that a built-in family is the model that its example spells out, op by op, that size costs nothing, and that
// a spec or a layer that does not fit is one message that says what would.
#include "ir/build/Builder.h"
#include "ir/build/Families.h"
#include "ir/ops/product/AttentionOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <chrono>

using namespace mlir;
using namespace dg::ir;

namespace {

struct Families : testing::Test {
  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::vector<std::string> messages;
  ScopedDiagnosticHandler handler{&context, [this](Diagnostic &diagnostic) { messages.push_back(diagnostic.str()); }};

  Families() { context.loadDialect<DGDialect>(); }

  OwningOpRef<ModuleOp> build(StringRef spec) {
    auto module = buildFamily(spec, context);
    EXPECT_TRUE(succeeded(module)) << spec.str() << ": " << allMessages();
    return succeeded(module) ? std::move(*module) : ModuleOp::create(UnknownLoc::get(&context));
  }

  void deduceTypes(ModuleOp module, int64_t batch) {
    PassManager manager(&context);
    dg::passes::DeduceTypesOptions options;
    options.batch = batch;
    manager.addPass(dg::passes::createDeduceTypes(options));
    EXPECT_TRUE(succeeded(manager.run(module))) << allMessages();
  }

  std::string allMessages() {
    std::string all;
    for (const std::string &message : messages)
      all += message + "\n";
    return all;
  }
};

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

GraphOp graphOf(ModuleOp module) { return *module.getOps<GraphOp>().begin(); }

/// An author may declare parameters above the layers or beside them: here all stand above, in the order they had.
void hoistParameters(ModuleOp module) {
  Block &block = graphOf(module).getBody().front();
  Operation *top = &block.front();
  for (auto parameter : llvm::make_early_inc_range(block.getOps<ParameterOp>()))
    if (parameter == top)
      top = top->getNextNode();
    else
      parameter->moveBefore(top);
}

double numParameters(ModuleOp module) {
  double sum = 0;
  for (auto parameter : graphOf(module).getBody().getOps<ParameterOp>())
    sum += parameter.getState() ? 0.0 : double(cast<RankedTensorType>(parameter.getType()).getNumElements());
  return sum;
}

} // namespace

TEST_F(Families, EqualTheExamplesForEveryBatch) {
  const std::pair<std::string, std::string> models[] = {
      {"mlp:10-20-1", "mlp"},
      {"lenet", "lenet"},
      {"mlp:784-1024-1024-10", "wide_mlp"},
      {"gpt:layers=4,hidden=384,heads=6,seq=256,vocab=8192", "gpt"},
      {"llama:layers=4,hidden=384,heads=6,kv_heads=2,ffn=1024,seq=256,vocab=8192", "llama"},
  };
  for (const auto &[spec, example] : models)
    for (int64_t batch : {1, 64}) {
      SCOPED_TRACE(spec);
      OwningOpRef<ModuleOp> built = build(spec);
      auto parsed = parseSourceFile<ModuleOp>(DG_EXAMPLES "/" + example + ".mlir", ParserConfig(&context));
      ASSERT_TRUE(parsed) << allMessages();
      for (ModuleOp module : {*built, *parsed}) {
        deduceTypes(module, batch);
        hoistParameters(module);
      }
      EXPECT_EQ(textOf(*built), textOf(*parsed));
    }
}

TEST_F(Families, PrintWhatParses) {
  for (StringRef spec : {"mlp:3-1", "mlp:4-5-6-7", "lenet", "gpt:layers=1,hidden=8,heads=2,seq=4,vocab=16",
                         "bert:layers=2,hidden=8,heads=2,seq=4,vocab=16", "resnet:18,classes=10,image=32,width=8",
                         "llama:layers=2,hidden=8,heads=2,kv_heads=1,ffn=12,seq=4,vocab=16"}) {
    SCOPED_TRACE(spec.str());
    std::string text = textOf(*build(spec));
    auto parsed = parseSourceString<ModuleOp>(text, ParserConfig(&context));
    ASSERT_TRUE(parsed) << allMessages();
    EXPECT_EQ(text, textOf(*parsed));
  }
}

TEST_F(Families, HoldTheParametersOfTheirSizes) {
  auto transformer = [](double layers, double hidden, double seq, double vocab) {
    return 2 * vocab * hidden + seq * hidden + layers * (12 * hidden * hidden + 13 * hidden) + 2 * hidden;
  };
  EXPECT_EQ(numParameters(*build("mlp:10-20-1")), 10 * 20 + 20 + 20 + 1);
  EXPECT_EQ(numParameters(*build("lenet")), 21840) << "as PyTorch's MNIST example has them";
  EXPECT_EQ(numParameters(*build("gpt")), transformer(12, 768, 1024, 50257));
  EXPECT_EQ(numParameters(*build("gpt:layers=48,hidden=8192,heads=64,seq=2048,vocab=51200")),
            transformer(48, 8192, 2048, 51200));
  EXPECT_EQ(numParameters(*build("bert:layers=12,hidden=768,heads=12,seq=512,vocab=30522")),
            transformer(12, 768, 512, 30522) + 30522);
  EXPECT_EQ(numParameters(*build("llama")), 1498482688.0) << "Llama 3.2 1B and a head of its own";
  for (auto [spec, count] : {std::pair("resnet:18", 11689512), std::pair("resnet:34", 21797672),
                             std::pair("resnet:50", 25557032), std::pair("resnet:101", 44549160),
                             std::pair("resnet:152", 60192808), std::pair("resnet:18,classes=10", 11181642)})
    EXPECT_EQ(numParameters(*build(spec)), count) << spec << ", as torchvision has them";
}

TEST_F(Families, LetEveryTokenOfBertSeeEveryOther) {
  OwningOpRef<ModuleOp> module = build("bert:layers=2,hidden=8,heads=2,seq=4,vocab=16");
  deduceTypes(*module, 3);
  ASSERT_TRUE(succeeded(verify(*module))) << allMessages();
  int64_t numAttentions = 0;
  for (auto attention : graphOf(*module).getBody().getOps<AttentionOp>()) {
    EXPECT_FALSE(attention.getCausal());
    ++numAttentions;
  }
  EXPECT_EQ(numAttentions, 2);
  EXPECT_EQ(tensorOf(graphOf(*module).getReturn().getOperand(0)).getRank(), 0);
}

TEST_F(Families, BuildATrillionParametersAtOnce) {
  build("gpt:layers=1"); // the dialect's one-time set-up is not the model's cost
  auto start = std::chrono::steady_clock::now();
  OwningOpRef<ModuleOp> module = build("gpt:layers=128,hidden=25600,heads=160,seq=2048,vocab=51200");
  std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
  EXPECT_GT(numParameters(*module), 1e12);
  RecordProperty("build_ms", std::to_string(elapsed.count()));
  EXPECT_LT(elapsed.count(), 1000) << "milliseconds, even where other work takes the cores";
}

TEST_F(Families, AreToldFromFiles) {
  for (StringRef spec :
       {"mlp:784-1024-10", "mlp", "lenet", "gpt:layers=2", "bert", "llama", "resnet:50", "gpt:depth=2"})
    EXPECT_TRUE(isFamilySpec(spec)) << spec.str();
  for (StringRef path : {"", "mlp.mlir", "examples/lenet.mlir", "./lenet", "lenet2", "gpt:2.onnx", "mlp:10-1.mlirbc"})
    EXPECT_FALSE(isFamilySpec(path)) << path.str();
}

TEST_F(Families, SayWhatIsKnown) {
  const std::pair<std::string, std::string> wrong[] = {
      {"vgg:16", "found no family of that name, expected one of mlp:784-1024-10, lenet, gpt:layers=48,"},
      {"resnet:20",
       "found '20' for the depth, expected 18, 34, 50, 101 or 152, as in resnet:50,classes=1000,image=224"},
      {"resnet:50,depth=3", "found the key 'depth', expected classes, image or width, as in resnet:50"},
      {"resnet:18,image=0", "found '0' for image, expected a number from 1 to 8192"},
      {"resnet:18,width=8,width=9", "found the key 'width' twice, expected each key once"},
      {"mlp", "found '' as the sizes of the layers, expected two or more, as in mlp:784-1024-10"},
      {"mlp:10", "found '10' as the sizes of the layers, expected two or more"},
      {"mlp:10-x-1", "found 'x' for the width of a layer, expected a number from 1 to 10000000"},
      {"mlp:10--1", "found '' for the width of a layer"},
      {"mlp:10-0", "found '0' for the width of a layer"},
      {"mlp:10-99999999999999999999", "found '99999999999999999999' for the width of a layer"},
      {"lenet:5", "found '5' after 'lenet', expected nothing"},
      {"gpt:depth=4", "found the key 'depth', expected layers, hidden, heads, seq or vocab, as in gpt:layers=48,"},
      {"gpt:layers=4,", "found the key ''"},
      {"gpt:layers", "found '' for layers, expected a number from 1 to 10000"},
      {"gpt:layers=-4", "found '-4' for layers"},
      {"bert:seq=1,seq=2", "found the key 'seq' twice"},
      {"llama:hidden=12,heads=4", "found hidden=12 and heads=4, expected heads of an even width"},
      {"llama:heads=6,hidden=384", "found heads=6 and kv_heads=8, expected a number of kv_heads that divides heads"},
      {"gpt:hidden=10,heads=3", "found hidden=10 and heads=3, expected a number of heads that divides hidden"},
  };
  for (const auto &[spec, message] : wrong) {
    messages.clear();
    EXPECT_TRUE(failed(buildFamily(spec, context))) << spec;
    ASSERT_EQ(messages.size(), 1u) << spec << "\n" << allMessages();
    EXPECT_EQ(messages[0].find("model '" + spec + "': " + message), 0u) << messages[0];
  }
}

TEST_F(Families, StartLikePyTorch) {
  EXPECT_EQ(Init::fanIn(25).value, 0.2);
  EXPECT_EQ(Init::fanIn(1024).value, 0.03125);
  EXPECT_EQ(Init::fanIn(10).value, 0.31622776);
  EXPECT_EQ(Init::fanIn(320).value, 0.05590169);
}

TEST_F(Families, ReportALayerThatDoesNotFitOnce) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  GraphBuilder b(*module);
  Value x = b.input("x", {b.batch, 3}, b.f32());
  Value h = b.relu(b.conv2d(x, "conv1", 4, {.kernel = {3, 3}}));
  EXPECT_TRUE(failed(b.returns(b.linear(h, "fc1", 2))));
  ASSERT_EQ(messages.size(), 1u) << allMessages();
  EXPECT_NE(messages[0].find("'dg.conv2d' op"), std::string::npos) << messages[0];
}

TEST_F(Families, ReportAnInputOfUnknownWidth) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  GraphBuilder b(*module);
  EXPECT_TRUE(failed(b.returns(b.linear(b.input("x", {3, b.batch}, b.f32()), "fc1", 2))));
  ASSERT_EQ(messages.size(), 1u) << allMessages();
  EXPECT_EQ(messages[0], "layer 'fc1' has an input of type 'tensor<3x?xf32>', expected a known size in the last "
                         "dimension, which shapes its parameters");
}

TEST_F(Families, ReportAParameterThatStandsTwice) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  GraphBuilder b(*module);
  Value x = b.input("x", {b.batch, 3}, b.f32());
  EXPECT_TRUE(failed(b.returns(b.linear(b.linear(x, "fc", 3), "fc", 3))));
  EXPECT_NE(allMessages().find("is declared twice"), std::string::npos) << allMessages();
}
