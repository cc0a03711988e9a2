// SPDX-License-Identifier: BSL-1.0
// How users write masters, options, resources and tokens. Most of it is shown by compiling.
#include <redlock/redlock.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <future>
#include <list>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// Users may have these names: an alias in a public header would make this fail to compile.
namespace redlock::asio
{
inline constexpr bool is_free = true;
} // namespace redlock::asio
namespace redlock::boost
{
} // namespace redlock::boost
namespace redlock::fmt
{
} // namespace redlock::fmt

namespace
{

using namespace std::chrono_literals;
using redlock::config;
using redlock::lock_manager;
using redlock::master_list;

const std::vector<std::string> expected{"redis://10.0.0.1:6379", "redis://10.0.0.2:6379"};

std::vector<std::string> names(const master_list& masters)
{
    std::vector<std::string> found;
    for (const redlock::master& each : masters)
    {
        found.push_back(each.name());
    }
    return found;
}

const std::string first = "redis://10.0.0.1";
const std::string second = "redis://10.0.0.2";
const std::vector<std::string> strings{first, second};

} // namespace

TEST_CASE("a list of masters is made from ranges, arrays and text")
{
    const std::vector<redlock::master> masters{first, second};
    const std::list<std::string_view> views{first, second};
    const std::array<const char*, 2> literals{"redis://10.0.0.1", "redis://10.0.0.2"};
    std::array<const char*, 3> arguments{"program", "redis://10.0.0.1", "redis://10.0.0.2"};
    CHECK(names({"redis://10.0.0.1", "redis://10.0.0.2"}) == expected);
    CHECK(names({first, second}) == expected);
    CHECK(names({std::string_view{first}, std::string_view{second}}) == expected);
    CHECK(names(strings) == expected);
    CHECK(names(masters) == expected);
    CHECK(names(views) == expected);
    CHECK(names(literals) == expected);
    CHECK(names(std::span{arguments}.subspan(1)) == expected);
    CHECK(names({arguments.begin() + 1, arguments.end()}) == expected);
    CHECK(
        names(strings | std::views::filter([](const std::string& each) { return !each.empty(); })) ==
        expected);
    CHECK(names("redis://10.0.0.1,redis://10.0.0.2") == expected);
    CHECK(names(first + "," + second) == expected);
    CHECK(names(" redis://10.0.0.1, redis://10.0.0.2\r\n") == expected);
    CHECK(names(std::string_view{"redis://10.0.0.1,redis://10.0.0.2"}) == expected);
    CHECK(names({redlock::tcp_address{.host = "10.0.0.1"}, "redis://10.0.0.2"}) == expected);
    CHECK(names("redis://10.0.0.1") == std::vector<std::string>{expected.front()});
    for (const char* wrong :
         {"", ",", "redis://10.0.0.1,", ",redis://10.0.0.1", "redis://10.0.0.1, ,redis://10.0.0.2"})
    {
        CAPTURE(wrong);
        CHECK_THROWS_AS(master_list(wrong), redlock::system_error);
    }
}

TEST_CASE("a manager is constructed from masters and options, on an executor or a context")
{
    boost::asio::io_context io;
    boost::asio::thread_pool pool{1};
    const boost::asio::any_io_executor any = io.get_executor();
    const config named{.masters = strings};
    const std::vector<redlock::master> masters{first, second};
    const lock_manager managers[]{
        {io, {"redis://10.0.0.1", "redis://10.0.0.2"}},
        {io, {"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"}},
        {io, {"redis://10.0.0.1"}},
        {io, {first, second}},
        {io, {std::string_view{first}, std::string_view{second}}},
        {io, strings},
        {io, masters},
        {io, "redis://10.0.0.1,redis://10.0.0.2"},
        {io, first},
        {io, std::string_view{first}},
        {io, {redlock::tcp_address{.host = "10.0.0.1"}, redlock::unix_address{.path = "/run/redis.sock"}}},
        {io, {.masters = {"redis://10.0.0.1", "redis://10.0.0.2"}}},
        {io, {.masters = {"redis://10.0.0.1"}}},
        {io, {.masters = {first, second}, .key_prefix = "billing:"}},
        {io, {.masters = strings}},
        {io, {.masters = masters, .node_timeout = 20ms}},
        {io, {.masters = "redis://10.0.0.1,redis://10.0.0.2"}},
        {io, {.masters = first}},
        {io, named},
        {io.get_executor(), strings},
        {any, {.masters = strings}},
        {pool, {.masters = strings}},
        {pool.get_executor(), {"redis://10.0.0.1", "redis://10.0.0.2"}},
        {boost::asio::make_strand(pool), {.masters = strings}},
    };
    CHECK(std::size(managers) == 24);
    pool.stop();
}

static_assert(!std::is_constructible_v<redlock::resource_name, std::nullptr_t>);

TEST_CASE("a resource is any text, and options are set by name")
{
    boost::asio::io_context io;
    lock_manager locks{io, strings};
    const std::string name = "invoice:42";
    const std::string_view view = name;
    const char* const literal = "invoice:42";
    redlock::report report;
    const auto later = std::tuple{
        locks.async_acquire(name, 10s),
        locks.async_acquire(view, {.ttl = 10s}),
        locks.async_acquire(literal, {.ttl = 10s, .wait = 1s}, report),
        locks.async_acquire("invoice:42", {.ttl = 10s}),
        locks.async_acquire(std::string{"invoice:42"}, 10s, report),
        locks.async_acquire(std::filesystem::path{"/srv/shared/invoice"}, 10s),
        locks.async_try_acquire(view, 10s),
        locks.async_try_acquire(view, {.ttl = 10s}),
        locks.async_try_acquire(view, {.ttl = 10s}, report),
        locks.async_acquire_kept(view, {.ttl = 10s, .max_hold = 1h}),
        locks.async_inspect(view)};
    CHECK(std::tuple_size_v<std::remove_const_t<decltype(later)>> == 11);
}

TEST_CASE("every token that starts at once accepts a temporary body that owns something")
{
    boost::asio::io_context io;
    lock_manager locks{io, strings};
    const redlock::keep_options keeping{.ttl = 10s, .max_hold = 1h};
    const auto body = []
    {
        return [owned = std::make_unique<int>(42)](redlock::lease&) -> boost::asio::awaitable<int>
        {
            const int result = *owned;
            co_return result;
        };
    };
    locks.async_with_lock("stock", keeping, body(), boost::asio::detached);
    locks.async_with_lock("stock", keeping, body(), [](std::exception_ptr, int) {});
    const std::future<int> future = locks.async_with_lock("stock", keeping, body(), boost::asio::use_future);
    CHECK(future.valid());
    boost::asio::any_completion_handler<void(std::exception_ptr, int)> erased{[](std::exception_ptr, int) {}};
    locks.async_with_lock("stock", keeping, body(), std::move(erased));
    // Tokens that start the operation later need a body that outlives the call.
    auto named = body();
    const auto awaited = locks.async_with_lock("stock", keeping, std::ref(named));
    const auto deferred = locks.async_with_lock("stock", keeping, std::ref(named), boost::asio::deferred);
    CHECK(redlock::asio::is_free);
}

TEST_CASE("moving an object to itself leaves it unchanged")
{
    boost::asio::io_context io;
    lock_manager locks{io, strings};
    lock_manager& same = locks;
    locks = std::move(same);
    // A moved-from manager would return the system executor.
    CHECK(locks.get_executor() == io.get_executor());
}
