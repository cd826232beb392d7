// SPDX-License-Identifier: Apache-2.0
// All ops, by family. Each family is one .td, one .h and one .cpp file of the same name. For checkers and listings: each family generates its own code.
include "ir/GraphOps.td"
include "ir/ElementwiseOps.td"
include "ir/ContractionOps.td"
include "ir/ConvolutionOps.td"
include "ir/ShapeOps.td"
include "ir/NormalizationOps.td"
include "ir/PoolingOps.td"
include "ir/IndexingOps.td"
include "ir/LossOps.td"
include "ir/OptimizerOps.td"
include "ir/CommunicationOps.td"
