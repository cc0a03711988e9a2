// SPDX-License-Identifier: BSL-1.0
// The deployment guide followed literally: masters with the documented configuration serve clients on other machines
// and refuse everyone else.
#include "integration/fixture.hpp"

#include "support/child_process.hpp"
#include "support/foreign_address.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>

#include <fmt/format.h>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

constexpr const char* locker_password = "of-the-locker";
constexpr const char* admin_password = "of-the-admin";

void replace_all(std::string& text, std::string_view what, std::string_view with)
{
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    {
        text.replace(at, what.size(), with);
    }
}

/// Replaces the documentation's placeholders for the address and the passwords.
std::string filled_in(std::string text, const std::string& address)
{
    replace_all(text, "10.0.0.1", address);
    replace_all(text, "ADMIN-PASSWORD", admin_password);
    replace_all(text, ">PASSWORD", std::string{">"} + locker_password);
    return text;
}

std::string configuration_at(const std::string& address)
{
    return filled_in(documented_configuration(), address);
}

/// Returns the configuration without the lines that start with `begin`.
std::string without(const std::string& configuration, std::string_view begin)
{
    std::string left;
    std::istringstream lines{configuration};
    for (std::string line; std::getline(lines, line);)
    {
        left += line.starts_with(begin) ? std::string{} : line + "\n";
    }
    return left;
}

reply run(control_client& at, const std::string& line)
{
    const std::vector<std::string> words = words_of(line);
    const std::vector<std::string_view> views{words.begin(), words.end()};
    return at.command(views);
}

/// A server started with nothing but a configuration file, a port and a directory.
class configured_server
{
  public:
    configured_server(const std::string& kind, const std::string& configuration)
        : kind_{kind}, file_{directory_.path() + "/server.conf"}
    {
        std::ofstream{file_} << configuration;
        start();
    }

    int port() const { return port_; }
    /// A connection from this machine that isn't authenticated.
    control_client connect() const { return control_client::to_port(port_); }

    void restart()
    {
        child_.reset();
        start();
    }

  private:
    bool answers() const
    {
        try
        {
            control_client anybody = connect();
            return !anybody.command({"PING"}).text.starts_with("LOADING");
        }
        catch (const connection_lost&)
        {
            return false;
        }
    }

    /// Another process may take the port before the server does; the server then exits, and another port is tried.
    void start()
    {
        const std::string output = directory_.path() + "/output";
        for (int attempt = 0; attempt < 20; ++attempt)
        {
            port_ = free_port();
            child_.emplace(
                std::vector<std::string>{
                    program_of(kind_), file_, "--port", std::to_string(port_), "--dir", directory_.path()},
                output);
            while (!child_->wait_for_end(3ms))
            {
                if (answers())
                {
                    return;
                }
            }
        }
        std::ifstream said{output};
        throw stuck{std::string{std::istreambuf_iterator<char>{said}, {}}};
    }

    std::string kind_;
    temporary_directory directory_;
    std::string file_;
    int port_ = 0;
    std::optional<child_process> child_;
};

redlock::master locker_at(const std::string& host, const configured_server& at, const std::string& password)
{
    return tcp_address{
        .host = host,
        .port = static_cast<std::uint16_t>(at.port()),
        .username = "locker",
        .password = password};
}

/// Acquires, extends and releases a resource, with the votes of all masters.
void check_locking(const std::vector<redlock::master>& masters)
{
    client one{unhurried(masters)};
    one.wait_for_masters();
    redlock::lease held = one.win("stock");
    const finished extended = extend(held, 2 * long_ttl);
    INFO(extended.report);
    CHECK_FALSE(extended.error);
    const finished released = release(held);
    INFO(released.report);
    CHECK_FALSE(released.error);
    CHECK(released.report.count(vote::failed) == 0);
}

/// Returns the reason why a client can't connect.
redlock::master_down refusal_of(const redlock::master& at)
{
    client one{unhurried({at})};
    one.events().wait_for_down(0);
    return one.events().downs_of(0).front();
}

} // namespace

