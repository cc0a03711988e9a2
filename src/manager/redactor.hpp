// SPDX-License-Identifier: BSL-1.0
// What a server said, as it may be shown: short, printable, and without the manager's passwords.
#pragma once

#include <redlock/master.hpp>
#include <redlock/report.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::manager
{

/// Every text of a server passes through this on its way to a report, an event, an inspection or an examination: a server
/// may repeat what it was sent, and another server may have been sent the same password.
///
/// A password is found as it is, as Redis quotes it in errors, and where the server cut it off. A server that encodes it
/// in another way isn't stopped.
class redactor
{
  public:
    explicit redactor(std::span<const master> masters);

    short_text show(std::string_view said) const;

  private:
    std::vector<std::string> secrets_; // The longest first: one may begin with another.
};

} // namespace redlock::manager
