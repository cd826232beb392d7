// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/passes/RandomModel.h"

#include <initializer_list>
#include <map>
#include <vector>

namespace dg::passes::test {

namespace {

/// Writes ops one under the other; values are named by number, so that a line can be built from what came before.
class Writer {
public:
  explicit Writer(std::mt19937_64 &random) : random(random) {}

  int64_t pick(std::initializer_list<int64_t> choices) { return choices.begin()[random() % choices.size()]; }
  bool chance(int percent) { return int(random() % 100) < percent; }

  std::string op(const std::string &text) {
    std::string name = "%v" + std::to_string(numValues++);
    body += "  " + name + " = dg." + text + "\n";
    return name;
  }
  std::string parameter(const std::string &type, const std::string &init, bool isFrozen = false) {
    std::string name = "p" + std::to_string(numParameters++);
    return op("parameter \"" + name + "\" tensor<" + type + "xf32> " + init + (isFrozen ? " {frozen}" : ""));
  }
  /// A linear layer on the last dimension, now and then without bias, or with a part that is not trained.
  std::string linear(const std::string &x, int64_t in, int64_t out) {
    std::string weight = parameter(dims({out, in}), "uniform 0.4", chance(5));
    bool hasBias = chance(75);
    std::string bias = hasBias ? ", " + parameter(dims({out}), "uniform 0.2", chance(5)) : "";
    return op("linear " + x + ", " + weight + bias);
  }
  std::string layerNorm(const std::string &x, int64_t width) {
    std::string weight = parameter(dims({width}), "constant 1.0");
    std::string bias = parameter(dims({width}), "constant 0.0");
    return op("layer_norm " + x + ", " + weight + ", " + bias);
  }
  std::string activation(const std::string &x) {
    switch (random() % 4) {
    case 0:
      return op("gelu " + x);
    case 1:
      return op("scale " + x + " {factor = 0.7}");
    default:
      return op("relu " + x);
    }
  }
  static std::string dims(std::initializer_list<int64_t> sizes) {
    std::string text;
    for (int64_t size : sizes)
      text += (text.empty() ? "" : "x") + std::to_string(size);
    return text;
  }
  /// The classes' scores and the loss on them.
  void classify(const std::string &scores) {
    std::string loss =
        chance(50) ? op("cross_entropy " + scores + ", %y") : op("nll " + op("log_softmax " + scores) + ", %y");
    body += "  dg.return " + loss + "\n";
  }

