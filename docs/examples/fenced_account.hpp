// SPDX-License-Identifier: BSL-1.0
// An account at a resource that checks fencing tokens. Part of fencing.cpp.
#pragma once

#include <sys/wait.h>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>

/// The exit code for a token that was refused; EX_TEMPFAIL of sysexits.h.
inline constexpr int superseded = 75;

/// Which of the two rules a holder obeys. One that obeys less than both shows what happens then.
enum class rules
{
    both,      ///< It shows its token before it reads, and each write is compared.
    unopened,  ///< It reads without its token. Each write is compared.
    unchecked, ///< Nothing is compared.
};

/// The balance of account 42, which its holder reads and writes.
class fenced_account
{
  public:
    fenced_account() = default;
    fenced_account(const fenced_account&) = delete;
    fenced_account& operator=(const fenced_account&) = delete;
    virtual ~fenced_account() = default;

    /// Shows the token and returns the balance. Empty if a later holder has shown its token.
    virtual std::optional<std::int64_t> open(std::uint64_t token) = 0;
    /// Returns false, and has written nothing, if a later holder has shown its token.
    virtual bool write(std::uint64_t token, std::int64_t balance) = 0;
};

/// The exit code of a command, 128 and the signal for one that was killed, and its output including the errors.
struct command_result
{
    int code = 0;
    std::string output;
};

/// Runs a command of the shell to its end.
inline command_result run_command(const std::string& command)
{
    FILE* const pipe = ::popen(("exec 2>&1; " + command).c_str(), "re");
    if (pipe == nullptr)
    {
        throw std::runtime_error{"can't run " + command};
    }
    command_result result;
    for (int next = std::fgetc(pipe); next != EOF; next = std::fgetc(pipe))
    {
        result.output += static_cast<char>(next);
    }
    const int status = ::pclose(pipe);
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result;
}
