// SPDX-License-Identifier: BSL-1.0
// Byte streams over TLS. Each kind of problem with a certificate is reported as a separate error.
#include "io/asio_stream.hpp"
#include "io/channel_stream.hpp"
#include "io/tcp_connector.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <string>
#include <utility>

namespace redlock::io
{

namespace
{

namespace ssl = asio::ssl;
using asio::ip::tcp;

master_errc reason_of(int verify_error) noexcept
{
    const bool by_date = verify_error == X509_V_ERR_CERT_HAS_EXPIRED ||
                         verify_error == X509_V_ERR_CERT_NOT_YET_VALID ||
                         verify_error == X509_V_ERR_CRL_HAS_EXPIRED;
    return by_date ? master_errc::certificate_expired : master_errc::certificate_untrusted;
}

/// Returns whether a certificate is valid for this host. By default, only its subjectAltName counts, as in RFC 9525.
bool is_made_out_to(
    X509* certificate, const std::string& host, unsigned int flags = X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)
{
    error_code not_a_number;
    asio::ip::make_address(host, not_a_number);
    return not_a_number ? X509_check_host(certificate, host.data(), host.size(), flags, nullptr) == 1
                        : X509_check_ip_asc(certificate, host.c_str(), 0) == 1;
}

/// A dot at the end says that a name is complete. It is no part of the name in certificates and in server name indication
/// (RFC 6066, section 3).
std::string without_final_dot(std::string host)
{
    if (host.ends_with('.'))
    {
        host.pop_back();
    }
    return host;
}

class tls_stream final : public channel_stream<ssl::stream<tcp::socket>>
{
  public:
    tls_stream(runtime::scheduler& strand, const master& to, std::shared_ptr<tls_context> shared)
        : channel_stream{strand, strand.executor(), shared->context},
          shared_{std::move(shared)},
          connector_{strand, channel_.next_layer(), to.host(), to.port()},
          host_{without_final_dot(to.host())}
    {
    }

    void begin_with(std::size_t address) noexcept override { connector_.begin_with(address); }

    void connect(runtime::io_operation& operation, clock::time_point until) override
    {
        operation.start();
        connector_.connect(until, [this, &operation](error_code result) { on_connected(result, operation); });
    }

    void close() noexcept override
    {
        connector_.close();
        channel_stream::close();
    }

    std::string_view complaint() const noexcept override
    {
        return complaint_.empty() ? connector_.complaint() : complaint_;
    }

  private:
    void on_connected(error_code result, runtime::io_operation& operation)
    {
        if (!result)
        {
            result = prepare();
        }
        if (result)
        {
            operation.finish(result, 0);
            return;
        }
        complaint_ = "the TLS handshake wasn't answered";
        auto done = [this, &operation](error_code error)
        {
            if (!refused_)
            {
                complaint_.clear();
            }
            operation.finish(told(error), 0);
        };
        channel_.async_handshake(ssl::stream_base::client, strand_.bind(done));
    }

    error_code prepare()
    {
        error_code not_a_number;
        asio::ip::make_address(host_, not_a_number);
        // Server name indication, so that a server with several certificates presents the right one. It must not be an
        // address (RFC 6066, section 3).
        if (not_a_number && SSL_set_tlsext_host_name(channel_.native_handle(), host_.c_str()) != 1)
        {
            return master_errc::tls_failed;
        }
        error_code result;
        if (shared_->verification == tls_verification::dangerously_off)
        {
            channel_.set_verify_mode(ssl::verify_none, result);
            return result;
        }
        channel_.set_verify_mode(ssl::verify_peer, result);
        if (!result)
        {
            auto verify = [this](bool trusted, ssl::verify_context& seen) { return check(trusted, seen); };
            channel_.set_verify_callback(verify, result);
        }
        return result;
    }

    bool check(bool trusted, ssl::verify_context& seen)
    {
        if (!trusted)
        {
            const int error = X509_STORE_CTX_get_error(seen.native_handle());
            refused_ = reason_of(error);
            complaint_ = X509_verify_cert_error_string(error);
            return false;
        }
        const bool is_servers = X509_STORE_CTX_get_error_depth(seen.native_handle()) == 0;
        X509* const certificate = X509_STORE_CTX_get_current_cert(seen.native_handle());
        if (is_servers && !is_made_out_to(certificate, host_))
        {
            refused_ = master_errc::certificate_wrong_name;
            complaint_ = "it isn't valid for " + host_;
            if (is_made_out_to(certificate, host_, X509_CHECK_FLAG_ALWAYS_CHECK_SUBJECT))
            {
                complaint_ += " by its subjectAltName; its CN is ignored";
            }
            return false;
        }
        return true;
    }

    error_code told(error_code error) override
    {
        if (error && refused_)
        {
            return refused_;
        }
        // Many servers close a connection without a close_notify alert. A truncated reply is detected by its length, so
        // it is never used.
        if (error == ssl::error::stream_truncated)
        {
            return asio::error::eof;
        }
        if (error.category() == asio::error::get_ssl_category())
        {
            complaint_ = error.message();
            return master_errc::tls_failed;
        }
        return error;
    }

    std::shared_ptr<tls_context> shared_;
    tcp_connector connector_;
    std::string host_;
    error_code refused_; // The reason why the certificate was rejected.
    std::string complaint_;
};

} // namespace

std::unique_ptr<runtime::stream>
make_tls_stream(runtime::scheduler& strand, const master& to, std::shared_ptr<tls_context> shared)
{
    return std::make_unique<tls_stream>(strand, to, std::move(shared));
}

} // namespace redlock::io
