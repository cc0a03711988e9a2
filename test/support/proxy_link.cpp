// SPDX-License-Identifier: BSL-1.0
// The pipes of one proxied connection. Everything that arrives becomes an item with a due time; the end of a connection
// is an item, too, so it can't overtake the bytes ahead of it.
#include "proxy_link.hpp"

#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/write.hpp>

namespace redlock::test
{
namespace
{

/// Makes the next close of the socket send RST.
void reset_socket(asio::ip::tcp::socket& socket)
{
    boost::system::error_code ignored;
    socket.set_option(asio::socket_base::linger{true, 0}, ignored);
    socket.close(ignored);
}

} // namespace

proxy_link::proxy_link(
    asio::ip::tcp::socket client, const proxy_faults& faults, proxy_counters& counters, const proxy_tap& tap)
    : counters_{counters},
      tap_{tap},
      client_{std::move(client)},
      server_{client_.get_executor()},
      to_server_{client_, server_, faults.to_server},
      to_client_{server_, client_, faults.to_client}
{
    boost::system::error_code ignored;
    client_.set_option(asio::ip::tcp::no_delay{true}, ignored);
    to_server_.held = faults.to_server.hold;
    to_client_.held = faults.to_client.hold;
    const std::lock_guard lock{counters_.mutex};
    number_ = counters_.accepted++;
    ++counters_.connections;
    counters_.changed.notify_all();
}

void proxy_link::start(const asio::ip::tcp::endpoint& upstream)
{
    to_client_.writing = writer::idle;
    read(to_server_);
    server_.async_connect(
        upstream,
        [self = shared_from_this()](const boost::system::error_code& error) { self->connected(error); });
}

void proxy_link::connected(const boost::system::error_code& error)
{
    if (!server_.is_open())
    {
        return;
    }
    if (error)
    {
        reset();
        return;
    }
    boost::system::error_code ignored;
    server_.set_option(asio::ip::tcp::no_delay{true}, ignored);
    if (to_server_.writing == writer::unconnected)
    {
        to_server_.writing = writer::idle;
    }
    read(to_client_);
    pump(to_server_);
}

void proxy_link::follow_holds()
{
    for (pipe* direction : {&to_server_, &to_client_})
    {
        direction->held = direction->faults.hold;
        pump(*direction);
    }
}

void proxy_link::reset()
{
    reset_socket(client_);
    reset_socket(server_);
    close_both();
}

void proxy_link::close_orderly()
{
    client_has_gone();
    for (pipe* direction : {&to_server_, &to_client_})
    {
        boost::system::error_code ignored;
        direction->to.shutdown(asio::socket_base::shutdown_send, ignored);
        const bool was_connected = direction->writing != writer::unconnected;
        end_writing(*direction);
        if (!was_connected)
        {
            server_.close(ignored);
            to_client_.reading = reader::ended;
        }
    }
    finish_if_over();
}

void proxy_link::close_client_side()
{
    if (!client_.is_open())
    {
        return;
    }
    client_has_gone();
    reset_socket(client_);
    end_writing(to_client_);
    if (to_server_.reading != reader::ended)
    {
        to_server_.reading = reader::ended;
        push(to_server_, {}, ending::fin);
        pump(to_server_);
    }
    read(to_client_);
}

bool proxy_link::finished() const
{
    return !client_.is_open() && !server_.is_open();
}

void proxy_link::read(pipe& direction)
{
    const bool connecting = &direction == &to_client_ && to_server_.writing == writer::unconnected;
    if (connecting || direction.reading != reader::idle || direction.queued >= queue_limit ||
        !direction.from.is_open())
    {
        return;
    }
    direction.reading = reader::waiting;
    direction.from.async_read_some(
        asio::buffer(direction.input),
        [self = shared_from_this(), &direction](const boost::system::error_code& error, std::size_t count)
        { self->on_read(direction, error, count); });
}

void proxy_link::on_read(pipe& direction, const boost::system::error_code& error, std::size_t count)
{
    if (direction.reading == reader::ended || !direction.from.is_open())
    {
        return;
    }
    const bool from_client = &direction == &to_server_;
    if (error)
    {
        direction.reading = reader::ended;
        if (from_client)
        {
            client_has_gone();
        }
        push(direction, {}, error == asio::error::eof ? ending::fin : ending::reset);
    }
    else
    {
        direction.reading = reader::idle;
        if (from_client)
        {
            const std::lock_guard lock{counters_.mutex};
            counters_.bytes_to_server += count;
            counters_.changed.notify_all();
        }
        else if (tap_)
        {
            tap_(number_, false, {direction.input.data(), count});
        }
        push(direction, std::string{direction.input.data(), count}, ending::none);
    }
    pump(direction);
    read(direction);
    finish_if_over();
}

void proxy_link::push(pipe& direction, std::string bytes, ending end)
{
    if (direction.faults.drop || direction.writing == writer::ended)
    {
        return;
    }
    if (tap_ && &direction == &to_server_ && !bytes.empty())
    {
        tap_(number_, true, bytes);
    }
    direction.queued += bytes.size();
    direction.queue.push_back({clock::now() + direction.faults.delay, std::move(bytes), end});
}

void proxy_link::pump(pipe& direction)
{
    if (direction.writing != writer::idle || direction.held || direction.queue.empty())
    {
        return;
    }
    item& front = direction.queue.front();
    if (front.due > clock::now())
    {
        direction.timer.expires_at(front.due);
        direction.timer.async_wait(
            [self = shared_from_this(), &direction](const boost::system::error_code& error)
            {
                if (!error)
                {
                    self->pump(direction);
                }
            });
        return;
    }
    if (front.end != ending::none)
    {
        deliver_end(direction, front.end);
        return;
    }
    if (direction.faults.split && front.bytes.size() > 1)
    {
        direction.output.assign(1, front.bytes.front());
        front.bytes.erase(0, 1);
    }
    else
    {
        direction.output = std::move(front.bytes);
        direction.queue.pop_front();
    }
    direction.queued -= direction.output.size();
    direction.writing = writer::writing;
    asio::async_write(
        direction.to, asio::buffer(direction.output),
        [self = shared_from_this(), &direction](const boost::system::error_code& error, std::size_t)
        { self->on_written(direction, error); });
}

void proxy_link::on_written(pipe& direction, const boost::system::error_code& error)
{
    if (direction.writing != writer::writing)
    {
        return;
    }
    direction.writing = writer::idle;
    if (error)
    {
        // The reader of the other direction learns how that side ended, and handles it.
        end_writing(direction);
    }
    pump(direction);
    read(direction);
    finish_if_over();
}

void proxy_link::end_writing(pipe& direction)
{
    direction.writing = writer::ended;
    direction.queue.clear();
    direction.queued = 0;
    direction.timer.cancel();
}

void proxy_link::deliver_end(pipe& direction, ending end)
{
    if (end == ending::reset)
    {
        reset();
        return;
    }
    boost::system::error_code ignored;
    direction.to.shutdown(asio::socket_base::shutdown_send, ignored);
    end_writing(direction);
    finish_if_over();
}

void proxy_link::client_has_gone()
{
    if (std::exchange(counted_, false))
    {
        const std::lock_guard lock{counters_.mutex};
        --counters_.connections;
        counters_.changed.notify_all();
    }
}

void proxy_link::finish_if_over()
{
    const auto over = [](const pipe& direction)
    { return direction.reading == reader::ended && direction.writing == writer::ended; };
    if (over(to_server_) && over(to_client_))
    {
        close_both();
    }
}

void proxy_link::close_both()
{
    client_has_gone();
    boost::system::error_code ignored;
    client_.close(ignored);
    server_.close(ignored);
    for (pipe* direction : {&to_server_, &to_client_})
    {
        direction->reading = reader::ended;
        end_writing(*direction);
    }
}

} // namespace redlock::test
