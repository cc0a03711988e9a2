// SPDX-License-Identifier: BSL-1.0
// A reply of a simulated master, before it is written in the protocol of a client.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test
{

struct reply_value
{
    enum class kind : std::uint8_t
    {
        null,
        status,
        error, // With its code, without "-".
        integer,
        text,
        array
    };

    kind what = kind::null;
    std::string text{};
    std::int64_t number = 0;
    std::vector<reply_value> items{};

    static reply_value status(std::string words) { return {kind::status, std::move(words)}; }
    static reply_value error(std::string words) { return {kind::error, std::move(words)}; }
    static reply_value integer(std::int64_t value) { return {kind::integer, {}, value}; }
    static reply_value bulk(std::string value) { return {kind::text, std::move(value)}; }

    bool is_error() const noexcept { return what == kind::error; }
    /// As it is sent to a client that speaks this version of the protocol.
    std::string bytes(int protocol) const;
};

} // namespace redlock::test
