// SPDX-License-Identifier: BSL-1.0
// A network namespace for this process and its children, in which nobody else minds if the network goes away.
#pragma once

#include <string>

namespace redlock::nemesis
{

/// Only while the process has one thread. Says why not where that isn't allowed; empty if it is in one.
std::string enter_own_network();

/// Pulls the loopback interface out, or plugs it in again: whoever sends meanwhile gets no answer at all, no RST, no
/// FIN; connections are still there afterwards. Only in a network of our own.
void plug_in(bool in);

} // namespace redlock::nemesis
