// SPDX-License-Identifier: BSL-1.0
// Marks the symbols that the shared library exports. All others are hidden.
#pragma once

#define REDLOCK_API [[gnu::visibility("default")]]
