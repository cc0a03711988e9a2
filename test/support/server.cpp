// SPDX-License-Identifier: BSL-1.0
// Starts real servers: on a port that was free, with proof that the server that answers there is this process's child.
#include "server.hpp"

#include "loopback.hpp"
#include "overheard.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>

namespace redlock::test
{
namespace
{

using std::chrono::steady_clock;

constexpr std::chrono::seconds start_limit{60};
constexpr std::chrono::milliseconds first_answer_limit{2000};
constexpr std::chrono::milliseconds between_tries{3};
constexpr std::chrono::milliseconds between_starts{50};
constexpr int max_ports_tried = 20;
constexpr int max_restarts_tried = 100;
constexpr std::size_t log_lines_shown = 20;
constexpr std::size_t max_directory_path_size = 60;

std::uintmax_t size_of(const std::string& path)
{
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    return error ? 0 : size;
}

std::string percent_encoded(const std::string& text)
{
    std::string encoded;
    for (const char character : text)
    {
        const bool plain = (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
                           (character >= '0' && character <= '9');
        encoded +=
            plain ? std::string(1, character) : fmt::format("%{:02X}", static_cast<unsigned char>(character));
    }
    return encoded;
}

/// Returns true at every second call.
bool alternating()
{
    static std::atomic<unsigned> calls{0};
    return calls++ % 2 == 0;
}

std::string random_digits()
{
    std::random_device entropy;
    return fmt::format("{:08x}{:08x}", entropy(), entropy());
}

} // namespace

temporary_directory::temporary_directory()
{
    std::string base = std::filesystem::temp_directory_path().string();
    // The path of a unix socket is limited to about a hundred characters.
    if (base.size() > max_directory_path_size)
    {
        base = "/tmp";
    }
    path_ = base + "/redlock-test-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr)
    {
        throw std::system_error{errno, std::generic_category(), "mkdtemp " + std::exchange(path_, {})};
    }
}

temporary_directory::temporary_directory(temporary_directory&& other) noexcept
    : path_{std::exchange(other.path_, {})}
{
}

temporary_directory& temporary_directory::operator=(temporary_directory&& other) noexcept
{
    std::swap(path_, other.path_);
    return *this;
}

temporary_directory::~temporary_directory()
{
    if (!path_.empty())
    {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
}

server::server(server_options options) : options_{std::move(options)}
{
    settle_options();
    start_or_throw(max_ports_tried, true);
}

/// Resolves the options that are left to the environment.
void server::settle_options()
{
    options_.program = program_of(options_.program);
    const world& here = this_world();
    const bool is_open = options_.over == transport::any || options_.over == transport::any_port;
    if (options_.tls)
    {
        options_.over = transport::tls;
    }
    else if (is_open)
    {
        const bool may_be_unix = here.unix_sockets && options_.over == transport::any;
        options_.over = here.tls ? transport::tls : transport::tcp;
        if (may_be_unix && (!here.tls || alternating()))
        {
            options_.over = transport::unix_socket;
        }
    }
    if (options_.over == transport::tls && !options_.tls)
    {
        const world_certificates& ours = certificates_of_world();
        options_.tls = server_tls{ours.server, ours.ca_file};
    }
    if (options_.as == user::any)
    {
        const bool least = here.least_acl && options_.password.empty();
        options_.as = least ? user::least_allowed : user::default_user;
    }
    password_ = options_.password;
    if (options_.as == user::least_allowed)
    {
        const std::string digits = random_digits();
        options_.password = "control-" + digits;
        username_ = documented_user_name;
        // Some of its characters are escaped in a URL; the digits appear in every form of it, so they are what is
        // searched for.
        password_ = "l:o@c/k%" + digits;
        keep_secret(digits);
    }
    keep_secret(password_);
    keep_secret(percent_encoded(password_));
}

std::string server::socket_path() const
{
    return directory() + "/socket";
}

std::string server::url() const
{
    if (options_.over == transport::unix_socket)
    {
        return fmt::format("unix://{}", socket_path());
    }
    std::string login;
    if (!password_.empty())
    {
        login = fmt::format("{}:{}@", username_, percent_encoded(password_));
    }
    return fmt::format("{}://{}127.0.0.1:{}", speaks_tls() ? "rediss" : "redis", login, port_);
}

std::string server::log() const
{
    return fmt::format(
        "{}\n{}", fmt::join(last_lines(directory() + "/log", log_lines_shown), "\n"),
        fmt::join(last_lines(directory() + "/output", log_lines_shown), "\n"));
}

std::vector<std::string> server::arguments() const
{
    std::vector<std::string> words{
        options_.program,
        "--save",
        "",
        "--appendonly",
        "no",
        "--daemonize",
        "no",
        "--bind",
        "127.0.0.1",
        "--protected-mode",
        "no",
        "--dir",
        directory(),
        "--logfile",
        directory() + "/log",
        "--loglevel",
        "notice",
        "--port",
        speaks_tls() ? "0" : std::to_string(port_)};
    if (options_.over != transport::tcp)
    {
        words.insert(words.end(), {"--unixsocket", socket_path()});
    }
    if (speaks_tls())
    {
        words.insert(
            words.end(),
            {"--tls-port", std::to_string(port_), "--tls-cert-file", options_.tls->own.certificate,
             "--tls-key-file", options_.tls->own.key, "--tls-ca-cert-file", options_.tls->ca_file,
             "--tls-auth-clients", options_.tls->ask_clients ? "yes" : "no"});
    }
    if (!options_.password.empty())
    {
        words.insert(words.end(), {"--requirepass", options_.password});
    }
    if (options_.as == user::least_allowed)
    {
        const std::vector<std::string> locker = documented_user(password_);
        words.emplace_back("--user");
        words.insert(words.end(), locker.begin(), locker.end());
    }
    words.insert(words.end(), options_.settings.begin(), options_.settings.end());
    return words;
}

control_client server::connect(std::chrono::milliseconds limit) const
{
    control_client client = options_.over == transport::tcp ? control_client::to_port(port_, limit)
                                                            : control_client::to_path(socket_path(), limit);
    if (!options_.password.empty())
    {
        const reply answer = client.command({"AUTH", options_.password});
        if (answer.is_error())
        {
            throw connection_lost{EACCES, fmt::format("AUTH was answered {}", describe(answer))};
        }
    }
    return client;
}

/// True if this process's child answers: another server may have taken the port in between.
bool server::answers()
{
    try
    {
        control_client client = connect(first_answer_limit);
        const reply pong = client.command({"PING"});
        const reply about = client.command({"INFO", "server"});
        return pong == "PONG" && about.text.find(fmt::format("process_id:{}\r", pid())) != std::string::npos;
    }
    catch (const connection_lost&)
    {
        return false;
    }
}

server::start_result server::start()
{
    const std::string log_path = directory() + "/log";
    const std::uintmax_t log_before = size_of(log_path);
    child_ = child_process{arguments(), directory() + "/output"};
    const auto deadline = steady_clock::now() + start_limit;
    while (steady_clock::now() < deadline)
    {
        if (child_.wait_for_end(between_tries))
        {
            child_.kill();
            const bool taken = std::ranges::any_of(
                last_lines(log_path, log_lines_shown, log_before), [](const std::string& line)
                { return line.find("Address already in use") != std::string::npos; });
            return taken ? start_result::port_taken : start_result::failed;
        }
        if (answers())
        {
            return start_result::answers;
        }
    }
    child_.kill();
    return start_result::failed;
}

void server::start_or_throw(int attempts, bool new_ports)
{
    held_port_.reset();
    start_result result = start_result::port_taken;
    for (int attempt = 0; attempt < attempts && result == start_result::port_taken; ++attempt)
    {
        if (new_ports && options_.over != transport::unix_socket)
        {
            port_ = free_port();
        }
        else if (attempt > 0)
        {
            // The same port is required, and another process has it for a moment: waiting a bounded time is all that
            // helps.
            std::this_thread::sleep_for(between_starts);
        }
        result = start();
    }
    if (result != start_result::answers)
    {
        throw std::runtime_error{
            fmt::format("{} did not start on port {}; its last words:\n{}", options_.program, port_, log())};
    }
}

void server::kill()
{
    control_.reset();
    child_.kill();
    if (options_.over != transport::unix_socket)
    {
        held_port_ = hold_port(port_); // A server of another test there would be taken for this one.
    }
}

void server::give_up_port()
{
    kill();
    held_port_.reset();
}

void server::move_to_port(int port)
{
    reply answer;
    for (int attempt = 0; attempt < max_restarts_tried; ++attempt)
    {
        answer = command({"CONFIG", "SET", "port", std::to_string(port)});
        if (!answer.is_error())
        {
            port_ = port;
            return;
        }
        // As in `start_or_throw`: another process may have it for a moment.
        std::this_thread::sleep_for(between_starts);
    }
    throw std::runtime_error{
        fmt::format("{} can't listen on port {}: {}", options_.program, port, answer.text)};
}

void server::restart()
{
    kill();
    start_or_throw(max_restarts_tried, false);
}

void server::stop()
{
    child_.stop();
}

void server::resume()
{
    child_.resume();
}

reply server::command(const std::vector<std::string_view>& words)
{
    try
    {
        if (!control_)
        {
            control_ = connect(control_client::default_limit);
        }
        return control_->command(words);
    }
    catch (const connection_lost&)
    {
        // A late answer on this connection would be taken for that of another command.
        control_.reset();
        throw;
    }
}

bool have_program(const std::string& name)
{
    return !find_program(program_of(name)).empty();
}

std::vector<std::string> server_programs()
{
    std::vector<std::string> found{"redis-server"};
    if (have_program("valkey-server"))
    {
        found.emplace_back("valkey-server");
    }
    return found;
}

std::vector<server> start_servers(std::size_t n, server_options options)
{
    std::vector<server> servers;
    servers.reserve(n);
    for (std::size_t count = 0; count < n; ++count)
    {
        servers.emplace_back(options);
    }
    return servers;
}

} // namespace redlock::test
