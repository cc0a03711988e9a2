// SPDX-License-Identifier: BSL-1.0
// Rules for the guarded mode.
#include "token_rules.hpp"

#include "support/fake_replies.hpp"
#include "support/guarded_words.hpp"

#include "core/marker.hpp"
#include "core/members.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace redlock::test
{

namespace
{

const std::string guard_key = "lock::redlock-guard";
const std::string fence_key = "lock::redlock-fence";
const std::string members_key = "lock::redlock-members";
constexpr const char* first_group = "0123456789abcdef";
constexpr std::size_t counters_of_a_master = 1024;

std::uint64_t number_of(const std::optional<std::string>& text)
{
    return text ? integer_in<std::uint64_t>(*text).value_or(0) : 0;
}

std::uint64_t microseconds(clock::time_point shown)
{
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(shown.time_since_epoch()).count());
}

} // namespace

guarded_masters::guarded_masters(
    std::vector<sim_master*> masters, std::vector<std::string> names, std::chrono::milliseconds max_ttl,
    std::size_t database)
    : masters_{std::move(masters)},
      names_{std::move(names)},
      group_{first_group},
      names_of_groups_{first_group},
      max_ttl_{max_ttl},
      longest_ttl_{max_ttl},
      database_{database}
{
}

void guarded_masters::provision()
{
    for (std::size_t master = 0; master < size(); ++master)
    {
        put_marker(master, "armed");
        at(master).set_field(fence_key, "floor", "1000");
        at(master).set(members_key, record());
        at(master).keep_present_state();
    }
}

void guarded_masters::put_into_quarantine(std::size_t master)
{
    for (std::size_t other = 0; other < master_store::databases; ++other)
    {
        at(master).show_database(other);
        at(master).remove(guard_key);
    }
    at(master).show_database(database_);
    put_marker(master, "quarantine");
}

void guarded_masters::arm(std::size_t master)
{
    using namespace std::chrono_literals;
    std::uint64_t floor = largest_counter();
    for (const sim_master* const each : masters_)
    {
        floor = std::max(floor, microseconds(each->now() + 2h));
    }
    at(master).set_field(fence_key, "floor", std::to_string(floor));
    at(master).set(members_key, record());
    put_marker(master, "armed");
}

void guarded_masters::remove_marker(std::size_t master)
{
    at(master).remove(guard_key);
}

void guarded_masters::put_marker(std::size_t master, std::string_view state)
{
    at(master).set(
        guard_key,
        core::to_text(
            {.group = group_,
             .seat = static_cast<std::uint32_t>(master + 1),
             .masters = static_cast<std::uint32_t>(size()),
             .max_ttl = max_ttl_,
             .policy = core::arming_policy::clocks,
             .state = state == "armed" ? core::marker_state::armed : core::marker_state::quarantine,
             .why = core::incarnation_end::created,
             .nonce = fmt::format("{:016x}", ++nonces_),
             .replication_id = at(master).replication_id}));
}

std::string guarded_masters::record() const
{
    return core::to_text(core::member_record{group_, names_});
}

std::optional<core::marker> guarded_masters::its_marker(std::size_t master) const
{
    const std::optional<std::string> text = at(master).value(guard_key);
    return text ? core::parse_marker(*text) : std::nullopt;
}

std::chrono::milliseconds guarded_masters::max_ttl(std::size_t master) const
{
    const std::optional<core::marker> found = its_marker(master);
    return found ? found->max_ttl : max_ttl_;
}

void guarded_masters::note_armed(std::size_t master)
{
    const std::optional<core::marker> its = its_marker(master);
    if (its && names_of_groups_.insert(its->group).second)
    {
        latest_ = its;
    }
}

void guarded_masters::choose_group()
{
    if (latest_)
    {
        group_ = latest_->group;
        max_ttl_ = latest_->max_ttl;
    }
}

bool guarded_masters::choose_shown_group()
{
    std::optional<core::marker> shown;
    for (std::size_t master = 0; master < size(); ++master)
    {
        const std::optional<core::marker> its = its_marker(master);
        shown = its ? its : shown;
    }
    if (!shown || !is_one() || shown->group == group_)
    {
        return false;
    }
    group_ = shown->group;
    max_ttl_ = shown->max_ttl;
    return true;
}

bool guarded_masters::is_member(std::size_t master) const
{
    return is_armed(master) && its_marker(master)->group == group_;
}

bool guarded_masters::is_one() const
{
    std::set<std::string> groups;
    for (std::size_t master = 0; master < size(); ++master)
    {
        if (const std::optional<core::marker> found = its_marker(master))
        {
            groups.insert(found->group);
        }
    }
    return groups.size() < 2;
}

bool guarded_masters::is_forgotten() const
{
    return std::none_of(
        masters_.begin(), masters_.end(),
        [](sim_master* each) { return each->value(guard_key).has_value(); });
}

