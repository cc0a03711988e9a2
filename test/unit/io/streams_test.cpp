// SPDX-License-Identifier: BSL-1.0
// What a real stream shows to its peer and to the kernel: server names (SNI) and socket options.
#include "io/asio_environment.hpp"
#include "io/asio_stream.hpp"
#include "io/tls_context.hpp"
#include "runtime/scheduler.hpp"

#include "support/certificates.hpp"
#include "support/loopback.hpp"
#include "support/server.hpp"
#include "support/tls_server.hpp"
#include "unit/io/fake_names.hpp"

#include <redlock/master.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <netinet/tcp.h>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <utility>
#include <vector>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;
namespace asio = boost::asio;

constexpr auto stream_patience = 60s;

/// The path of a unix socket's peer, or the port of another socket's; empty for any other descriptor.
std::string peer_of(int descriptor)
{
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    {
        return {};
    }
    if (address.ss_family == AF_UNIX)
    {
        return reinterpret_cast<const sockaddr_un&>(address).sun_path;
    }
    return std::to_string(ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port));
}

/// Returns the only descriptor of this process with that peer.
int descriptor_to(const std::string& peer)
{
    std::vector<int> found;
    for (const auto& each : std::filesystem::directory_iterator{"/proc/self/fd"})
    {
        const int descriptor = std::stoi(each.path().filename());
        if (peer_of(descriptor) == peer)
        {
            found.push_back(descriptor);
        }
    }
    REQUIRE(found.size() == 1);
    return found.front();
}

int option_of(int descriptor, int level, int name)
{
    int value = -1;
    socklen_t size = sizeof value;
    REQUIRE(::getsockopt(descriptor, level, name, &value, &size) == 0);
    return value;
}

/// A unix socket that accepts nothing. One connection more than `backlog` can wait there.
unique_fd listen_at(const std::string& path, int backlog)
{
    unique_fd listening = open_socket(AF_UNIX);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(path.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    REQUIRE(::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listening.get(), backlog) == 0);
    return listening;
}

/// A stream to one master on its own context.
class connected_stream
{
  public:
    explicit connected_stream(const master& to, const std::shared_ptr<io::tls_context>& tls = {})
        : here_{std::make_shared<parts>(io_, tls)}
    {
        here_->strand.start(here_->outside, here_);
        here_->stream = here_->outside.make_stream(here_->strand, to);
        here_->strand.run_step(
            [&] { here_->stream->connect(here_->connecting, clock::now() + stream_patience); });
        const clock::time_point end = clock::now() + stream_patience;
        while (here_->connecting.pending && clock::now() < end && io_.run_one_for(stream_patience) != 0)
        {
        }
        REQUIRE_FALSE(here_->connecting.pending);
    }
    connected_stream(const connected_stream&) = delete;
    connected_stream& operator=(const connected_stream&) = delete;
    ~connected_stream()
    {
        here_->strand.run_step([&] { here_->stream->close(); });
        io_.poll();
    }

    error_code error() const { return here_->connecting.error; }
    std::string complaint() const { return std::string{here_->stream->complaint()}; }

  private:
    struct parts
    {
        parts(asio::io_context& io, const std::shared_ptr<io::tls_context>& tls)
            : outside{tls}, strand{io.get_executor()}, event{strand}
        {
        }
        io::asio_environment outside;
        runtime::scheduler strand;
        runtime::async_event event;
        runtime::io_operation connecting{event};
        std::unique_ptr<runtime::stream> stream;
    };

    asio::io_context io_;
    std::shared_ptr<parts> here_;
};

/// A server with a certificate for each of two names and, for clients that send no name, one for its address.
struct two_hosts
{
    two_hosts()
    {
        let_name_lead_to("one.invalid", "127.0.0.1");
        let_name_lead_to("two.invalid", "127.0.0.1");
        const tls_options options{.ca_file = authority.file()};
        tls = io::make_tls_context(options);
    }

    master at(const std::string& host) const
    {
        return tcp_address{.host = host, .port = static_cast<std::uint16_t>(server->port()), .tls = true};
    }
    certificate_files issue(const std::string& names)
    {
        return authority.issue(
            "server" + std::to_string(++issued), {.made_out_to = names, .common_name = "unused"});
    }
    void serve(const std::map<std::string, certificate_files>& certificates) { server.emplace(certificates); }

