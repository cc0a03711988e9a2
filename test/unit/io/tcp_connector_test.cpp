// SPDX-License-Identifier: BSL-1.0
// Names with several addresses: they are tried one after the other, and one that hangs uses up its share of the time. A
// name lookup that hangs delays only itself.
#include "io/asio_environment.hpp"
#include "io/name_lookup.hpp"
#include "io/tcp_connector.hpp"
#include "runtime/scheduler.hpp"

#include <redlock/lock_manager.hpp>

#include "support/child_process.hpp"
#include "support/loopback.hpp"
#include "unit/io/fake_names.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <arpa/inet.h>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <netdb.h>
#include <optional>
#include <poll.h>
#include <pthread.h>
#include <set>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace
{

/// No thread can be started as long as this lives: its stack would be larger than the address space.
class no_more_threads
{
  public:
    no_more_threads()
    {
        ::pthread_getattr_default_np(&before_);
        pthread_attr_t wanted{};
        ::pthread_getattr_default_np(&wanted);
        ::pthread_attr_setstacksize(&wanted, std::size_t{1} << 50U);
        ::pthread_setattr_default_np(&wanted);
        ::pthread_attr_destroy(&wanted);
    }
    no_more_threads(const no_more_threads&) = delete;
    no_more_threads& operator=(const no_more_threads&) = delete;
    ~no_more_threads()
    {
        ::pthread_setattr_default_np(&before_);
        ::pthread_attr_destroy(&before_);
    }

  private:
    pthread_attr_t before_{};
};

/// The state of the test's own resolver. Its threads outlive a test.
struct fake_resolver
{
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::string, std::string> leads_to; // The name that is looked up instead.
    std::set<std::string> hanging;
    std::map<std::string, int> failing; // The error of a name, and errno with EAI_SYSTEM.
    std::map<std::string, std::vector<sockaddr_storage>> addresses; // Names with these addresses.
    std::map<std::string, int> calls;
    sigset_t mask{}; // Of the last calling thread.
};

fake_resolver& resolver()
{
    static auto* const only = new fake_resolver;
    return *only;
}

} // namespace

void redlock::test::let_name_lead_to(const std::string& name, const std::string& other)
{
    const std::lock_guard lock{resolver().mutex};
    resolver().leads_to[name] = other;
}

/// Returns a list of addresses that freeaddrinfo() of the C library releases.
static addrinfo* list_of(const std::vector<sockaddr_storage>& addresses)
{
    addrinfo* list = nullptr;
    for (auto each = addresses.rbegin(); each != addresses.rend(); ++each)
    {
        // The C library allocates both in one piece.
        auto* const made = static_cast<addrinfo*>(std::calloc(1, sizeof(addrinfo) + sizeof *each));
        made->ai_family = each->ss_family;
        made->ai_addrlen = sizeof *each;
        made->ai_addr = reinterpret_cast<sockaddr*>(made + 1);
        std::memcpy(made + 1, &*each, sizeof *each);
        made->ai_next = std::exchange(list, made);
    }
    return list;
}

