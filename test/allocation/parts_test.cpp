// SPDX-License-Identifier: BSL-1.0
// Failed allocations in parts that work alone: the parser, options and URLs, and the real environment.
#include "allocation/failing_allocations.hpp"
#include "resp/parser.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/io_context.hpp>
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace redlock::test
{

namespace asio = boost::asio;

namespace
{

constexpr std::string_view replies = "+OK\r\n"
                                     "*3\r\n$3\r\nfoo\r\n*2\r\n:1\r\n*1\r\n$3\r\nbar\r\n#t\r\n"
                                     "%2\r\n+a\r\n:1\r\n+b\r\n*2\r\n:2\r\n:3\r\n"
                                     ":7\r\n";

/// Returns the number of replies.
int parse(resp::parser& parser)
{
    const std::span<char> room = parser.prepare();
    std::copy(replies.begin(), replies.end(), room.begin());
    parser.commit(replies.size());
    int count = 0;
    while (parser.next() != nullptr)
    {
        ++count;
    }
    return parser.error() == resp::parse_error::none ? count : -1;
}

std::ptrdiff_t open_descriptors()
{
    const std::filesystem::directory_iterator all{"/proc/self/fd"};
    return std::distance(begin(all), end(all));
}

void check_reported(const endings& seen)
{
    CHECK(seen.reported > 0);
    CHECK(seen.terminated == 0);
    CHECK(seen.crashed == 0);
}

} // namespace

TEST_CASE("a parser that had no memory parses the replies of the next connection", "[allocation]")
{
    check_reported(fail_each_allocation(
        []
        {
            std::optional<resp::parser> parser;
            call([&] { parser.emplace(); });
            int count = 0;
            call(
                [&]
                {
                    parser->reset();
                    count = parse(*parser);
                });
            expect(count == 4, "a reply was lost");
        }));
}

TEST_CASE("URLs and options report failed allocations", "[allocation]")
{
    check_reported(fail_each_allocation(
        []
        {
            config options;
            const std::string list = "redis://some.user:with%20a%20password@one.master.example:6380/3,"
                                     "redis://[2001:db8::1],redis://10.0.0.1";
            call([&] { options.masters = list; });
            expect(options.masters.size() == 3, "a master was lost");
            config copy;
            call([&] { copy = options; });
            expect(copy.masters.front().password().reveal() == "with a password", "a copy differs");
        }));
}

TEST_CASE(
    "a manager of the real environment whose construction fails leaves no descriptor open", "[allocation]")
{
    const endings seen = fail_each_allocation(
        []
        {
            asio::io_context io;
            const config options{.masters = "redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3"};
            const lock_manager first{
                io, options}; // Asio keeps what it opens at first. Nothing connects without run().
            std::optional<lock_manager> locks;
            const std::ptrdiff_t before = open_descriptors();
            if (!call_once([&] { locks.emplace(io, options); }))
            {
                expect(open_descriptors() == before, "a descriptor is left");
            }
        });
    check_reported(seen);
}

TEST_CASE("managers that have ended leave nothing in their context", "[allocation]")
{
    asio::io_context io;
    // Nobody listens there.
    const config options{.masters = "unix:///nonexistent/1,unix:///nonexistent/2,unix:///nonexistent/3"};
    const auto use = [&](int managers)
    {
        for (int each = 0; each < managers; ++each)
        {
            {
                const lock_manager locks{io, options};
                io.restart();
                io.poll();
            }
            io.restart();
            io.run();
        }
        return blocks_in_use();
    };
    use(8); // What the context keeps for later handlers.
    const std::int64_t before = use(32);
    CHECK(use(256) <= before + 8);
}

} // namespace redlock::test
