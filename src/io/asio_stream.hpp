// SPDX-License-Identifier: BSL-1.0
// Byte streams over TCP, TLS and unix sockets.
#pragma once

#include "io/tls_context.hpp"
#include "runtime/environment.hpp"

#include <memory>

namespace redlock::io
{

std::unique_ptr<runtime::stream> make_tcp_stream(runtime::scheduler& strand, const master& to);
std::unique_ptr<runtime::stream>
make_tls_stream(runtime::scheduler& strand, const master& to, std::shared_ptr<tls_context> shared);
std::unique_ptr<runtime::stream> make_unix_stream(runtime::scheduler& strand, const master& to);

} // namespace redlock::io