    temporary_directory directory;
    certificate_authority authority{directory.path(), "authority"};
    int issued = 0;
    std::shared_ptr<io::tls_context> tls;
    std::optional<tls_server> server;
};

} // namespace

TEST_CASE("the name of the master is sent, so that the server presents its certificate", "[tls]")
{
    two_hosts hosts;
    hosts.serve(
        {{"one.invalid", hosts.issue("DNS:one.invalid")}, {"two.invalid", hosts.issue("DNS:two.invalid")}});
    for (const std::string name : {"one.invalid", "two.invalid"})
    {
        const connected_stream stream{hosts.at(name), hosts.tls};
        INFO(name << ": " << stream.complaint());
        CHECK_FALSE(stream.error());
        CHECK(stream.complaint().empty());
        CHECK(hosts.server->names().back() == name);
    }
}

TEST_CASE(
    "no server name is sent for an address, which is compared with the certificate's addresses", "[tls]")
{
    two_hosts hosts;
    const bool has_address = GENERATE(true, false);
    // A name that looks like the address isn't the address.
    hosts.serve({{"", hosts.issue(has_address ? "IP:127.0.0.1" : "IP:127.0.0.2,DNS:127.0.0.1")}});
    const connected_stream stream{hosts.at("127.0.0.1"), hosts.tls};
    CHECK(stream.error() == (has_address ? error_code{} : error_code{master_errc::certificate_wrong_name}));
    CHECK(hosts.server->names() == std::vector<std::string>{""});
}

TEST_CASE("the certificate of another host of the same server is refused", "[tls]")
{
    two_hosts hosts;
    // Whatever is asked for, it has the other host's certificate; the address is right, but wasn't asked for.
    hosts.serve({{"one.invalid", hosts.issue("DNS:two.invalid,IP:127.0.0.1")}});
    const connected_stream stream{hosts.at("one.invalid"), hosts.tls};
    CHECK(stream.error() == master_errc::certificate_wrong_name);
    CHECK(stream.complaint() == "it isn't valid for one.invalid");
}

TEST_CASE("a server that has no such host ends the handshake, and the alert is reported", "[tls]")
{
    two_hosts hosts;
    hosts.serve({{"one.invalid", hosts.issue("DNS:one.invalid")}});
    const connected_stream stream{hosts.at("two.invalid"), hosts.tls};
    CHECK(stream.error() == master_errc::tls_failed);
    CHECK(stream.complaint().find("unrecognized name") != std::string::npos);
}

TEST_CASE("a name with capitals is valid, and one with a final dot is sent without it", "[tls]")
{
    two_hosts hosts;
    const certificate_files own = hosts.issue("DNS:one.invalid");
    hosts.serve({{"one.invalid", own}, {"ONE.Invalid", own}});
    for (const std::string name : {"ONE.Invalid", "one.invalid.", "ONE.Invalid."})
    {
        let_name_lead_to(name, "127.0.0.1");
        const connected_stream stream{hosts.at(name), hosts.tls};
        INFO(name << ": " << stream.complaint());
        CHECK_FALSE(stream.error());
        CHECK(hosts.server->names().back() == name.substr(0, std::strlen("one.invalid")));
    }
}

TEST_CASE("a wildcard is valid for one label of the name", "[tls]")
{
    two_hosts hosts;
    const bool is_label = GENERATE(true, false);
    const std::string name = is_label ? "one.masters.invalid" : "one.two.masters.invalid";
    let_name_lead_to(name, "127.0.0.1");
    hosts.serve({{name, hosts.issue("DNS:*.masters.invalid")}});
    const connected_stream stream{hosts.at(name), hosts.tls};
    CHECK(stream.error() == (is_label ? error_code{} : error_code{master_errc::certificate_wrong_name}));
}

