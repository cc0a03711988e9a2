// SPDX-License-Identifier: BSL-1.0
// The scripted server's threads: one accepts, each connection has its own, and all end with the server.
#include "fake_server.hpp"

#include <exception>
#include <utility>

#include <fmt/format.h>
#include <sys/socket.h>

namespace redlock::test
{
namespace
{

constexpr std::size_t max_connections = 1024;
constexpr std::size_t max_recorded = 100'000;
constexpr std::size_t max_complaints = 1000;

} // namespace

fake_server::fake_server(behaviour how) : behaviour_{std::move(how)}, listener_{listen_on_loopback()}
{
    acceptor_ = std::thread{[this] { accept_all(); }};
}

fake_server::~fake_server()
{
    {
        const std::lock_guard lock{mutex_};
        stopping_ = true;
    }
    ::shutdown(listener_.socket.get(), SHUT_RDWR); // Ends accept().
    acceptor_.join();
    end_connections();
    for (served& connection : served_)
    {
        connection.thread.join();
    }
}

std::string fake_server::url() const
{
    return fmt::format("redis://127.0.0.1:{}", port());
}

void fake_server::behave(behaviour how)
{
    const std::lock_guard lock{mutex_};
    behaviour_ = std::move(how);
}

void fake_server::end_connections()
{
    const std::lock_guard lock{mutex_};
    for (session* client : clients_)
    {
        client->abort();
    }
}

std::size_t fake_server::accepted() const
{
    const std::lock_guard lock{mutex_};
    return accepted_;
}

std::vector<command> fake_server::commands() const
{
    const std::lock_guard lock{mutex_};
    return commands_;
}

std::size_t fake_server::count(std::string_view name) const
{
    const std::lock_guard lock{mutex_};
    return counted(name);
}

/// Requires the mutex.
std::size_t fake_server::counted(std::string_view name) const
{
    const auto found = counts_.find(name);
    return found == counts_.end() ? 0 : found->second;
}

std::vector<std::string> fake_server::complaints() const
{
    const std::lock_guard lock{mutex_};
    return complaints_;
}

bool fake_server::wait_for_connections(std::size_t at_least_accepted, std::chrono::milliseconds at_most)
{
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, at_most, [&] { return accepted_ >= at_least_accepted; });
}

bool fake_server::wait_for_no_connection(std::chrono::milliseconds at_most)
{
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, at_most, [&] { return clients_.empty(); });
}

bool fake_server::wait_for_command(
    std::string_view name, std::size_t at_least, std::chrono::milliseconds at_most)
{
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, at_most, [&] { return counted(name) >= at_least; });
}

void fake_server::accept_all()
{
    while (true)
    {
        unique_fd socket{::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC)};
        const std::lock_guard lock{mutex_};
        if (stopping_)
        {
            return;
        }
        join_those_that_are_over();
        if (socket)
        {
            take(std::move(socket));
        }
    }
}

/// Requires the mutex.
void fake_server::take(unique_fd socket)
{
    const std::size_t number = ++accepted_;
    changed_.notify_all();
    if (served_.size() >= max_connections)
    {
        complain("more connections at once than a scripted server takes");
        return;
    }
    served& place = served_.emplace_back();
    auto client =
        std::make_unique<session>(std::move(socket), number, [this](const command& words) { record(words); });
    clients_.push_back(client.get());
    place.thread = std::thread{[this, &place, how = behaviour_, client = std::move(client)]() mutable
                               { serve(place, how, std::move(client)); }};
}

void fake_server::serve(served& place, const behaviour& how, std::unique_ptr<session> client)
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

/// Requires the mutex. A thread that is over doesn't acquire it again.
void fake_server::join_those_that_are_over()
{
    std::erase_if(
        served_,
        [](served& place)
        {
            if (place.over)
            {
                place.thread.join();
            }
            return place.over;
        });
}

void fake_server::record(const command& words)
{
    const std::lock_guard lock{mutex_};
    ++counts_[name_of(words)];
    if (commands_.size() < max_recorded)
    {
        commands_.push_back(words);
    }
    changed_.notify_all();
}

/// Requires the mutex.
void fake_server::complain(std::string what)
{
    if (complaints_.size() < max_complaints)
    {
        complaints_.push_back(std::move(what));
    }
}

} // namespace redlock::test
