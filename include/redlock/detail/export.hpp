// SPDX-License-Identifier: BSL-1.0
// Marks the symbols that the shared library exports. All others are hidden.
#pragma once

#if defined(REDLOCK_SHARED) && defined(_WIN32)
#if defined(REDLOCK_BUILDING)
#define REDLOCK_API __declspec(dllexport)
#else
#define REDLOCK_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define REDLOCK_API __attribute__((visibility("default")))
#else
#define REDLOCK_API
#endif
