// SPDX-License-Identifier: BSL-1.0
// Connects a socket to a host by name.
#include "io/tcp_connector.hpp"

#include "io/own_socket.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <cerrno>
#include <unistd.h>
#include <utility>

namespace redlock::io
{

tcp_connector::tcp_connector(
    runtime::scheduler& strand, tcp::socket& socket, std::string host, std::uint16_t port)
    : strand_{strand}, socket_{socket}, host_{std::move(host)}, port_{port}, resolved_{strand.executor()}
{
}

void tcp_connector::connect(clock::time_point until, completion done)
{
    error_code not_a_number;
    const auto address = asio::ip::make_address(host_, not_a_number);
    if (!not_a_number)
    {
        connect_to({tcp::endpoint{address, port_}}, until, std::move(done));
        return;
    }
    begin(until, std::move(done));
    resolve();
}

void tcp_connector::connect_to(std::vector<tcp::endpoint> addresses, clock::time_point until, completion done)
{
    begin(until, std::move(done));
    take(std::move(addresses));
    try_next();
}

void tcp_connector::take(std::vector<tcp::endpoint> addresses)
{
    addresses_ = std::move(addresses);
    const std::size_t first = addresses_.empty() ? 0 : first_ % addresses_.size();
    std::rotate(
        addresses_.begin(), addresses_.begin() + static_cast<std::ptrdiff_t>(first), addresses_.end());
}

void tcp_connector::begin(clock::time_point until, completion done)
{
    until_ = until;
    least_ = (until - strand_.now()) / 8;
    done_ = std::move(done);
}

void tcp_connector::resolve()
{
    error_code why;
    lookup_ = name_lookup::join(host_, why);
    if (why == asio::error::try_again)
    {
        complaint_ = "too many names are being resolved";
    }
    else if (why == asio::error::no_buffer_space)
    {
        complaint_ = "no thread can be started that resolves its name";
    }
    const int descriptor = lookup_ ? lookup_->watch() : -1;
    if (lookup_ && descriptor < 0)
    {
        why = {errno, boost::system::system_category()};
    }
    if (!why)
    {
        resolved_.assign(descriptor, why);
        if (why)
        {
            ::close(descriptor);
        }
    }
    if (why)
    {
        strand_.post([this, why] { on_resolved(why); });
        return;
    }
    complaint_ = "its name hasn't been resolved";
    auto resolved = [this](error_code result) { on_resolved(result); };
    resolved_.async_wait(asio::posix::stream_descriptor::wait_read, strand_.bind(resolved));
}

void tcp_connector::on_resolved(error_code result)
{
    last_error_ = result;
    if (!result)
    {
        complaint_ = {};
        const name_lookup::result found = lookup_->get();
        last_error_ = found.error;
        std::vector<tcp::endpoint> addresses;
        for (const asio::ip::address& each : found.addresses)
        {
            addresses.emplace_back(each, port_);
        }
        take(std::move(addresses));
    }
    lookup_.reset();
    error_code ignored;
    resolved_.close(ignored);
    try_next();
}

void tcp_connector::try_next()
{
    if (closed_ || next_ == addresses_.size())
    {
        finish(closed_ ? error_code{asio::error::operation_aborted} : last_error_);
        return;
    }
    const auto left = static_cast<clock::rep>(addresses_.size() - next_);
    const clock::time_point now = strand_.now();
    overdue_ = false;
    // The last address needs no deadline: the caller closes the connector at `until_`.
    if (left > 1)
    {
        strand_.arm(*this, now + std::max(until_ - now, least_) / left);
    }
    error_code ignored;
    socket_.close(ignored);
    const tcp::endpoint& next = addresses_[next_++];
    if (const error_code failed = open_own(socket_, next.protocol()))
    {
        strand_.post([this, failed] { on_attempt(failed); });
        return;
    }
    socket_.async_connect(next, strand_.bind([this](error_code result) { on_attempt(result); }));
}

void tcp_connector::on_attempt(error_code result)
{
    disarm();
    // At the end of its share of the time, the socket was closed, even if it was connected just before.
    if ((result || overdue_) && !closed_)
    {
        last_error_ = overdue_ ? error_code{asio::error::timed_out} : result;
        try_next();
        return;
    }
    finish(result);
}

void tcp_connector::on_deadline()
{
    overdue_ = true;
    error_code ignored;
    socket_.close(ignored);
}

void tcp_connector::finish(error_code result)
{
    if (!result)
    {
        // A command must not wait until the previous one is acknowledged (Nagle's algorithm).
        socket_.set_option(tcp::no_delay{true}, result);
    }
    if (const completion done = std::exchange(done_, nullptr))
    {
        done(result);
    }
}

void tcp_connector::close() noexcept
{
    closed_ = true;
    disarm();
    error_code ignored;
    resolved_.close(ignored);
}

} // namespace redlock::io
