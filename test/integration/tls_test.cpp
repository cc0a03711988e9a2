// SPDX-License-Identifier: BSL-1.0
// Masters over TLS: real servers with certificates of every kind.
#include "integration/fixture.hpp"

#include "support/certificates.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstdlib>
#include <optional>
#include <string>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

/// A certificate authority, and the files of a server whose certificate it has signed.
class authority
{
  public:
    certificate_authority& ca() { return ca_; }
    server_tls tls(const certificate_options& says = {}, bool ask_clients = false)
    {
        return {ca_.issue("server" + std::to_string(++issued_), says), ca_.file(), ask_clients};
    }
    config trusting(std::vector<master> masters)
    {
        config options = unhurried(std::move(masters));
        options.tls.ca_file = ca_.file();
        return options;
    }

  private:
    temporary_directory directory_;
    certificate_authority ca_{directory_.path(), "authority"};
    int issued_ = 0;
};

/// Returns the failure of the first connection attempt.
redlock::master_down failure_of(client& one)
{
    one.events().wait_for_down(0);
    return one.events().downs_of(0).front();
}

/// Checks that a lock can be acquired and released.
void check_locking(client& one)
{
    lease held = one.win("stock");
    CHECK(held.valid());
    CHECK_FALSE(extend(held, long_ttl).error);
    CHECK_FALSE(release(held).error);
}

/// Sets a variable of this process's environment for a while.
class environment_variable
{
  public:
    environment_variable(const char* name, const std::string& value) : name_{name}
    {
        if (const char* const before = std::getenv(name))
        {
            before_ = before;
        }
        ::setenv(name, value.c_str(), 1);
    }
    environment_variable(const environment_variable&) = delete;
    environment_variable& operator=(const environment_variable&) = delete;
    ~environment_variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }

  private:
    const char* name_;
    std::optional<std::string> before_;
};

} // namespace

TEST_CASE("locks are acquired over TLS", "[threads][own-servers]")
{
    authority trusted;
    std::vector<server> servers;
    for (int count = 0; count < 3; ++count)
    {
        servers.emplace_back(server_options{.tls = trusted.tls()});
    }
    client one{trusted.trusting(addresses_of(servers))};
    one.wait_for_masters();
    check_locking(one);
    CHECK(address_of(servers[0]).name().starts_with("rediss://127.0.0.1:"));
    // With a password, by URL.
    server with_password{{.password = "open sesame", .tls = trusted.tls()}};
    client other{trusted.trusting({master{with_password.url()}})};
    check_locking(other);
    // The end of a connection that worked has nothing to do with its handshake.
    servers[0].kill();
    one.events().wait_for_down(0);
    CHECK(one.events().downs_of(0).front().detail.empty());
}

TEST_CASE(
    "an untrusted certificate is reported with the failed check and the master [scenario-53]",
    "[threads][scenario-53][own-servers]")
{
    authority trusted;
    SECTION("expired")
    {
        const server at{{.tls = trusted.tls({.begins = -48h, .ends = -24h})}};
        client one{trusted.trusting({address_of(at)})};
        const redlock::master_down down = failure_of(one);
        CHECK(down.reason == master_errc::certificate_expired);
        CHECK(down.detail == "certificate has expired");
        CHECK(down.name == address_of(at).name());
    }
    SECTION("not yet valid")
    {
        const server at{{.tls = trusted.tls({.begins = 24h, .ends = 48h})}};
        client one{trusted.trusting({address_of(at)})};
        CHECK(failure_of(one).reason == master_errc::certificate_expired);
    }
    SECTION("issued for another address")
    {
        const server at{{.tls = trusted.tls({.made_out_to = "IP:10.0.0.1,DNS:elsewhere.example"})}};
        client one{trusted.trusting({address_of(at)})};
        const redlock::master_down down = failure_of(one);
        CHECK(down.reason == master_errc::certificate_wrong_name);
        CHECK(down.detail == "it isn't valid for 127.0.0.1");
    }
    SECTION("from an authority that isn't trusted")
    {
        authority unknown;
        const server at{{.tls = unknown.tls()}};
        client one{trusted.trusting({address_of(at)})};
        CHECK(failure_of(one).reason == master_errc::certificate_untrusted);
    }
    SECTION("from an authority that only the system trusts, which a ca_file replaces")
    {
        authority of_the_system;
        const environment_variable trusts{"SSL_CERT_FILE", of_the_system.ca().file()};
        const server at{{.tls = of_the_system.tls()}};
        config options = unhurried({address_of(at)});
        options.tls = {};
        client accepting{options};
        accepting.wait_for_masters();
        client one{trusted.trusting({address_of(at)})};
        CHECK(failure_of(one).reason == master_errc::certificate_untrusted);
    }
    SECTION("self-signed")
    {
        const server at{{.tls = server_tls{trusted.ca().self_signed("self"), trusted.ca().file()}}};
        client one{trusted.trusting({address_of(at)})};
        CHECK(failure_of(one).reason == master_errc::certificate_untrusted);
    }
    SECTION("unknown to the system's authorities")
    {
        const server at{{.tls = trusted.tls()}};
        config options = unhurried({address_of(at)});
        options.tls = {};
        client one{options};
        CHECK(failure_of(one).reason == master_errc::certificate_untrusted);
    }
}

