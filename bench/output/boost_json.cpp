// SPDX-License-Identifier: BSL-1.0
// Boost.JSON, compiled with the bench: its headers come with those of Asio, so this takes no further package. Of the two
// libraries there that read JSON it is the one that is looked after; Boost.PropertyTree makes text of every value.
#include <boost/json/src.hpp>
