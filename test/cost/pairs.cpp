// SPDX-License-Identifier: BSL-1.0
// pairs WORKERS PAIRS: workers that acquire and release, each its own resource, in a deterministic simulated network.
// The work of the library is done inside `measured_step`, and that of the simulation inside `outside_of_the_library`:
// callgrind counts the instructions in the former without the latter, and this program the allocations.
#include "api/create.hpp"
#include "cost/allocation_counter.hpp"
#include "manager/access.hpp"
#include "simulation/sim_master.hpp"
#include "simulation/virtual_environment.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace redlock::test
{

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr std::size_t masters = 5;
std::uint64_t unmeasured_allocations = 0;

bool is_measured = false; // True while the library runs.

/// Callgrind stops counting until this returns. Only for calls from measured code: elsewhere, callgrind would start
/// counting instead.
template <class Function>
[[gnu::noinline]] auto outside_of_the_library(Function& function)
{
    struct journey
    {
        journey() { is_measured = false; }
        ~journey()
        {
            unmeasured_allocations += allocations_of_this_thread() - before;
            is_measured = true;
        }
        std::uint64_t before = allocations_of_this_thread();
    } const here;
    return function();
}

/// Runs code of the simulation, which may be called from measured code.
template <class Function>
auto unmeasured(Function function)
{
    return is_measured ? outside_of_the_library(function) : function();
}

class unmeasured_stream final : public runtime::stream
{
  public:
    explicit unmeasured_stream(std::unique_ptr<runtime::stream> inner) : inner_{std::move(inner)} {}
    ~unmeasured_stream() override
    {
        unmeasured([this] { inner_.reset(); });
    }

    void connect(runtime::io_operation& operation, clock::time_point until) override
    {
        unmeasured([&] { inner_->connect(operation, until); });
    }
    void read_some(std::span<char> buffer, runtime::io_operation& operation) override
    {
        unmeasured([&] { inner_->read_some(buffer, operation); });
    }
    std::size_t write_now(std::span<const char> bytes) noexcept override
    {
        return unmeasured([&] { return inner_->write_now(bytes); });
    }
    void write(std::span<const char> bytes, runtime::io_operation& operation) override
    {
        unmeasured([&] { inner_->write(bytes, operation); });
    }
    void close() noexcept override
    {
        unmeasured([&] { inner_->close(); });
    }

  private:
    std::unique_ptr<runtime::stream> inner_;
};

class unmeasured_alarm final : public runtime::alarm
{
  public:
    explicit unmeasured_alarm(std::unique_ptr<runtime::alarm> inner) : inner_{std::move(inner)} {}

    void set(clock::time_point at) override
    {
        unmeasured([&] { inner_->set(at); });
    }
    void close() noexcept override
    {
        unmeasured([&] { inner_->close(); });
    }

  private:
    std::unique_ptr<runtime::alarm> inner_;
};

class unmeasured_environment final : public runtime::environment
{
  public:
    explicit unmeasured_environment(std::shared_ptr<const virtual_environment> inner)
        : inner_{std::move(inner)}
    {
    }

    clock::time_point now() const noexcept override
    {
        return unmeasured([&] { return inner_->now(); });
    }
    void random(std::span<std::byte> out) const noexcept override
    {
        unmeasured([&] { inner_->random(out); });
    }
    std::unique_ptr<runtime::stream> make_stream(runtime::scheduler& strand, const master& to) const override
    {
        return std::make_unique<unmeasured_stream>(inner_->make_stream(strand, to));
    }
    std::unique_ptr<runtime::alarm> make_alarm(runtime::scheduler& strand) const override
    {
        return std::make_unique<unmeasured_alarm>(inner_->make_alarm(strand));
    }

  private:
    std::shared_ptr<const virtual_environment> inner_;
};

/// Runs one handler of the library. Returns 0 if there was none.
[[gnu::noinline]] std::size_t measured_step(asio::io_context& io)
{
    is_measured = true;
    const std::size_t done = io.poll_one();
    is_measured = false;
    return done;
}

class workers
{
  public:
    explicit workers(std::size_t count)
        : inner_{std::make_shared<virtual_environment>(1)}, held_(count), idle_{count}
    {
        for (std::size_t worker = 0; worker < count; ++worker)
        {
            names_.push_back(fmt::format("invoice:{}", worker));
        }
        config options;
        for (std::size_t index = 0; index < masters; ++index)
        {
            const std::string host = fmt::format("10.0.0.{}", index + 1);
            masters_.push_back(std::make_unique<sim_master>(inner_->world(), fmt::format("run-{}", index)));
            inner_->put(host, *masters_.back());
            options.masters.emplace_back("redis://" + host);
        }
        auto outside = std::make_shared<unmeasured_environment>(inner_);
        locks_.emplace(detail::access::make_manager(
            api::create(io_->get_executor(), std::move(options), std::move(outside))));
    }
    ~workers()
    {
        held_.clear();
        locks_.reset();
        io_.reset();
    }

    /// Runs this many pairs; `step` runs each handler.
    template <class Step>
    void run(std::size_t pairs, Step step)
    {
        left_ = pairs;
        for (std::size_t worker = 0; worker < held_.size(); ++worker)
        {
            begin(worker);
        }
        while (idle_ < held_.size())
        {
            io_->restart();
            if (step(*io_) == 0)
            {
                inner_->world().run_next();
            }
        }
    }

  private:
    void begin(std::size_t worker)
    {
        if (left_ == 0)
        {
            return;
        }
        --left_;
        --idle_;
        auto acquired = [this, worker](error_code error, lease won)
        {
            require(error);
            held_[worker] = std::move(won);
            auto released = [this, worker](error_code outcome)
            {
                require(outcome);
                ++idle_;
                begin(worker);
            };
            held_[worker].async_release(asio::bind_executor(io_->get_executor(), released));
        };
        locks_->async_acquire(std::string{names_[worker]}, 10s, acquired);
    }

    static void require(const error_code& error)
    {
        if (error)
        {
            throw std::runtime_error{error.message()};
        }
    }

    std::shared_ptr<virtual_environment> inner_;
    std::vector<std::unique_ptr<sim_master>> masters_;
    std::optional<asio::io_context> io_{std::in_place};
    std::optional<lock_manager> locks_;
    std::vector<std::string> names_;
    std::vector<lease> held_;
    std::size_t idle_;
    std::size_t left_ = 0;
};

std::size_t number(std::string_view text)
{
    std::size_t value = 0;
    const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc{} || stop != text.data() + text.size() || value == 0)
    {
        throw std::runtime_error{fmt::format("'{}' must be a number above 0", text)};
    }
    return value;
}

void run(std::size_t count, std::size_t pairs)
{
    workers all{count};
    // Warm-up: everything has allocated its memory after that.
    all.run(3 * count, [](asio::io_context& io) { return io.poll_one(); });
    std::uint64_t allocations = 0;
    all.run(
        pairs,
        [&](asio::io_context& io)
        {
            const std::uint64_t before = allocations_of_this_thread() - unmeasured_allocations;
            const std::size_t done = measured_step(io);
            allocations += allocations_of_this_thread() - unmeasured_allocations - before;
            return done;
        });
    fmt::print("{} workers, {} pairs, {} allocations\n", count, pairs, allocations);
}

} // namespace redlock::test

int main(int count, char** values)
{
    try
    {
        if (count != 3)
        {
            throw std::runtime_error{"usage: pairs WORKERS PAIRS"};
        }
        redlock::test::run(redlock::test::number(values[1]), redlock::test::number(values[2]));
        return 0;
    }
    catch (const std::exception& problem)
    {
        fmt::print(stderr, "pairs: {}\n", problem.what());
        return 1;
    }
}
