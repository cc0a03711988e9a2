// SPDX-License-Identifier: BSL-1.0
// The proxy's thread: accepts connections, owns the links, and runs the test's changes.
#include "proxy.hpp"

#include "loopback.hpp"

#include <cstdint>
#include <future>
#include <stdexcept>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <fmt/format.h>

namespace redlock::test
{
namespace
{

constexpr std::size_t max_links = 4096;
constexpr int max_accept_errors = 1000;
constexpr std::chrono::seconds command_limit{30};

asio::ip::tcp::endpoint on_loopback(int port)
{
    return {asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(port)};
}

} // namespace

proxy::proxy(int upstream_port, proxy_tap tap) : tap_{std::move(tap)}, upstream_{on_loopback(upstream_port)}
{
    listener listening = listen_on_loopback();
    port_ = listening.port;
    acceptor_.assign(asio::ip::tcp::v4(), listening.socket.release());
    accept();
    thread_ = std::thread{[this] { io_.run(); }};
}

proxy::~proxy()
{
    io_.stop();
    thread_.join();
}

std::string proxy::url() const
{
    return fmt::format("redis://127.0.0.1:{}", port());
}

void proxy::set_delay(std::chrono::microseconds each_way)
{
    run([=, this] { faults_.to_server.delay = faults_.to_client.delay = each_way; });
}

void proxy::hold_to_server()
{
    run([this] { set_holds(true, faults_.to_client.hold); });
}

void proxy::hold_to_client()
{
    run([this] { set_holds(faults_.to_server.hold, true); });
}

void proxy::release_held()
{
    run([this] { set_holds(false, false); });
}

void proxy::drop_to_server(bool on)
{
    run([=, this] { faults_.to_server.drop = on; });
}

void proxy::drop_to_client(bool on)
{
    run([=, this] { faults_.to_client.drop = on; });
}

void proxy::split_bytes(bool on)
{
    run([=, this] { faults_.to_server.split = faults_.to_client.split = on; });
}

void proxy::reset_connections()
{
    run([this] { on_each_link(&proxy_link::reset); });
}

void proxy::close_connections()
{
    run([this] { on_each_link(&proxy_link::close_orderly); });
}

void proxy::close_client_side_keep_server()
{
    run(
        [this]
        {
            on_each_link(&proxy_link::close_client_side);
            faults_.to_server.hold = false;
            faults_.to_client.hold = false;
        });
}

void proxy::refuse(bool on)
{
    run([=, this] { refusing_ = on; });
}

void proxy::redirect(int upstream_port)
{
    run([=, this] { upstream_ = on_loopback(upstream_port); });
}

std::size_t proxy::connections() const
{
    const std::lock_guard lock{counters_.mutex};
    return counters_.connections;
}

std::size_t proxy::accepted() const
{
    const std::lock_guard lock{counters_.mutex};
    return counters_.accepted;
}

std::size_t proxy::bytes_to_server() const
{
    const std::lock_guard lock{counters_.mutex};
    return counters_.bytes_to_server;
}

bool proxy::wait_for_bytes_to_server(std::size_t at_least, std::chrono::milliseconds at_most)
{
    return wait(at_most, [&] { return counters_.bytes_to_server >= at_least; });
}

bool proxy::wait_for_connections(std::size_t at_least_accepted, std::chrono::milliseconds at_most)
{
    return wait(at_most, [&] { return counters_.accepted >= at_least_accepted; });
}

bool proxy::wait_for_no_connection(std::chrono::milliseconds at_most)
{
    return wait(at_most, [&] { return counters_.connections == 0; });
}

/// Waits until the counters satisfy a condition.
bool proxy::wait(std::chrono::milliseconds at_most, const std::function<bool()>& condition)
{
    std::unique_lock lock{counters_.mutex};
    return counters_.changed.wait_for(lock, at_most, condition);
}

/// Runs a change on the proxy's thread and waits for it.
void proxy::run(std::function<void()> change)
{
    std::future<void> done = asio::post(
        io_, asio::use_future(
                 [this, change = std::move(change)]
                 {
                     forget_finished();
                     change();
                 }));
    if (done.wait_for(command_limit) != std::future_status::ready)
    {
        throw std::runtime_error{"the proxy's thread doesn't answer"};
    }
    done.get();
}

void proxy::set_holds(bool to_server, bool to_client)
{
    faults_.to_server.hold = to_server;
    faults_.to_client.hold = to_client;
    on_each_link(&proxy_link::follow_holds);
}

/// Calls the function of each link, in the order of their acceptance.
void proxy::on_each_link(void (proxy_link::*change)())
{
    for (const std::shared_ptr<proxy_link>& link : links_)
    {
        ((*link).*change)();
    }
}

void proxy::accept()
{
    acceptor_.async_accept(
        [this](const boost::system::error_code& error, asio::ip::tcp::socket client)
        {
            if (!error)
            {
                take(std::move(client));
            }
            else if (++accept_errors_ > max_accept_errors)
            {
                return;
            }
            accept();
        });
}

void proxy::take(asio::ip::tcp::socket client)
{
    forget_finished();
    if (refusing_ || links_.size() >= max_links)
    {
        const std::lock_guard lock{counters_.mutex};
        ++counters_.accepted;
        counters_.changed.notify_all();
        return;
    }
    links_.push_back(std::make_shared<proxy_link>(std::move(client), faults_, counters_, tap_));
    links_.back()->start(upstream_);
}

void proxy::forget_finished()
{
    links_.remove_if([](const std::shared_ptr<proxy_link>& link) { return link->finished(); });
}

} // namespace redlock::test
