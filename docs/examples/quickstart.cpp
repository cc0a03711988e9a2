// SPDX-License-Identifier: BSL-1.0
// Five masters; a lock is acquired, refused, kept while masters die and come back, extended, and released.
#include "throwaway_servers.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <exception>
#include <iostream>
#include <sstream>
#include <string_view>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

/// Prints a step of the story if it is true, and throws otherwise.
void expect(bool as_told, const std::string& what)
{
    if (!as_told)
    {
        throw std::runtime_error{"this was expected, but isn't so: " + what};
    }
}

/// A process that wants locks. Its manager has its own connections, and reports which masters they reach.
class client
{
    std::vector<bool> up_;
    asio::steady_timer changed_;

  public:
    client(asio::io_context& io, const std::vector<throwaway_server>& servers)
        : up_(servers.size()), changed_{io}, locks{io, options(servers)}
    {
    }

    redlock::lock_manager locks;

    asio::awaitable<void> reaches(std::ptrdiff_t masters)
    {
        changed_.expires_after(30s);
        while (std::count(up_.begin(), up_.end(), true) != masters)
        {
            const auto outcome = co_await changed_.async_wait(asio::as_tuple(asio::deferred));
            expect(std::get<0>(outcome) == asio::error::operation_aborted, "the masters are there in 30 s");
        }
    }

  private:
    redlock::config options(const std::vector<throwaway_server>& servers)
    {
        redlock::config chosen;
        chosen.masters = masters_of(servers);
        chosen.node_timeout = 500ms; // Ten times the default: this machine may be slow.
        chosen.observer.on_event = [this](const redlock::event& what) { on_event(what); };
        return chosen;
    }

    void on_event(const redlock::event& what)
    {
        if (const auto* up = std::get_if<redlock::master_up>(&what))
        {
            up_[up->index] = true;
        }
        else if (const auto* down = std::get_if<redlock::master_down>(&what))
        {
            up_[down->index] = false;
        }
        changed_.cancel();
    }
};

void step(std::string_view text)
{
    static int number = 0;
    std::cout << '\n' << ++number << ". " << text << '\n' << std::flush;
}

void show(const redlock::report& votes)
{
    std::istringstream lines{votes.to_string()};
    for (std::string line; std::getline(lines, line);)
    {
        std::cout << "   | " << line << '\n';
    }
}

/// Makes one round, which has to be refused.
asio::awaitable<void> expect_refusal(client& asking, std::string resource, redlock::errc expected)
{
    redlock::report votes;
    const auto once = asio::as_tuple(asio::deferred);
    const auto outcome = co_await asking.locks.async_try_acquire(resource, 10s, votes, once);
    show(votes);
    expect(std::get<0>(outcome) == expected, make_error_code(expected).message());
}

asio::awaitable<void> expect_success(client& asking, std::string resource)
{
    redlock::report votes;
    redlock::lease lease = co_await asking.locks.async_acquire(resource, 10s, votes);
    show(votes);
    co_await lease.async_release();
    std::cout << "   and released.\n";
}

asio::awaitable<void> tell(client& alice, client& bob, std::vector<throwaway_server>& servers)
{
    redlock::report votes;
    co_await alice.reaches(5);
    co_await bob.reaches(5);

    step("Alice acquires the lock on \"report\". Three votes of five are enough; she doesn't wait for the "
         "rest.");
    redlock::lease lease = co_await alice.locks.async_acquire("report", 60s, votes);
    show(votes);

    step("Bob, who has his own connections, is refused, and sees the vote of each master.");
    co_await expect_refusal(bob, "report", redlock::errc::held_by_other);

    step("Two of the five masters are killed. Bob can still acquire another lock.");
    servers[0].kill();
    servers[1].kill();
    co_await bob.reaches(3);
    co_await expect_success(bob, "invoice:42");

    step("A third one is killed. Two of five are no majority, so no lock can be acquired.");
    servers[2].kill();
    co_await alice.reaches(2);
    co_await bob.reaches(2);
    co_await expect_refusal(bob, "invoice:42", redlock::errc::no_quorum);

    step("The three are restarted on their ports, with their data, and the managers reconnect. It works "
         "again.");
    for (std::size_t index : {0U, 1U, 2U})
    {
        servers[index].restart();
    }
    co_await alice.reaches(5);
    co_await bob.reaches(5);
    co_await expect_success(bob, "invoice:42");

    step("Alice's lease is still valid. She extends it by another minute,");
    co_await lease.async_extend(60s, votes);
    show(votes);
    expect(lease.valid(), "the lease is valid");

    step("and releases it. Now Bob acquires it.");
    co_await lease.async_release(votes);
    show(votes);
    co_await expect_success(bob, "report");

    co_await alice.locks.async_shutdown();
    co_await bob.locks.async_shutdown();
}

void rethrow(std::exception_ptr failure)
{
    if (failure)
    {
        std::rethrow_exception(failure);
    }
}

int main(int argc, char** argv)
{
    if (argc > 1)
    {
        std::cerr << argv[0] << " takes no arguments: it starts five servers and stops them again\n";
        return 64;
    }
    try
    {
        step("Five masters start. They are independent of each other.");
        std::vector<throwaway_server> servers(5);
        for (const throwaway_server& server : servers)
        {
            std::cout << "   | " << server.url() << '\n';
        }
        asio::io_context io;
        client alice{io, servers};
        client bob{io, servers};
        asio::co_spawn(io, tell(alice, bob, servers), rethrow);
        io.run();
        std::cout << "\nThis is the end. The masters are stopped. Next: docs/tutorial.md\n";
    }
    catch (const std::exception& failure)
    {
        std::cout << std::flush;
        std::cerr << "\nquickstart: " << failure.what() << '\n';
        return 1;
    }
}
