// SPDX-License-Identifier: BSL-1.0
// Clients of PostgreSQL's advisory locks. They speak the server's protocol, version 3.
#include "harness/server_contenders.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/endian/conversion.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace redlock::bench
{

namespace
{

using asio::ip::tcp;
using namespace std::string_literals;

constexpr std::uint32_t protocol_version = 3 << 16;
constexpr std::uint32_t clear_text_password = 3; // The requested authentication.
constexpr char authentication = 'R';
constexpr char error = 'E';
constexpr char ready_for_query = 'Z';

std::string number(std::uint32_t value)
{
    std::array<char, sizeof value> bytes{};
    boost::endian::store_big_u32(reinterpret_cast<unsigned char*>(bytes.data()), value);
    return {bytes.data(), bytes.size()};
}

std::uint32_t number_at(std::string_view text)
{
    return boost::endian::load_big_u32(reinterpret_cast<const unsigned char*>(text.data()));
}

/// Returns a message: type, length, content. The length includes itself. The first message has no type.
std::string message_of(std::string_view type, std::string_view content)
{
    const auto length = static_cast<std::uint32_t>(sizeof(std::uint32_t) + content.size());
    return fmt::format("{}{}{}", type, number(length), content);
}

class postgres_contender final : public contender
{
  public:
    postgres_contender(asio::io_context& io, int port, std::string user, std::string password)
        : socket_{io}, port_{port}, user_{std::move(user)}, password_{std::move(password)}
    {
    }

    asio::awaitable<void> connect() override
    {
        const tcp::endpoint server{asio::ip::address_v4::loopback(), static_cast<asio::ip::port_type>(port_)};
        co_await socket_.async_connect(server, asio::use_awaitable);
        socket_.set_option(tcp::no_delay{true});
        co_await send(
            message_of("", number(protocol_version) + "user\0"s + user_ + "\0database\0postgres\0\0"s));
        co_await wait_until_ready();
    }

    asio::awaitable<grant> acquire() override
    {
        co_await query("SELECT pg_advisory_lock(1)");
        co_return grant::waited;
    }

    asio::awaitable<void> release() override { co_await query("SELECT pg_advisory_unlock(1)"); }
    asio::awaitable<void> interrupt() override { co_return; }

    asio::awaitable<void> close() override
    {
        socket_.close();
        co_return;
    }

  private:
    struct message
    {
        char type;
        std::string content;
    };

    asio::awaitable<void> query(std::string text)
    {
        co_await send(message_of("Q", text + '\0'));
        co_await wait_until_ready();
    }

    asio::awaitable<void> send(std::string bytes)
    {
        co_await asio::async_write(socket_, asio::buffer(bytes), asio::use_awaitable);
    }

    asio::awaitable<void> wait_until_ready()
    {
        message next = co_await receive();
        while (next.type != ready_for_query)
        {
            if (next.type == error)
            {
                throw std::runtime_error{fmt::format("PostgreSQL reports: {}", next.content)};
            }
            if (next.type == authentication && number_at(next.content) == clear_text_password)
            {
                co_await send(message_of("p", password_ + '\0'));
            }
            next = co_await receive();
        }
    }

    asio::awaitable<message> receive()
    {
        constexpr std::size_t head = 1 + sizeof(std::uint32_t);
        co_await fill(head);
        const std::size_t size = 1 + number_at(std::string_view{unread_}.substr(1));
        co_await fill(size);
        message received{unread_.front(), unread_.substr(head, size - head)};
        unread_.erase(0, size);
        co_return received;
    }

    /// Reads until this many bytes are unread.
    asio::awaitable<void> fill(std::size_t size)
    {
        if (unread_.size() < size)
        {
            co_await asio::async_read(
                socket_, asio::dynamic_buffer(unread_), asio::transfer_at_least(size - unread_.size()),
                asio::use_awaitable);
        }
    }

    tcp::socket socket_;
    std::string unread_;
    int port_;
    std::string user_;
    std::string password_;
};

} // namespace

contender_factory postgres_contenders(int port, std::string user, std::string password)
{
    return [=](asio::io_context& io, std::size_t)
    { return std::make_unique<postgres_contender>(io, port, user, password); };
}

} // namespace redlock::bench
