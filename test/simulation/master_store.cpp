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
    const auto found = keys_.find(key);
    if (found == keys_.end())
    {
        return nullptr;
    }
    if (lapsed(found->second))
    {
        note(key);
        keys_.erase(found);
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
    keys_.insert_or_assign(key, std::move(fresh));
}

master_store::entry& master_store::change(const std::string& key, type of)
{
    note(key);
    return keys_.try_emplace(key, entry{.of = of}).first->second;
}

void master_store::remove_if_empty(const std::string& key)
{
    const auto found = keys_.find(key);
    if (found != keys_.end() && found->second.of != type::text && found->second.size() == 1)
    {
        keys_.erase(found);
    }
}

void master_store::expire_in(const std::string& key, std::chrono::milliseconds ttl)
{
    note(key);
    keys_.at(key).expires_at = clock::time_point{whole_now() + ttl};
}

bool master_store::remove(const std::string& key)
{
    if (find(key) == nullptr)
    {
        return false;
    }
    note(key);
    keys_.erase(key);
    return true;
}

std::vector<std::pair<std::string, std::string>> master_store::contents()
{
    std::vector<std::pair<std::string, std::string>> all;
    for (const auto& [key, one] : keys_)
    {
        if (!lapsed(one))
        {
            all.emplace_back(key, one.value);
        }
    }
    return all;
}

void master_store::flush()
{
    for (const auto& [key, one] : keys_)
    {
        note(key);
    }
    keys_.clear();
    ++losses_;
}

bool master_store::evict(std::size_t which)
{
    if (keys_.empty())
    {
        return false;
    }
    const std::string key =
        std::next(keys_.begin(), static_cast<std::ptrdiff_t>(which % keys_.size()))->first;
    note(key);
    keys_.erase(key);
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
        if (last.before)
        {
            keys_.insert_or_assign(last.key, std::move(*last.before));
        }
        else
        {
            keys_.erase(last.key);
        }
    }
}

/// Called before the key changes.
void master_store::note(const std::string& key)
{
    const bool noted = !changes_.empty() && changes_.back().at == world_.now() && changes_.back().key == key;
    if (noted)
    {
        return;
    }
    if (changes_size_ >= max_changes)
    {
        changes_.erase(
            changes_.begin(), changes_.begin() + static_cast<std::ptrdiff_t>((changes_.size() + 1) / 2));
        changes_size_ = std::accumulate(
            changes_.begin(), changes_.end(), std::size_t{0},
            [](std::size_t sum, const change_note& each) { return sum + each.size(); });
    }
    const auto found = keys_.find(key);
    changes_.push_back(
        {world_.now(), key, found != keys_.end() ? std::optional{found->second} : std::nullopt});
    changes_size_ += changes_.back().size();
}

} // namespace redlock::test
