// SPDX-License-Identifier: BSL-1.0
// How masters are spoken to over TLS.
#pragma once

#include <cstdint>
#include <string>

namespace redlock
{

/// What is checked of a master's certificate.
enum class tls_verification : std::uint8_t
{
    /// A trusted authority has signed it, it is neither expired nor early, and it is made out to the host name or
    /// address by which the master was given: in its subjectAltName. A common name (CN) doesn't count.
    peer_and_host_name,
    /// Nothing: whoever answers is taken for the master, and gets its password. For experiments.
    dangerously_off
};

/// How masters are spoken to over TLS (`rediss://`, `tcp_address::tls`): version 1.2 at least, with forward secrecy,
/// without renegotiation. Files are in PEM format, and are read when the manager is made.
struct tls_options
{
    /// Certificates of the authorities that are trusted; empty for those of the system.
    std::string ca_file{};
    /// This client's certificate with what leads from it to its authority, for masters that ask for one; or empty.
    std::string certificate_file{};
    /// The key to it, not encrypted. Both or neither.
    std::string private_key_file{};
    tls_verification verification = tls_verification::peer_and_host_name;
    /// The ciphers for TLS 1.2, as OpenSSL lists them (`openssl ciphers`). Empty for the system's, without those that
    /// exchange keys by RSA: with these, an attacker who gets the server's key can read what was recorded before.
    std::string ciphers{};

    friend bool operator==(const tls_options&, const tls_options&) = default;
};

} // namespace redlock
