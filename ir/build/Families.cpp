// SPDX-License-Identifier: Apache-2.0
// A family is a row of the table at the end: its name, a spec to show, and the function that reads the sizes and builds
// the graph. Labels and parameter names are those of the models in examples/.
#include "ir/build/Families.h"
#include "ir/build/Builder.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;

namespace dg::ir {

namespace {

/// No size is larger, so that the elements of a tensor, and its bytes, can be counted in 64 bits.
constexpr int64_t largestSize = 10'000'000;
constexpr int64_t largestDepth = 10'000;
constexpr int64_t largestImage = 8192;

struct Family;

/// What a user asked for, and the module in the making.
struct Request {
  StringRef spec;
  const Family &family;
  StringRef arguments;
  ModuleOp module;

  InFlightDiagnostic error() const {
    return emitError(UnknownLoc::get(module->getContext())) << "model '" << spec << "': ";
  }
  /// `text` is the value of `what`.
  FailureOr<int64_t> parseSize(const Twine &what, StringRef text, int64_t largest) const {
    int64_t size = 0;
    if (text.getAsInteger(10, size) || size < 1 || size > largest)
      return error() << "found '" << text << "' for " << what << ", expected a number from 1 to " << largest;
    return size;
  }
  void setOptimizer(StringRef optimizer) const {
    module->setAttr("dg.optimizer", StringAttr::get(module->getContext(), optimizer));
  }
};

struct Family {
  StringRef name;
  /// A spec to show in messages.
  StringRef example;
  LogicalResult (*build)(const Request &request);
};

/// A size that a user can give as name=number.
template <typename Sizes> struct SizeKey {
  StringRef name;
  int64_t Sizes::*size;
  int64_t largest;
};

/// Sets the sizes that are assigned, each at most once; the others stay.
template <typename Sizes>
LogicalResult parseSizes(const Request &request, ArrayRef<StringRef> assignments, ArrayRef<SizeKey<Sizes>> keys,
                         Sizes &sizes) {
  llvm::SmallDenseSet<StringRef> given;
  for (StringRef assignment : assignments) {
    auto [name, text] = assignment.split('=');
    const auto *key = llvm::find_if(keys, [name = name](const auto &key) { return key.name == name; });
    if (key == keys.end()) {
      auto error = request.error() << "found the key '" << name << "', expected ";
      for (size_t i = 0; i < keys.size(); ++i)
        error << (i == 0 ? "" : i + 1 == keys.size() ? " or " : ", ") << keys[i].name;
      return error << ", as in " << request.family.example;
    }
    if (!given.insert(name).second)
      return request.error() << "found the key '" << name << "' twice, expected each key once, as in "
                             << request.family.example;
    auto size = request.parseSize(name, text, key->largest);
    if (failed(size))
      return failure();
    sizes.*key->size = *size;
  }
  return success();
}

//===- mlp: linear layers with relu between them -----------------------------------------------------------------===//

LogicalResult buildMlp(const Request &request) {
  SmallVector<StringRef> texts;
  request.arguments.split(texts, '-');
  if (texts.size() < 2)
    return request.error() << "found '" << request.arguments
                           << "' as the sizes of the layers, expected two or more, as in " << request.family.example;
  SmallVector<int64_t> sizes;
  for (StringRef text : texts) {
    auto size = request.parseSize("the width of a layer", text, largestSize);
    if (failed(size))
      return failure();
    sizes.push_back(*size);
  }
  size_t numLayers = sizes.size() - 1;
  bool isRegression = sizes.back() == 1;
  request.setOptimizer(isRegression ? "sgd:lr=0.01" : "adam:lr=0.001");

  GraphBuilder b(request.module);
  Value h = b.input("x", {b.batch, sizes.front()}, b.f32());
  Value y = isRegression ? b.input("y", {b.batch, 1}, b.f32()) : b.input("y", {b.batch}, b.i32());
  for (size_t layer = 1; layer <= numLayers; ++layer) {
    bool isLast = layer == numLayers;
    h = b.linear(h, "fc" + Twine(layer), sizes[layer], {.label = isLast && !isRegression ? "logits" : ""});
    if (!isLast)
      h = b.relu(h, numLayers == 2 ? Twine("h") : "h" + Twine(layer));
  }
  return b.returns(isRegression ? b.mse(h, y) : b.crossEntropy(h, y));
}

//===- lenet: the convolution net of the MNIST examples ----------------------------------------------------------===//

LogicalResult buildLenet(const Request &request) {
  if (!request.arguments.empty())
    return request.error() << "found '" << request.arguments << "' after 'lenet', expected nothing: it has one size";
  request.setOptimizer("sgd:lr=0.01,momentum=0.5");

  GraphBuilder b(request.module);
  Value x = b.input("x", {b.batch, 1, 28, 28}, b.f32()), y = b.input("y", {b.batch}, b.i32());
  Value h = b.conv2d(x, "conv1", 10, {.kernel = {5, 5}});
  h = b.relu(b.maxPool2d(h, {2, 2}, "pool1"), "h1");
  h = b.conv2d(h, "conv2", 20, {.kernel = {5, 5}});
  h = b.relu(b.maxPool2d(h, {2, 2}, "pool2"), "h2");
  h = b.reshape(h, {0, -1}, "flat");
  h = b.relu(b.linear(h, "fc1", 50), "h3");
  h = b.linear(h, "fc2", 10);
  return b.returns(b.nll(b.logSoftmax(h, "logp"), y));
}

//===- gpt and bert ----------------------------------------------------------------------------------------------===//

struct TransformerSizes {
  int64_t layers, hidden, heads, seq, vocab;
};

FailureOr<TransformerSizes> parseTransformer(const Request &request, TransformerSizes sizes) {
  const SizeKey<TransformerSizes> keys[] = {{"layers", &TransformerSizes::layers, largestDepth},
                                            {"hidden", &TransformerSizes::hidden, largestSize},
                                            {"heads", &TransformerSizes::heads, largestSize},
                                            {"seq", &TransformerSizes::seq, largestSize},
                                            {"vocab", &TransformerSizes::vocab, largestSize}};
  SmallVector<StringRef> assignments;
  request.arguments.split(assignments, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/!request.arguments.empty());
  if (failed(parseSizes<TransformerSizes>(request, assignments, keys, sizes)))
    return failure();
  if (sizes.hidden % sizes.heads != 0)
    return request.error() << "found hidden=" << sizes.hidden << " and heads=" << sizes.heads
                           << ", expected a number of heads that divides hidden";
  return sizes;
}

/// Every weight of a transformer starts small, every bias with 0.
constexpr Init smallInit = Init::normal(0.02);

LayerOptions transformerLayer(const Twine &label) {
  return {.weight = smallInit, .bias = Init::constant(0), .label = label.str()};
}

/// The layers of one block: parameters "blocks.3.attn.q.weight", labels "b3_q".
struct TransformerBlock {
  GraphBuilder &b;
  const TransformerSizes &sizes;
  int64_t number;