/// Replaces the C library's function, so that a test decides where a name leads, and when.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** found)
{
    static const auto real = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
    std::string name = node != nullptr ? node : "";
    fake_resolver& fake = resolver();
    {
        std::unique_lock lock{fake.mutex};
        ++fake.calls[name];
        pthread_sigmask(SIG_SETMASK, nullptr, &fake.mask);
        fake.changed.notify_all();
        fake.changed.wait(lock, [&] { return !fake.hanging.contains(name); });
        if (const auto failed = fake.failing.find(name); failed != fake.failing.end())
        {
            errno = EMFILE;
            return failed->second;
        }
        if (const auto known = fake.addresses.find(name); known != fake.addresses.end())
        {
            *found = list_of(known->second);
            return 0;
        }
        if (const auto other = fake.leads_to.find(name); other != fake.leads_to.end())
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

/// Returns an address of the loopback interface: 127.0.0.`last` for numbers below 256.
sockaddr_storage four(std::uint32_t last)
{
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(0x7f000000U + last);
    sockaddr_storage stored{};
    std::memcpy(&stored, &address, sizeof address);
    return stored;
}

/// A name that resolves to 127.0.0.1, and hangs while this object exists. Each name is unique, because the thread of an
/// earlier one may still be running.
class hanging_name
{
  public:
    hanging_name()
    {
        static int count = 0;
        name_ = "hung" + std::to_string(++count) + ".invalid";
        const std::lock_guard lock{resolver().mutex};
        resolver().hanging.insert(name_);
        resolver().leads_to[name_] = "127.0.0.1";
        resolver().calls[name_] = 0;
    }
    hanging_name(const hanging_name&) = delete;
    hanging_name& operator=(const hanging_name&) = delete;
    ~hanging_name() { release(); }

    const std::string& name() const { return name_; }
    int calls() const
    {
        const std::lock_guard lock{resolver().mutex};
        return resolver().calls[name_];
    }
    void wait_for_call(int calls = 1)
    {
        std::unique_lock lock{resolver().mutex};
        REQUIRE(
            resolver().changed.wait_for(lock, patience, [&] { return resolver().calls[name_] >= calls; }));
    }
    void release()
    {
        const std::lock_guard lock{resolver().mutex};
        resolver().hanging.erase(name_);
        resolver().changed.notify_all();
    }

  private:
    std::string name_;
};

/// A port on which connecting hangs: the queue of its listener is full, and no connection is accepted.
class hanging_port
{
  public:
    hanging_port()
    {
        ::listen(listening_.socket.get(), 0);
        // Fills the queue with connections, whatever length the kernel makes of 0.
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
            // On loopback, a connect() that can succeed has done so when it returns.
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

    io::asio_environment outside;
    runtime::scheduler strand;
    tcp::socket socket;
    std::optional<io::tcp_connector> connector;
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

    io::tcp_connector& connector() { return *here_->connector; }
    tcp::socket& socket() { return here_->socket; }
    auto done()
    {
        return [this](error_code ended) { result_ = ended; };
    }
    void begin(std::vector<tcp::endpoint> addresses, clock::duration time)
    {
        here_->strand.run_step(
            [&] { connector().connect_to(std::move(addresses), clock::now() + time, done()); });
    }
    void begin_with_name(clock::duration time)
    {
        here_->strand.run_step([&] { connector().connect(clock::now() + time, done()); });
    }
    void close()
    {
        here_->strand.run_step(
            [&]
            {
                connector().close();
                error_code ignored;
                socket().close(ignored);
            });
    }
    /// Returns the result of the attempt; fails the test if there is none in time.
    error_code result()
    {
        REQUIRE(ends());
        return *result_;
    }
    bool ends()
    {
        const clock::time_point end = clock::now() + patience;
        while (!result_ && clock::now() < end && io_.run_one_for(patience) != 0)
        {
        }
        return result_.has_value();
    }
    bool ended() const { return result_.has_value(); }
    asio::io_context& io() { return io_; }

  private:
    asio::io_context io_;
    std::shared_ptr<connecting_host> here_;
    std::optional<error_code> result_;
};

/// Joins a lookup, or begins one as soon as there is room: threads of earlier tests may still be running.
std::shared_ptr<io::name_lookup>
look_up_when_possible(const std::string& name, std::chrono::steady_clock::time_point when)
{
    while (true)
    {
        error_code why;
        if (auto lookup = io::name_lookup::join(name, why, when))
        {
            return lookup;
        }
        REQUIRE(why == asio::error::try_again);
    }
}

} // namespace

TEST_CASE("an address that refuses is followed by the next")
{
    const listener good = listen_on_loopback();
    attempt one;
    one.begin({endpoint_of(free_port()), endpoint_of(good.port)}, 20s);
    CHECK_FALSE(one.result());
    CHECK(one.socket().remote_endpoint() == endpoint_of(good.port));
}

TEST_CASE("the connection to an address outlasts the share of the time that the address had")
{
    const listener good = listen_on_loopback();
    bool connected = false;
    // A share that is too short for a slow machine is doubled.
    for (clock::duration whole = 200ms; !connected && whole < patience; whole *= 2)
    {
        attempt one;
        one.begin({endpoint_of(good.port), endpoint_of(free_port())}, whole);
        connected = !one.result();
        asio::steady_timer later{one.io(), whole};
        later.async_wait([&one](error_code) { one.io().stop(); });
        one.io().restart();
        one.io().run();
        CHECK((one.socket().is_open() || !connected));
    }
    CHECK(connected);
}

TEST_CASE("an address that hangs uses up its share of the time only")
{
    const hanging_port hung;
    const listener good = listen_on_loopback();
    attempt one;
    const clock::time_point began = clock::now();
    // The first of sixteen has a sixteenth of the time.
    constexpr auto whole = 16s;
    std::vector<asio::ip::tcp::endpoint> all(16, endpoint_of(free_port()));
    all[0] = hung.endpoint();
    all[1] = endpoint_of(good.port);
    one.begin(all, whole);
    CHECK_FALSE(one.result());
    CHECK(one.socket().remote_endpoint() == endpoint_of(good.port));
    CHECK(clock::now() - began >= whole / 16);
}

TEST_CASE("if no address answers, the error of the last one is returned")
{
    attempt one;
    SECTION("after one that refused")
    {
        one.begin({endpoint_of(free_port()), endpoint_of(free_port())}, 20s);
    }
    SECTION("after one that hung")
    {
        const hanging_port hung;
        one.begin({hung.endpoint(), endpoint_of(free_port())}, 500ms);
        REQUIRE(one.ends());
    }
    CHECK(one.result() == asio::error::connection_refused);
}

TEST_CASE("closing an attempt ends it with operation_aborted, and no further address is tried")
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

TEST_CASE("a name is resolved again at each connect, so that a new address is found")
{
    const listener first = listen_on_loopback();
    const std::string name = "master.moving.invalid";
    let_name_lead_to(name, "127.0.0.1");
    attempt before{name, first.port};
    before.begin_with_name(20s);
    CHECK_FALSE(before.result());
    CHECK(before.socket().remote_endpoint().address() == asio::ip::make_address("127.0.0.1"));

    // All of 127.0.0.0/8 is local, but the listener has only one address.
    let_name_lead_to(name, "127.0.0.2");
    const auto until = clock::now() + patience;
    error_code result; // That of a slow lookup is kept for a while.
    while (!result && clock::now() < until)
    {
        attempt after{name, first.port};
        after.begin_with_name(20s);
        result = after.result();
        CHECK(after.connector().complaint().empty()); // The name was resolved.
    }
    CHECK(result == asio::error::connection_refused);
}

TEST_CASE("a name without an address ends with the resolver's error")
{
    // RFC 6761 reserves this top-level domain: the name doesn't exist.
    attempt one{"no-such-host.invalid", 6379};
    one.begin_with_name(20s);
    CHECK(one.result());
}

TEST_CASE("each failure of the resolver has its own error", "[resolver]")
{
    const std::vector<std::pair<int, error_code>> all{
        {EAI_AGAIN, asio::error::host_not_found_try_again},
        {EAI_FAIL, asio::error::no_recovery},
        {EAI_MEMORY, asio::error::no_memory},
        {EAI_SYSTEM, {EMFILE, boost::system::system_category()}},
        {EAI_NONAME, asio::error::host_not_found},
        {EAI_FAMILY, asio::error::host_not_found}};
    for (const auto& [failed, expected] : all)
    {
        CAPTURE(failed);
        const std::string name = "fails" + std::to_string(failed) + ".invalid";
        {
            const std::lock_guard lock{resolver().mutex};
            resolver().failing[name] = failed;
        }
        attempt one{name, 6379};
        one.begin_with_name(20s);
        CHECK(one.result() == expected);
        CHECK(one.connector().complaint().empty());
    }
}

TEST_CASE("all addresses of a name are tried in their order, of both families", "[resolver]")
{
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr.s6_addr[0] = 0xfe;
    address.sin6_addr.s6_addr[1] = 0x80;
    address.sin6_addr.s6_addr[15] = 7;
    address.sin6_scope_id = 3;
    sockaddr_storage six{};
    std::memcpy(&six, &address, sizeof address);
    sockaddr_storage other{};
    other.ss_family = AF_UNIX;
    std::vector<sockaddr_storage> many(io::name_lookup::max_addresses + 5, four(9));
    {
        const std::lock_guard lock{resolver().mutex};
        resolver().addresses["several.invalid"] = {four(3), other, six, four(2)};
        resolver().addresses["none.invalid"] = {other};
        resolver().addresses["many.invalid"] = many;
    }
    const auto found = [](const std::string& name)
    {
        error_code why;
        const std::shared_ptr<io::name_lookup> lookup = io::name_lookup::join(name, why);
        REQUIRE_FALSE(why);
        const unique_fd ready{lookup->watch()};
        REQUIRE(wait_for(ready.get(), POLLIN, std::chrono::steady_clock::now() + patience));
        return lookup->get();
    };
    const io::name_lookup::result several = found("several.invalid");
    CHECK_FALSE(several.error);
    CHECK(
        several.addresses == std::vector<asio::ip::address>{
                                 asio::ip::make_address("127.0.0.3"), asio::ip::make_address("fe80::7%3"),
                                 asio::ip::make_address("127.0.0.2")});
    CHECK(found("none.invalid").error == asio::error::host_not_found);
    CHECK(found("many.invalid").addresses.size() == io::name_lookup::max_addresses);

    // The last of three is the one that listens.
    const listener good = listen_on_loopback();
    {
        const std::lock_guard lock{resolver().mutex};
        resolver().addresses["third.invalid"] = {four(3), four(2), four(1)};
    }
    attempt third{"third.invalid", good.port};
    third.begin_with_name(20s);
    CHECK_FALSE(third.result());
    CHECK(third.socket().remote_endpoint() == endpoint_of(good.port));
}

TEST_CASE("a lookup has its result before it is announced", "[resolver]")
{
    hanging_name slow;
    error_code why;
    const std::shared_ptr<io::name_lookup> lookup = io::name_lookup::join(slow.name(), why);
    REQUIRE_FALSE(why);
    const unique_fd announced{lookup->watch()};
    // The counter of the event is full, so the announcement waits until it is read.
    REQUIRE(::fcntl(announced.get(), F_SETFL, 0) == 0);
    const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() - 1;
    REQUIRE(::write(announced.get(), &most, sizeof most) == sizeof most);
    slow.release();
    const auto end = std::chrono::steady_clock::now() + patience;
    while (lookup->get().error && std::chrono::steady_clock::now() < end)
    {
        std::this_thread::yield();
    }
    CHECK(lookup->get().addresses.size() == 1);
    std::uint64_t read = 0;
    CHECK(::read(announced.get(), &read, sizeof read) == sizeof read);
}

TEST_CASE("the next address of a name is tried after one that accepts, and isn't the server", "[resolver]")
{
    {
        const std::lock_guard lock{resolver().mutex};
        resolver().addresses["two.invalid"] = {four(2), four(1)};
    }
    asio::io_context io;
    tcp::acceptor right{io, {asio::ip::make_address("127.0.0.1"), 0}};
    tcp::acceptor wrong{io, {asio::ip::make_address("127.0.0.2"), right.local_endpoint().port()}};
    const bool closes = GENERATE(true, false); // Or it is silent.
    CAPTURE(closes);
    std::vector<tcp::socket> silent;
    std::function<void()> accept_wrong = [&]
    {
        wrong.async_accept(
            [&](error_code, tcp::socket accepted)
            {
                if (!closes)
                {
                    silent.push_back(std::move(accepted));
                }
                accept_wrong();
            });
    };
    accept_wrong();
    bool found = false;
    right.async_accept([&](error_code why, const tcp::socket&) { found = !why; });
    const std::string scheme = GENERATE("redis", "rediss");
    CAPTURE(scheme);
    const std::string url = scheme + "://two.invalid:" + std::to_string(right.local_endpoint().port());
    const lock_manager locks{
        io, {.masters = {master{url}}, .connect_timeout = 200ms, .reconnect_delay_max = 10ms}};
    const clock::time_point end = clock::now() + patience;
    while (!found && clock::now() < end && io.run_one_for(patience) != 0)
    {
    }
    CHECK(found);
}

TEST_CASE("a thread that is busy while a name is being resolved loses no address", "[resolver]")
{
    const listener good = listen_on_loopback();
    {
        const std::lock_guard lock{resolver().mutex};
        resolver().addresses["busy.invalid"] = {four(1), four(2)};
    }
    attempt one{"busy.invalid", good.port};
    constexpr auto whole = 500ms;
    one.begin_with_name(whole);
    {
        std::unique_lock lock{resolver().mutex};
        REQUIRE(
            resolver().changed.wait_for(lock, patience, [] { return resolver().calls["busy.invalid"] > 0; }));
    }
    std::this_thread::sleep_for(whole); // The addresses come meanwhile, and nobody takes them.
    CHECK_FALSE(one.result());
    CHECK(one.socket().remote_endpoint() == endpoint_of(good.port));
}

TEST_CASE("connecting by name leaves no descriptor open, however it ends", "[resolver][sockets]")
{
    const listener good = listen_on_loopback();
    let_name_lead_to("healthy.invalid", "127.0.0.1");
    const auto open_descriptors = []
    {
        const auto begin = std::filesystem::directory_iterator{"/proc/self/fd"};
        return std::distance(begin, std::filesystem::directory_iterator{});
    };
    const auto connect_once = [&](const std::string& name, int port)
    {
        attempt one{name, port};
        one.begin_with_name(20s);
        one.result();
    };
    const int refusing = free_port();
    const auto connect_all = [&]
    {
        connect_once("healthy.invalid", good.port);
        connect_once("healthy.invalid", refusing);
        connect_once("no-such-host.invalid", good.port);
        connect_once("127.0.0.1", good.port);
        connect_once("127.0.0.1", refusing);
        attempt closed{"healthy.invalid", good.port};
        closed.begin_with_name(20s);
        closed.close();
        closed.result();
    };
    connect_all();
    const auto before = open_descriptors();
    constexpr int times = 10;
    for (int count = 0; count < times; ++count)
    {
        connect_all();
    }
    // The threads of the last lookups, and of those of earlier tests, may still own their descriptors.
    const clock::time_point end = clock::now() + patience;
    while (open_descriptors() >= before + times && clock::now() < end)
    {
        std::this_thread::yield();
    }
    CHECK(open_descriptors() < before + times);
}

TEST_CASE("a name whose lookup had no thread is looked up again", "[resolver]")
{
    const listener good = listen_on_loopback();
    const std::string name = "master.without-a-thread.invalid";
    let_name_lead_to(name, "127.0.0.1");
    {
        const no_more_threads at_first;
        attempt one{name, good.port};
        one.begin_with_name(20s);
        CHECK(one.result() == asio::error::no_buffer_space);
    }
    attempt again{name, good.port};
    again.begin_with_name(20s);
    CHECK_FALSE(again.result());
}

TEST_CASE("a name that hangs delays no other", "[resolver][threads][scenario-91]")
{
    const listener good = listen_on_loopback();
    const hanging_name hung;
    attempt waiting{hung.name(), good.port};
    waiting.begin_with_name(60s);
    let_name_lead_to("healthy.invalid", "127.0.0.1");
    attempt other{"healthy.invalid", good.port};
    other.begin_with_name(60s);
    CHECK_FALSE(other.result());
    CHECK_FALSE(waiting.ended());
    CHECK(waiting.connector().complaint() == "its name hasn't been resolved");
}

TEST_CASE(
    "the application resolves names while a master's name hangs in the same io_context",
    "[resolver][threads]")
{
    const listener good = listen_on_loopback();
    const hanging_name hung;
    attempt waiting{hung.name(), good.port};
    waiting.begin_with_name(60s);
    let_name_lead_to("healthy.invalid", "127.0.0.1");
    tcp::resolver own{waiting.io()};
    std::optional<error_code> resolved;
    own.async_resolve("healthy.invalid", "1", [&](error_code result, const auto&) { resolved = result; });
    while (!resolved && waiting.io().run_one_for(patience) != 0)
    {
    }
    CHECK(resolved == error_code{});
}

TEST_CASE("a name that hangs is looked up once, and all attempts share the answer", "[resolver][threads]")
{
    const listener good = listen_on_loopback();
    hanging_name hung;
    {
        attempt forgotten{hung.name(), good.port};
        forgotten.begin_with_name(60s);
        forgotten.close();
        CHECK(forgotten.result() == asio::error::operation_aborted);
    }
    attempt first{hung.name(), good.port};
    attempt second{hung.name(), good.port};
    first.begin_with_name(60s);
    second.begin_with_name(60s);
    hung.wait_for_call();
    CHECK(hung.calls() == 1);
    hung.release();
    CHECK_FALSE(first.result());
    CHECK_FALSE(second.result());
    CHECK(hung.calls() == 1);
    // A lookup that has ended isn't joined, unless this test was so slow that its result is kept for a while.
    const auto until = clock::now() + patience;
    while (hung.calls() == 1 && clock::now() < until)
    {
        attempt later{hung.name(), good.port};
        later.begin_with_name(60s);
        CHECK_FALSE(later.result());
    }
    CHECK(hung.calls() == 2);
}

TEST_CASE("a lookup that hangs can be abandoned at once, and its io_context destroyed", "[resolver][threads]")
{
    hanging_name hung;
    {
        attempt closed{hung.name(), 6379};
        closed.begin_with_name(60s);
        hung.wait_for_call();
        closed.close();
        CHECK(closed.result() == asio::error::operation_aborted);
        // The lookup doesn't keep run() from returning.
        CHECK(closed.io().run_for(patience) == 0);
        CHECK(closed.io().stopped());
    }
    {
        attempt destroyed{hung.name(), 6379};
        destroyed.begin_with_name(60s);
    }
    // The answer arrives when its receiver no longer exists.
    hung.release();
}

TEST_CASE("run() doesn't return while a name is being resolved", "[resolver][threads]")
{
    const listener good = listen_on_loopback();
    hanging_name hung;
    attempt one{hung.name(), good.port};
    one.begin_with_name(60s);
    hung.wait_for_call();
    one.io().run_for(10ms);
    CHECK_FALSE(one.io().stopped());
    hung.release();
    CHECK_FALSE(one.result());
}

TEST_CASE("a resolver's thread handles no signal of the application", "[resolver]")
{
    const listener good = listen_on_loopback();
    let_name_lead_to("healthy.invalid", "127.0.0.1");
    attempt one{"healthy.invalid", good.port};
    one.begin_with_name(60s);
    CHECK_FALSE(one.result());
    const std::lock_guard lock{resolver().mutex};
    for (const int signal : {SIGTERM, SIGINT, SIGCHLD, SIGALRM, SIGUSR1})
    {
        CHECK(sigismember(&resolver().mask, signal) == 1);
    }
    sigset_t own{};
    pthread_sigmask(SIG_SETMASK, nullptr, &own);
    CHECK(sigismember(&own, SIGTERM) == 0);
}

TEST_CASE("the number of names that hang is limited, and a further one is refused", "[resolver][threads]")
{
    std::vector<std::unique_ptr<hanging_name>> hung;
    std::vector<std::unique_ptr<attempt>> waiting;
    for (std::size_t count = 0; count < io::name_lookup::max_in_progress; ++count)
    {
        hung.push_back(std::make_unique<hanging_name>());
        // Threads of earlier tests may still be running: until they have ended, the limit is reached earlier.
        std::unique_ptr<attempt> one;
        do
        {
            one = std::make_unique<attempt>(hung.back()->name(), 6379);
            one->begin_with_name(60s);
            one->io().poll();
        } while (one->ended());
        waiting.push_back(std::move(one));
    }
    attempt refused{"one-more.invalid", 6379};
    refused.begin_with_name(60s);
    CHECK(refused.result() == asio::error::try_again);
    CHECK(refused.connector().complaint() == "too many names are being resolved");
    // An address needs no thread.
    const listener good = listen_on_loopback();
    attempt numeric{"127.0.0.1", good.port};
    numeric.begin_with_name(60s);
    CHECK_FALSE(numeric.result());
    for (std::size_t count = 0; count < hung.size(); ++count)
    {
        hung[count]->wait_for_call();
        hung[count]->release();
        waiting[count]->result();
    }
    let_name_lead_to("one-more.invalid", "127.0.0.1");
    attempt accepted{"one-more.invalid", good.port};
    accepted.begin_with_name(60s);
    CHECK_FALSE(accepted.result());
}

TEST_CASE("a lookup that may hang for ever is followed by others", "[resolver][threads][scenario-115]")
{
    const listener good = listen_on_loopback();
    hanging_name hung;
    const auto begin = std::chrono::steady_clock::now() - 150s;
    const auto join = [&](std::chrono::seconds after)
    { return look_up_when_possible(hung.name(), begin + after); };
    const auto first = join(0s);
    CHECK(join(29s) == first);
    const auto second = join(30s);
    CHECK(second != first);
    CHECK(join(59s) == second);
    const auto third = join(60s);
    CHECK(third != second);
    CHECK(join(119s) == third);
    const auto fourth = join(120s);
    CHECK(fourth != third);
    attempt one{hung.name(), good.port};
    one.begin_with_name(60s);
    hung.wait_for_call(4);
    hung.release();
    CHECK_FALSE(one.result());
    CHECK(hung.calls() == 4);
}

TEST_CASE("names that may hang for ever don't use up the lookups", "[resolver][threads][scenario-115]")
{
    std::vector<std::unique_ptr<hanging_name>> hung;
    const auto long_ago = std::chrono::steady_clock::now() - io::name_lookup::patience;
    for (std::size_t count = 0; count < io::name_lookup::max_in_progress; ++count)
    {
        hung.push_back(std::make_unique<hanging_name>());
        look_up_when_possible(hung.back()->name(), long_ago);
    }
    const listener good = listen_on_loopback();
    let_name_lead_to("healthy.invalid", "127.0.0.1");
    attempt one{"healthy.invalid", good.port};
    one.begin_with_name(60s);
    CHECK_FALSE(one.result());
    for (const auto& each : hung)
    {
        each->wait_for_call();
    }
}

TEST_CASE(
    "an attempt uses what a slow lookup has found for an earlier one", "[resolver][threads][scenario-115]")
{
    const listener good = listen_on_loopback();
    hanging_name hung;
    const auto slow = std::chrono::steady_clock::now() - io::name_lookup::slow;
    const auto given_up = look_up_when_possible(hung.name(), slow);
    const unique_fd done{given_up->watch()};
    hung.release();
    pollfd ended{done.get(), POLLIN, 0};
    REQUIRE(::poll(&ended, 1, std::chrono::milliseconds{patience}.count()) == 1);
    const auto found_at = std::chrono::steady_clock::now();
    CHECK(look_up_when_possible(hung.name(), found_at) == given_up);
    attempt one{hung.name(), good.port};
    one.begin_with_name(60s);
    CHECK_FALSE(one.result());
    CHECK(look_up_when_possible(hung.name(), found_at + io::name_lookup::kept_for + 1ms) != given_up);

    hanging_name fails;
    {
        const std::lock_guard lock{resolver().mutex};
        resolver().failing[fails.name()] = EAI_AGAIN;
    }
    const auto failed = look_up_when_possible(fails.name(), slow);
    const unique_fd failed_done{failed->watch()};
    fails.release();
    ended.fd = failed_done.get();
    REQUIRE(::poll(&ended, 1, std::chrono::milliseconds{patience}.count()) == 1);
    CHECK(look_up_when_possible(fails.name(), std::chrono::steady_clock::now()) != failed);
}

TEST_CASE("a forked process repeats a lookup that hangs in its parent", "[resolver]")
{
    const listener good = listen_on_loopback();
    hanging_name hung;
    attempt in_parent{hung.name(), good.port};
    in_parent.begin_with_name(60s);
    hung.wait_for_call();
    const auto connect_in_child = [&]
    {
        hung.release();
        attempt in_child{hung.name(), good.port};
        in_child.begin_with_name(60s);
        return std::string{in_child.ends() && !in_child.result() ? "connected" : "failed"};
    };
    unique_fd result;
    const child_process child{connect_in_child, result};
    CHECK(read_to_end(result) == "connected");
    CHECK_FALSE(in_parent.ended());
    hung.release();
    CHECK_FALSE(in_parent.result());
}

} // namespace redlock::test
