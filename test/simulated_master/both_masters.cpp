// SPDX-License-Identifier: BSL-1.0
// The real one is waited for by its replies, which come in order; the simulated one runs until nothing is under way.
#include "both_masters.hpp"

#include "comparable.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

namespace redlock::test
{

namespace
{

constexpr std::chrono::seconds answer_limit{10}; // For one answer of a real server on a machine that is busy.

[[noreturn]] void fail(const char* what)
{
    throw std::system_error{errno, std::generic_category(), what};
}

std::string info_field(control_client& of, std::string_view section, const std::string& name)
{
    const std::string text = of.command({"INFO", section}).text;
    const std::size_t begin = text.find("\n" + name + ":") + name.size() + 2;
    return text.substr(begin, text.find('\r', begin) - begin);
}

/// A client that has no interest in anything.
struct nobody final : client_end
{
    void on_connected(error_code) override {}
    void on_bytes(std::string_view) override {}
    void on_room() override {}
    void on_end(error_code) override {}
};

server_options options_with(const std::string& password, const std::string& program)
{
    server_options options = server_options::plain();
    options.program = program;
    options.password = password;
    return options;
}

} // namespace

void reply_cutter::feed(std::string_view bytes)
{
    for (const char byte : bytes)
    {
        parser_.prepare()[0] = byte;
        parser_.commit(1);
        begun_ += byte;
        if (parser_.next() != nullptr)
        {
            replies_.push_back(std::exchange(begun_, {}));
        }
    }
    if (parser_.error() != resp::parse_error::none)
    {
        throw std::runtime_error{"no reply: " + begun_};
    }
}

both_connection::both_connection(int port, virtual_world& world, sim_master& simulated)
    : socket_{connect_to_loopback(port)},
      link_{std::make_shared<virtual_link>(world, simulated, static_cast<client_end&>(*this), 0)}
{
    link_->connect();
}

both_connection::~both_connection()
{
    link_->close();
}

void both_connection::on_connected(error_code error)
{
    if (error)
    {
        throw system_error{error, "the simulated master"};
    }
}

void both_connection::send(std::string_view bytes)
{
    reader_.feed(bytes);
    while (std::optional<command> next = reader_.next())
    {
        asked_.push_back(std::move(*next));
    }
    link_->send(std::string{bytes});
    while (!bytes.empty())
    {
        const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0)
        {
            fail("send");
        }
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
}

void both_connection::close(bool orderly)
{
    if (!orderly)
    {
        const linger at_once{1, 0};
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    socket_.reset();
    link_->close();
}

void both_connection::read_real()
{
    if (!wait_for(socket_.get(), POLLIN, std::chrono::steady_clock::now() + answer_limit))
    {
        socket_.reset();
        silent_ = fmt::format(
            "the real one has answered {} of {} commands and keeps silent, while the connection is {} in the "
            "simulation\n",
            real_.replies().size(), asked_.size(), ended_in_simulation_ ? "closed" : "open");
        return;
    }
    std::array<char, 16 * 1024> buffer{};
    const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    ended_really_ = count <= 0;
    real_.feed({buffer.data(), count > 0 ? static_cast<std::size_t>(count) : 0});
}

void both_connection::settle()
{
    while (socket_ && !ended_really_ && (real_.replies().size() < asked_.size() || ended_in_simulation_))
    {
        read_real();
    }
}

std::string both_connection::difference()
{
    const std::vector<std::string>& real = real_.replies();
    const std::vector<std::string>& simulated = simulated_.replies();
    for (; compared_ < std::min(real.size(), simulated.size()); ++compared_)
    {
        const command& to = asked_.at(compared_);
        const std::string expected = comparable(to, real[compared_]);
        const std::string got = comparable(to, simulated[compared_]);
        if (expected != got)
        {
            return fmt::format(
                "to {}\nthe real one says      {}\nthe simulated one says {}", printable(to),
                printable(expected), printable(got));
        }
    }
    // What a real one has to say to a client that is killed in the same turn of its event loop is lost; a simulated one
    // says it.
    const bool lost = ended_really_ && ended_in_simulation_ && real.size() < simulated.size();
    if (real.size() != simulated.size() && !lost)
    {
        const auto& longer = real.size() > simulated.size() ? real : simulated;
        return fmt::format(
            "only the {} one answers {}: {}", real.size() > simulated.size() ? "real" : "simulated",
            printable(asked_.at(compared_)), printable(longer[compared_]));
    }
    if (socket_ && ended_really_ != ended_in_simulation_)
    {
        return fmt::format("only the {} one has closed the connection", ended_really_ ? "real" : "simulated");
    }
    return silent_;
}

both_masters::both_masters(std::string password, std::string program)
    : real_{options_with(password, program)},
      simulated_{world_, ""},
      control_{control_client::to_port(real_.port())}
{
    simulated_.password = password;
    if (!password.empty())
    {
        control_.command({"AUTH", password});
    }
    simulated_.version = info_field(control_, "server", "redis_version");
    take_over_ids();
    align_client_ids();
}

void both_masters::take_over_ids()
{
    simulated_.run_id = info_field(control_, "server", "run_id");
    simulated_.replication_id = info_field(control_, "replication", "master_replid");
}

/// Ids grow by one with each connection: from here on they are the same.
void both_masters::align_client_ids()
{
    nobody client;
    for (last_id_ = 0; last_id_ < control_.command({"CLIENT", "ID"}).integer; ++last_id_)
    {
        const auto link = std::make_shared<virtual_link>(world_, simulated_, client, 0);
        link->connect();
        run_simulation();
        link->close();
        run_simulation();
    }
}

std::unique_ptr<both_connection> both_masters::connect()
{
    auto made = std::make_unique<both_connection>(real_.port(), world_, simulated_);
    settle();
    ++last_id_;
    return made;
}

void both_masters::run_simulation()
{
    while (!world_.quiet())
    {
        world_.run_next();
    }
}

void both_masters::settle()
{
    control_.command({"PING"});
    run_simulation();
}

void both_masters::hang()
{
    settle();
    real_.stop();
    simulated_.hang();
}

void both_masters::resume()
{
    run_simulation();
    simulated_.resume();
    run_simulation();
    real_.resume();
}

void both_masters::wait_for_expiry(const std::string& key)
{
    constexpr std::int64_t lasts = 10'000;
    for (;;)
    {
        const std::int64_t left = control_.command({"PTTL", key}).integer;
        if (left < 0 || left > lasts)
        {
            break;
        }
    }
    world_.jump(std::chrono::milliseconds{20});
}

void both_masters::clear()
{
    control_.command({"FLUSHALL"});
    control_.command({"SCRIPT", "FLUSH"});
    simulated_.flush_scripts();
    simulated_.flush_all();
}

void both_masters::restart(bool keeps_keys)
{
    if (!keeps_keys)
    {
        control_.command({"FLUSHALL"});
    }
    control_.command({"SAVE"});
    real_.restart();
    control_ = control_client::to_port(real_.port());
    simulated_.role = "master";
    simulated_.restart("", keeps_keys);
    take_over_ids();
    align_client_ids();
}

void both_masters::demote()
{
    control_.command({"CONFIG", "SET", "replica-read-only", "no"});
    control_.command({"REPLICAOF", "127.0.0.1", "1"});
    simulated_.role = "replica";
    take_over_ids();
}

void both_masters::promote()
{
    demote();
    control_.command({"REPLICAOF", "NO", "ONE"});
    simulated_.role = "master";
    take_over_ids();
}

std::string both_masters::value(const std::string& key)
{
    return control_.command({"GET", key}).text;
}

std::int64_t both_masters::align_clocks()
{
    const reply now = control_.command({"TIME"});
    const std::int64_t time =
        std::stoll(now.elements.at(0).text) * 1'000'000 + std::stoll(now.elements.at(1).text);
    const clock::time_point wanted{std::chrono::microseconds{time}};
    simulated_.clock_of_its_own().jump(world_.now(), wanted - simulated_.now());
    return time;
}

} // namespace redlock::test
