// SPDX-License-Identifier: BSL-1.0
// The commands with which a group is provisioned, and their replies.
#include "net/provision_commands.hpp"

#include "net/decimal.hpp"
#include "net/provision_scripts.hpp"
#include "net/trial_scripts.hpp"
#include "resp/serialise.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

namespace redlock::net
{

namespace
{

// The elements of the reply to a look, from 1: the root is node 0.
enum element : std::size_t
{
    its_marker = 1,
    its_record,
    its_replaced_groups,
    its_largest_counter,
    floor_exists,
    foreign_key_exists,
    its_replication_id,
    its_role,
    its_policy,
    other_key_exists,
    its_other_database,
    its_other_marker,
    its_clock,
    node_count
};

bool is_text(const resp::node& node) noexcept
{
    return node.kind == resp::kind::bulk_string;
}

bool has_the_form(std::span<const resp::node> nodes) noexcept
{
    const auto texts = {its_replication_id, its_role, its_policy, its_other_marker};
    const auto optional_texts = {its_marker, its_record, its_replaced_groups};
    const auto numbers = {its_largest_counter, floor_exists,       foreign_key_exists,
                          other_key_exists,    its_other_database, its_clock};
    return nodes.size() == node_count && nodes.front().kind == resp::kind::array &&
           std::all_of(texts.begin(), texts.end(), [&](element each) { return is_text(nodes[each]); }) &&
           std::all_of(
               optional_texts.begin(), optional_texts.end(),
               [&](element each) { return is_text(nodes[each]) || nodes[each].kind == resp::kind::null; }) &&
           std::all_of(
               numbers.begin(), numbers.end(),
               [&](element each) { return nodes[each].kind == resp::kind::integer; });
}

std::optional<std::string> text_or_none(const resp::node& node)
{
    return is_text(node) ? std::optional{std::string{node.text}} : std::nullopt;
}

} // namespace

void append_provision_look(std::string& out, const guard_keys& keys, int database)
{
    const decimal number{database};
    resp::append_command(
        out, {"EVAL", provision_look_script, "4", keys.members, keys.guard, keys.fence, keys.replaced,
              number.view()});
}

void append_provision_trial(std::string& out, const guard_keys& keys, int database, bool leaves)
{
    const decimal number{database};
    resp::append_command(
        out, {"EVAL", provision_trial_script, "4", keys.members, keys.guard, keys.fence, keys.replaced,
              number.view(), leaves ? "1" : "0"});
}

void append_provision_quarantine(
    std::string& out, const guard_keys& keys, const marker_change& change, int database)
{
    const std::string script = provision_quarantine_script();
    const std::string marker = core::to_text(change.begun);
    const std::string record = core::to_text(change.members);
    const std::string replaced = core::to_text(change.replaced);
    const decimal number{database};
    resp::append_command(
        out, {"EVAL", script, "4", keys.members, keys.guard, keys.fence, keys.replaced, change.seen, marker,
              number.view(), record, replaced, change.keeps_counters ? "1" : "0"});
}

void append_retire(std::string& out, const guard_keys& keys, std::string_view seen, int database)
{
    const decimal number{database};
    resp::append_command(
        out, {"EVAL", retire_script, "4", keys.members, keys.guard, keys.fence, keys.replaced, seen,
              number.view()});
}

std::optional<core::provision_sight> read_provision_look(const resp::reply& reply)
{
    const std::span<const resp::node> nodes = reply.nodes;
    if (!has_the_form(nodes))
    {
        return std::nullopt;
    }
    core::provision_sight seen;
    seen.marker = text_or_none(nodes[its_marker]);
    seen.members = text_or_none(nodes[its_record]);
    seen.replaced = text_or_none(nodes[its_replaced_groups]);
    if (const std::int64_t largest = nodes[its_largest_counter].integer; largest >= 0)
    {
        seen.largest = static_cast<std::uint64_t>(largest);
    }
    seen.has_floor = nodes[floor_exists].integer != 0;
    seen.has_foreign_key = nodes[foreign_key_exists].integer != 0;
    seen.replication_id = nodes[its_replication_id].text;
    seen.is_master = nodes[its_role].text == "master";
    seen.maxmemory_policy = nodes[its_policy].text;
    seen.has_other_keys = nodes[other_key_exists].integer != 0;
    if (const std::int64_t other = nodes[its_other_database].integer;
        other >= 0 && other <= std::numeric_limits<int>::max())
    {
        seen.other_database = static_cast<int>(other);
        seen.other_marker = nodes[its_other_marker].text;
    }
    seen.clock = std::chrono::microseconds{std::max<std::int64_t>(nodes[its_clock].integer, 0)};
    return seen;
}

} // namespace redlock::net
