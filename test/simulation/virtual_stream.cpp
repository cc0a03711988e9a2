// SPDX-License-Identifier: BSL-1.0
// The client's end of a virtual connection.
#include "virtual_stream.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <stdexcept>

namespace redlock::test
{

namespace asio = boost::asio;

namespace
{

/// Preconditions that the library must keep.
void require(bool holds)
{
    if (!holds)
    {
        throw std::logic_error{"a stream is used as it may not be"};
    }
}

} // namespace

virtual_stream::virtual_stream(
    runtime::scheduler& strand, virtual_world& world, sim_master& to, int origin, std::size_t& count)
    : strand_{strand},
      world_{world},
      handlers_{pending_handlers::of(strand)},
      count_{count},
      link_{std::make_shared<virtual_link>(world, to, static_cast<client_end&>(*this), origin)}
{
    ++count_;
}

virtual_stream::~virtual_stream()
{
    link_->close();
    --count_;
}

pending_handlers::ticket virtual_stream::begin(runtime::io_operation& operation)
{
    operation.start();
    return handlers_.add(
        strand_, [&operation](error_code error, std::size_t bytes) { operation.finish(error, bytes); });
}

void virtual_stream::connect(runtime::io_operation& operation, clock::time_point)
{
    connecting_ = begin(operation);
    link_->connect();
}

void virtual_stream::read_some(std::span<char> buffer, runtime::io_operation& operation)
{
    require(connecting_ == 0 && reading_ == 0 && !buffer.empty());
    reading_ = begin(operation);
    buffer_ = buffer;
    read();
}

std::size_t virtual_stream::write_now(std::span<const char> bytes) noexcept
{
    if (end_ || closed_ || !link_->takes_bytes())
    {
        return 0;
    }
    const std::size_t room = world_.room_for(bytes.size());
    if (room > 0)
    {
        link_->send({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(room)}, is_late_);
        is_late_ = is_late_ && room < bytes.size();
    }
    return room;
}

void virtual_stream::write(std::span<const char> bytes, runtime::io_operation& operation)
{
    require(writing_ == 0 && !bytes.empty());
    writing_ = begin(operation);
    is_late_ = true;
    to_write_ = bytes;
    as_it_was_.assign(bytes.begin(), bytes.end());
    if (end_ || closed_)
    {
        handlers_.complete(writing_, end_ ? asio::error::broken_pipe : asio::error::operation_aborted);
    }
    else
    {
        on_room();
    }
}

void virtual_stream::on_room()
{
    if (writing_ != 0 && link_->takes_bytes())
    {
        check_what_is_written();
        link_->send(as_it_was_, true);
        handlers_.complete(writing_, {}, as_it_was_.size());
    }
    else if (writing_ != 0)
    {
        link_->wait_for_room();
    }
}

void virtual_stream::close() noexcept
{
    closed_ = true;
    link_->close();
    if (writing_ != 0)
    {
        check_what_is_written();
    }
    for (pending_handlers::ticket* each : {&connecting_, &reading_, &writing_})
    {
        handlers_.complete(*each, asio::error::operation_aborted);
    }
}

void virtual_stream::check_what_is_written() const
{
    // The operation is in flight: another thread may be copying these bytes to the kernel.
    require(std::equal(to_write_.begin(), to_write_.end(), as_it_was_.begin(), as_it_was_.end()));
}

void virtual_stream::on_bytes(std::string_view bytes)
{
    arrived_ += bytes;
    read();
}

void virtual_stream::on_end(error_code why)
{
    end_ = why;
    handlers_.complete(connecting_, why);
    if (writing_ != 0)
    {
        check_what_is_written();
        handlers_.complete(writing_, why);
    }
    read();
}

void virtual_stream::read()
{
    if (reading_ == 0)
    {
        return;
    }
    if (arrived_.empty())
    {
        if (end_)
        {
            handlers_.complete(reading_, end_);
        }
        return;
    }
    const std::size_t bytes = std::min(arrived_.size(), buffer_.size());
    std::copy_n(arrived_.begin(), bytes, buffer_.begin());
    arrived_.erase(0, bytes);
    handlers_.complete(reading_, {}, bytes);
}

} // namespace redlock::test
