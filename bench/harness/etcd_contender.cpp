// SPDX-License-Identifier: BSL-1.0
// Clients of etcd's lock API.
#include "harness/server_contenders.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/json.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace redlock::bench
{

namespace
{

namespace http = boost::beast::http;
namespace json = boost::json;
using asio::ip::tcp;

constexpr int session_seconds =
    60; // The default of the Go client. A round is shorter, so nothing renews the lease.
constexpr const char* lock_name = "bG9jaw=="; // "lock" in Base64.

class etcd_contender final : public contender
{
  public:
    etcd_contender(asio::io_context& io, int port) : socket_{io}, port_{port} {}

    asio::awaitable<void> connect() override
    {
        const tcp::endpoint server{asio::ip::address_v4::loopback(), static_cast<asio::ip::port_type>(port_)};
        co_await socket_.async_connect(server, asio::use_awaitable);
        socket_.set_option(tcp::no_delay{true});
        json::object body{{"TTL", session_seconds}};
        const json::object session = co_await post("/v3/lease/grant", std::move(body));
        lease_ = session.at("ID").as_string();
    }

    asio::awaitable<grant> acquire() override
    {
        json::object body{{"name", lock_name}, {"lease", lease_}};
        const json::object locked = co_await post("/v3/lock/lock", std::move(body));
        key_ = locked.at("key").as_string();
        co_return grant::waited;
    }

    asio::awaitable<void> release() override
    {
        json::object body{{"key", key_}};
        co_await post("/v3/lock/unlock", std::move(body));
    }
    asio::awaitable<void> interrupt() override { co_return; }

    asio::awaitable<void> close() override
    {
        json::object body{{"ID", lease_}};
        co_await post("/v3/lease/revoke", std::move(body));
        socket_.close();
    }

  private:
    asio::awaitable<json::object> post(const char* path, json::object body)
    {
        http::request<http::string_body> request{http::verb::post, path, 11};
        request.set(http::field::host, "127.0.0.1");
        request.set(http::field::content_type, "application/json");
        request.body() = json::serialize(body);
        request.prepare_payload();
        co_await http::async_write(socket_, request, asio::use_awaitable);
        http::response<http::string_body> answer;
        co_await http::async_read(socket_, unread_, answer, asio::use_awaitable);
        if (answer.result() != http::status::ok)
        {
            throw std::runtime_error{
                fmt::format("etcd answered {} with {}: {}", path, answer.result_int(), answer.body())};
        }
        co_return json::parse(answer.body()).as_object();
    }

    tcp::socket socket_;
    boost::beast::flat_buffer unread_;
    int port_;
    json::string lease_;
    json::string key_;
};

} // namespace

contender_factory etcd_contenders(int port)
{
    return [port](asio::io_context& io, std::size_t) { return std::make_unique<etcd_contender>(io, port); };
}

} // namespace redlock::bench