TEST_CASE(
    "a certificate that has the master's name only in its CN is refused [scenario-93]",
    "[tls][threads][scenario-93][own-servers]")
{
    authority trusted;
    const std::string other_names = GENERATE("", "IP:10.0.0.1", "DNS:elsewhere.example");
    const server at{{.tls = trusted.tls({.made_out_to = other_names, .common_name = "localhost"})}};
    client one{trusted.trusting(
        {tcp_address{.host = "localhost", .port = static_cast<std::uint16_t>(at.port()), .tls = true}})};
    const redlock::master_down down = failure_of(one);
    CHECK(down.reason == master_errc::certificate_wrong_name);
    CHECK(down.detail == "it isn't valid for localhost by its subjectAltName; its CN is ignored");
}

TEST_CASE(
    "a server that supports only RSA key exchange is refused, unless it is allowed by an option "
    "[scenario-93]",
    "[tls][threads][scenario-93][own-servers]")
{
    authority trusted;
    const server at{
        {.settings = {"--tls-protocols", "TLSv1.2", "--tls-ciphers", "AES256-GCM-SHA384"},
         .tls = trusted.tls({.rsa = true})}};
    config options = trusted.trusting({address_of(at)});
    SECTION("not allowed")
    {
        client one{options};
        const redlock::master_down down = failure_of(one);
        CHECK(down.reason == master_errc::tls_failed);
        CHECK_THAT(down.detail, ContainsSubstring("handshake failure"));
    }
    SECTION("allowed")
    {
        options.tls.ciphers = "AES256-GCM-SHA384";
        client one{options};
        check_locking(one);
    }
}

TEST_CASE(
    "servers with either kind of key are connected to by TLS 1.2 and 1.3", "[tls][threads][own-servers]")
{
    authority trusted;
    const bool rsa = GENERATE(true, false);
    const std::string version = GENERATE("TLSv1.2", "TLSv1.3");
    const server at{{.settings = {"--tls-protocols", version}, .tls = trusted.tls({.rsa = rsa})}};
    client one{trusted.trusting({address_of(at)})};
    check_locking(one);
}

TEST_CASE("an acquire fails at once if certificates prevent a quorum", "[threads][own-servers]")
{
    authority trusted;
    authority unknown;
    std::vector<server> servers;
    servers.emplace_back(server_options{.tls = trusted.tls()});
    servers.emplace_back(server_options{.tls = unknown.tls()});
    servers.emplace_back(server_options{.tls = unknown.tls()});
    client one{trusted.trusting(addresses_of(servers))};
    one.events().wait_for_down(1);
    one.events().wait_for_down(2);
    const acquired got = one.acquire("stock", {.ttl = long_ttl, .wait = redlock::no_limit});
    CHECK(got.error == errc::no_quorum);
    CHECK_THAT(
        got.report.to_string(),
        ContainsSubstring(address_of(servers[1]).name()) && ContainsSubstring("certificate"));
}