TEST_CASE("sockets send at once, don't block, and aren't inherited by other programs", "[sockets]")
{
    two_hosts hosts;
    std::optional<listener> plain;
    std::optional<connected_stream> stream;
    std::string peer;
    SECTION("plain")
    {
        plain = listen_on_loopback();
        peer = std::to_string(plain->port);
        stream.emplace(tcp_address{.host = "127.0.0.1", .port = static_cast<std::uint16_t>(plain->port)});
    }
    SECTION("plain, by name")
    {
        plain = listen_on_loopback();
        peer = std::to_string(plain->port);
        stream.emplace(tcp_address{.host = "one.invalid", .port = static_cast<std::uint16_t>(plain->port)});
    }
    SECTION("TLS")
    {
        hosts.serve({{"", hosts.issue("IP:127.0.0.1")}});
        peer = std::to_string(hosts.server->port());
        stream.emplace(hosts.at("127.0.0.1"), hosts.tls);
    }
    REQUIRE_FALSE(stream->error());
    const int socket = descriptor_to(peer);
    CHECK(option_of(socket, IPPROTO_TCP, TCP_NODELAY) == 1);
    CHECK((::fcntl(socket, F_GETFD) & FD_CLOEXEC) != 0);
    CHECK((::fcntl(socket, F_GETFL) & O_NONBLOCK) != 0);
    // Connections are watched by probes, and closed in order: the library leaves these as they are.
    CHECK(option_of(socket, SOL_SOCKET, SO_KEEPALIVE) == 0);
    CHECK(option_of(socket, IPPROTO_TCP, TCP_USER_TIMEOUT) == 0);
    linger at_close{1, 1};
    socklen_t size = sizeof at_close;
    REQUIRE(::getsockopt(socket, SOL_SOCKET, SO_LINGER, &at_close, &size) == 0);
    CHECK(at_close.l_onoff == 0);
}

TEST_CASE("unix sockets don't block, and aren't inherited by other programs", "[sockets]")
{
    const temporary_directory directory;
    const std::string path = directory.path() + "/socket";
    const unique_fd listening = listen_at(path, 1);
    const connected_stream stream{unix_address{.path = path}};
    REQUIRE_FALSE(stream.error());
    const int socket = descriptor_to(path);
    CHECK((::fcntl(socket, F_GETFD) & FD_CLOEXEC) != 0);
    CHECK((::fcntl(socket, F_GETFL) & O_NONBLOCK) != 0);
}

TEST_CASE("a unix socket whose server accepts nothing any more is tried again", "[sockets]")
{
    const temporary_directory directory;
    const std::string path = directory.path() + "/socket";
    const unique_fd listening = listen_at(path, 0);
    std::vector<std::unique_ptr<connected_stream>> waiting;
    do
    {
        REQUIRE(waiting.size() < 10);
        waiting.push_back(std::make_unique<connected_stream>(unix_address{.path = path}));
    } while (!waiting.back()->error());
    CHECK(waiting.size() > 1);
    CHECK(waiting.back()->error() == asio::error::try_again);
    CHECK(waiting.back()->complaint() == "too many connections wait there until they are accepted");
}

TEST_CASE("the descriptors of an environment aren't inherited by other programs", "[sockets]")
{
    std::map<int, bool> before;
    const auto each_descriptor = [](const std::function<void(int)>& what)
    {
        for (const auto& each : std::filesystem::directory_iterator{"/proc/self/fd"})
        {
            what(std::stoi(each.path().filename()));
        }
    };
    each_descriptor([&](int descriptor) { before[descriptor] = true; });
    const listener listening = listen_on_loopback();
    const connected_stream stream{
        tcp_address{.host = "127.0.0.1", .port = static_cast<std::uint16_t>(listening.port)}};
    REQUIRE_FALSE(stream.error());
    int fresh = 0;
    each_descriptor(
        [&](int descriptor)
        {
            const int flags = before.contains(descriptor) ? -1 : ::fcntl(descriptor, F_GETFD);
            fresh += flags >= 0 ? 1 : 0;
            INFO("descriptor " << descriptor);
            CHECK((flags < 0 || (flags & FD_CLOEXEC) != 0));
        });
    CHECK(fresh >= 3); // The listener, the socket and the alarm.
}

} // namespace redlock::test
