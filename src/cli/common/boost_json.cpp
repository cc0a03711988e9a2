// SPDX-License-Identifier: BSL-1.0
// Boost.JSON as a header-only library: it needs no package in addition to the headers of Asio.
#include <boost/json/src.hpp>
