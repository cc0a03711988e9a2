// SPDX-License-Identifier: BSL-1.0
// The scripted server's threads: one accepts, each connection has its own, and all end with the server.
#include "fake_server.hpp"

#include "loopback.hpp"

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <list>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace redlock::test
{
namespace
{

constexpr std::size_t max_connections = 1024;
constexpr std::size_t max_complaints = 1000;
constexpr int max_poll_milliseconds = 60'000;

} // namespace

class fake_server::engine
{
  public:
    explicit engine(behaviour how)
        : behaviour_{std::move(how)}, listener_{listen_on_loopback()}, stop_{::eventfd(0, EFD_CLOEXEC)}
    {
        if (!stop_)
        {
            throw std::system_error{errno, std::generic_category(), "eventfd"};
        }
        acceptor_ = std::thread{[this] { accept_all(); }};
    }

    ~engine()
    {
        // The event is never consumed, so it stays readable and ends every wait.
        const std::uint64_t one = 1;
        const ssize_t written = ::write(stop_.get(), &one, sizeof one);
        static_cast<void>(written);
        acceptor_.join();
        for (served& connection : served_)
        {
            connection.thread.join();
        }
    }

    engine(const engine&) = delete;
    engine& operator=(const engine&) = delete;

    int port() const { return listener_.port; }

    void behave(behaviour how)
    {
        const std::lock_guard lock{mutex_};
        behaviour_ = std::move(how);
    }

    void end_connections()
    {
        const std::lock_guard lock{mutex_};
        for (session* client : clients_)
        {
            client->abort();
        }
    }

    /// Reads a value with the mutex held.
    template <class Read>
    auto read(Read what) const
    {
        const std::lock_guard lock{mutex_};
        return what(*this);
    }

    /// Waits until a condition on this object holds.
    template <class Condition>
    bool wait(std::chrono::milliseconds at_most, Condition condition)
    {
        std::unique_lock lock{mutex_};
        return changed_.wait_for(lock, at_most, [&] { return condition(*this); });
    }

    std::size_t count(std::string_view name) const
    {
        const auto found = counts_.find(name);
        return found == counts_.end() ? 0 : found->second;
    }

    // Protected by the mutex of `read` and `wait`.
    std::size_t accepted_ = 0;
    std::list<session*> clients_;
    std::vector<command> commands_;
    std::vector<std::string> complaints_;

  private:
    struct served
    {
        std::thread thread;
        bool over = false;
    };

    void accept_all()
    {
        while (true)
        {
            std::array<pollfd, 2> readiness{
                pollfd{listener_.socket.get(), POLLIN, 0}, pollfd{stop_.get(), POLLIN, 0}};
            ::poll(readiness.data(), readiness.size(), max_poll_milliseconds);
            if (readiness[1].revents != 0)
            {
                return;
            }
            if (readiness[0].revents != 0)
            {
                take(unique_fd{::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC)});
            }
        }
    }

    void take(unique_fd socket)
    {
        join_those_that_are_over();
        const std::lock_guard lock{mutex_};
        if (!socket)
        {
            return;
        }
        const std::size_t number = ++accepted_;
        changed_.notify_all();
        if (served_.size() >= max_connections)
        {
            complain("more connections at once than a scripted server takes");
            return;
        }
        served& place = served_.emplace_back();
        auto client = std::make_unique<session>(
            std::move(socket), number, stop_.get(), [this](const command& words) { record(words); });
        clients_.push_back(client.get());
        place.thread = std::thread{[this, &place, how = behaviour_, client = std::move(client)]() mutable
                                   { serve(place, how, std::move(client)); }};
    }

    void serve(served& place, const behaviour& how, std::unique_ptr<session> client)
    {
        std::string complaint;
        try
        {
            how(*client);
        }
        catch (const std::exception& error)
        {
            complaint = error.what();
        }
        client->finish();
        const std::lock_guard lock{mutex_};
        if (!complaint.empty())
        {
            complain(fmt::format("connection {}: {}", client->number(), complaint));
        }
        clients_.remove(client.get());
        place.over = true;
        changed_.notify_all();
    }

    void join_those_that_are_over()
    {
        std::list<served> over;
        {
            const std::lock_guard lock{mutex_};
            for (auto place = served_.begin(); place != served_.end();)
            {
                const auto next = std::next(place);
                if (place->over)
                {
                    over.splice(over.end(), served_, place);
                }
                place = next;
            }
        }
        for (served& place : over)
        {
            place.thread.join();
        }
    }

    void record(const command& words)
    {
        const std::lock_guard lock{mutex_};
        ++counts_[name_of(words)];
        if (commands_.size() < max_recorded)
        {
            commands_.push_back(words);
        }
        changed_.notify_all();
    }

    void complain(std::string what)
    {
        if (complaints_.size() < max_complaints)
        {
            complaints_.push_back(std::move(what));
        }
    }

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::string, std::size_t, std::less<>> counts_;
    behaviour behaviour_;
    listener listener_;
    unique_fd stop_;
    std::list<served> served_;
    std::thread acceptor_;
};

fake_server::fake_server(behaviour how) : engine_{std::make_unique<engine>(std::move(how))} {}
fake_server::fake_server(fake_server&&) noexcept = default;
fake_server& fake_server::operator=(fake_server&&) noexcept = default;
fake_server::~fake_server() = default;

int fake_server::port() const
{
    return engine_->port();
}

std::string fake_server::url() const
{
    return fmt::format("redis://127.0.0.1:{}", port());
}

void fake_server::behave(behaviour how)
{
    engine_->behave(std::move(how));
}

void fake_server::end_connections()
{
    engine_->end_connections();
}

std::size_t fake_server::connections() const
{
    return engine_->read([](const engine& it) { return it.clients_.size(); });
}

std::size_t fake_server::accepted() const
{
    return engine_->read([](const engine& it) { return it.accepted_; });
}

std::vector<command> fake_server::commands() const
{
    return engine_->read([](const engine& it) { return it.commands_; });
}

std::size_t fake_server::count(std::string_view name) const
{
    return engine_->read([name](const engine& it) { return it.count(name); });
}

std::vector<std::string> fake_server::complaints() const
{
    return engine_->read([](const engine& it) { return it.complaints_; });
}

bool fake_server::wait_for_connections(std::size_t at_least_accepted, std::chrono::milliseconds at_most)
{
    return engine_->wait(
        at_most, [at_least_accepted](const engine& it) { return it.accepted_ >= at_least_accepted; });
}

bool fake_server::wait_for_no_connection(std::chrono::milliseconds at_most)
{
    return engine_->wait(at_most, [](const engine& it) { return it.clients_.empty(); });
}

bool fake_server::wait_for_command(
    std::string_view name, std::size_t at_least, std::chrono::milliseconds at_most)
{
    return engine_->wait(at_most, [name, at_least](const engine& it) { return it.count(name) >= at_least; });
}

} // namespace redlock::test
