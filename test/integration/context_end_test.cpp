// SPDX-License-Identifier: BSL-1.0
// A call on another thread that uses a lease at the very moment at which the manager's io_context is destroyed.
#include "integration/fixture.hpp"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

/// Calls a function the next time that this thread gives a function to the manager's executor.
thread_local std::function<void()> at_next_post;

/// An executor that does so, and is otherwise the one that it wraps.
template <class Inner>
class watched_executor
{
  public:
    explicit watched_executor(Inner inner) noexcept : inner_{std::move(inner)} {}

    template <class Function>
    void execute(Function&& function) const
    {
        if (const auto act = std::exchange(at_next_post, nullptr))
        {
            act();
        }
        inner_.execute(std::forward<Function>(function));
    }
    template <class Property>
        requires asio::can_query<const Inner&, Property>::value
    auto query(const Property& property) const
        -> decltype(asio::query(std::declval<const Inner&>(), property))
    {
        return asio::query(inner_, property);
    }
    template <class Property>
        requires asio::can_require<const Inner&, Property>::value
    auto require(const Property& property) const
    {
        return wrap(asio::require(inner_, property));
    }
    template <class Property>
        requires asio::can_prefer<const Inner&, Property>::value
    auto prefer(const Property& property) const
    {
        return wrap(asio::prefer(inner_, property));
    }
    friend bool operator==(const watched_executor&, const watched_executor&) noexcept = default;

  private:
    template <class Other>
    static watched_executor<Other> wrap(Other other)
    {
        return watched_executor<Other>{std::move(other)};
    }

    Inner inner_;
};

/// Reports that an execution context is being destroyed. Services end in the reverse order of their addition.
template <int Number>
class end_of_context final : public asio::execution_context::service
{
  public:
    static inline asio::execution_context::id id;

    end_of_context(asio::execution_context& context, std::promise<void> reached)
        : asio::execution_context::service{context}, reached_{std::move(reached)}
    {
    }

  private:
    /// Newer versions of Boost call this twice.
    void shutdown() noexcept override
    {
        if (std::exchange(is_first_, false))
        {
            reached_.set_value();
        }
    }

    std::promise<void> reached_;
    bool is_first_ = true;
};

/// A manager whose io_context another thread destroys in the middle of a call.
class ended_manager
{
  public:
    explicit ended_manager(const std::vector<server>& servers)
    {
        std::promise<void> after;
        after_ = after.get_future();
        asio::make_service<end_of_context<1>>(*context_, std::move(after));
        locks_.emplace(watched_executor{context_->get_executor()}, unhurried(servers));
        std::promise<void> before;
        before_ = before.get_future();
        asio::make_service<end_of_context<0>>(*context_, std::move(before));
    }
    ended_manager(const ended_manager&) = delete;
    ended_manager& operator=(const ended_manager&) = delete;
    ~ended_manager()
    {
        if (destroyer_.joinable())
        {
            destroyer_.join();
        }
    }

    lock_manager& locks() { return *locks_; }
    /// Runs the handlers until the condition holds, which may end the io_context.
    void run_until(const std::function<bool()>& condition)
    {
        const auto limit = std::chrono::steady_clock::now() + patience;
        while (!condition())
        {
            if (std::chrono::steady_clock::now() > limit)
            {
                throw stuck{"the condition still doesn't hold after a minute"};
            }
            context_->run_one_for(10ms);
            context_->poll();
        }
    }
    /// Runs the handlers that are ready.
    void poll() { context_->poll(); }
    lease win(const std::string& resource)
    {
        std::optional<acquired> won;
        locks_->async_acquire(
            resource, {.ttl = long_ttl},
            [&](error_code error, lease held) {
                won = acquired{error, std::move(held), {}};
            });
        run_until([&] { return won.has_value(); });
        REQUIRE_FALSE(won->error);
        return std::move(won->lease);
    }
    void destroy_manager() { locks_.reset(); }
    /// Destroys the io_context.
    void end() { context_.reset(); }
    /// Makes a call during which the io_context is destroyed. Returns false if the call didn't reach its executor.
    template <class Call>
    bool end_during(Call call)
    {
        at_next_post = [this] { destroy(); };
        call();
        const bool reached = at_next_post == nullptr;
        at_next_post = nullptr;
        if (reached)
        {
            destroyer_.join();
        }
        return reached;
    }
    /// True if the executor was still being used when the destruction went past the manager.
    bool was_used_after_its_end() const { return used_after_its_end_; }

