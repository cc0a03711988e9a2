// SPDX-License-Identifier: BSL-1.0
// A real redis-server or valkey-server as a child process, on a free loopback port or a unix socket.
#pragma once

#include "certificates.hpp"
#include "child_process.hpp"
#include "control_client.hpp"
#include "loopback.hpp"
#include "world.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace redlock::test
{

/// The TLS files of a server.
struct server_tls
{
    certificate_files own;
    /// The CA whose clients it trusts.
    std::string ca_file;
    /// Requires clients to have a certificate.
    bool ask_clients = false;
};

/// How clients connect to a server.
enum class transport
{
    any,         ///< as REDLOCK_TEST_SERVERS says; TCP by default
    any_port,    ///< likewise, but never a unix socket: for tests that use a proxy, or the port
    tcp,         ///< a port of 127.0.0.1
    unix_socket, ///< a unix socket in its own directory, and no port
    tls,         ///< a TLS port; the test's own commands use a unix socket
};

/// The user of the clients.
enum class user
{
    any,           ///< as REDLOCK_TEST_SERVERS says; the default user by default, or if there is a `password`
    default_user,  ///< the default user, who has all rights
    least_allowed, ///< the documented user. The default user then has a password that no client knows
};

/// How a server is started. Options that aren't set depend on REDLOCK_TEST_SERVERS, so that a test runs in every world.
struct server_options
{
    /// The program: "redis-server", "valkey-server" (as resolved by `program_of`), or another one.
    std::string program = this_world().valkey ? "valkey-server" : "redis-server";
    transport over = transport::any;
    user as = user::any;
    /// More command-line settings: {"--appendonly", "yes", "--appendfsync", "always"}.
    std::vector<std::string> settings = {};
    /// The default user's password; empty for none.
    std::string password = {};
    /// Certificates, which imply `transport::tls`. Without them, those of this process are used.
    std::optional<server_tls> tls = {};

    /// For tests that need this in every world: TCP, with a user who has all rights.
    static server_options plain()
    {
        server_options options;
        options.over = transport::tcp;
        options.as = user::default_user;
        return options;
    }
    /// For tests that use a proxy.
    static server_options with_port()
    {
        server_options options;
        options.over = transport::any_port;
        return options;
    }
};

/// A directory in the system's temporary directory, removed with its contents by the destructor.
class temporary_directory
{
  public:
    temporary_directory();
    temporary_directory(temporary_directory&& other) noexcept;
    temporary_directory& operator=(temporary_directory&& other) noexcept;
    ~temporary_directory();

    /// Returns the path, without a slash at the end.
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

/// A running server with its own directory. By default it persists nothing.
class server
{
  public:
    /// Starts the server and waits until it answers. Throws with the last lines of its log if it doesn't. The server
    /// ends when the thread that started it ends.
    explicit server(server_options options = {});
    server(server&&) noexcept = default;
    server& operator=(server&&) noexcept = default;
    /// Kills the server and removes its directory.
    ~server() = default;

    /// redis[s]://[user[:password]@]127.0.0.1:port, percent-encoded, or unix:///path. The latter can't contain user and
    /// password, so a master with credentials has to be given field by field.
    std::string url() const;
    /// Returns the clients' user; empty for the default user.
    const std::string& username() const { return username_; }
    /// Returns the clients' password; empty for none.
    const std::string& password() const { return password_; }
    /// Returns the port on 127.0.0.1, 0 with a unix socket.
    int port() const { return port_; }
    /// Returns the path of the unix socket, even if the server doesn't use one.
    std::string socket_path() const;
    bool speaks_tls() const { return options_.over == transport::tls; }
    /// Returns the process id, -1 after `kill`.
    pid_t pid() const { return child_.pid(); }
    /// Returns the directory: data, log.
    const std::string& directory() const { return directory_.path(); }
    /// Returns the last log lines.
    std::string log() const;

    /// Kills the server (SIGKILL), and waits until it has ended. Nobody else can listen on its port meanwhile.
    void kill();
    /// Kills the server, and leaves its port to a process of the test.
    void give_up_port();
    /// Makes the running server listen on another port of 127.0.0.1 in place of its own. Needs `transport::tcp`. Throws
    /// with the server's message if it can't.
    void move_to_port(int port);
    /// Starts the server again on the same port and directory; a running one is killed first. Waits until it answers,
    /// which is after it has loaded its data.
    void restart();
    /// Stops the process (SIGSTOP), and waits until it is stopped. The kernel still accepts connections and bytes for
    /// it.
    void stop();
    /// Resumes the process (SIGCONT), and waits until it runs.
    void resume();
    /// True if its process exists, even if stopped.
    bool running() const { return child_.running(); }

    /// Sends a command on a connection of the test (RESP2, as the default user) and returns the answer. The connection
    /// stays open for the next command. Throws `connection_lost`; the next call then reconnects.
    reply command(const std::vector<std::string_view>& words);

  private:
    /// The result of one attempt to start.
    enum class start_result
    {
        answers,    ///< it is up
        port_taken, ///< it ended because another process has the port
        failed,     ///< it ended, or doesn't answer
    };

    start_result start();
    void start_or_throw(int attempts, bool new_ports);
    void settle_options();
    std::vector<std::string> arguments() const;
    control_client connect(std::chrono::milliseconds limit) const;
    bool answers();

    server_options options_;
    std::string username_;
    std::string password_;
    temporary_directory directory_;
    int port_ = 0;
    child_process child_;
    unique_fd held_port_; // While the server is killed.
    std::optional<control_client> control_;
};

/// True if the server's program, or a program on PATH, exists.
bool have_program(const std::string& name);
/// Returns the server programs of the machine: redis-server, and valkey-server if it is installed.
std::vector<std::string> server_programs();

/// Starts n servers with the same options.
std::vector<server> start_servers(std::size_t n, server_options options = {});

} // namespace redlock::test
