// SPDX-License-Identifier: BSL-1.0
// A server that works under a lock as long as its client is connected: a client that leaves neither waits for the lock
// nor keeps it. The clients of the example are in the same program.
#include "throwaway_servers.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;

void rethrow(std::exception_ptr failure)
{
    if (failure)
    {
        std::rethrow_exception(failure);
    }
}

/// Why a request has ended, for a log.
std::string describe(std::exception_ptr failure)
{
    try
    {
        rethrow(failure);
        return "done";
    }
    catch (const redlock::lock_error& error)
    {
        return "no lock: " + std::string{redlock::error_name(error.code())};
    }
    catch (const redlock::system_error& error)
    {
        return error.code().message();
    }
    catch (const std::exception& error)
    {
        return error.what();
    }
}

/// Serves clients that send one line, the name of a resource, and nothing more.
class server
{
  public:
    server(asio::io_context& io, redlock::config options)
        : locks{io, std::move(options)}, acceptor_{io, {asio::ip::address_v4::loopback(), 0}}
    {
    }

    redlock::lock_manager locks;
    std::string last_result{};

    tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }

    asio::awaitable<void> accept(int clients)
    {
        const auto executor = co_await asio::this_coro::executor;
        for (int accepted = 0; accepted < clients; ++accepted)
        {
            tcp::socket socket = co_await acceptor_.async_accept(asio::use_awaitable);
            auto on_end = [this](std::exception_ptr failure)
            {
                if (failure)
                {
                    last_result = describe(failure); // Of one client. The others are served.
                }
            };
            asio::co_spawn(executor, serve(std::move(socket)), on_end);
        }
    }

  private:
    asio::awaitable<void> serve(tcp::socket socket)
    {
        std::string resource;
        co_await asio::async_read_until(
            socket, asio::dynamic_buffer(resource, 1024), '\n', asio::use_awaitable);
        resource.pop_back();
        if (resource.find_first_of("\r\n") != resource.npos)
        {
            // Another resource, which wouldn't exclude that of the line.
            throw std::invalid_argument{"not one line that ends with a newline"};
        }

        const redlock::keep_options options{.ttl = 10s, .max_hold = 5min, .wait = 30s};
        const auto body = [&socket] { return work(socket); };
        char unexpected{};
        auto both = asio::experimental::make_parallel_group(
            locks.async_with_lock(resource, options, body, asio::deferred),
            socket.async_read_some(asio::buffer(&unexpected, 1), asio::deferred));
        const auto [order, failure, closed, size] =
            co_await both.async_wait(asio::experimental::wait_for_one{}, asio::use_awaitable);
        // Both have ended: the body doesn't run any more, and the lock is released.
        last_result = order[0] == 1 ? "the client has left" : describe(failure);
    }

    /// Is cancelled where it awaits.
    static asio::awaitable<void> work(tcp::socket& socket)
    {
        co_await asio::async_write(socket, asio::buffer(std::string_view{"locked\n"}), asio::use_awaitable);
        asio::steady_timer step{co_await asio::this_coro::executor, 1h};
        co_await step.async_wait(asio::use_awaitable);
    }

    tcp::acceptor acceptor_;
};

void expect(bool as_it_is, const char* what)
{
    if (!as_it_is)
    {
        throw std::runtime_error{what};
    }
    std::cout << what << '\n';
}

asio::awaitable<tcp::socket> ask_for(std::string_view request, const server& here)
{
    tcp::socket socket{co_await asio::this_coro::executor};
    co_await socket.async_connect(here.endpoint(), asio::use_awaitable);
    co_await asio::async_write(socket, asio::buffer(request), asio::use_awaitable);
    co_return socket;
}

asio::awaitable<void> read_line(tcp::socket& socket)
{
    std::string line;
    co_await asio::async_read_until(socket, asio::dynamic_buffer(line, 64), '\n', asio::use_awaitable);
}

/// Waits until the server has ended a request, and checks why.
asio::awaitable<void> end_of_request(server& here, std::string_view why, const char* what)
{
    asio::steady_timer pause{co_await asio::this_coro::executor};
    while (here.last_result.empty())
    {
        pause.expires_after(5ms);
        co_await pause.async_wait(asio::use_awaitable);
    }
    expect(here.last_result == why, what);
    here.last_result.clear();
}

asio::awaitable<void> be_clients(server& here, std::vector<throwaway_server>& masters)
{
    constexpr const char* left = "the client has left";
    constexpr const char* ended = "the server has ended the request of a client that left";
    tcp::socket silent = co_await ask_for("", here);
    silent.close();
    co_await end_of_request(here, "End of file", "a client that says nothing ends no other one");
    tcp::socket talkative = co_await ask_for("report\nreport\n", here);
    co_await end_of_request(
        here, "not one line that ends with a newline", "a name that isn't one line is refused");

    tcp::socket first = co_await ask_for("report\n", here);
    co_await read_line(first);
    tcp::socket second = co_await ask_for("report\n", here);
    second.close();
    co_await end_of_request(here, left, ended);

    tcp::socket third = co_await ask_for("report\n", here);
    first.close();
    co_await end_of_request(here, left, ended);
    co_await read_line(third);
    expect(true, "the lock of the first client was released, and the third one has got it");

    // The release can't be confirmed, which is no failure of the request.
    masters[0].hang();
    masters[1].hang();
    third.close();
    co_await end_of_request(here, left, ended);
    co_await here.locks.async_shutdown(asio::as_tuple(asio::deferred));
}

int main()
{
    try
    {
        std::vector<throwaway_server> masters(3);
        asio::io_context io;
        redlock::config options;
        options.masters = masters_of(masters);
        options.node_timeout = 500ms; // Ten times the default: this machine may be slow.
        server here{io, options};
        asio::co_spawn(io, here.accept(5), rethrow);
        asio::co_spawn(io, be_clients(here, masters), rethrow);
        io.run();
    }
    catch (const std::exception& failure)
    {
        std::cerr << "disconnect: this was expected, but isn't so: " << failure.what() << '\n';
        return 1;
    }
}
