// SPDX-License-Identifier: BSL-1.0
// Reports and inspections of masters a, b, c, ... for the command's unit tests.
#pragma once

#include "manager/access.hpp"

#include <redlock/inspection.hpp>
#include <redlock/report.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::test
{

inline std::shared_ptr<const detail::master_names> names_of(std::size_t masters)
{
    auto names = std::make_shared<detail::master_names>();
    for (std::size_t index = 0; index < masters; ++index)
    {
        names->push_back(std::string(1, static_cast<char>('a' + index)));
    }
    return names;
}

inline master_report voted(vote value, error_code reason = {}, std::string_view detail = {})
{
    return {value, std::chrono::milliseconds{1}, reason, short_text{detail}};
}

inline report round_of(operation verb, error_code result, const std::vector<master_report>& votes)
{
    report round;
    round.operation = verb;
    round.result = result;
    round.rounds = 3;
    round.node_timeout = std::chrono::milliseconds{120};
    detail::access::assign(round, names_of(votes.size()), votes);
    return round;
}

inline inspection inspected(std::vector<master_inspection> masters)
{
    auto names = names_of(masters.size());
    return detail::access::make_inspection(std::move(names), std::move(masters));
}

/// Returns the answer of a master with this owner's key.
inline master_inspection
has(std::string_view owner, std::optional<std::chrono::milliseconds> expires_in = std::nullopt)
{
    return {{}, {}, true, short_text{owner}, expires_in};
}

inline master_inspection fails(error_code reason, std::string_view detail = {})
{
    return {reason, short_text{detail}, false, {}, {}};
}

} // namespace redlock::test