  private:
    void destroy()
    {
        destroyer_ = std::thread{[this] { context_.reset(); }};
        take(std::move(before_), "the beginning of the destruction");
        // Nothing ends this wait unless the destruction goes on, which would be wrong.
        used_after_its_end_ = after_.wait_for(200ms) == std::future_status::ready;
    }

    std::unique_ptr<asio::io_context> context_ = std::make_unique<asio::io_context>();
    std::optional<lock_manager> locks_;
    std::future<void> before_;
    std::future<void> after_;
    std::thread destroyer_;
    bool used_after_its_end_ = false;
};

/// A handler's guard: tells whether the handler still exists.
using life = std::shared_ptr<int>;

} // namespace

TEST_CASE("an io_context isn't destroyed in the middle of a call that uses a lease elsewhere", "[threads]")
{
    const std::string call =
        GENERATE(as<std::string>{}, "wait_lost", "extend", "release", "cancel", "drop", "abort");
    CAPTURE(call);
    std::vector<server> servers = start_servers(3);
    ended_manager ending{servers};
    asio::io_context elsewhere;
    bool called = false;
    life alive = std::make_shared<int>();
    const std::weak_ptr<int> handler = alive;
    const auto done = [&]
    {
        return asio::bind_executor(
            elsewhere.get_executor(),
            [&called, alive = std::move(alive)](error_code, auto...) { called = alive != nullptr; });
    };
    std::optional<lease> held = ending.win("stock");
    asio::cancellation_signal stop;
    if (call == "cancel")
    {
        held->async_wait_lost(asio::bind_cancellation_slot(stop.slot(), done()));
        ending.poll();
    }
    const bool reached = ending.end_during(
        [&]
        {
            if (call == "wait_lost")
            {
                held->async_wait_lost(done());
            }
            else if (call == "extend")
            {
                held->async_extend(long_ttl, done());
            }
            else if (call == "release")
            {
                held->async_release(done());
            }
            else if (call == "cancel")
            {
                stop.emit(asio::cancellation_type::terminal);
            }
            else
            {
                alive.reset();
                call == "drop" ? held.reset() : ending.destroy_manager();
            }
        });
    CHECK(reached);
    CHECK_FALSE(ending.was_used_after_its_end());
    elsewhere.poll();
    CHECK_FALSE(called);
    CHECK(handler.expired());
}

TEMPLATE_TEST_CASE(
    "a call that finds its manager destroyed completes without the manager's executor", "[threads]",
    asio::io_context::executor_type, asio::any_completion_executor)
{
    std::vector<server> servers = start_servers(3);
    ended_manager ending{servers};
    lease held = ending.win("stock");
    ending.destroy_manager();
    ending.poll();
    asio::io_context elsewhere;
    std::vector<error_code> results;
    const auto note = [&]
    {
        return asio::bind_executor(
            TestType{elsewhere.get_executor()},
            [&results](error_code result, auto...) { results.push_back(result); });
    };
    const bool reached = ending.end_during(
        [&]
        {
            held.async_wait_lost(note());
            held.async_extend(long_ttl, note());
            held.async_release(note());
        });
    CHECK_FALSE(reached);
    CHECK(results.empty());
    elsewhere.run(); // Each handler is work of its executor until it is called.
    CHECK(results == std::vector<error_code>(3, errc::closed));
}

