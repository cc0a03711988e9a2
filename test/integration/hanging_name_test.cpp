// SPDX-License-Identifier: BSL-1.0
// A name server that doesn't answer: the operations that don't need it are unaffected.
#include "integration/fixture.hpp"

#include "support/child_process.hpp"

#include <catch2/catch_test_macros.hpp>

#include <fstream>
#include <sstream>

namespace redlock::test
{

TEST_CASE(
    "a name that hangs delays no lock, no lookup of the application, no shutdown and no exit [scenario-91]",
    "[resolver][scenario-91][own-servers]")
{
    const server first{server_options::plain()};
    const server second{server_options::plain()};
    const temporary_directory directory;
    const std::string said = directory.path() + "/said";
    const child_process process{
        {HANGING_NAME, std::to_string(first.port()), std::to_string(second.port())}, said};
    const bool ended = process.wait_for_end(patience);
    std::stringstream text;
    text << std::ifstream{said}.rdbuf();
    CHECK(ended);
    // A report of a sanitizer would be in this text, too.
    CHECK(
        text.str() == "acquired\n"
                      "released\n"
                      "resolved by the application\n"
                      "shut down\n"
                      "run() returned\n"
                      "the io_context is destroyed\n"
                      "a second one is destroyed\n"
                      "10 acquired, 20 shut down\n");
}

TEST_CASE("a master whose name doesn't exist is reported as such", "[resolver][own-servers]")
{
    client one{unhurried({master{"redis://no-such-host.invalid"}})};
    one.events().wait_for_down(0);
    const redlock::master_down down = one.events().downs_of(0).front();
    INFO(describe(down));
    CHECK(
        (down.reason == asio::error::host_not_found || down.reason == asio::error::host_not_found_try_again));
}

} // namespace redlock::test
