// SPDX-License-Identifier: BSL-1.0
// Prepares server messages for display: short, printable, and without the manager's passwords.
#pragma once

#include <redlock/master.hpp>
#include <redlock/report.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::manager
{

/// Removes passwords from server messages. All of them pass through here before they reach a report, an event, an
/// inspection or an examination: a server may repeat what it was sent, and other servers may share the password.
///
/// A password is recognised as it is, as Redis quotes it in errors, and truncated by the server. Other encodings of it
/// aren't recognised.
class redactor
{
  public:
    explicit redactor(std::span<const master> masters);

    short_text show(std::string_view raw) const;
    /// Returns the text without the passwords, in its full length. Nothing is escaped.
    std::string redact(std::string text) const;

  private:
    std::vector<std::string> secrets_; // Longest first, because one may be the prefix of another.
};

} // namespace redlock::manager
