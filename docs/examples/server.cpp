// SPDX-License-Identifier: BSL-1.0
// An HTTP server that transfers money between accounts. Any number of such servers can share the accounts: each
// transfer locks both of its accounts. The usage is above `main`.
#include <redlock/redlock.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/url.hpp>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace fs = std::filesystem;
using namespace std::chrono_literals;
using request = http::request<http::empty_body>;
using response = http::response<http::string_body>;

constexpr int connections_at_once = 128;
constexpr int disk_threads = 4;
constexpr std::size_t largest_request = 8192; // In bytes.
constexpr std::int64_t largest_amount = 1'000'000'000;

/// The response to the client instead of a result.
struct refusal : std::runtime_error
{
    refusal(http::status told, const std::string& why) : std::runtime_error{why}, status{told} {}
    http::status status;
};

void require(bool so, http::status otherwise, const std::string& why)
{
    if (!so)
    {
        throw refusal{otherwise, why};
    }
}

struct order
{
    std::string from;
    std::string to;
    std::int64_t amount = 0;
};

/// The accounts: a file for each, with its balance. Reading, computing and writing are protected only by the locks.
class accounts
{
  public:
    explicit accounts(fs::path directory) : directory_{std::move(directory)} {}

    std::int64_t balance(const std::string& name) const
    {
        std::int64_t value = 0;
        std::ifstream in{file(name)};
        require(!!(in >> value), http::status::not_found, "there is no account " + name);
        return value;
    }

    /// Requires the leases of both accounts. The slow part is done first, in files that no other process writes; then
    /// come the last check of the leases and, right after it, the change. Only a resource that checks a token itself
    /// could also exclude a pause of this process between the two. (If the machine fails between the renames, half of
    /// the transfer is done: a database has transactions for that.)
    std::string transfer(const order& wanted, const redlock::lease& one, const redlock::lease& other) const
    {
        const std::int64_t payer = balance(wanted.from) - wanted.amount;
        const std::int64_t payee = balance(wanted.to) + wanted.amount;
        require(payer >= 0, http::status::unprocessable_entity, wanted.from + " doesn't have as much");
        // The owner id is new for each lease, so even a transfer that has lost its lock doesn't write to these files.
        const std::string draft = "." + std::string{one.owner_id()};
        write(wanted.from + draft, payer);
        write(wanted.to + draft, payee);
        if (!one.valid() || !other.valid())
        {
            fs::remove(file(wanted.from + draft));
            fs::remove(file(wanted.to + draft));
            throw refusal{http::status::service_unavailable, "lost the lock; nothing was changed: try again"};
        }
        fs::rename(file(wanted.from + draft), file(wanted.from));
        fs::rename(file(wanted.to + draft), file(wanted.to));
        return wanted.from + ' ' + std::to_string(payer) + '\n' + wanted.to + ' ' + std::to_string(payee);
    }

  private:
    fs::path file(const std::string& name) const { return directory_ / name; }

    void write(const std::string& name, std::int64_t value) const
    {
        std::ofstream out;
        out.exceptions(std::ofstream::failbit | std::ofstream::badbit);
        out.open(file(name));
        out << value << std::endl;
    }

    fs::path directory_;
};

/// The name of a file and of a lock: only characters that are harmless in both.
std::string account_name(std::string_view text)
{
    const bool harmless = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == text.npos;
    require(
        harmless && !text.empty() && text.size() <= 64, http::status::bad_request,
        "an account has 1 to 64 of the characters a-z, 0-9 and -");
    return std::string{text};
}

order parse_order(const boost::urls::url_view& target)
{
    order wanted;
    std::string amount;
    for (const auto& field : target.params())
    {
        require(
            field.key == "from" || field.key == "to" || field.key == "amount", http::status::bad_request,
            "a transfer has from, to and amount");
        (field.key == "from" ? wanted.from : field.key == "to" ? wanted.to : amount) = field.value;
    }
    wanted = {account_name(wanted.from), account_name(wanted.to), 0};
    require(wanted.from != wanted.to, http::status::bad_request, "from and to are the same account");
    const char* const end = amount.data() + amount.size();
    const auto parsed = std::from_chars(amount.data(), end, wanted.amount);
    const bool is_number = parsed.ec == std::errc{} && parsed.ptr == end;
    require(
        is_number && wanted.amount >= 1 && wanted.amount <= largest_amount, http::status::bad_request,
        "the amount is a number from 1 to 1000000000");
    return wanted;
}

