// SPDX-License-Identifier: BSL-1.0
// The handshake on a new connection, which has to succeed before it may carry a vote: log-in, identity and role of the
// server, scripts, killing the stale connections, and the subscription of the manager's channel.
#include "net/connection.hpp"

#include "net/guard_scripts.hpp"
#include "net/info_field.hpp"
#include "net/queue_commands.hpp"
#include "net/queue_scripts.hpp"
#include "resp/serialise.hpp"

#include <charconv>
#include <utility>

namespace redlock::net
{

namespace
{

constexpr std::string_view no_client = "9223372036854775807"; // Never assigned: ids count up from 1.
constexpr int oldest_redis = 6;
constexpr const char* wrong_reply = "it sent a reply that doesn't fit the command";

/// Returns "standalone", "cluster" or "sentinel" from a reply to INFO. Valkey uses a different name for the field.
std::string_view mode_in(std::string_view info)
{
    const std::string_view redis = info_field(info, "redis_mode");
    return redis.empty() ? info_field(info, "server_mode") : redis;
}

std::string_view text_of(const resp::node* node)
{
    return node != nullptr ? node->text : std::string_view{};
}

/// Returns the first word of an error if it is an error code, such as "WRONGPASS". The rest may repeat the command,
/// which contains a password during log-in.
std::string first_word(std::string_view error)
{
    const std::string_view word = error.substr(0, error.find(' '));
    const bool plain = word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string_view::npos;
    return plain ? std::string{word} : std::string{};
}

/// Returns the reason why a server refused the log-in. A server that doesn't know the command doesn't know the password either.
/// Other errors may pass.
failure log_in_failure(std::string_view error, bool with_password)
{
    const core::server_error what = core::classify(error);
    const bool about_password =
        with_password && (what == core::server_error::unknown_command || core::is_about_log_in(error));
    return {
        about_password ? error_code{master_errc::authentication_failed} : reason_of(what), first_word(error)};
}

/// Returns the reason why a server with this mode and role can't be used as a master; empty if it can.
failure unfit(std::string_view mode, std::string_view role)
{
    if (mode == "cluster")
    {
        return {master_errc::cluster_node, {}};
    }
    if (!mode.empty() && mode != "standalone")
    {
        return {master_errc::command_failed, "its mode is " + std::string{mode}};
    }
    if (role == "slave" || role.ends_with("replica")) // KeyDB has active replicas.
    {
        return {master_errc::read_only, "its role is " + std::string{role}};
    }
    return {};
}

/// Returns a failure for the errors that don't depend on the command: the server isn't ready, or refuses this client.
failure not_now(const resp::reply& reply)
{
    if (!reply.is_error())
    {
        return {};
    }
    const core::server_error what = core::classify(reply.text());
    const bool passing = what == core::server_error::loading || what == core::server_error::busy ||
                         what == core::server_error::authentication || what == core::server_error::read_only;
    return passing ? failure{reason_of(what), std::string{reply.text()}} : failure{};
}

/// Returns whether the major version is below `major`; false if the version is unknown.
bool is_older_than(std::string_view version, int major)
{
    int theirs = major;
    std::from_chars(version.data(), version.data() + version.size(), theirs);
    return theirs < major;
}

} // namespace

/// Returns the next reply of the handshake, which is an error or of this kind; or null, in which case
/// `broken_handshake` returns the reason.
runtime::task<const resp::reply*> connection::next_reply(resp::kind expected)
{
    const resp::reply* reply = co_await next_reply();
    if (reply != nullptr && !reply->is_error())
    {
        const resp::kind kind = reply->root().kind;
        const bool fits =
            kind == expected || (kind == resp::kind::verbatim_string && expected == resp::kind::bulk_string);
        misfit_ = fits ? "" : wrong_reply;
        reply = fits ? reply : nullptr;
    }
    co_return reply;
}

/// Does so for a reply of any kind.
runtime::task<const resp::reply*> connection::next_reply()
{
    const resp::reply* reply = nullptr;
    for (;;)
    {
        if (!reading_.pending)
        {
            if (const std::size_t bytes = std::exchange(reading_.bytes, 0); bytes > 0)
            {
                parser_.commit(bytes);
            }
            reply = parser_.next();
            if (reply != nullptr && reply->is_push())
            {
                if (!accepts(*reply))
                {
                    reply = nullptr;
                    break;
                }
                continue;
            }
            if (reply != nullptr)
            {
                misfit_ = commands_.has_output() ? "it sent a reply without a command" : "";
                reply = misfit_.empty() ? reply : nullptr;
                break;
            }
        }
        if (broken_handshake().reason)
        {
            break;
        }
        start_io();
        co_await wake_event_;
    }
    co_return reply;
}

failure connection::broken_handshake() const
{
    if (!misfit_.empty())
    {
        return {master_errc::protocol_error, std::string{misfit_}};
    }
    if (pushes_.exceeded())
    {
        return {master_errc::protocol_error, std::string{push_guard::complaint}};
    }
    if (parser_.error() != resp::parse_error::none)
    {
        return {master_errc::protocol_error, std::string{resp::describe(parser_.error())}};
    }
    return io_failure();
}

runtime::task<failure> connection::handshake()
{
    failure why = co_await send_hello();
    if (!why.reason)
    {
        why = co_await kill_stale_connections();
    }
    if (!why.reason && subscription_.is_possible() && !subscription_.is_refused())
    {
        why = co_await subscribe();
    }
    co_return why;
}

runtime::task<failure> connection::send_hello()
{
    std::string& out = commands_.text();
    const std::string& password = to_.password().reveal();
    const std::string_view user = to_.username().empty() ? std::string_view{"default"} : to_.username();
    if (password.empty())
    {
        resp::append_command(out, {"HELLO", "3"});
    }
    else
    {
        resp::append_command(out, {"HELLO", "3", "AUTH", user, password});
    }
    const resp::reply* hello = co_await next_reply(resp::kind::map);
    if (hello == nullptr)
    {
        co_return broken_handshake();
    }
    if (hello->is_error())
    {
        // HELLO doesn't exist before Redis 6, and an ACL may forbid it. Valkey 9 and later answer NOAUTH to unknown
        // commands, but WRONGPASS to a HELLO with a wrong password. So NOAUTH means that HELLO is unknown.
        const std::string_view error = hello->text();
        const bool unknown = error.starts_with("ERR unknown command") || error.starts_with("NOPROTO") ||
                             error.starts_with("NOPERM") ||
                             (error.starts_with("NOAUTH") && !password.empty());
        failure why = log_in_failure(error, !password.empty());
        if (unknown)
        {
            why = co_await log_in_with_resp2();
        }
        co_return why;
    }
    subscription_.allow();
    const resp::node* id = hello->find("id");
    failure why = unfit(text_of(hello->find("mode")), text_of(hello->find("role")));
    const std::int64_t client_id = id != nullptr && id->kind == resp::kind::integer ? id->integer : 0;
    if (!why.reason)
    {
        why = co_await query_server_info(client_id);
    }
    co_return why;
}

/// Logs in to a server without HELLO, such as Redis 5.
runtime::task<failure> connection::log_in_with_resp2()
{
    std::string& out = commands_.text();
    const std::string& password = to_.password().reveal();
    if (!password.empty())
    {
        if (to_.username().empty())
        {
            resp::append_command(out, {"AUTH", password});
        }
        else
        {
            resp::append_command(out, {"AUTH", to_.username(), password});
        }
        const resp::reply* reply = co_await next_reply(resp::kind::simple_string);
        if (reply == nullptr)
        {
            co_return broken_handshake();
        }
        if (reply->is_error())
        {
            co_return log_in_failure(reply->text(), true);
        }
    }
    resp::append_command(out, {"CLIENT", "ID"});
    resp::append_command(out, {"INFO", "replication"});
    const resp::reply* id = co_await next_reply(resp::kind::integer);
    const bool has_id = id != nullptr && !id->is_error();
    const std::int64_t client_id = has_id ? id->integer() : 0;
    failure why = id != nullptr ? not_now(*id) : failure{};
    const resp::reply* info = id;
    if (info != nullptr)
    {
        info = co_await next_reply(resp::kind::bulk_string);
    }
    if (info == nullptr)
    {
        co_return broken_handshake();
    }
    if (!why.reason)
    {
        why = not_now(*info);
    }
    if (!why.reason && !info->is_error())
    {
        why = unfit({}, info_field(info->text(), "role"));
    }
    if (!why.reason)
    {
        why = co_await query_server_info(client_id);
    }
    co_return why;
}

/// Selects the database, sets the client name, loads the scripts, and queries the facts about the server. After the
/// SELECT, all commands are sent in one write.
runtime::task<failure> connection::query_server_info(std::int64_t client_id)
{
    std::string& out = commands_.text();
    if (to_.database() != 0)
    {
        const std::string database = std::to_string(to_.database());
        resp::append_command(out, {"SELECT", database});
        const resp::reply* selected = co_await next_reply(resp::kind::simple_string);
        if (selected == nullptr)
        {
            co_return broken_handshake();
        }
        if (selected->is_error())
        {
            const bool is_missing = selected->text().starts_with("ERR DB index is out of range");
            const error_code reason = is_missing ? error_code{master_errc::no_database}
                                                 : reason_of(core::classify(selected->text()));
            co_return failure{reason, std::string{selected->text()}};
        }
    }
    resp::append_command(out, {"CLIENT", "SETNAME", options_.client_name});
    resp::append_command(out, {"SCRIPT", "LOAD", extend_script.text});
    resp::append_command(out, {"SCRIPT", "LOAD", release_script.text});
    resp::append_command(out, {"SCRIPT", "LOAD", ask_script.text});
    resp::append_command(out, {"SCRIPT", "LOAD", release_to_queue_script.text});
    int conveniences = 5;
    if (options_.guarded)
    {
        for (const script& each :
             {guarded_acquire_script, guarded_ask_script, raise_script, guarded_extend_script})
        {
            resp::append_command(out, {"SCRIPT", "LOAD", each.text});
            ++conveniences;
        }
    }
    append_queue_trial(out, options_.key_prefix);
    resp::append_command(out, {"INFO", "server"});
    resp::append_command(out, {"INFO", "memory"});
    // No client has this id: the reply only shows whether the command is permitted.
    resp::append_command(out, {"CLIENT", "KILL", "ID", no_client});
    const bool with_resp3 = subscription_.is_possible();
    if (with_resp3)
    {
        resp::append_command(out, {"HELLO", "3"}); // Which ends the requests of the subscription.
    }

    const resp::reply* reply = nullptr;
    // The name and the scripts are optional: a script that isn't loaded is sent in full after a NOSCRIPT reply.
    for (int convenience = 0; convenience < conveniences; ++convenience)
    {
        reply = co_await next_reply(convenience == 0 ? resp::kind::simple_string : resp::kind::bulk_string);
        if (reply == nullptr)
        {
            co_return broken_handshake();
        }
        failure why = not_now(*reply);
        if (why.reason)
        {
            co_return why;
        }
    }
    reply = co_await next_reply(resp::kind::array);
    if (reply == nullptr)
    {
        co_return broken_handshake();
    }
    failure why = not_now(*reply);
    server_ = {};
    if (!reply->is_error())
    {
        const std::optional<queue_refusals> found = read_queue_trial(*reply);
        if (!found)
        {
            misfit_ = wrong_reply;
            co_return broken_handshake();
        }
        commands_.note_trial(*found);
    }
    reply = co_await next_reply(resp::kind::bulk_string);
    if (reply == nullptr)
    {
        co_return broken_handshake();
    }
    if (!why.reason)
    {
        why = not_now(*reply);
    }
    std::string run_id;
    if (!why.reason && !reply->is_error())
    {
        run_id = info_field(reply->text(), "run_id");
        why = unfit(mode_in(reply->text()), {});
        server_.has_run_id = !run_id.empty();
        const std::string_view valkey = info_field(reply->text(), "valkey_version");
        server_.server = valkey.empty() ? "redis" : "valkey";
        server_.version = valkey.empty() ? info_field(reply->text(), "redis_version") : valkey;
    }
    // A server that is reached through two of the addresses would have two votes.
    if (!why.reason && !owner_.claim_run_id(index_, run_id))
    {
        why = {master_errc::same_server, "run id " + run_id};
    }
    reply = co_await next_reply(resp::kind::bulk_string);
    if (reply == nullptr)
    {
        co_return broken_handshake();
    }
    if (!why.reason)
    {
        why = not_now(*reply);
    }
    if (!reply->is_error())
    {
        server_.maxmemory_policy = info_field(reply->text(), "maxmemory_policy");
    }
    reply = co_await next_reply(resp::kind::integer);
    if (reply == nullptr)
    {
        co_return broken_handshake();
    }
    if (!why.reason)
    {
        why = not_now(*reply);
    }
    server_.may_kill_connections = client_id != 0 && !reply->is_error();
    if (with_resp3)
    {
        reply = co_await next_reply(resp::kind::map);
        if (reply == nullptr)
        {
            co_return broken_handshake();
        }
        if (!why.reason)
        {
            why = not_now(*reply);
        }
        if (reply->is_error())
        {
            subscription_.refuse();
        }
    }
    if (!why.reason)
    {
        if (run_id.empty() || run_id != stale_connections_.run_id())
        {
            clock_watch_.forget();
        }
        stale_connections_.identify(client_id, std::move(run_id));
    }
    co_return why;
}

/// Kills the stale connections, on which a SET of ours may still run.
runtime::task<failure> connection::kill_stale_connections()
{
    std::string& out = commands_.text();
    for (const std::int64_t id : stale_connections_.to_kill())
    {
        const std::string text = std::to_string(id);
        resp::append_command(out, {"CLIENT", "KILL", "ID", text});
    }
    for (std::size_t left = stale_connections_.to_kill().size(); left > 0; --left)
    {
        const resp::reply* reply = co_await next_reply(resp::kind::integer);
        if (reply == nullptr)
        {
            co_return broken_handshake();
        }
        // An integer is the number of connections killed; 0 means that it had ended already. An error means that
        // CLIENT KILL is forbidden or renamed. Then a stale SET may run after its release.
        const failure why = not_now(*reply);
        if (why.reason)
        {
            co_return why;
        }
    }
    stale_connections_.confirm();
    co_return failure{};
}

/// Subscribes to the manager's channel. A refusal doesn't end the handshake.
runtime::task<failure> connection::subscribe()
{
    subscription_.request(commands_.text(), options_.channel);
    while (subscription_.is_pending())
    {
        const resp::reply* reply = co_await next_reply();
        if (reply == nullptr)
        {
            co_return broken_handshake();
        }
        if (!subscription_.on_reply(*reply))
        {
            co_return failure{master_errc::protocol_error, subscription::misfit};
        }
    }
    co_return failure{};
}

std::vector<master_issue> connection::risks() const
{
    std::vector<master_issue> found;
    if (!server_.has_run_id)
    {
        found.push_back({risk::no_identity, "it doesn't answer INFO"});
    }
    if (!server_.may_kill_connections)
    {
        found.push_back({risk::cannot_kill_stale_connections, "it forbids CLIENT ID or CLIENT KILL"});
    }
    if (!server_.maxmemory_policy.empty() && server_.maxmemory_policy != "noeviction")
    {
        found.push_back({risk::eviction, "maxmemory-policy is " + server_.maxmemory_policy});
    }
    if (server_.server == "redis" && is_older_than(server_.version, oldest_redis))
    {
        found.push_back({risk::outdated, "it is redis " + server_.version});
    }
    if (!commands_.forbidden_deletion().empty())
    {
        found.push_back({risk::release_refused, commands_.forbidden_deletion()});
    }
    if (!commands_.forbidden_question().empty())
    {
        found.push_back({risk::limited_queue, commands_.forbidden_question()});
    }
    else if (subscription_.is_refused())
    {
        found.push_back({risk::limited_queue, subscription::complaint});
    }
    else if (!subscription_.is_possible())
    {
        found.push_back({risk::limited_queue, "it doesn't speak RESP3, so waiting clients poll"});
    }
    return found;
}

} // namespace redlock::net
