// SPDX-License-Identifier: BSL-1.0
// What the shared library shows to the outside; everything else is hidden.
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
