// SPDX-License-Identifier: Apache-2.0
// How something stands that was started and is polled: a message, a collective, work on a device.
#pragma once

namespace dg {

enum class Progress { pending, done, failed };

} // namespace dg