/// Returns the HTTP response for an acquire without a lock. Nothing has been changed in any of these cases.
refusal without_lock(redlock::error_code why)
{
    if (why == redlock::errc::held_by_other)
    {
        return {http::status::conflict, "others are changing this account: try again"};
    }
    if (why == redlock::errc::no_quorum || why == redlock::errc::validity_exhausted)
    {
        return {http::status::service_unavailable, "too few lock servers answered in time: try again later"};
    }
    return {http::status::internal_server_error, why.message()};
}

/// Rethrows from `io.run()` what `asio::detached` would ignore.
void rethrow(std::exception_ptr failure)
{
    if (failure)
    {
        std::rethrow_exception(failure);
    }
}

/// A single thread does everything except the work on the files.
class server
{
  public:
    server(asio::io_context& io, std::uint16_t port, fs::path directory, redlock::config options)
        : acceptor_{io, {asio::ip::address_v4::loopback(), port}},
          all_ended_{io, asio::steady_timer::time_point::max()},
          accounts_{std::move(directory)},
          locks_{io, std::move(options)}
    {
    }

    /// Serves until SIGTERM or SIGINT. Requests in progress are finished.
    asio::awaitable<void> run()
    {
        const auto executor = co_await asio::this_coro::executor;
        asio::signal_set stop{executor, SIGINT, SIGTERM};
        for (int index = 0; index < connections_at_once; ++index)
        {
            auto on_end = [this](std::exception_ptr failure)
            {
                rethrow(failure);
                ++ended_;
                all_ended_.cancel();
            };
            asio::co_spawn(executor, accept(), on_end);
        }
        std::cout << "listening on " << acceptor_.local_endpoint() << std::endl;
        co_await stop.async_wait(asio::deferred);

        const auto token = asio::as_tuple(asio::deferred);
        stopping_ = true;
        acceptor_.close();
        for (beast::tcp_stream* stream : idle_)
        {
            stream->cancel();
        }
        while (ended_ < connections_at_once)
        {
            co_await all_ended_.async_wait(token);
        }
        // The ttl frees a lock whose release isn't confirmed, so that isn't an error.
        co_await locks_.async_shutdown(token);
    }

  private:
    /// Accepts one connection after the other. The number of these coroutines limits the number of connections.
    asio::awaitable<void> accept()
    {
        const auto executor = co_await asio::this_coro::executor;
        const auto token = asio::as_tuple(asio::use_awaitable);
        while (!stopping_)
        {
            beast::tcp_stream stream{executor};
            const auto accepted = co_await acceptor_.async_accept(stream.socket(), token);
            if (!std::get<0>(accepted))
            {
                co_await serve(stream);
            }
            else if (!stopping_)
            {
                // For example, out of file descriptors: that may be temporary.
                asio::steady_timer pause{executor, 100ms};
                co_await pause.async_wait(token);
            }
        }
    }

    /// Handles one request after the other, until the client closes, is too slow, or sends something that isn't HTTP.
    asio::awaitable<void> serve(beast::tcp_stream& stream)
    {
        const auto token = asio::as_tuple(asio::use_awaitable);
        beast::flat_buffer buffer{largest_request};
        bool more = true;
        while (more && !stopping_)
        {
            http::request_parser<http::empty_body> parser;
            stream.expires_after(30s);
            idle_.insert(&stream);
            const auto received = co_await http::async_read(stream, buffer, parser, token);
            idle_.erase(&stream);
            if (std::get<0>(received))
            {
                break;
            }
            response answer = co_await respond(parser.get());
            more = answer.keep_alive();
            stream.expires_after(30s);
            const auto sent = co_await http::async_write(stream, answer, token);
            more = more && !std::get<0>(sent);
        }
        beast::error_code ignored;
        stream.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    }

