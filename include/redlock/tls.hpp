// SPDX-License-Identifier: BSL-1.0
// TLS options for connections to masters.
#pragma once

#include <cstdint>
#include <string>

namespace redlock
{

/// The checks of a master's certificate.
enum class tls_verification : std::uint8_t
{
    /// A trusted authority has signed the certificate, it is within its period of validity, and its subjectAltName
    /// contains the host name or address of the master. A common name (CN) isn't accepted.
    peer_and_host_name,
    /// No check. Any server that answers is accepted and is sent the password. For experiments only.
    dangerously_off
};

/// TLS options for masters given by `rediss://` or `tcp_address::tls`.
///
/// Connections use TLS 1.2 or later, with forward secrecy and without renegotiation. Files are in PEM format and are
/// read by the constructor of the manager, which throws `system_error` with `errc::invalid_config` if one can't be
/// used.
struct tls_options
{
    /// Certificates of the trusted authorities. Empty: those of the system.
    std::string ca_file{};
    /// The client certificate, followed by its chain, for masters that require one. Empty: none.
    std::string certificate_file{};
    /// The unencrypted private key of `certificate_file`. Either both are given, or neither.
    std::string private_key_file{};
    tls_verification verification = tls_verification::peer_and_host_name;
    /// The TLS 1.2 ciphers, in OpenSSL's list format (see `openssl ciphers`). Empty: the system's list without RSA key
    /// exchange, with which an attacker who obtains the server's key can decrypt recorded traffic.
    std::string ciphers{};

    friend bool operator==(const tls_options&, const tls_options&) = default;
};

} // namespace redlock
