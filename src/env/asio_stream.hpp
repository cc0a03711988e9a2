// SPDX-License-Identifier: BSL-1.0
// Byte streams over TCP, TLS and unix sockets.
#pragma once

#include "env/environment.hpp"
#include "env/tls_context.hpp"

#include <memory>

namespace redlock::env
{

std::unique_ptr<stream> make_tcp_stream(scheduler& strand, const master& to);
std::unique_ptr<stream>
make_tls_stream(scheduler& strand, const master& to, std::shared_ptr<tls_context> shared);
std::unique_ptr<stream> make_unix_stream(scheduler& strand, const master& to);

} // namespace redlock::env
