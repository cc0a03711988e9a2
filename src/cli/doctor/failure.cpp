// SPDX-License-Identifier: BSL-1.0
// Turns the library's error codes into findings, in the words of the library's messages where they suffice.
#include "cli/doctor/failure.hpp"

#include "cli/common/message.hpp"

#include <boost/asio/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace redlock::cli
{

namespace
{

constexpr const char* no_vote = "It has no vote";

std::string seen(const master_examination& one)
{
    const std::string happened = in_plain_words(one.reason);
    return one.detail.empty() ? happened : fmt::format("{} (\"{}\")", happened, one.detail);
}

/// Two addresses of one server. Which of them is refused is a matter of chance, so the finding names both.
finding same_server(const master_examination& one, const std::vector<master_facts>& all)
{
    const auto other = std::find_if(
        all.begin(), all.end(),
        [&one](const master_facts& facts)
        {
            const master_examination& each = facts.examined;
            return !each.reason && !each.run_id.empty() && one.detail.find(each.run_id) != std::string::npos;
        });
    const std::string name = other == all.end() ? "another master" : other->examined.name;
    return {
        severity::failure, "same_server", fmt::format("it is the same server as {} ({})", name, one.detail),
        "With two votes, the failure of one server would count twice, so one of the two addresses has no "
        "vote",
        "Give each server once"};
}

/// Returns whether a server was reached, and the TLS handshake not answered: one without TLS waits for the rest of a command.
bool awaits_tls(const master_examination& one)
{
    return one.reason == master_errc::connect_timed_out && one.detail == "the TLS handshake wasn't answered";
}

/// Returns whether the first command ended the connection, as on a server that expects TLS.
bool may_expect_tls(const master_examination& one)
{
    return one.name.starts_with("redis://") && one.server.empty() &&
           (one.reason == boost::asio::error::connection_reset || one.reason == master_errc::connection_lost);
}

/// A master that can't be reached.
finding unreachable(const master_examination& one)
{
    std::string advice = "Check that it runs, its address, the network and firewalls";
    if (is_refused_by_system(one.reason))
    {
        advice = "Raise the limits of this process (ulimit -a), then run doctor again";
    }
    else if (one.reason == master_errc::connect_timed_out)
    {
        advice += ", or give a longer --connect-timeout if it is far away";
    }
    else if (may_expect_tls(one))
    {
        advice += "; if it speaks TLS, give rediss:// instead of redis://";
    }
    return {severity::failure, "unreachable", seen(one), no_vote, advice};
}

finding over_tls(const master_examination& one)
{
    finding result{severity::failure, "tls", seen(one), no_vote, advice_in(one.reason)};
    if (one.reason == master_errc::certificate_untrusted)
    {
        result.advice =
            "Give the authority that signed it with --ca-file, or check which server answers at this address";
    }
    else if (one.reason == master_errc::connect_timed_out)
    {
        result.advice =
            "Check that it speaks TLS on that port, or give a longer --connect-timeout if it is far away";
    }
    else if (one.reason == master_errc::tls_failed)
    {
        result.advice = "Check that it speaks TLS on that port; if it requires a client certificate, give "
                        "--certificate-file and --private-key-file";
    }
    return result;
}

/// Redis and Valkey in protected mode refuse clients from other machines while the default user has no password.
finding protected_mode()
{
    return {
        severity::failure, "protected_mode",
        "it is in protected mode: its default user needs no password, and clients from other machines are "
        "refused",
        no_vote,
        "Create a user for administration and log in as it, create one for locks, then disable the default "
        "user: ACL SETUSER default off resetpass -@all (see docs/deployment.md)"};
}

/// Returns the kind of an error that is neither unreachable nor TLS.
std::string_view kind_of(master_errc reason) noexcept
{
    switch (reason)
    {
    case master_errc::protocol_error:
        return "protocol";
    case master_errc::authentication_failed:
        return "authentication";
    case master_errc::no_permission:
        return "permission";
    case master_errc::loading:
    case master_errc::busy:
        return "not_ready";
    case master_errc::read_only:
        return "replica";
    case master_errc::cluster_node:
        return "cluster_node";
    default:
        return "refused";
    }
}

} // namespace

std::string advice_in(const error_code& reason)
{
    const std::string text = reason.message();
    const std::size_t colon = text.find(": ");
    std::string advice = colon == std::string::npos ? std::string{} : text.substr(colon + 2);
    if (!advice.empty() && advice.front() >= 'a' && advice.front() <= 'z')
    {
        advice.front() = static_cast<char>(advice.front() - 'a' + 'A');
    }
    return advice;
}

std::optional<refusing_setting> setting_behind(const error_code& reason)
{
    if (reason == master_errc::out_of_memory)
    {
        return refusing_setting{"memory", "Raise maxmemory, and store nothing but locks on it"};
    }
    if (reason == master_errc::no_replicas)
    {
        return refusing_setting{
            "replicas", "Set min-replicas-to-write 0: a master for locks needs no replicas"};
    }
    if (reason == master_errc::misconfigured)
    {
        return refusing_setting{
            "cannot_save",
            "Check its log for why it can't save (a full disk?), or disable snapshots with save \"\""};
    }
    return std::nullopt;
}

finding failure_of(const master_facts& facts, const std::vector<master_facts>& all)
{
    const master_examination& one = facts.examined;
    if (one.detail.starts_with("DENIED"))
    {
        return protected_mode();
    }
    if (one.reason.category() != master_category())
    {
        return unreachable(one);
    }
    if (awaits_tls(one))
    {
        return over_tls(one);
    }
    const auto reason = static_cast<master_errc>(one.reason.value());
    switch (reason)
    {
    case master_errc::not_connected:
    case master_errc::timed_out:
    case master_errc::unresponsive:
    case master_errc::connect_timed_out:
    case master_errc::connection_lost:
        return unreachable(one);
    case master_errc::tls_failed:
    case master_errc::certificate_untrusted:
    case master_errc::certificate_expired:
    case master_errc::certificate_wrong_name:
        return over_tls(one);
    case master_errc::same_server:
        return same_server(one, all);
    default:
        return {severity::failure, kind_of(reason), seen(one), no_vote, advice_in(one.reason)};
    }
}

} // namespace redlock::cli