  std::string name(StringRef layer) const { return ("blocks." + Twine(number) + "." + layer).str(); }
  std::string label(StringRef op) const { return ("b" + Twine(number) + "_" + op).str(); }

  Value linear(Value x, StringRef part, StringRef layer, int64_t width) const {
    return b.linear(x, name((part + "." + layer).str()), width, transformerLayer(label(layer)));
  }
  Value layerNorm(Value x, StringRef layer) const { return b.layerNorm(x, name(layer), {.label = label(layer)}); }

  Value attention(Value x, bool isCausal) const {
    Value query = linear(x, "attn", "q", sizes.hidden);
    Value key = linear(x, "attn", "k", sizes.hidden);
    Value value = linear(x, "attn", "v", sizes.hidden);
    Value mixed = b.attention(query, key, value, sizes.heads, isCausal, label("attn"));
    return linear(mixed, "attn", "o", sizes.hidden);
  }
  Value feedForward(Value x) const {
    Value wide = b.gelu(linear(x, "mlp", "up", 4 * sizes.hidden), label("act"));
    return linear(wide, "mlp", "down", sizes.hidden);
  }
};

/// Rows of a learned table plus learned positions.
Value embedTokens(GraphBuilder &b, Value tokens, const TransformerSizes &sizes) {
  Value embedded = b.embedding(tokens, "embed", sizes.vocab, sizes.hidden, {.weight = smallInit});
  Value positions = b.parameter("pos.weight", {sizes.seq, sizes.hidden}, smallInit);
  return b.add(embedded, positions, "x0");
}

/// Pre-norm blocks, causal attention, untied head.
LogicalResult buildGpt(const Request &request) {
  auto sizes = parseTransformer(request, {.layers = 12, .hidden = 768, .heads = 12, .seq = 1024, .vocab = 50257});
  if (failed(sizes))
    return failure();
  request.setOptimizer("adamw:lr=0.0001");

  GraphBuilder b(request.module);
  Value x = b.input("x", {b.batch, sizes->seq}, b.i32()), y = b.input("y", {b.batch, sizes->seq}, b.i32());
  Value h = embedTokens(b, x, *sizes);
  for (int64_t number = 0; number < sizes->layers; ++number) {
    TransformerBlock block{b, *sizes, number};
    h = b.add(h, block.attention(block.layerNorm(h, "ln1"), /*isCausal=*/true), block.label("mid"));
    h = b.add(h, block.feedForward(block.layerNorm(h, "ln2")), block.label("out"));
  }
  h = b.layerNorm(h, "ln");
  Value logits = b.linear(h, "head", sizes->vocab, {.weight = smallInit, .hasBias = false, .label = "logits"});
  return b.returns(b.crossEntropy(logits, y));
}

/// Post-norm blocks, every token sees every other; the head predicts each token of y, masked or not.
LogicalResult buildBert(const Request &request) {
  auto sizes = parseTransformer(request, {.layers = 12, .hidden = 768, .heads = 12, .seq = 512, .vocab = 30522});
  if (failed(sizes))
    return failure();
  request.setOptimizer("adamw:lr=0.0001");

  GraphBuilder b(request.module);
  Value x = b.input("x", {b.batch, sizes->seq}, b.i32()), y = b.input("y", {b.batch, sizes->seq}, b.i32());
  Value h = b.layerNorm(embedTokens(b, x, *sizes), "ln");
  for (int64_t number = 0; number < sizes->layers; ++number) {
    TransformerBlock block{b, *sizes, number};
    h = block.layerNorm(b.add(h, block.attention(h, /*isCausal=*/false), block.label("mid")), "ln1");
    h = block.layerNorm(b.add(h, block.feedForward(h), block.label("out")), "ln2");
  }
  return b.returns(b.crossEntropy(b.linear(h, "head", sizes->vocab, transformerLayer("logits")), y));
}

//===- llama -----------------------------------------------------------------------------------------------------===//

/// Touvron et al., "LLaMA" (arXiv 2302.13971), with grouped heads of key and value.
struct LlamaSizes {
  int64_t layers = 16, hidden = 2048, heads = 32, kvHeads = 8, ffn = 8192, seq = 2048, vocab = 128256;
};

FailureOr<LlamaSizes> parseLlama(const Request &request) {
  const SizeKey<LlamaSizes> keys[] = {
      {"layers", &LlamaSizes::layers, largestDepth}, {"hidden", &LlamaSizes::hidden, largestSize},
      {"heads", &LlamaSizes::heads, largestSize},    {"kv_heads", &LlamaSizes::kvHeads, largestSize},
      {"ffn", &LlamaSizes::ffn, largestSize},        {"seq", &LlamaSizes::seq, largestSize},
      {"vocab", &LlamaSizes::vocab, largestSize}};
  LlamaSizes sizes;
  SmallVector<StringRef> assignments;
  request.arguments.split(assignments, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/!request.arguments.empty());
  if (failed(parseSizes<LlamaSizes>(request, assignments, keys, sizes)))
    return failure();
  if (sizes.hidden % (2 * sizes.heads) != 0)
    return request.error() << "found hidden=" << sizes.hidden << " and heads=" << sizes.heads
                           << ", expected heads of an even width, whose elements turn in pairs";
  if (sizes.heads % sizes.kvHeads != 0)
    return request.error() << "found heads=" << sizes.heads << " and kv_heads=" << sizes.kvHeads
                           << ", expected a number of kv_heads that divides heads";
  return sizes;
}

/// Pre-norm blocks by the mean square, rotary embedding, gated feed-forward layers, no biases, untied head.
LogicalResult buildLlama(const Request &request) {
  auto sizes = parseLlama(request);
  if (failed(sizes))
    return failure();
  request.setOptimizer("adamw:lr=0.0001");

  GraphBuilder b(request.module);
  Value x = b.input("x", {b.batch, sizes->seq}, b.i32()), y = b.input("y", {b.batch, sizes->seq}, b.i32());
  Value h = b.embedding(x, "embed", sizes->vocab, sizes->hidden, {.weight = smallInit});
  int64_t headWidth = sizes->hidden / sizes->heads, kvWidth = sizes->kvHeads * headWidth;
  auto angles = b.rotaryAngles(sizes->seq, headWidth / 2);
  for (int64_t number = 0; number < sizes->layers; ++number) {
    std::string block = ("blocks." + Twine(number) + ".").str(), mark = ("b" + Twine(number) + "_").str();
    auto linear = [&](Value in, StringRef part, StringRef layer, int64_t width) {
      return b.linear(in, block + part + "." + layer, width,
                      {.weight = smallInit, .hasBias = false, .label = mark + layer.str()});
    };
    Value n = b.rmsNorm(h, block + "ln1", {.label = mark + "ln1"});
    Value query = b.rotary(linear(n, "attn", "q", sizes->hidden), angles, sizes->heads, mark + "rq");
    Value key = b.rotary(linear(n, "attn", "k", kvWidth), angles, sizes->kvHeads, mark + "rk");
    Value value = linear(n, "attn", "v", kvWidth);
    Value mixed = b.attention(query, key, value, sizes->heads, /*isCausal=*/true, mark + "attn", sizes->kvHeads);
    h = b.add(h, linear(mixed, "attn", "o", sizes->hidden), mark + "mid");
    n = b.rmsNorm(h, block + "ln2", {.label = mark + "ln2"});
    Value gate = b.silu(linear(n, "mlp", "gate", sizes->ffn), mark + "act");
    Value wide = b.mul(gate, linear(n, "mlp", "up", sizes->ffn), mark + "wide");
    h = b.add(h, linear(wide, "mlp", "down", sizes->hidden), mark + "out");
  }
  h = b.rmsNorm(h, "ln");
  Value logits = b.linear(h, "head", sizes->vocab, {.weight = smallInit, .hasBias = false, .label = "logits"});
  return b.returns(b.crossEntropy(logits, y));
}

//===- resnet ----------------------------------------------------------------------------------------------------===//

/// He et al., "Deep residual learning" (CVPR 2016), with the stride in the 3x3 convolution of a bottleneck and the
/// names of torchvision.
struct ResnetSizes {
  int64_t depth = 0, classes = 1000, image = 224, width = 64;
};

struct ResnetDepth {
  int64_t depth;
  std::array<int64_t, 4> blocks;
  bool isBottleneck;
};
constexpr ResnetDepth resnetDepths[] = {
    {18, {2, 2, 2, 2}, false},  {34, {3, 4, 6, 3}, false},  {50, {3, 4, 6, 3}, true},
    {101, {3, 4, 23, 3}, true}, {152, {3, 8, 36, 3}, true},
};

FailureOr<ResnetSizes> parseResnet(const Request &request) {
  const SizeKey<ResnetSizes> keys[] = {{"classes", &ResnetSizes::classes, largestSize},
                                       {"image", &ResnetSizes::image, largestImage},
                                       {"width", &ResnetSizes::width, largestImage}};
  ResnetSizes sizes;
  SmallVector<StringRef> parts;
  request.arguments.split(parts, ',');
  if (parts.front().getAsInteger(10, sizes.depth) ||
      llvm::none_of(resnetDepths, [&](const ResnetDepth &known) { return known.depth == sizes.depth; }))
    return request.error() << "found '" << parts.front() << "' for the depth, expected 18, 34, 50, 101 or 152, as in "
                           << request.family.example;
  if (failed(parseSizes<ResnetSizes>(request, ArrayRef(parts).drop_front(), keys, sizes)))
    return failure();
  return sizes;
}

/// A convolution without a bias and its batch norm, as torchvision starts them: deviation √(2 / (outputs · taps)).
Value convNorm(GraphBuilder &b, Value x, const Twine &conv, const Twine &norm, int64_t outputs, int64_t kernel,
               int64_t stride) {
  int64_t padding = kernel / 2;
  Init start = Init::normal(std::sqrt(2.0 / double(outputs * kernel * kernel)));
  Value h = b.conv2d(x, conv, outputs,
                     {.kernel = {kernel, kernel}, .strides = {stride, stride}, .padding = {padding, padding}},
                     {.weight = start, .hasBias = false});
  return b.batchNorm(h, norm);
}

Value resnetBlock(GraphBuilder &b, Value x, const Twine &name, int64_t width, int64_t stride, bool isBottleneck,
                  bool isFirst) {
  std::string block = name.str();
  int64_t outputs = isBottleneck ? 4 * width : width;
  auto layer = [&](Value h, int number, int64_t channels, int64_t kernel, int64_t step) {
    return convNorm(b, h, block + ".conv" + Twine(number), block + ".bn" + Twine(number), channels, kernel, step);
  };
  Value h;
  if (isBottleneck) {
    h = b.relu(layer(x, 1, width, 1, 1), block + ".relu1");
    h = b.relu(layer(h, 2, width, 3, stride), block + ".relu2");
    h = layer(h, 3, outputs, 1, 1);
  } else {
    h = b.relu(layer(x, 1, width, 3, stride), block + ".relu1");
    h = layer(h, 2, outputs, 3, 1);
  }
  bool changesShape = stride != 1 || (isFirst && isBottleneck);
  if (changesShape)
    x = convNorm(b, x, block + ".downsample.0", block + ".downsample.1", outputs, 1, stride);
  return b.relu(b.add(h, x, block + ".sum"), block);
}

LogicalResult buildResnet(const Request &request) {
  auto sizes = parseResnet(request);
  if (failed(sizes))
    return failure();
  const ResnetDepth &depth =
      *llvm::find_if(resnetDepths, [&](const ResnetDepth &known) { return known.depth == sizes->depth; });
  request.setOptimizer("sgd:lr=0.1,momentum=0.9,weight_decay=0.0001");

  GraphBuilder b(request.module);
  Value x = b.input("x", {b.batch, 3, sizes->image, sizes->image}, b.f32()), y = b.input("y", {b.batch}, b.i32());
  Value h = b.relu(convNorm(b, x, "conv1", "bn1", sizes->width, 7, 2), "relu");
  h = b.maxPool(h, {.kernel = {3, 3}, .strides = {2, 2}, .padding = {1, 1}}, "maxpool");
  for (int64_t stage = 0; stage < 4; ++stage)
    for (int64_t number = 0; number < depth.blocks[stage]; ++number)
      h = resnetBlock(b, h, "layer" + Twine(stage + 1) + "." + Twine(number), sizes->width << stage,
                      /*stride=*/stage > 0 && number == 0 ? 2 : 1, depth.isBottleneck, /*isFirst=*/number == 0);
  h = b.reshape(b.globalAvgPool(h, "avgpool"), {0, -1}, "flat");
  return b.returns(b.crossEntropy(b.linear(h, "fc", sizes->classes, {.label = "logits"}), y));
}

constexpr Family families[] = {
    {"mlp", "mlp:784-1024-10", buildMlp},
    {"lenet", "lenet", buildLenet},
    {"gpt", "gpt:layers=48,hidden=8192,heads=64,seq=2048,vocab=51200", buildGpt},
    {"bert", "bert:layers=12,hidden=768,heads=12,seq=512,vocab=30522", buildBert},
    {"llama", "llama:layers=16,hidden=2048,heads=32,kv_heads=8,ffn=8192,seq=2048,vocab=128256", buildLlama},
    {"resnet", "resnet:50,classes=1000,image=224", buildResnet},
};

const Family *findFamily(StringRef spec) {
  StringRef name = spec.split(':').first;
  const Family *family = llvm::find_if(families, [&](const Family &family) { return family.name == name; });
  return family == std::end(families) ? nullptr : family;
}

} // namespace

bool isFamilySpec(StringRef model) {
  bool isFile = llvm::any_of(ArrayRef<StringRef>{".mlir", ".mlirbc", ".onnx"},
                             [&](StringRef suffix) { return model.ends_with(suffix); });
  return !isFile && findFamily(model);
}

FailureOr<OwningOpRef<ModuleOp>> buildFamily(StringRef spec, MLIRContext &context) {
  Location loc = UnknownLoc::get(&context);
  const Family *family = findFamily(spec);
  if (!family)
    return emitError(loc) << "model '" << spec << "': found no family of that name, expected one of "
                          << knownFamilies();
  OwningOpRef<ModuleOp> module = ModuleOp::create(NameLoc::get(StringAttr::get(&context, spec)));
  if (failed(family->build({spec, *family, spec.split(':').second, *module})))
    return failure();
  return module;
}

std::string knownFamilies() {
  SmallVector<StringRef> examples;
  for (const Family &family : families)
    examples.push_back(family.example);
  return llvm::join(examples, ", ");
}

} // namespace dg::ir