    asio::awaitable<response> respond(const request& asked)
    {
        response answer{http::status::ok, asked.version()};
        const auto refuse = [&answer](const refusal& why)
        {
            answer.result(why.status);
            answer.body() = why.what();
        };
        try
        {
            answer.body() = co_await handle(asked);
        }
        catch (const refusal& refused)
        {
            refuse(refused);
        }
        catch (const redlock::system_error& failure)
        {
            refuse(without_lock(failure.code()));
        }
        catch (const std::exception& failure)
        {
            std::cerr << asked.target() << ": " << failure.what() << '\n';
            refuse({http::status::internal_server_error, "something is wrong here"});
        }
        answer.body() += '\n';
        answer.set(http::field::content_type, "text/plain");
        answer.keep_alive(asked.keep_alive() && !stopping_);
        answer.prepare_payload();
        co_return answer;
    }

    asio::awaitable<std::string> handle(const request& asked)
    {
        constexpr std::string_view one_account = "/accounts/";
        const auto parsed = boost::urls::parse_origin_form({asked.target().data(), asked.target().size()});
        const std::string path = parsed ? std::string{parsed->path()} : std::string{};
        if (asked.method() == http::verb::post && path == "/transfer")
        {
            const order wanted = parse_order(*parsed);
            co_return co_await transfer(wanted);
        }
        if (asked.method() == http::verb::get && path.starts_with(one_account))
        {
            const std::string name = account_name(std::string_view{path}.substr(one_account.size()));
            co_return name + ' ' + std::to_string(accounts_.balance(name));
        }
        throw refusal{
            http::status::not_found, "try POST /transfer?from=&to=&amount= or GET /accounts/<name>"};
    }

    asio::awaitable<std::string> transfer(const order& wanted)
    {
        // In the order of the names, whichever account pays, so that transfers can't deadlock.
        const std::string first = "account:" + std::min(wanted.from, wanted.to);
        const std::string second = "account:" + std::max(wanted.from, wanted.to);
        // The first lease ages while the second one is acquired: the ttl is long enough for that and for the work.
        const redlock::acquire_options options{.ttl = 10s, .wait = 3s};
        redlock::lease one = co_await locks_.async_acquire(first, options);
        redlock::lease other = co_await locks_.async_acquire(second, options);

        asio::awaitable<std::string> work = on_disk(wanted, one, other);
        std::string done = co_await asio::co_spawn(disk_, std::move(work), asio::use_awaitable);

        // Confirmed or not, the transfer is done. (After an exception above, ~lease releases.)
        const auto token = asio::as_tuple(asio::deferred);
        co_await other.async_release(token);
        co_await one.async_release(token);
        co_return done;
    }

    /// Runs on a thread that may wait for the disk. A lease can be observed from any thread.
    asio::awaitable<std::string>
    on_disk(const order& wanted, const redlock::lease& one, const redlock::lease& other)
    {
        std::string done = accounts_.transfer(wanted, one, other);
        co_return done;
    }

    asio::ip::tcp::acceptor acceptor_;
    asio::steady_timer all_ended_; // Never expires; it is cancelled when one of them ends.
    std::set<beast::tcp_stream*> idle_;
    bool stopping_ = false;
    int ended_ = 0;
    accounts accounts_;
    redlock::lock_manager locks_;
    asio::thread_pool disk_{disk_threads};
};

/// example_server 8080 /var/lib/accounts redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
/// curl http://127.0.0.1:8080/accounts/alice
/// curl -X POST 'http://127.0.0.1:8080/transfer?from=alice&to=bob&amount=5'
int main(int argc, char** argv)
{
    if (argc < 4)
    {
        std::cerr << "usage: " << argv[0] << " <port, 0 for any> <directory of the accounts> <master>...\n";
        return 64;
    }
    try
    {
        redlock::config options;
        options.masters = {argv + 3, argv + argc};
        options.node_timeout = 500ms;   // Ten times the default: this machine may be slow.
        options.retry_delay_max = 50ms; // Held only for a moment, so retrying soon is worthwhile.
        asio::io_context io{1};
        server here{io, static_cast<std::uint16_t>(std::stoul(argv[1])), argv[2], options};
        asio::co_spawn(io, here.run(), rethrow);
        io.run();
    }
    catch (const std::exception& failure)
    {
        std::cerr << argv[0] << ": " << failure.what() << '\n';
        return 1;
    }
}
