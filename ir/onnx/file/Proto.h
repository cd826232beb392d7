// SPDX-License-Identifier: Apache-2.0
// The protobuf classes of ONNX, as libonnx-dev has them. ONNX_ML and ONNX_NAMESPACE are set by CMakeLists.txt.
#pragma once

#include <onnx/onnx_pb.h>
