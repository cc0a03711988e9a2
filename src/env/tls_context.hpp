// SPDX-License-Identifier: BSL-1.0
// What all TLS connections of a manager share: whom they trust, and who they say they are.
#pragma once

#include <redlock/tls.hpp>

#include <boost/asio/ssl/context.hpp>

#include <memory>

namespace redlock::env
{

struct tls_context
{
    boost::asio::ssl::context context;
    tls_verification verification;
};

/// Reads the files. Throws `system_error` with `errc::invalid_config` and what is wrong with which file.
std::shared_ptr<tls_context> make_tls_context(const tls_options& options);

} // namespace redlock::env
