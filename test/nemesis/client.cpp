// SPDX-License-Identifier: BSL-1.0
// A process that acquires, holds, extends, keeps, releases and drops, and writes down what it believes.
//
// usage: nemesis_client SEED CLAIM_MS RESOURCES plain URL...
//        nemesis_client SEED CLAIM_MS RESOURCES guarded SOCKET SCRIPT URL...
// In guarded mode, it shows its tokens to the resource at SOCKET, and also writes there when it is too late.
// Each line of its output is a belief (beliefs.hpp), written before it acts on it. SIGTERM ends it in order.
#include "resource.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace asio = boost::asio;

namespace
{

using namespace std::chrono_literals;
using redlock::nemesis::resource_access;
using redlock::nemesis::visit;
using std::chrono::milliseconds;

constexpr int workers = 4;

/// One line in one write: what is said stays said when this process is killed.
template <class... Arguments>
void say(fmt::format_string<Arguments...> words, Arguments&&... arguments)
{
    const std::string line = fmt::format(words, std::forward<Arguments>(arguments)...) + "\n";
    if (::write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    {
        std::abort();
    }
}

std::int64_t count(redlock::clock::time_point at)
{
    return at.time_since_epoch().count();
}

std::int64_t now()
{
    return count(redlock::clock::now());
}

class client
{
  public:
    client(
        asio::io_context& io, redlock::config options, std::uint64_t seed, milliseconds claim,
        std::size_t resources, std::optional<resource_access> access)
        : io_{io},
          locks_{io, std::move(options)},
          numbers_{seed},
          claim_{claim},
          resources_{resources},
          access_{std::move(access)}
    {
    }

    /// One of those who work at the same time. The last to end ends all.
    asio::awaitable<void> work()
    {
        while (!stopping_)
        {
            const bool keeps = below(3) == 0;
            const std::string resource = "stock" + std::to_string(below(resources_));
            std::optional<visit> visited;
            try
            {
                if (keeps)
                {
                    co_await keep(resource, visited);
                }
                else
                {
                    co_await hold(resource, visited);
                }
            }
            catch (const redlock::system_error&)
            {
                // Another client has it, masters are away, or it was lost: on to the next.
            }
            co_await pause(milliseconds{below(20)});
            if (visited && below(4) == 0)
            {
                co_await pause(milliseconds{below(100)});
                visited->write(true); // On purpose.
            }
        }
        if (++ended_ == workers)
        {
            co_await locks_.async_shutdown(asio::use_awaitable);
            say("done {}", now());
            io_.stop();
        }
    }

    void stop() { stopping_ = true; }

  private:
    /// Reports a lease before it is destroyed.
    struct end_of_work
    {
        client& of;
        redlock::lease& held;
        std::uint64_t id;

        ~end_of_work() { of.say_end(held, id); }
    };

    std::size_t below(std::size_t bound) { return numbers_() % bound; }

    asio::awaitable<void> pause(milliseconds length)
    {
        asio::steady_timer timer{io_, length};
        co_await timer.async_wait(asio::use_awaitable);
    }

    /// Until when a lease is believed to be valid.
    std::int64_t until(const redlock::lease& held) const { return count(held.valid_until() + claim_); }

    void say_begin(
        const char* how, const redlock::lease& held, std::uint64_t id, const std::string& resource,
        std::int64_t began) const
    {
        say("{} {} {} {} {} {} {} {}", how, id, now(), until(held), resource, held.owner_id(), began,
            held.fencing_token().value_or(0));
    }

    void say_end(const redlock::lease& held, std::uint64_t id) const
    {
        say("ended {} {} {}", id, now() + std::chrono::nanoseconds{claim_}.count(), until(held));
    }

    /// Shows its token to the resource, before all else.
    void begin_visit(const redlock::lease& held, const std::string& resource, std::optional<visit>& visited)
    {
        if (access_)
        {
            visited.emplace(
                *access_, resource, held.fencing_token().value_or(0), std::string{held.owner_id()},
                !held.valid());
        }
    }

    /// Doesn't ask whether the lease is valid, as a program that believes so: it may have been stopped since it looked.
    static void write(const redlock::lease& held, std::optional<visit>& visited)
    {
        if (visited)
        {
            visited->write(!held.valid());
        }
    }

    /// Holds it for a while, and may extend it; releases it, or leaves that to its destructor.
    asio::awaitable<void> hold(std::string resource, std::optional<visit>& visited)
    {
        static constexpr std::array ttls{600ms, 1200ms, 2000ms};
        const redlock::acquire_options options{.ttl = ttls[below(ttls.size())], .wait = 2s};
        const std::int64_t began = now();
        redlock::lease held = co_await locks_.async_acquire(resource, options, asio::use_awaitable);
        const std::uint64_t id = ++last_;
        say_begin("held", held, id, resource, began);
        const end_of_work at_the_latest{*this, held, id};
        begin_visit(held, resource, visited);
        for (std::size_t left = below(3); left > 0; --left)
        {
            co_await pause(milliseconds{below(50)});
            co_await held.async_extend(options.ttl, asio::use_awaitable);
            say("extended {} {} {}", id, now(), until(held));
            write(held, visited);
        }
        co_await pause(milliseconds{below(8) == 0 ? 1000 : below(50)}); // Seldom beyond its validity.
        write(held, visited);
        if (below(10) != 0)
        {
            say_end(held, id);
            co_await held.async_release(asio::use_awaitable);
            say("released {} {}", id, now());
        }
    }

    /// Keeps it for a while, up to several times its ttl.
    asio::awaitable<void> keep(std::string resource, std::optional<visit>& visited)
    {
        static constexpr std::array ttls{1200ms, 2000ms};
        const redlock::keep_options options{.ttl = ttls[below(ttls.size())], .max_hold = 5s, .wait = 2s};
        const std::uint64_t id = ++last_;
        const milliseconds length{below(4) == 0 ? 3000 : below(100)};
        const std::int64_t began = now();
        auto body = [this, id, length, began, &resource,
                     &visited](redlock::lease& held) -> asio::awaitable<void>
        {
            say_begin("kept", held, id, resource, began);
            begin_visit(held, resource, visited);
            co_await look_at(held, id, length, visited);
        };
        co_await locks_.async_with_lock(resource, options, body, asio::use_awaitable);
        say("released {} {}", id, now());
    }

    /// The body: it looks at its lease all the time, and ends at once when it is cancelled.
    asio::awaitable<void>
    look_at(redlock::lease& held, std::uint64_t id, milliseconds length, std::optional<visit>& visited)
    {
        const redlock::clock::time_point end = redlock::clock::now() + length;
        std::int64_t seen = until(held);
        try
        {
            while (redlock::clock::now() < end)
            {
                co_await pause(5ms);
                if (const std::int64_t next = until(held); next != seen)
                {
                    seen = next;
                    say("extended {} {} {}", id, now(), seen);
                }
                if (below(8) == 0)
                {
                    write(held, visited);
                }
            }
        }
        catch (const redlock::system_error&)
        {
            say("lost {} {}", id, now());
            throw;
        }
        say_end(held, id);
    }

    asio::io_context& io_;
    redlock::lock_manager locks_;
    std::mt19937_64 numbers_;
    milliseconds claim_;
    std::size_t resources_;
    std::optional<resource_access> access_; // In guarded mode.
    std::uint64_t last_ = 0;
    int ended_ = 0;
    bool stopping_ = false;
};

/// Reports when this process didn't run, so that it isn't blamed for what it couldn't do then.
void watch_for_pauses(const std::atomic<bool>& ended)
{
    std::int64_t last = now();
    while (!ended)
    {
        std::this_thread::sleep_for(5ms);
        const std::int64_t seen = now();
        if (seen - last > std::chrono::nanoseconds{30ms}.count())
        {
            say("paused {} {}", last, seen);
        }
        last = seen;
    }
}

} // namespace

int main(int count, char** values)
{
    const std::span arguments{values, static_cast<std::size_t>(count)};
    if (arguments.size() < 6)
    {
        return 2;
    }
    redlock::config options;
    std::optional<resource_access> access;
    std::span<char*> urls = arguments.subspan(5);
    if (arguments[4] == std::string{"guarded"})
    {
        options.guarded.emplace();
        access.emplace(redlock::test::control_client::to_path(urls[0]), urls[1]);
        urls = urls.subspan(2);
    }
    for (const char* const url : urls)
    {
        options.masters.emplace_back(url);
    }
    asio::io_context io;
    client one{
        io,
        options,
        std::strtoull(arguments[1], nullptr, 10),
        milliseconds{std::atoi(arguments[2])},
        std::strtoul(arguments[3], nullptr, 10),
        std::move(access)};
    asio::signal_set signals{io, SIGTERM};
    signals.async_wait([&one](const boost::system::error_code&, int) { one.stop(); });
    for (int worker = 0; worker < workers; ++worker)
    {
        auto fail = [](std::exception_ptr problem)
        {
            if (problem)
            {
                std::rethrow_exception(problem);
            }
        };
        asio::co_spawn(io, one.work(), fail);
    }
    std::atomic<bool> ended = false;
    std::thread watch{[&ended] { watch_for_pauses(ended); }};
    io.run();
    ended = true;
    watch.join();
    return 0;
}
