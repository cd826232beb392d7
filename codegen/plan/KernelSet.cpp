// SPDX-License-Identifier: Apache-2.0
#include "codegen/plan/KernelSet.h"

#include "mlir/IR/Operation.h"

using namespace mlir;

namespace dg::codegen {

KernelSet::KernelSet(MLIRContext &context, std::vector<Target> targets) : context(context), known(std::move(targets)) {}

FailureOr<KernelSpec> KernelSet::addKernel(llvm::StringRef program, Operation *op) {
  FailureOr<KernelSpec> first = addKernel(program, known.front(), op);
  for (const Target &target : llvm::drop_begin(known))
    if (failed(first) || failed(addKernel(program, target, op)))
      return failure();
  return first;
}

FailureOr<KernelSpec> KernelSet::addKernel(llvm::StringRef program, const Target &target, Operation *op) {
  KernelModule *own = nullptr;
  for (Object &object : all) {
    if (&object.target != &target)
      continue;
    if (object.kernels.find(op))
      return object.kernels.addKernel(op);
    if (object.program == program)
      own = &object.kernels;
  }
  if (!own)
    own = &all.emplace_back(program.str(), target, KernelModule(context, target)).kernels;
  return own->addKernel(op);
}

} // namespace dg::codegen