bool guarded_masters::is_armed(std::size_t master) const
{
    const std::optional<core::marker> found = its_marker(master);
    return found && found->state == core::marker_state::armed &&
           found->replication_id == at(master).replication_id && floor(master) > 0;
}

std::size_t guarded_masters::count_armed() const
{
    std::size_t count = 0;
    for (std::size_t master = 0; master < size(); ++master)
    {
        count += is_armed(master) ? 1U : 0U;
    }
    return count;
}

bool guarded_masters::is_stale(std::size_t master) const
{
    const std::optional<core::marker> found = its_marker(master);
    if (!found || is_armed(master))
    {
        return false;
    }
    const bool was_armed =
        found->state == core::marker_state::armed || found->why == core::incarnation_end::clock;
    return was_armed ? found->replication_id != at(master).replication_id
                     : found->why == core::incarnation_end::stale;
}

bool guarded_masters::has_record(std::size_t master) const
{
    return at(master).value(guard_key) && at(master).value(members_key);
}

bool guarded_masters::has_kept_counters(std::size_t master) const
{
    const std::optional<core::marker> found = its_marker(master);
    const bool is_for_clock = found && found->state == core::marker_state::quarantine &&
                              found->why == core::incarnation_end::clock &&
                              found->replication_id == at(master).replication_id &&
                              at(master).field(fence_key, "floor");
    return is_armed(master) || is_for_clock;
}

std::string guarded_masters::nonce(std::size_t master) const
{
    const std::optional<core::marker> found = its_marker(master);
    return found ? found->nonce : std::string{};
}

std::uint64_t guarded_masters::counter(std::size_t master, const std::string& slot) const
{
    const std::uint64_t floor = number_of(at(master).field(fence_key, "floor"));
    return floor == 0 ? 0 : std::max(floor, number_of(at(master).field(fence_key, slot)));
}

std::uint64_t guarded_masters::largest_counter() const
{
    std::uint64_t largest = 0;
    for (std::size_t master = 0; master < size(); ++master)
    {
        for (std::size_t slot = 0; slot < counters_of_a_master; ++slot)
        {
            largest = std::max(largest, counter(master, std::to_string(slot)));
        }
    }
    return largest;
}

bool guarded_masters::has_other_marker(std::size_t master) const
{
    bool found = false;
    for (std::size_t other = 0; other < master_store::databases; ++other)
    {
        at(master).show_database(other);
        found = found || (other != database_ && at(master).value(guard_key));
    }
    at(master).show_database(database_);
    return found;
}

std::optional<clock::duration> token_rules::since_loss(std::size_t master, clock::time_point at) const
{
    const std::optional<clock::time_point> lost = group_->at(master).last_loss();
    return lost && !put_back_.contains(master) ? std::optional{at - *lost} : std::nullopt;
}

std::optional<violation> token_rules::look(
    std::size_t master, const std::string& what, const command& words, const std::string& reply,
    clock::time_point at, bool by_operator)
{
    if (const auto plain = in_plain_mode(what, words, reply); plain && plain->counter)
    {
        const std::string& owner_id = plain->words[plain->what == "SET" ? 2 : 5];
        if (group_->at(master).value(words[3]) == owner_id)
        {
            exact_[owner_id][master].insert(*plain->counter);
        }
        return check_vote(master, at);
    }
    if (const auto raise = read_raise(what, words))
    {
        ++raises_;
        // A resource with the same counter may have raised it further. What was granted before is what matters.
        std::set<std::uint64_t>& granted = exact_[raise->owner_id][master];
        const bool is_exact = reply == ":1\r\n" && group_->counter(master, raise->slot) >= raise->token &&
                              group_->at(master).value(raise->key) == raise->owner_id && !granted.empty() &&
                              *granted.rbegin() <= raise->token;
        if (is_exact)
        {
            granted.insert(raise->token);
        }
        return reply == ":1\r\n" ? check_vote(master, at) : std::nullopt;
    }
    if (what == "quarantine" && reply.starts_with('$'))
    {
        const std::string present = group_->at(master).value(guard_key).value_or("");
        quarantine& known = quarantines_[master];
        known = known.marker == present ? known : quarantine{present, at};
    }
    const bool has_armed = what == "arm" && reply.starts_with(':') && !reply.starts_with(":-");
    return has_armed ? check_arming(master, at, by_operator) : std::nullopt;
}

std::optional<violation>
token_rules::look_at_stranger(const std::string& what, const command& words, const std::string& reply)
{
    const auto plain = in_plain_mode(what, words, reply);
    const bool has_granted = plain && plain->counter;
    const bool is_armed = what == "arm" && reply.starts_with(':') && !reply.starts_with(":-");
    return has_granted || is_armed
               ? std::optional{violation{
                     "stranger armed",
                     fmt::format("a server of no list {}", is_armed ? "is armed" : "has granted a lock")}}
               : std::nullopt;
}

