// SPDX-License-Identifier: BSL-1.0
// A resource that compares fencing tokens, for tests: a number on a server of its own. It uses nothing of the library.
#pragma once

#include "support/control_client.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace redlock::test
{

/// A connection to the resource. Each request compares the token, and reads or writes, in one step. A token that is smaller
/// than the largest one so far is refused.
class fenced_value
{
  public:
    explicit fenced_value(control_client to) : to_{std::move(to)} {}

    /// Shows a token, and returns the value. Empty if the token was refused.
    std::optional<std::int64_t> open(std::uint64_t token)
    {
        send({}, token);
        return answer();
    }
    /// Returns false if the token was refused.
    bool write(std::uint64_t token, std::int64_t value)
    {
        send_write(token, value);
        return is_written();
    }
    /// Sends a write without waiting for the answer, which `is_written` reads.
    void send_write(std::uint64_t token, std::int64_t value) { send(std::to_string(value), token); }
    bool is_written() { return answer().has_value(); }

  private:
    static constexpr const char* script = R"lua(
        if tonumber(ARGV[1]) < tonumber(redis.call("get", "largest token") or 0) then return false end
        redis.call("set", "largest token", ARGV[1])
        if ARGV[2] ~= "" then redis.call("set", "value", ARGV[2]) end
        return redis.call("get", "value") or "0")lua";

    void send(const std::string& value, std::uint64_t token)
    {
        to_.send({"EVAL", script, "0", std::to_string(token), value});
    }
    std::optional<std::int64_t> answer()
    {
        const reply said = to_.receive();
        return said.is_null() ? std::nullopt : std::optional{std::int64_t{std::stoll(said.text)}};
    }

    control_client to_;
};

} // namespace redlock::test
