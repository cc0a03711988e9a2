// SPDX-License-Identifier: BSL-1.0
// The results of a run as JSON, the content of results.json.
#pragma once

#include "output/results.hpp"

#include <boost/json/object.hpp>

namespace redlock::bench
{

boost::json::object to_json(const results& measured);

} // namespace redlock::bench
