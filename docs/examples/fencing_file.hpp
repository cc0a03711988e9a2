// SPDX-License-Identifier: BSL-1.0
// The account as a file on another machine, where file_server compares the tokens. Part of fencing.cpp.
#pragma once

#include "fenced_account.hpp"

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

class fenced_file final : public fenced_account
{
  public:
    /// `server` is the command that runs the program next to the file, such as `ssh files file_server checked account`.
    explicit fenced_file(std::string server) : server_{std::move(server)} {}

    std::optional<std::int64_t> open(std::uint64_t token) override
    {
        const auto balance = ask(std::to_string(token));
        return balance ? std::stoll(*balance) : std::optional<std::int64_t>{};
    }

    bool write(std::uint64_t token, std::int64_t balance) override
    {
        return ask(std::to_string(token) + ' ' + std::to_string(balance)).has_value();
    }

  private:
    /// Returns the output of the server. Empty if it has refused the token.
    std::optional<std::string> ask(const std::string& request) const
    {
        const command_result result = run_command(server_ + ' ' + request);
        if (result.code == superseded)
        {
            return {};
        }
        if (result.code != 0)
        {
            throw std::runtime_error{server_ + ": " + result.output};
        }
        return result.output;
    }

    std::string server_;
};
