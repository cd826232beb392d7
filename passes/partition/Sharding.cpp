// SPDX-License-Identifier: Apache-2.0
#include "passes/partition/Sharding.h"

using namespace mlir;

namespace dg::passes {

ir::ShardingAttr inputSharding(RankedTensorType type, const plan::Mesh &mesh) {
  ir::ShardingAttr whole = ir::wholeSharding(type.getContext(), type.getRank());
  if (type.getRank() == 0 || mesh.sizeOf("data") == 1)
    return whole;
  SmallVector<StringAttr> dims(whole.getDims());
  dims[0] = StringAttr::get(type.getContext(), "data");
  return ir::ShardingAttr::get(type.getContext(), dims, {});
}

RankedTensorType localType(RankedTensorType type, ir::ShardingAttr sharding, const plan::Mesh &mesh) {
  SmallVector<int64_t> shape(type.getShape());
  for (auto [size, axis] : llvm::zip_equal(shape, sharding.getDims()))
    if (!axis.empty())
      size /= mesh.sizeOf(axis.str());
  return RankedTensorType::get(shape, type.getElementType());
}

bool isMajorEverywhere(const ir::ShardingRule &rule, int32_t factor) {
  auto isMajor = [&](ArrayRef<SmallVector<SmallVector<int32_t, 2>>> tensors) {
    return llvm::all_of(tensors, [&](ArrayRef<SmallVector<int32_t, 2>> dims) {
      return llvm::all_of(dims, [&](ArrayRef<int32_t> factors) {
        return !llvm::is_contained(factors, factor) || factors.front() == factor;
      });
    });
  };
  return isMajor(rule.operands) && isMajor(rule.results);
}

OpShardings getShardings(Operation *op) {
  ArrayRef<ir::ShardingAttr> all = ir::getPlace(op).getShardings();
  if (all.size() != op->getNumOperands() + op->getNumResults())
    return {};
  return {all.take_front(op->getNumOperands()), all.drop_front(op->getNumOperands())};
}

} // namespace dg::passes
