// SPDX-License-Identifier: BSL-1.0
// Names with several addresses: one after the other is tried, and one that hangs costs its share of the time.
#include "env/asio_environment.hpp"
#include "env/scheduler.hpp"
#include "env/tcp_connector.hpp"

#include "support/loopback.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch_test_macros.hpp>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <map>
#include <memory>
#include <mutex>
#include <netdb.h>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace
{

/// Names of the tests' own: what stands for a name is looked up in its place. The resolver's thread reads it.
std::mutex names_mutex;
std::map<std::string, std::string> names;

void let_name_lead_to(const std::string& name, const std::string& other)
{
    const std::lock_guard lock{names_mutex};
    names[name] = other;
}

} // namespace

/// Stands before the C library's: the one place where a test can say where a name leads.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** found)
{
    static const auto real = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
    std::string name = node != nullptr ? node : "";
    {
        const std::lock_guard lock{names_mutex};
        if (const auto other = names.find(name); other != names.end())
        {
            name = other->second;
        }
    }
    return real(node != nullptr ? name.c_str() : nullptr, service, hints, found);
}

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;
namespace asio = boost::asio;
using asio::ip::tcp;

constexpr auto patience = 30s;

tcp::endpoint endpoint_of(int port)
{
    return {asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(port)};
}

/// A port where connecting hangs: its queue of connections is full, and nobody takes any.
class hanging_port
{
  public:
    hanging_port()
    {
        ::listen(listening_.socket.get(), 0);
        // Connections that succeed take what room there is, whatever the kernel makes of a length of 0.
        bool hangs = false;
        while (!hangs)
        {
            unique_fd client{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
            sockaddr_in to{};
            to.sin_family = AF_INET;
            to.sin_port = htons(static_cast<std::uint16_t>(listening_.port));
            to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            ::connect(client.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to);
            pollfd connected{client.get(), POLLOUT, 0};
            // On loopback a connect that can succeed has succeeded when it returns.
            hangs = ::poll(&connected, 1, 50) == 0;
            clients_.push_back(std::move(client));
        }
    }

    tcp::endpoint endpoint() const { return endpoint_of(listening_.port); }

  private:
    listener listening_ = listen_on_loopback();
    std::vector<unique_fd> clients_;
};

/// A scheduler with the real environment, and a connector on it.
struct connecting_host
{
    explicit connecting_host(asio::io_context& io) : strand{io.get_executor()}, socket{io} {}

    env::asio_environment outside;
    env::scheduler strand;
    tcp::socket socket;
    std::optional<env::tcp_connector> connector;
};

class attempt
{
  public:
    explicit attempt(std::string name = "127.0.0.1", int port = 1)
        : here_{std::make_shared<connecting_host>(io_)}
    {
        here_->strand.start(here_->outside, here_);
        here_->connector.emplace(
            here_->strand, here_->socket, std::move(name), static_cast<std::uint16_t>(port));
    }

    env::tcp_connector& connector() { return *here_->connector; }
    tcp::socket& socket() { return here_->socket; }
    auto done()
    {
        return [this](error_code ended) { result_ = ended; };
    }
    void begin(std::vector<tcp::endpoint> addresses, clock::duration time)
    {
        here_->strand.turn([&]
                           { connector().connect_to(std::move(addresses), clock::now() + time, done()); });
    }
    void begin_with_name(clock::duration time)
    {
        here_->strand.turn([&] { connector().connect(clock::now() + time, done()); });
    }
    void close()
    {
        here_->strand.turn(
            [&]
            {
                connector().close();
                error_code ignored;
                socket().close(ignored);
            });
    }
    /// What it ended with; fails the test if it doesn't end.
    error_code result()
    {
        const clock::time_point end = clock::now() + patience;
        while (!result_ && clock::now() < end && io_.run_one_for(patience) != 0)
        {
        }
        REQUIRE(result_);
        return *result_;
    }
    bool ended() const { return result_.has_value(); }

  private:
    asio::io_context io_;
    std::shared_ptr<connecting_host> here_;
    std::optional<error_code> result_;
};

} // namespace

TEST_CASE("an address that refuses makes way for the next")
{
    const listener good = listen_on_loopback();
    attempt one;
    one.begin({endpoint_of(free_port()), endpoint_of(good.port)}, 20s);
    CHECK_FALSE(one.result());
    CHECK(one.socket().remote_endpoint() == endpoint_of(good.port));
}

TEST_CASE("an address that hangs costs its share of the time, and not more")
{
    const hanging_port hung;
    const listener good = listen_on_loopback();
    attempt one;
    const clock::time_point began = clock::now();
    // Of three, it is the first: a third of the time is its own.
    one.begin({hung.endpoint(), endpoint_of(free_port()), endpoint_of(good.port)}, 3s);
    CHECK_FALSE(one.result());
    CHECK(one.socket().remote_endpoint() == endpoint_of(good.port));
    CHECK(clock::now() - began >= 1s);
}

TEST_CASE("when no address answers, the last one's error is told")
{
    attempt one;
    one.begin({endpoint_of(free_port()), endpoint_of(free_port())}, 20s);
    CHECK(one.result() == asio::error::connection_refused);
}

TEST_CASE("an attempt that is closed ends with operation_aborted, and tries no further address")
{
    const hanging_port hung;
    const listener good = listen_on_loopback();
    attempt one;
    one.begin({hung.endpoint(), endpoint_of(good.port)}, 60s);
    REQUIRE_FALSE(one.ended());
    one.close();
    CHECK(one.result() == asio::error::operation_aborted);
    CHECK_FALSE(one.socket().is_open());
}

TEST_CASE("a name is looked up anew at each connect, so one that has moved is found")
{
    const listener first = listen_on_loopback();
    const std::string name = "master.moving.invalid";
    let_name_lead_to(name, "127.0.0.1");
    attempt before{name, first.port};
    before.begin_with_name(20s);
    CHECK_FALSE(before.result());
    CHECK(before.socket().remote_endpoint().address() == asio::ip::make_address("127.0.0.1"));

    // All of 127.0.0.0/8 is this machine's, but the listener's is the one address.
    let_name_lead_to(name, "127.0.0.2");
    attempt after{name, first.port};
    after.begin_with_name(20s);
    CHECK(after.result() == asio::error::connection_refused);
}

TEST_CASE("a name without any address ends with the resolver's error")
{
    // Nobody has it: RFC 6761 keeps this ending free.
    attempt one{"no-such-host.invalid", 6379};
    one.begin_with_name(20s);
    CHECK(one.result());
}

TEST_CASE("a name that is being resolved can be given up at once")
{
    attempt one{"no-such-host.invalid", 6379};
    one.begin_with_name(20s);
    one.close();
    // Told in the call, whenever the resolver returns.
    CHECK(one.ended());
    CHECK(one.result() == asio::error::operation_aborted);
}

} // namespace redlock::test
