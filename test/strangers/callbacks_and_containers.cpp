// SPDX-License-Identifier: BSL-1.0
// One thread with callbacks: leases move through containers, optionals, shared and unique pointers.
#include <redlock/redlock.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

class session : public std::enable_shared_from_this<session>
{
  public:
    session(asio::io_context& io, redlock::lock_manager& locks) : timer_{io}, locks_{locks} {}

    void start(std::function<void(bool)> done)
    {
        done_ = std::move(done);
        locks_.async_acquire(
            "session", {.ttl = 10s, .wait = 5s},
            [self = shared_from_this()](redlock::error_code error, redlock::lease held)
            {
                if (error)
                {
                    std::printf("session: %s\n", error.message().c_str());
                    return self->done_(false);
                }
                self->held_ = std::move(held);
                self->timer_.expires_after(1ms);
                self->timer_.async_wait([self](const redlock::error_code&) { self->finish(); });
            });
    }

  private:
    void finish()
    {
        held_->async_release([self = shared_from_this()](redlock::error_code error) { self->done_(!error); });
    }

    asio::steady_timer timer_;
    redlock::lock_manager& locks_;
    std::optional<redlock::lease> held_;
    std::function<void(bool)> done_;
};

int main(int argc, char** argv)
{
    const std::vector<std::string> urls(argv + 1, argv + argc);
    asio::io_context io;
    redlock::config options;
    options.masters.assign(urls.begin(), urls.end());
    options.node_timeout = 500ms;
    redlock::lock_manager locks{io, options};

    std::vector<redlock::lease> in_a_vector;
    std::map<std::string, redlock::lease> by_name;
    std::unordered_map<int, std::unique_ptr<redlock::lease>> by_number;
    std::deque<std::shared_ptr<redlock::lease>> shared;
    int won = 0;
    bool session_ended_well = false;
    for (int index = 0; index < 8; ++index)
    {
        const std::string name = "item:" + std::to_string(index);
        locks.async_acquire(
            name, {.ttl = 10s, .wait = 5s},
            [&, index, name](redlock::error_code error, redlock::lease held)
            {
                if (error)
                {
                    std::printf("%s: %s\n", name.c_str(), error.message().c_str());
                    return;
                }
                ++won;
                switch (index % 4)
                {
                case 0:
                    in_a_vector.push_back(std::move(held));
                    break;
                case 1:
                    by_name.emplace(name, std::move(held));
                    break;
                case 2:
                    by_number[index] = std::make_unique<redlock::lease>(std::move(held));
                    break;
                default:
                    shared.push_back(std::make_shared<redlock::lease>(std::move(held)));
                    break;
                }
            });
    }
    std::make_shared<session>(io, locks)->start([&](bool well) { session_ended_well = well; });

    asio::steady_timer later{io, 50ms};
    std::function<void(redlock::error_code)> wait_for_all = [&](redlock::error_code)
    {
        if (won < 8)
        {
            later.expires_after(50ms);
            later.async_wait(wait_for_all);
            return;
        }
        in_a_vector.clear();
        by_name.erase("item:1");
        std::swap(by_name.begin()->second, *by_number.begin()->second);
        shared.front()->async_release([](redlock::error_code) {});
        locks.async_shutdown([](redlock::error_code error) { std::printf("%s\n", error.message().c_str()); });
    };
    later.async_wait(wait_for_all);
    io.run();
    return won == 8 && session_ended_well ? 0 : 1;
}