std::optional<violation> token_rules::check_vote(std::size_t master, clock::time_point at) const
{
    if (!group_->is_armed(master))
    {
        return violation{"quarantine", fmt::format("master {} votes, and isn't armed", master)};
    }
    const std::optional<clock::duration> passed = since_loss(master, at);
    if (passed && *passed < group_->max_ttl(master))
    {
        return violation{
            "quarantine", fmt::format(
                              "master {} votes {} us after it may have lost keys", master,
                              std::chrono::duration_cast<std::chrono::microseconds>(*passed).count())};
    }
    return std::nullopt;
}

/// Floors by the clock rise if the masters' clocks differ by less than the time between two restarts of too many.
bool token_rules::clocks_order_floors(clock::time_point at) const
{
    std::optional<clock::time_point> last_loss;
    clock::time_point earliest = clock::time_point::max();
    clock::time_point latest = clock::time_point::min();
    for (std::size_t master = 0; master < group_->size(); ++master)
    {
        last_loss = std::max(last_loss, group_->at(master).last_loss());
        earliest = std::min(earliest, group_->at(master).now());
        latest = std::max(latest, group_->at(master).now());
    }
    return std::all_of(
        armed_by_clock_.begin(), armed_by_clock_.end(),
        [&](clock::time_point before) { return before > last_loss || at - before > latest - earliest; });
}

std::optional<violation> token_rules::check_arming(std::size_t master, clock::time_point at, bool by_operator)
{
    ++arms_;
    armed_at_[master] = at;
    group_->note_armed(master);
    const std::size_t others = group_->count_armed() - (group_->is_armed(master) ? 1U : 0U);
    // At a change, the masters of the old group have the counters.
    const bool by_clock = !by_operator && others + quorum_ < group_->size() + 1;
    promised_ = promised_ && (!by_clock || (trusts_clocks_ && clocks_order_floors(at)));
    if (by_clock)
    {
        armed_by_clock_.push_back(at);
    }
    const std::optional<clock::duration> passed = since_loss(master, at);
    if (passed && *passed < group_->max_ttl(master))
    {
        return violation{
            "quarantine", fmt::format(
                              "master {} is armed {} us after it may have lost keys", master,
                              std::chrono::duration_cast<std::chrono::microseconds>(*passed).count())};
    }
    if (group_->may_evict(master))
    {
        return violation{"eviction", fmt::format("master {} is armed, and may evict keys", master)};
    }
    if (group_->has_other_marker(master))
    {
        return violation{
            "one marker", fmt::format("master {} is armed, and another database has a marker", master)};
    }
    // The counters are read after the wait.
    const auto begun = quarantines_.find(master);
    const clock::time_point wait_ends =
        (begun != quarantines_.end() ? begun->second.since : at - passed.value_or(clock::duration{0})) +
        group_->max_ttl(master);
    std::uint64_t least = 0;
    for (const auto& [when, largest] : issued_)
    {
        least = when < wait_ends ? largest : least;
    }
    if (promised_ && group_->floor(master) < least)
    {
        return violation{
            "floor", fmt::format(
                         "master {} is armed with the floor {}, and {} was issued", master,
                         group_->floor(master), least)};
    }
    return std::nullopt;
}

std::optional<violation> token_rules::issued(
    const std::string& key, const std::string& owner_id, std::optional<std::uint64_t> token, moment began,
    bool is_valid, clock::time_point at)
{
    if (!token)
    {
        return violation{"token", fmt::format("{} has no token", owner_id)};
    }
    ++tokens_;
    std::size_t exact = 0;
    if (const auto found = exact_.find(owner_id); found != exact_.end())
    {
        for (const auto& [master, counters] : found->second)
        {
            exact += counters.contains(*token) ? 1U : 0U;
        }
    }
    if (exact < quorum_)
    {
        return violation{
            "token exact",
            fmt::format("{} is issued to {}, and {} masters had it exactly", *token, owner_id, exact)};
    }
    resource_tokens& of = resources_[key];
    if (promised_ && !of.all.insert(*token).second)
    {
        return violation{"token unique", fmt::format("{} of {} is issued twice", *token, key)};
    }
    std::uint64_t before = 0;
    for (const issue& each : of.issues)
    {
        before = each.when < began ? each.largest : before;
    }
    if (promised_ && *token <= before)
    {
        return violation{
            "token order",
            fmt::format(
                "{} of {} is issued to an acquire that began after {} was issued", *token, key, before)};
    }
    const std::uint64_t largest = of.issues.empty() ? 0 : of.issues.back().largest;
    if (promised_ && is_valid && *token <= largest)
    {
        return violation{"token rises", fmt::format("{} of {} is issued after {}", *token, key, largest)};
    }
    of.issues.push_back({now(), std::max(largest, *token)});
    issued_.emplace_back(at, std::max(issued_.empty() ? 0 : issued_.back().second, *token));
    return std::nullopt;
}

} // namespace redlock::test