TEST_CASE(
    "five masters with the documented configuration serve remote clients, and no strangers",
    "[own-servers][scenario-103]")
{
    const std::string kind = GENERATE(from_range(server_programs()));
    CAPTURE(kind);
    const foreign_address here;
    std::vector<std::unique_ptr<configured_server>> servers;
    std::vector<redlock::master> masters;
    for (int count = 0; count < 5; ++count)
    {
        servers.push_back(std::make_unique<configured_server>(kind, configuration_at(here.text())));
        masters.push_back(locker_at(here.text(), *servers.back(), locker_password));
    }
    check_locking(masters);

    const configured_server& any = *servers.front();
    const std::uint16_t port = static_cast<std::uint16_t>(any.port());
    const redlock::master no_login = tcp_address{.host = here.text(), .port = port};
    const redlock::master wrong = tcp_address{.host = here.text(), .port = port, .password = "guessed"};
    CHECK(refusal_of(no_login).reason == master_errc::authentication_failed);
    CHECK(refusal_of(wrong).reason == master_errc::authentication_failed);
    CHECK(refusal_of(locker_at(here.text(), any, "guessed")).reason == master_errc::authentication_failed);

    control_client stranger = any.connect();
    for (const char* command : {"PING", "GET lock:stock", "FLUSHALL", "ACL LIST", "SHUTDOWN NOSAVE"})
    {
        CAPTURE(command);
        CHECK(run(stranger, command).text.starts_with("NOAUTH"));
    }
    CHECK(run(stranger, "AUTH default nopass").text.starts_with("WRONGPASS"));

    control_client locker = any.connect();
    expect_ok(run(locker, fmt::format("AUTH locker {}", locker_password)));
    for (const char* command :
         {"FLUSHALL", "KEYS *", "CONFIG GET dir", "ACL LIST", "CLIENT LIST", "SHUTDOWN NOSAVE", "SET other x",
          "GET other", "SCRIPT FLUSH", "MONITOR", "PUBLISH x y"})
    {
        CAPTURE(command);
        CHECK(run(locker, command).text.starts_with("NOPERM"));
    }
}

TEST_CASE(
    "a default user that is only switched off keeps protected mode on, which excludes remote clients",
    "[own-servers]")
{
    const std::string kind = GENERATE(from_range(server_programs()));
    CAPTURE(kind);
    const foreign_address here;
    const configured_server at{kind, without(configuration_at(here.text()), "user default ")};
    control_client administrator = at.connect();
    expect_ok(run(administrator, fmt::format("AUTH admin {}", admin_password)));
    expect_ok(run(administrator, "ACL SETUSER default off"));
    const redlock::master remote = locker_at(here.text(), at, locker_password);
    CHECK(refusal_of(remote).detail.starts_with("DENIED"));
    check_locking({locker_at("127.0.0.1", at, locker_password)});
    expect_ok(run(administrator, "ACL SETUSER default resetpass"));
    check_locking({remote});
}

TEST_CASE(
    "the documented lines can be pasted, and pasted again with another password",
    "[own-servers][scenario-104]")
{
    const std::string kind = GENERATE(from_range(server_programs()));
    CAPTURE(kind);
    const foreign_address here;
    configured_server at{kind, without(configuration_at(here.text()), "user ")};
    const auto paste = [&](control_client& into, const std::string& password)
    {
        std::string lines = filled_in(documented_lines_to_paste(), here.text());
        replace_all(lines, locker_password, password);
        std::istringstream text{lines};
        for (std::string line; std::getline(text, line);)
        {
            CAPTURE(line.substr(0, line.find('>')));
            expect_ok(run(into, line));
        }
        expect_ok(run(into, "CONFIG REWRITE"));
    };
    control_client administrator = at.connect();
    paste(administrator, "the-first");
    check_locking({locker_at(here.text(), at, "the-first")});
    paste(administrator, "the-second");
    at.restart();
    check_locking({locker_at(here.text(), at, "the-second")});
    CHECK(refusal_of(locker_at(here.text(), at, "the-first")).reason == master_errc::authentication_failed);
    control_client stranger = at.connect();
    CHECK(run(stranger, "PING").text.starts_with("NOAUTH"));
}

} // namespace redlock::test