TEST_CASE(
    "a server that requests a client certificate gets it, or the error says that it is missing",
    "[threads][own-servers]")
{
    authority trusted;
    const server at{{.tls = trusted.tls({}, true)}};
    config options = trusted.trusting({address_of(at)});
    SECTION("there is a certificate")
    {
        const certificate_files own = trusted.ca().issue("client");
        options.tls.certificate_file = own.certificate;
        options.tls.private_key_file = own.key;
        client one{options};
        check_locking(one);
    }
    SECTION("an intermediate authority has signed it, and its file contains the chain")
    {
        const temporary_directory directory;
        certificate_authority intermediate{directory.path(), "intermediate", trusted.ca()};
        const certificate_files own = intermediate.issue("client");
        options.tls.certificate_file = own.certificate;
        options.tls.private_key_file = own.key;
        client one{options};
        check_locking(one);
    }
    SECTION("there is none")
    {
        client one{options};
        const redlock::master_down down = failure_of(one);
        CHECK(down.reason == master_errc::tls_failed);
        CHECK_THAT(down.detail, ContainsSubstring("certificate required"));
    }
    SECTION("the server doesn't trust its authority")
    {
        authority unknown;
        const certificate_files own = unknown.ca().issue("client");
        options.tls.certificate_file = own.certificate;
        options.tls.private_key_file = own.key;
        client one{options};
        CHECK(failure_of(one).reason == master_errc::tls_failed);
    }
}

TEST_CASE("without verification, any certificate is accepted", "[threads][own-servers]")
{
    authority trusted;
    const server at{
        {.tls = trusted.tls({.made_out_to = "DNS:elsewhere.example", .begins = -48h, .ends = -24h})}};
    config options = unhurried({address_of(at)});
    options.tls.verification = tls_verification::dangerously_off;
    client one{options};
    check_locking(one);
}

TEST_CASE(
    "TLS to a server without it, and plain text to a server with it, fail with different errors",
    "[threads][own-servers]")
{
    authority trusted;
    const server plain{server_options::plain()};
    tcp_address address{.host = "127.0.0.1", .port = static_cast<std::uint16_t>(plain.port()), .tls = true};
    config impatient = trusted.trusting({address});
    impatient.connect_timeout = 500ms;
    client over_tls{impatient};
    const redlock::master_down down = failure_of(over_tls);
    // To a plain server, the start of the handshake is an incomplete command.
    CHECK(down.reason == master_errc::connect_timed_out);
    CHECK(down.detail == "the TLS handshake wasn't answered");

    const server encrypted{{.tls = trusted.tls()}};
    address.port = static_cast<std::uint16_t>(encrypted.port());
    address.tls = false;
    client without{unhurried({address})};
    const error_code cut_off = failure_of(without).reason;
    CHECK((cut_off == master_errc::connection_lost || cut_off == asio::error::connection_reset));
}

TEST_CASE("invalid TLS files are refused when the manager is created", "[threads][own-servers]")
{
    authority trusted;
    asio::io_context io;
    const auto refusal = [&io](const tls_options& tls, std::string_view url) -> std::string
    {
        try
        {
            const lock_manager locks{io, config{.masters = {url}, .tls = tls}};
            return "accepted";
        }
        catch (const system_error& error)
        {
            CHECK(error.code() == errc::invalid_config);
            return error.what();
        }
    };
    const certificate_files own = trusted.ca().issue("client");
    const certificate_files other = trusted.ca().issue("other");
    const std::string url = "rediss://10.0.0.1";
    CHECK_THAT(
        refusal({.ciphers = "no such cipher\x1b"}, url),
        ContainsSubstring("tls.ciphers 'no such cipher\\x1b'"));
    CHECK_THAT(refusal({.ca_file = "/nowhere.pem"}, url), ContainsSubstring("tls.ca_file '/nowhere.pem'"));
    CHECK_THAT(
        refusal({.certificate_file = own.key, .private_key_file = own.key}, url),
        ContainsSubstring("tls.certificate_file"));
    CHECK_THAT(
        refusal({.certificate_file = own.certificate, .private_key_file = other.key}, url),
        ContainsSubstring("tls.private_key_file"));
    CHECK_THAT(
        refusal({.certificate_file = own.certificate}, url),
        ContainsSubstring("give tls.private_key_file as well"));
    CHECK_THAT(refusal({.ca_file = own.certificate}, "redis://10.0.0.1"), ContainsSubstring("rediss://"));
    CHECK(refusal({.ca_file = trusted.ca().file()}, url) == "accepted");
}

} // namespace redlock::test
