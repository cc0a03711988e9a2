// SPDX-License-Identifier: BSL-1.0
// The blocking client: it polls before every read, with one deadline for a whole answer.
#include "control_client.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ostream>

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace redlock::test
{
namespace
{

using std::chrono::steady_clock;

constexpr std::size_t max_line_size = 64 * 1024;
constexpr std::size_t max_bulk_size = 64 * 1024 * 1024;
constexpr std::size_t max_elements = 1'000'000;
constexpr int deepest_nesting = 8;

std::int64_t number_in(std::string_view text)
{
    std::int64_t number = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
    if (result.ec != std::errc{} || result.ptr != text.data() + text.size())
    {
        throw connection_lost{EPROTO, fmt::format("'{}' is not a number", text)};
    }
    return number;
}

void connect(const unique_fd& socket, const sockaddr* address, socklen_t size, const std::string& where)
{
    if (::connect(socket.get(), address, size) != 0)
    {
        throw connection_lost{errno, fmt::format("connecting to {}", where)};
    }
}

} // namespace

std::string describe(const reply& answer)
{
    switch (answer.type)
    {
    case reply::kind::null:
        return "(null)";
    case reply::kind::string:
        return fmt::format("\"{}\"", answer.text);
    case reply::kind::integer:
        return fmt::format("(integer) {}", answer.integer);
    case reply::kind::error:
        return fmt::format("(error) {}", answer.text);
    case reply::kind::array:
        break;
    }
    std::string text = "[";
    for (const reply& element : answer.elements)
    {
        text += text.size() > 1 ? ", " : "";
        text += describe(element);
    }
    return text + "]";
}

std::ostream& operator<<(std::ostream& out, const reply& answer)
{
    return out << describe(answer);
}

connection_lost::connection_lost(int error, const std::string& what)
    : std::runtime_error{fmt::format(
          "{}: {}", what, error == 0 ? "the other side ended the connection" : std::strerror(error))},
      error_{error}
{
}

control_client::control_client(unique_fd socket, std::chrono::milliseconds limit)
    : socket_{std::move(socket)}, limit_{limit}
{
    const timeval send_timeout{limit.count() / 1000, static_cast<suseconds_t>(limit.count() % 1000 * 1000)};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &send_timeout, sizeof send_timeout);
}

control_client control_client::to_port(int port, std::chrono::milliseconds limit)
{
    control_client client{open_socket(AF_INET), limit};
    const int on = 1;
    ::setsockopt(client.socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const sockaddr_in address = loopback_address(port);
    connect(
        client.socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address,
        fmt::format("127.0.0.1:{}", port));
    return client;
}

control_client control_client::to_path(const std::string& path, std::chrono::milliseconds limit)
{
    control_client client{open_socket(AF_UNIX), limit};
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
    {
        throw std::invalid_argument{fmt::format("{} is too long for a unix socket", path)};
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    connect(client.socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address, path);
    return client;
}

std::string on_the_wire(const std::vector<std::string_view>& words)
{
    std::string request = fmt::format("*{}\r\n", words.size());
    for (const std::string_view word : words)
    {
        request += fmt::format("${}\r\n{}\r\n", word.size(), word);
    }
    return request;
}

reply control_client::command(const std::vector<std::string_view>& words)
{
    send(words);
    return receive();
}

void control_client::send(const std::vector<std::string_view>& words)
{
    send_bytes(on_the_wire(words));
}

void control_client::send_bytes(std::string_view bytes)
{
    while (!bytes.empty())
    {
        const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
        {
            continue;
        }
        if (sent < 0)
        {
            throw connection_lost{errno == EAGAIN ? ETIMEDOUT : errno, "sending"};
        }
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
}

reply control_client::receive()
{
    return receive(steady_clock::now() + limit_, 0);
}

bool control_client::wait_readable(std::chrono::milliseconds at_most)
{
    return !buffer_.empty() || wait_for(socket_.get(), POLLIN, steady_clock::now() + at_most);
}

std::string control_client::receive_until_end(std::size_t limit)
{
    const auto deadline = steady_clock::now() + limit_;
    while (buffer_.size() < limit && fill(deadline))
    {
    }
    const std::size_t count = std::min(limit, buffer_.size());
    const std::string result = buffer_.substr(0, count);
    buffer_.erase(0, count);
    return result;
}

/// Reads once. False at an orderly end of the connection.
bool control_client::fill(steady_clock::time_point deadline)
{
    std::array<char, 16384> input;
    while (true)
    {
        if (!wait_for(socket_.get(), POLLIN, deadline))
        {
            throw connection_lost{ETIMEDOUT, fmt::format("no answer within {} ms", limit_.count())};
        }
        const ssize_t count = ::recv(socket_.get(), input.data(), input.size(), 0);
        if (count >= 0)
        {
            buffer_.append(input.data(), static_cast<std::size_t>(count));
            return count > 0;
        }
        if (errno != EINTR)
        {
            throw connection_lost{errno, "waiting for an answer"};
        }
    }
}

std::string control_client::line(steady_clock::time_point deadline)
{
    std::size_t end = 0;
    while ((end = buffer_.find("\r\n")) == std::string::npos)
    {
        if (buffer_.size() > max_line_size)
        {
            throw connection_lost{EPROTO, "an answer's line has no end"};
        }
        if (!fill(deadline))
        {
            throw connection_lost{0, "waiting for an answer"};
        }
    }
    std::string result = buffer_.substr(0, end);
    buffer_.erase(0, end + 2);
    return result;
}

std::string control_client::bytes(std::size_t count, steady_clock::time_point deadline)
{
    while (buffer_.size() < count + 2)
    {
        if (!fill(deadline))
        {
            throw connection_lost{0, "in the middle of an answer"};
        }
    }
    std::string result = buffer_.substr(0, count);
    buffer_.erase(0, count + 2);
    return result;
}

reply control_client::receive(steady_clock::time_point deadline, int depth)
{
    const std::string head = line(deadline);
    const std::string_view rest = head.empty() ? std::string_view{} : std::string_view{head}.substr(1);
    switch (head.empty() ? '\0' : head.front())
    {
    case '+':
        return {.type = reply::kind::string, .text = std::string{rest}};
    case '-':
        return {.type = reply::kind::error, .text = std::string{rest}};
    case ':':
        return {.type = reply::kind::integer, .integer = number_in(rest)};
    case '$':
    case '*':
        break;
    default:
        throw connection_lost{EPROTO, fmt::format("'{}' begins no RESP2 answer", head)};
    }
    const std::int64_t size = number_in(rest);
    if (size < 0)
    {
        return {};
    }
    const bool is_array = head.front() == '*';
    if (static_cast<std::uint64_t>(size) > (is_array ? max_elements : max_bulk_size) ||
        depth > deepest_nesting)
    {
        throw connection_lost{EPROTO, fmt::format("an answer beyond the limits: '{}'", head)};
    }
    reply result;
    if (!is_array)
    {
        result.type = reply::kind::string;
        result.text = bytes(static_cast<std::size_t>(size), deadline);
        return result;
    }
    result.type = reply::kind::array;
    for (std::int64_t element = 0; element < size; ++element)
    {
        result.elements.push_back(receive(deadline, depth + 1));
    }
    return result;
}

} // namespace redlock::test
