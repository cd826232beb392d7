// SPDX-License-Identifier: Apache-2.0
#include "ir/Dialect.h"
