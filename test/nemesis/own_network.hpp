// SPDX-License-Identifier: BSL-1.0
// A network namespace for this process and its children, so that no other process is affected when the network is
// unplugged.
#pragma once

#include <string>

namespace redlock::nemesis
{

/// Enters a namespace; only while the process has one thread. Returns why that failed; empty after success.
std::string enter_own_network();

/// Pulls the loopback interface out, or plugs it in again: senders get no answer meanwhile at all, no RST, no
/// FIN; connections are still there afterwards. Only in a network of our own.
void plug_in(bool in);

} // namespace redlock::nemesis
