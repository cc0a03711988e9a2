// SPDX-License-Identifier: BSL-1.0
// What must differ between a real server's reply and a simulated one's, left out: this is the one place that says it.
#pragma once

#include "support/request_reader.hpp"

#include <string>
#include <string_view>

namespace redlock::test
{

/// The reply to this command without
/// - the time that TIME returns;
/// - fields of INFO that the simulation has none of;
/// - the last 100 s of a time to live: tests take less, and set longer ones.
std::string comparable(const command& words, const std::string& reply);

/// On one line, with \r and \n.
std::string printable(std::string_view text);
std::string printable(const command& words);

} // namespace redlock::test
