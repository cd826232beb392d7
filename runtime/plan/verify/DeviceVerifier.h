// SPDX-License-Identifier: Apache-2.0
// Devices, memory spaces and roles: who can reach which bytes. Private to this folder.
#pragma once

#include "runtime/plan/Plan.h"

namespace dg::plan {

/// Each value of a task is where what runs the task can reach it, and each chunk belongs to a program whose role runs
/// it. The plan's indices must have been checked.
Status verifyDevices(const Plan &plan);

} // namespace dg::plan
