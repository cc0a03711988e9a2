// SPDX-License-Identifier: BSL-1.0
// The keys of a simulated master.
#include "master_store.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace redlock::test
{

namespace
{

constexpr std::size_t max_changes = 8192; // And their parts. No test goes back further.

} // namespace

bool sorted_set::put(const std::string& member, double score)
{
    const bool fresh = !remove(member);
    scores_.emplace(member, score);
    order_.emplace(score, member);
    return fresh;
}

bool sorted_set::remove(const std::string& member)
{
    const auto found = scores_.find(member);
    if (found == scores_.end())
    {
        return false;
    }
    order_.erase({found->second, member});
    scores_.erase(found);
    return true;
}

std::optional<double> sorted_set::score(const std::string& member) const
{
    const auto found = scores_.find(member);
    return found != scores_.end() ? std::optional{found->second} : std::nullopt;
}

std::optional<std::size_t> sorted_set::rank(const std::string& member) const
{
    const auto found = scores_.find(member);
    if (found == scores_.end())
    {
        return std::nullopt;
    }
    return static_cast<std::size_t>(std::distance(order_.begin(), order_.find({found->second, member})));
}

const std::string& sorted_set::at(std::size_t rank) const
{
    return std::next(order_.begin(), static_cast<std::ptrdiff_t>(rank))->second;
}

std::chrono::milliseconds master_store::whole_now() const noexcept
{
    return std::chrono::floor<std::chrono::milliseconds>(now().time_since_epoch());
}

bool master_store::lapsed(const entry& one) const noexcept
{
    return one.expires_at && whole_now() > one.expires_at->time_since_epoch();
}

const master_store::entry* master_store::find(const std::string& key)
{
    const auto found = keys().find(key);
    if (found == keys().end())
    {
        return nullptr;
    }
    if (lapsed(found->second))
    {
        note(key);
        keys().erase(found);
        return nullptr;
    }
    return &found->second;
}

std::chrono::milliseconds master_store::left(const entry& of) const noexcept
{
    const auto end = std::chrono::floor<std::chrono::milliseconds>(of.expires_at->time_since_epoch());
    return std::max(end - whole_now(), std::chrono::milliseconds{0});
}

void master_store::put(
    const std::string& key, std::string value, std::optional<std::chrono::milliseconds> ttl)
{
    note(key);
    entry fresh{.value = std::move(value)};
    if (ttl)
    {
        fresh.expires_at = clock::time_point{whole_now() + *ttl};
    }
    keys().insert_or_assign(key, std::move(fresh));
}

master_store::entry& master_store::change(const std::string& key, type of)
{
    note(key);
    return keys().try_emplace(key, entry{.of = of}).first->second;
}

void master_store::remove_if_empty(const std::string& key)
{
    const auto found = keys().find(key);
    if (found != keys().end() && found->second.of != type::text && found->second.size() == 1)
    {
        keys().erase(found);
    }
}

void master_store::expire_in(const std::string& key, std::chrono::milliseconds ttl)
{
    note(key);
    keys().at(key).expires_at = clock::time_point{whole_now() + ttl};
}

bool master_store::remove(const std::string& key)
{
    if (find(key) == nullptr)
    {
        return false;
    }
    note(key);
    keys().erase(key);
    return true;
}

std::vector<std::pair<std::string, std::string>> master_store::contents()
{
    std::vector<std::pair<std::string, std::string>> all;
    for (const auto& [key, one] : keys())
    {
        if (!lapsed(one))
        {
            all.emplace_back(key, one.value);
        }
    }
    return all;
}

std::size_t master_store::size_of(std::size_t which) const
{
    return static_cast<std::size_t>(std::count_if(
        databases_.at(which).begin(), databases_.at(which).end(),
        [this](const auto& each) { return !lapsed(each.second); }));
}

void master_store::flush()
{
    for (std::size_t at = 0; at < databases; ++at)
    {
        for (const auto& [key, one] : databases_[at])
        {
            note(at, key);
        }
        databases_[at].clear();
    }
    ++losses_;
}

void master_store::swap(std::size_t one, std::size_t other)
{
    add({.at = world_.now(), .in = one, .key = {}, .before = {}, .swapped_with = other});
    databases_[one].swap(databases_[other]);
}

bool master_store::evict(std::size_t which)
{
    if (keys().empty())
    {
        return false;
    }
    const std::string key =
        std::next(keys().begin(), static_cast<std::ptrdiff_t>(which % keys().size()))->first;
    note(key);
    keys().erase(key);
    ++losses_;
    return true;
}

void master_store::go_back_to(clock::time_point truth)
{
    ++losses_;
    while (!changes_.empty() && changes_.back().at > truth)
    {
        change_note last = std::move(changes_.back());
        changes_.pop_back();
        changes_size_ -= last.size();
        undo(std::move(last));
    }
}

void master_store::undo(change_note last)
{
    database& in = databases_[last.in];
    if (last.swapped_with)
    {
        in.swap(databases_[*last.swapped_with]);
    }
    else if (last.before)
    {
        in.insert_or_assign(last.key, std::move(*last.before));
    }
    else
    {
        in.erase(last.key);
    }
}

/// Called before the key changes.
void master_store::note(std::size_t in, const std::string& key)
{
    if (!changes_.empty())
    {
        const change_note& last = changes_.back();
        if (last.at == world_.now() && last.in == in && last.key == key && !last.swapped_with)
        {
            return;
        }
    }
    const auto found = databases_[in].find(key);
    add(
        {.at = world_.now(),
         .in = in,
         .key = key,
         .before = found != databases_[in].end() ? std::optional{found->second} : std::nullopt});
}

void master_store::add(change_note one)
{
    if (changes_size_ >= max_changes)
    {
        changes_.erase(
            changes_.begin(), changes_.begin() + static_cast<std::ptrdiff_t>((changes_.size() + 1) / 2));
        changes_size_ = std::accumulate(
            changes_.begin(), changes_.end(), std::size_t{0},
            [](std::size_t sum, const change_note& each) { return sum + each.size(); });
    }
    changes_size_ += one.size();
    changes_.push_back(std::move(one));
}

} // namespace redlock::test