TEST_CASE(
    "an io_context isn't destroyed in the middle of a call that async_with_lock makes elsewhere", "[threads]")
{
    const std::string_view call = GENERATE("wait_lost", "release", "cancel");
    CAPTURE(call);
    std::vector<server> servers = start_servers(3);
    ended_manager ending{servers};
    const lease other = ending.win("taken");
    asio::io_context elsewhere;
    std::optional<error_code> result;
    life alive = std::make_shared<int>();
    const std::weak_ptr<int> handler = alive;
    bool began = false;
    asio::cancellation_signal stop;
    ending.locks().async_with_lock(
        call == "cancel" ? "taken" : "stock",
        {.ttl = long_ttl, .max_hold = redlock::no_limit, .wait = redlock::no_limit},
        [&](lease&) -> asio::awaitable<void>
        {
            began = true;
            // So that it ends in a later handler than it begins; or not before it is cancelled.
            asio::steady_timer pause{co_await asio::this_coro::executor};
            pause.expires_after(call == "release" ? 0s : patience);
            co_await pause.async_wait(asio::use_awaitable);
        },
        asio::bind_cancellation_slot(
            stop.slot(), asio::bind_executor(
                             elsewhere.get_executor(),
                             [&result, alive = std::move(alive)](const std::exception_ptr& thrown)
                             {
                                 if (alive)
                                 {
                                     result = error_of(thrown);
                                 }
                             })));
    ending.poll();
    if (call == "cancel")
    {
        stop.emit(asio::cancellation_type::terminal);
    }
    bool reached = false;
    ending.run_until(
        [&]
        {
            if (call == "release" && !began)
            {
                elsewhere.poll_one();
            }
            else
            {
                reached = ending.end_during([&] { elsewhere.poll_one(); });
            }
            return reached;
        });
    CHECK(reached);
    CHECK_FALSE(ending.was_used_after_its_end());
    elsewhere.run_for(patience);
    if (call == "wait_lost")
    {
        // The loss is told, since the body runs.
        REQUIRE(result);
        CHECK(*result == errc::closed);
    }
    else
    {
        CHECK_FALSE(result);
    }
    CHECK(handler.expired());
}

TEST_CASE("a body that runs elsewhere is cancelled when the manager's io_context is destroyed", "[threads]")
{
    std::vector<server> servers = start_servers(3);
    ended_manager ending{servers};
    asio::io_context elsewhere;
    bool began = false;
    std::optional<error_code> result;
    ending.locks().async_with_lock(
        "stock", {.ttl = long_ttl, .max_hold = redlock::no_limit},
        [&](lease&) -> asio::awaitable<void>
        {
            began = true;
            asio::steady_timer pause{co_await asio::this_coro::executor};
            pause.expires_after(patience);
            co_await pause.async_wait(asio::use_awaitable);
        },
        asio::bind_executor(
            elsewhere.get_executor(), [&](const std::exception_ptr& thrown) { result = error_of(thrown); }));
    ending.run_until(
        [&]
        {
            elsewhere.poll();
            return began;
        });
    ending.end();
    elsewhere.run_for(patience);
    REQUIRE(result);
    CHECK(*result == errc::closed);
}

TEST_CASE("a manager tells its executor while another thread destroys the io_context", "[threads]")
{
    std::vector<server> servers = start_servers(3);
    ended_manager ending{servers};
    const lock_manager& locks = ending.locks();
    const asio::any_io_executor none = asio::system_executor{};
    std::promise<bool> first;
    std::future<bool> had_one = first.get_future();
    std::thread reader{[&]
                       {
                           first.set_value(locks.get_executor() != none);
                           while (locks.get_executor() != none)
                           {
                           }
                       }};
    CHECK(take(std::move(had_one), "the first look at the executor"));
    ending.end();
    reader.join();
}

} // namespace redlock::test
