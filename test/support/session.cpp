// SPDX-License-Identifier: BSL-1.0
// Blocking input and output, with a thread for each connection; every wait also ends at abort().
#include "session.hpp"

#include <array>
#include <cerrno>
#include <stdexcept>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

namespace redlock::test
{
namespace
{

/// The time for a client to close its side of a connection that the script has closed.
constexpr std::chrono::seconds drain_limit{2};

} // namespace

session::session(unique_fd socket, std::size_t number, std::function<void(const command&)> on_command)
    : socket_{std::move(socket)}, number_{number}, on_command_{std::move(on_command)}
{
    const int on = 1;
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

std::optional<command> session::read_command()
{
    while (state_ == state::open)
    {
        send_what_is_due();
        if (aborted_)
        {
            state_ = state::ended;
        }
        if (state_ != state::open)
        {
            break;
        }
        if (std::optional<command> next = reader_.next())
        {
            on_command_(*next);
            return next;
        }
        if (waiting_.empty() ? wait(POLLIN) : wait(POLLIN, waiting_.front().due))
        {
            receive();
        }
    }
    return {};
}

void session::send(answer what)
{
    if (waiting_.size() >= max_waiting_answers)
    {
        throw std::length_error{"too many answers wait for their time"};
    }
    const auto due = clock::now() + what.delay;
    waiting_.push_back({due, std::move(what)});
    send_what_is_due();
}

void session::send_what_is_due()
{
    while (state_ == state::open && !waiting_.empty() && waiting_.front().due <= clock::now())
    {
        const answer next = std::move(waiting_.front().what);
        waiting_.pop_front();
        deliver(next);
    }
}

void session::deliver(const answer& what)
{
    if (what.close == closing::before)
    {
        close();
        return;
    }
    std::string_view bytes = what.bytes;
    if (what.close == closing::in_the_middle)
    {
        bytes = bytes.substr(0, bytes.size() / 2);
    }
    for (std::size_t time = 0; time < what.times && state_ == state::open; ++time)
    {
        const std::size_t step = what.single_bytes ? 1 : bytes.size();
        for (std::size_t sent = 0; sent < bytes.size(); sent += step)
        {
            write(bytes.substr(sent, step));
        }
    }
    if (what.close != closing::never)
    {
        close();
    }
}

void session::write(std::string_view bytes)
{
    while (state_ == state::open && !bytes.empty())
    {
        const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0)
        {
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
        else if (errno == EAGAIN)
        {
            wait(POLLOUT);
        }
        else if (errno != EINTR)
        {
            state_ = state::ended;
        }
    }
}

/// Waits for the socket, the time, or abort(), which ends the session. True if the socket is ready.
bool session::wait(short events, clock::time_point until)
{
    const bool ready = wait_for(socket_.get(), events, until);
    state_ = aborted_ ? state::ended : state_;
    return ready && !aborted_;
}

/// Reads once. The client's end ends the session; while the session is closing, the input is discarded.
void session::receive()
{
    std::array<char, 16384> input;
    const ssize_t count = ::recv(socket_.get(), input.data(), input.size(), MSG_DONTWAIT);
    if (count > 0 && state_ == state::open)
    {
        reader_.feed({input.data(), static_cast<std::size_t>(count)});
    }
    else if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
    {
        state_ = state::ended;
    }
}

void session::close()
{
    if (state_ == state::open)
    {
        ::shutdown(socket_.get(), SHUT_WR);
        state_ = state::closing;
    }
}

void session::reset()
{
    const linger at_once{1, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    state_ = state::ended;
    const std::lock_guard lock{mutex_};
    socket_.reset();
}

void session::abort()
{
    const std::lock_guard lock{mutex_};
    aborted_ = true;
    if (socket_)
    {
        ::shutdown(socket_.get(), SHUT_RDWR);
    }
}

void session::finish()
{
    while (state_ == state::open && !waiting_.empty())
    {
        if (wait(POLLIN, waiting_.front().due))
        {
            receive();
        }
        send_what_is_due();
    }
    close();
    // Closing a socket with unread bytes sends RST, which could overtake the last answer.
    const auto deadline = clock::now() + drain_limit;
    while (state_ == state::closing && clock::now() < deadline)
    {
        if (wait(POLLIN, deadline))
        {
            receive();
        }
    }
    state_ = state::ended;
    const std::lock_guard lock{mutex_};
    socket_.reset();
}

} // namespace redlock::test
