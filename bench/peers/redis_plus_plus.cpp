// SPDX-License-Identifier: BSL-1.0
// A client of redis++'s RedMutex, measured as a peer of redlock. Built if CMake finds redis++.
//
//   redis_plus_plus_peer <port of a master>...
//
// It uses the line protocol of peer.js.
#include <sw/redis++/patterns/redlock.h>
#include <sw/redis++/redis++.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace
{

namespace redis = sw::redis;
using clock_type = std::chrono::steady_clock;

constexpr std::chrono::seconds ttl{10}; // The same as redlock's in this run.
constexpr std::string_view request = "run ";
constexpr std::string_view configuration =
    "RedMutex by try_lock, on the same masters, default settings; lock() would pause "
    "first, for up to 5 ms";

/// Returns one connection to each master.
std::vector<std::shared_ptr<redis::Redis>> connect(int count, char** ports)
{
    std::vector<std::shared_ptr<redis::Redis>> masters;
    for (int at = 0; at < count; ++at)
    {
        redis::ConnectionOptions options;
        options.host = "127.0.0.1";
        options.port = std::stoi(ports[at]);
        masters.push_back(std::make_shared<redis::Redis>(options));
        masters.back()->ping();
    }
    return masters;
}

std::int64_t nanoseconds_since(clock_type::time_point began)
{
    return std::chrono::nanoseconds{clock_type::now() - began}.count();
}

class peer
{
  public:
    peer(int count, char** ports) : masters_{connect(count, ports)} { options_.ttl = ttl; }

    std::string run(std::size_t pairs)
    {
        acquires_.clear();
        failed_acquires_ = 0;
        failed_releases_ = 0;
        const auto began = clock_type::now();
        for (std::size_t pair = 0; pair < pairs; ++pair)
        {
            acquire_and_release();
        }
        return fmt::format(
            "result {} {} {} {}", nanoseconds_since(began), failed_acquires_, failed_releases_,
            fmt::join(acquires_, " "));
    }

  private:
    void acquire_and_release()
    {
        std::size_t* failed = &failed_acquires_;
        try
        {
            const auto asked = clock_type::now();
            // A new mutex per pair: the watcher that extends leases identifies them by mutex and would extend the next
            // lock of the same one.
            redis::RedMutex mutex{masters_.begin(), masters_.end(), "lock:voucher:1",
                                  nullptr,          options_,       watcher_};
            if (!mutex.try_lock())
            {
                throw std::runtime_error{"the lock is held by another client"};
            }
            acquires_.push_back(nanoseconds_since(asked));
            failed = &failed_releases_;
            mutex.unlock();
        }
        catch (const std::exception& problem)
        {
            ++*failed;
            std::cerr << problem.what() << '\n';
        }
    }

    std::vector<std::shared_ptr<redis::Redis>> masters_;
    redis::RedMutexOptions options_;
    // One thread that extends all leases.
    std::shared_ptr<redis::LockWatcher> watcher_ = std::make_shared<redis::LockWatcher>();
    std::vector<std::int64_t> acquires_; // The latency of each acquire.
    std::size_t failed_acquires_ = 0;
    std::size_t failed_releases_ = 0;
};

} // namespace

int main(int count, char** words)
{
    try
    {
        peer one{count - 1, words + 1};
        std::cout << "ready redis++ " REDLOCK_PEER_VERSION ": " << configuration << std::endl;
        for (std::string line; std::getline(std::cin, line);)
        {
            std::cout << one.run(std::stoul(line.substr(request.size()))) << std::endl;
        }
        return 0;
    }
    catch (const std::exception& problem)
    {
        std::string why = problem.what();
        std::replace(why.begin(), why.end(), '\n', ' ');
        std::cout << "failed " << why << std::endl;
        return 1;
    }
}
