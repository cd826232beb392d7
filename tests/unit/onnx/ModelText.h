// SPDX-License-Identifier: Apache-2.0
// Models for the import tests, in protobuf's text form, and what importing them says.
#pragma once

#include "ir/onnx/ImportOnnx.h"
#include "ir/onnx/file/Proto.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

namespace dg::ir::test {

/// A model of opset 17 whose graph is `graph`, with other fields of ModelProto in `more`.
inline std::string modelBytes(const std::string &graph, const std::string &more = "") {
  onnx::ModelProto model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "ir_version: 8 opset_import { domain: '' version: 17 } graph { " + graph + " } " + more, &model));
  return model.SerializeAsString();
}

/// `input { name: 'x' … }` with sizes or names of dimensions, as "2,N"; `field` may be output too.
inline std::string valueInfo(const std::string &field, const std::string &name, const std::string &dims,
                             int type = onnx::TensorProto::FLOAT) {
  std::string text =
      field + " { name: '" + name + "' type { tensor_type { elem_type: " + std::to_string(type) + " shape { ";
  for (size_t begin = 0; begin < dims.size();) {
    size_t end = std::min(dims.find(',', begin), dims.size());
    std::string dim = dims.substr(begin, end - begin);
    text += std::isdigit(dim[0]) ? "dim { dim_value: " + dim + " } " : "dim { dim_param: '" + dim + "' } ";
    begin = end + 1;
  }
  return text + "} } } } ";
}

/// An import and its diagnostics.
struct Import {
  explicit Import(const std::string &bytes, const OnnxOptions &options = {}, const std::string &path = "model.onnx") {
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &message) {
      if (auto name = message.getLocation()->findInstanceOf<mlir::NameLoc>())
        messages += name.getName().str() + ": ";
      messages += message.str() + "\n";
    });
    model = importOnnx(bytes, path, context, options);
  }
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  std::string messages;
  mlir::FailureOr<OnnxModel> model = mlir::failure();
};

} // namespace dg::ir::test
