// SPDX-License-Identifier: BSL-1.0
// The TLS settings that all connections of a manager share: trusted authorities, client certificate, ciphers.
#pragma once

#include <redlock/tls.hpp>

#include <boost/asio/ssl/context.hpp>

#include <memory>

namespace redlock::io
{

struct tls_context
{
    boost::asio::ssl::context context;
    tls_verification verification;
};

/// Creates a context from the options, and reads their files. Throws `system_error` with `errc::invalid_config` and a
/// message that names the invalid option.
std::shared_ptr<tls_context> make_tls_context(const tls_options& options);

} // namespace redlock::io
