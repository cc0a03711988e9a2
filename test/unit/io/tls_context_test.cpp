// SPDX-License-Identifier: BSL-1.0
// What TLS connections refuse, shown with OpenSSL's own server and without a network.
#include "io/tls_context.hpp"

#include "support/certificates.hpp"
#include "support/server.hpp"

#include <catch2/catch_test_macros.hpp>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <array>
#include <memory>
#include <string>

namespace redlock::test
{

namespace
{

struct freed
{
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* one) const { SSL_free(one); }
};

/// A client with the library's settings and a TLS 1.2 server, connected by a pair of buffers.
class conversation
{
  public:
    explicit conversation(const tls_options& options) : shared_{io::make_tls_context(options)}
    {
        const certificate_files own = authority_.issue("server", {.rsa = true});
        SSL_CTX_set_max_proto_version(server_context_.get(), TLS1_2_VERSION);
        REQUIRE(SSL_CTX_use_certificate_chain_file(server_context_.get(), own.certificate.c_str()) == 1);
        REQUIRE(SSL_CTX_use_PrivateKey_file(server_context_.get(), own.key.c_str(), SSL_FILETYPE_PEM) == 1);
        client_.reset(SSL_new(shared_->context.native_handle()));
        server_.reset(SSL_new(server_context_.get()));
        BIO* clients = nullptr;
        BIO* servers = nullptr;
        REQUIRE(BIO_new_bio_pair(&clients, 0, &servers, 0) == 1);
        SSL_set_bio(client_.get(), clients, clients);
        SSL_set_bio(server_.get(), servers, servers);
        SSL_set_connect_state(client_.get());
        SSL_set_accept_state(server_.get());
    }

    SSL* client() const { return client_.get(); }
    SSL* server() const { return server_.get(); }
    /// Runs both sides until neither has anything to send.
    void go_on()
    {
        std::array<char, 64> ignored{};
        for (int round = 0; round < 10; ++round)
        {
            SSL_read(client(), ignored.data(), ignored.size());
            SSL_read(server(), ignored.data(), ignored.size());
        }
    }
    bool shaken() const { return SSL_is_init_finished(client()) == 1 && SSL_is_init_finished(server()) == 1; }
    /// The Finished message of the client's last handshake.
    std::string finished() const
    {
        std::array<char, 64> bytes{};
        const std::size_t size = SSL_get_finished(client(), bytes.data(), bytes.size());
        return {bytes.data(), size};
    }

  private:
    temporary_directory directory_;
    certificate_authority authority_{directory_.path(), "authority"};
    std::shared_ptr<io::tls_context> shared_;
    std::unique_ptr<SSL_CTX, freed> server_context_{SSL_CTX_new(TLS_server_method())};
    std::unique_ptr<SSL, freed> client_;
    std::unique_ptr<SSL, freed> server_;
};

} // namespace

TEST_CASE("a server's request for renegotiation is refused", "[tls][scenario-93]")
{
    conversation one{{}};
    one.go_on();
    REQUIRE(one.shaken());
    const std::string before = one.finished();
    REQUIRE(SSL_renegotiate(one.server()) == 1);
    SSL_do_handshake(one.server());
    ERR_clear_error();
    one.go_on();
    CHECK(one.finished() == before);
    CHECK(ERR_GET_REASON(ERR_peek_error()) == SSL_R_NO_RENEGOTIATION);
}

TEST_CASE("only ciphers with forward secrecy are offered", "[tls][scenario-93]")
{
    const conversation one{{}};
    const STACK_OF(SSL_CIPHER)* const all = SSL_get_ciphers(one.client());
    REQUIRE(sk_SSL_CIPHER_num(all) > 3);
    bool has_old = false;
    for (int index = 0; index < sk_SSL_CIPHER_num(all); ++index)
    {
        const SSL_CIPHER* const each = sk_SSL_CIPHER_value(all, index);
        const std::string_view version = SSL_CIPHER_get_version(each);
        CAPTURE(SSL_CIPHER_get_name(each));
        CHECK(SSL_CIPHER_get_kx_nid(each) != NID_kx_rsa);
        has_old = has_old || version != "TLSv1.3";
    }
    CHECK(has_old);
}

TEST_CASE("versions before TLS 1.2 are refused, whatever the system allows", "[tls][scenario-93]")
{
    const auto shared = io::make_tls_context({});
    CHECK(SSL_CTX_get_min_proto_version(shared->context.native_handle()) == TLS1_2_VERSION);
    CHECK(SSL_CTX_get_max_proto_version(shared->context.native_handle()) == 0);
}

} // namespace redlock::test
