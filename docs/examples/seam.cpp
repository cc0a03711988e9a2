// SPDX-License-Identifier: BSL-1.0
// A program whose own code can be tested without lock servers. With masters as arguments, it runs with real locks, too:
// example_seam redis://127.0.0.1:7001
#include <redlock/redlock.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>

#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

/// What this program needs of a lock.
class exclusion
{
  public:
    using work = std::function<asio::awaitable<void>()>;

    virtual ~exclusion() = default;
    /// Runs the work while no other process runs work on this resource. Throws a `lock_error` if it can't, or if the lock
    /// was lost.
    virtual asio::awaitable<void> run(std::string_view resource, const work& exclusive) = 0;
};

/// For production.
class redlock_exclusion : public exclusion
{
  public:
    explicit redlock_exclusion(redlock::lock_manager& locks) : locks_{locks} {}

    asio::awaitable<void> run(std::string_view resource, const work& exclusive) override
    {
        const redlock::keep_options options{.ttl = 10s, .max_hold = 5min};
        co_await locks_.async_with_lock(resource, options, std::ref(exclusive));
    }

  private:
    redlock::lock_manager& locks_;
};

/// For tests: fails as a real lock does, when a test demands it.
class fake_exclusion : public exclusion
{
  public:
    redlock::error_code before_work{}; // For example held_by_other, no_quorum.
    redlock::error_code after_work{};  // For example lease_lost.
    int runs = 0;

    asio::awaitable<void> run(std::string_view resource, const work& exclusive) override
    {
        fail(resource, before_work);
        ++runs;
        co_await exclusive();
        fail(resource, after_work);
    }

  private:
    static void fail(std::string_view resource, redlock::error_code error)
    {
        if (error)
        {
            throw redlock::lock_error{error, std::string{resource}};
        }
    }
};

/// The code to be tested: it sees the interface only.
class invoices
{
  public:
    explicit invoices(exclusion& alone) : alone_{alone} {}

    /// Returns false if another process is working on this invoice.
    asio::awaitable<bool> settle(int number)
    {
        const std::string resource = "invoice:" + std::to_string(number);
        const exclusion::work count = [this, number]() -> asio::awaitable<void>
        {
            ++settled[number];
            co_return;
        };
        try
        {
            co_await alone_.run(resource, count);
            co_return true;
        }
        catch (const redlock::lock_error& error)
        {
            if (error.code() != redlock::condition::contended)
            {
                throw;
            }
        }
        co_return false;
    }

    std::map<int, int> settled{};

  private:
    exclusion& alone_;
};

void expect(bool as_it_is, const char* what)
{
    if (!as_it_is)
    {
        throw std::runtime_error{what};
    }
    std::cout << what << '\n';
}

asio::awaitable<void> test_with_fake()
{
    fake_exclusion alone;
    invoices tested{alone};
    expect(co_await tested.settle(42) && tested.settled[42] == 1, "an invoice is settled");

    alone.before_work = redlock::errc::held_by_other;
    expect(!co_await tested.settle(43) && tested.settled[43] == 0, "not while another process works on it");

    alone.before_work = {};
    alone.after_work = redlock::errc::lease_lost;
    bool lost = false;
    try
    {
        co_await tested.settle(44);
    }
    catch (const redlock::lock_error&)
    {
        lost = true;
    }
    expect(lost && alone.runs == 2, "a loss reaches the caller");
}

asio::awaitable<void> test_with_masters(redlock::lock_manager& locks)
{
    redlock_exclusion alone{locks};
    invoices tested{alone};
    expect(co_await tested.settle(42) && tested.settled[42] == 1, "an invoice is settled under a real lock");
    co_await locks.async_shutdown(asio::as_tuple(asio::deferred));
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
    try
    {
        asio::io_context io;
        asio::co_spawn(io, test_with_fake(), rethrow);
        io.run();
        if (argc > 1)
        {
            io.restart();
            const std::vector<redlock::master> masters{argv + 1, argv + argc};
            redlock::lock_manager locks{io, {.masters = masters}};
            asio::co_spawn(io, test_with_masters(locks), rethrow);
            io.run();
        }
    }
    catch (const std::exception& failure)
    {
        std::cerr << argv[0] << ": " << failure.what() << '\n';
        return 1;
    }
}
