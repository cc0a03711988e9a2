// SPDX-License-Identifier: BSL-1.0
// The proxy's thread: accepts connections, owns the links, and runs the test's changes.
#include "proxy.hpp"

#include "loopback.hpp"
#include "proxy_link.hpp"

#include <cstdint>
#include <future>
#include <list>
#include <stdexcept>
#include <thread>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>

namespace redlock::test
{
namespace
{

constexpr std::size_t max_links = 4096;
constexpr int max_accept_errors = 1000;
constexpr std::chrono::seconds command_limit{30};

} // namespace

class proxy::engine
{
  public:
    explicit engine(int upstream_port)
        : upstream_{asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(upstream_port)},
          acceptor_{io_}
    {
        listener listening = listen_on_loopback();
        port_ = listening.port;
        acceptor_.assign(asio::ip::tcp::v4(), listening.socket.release());
        accept();
        thread_ = std::thread{[this] { io_.run(); }};
    }

    ~engine()
    {
        io_.stop();
        thread_.join();
    }

    engine(const engine&) = delete;
    engine& operator=(const engine&) = delete;

    int port() const { return port_; }

    /// Runs a change of the faults on the proxy's thread and waits for it.
    template <class Change>
    void run(Change change)
    {
        auto done = std::make_shared<std::promise<void>>();
        std::future<void> waiting = done->get_future();
        asio::post(
            io_,
            [this, done, change = std::move(change)]() mutable
            {
                forget_finished();
                change(*this);
                done->set_value();
            });
        if (waiting.wait_for(command_limit) != std::future_status::ready)
        {
            throw std::runtime_error{"the proxy's thread doesn't answer"};
        }
    }

    /// Calls `change` with each link, in the order of their acceptance.
    template <class Change>
    void each_link(Change change)
    {
        for (const std::shared_ptr<proxy_link>& link : links_)
        {
            change(*link);
        }
    }

    /// Reads a value from the counters.
    template <class Read>
    std::size_t count(Read read)
    {
        const std::lock_guard lock{counters_.mutex};
        return read(counters_);
    }

    /// Waits until the counters satisfy a condition.
    template <class Condition>
    bool wait(std::chrono::milliseconds at_most, Condition condition)
    {
        std::unique_lock lock{counters_.mutex};
        return counters_.changed.wait_for(lock, at_most, [&] { return condition(counters_); });
    }

    /// The faults. Used on the proxy's thread only.
    proxy_faults faults;
    /// True if new connections are closed at once. Used on the proxy's thread only.
    bool refusing = false;

  private:
    void accept()
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

    void take(asio::ip::tcp::socket client)
    {
        forget_finished();
        if (refusing || links_.size() >= max_links)
        {
            const std::lock_guard lock{counters_.mutex};
            ++counters_.accepted;
            counters_.changed.notify_all();
            return;
        }
        auto link = std::make_shared<proxy_link>(std::move(client), faults, counters_);
        links_.push_back(link);
        link->start(upstream_);
    }

    void forget_finished()
    {
        links_.remove_if([](const std::shared_ptr<proxy_link>& link) { return link->finished(); });
    }

    proxy_counters counters_;
    asio::ip::tcp::endpoint upstream_;
    asio::io_context io_{1};
    asio::ip::tcp::acceptor acceptor_;
    std::list<std::shared_ptr<proxy_link>> links_;
    int accept_errors_ = 0;
    int port_ = 0;
    std::thread thread_;
};

proxy::proxy(int upstream_port) : engine_{std::make_unique<engine>(upstream_port)} {}
proxy::proxy(proxy&&) noexcept = default;
proxy& proxy::operator=(proxy&&) noexcept = default;
proxy::~proxy() = default;

int proxy::port() const
{
    return engine_->port();
}

std::string proxy::url() const
{
    return fmt::format("redis://127.0.0.1:{}", port());
}

void proxy::set_delay(std::chrono::microseconds each_way)
{
    engine_->run(
        [each_way](engine& it)
        {
            it.faults.to_server.delay = each_way;
            it.faults.to_client.delay = each_way;
        });
}

void proxy::hold_to_server()
{
    engine_->run(
        [](engine& it)
        {
            it.faults.to_server.hold = true;
            it.each_link([](proxy_link& link) { link.follow_holds(); });
        });
}

void proxy::hold_to_client()
{
    engine_->run(
        [](engine& it)
        {
            it.faults.to_client.hold = true;
            it.each_link([](proxy_link& link) { link.follow_holds(); });
        });
}

void proxy::release_held()
{
    engine_->run(
        [](engine& it)
        {
            it.faults.to_server.hold = false;
            it.faults.to_client.hold = false;
            it.each_link([](proxy_link& link) { link.follow_holds(); });
        });
}

void proxy::drop_to_server(bool on)
{
    engine_->run([on](engine& it) { it.faults.to_server.drop = on; });
}

void proxy::drop_to_client(bool on)
{
    engine_->run([on](engine& it) { it.faults.to_client.drop = on; });
}

void proxy::split_bytes(bool on)
{
    engine_->run(
        [on](engine& it)
        {
            it.faults.to_server.split = on;
            it.faults.to_client.split = on;
        });
}

void proxy::reset_connections()
{
    engine_->run([](engine& it) { it.each_link([](proxy_link& link) { link.reset(); }); });
}

void proxy::close_connections()
{
    engine_->run([](engine& it) { it.each_link([](proxy_link& link) { link.close_orderly(); }); });
}

void proxy::close_client_side_keep_server()
{
    engine_->run(
        [](engine& it)
        {
            it.each_link([](proxy_link& link) { link.close_client_side(); });
            it.faults.to_server.hold = false;
            it.faults.to_client.hold = false;
        });
}

void proxy::refuse(bool on)
{
    engine_->run([on](engine& it) { it.refusing = on; });
}

std::size_t proxy::connections() const
{
    return engine_->count([](const proxy_counters& counters) { return counters.connections; });
}

std::size_t proxy::accepted() const
{
    return engine_->count([](const proxy_counters& counters) { return counters.accepted; });
}

std::size_t proxy::bytes_to_server() const
{
    return engine_->count([](const proxy_counters& counters) { return counters.bytes_to_server; });
}

bool proxy::wait_for_bytes_to_server(std::size_t at_least, std::chrono::milliseconds at_most)
{
    return engine_->wait(
        at_most, [at_least](const proxy_counters& counters) { return counters.bytes_to_server >= at_least; });
}

bool proxy::wait_for_connections(std::size_t at_least_accepted, std::chrono::milliseconds at_most)
{
    return engine_->wait(
        at_most, [at_least_accepted](const proxy_counters& counters)
        { return counters.accepted >= at_least_accepted; });
}

bool proxy::wait_for_no_connection(std::chrono::milliseconds at_most)
{
    return engine_->wait(at_most, [](const proxy_counters& counters) { return counters.connections == 0; });
}

} // namespace redlock::test
