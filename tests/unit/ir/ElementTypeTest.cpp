// SPDX-License-Identifier: Apache-2.0
// Proves that what an op's inference accepts, its parts and its gradient accept too, whatever the element types and
// however empty the operands: a builder whose operands do not fit ends the process. Each op is tried in a process of
// its own.
#include "tests/unit/ir/OpTable.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"

#include <gtest/gtest.h>

#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace dg::ir;
using namespace dg::ir::test;

namespace {

std::string replaced(std::string text, StringRef from, StringRef to) {
  for (size_t at = 0; (at = text.find(from.str(), at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to.str());
  return text;
}

/// The text with the type of all its real operands, or of the one of this number, changed.
std::string withElements(const std::string &text, StringRef element, std::optional<unsigned> only) {
  auto [arguments, body] = StringRef(text).split(") {");
  SmallVector<StringRef> parts;
  arguments.split(parts, ", ");
  std::string changed;
  for (auto [index, part] : llvm::enumerate(parts)) {
    bool isChanged = !only || *only == index;
    changed += (index ? ", " : "") + (isChanged ? replaced(part.str(), "f32>", element.str() + ">") : part.str());
  }
  return changed + ") {" + body.str();
}

/// Takes the graph's op apart as far as it goes, then builds the gradients of the parts with float results.
void takeApart(GraphOp graph) {
  SmallVector<Operation *> primitives, worklist{&graph.getBody().front().front()};
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    OpBuilder builder(op);
    if (auto loss = dyn_cast<LossOp>(op)) {
      loss.buildPerSample(builder);
      loss.buildPerSampleAccuracy(builder);
      continue;
    }
    Operation *before = op->getPrevNode();
    auto composite = dyn_cast<CompositeOp>(op);
    SmallVector<Value> parts = composite ? composite.decompose(builder) : SmallVector<Value>();
    if (parts.empty()) {
      primitives.push_back(op);
      continue;
    }
    Operation *part = before ? before->getNextNode() : &op->getBlock()->front();
    for (; part != op; part = part->getNextNode())
      worklist.push_back(part);
    op->replaceAllUsesWith(parts);
    op->erase();
  }
  for (Operation *op : primitives) {
    auto differentiable = dyn_cast<GradientOp>(op);
    SmallVector<Value> grads;
    for (Value result : op->getResults())
      grads.push_back(isa<FloatType>(tensorOf(result).getElementType())
                          ? Value(graph.getBody().addArgument(result.getType(), op->getLoc()))
                          : Value());
    if (!differentiable || llvm::none_of(grads, [](Value grad) { return bool(grad); }))
      continue;
    OpBuilder builder(graph.getReturn());
    auto made = differentiable.buildGradients(builder, grads);
    if (failed(made))
      continue;
    for (auto [operand, grad] : llvm::zip_equal(op->getOperands(), *made))
      if (grad && grad.getType() != operand.getType())
        llvm::report_fatal_error("a gradient has another type than its operand");
  }
}

/// Tries each text in a child, which leaves the text at which it ended, and why.
std::string findFault(ArrayRef<std::string> texts) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    static std::string current, message;
    static int to = ends[1];
    auto say = [](void *, const char *reason, bool) {
      std::string what = current + message + "\n" + reason;
      (void)!write(to, what.data(), what.size());
      _exit(1);
    };
    llvm::install_fatal_error_handler(say);
    auto context = makeContext();
    context->getDiagEngine().registerHandler([](Diagnostic &diagnostic) { message = diagnostic.str(); });
    for (const std::string &text : texts) {
      current = text;
      auto module = parse(*context, text);
      if (module && succeeded(deduce(*module->getOps<GraphOp>().begin())))
        takeApart(*module->getOps<GraphOp>().begin());
    }
    _exit(0);
  }
  close(ends[1]);
  std::string fault(4096, '\0');
  ssize_t size = read(ends[0], fault.data(), fault.size());
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  fault.resize(size_t(std::max<ssize_t>(0, size)));
  if (WIFSIGNALED(status))
    fault += std::string("ended by ") + strsignal(WTERMSIG(status)) + " in one of:\n" + llvm::join(texts, "");
  return fault;
}

} // namespace

TEST(ElementTypes, WhatInferenceAcceptsCanBeTakenApart) {
  auto context = makeContext();
  std::mt19937_64 random(suiteSeed());
  for (const OpSpec &spec : opTable()) {
    OpInstance instance = instantiate(spec, {2, 3}, random, *context);
    std::vector<std::string> texts;
    for (StringRef element : {"f64", "f16", "i1", "i32", "i64", "ui8"}) {
      texts.push_back(withElements(instance.text, element, std::nullopt));
      for (unsigned only = 0; only < spec.operands.size() && spec.operands.size() > 1; ++only)
        texts.push_back(withElements(instance.text, element, only));
    }
    EXPECT_EQ(findFault(texts), "");
  }
}

TEST(ElementTypes, SoCanOperandsWithoutElements) {
  std::mt19937_64 random(suiteSeed());
  for (const OpSpec &spec : opTable()) {
    std::vector<std::string> texts;
    for (int round = 0; round < 12; ++round)
      texts.push_back(draw(spec, {0, 2, 3}, random).text);
    EXPECT_EQ(findFault(texts), "");
  }
}
