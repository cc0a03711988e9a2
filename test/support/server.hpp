// SPDX-License-Identifier: BSL-1.0
// A real redis-server or valkey-server as a child of the test, on a free loopback port or a unix socket.
#pragma once

#include "certificates.hpp"
#include "child_process.hpp"
#include "control_client.hpp"
#include "world.hpp"

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace redlock::test
{

/// The files that a server needs for TLS.
struct server_tls
{
    certificate_files own;
    /// Which clients it trusts.
    std::string ca_file;
    /// Whether clients must have a certificate.
    bool ask_clients = false;
};

/// How clients reach a server.
enum class transport
{
    any,         ///< as REDLOCK_TEST_SERVERS says; TCP if it says nothing
    any_port,    ///< likewise, but never a unix socket: something has to stand in between, or know its port
    tcp,         ///< a port of 127.0.0.1
    unix_socket, ///< a unix socket in its own directory, and no port
    tls,         ///< a port that speaks TLS; the test's own commands come over a unix socket
};

/// As whom clients log in.
enum class user
{
    any, ///< as REDLOCK_TEST_SERVERS says; the default one if it says nothing, or there is a `password`
    default_user,  ///< the one that may do everything
    least_allowed, ///< the one of the documentation. The default one has a password then, that no client knows
};

/// How a server is started. What isn't given is as REDLOCK_TEST_SERVERS says, so that a test runs in every world.
struct server_options
{
    /// What is run: "redis-server", "valkey-server" (as `program_of` says), or another program.
    std::string program = this_world().valkey ? "valkey-server" : "redis-server";
    transport over = transport::any;
    user as = user::any;
    /// More settings as on its command line: {"--appendonly", "yes", "--appendfsync", "always"}.
    std::vector<std::string> settings = {};
    /// What the default user must send with AUTH; empty for nothing.
    std::string password = {};
    /// Certificates for `transport::tls`, which is what over is then. Without them those of this process.
    std::optional<server_tls> tls = {};

    /// For tests whose subject needs it in every world: over TCP, with a user who may do everything.
    static server_options plain()
    {
        server_options options;
        options.over = transport::tcp;
        options.as = user::default_user;
        return options;
    }
    /// For tests that put a proxy in between.
    static server_options with_port()
    {
        server_options options;
        options.over = transport::any_port;
        return options;
    }
};

/// A directory under the system's temporary one, removed with everything in it at the end.
class temporary_directory
{
  public:
    temporary_directory();
    temporary_directory(temporary_directory&& other) noexcept;
    temporary_directory& operator=(temporary_directory&& other) noexcept;
    ~temporary_directory();

    /// Its path, without a slash at the end.
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

/// One running server with a directory of its own. By default it persists nothing.
class server
{
  public:
    /// Starts it and waits until it answers. Throws with the last lines of its log when it doesn't. The
    /// server ends when the thread that started it ends.
    explicit server(server_options options = {});
    server(server&&) noexcept = default;
    server& operator=(server&&) noexcept = default;
    /// Kills it and removes its directory.
    ~server() = default;

    /// redis[s]://[user[:password]@]127.0.0.1:port, percent-encoded, or unix:///path: such a URL has no place for
    /// user and password, so where there are any give the address field by field.
    std::string url() const;
    /// As whom clients log in; empty for the default user.
    const std::string& username() const { return username_; }
    /// What clients need to log in, empty for nothing.
    const std::string& password() const { return password_; }
    /// Its port on 127.0.0.1, 0 with a unix socket.
    int port() const { return port_; }
    /// The path of its unix socket, whether it listens there or not.
    std::string socket_path() const;
    bool speaks_tls() const { return options_.over == transport::tls; }
    /// Its process id, -1 after `kill`.
    pid_t pid() const { return child_.pid(); }
    /// Its directory: data, log.
    const std::string& directory() const { return directory_.path(); }
    /// Its last log lines.
    std::string log() const;

    /// SIGKILL, and waits until it has ended.
    void kill();
    /// Starts it again on the same port and directory, killed first when it runs. Waits until it answers,
    /// which is after it has loaded what it persisted.
    void restart();
    /// SIGSTOP, and waits until it is stopped. Its kernel sockets go on taking connections and bytes.
    void stop();
    /// SIGCONT, and waits until it goes on.
    void resume();
    /// Whether its process is there; a stopped one is.
    bool running() const { return child_.running(); }

    /// Sends a command on a connection of the test's own (RESP2, as the default user) and reads the answer. The
    /// connection stays open for the next one. Throws `connection_lost`; the next call connects anew.
    reply command(std::initializer_list<std::string_view> arguments);
    /// Likewise.
    reply command(std::span<const std::string_view> arguments);

  private:
    /// How one start went.
    enum class start_result
    {
        answers,    ///< it is up
        port_taken, ///< it ended because somebody else has the port
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
    std::optional<control_client> control_;
};

/// Whether a server's program is there, or a program on PATH.
bool have_program(const std::string& name);

/// Starts n servers with the same options.
std::vector<server> start_servers(std::size_t n, server_options options = {});

} // namespace redlock::test
