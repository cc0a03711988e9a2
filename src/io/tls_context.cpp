// SPDX-License-Identifier: BSL-1.0
// The TLS settings that all connections of a manager share.
#include "io/tls_context.hpp"

#include <redlock/error.hpp>
#include <redlock/report.hpp>

#include <fmt/format.h>
#include <openssl/ssl.h>

#include <string_view>

namespace redlock::io
{

namespace
{

namespace ssl = boost::asio::ssl;

void expect(
    const error_code& result, std::string_view option, const std::string& file, std::string_view wanted)
{
    if (result)
    {
        throw system_error{
            errc::invalid_config,
            fmt::format("the {} '{}' can't be used: {} ({})", option, file, wanted, result.message())};
    }
}

/// Returns the cipher list of the system, which its administrator may have configured, without RSA key exchange.
/// TLS 1.3 has no RSA key exchange, and a separate list.
std::string ciphers_with_forward_secrecy(SSL_CTX* context)
{
    std::string list;
    const STACK_OF(SSL_CIPHER)* const all = SSL_CTX_get_ciphers(context);
    for (int index = 0; index < sk_SSL_CIPHER_num(all); ++index)
    {
        const SSL_CIPHER* const each = sk_SSL_CIPHER_value(all, index);
        const int exchange = SSL_CIPHER_get_kx_nid(each);
        if (exchange != NID_kx_rsa && exchange != NID_kx_rsa_psk && exchange != NID_kx_any)
        {
            list.append(list.empty() ? "" : ":").append(SSL_CIPHER_get_name(each));
        }
    }
    return list;
}

void set_ciphers(SSL_CTX* context, const std::string& asked_for)
{
    const std::string list = asked_for.empty() ? ciphers_with_forward_secrecy(context) : asked_for;
    if (SSL_CTX_set_cipher_list(context, list.c_str()) != 1)
    {
        throw system_error{
            errc::invalid_config, fmt::format(
                                      "the tls.ciphers '{}' can't be used: it must be an OpenSSL cipher list "
                                      "with at least one available cipher",
                                      short_text{list}.view())};
    }
}

} // namespace

std::shared_ptr<tls_context> make_tls_context(const tls_options& options)
{
    auto made = std::make_shared<tls_context>(
        tls_context{ssl::context{ssl::context::tls_client}, options.verification});
    ssl::context& context = made->context;
    error_code result;
    SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
    SSL_CTX_set_options(context.native_handle(), SSL_OP_NO_RENEGOTIATION);
    set_ciphers(context.native_handle(), options.ciphers);
    // Otherwise OpenSSL would ask on the terminal for the password of an encrypted key.
    context.set_password_callback(
        [](std::size_t, ssl::context::password_purpose) { return std::string{}; }, result);
    if (options.ca_file.empty())
    {
        context.set_default_verify_paths(result);
        expect(result, "tls.ca_file", {}, "the certificate authorities of the system can't be read");
    }
    else
    {
        context.load_verify_file(options.ca_file, result);
        expect(result, "tls.ca_file", options.ca_file, "it must be a readable PEM file with certificates");
    }
    if (!options.certificate_file.empty())
    {
        context.use_certificate_chain_file(options.certificate_file, result);
        expect(
            result, "tls.certificate_file", options.certificate_file,
            "it must be a readable PEM file with a certificate");
        context.use_private_key_file(options.private_key_file, ssl::context::pem, result);
        expect(
            result, "tls.private_key_file", options.private_key_file,
            "it must be a readable PEM file with the key of the certificate, not encrypted");
    }
    return made;
}

} // namespace redlock::io
