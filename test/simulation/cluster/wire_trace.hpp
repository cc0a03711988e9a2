// SPDX-License-Identifier: BSL-1.0
// How commands, replies and reports enter the hash of a trace.
#pragma once

#include "support/request_reader.hpp"

#include <redlock/error.hpp>
#include <redlock/report.hpp>

#include <string>
#include <string_view>

namespace redlock::test
{

class trace;

/// Adds a command and its reply: keys by the numbers of their resources, errors by their code words. Names, passwords,
/// scripts and the texts of servers are left out.
void add_exchange(trace& to, std::string_view what, const command& words, std::string_view reply);

/// Adds a report without its texts.
void add_report(trace& to, const report& from);

void add_error(trace& to, const error_code& error);

} // namespace redlock::test