  std::mt19937_64 &random;
  std::string body;
  int numValues = 0, numParameters = 0;
};

RandomModel finish(Writer &writer, const std::string &inputs, int64_t indexBound) {
  return {"dg.graph @loss(" + inputs + ") {\n" + writer.body + "}\n", indexBound};
}

RandomModel drawPerceptron(std::mt19937_64 &random) {
  Writer w(random);
  int64_t in = w.pick({3, 4, 6, 8}), width = in, out = w.pick({1, 2, 3, 4, 6});
  std::string h = "%x";
  std::vector<std::pair<std::string, int64_t>> earlier;       // values that a skip may start from
  std::map<std::pair<int64_t, int64_t>, std::string> weights; // that a later layer may share
  for (int64_t layer = w.pick({1, 2, 3, 4}); layer > 0; --layer) {
    int64_t next = w.pick({3, 4, 6, 8, 12, width, width});
    auto shared = weights.find({next, width});
    if (shared != weights.end() && w.chance(60)) {
      h = w.op("linear " + h + ", " + shared->second);
    } else if (w.chance(30)) {
      std::string weight = w.parameter(Writer::dims({next, width}), "uniform 0.4");
      weights[{next, width}] = weight;
      h = w.op("linear " + h + ", " + weight);
    } else {
      h = w.linear(h, width, next);
    }
    width = next;
    h = w.activation(h);
    if (w.chance(25))
      h = w.layerNorm(h, width);
    for (auto &[value, size] : earlier)
      if (size == width && w.chance(50))
        h = w.op((w.chance(70) ? "add " : "mul ") + h + ", " + value);
    earlier.emplace_back(h, width);
  }
  std::string x = "%x: tensor<?x" + std::to_string(in) + "xf32>, %y: tensor<?";
  if (w.chance(40)) {
    h = w.linear(h, width, out);
    w.body += "  dg.return " + w.op("mse " + h + ", %y") + "\n";
    return finish(w, x + "x" + std::to_string(out) + "xf32>", 1);
  }
  w.classify(w.linear(h, width, out + 1));
  return finish(w, x + "xi32>", out + 1);
}

RandomModel drawConvolutions(std::mt19937_64 &random) {
  Writer w(random);
  int64_t in = w.pick({1, 2, 3}), channels = in, size = 8, classes = w.pick({2, 3, 4});
  std::string h = "%x";
  for (int64_t layer = w.pick({1, 2}); layer > 0; --layer) {
    int64_t next = w.pick({2, 3, 4, 6});
    bool isPadded = w.chance(50);
    std::string weight = w.parameter(Writer::dims({next, channels, 3, 3}), "uniform 0.3");
    std::string bias = w.chance(75) ? ", " + w.parameter(Writer::dims({next}), "uniform 0.2") : "";
    std::string before = h;
    h = w.op("conv2d " + h + ", " + weight + bias + (isPadded ? " {padding = array<i64: 1, 1>}" : ""));
    size -= isPadded ? 0 : 2;
    h = w.activation(h);
    if (isPadded && next == channels && w.chance(70))
      h = w.op("add " + h + ", " + before);
    channels = next;
    if (size % 2 == 0 && w.chance(60)) {
      h = w.op("max_pool2d " + h + " {kernel = array<i64: 2, 2>}");
      size /= 2;
    }
  }
  h = w.op("reshape " + h + " {shape = array<i64: 0, -1>}");
  int64_t width = channels * size * size, hidden = w.pick({3, 4, 8});
  h = w.activation(w.linear(h, width, hidden));
  w.classify(w.linear(h, hidden, classes));
  return finish(w, "%x: tensor<?x" + std::to_string(in) + "x8x8xf32>, %y: tensor<?xi32>", classes);
}

RandomModel drawTransformer(std::mt19937_64 &random) {
  Writer w(random);
  int64_t heads = w.pick({1, 2, 3, 4}), width = heads * w.pick({2, 3, 4}), seq = w.pick({3, 4, 5}),
          vocab = w.pick({5, 6, 8});
  bool isPreNorm = w.chance(60), isTied = w.chance(30);
  std::string table = w.parameter(Writer::dims({vocab, width}), "normal 0.3");
  std::string h = w.op("embedding " + table + ", %x");
  if (w.chance(80))
    h = w.op("add " + h + ", " + w.parameter(Writer::dims({seq, width}), "normal 0.3"));
  for (int64_t layer = w.pick({1, 1, 2}); layer > 0; --layer) {
    std::string a = isPreNorm ? w.layerNorm(h, width) : h;
    std::string q = w.linear(a, width, width), k = w.linear(a, width, width), v = w.linear(a, width, width);
    std::string mixed = w.op("attention " + q + ", " + k + ", " + v + " {heads = " + std::to_string(heads) +
                             (w.chance(50) ? ", causal}" : "}"));
    h = w.op("add " + h + ", " + w.linear(mixed, width, width));
    if (!isPreNorm)
      h = w.layerNorm(h, width);
    std::string b = isPreNorm ? w.layerNorm(h, width) : h;
    int64_t wide = width * w.pick({1, 2, 4});
    h = w.op("add " + h + ", " + w.linear(w.activation(w.linear(b, width, wide)), wide, width));
    if (!isPreNorm)
      h = w.layerNorm(h, width);
  }
  w.classify(isTied ? w.op("linear " + h + ", " + table) : w.linear(h, width, vocab));
  std::string tokens = ": tensor<?x" + std::to_string(seq) + "xi32>";
  return finish(w, "%x" + tokens + ", %y" + tokens, vocab);
}

} // namespace

RandomModel drawModel(std::mt19937_64 &random) {
  switch (random() % 5) {
  case 0:
  case 1:
    return drawPerceptron(random);
  case 2:
    return drawConvolutions(random);
  default:
    return drawTransformer(random);
  }
}

} // namespace dg::passes::test
