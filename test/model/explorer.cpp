// SPDX-License-Identifier: BSL-1.0
// Searches a scenario for violations: all states, random walks, or a written schedule.

#include "explorer.hpp"

#include <array>

namespace model
{

namespace
{

// A set of 64-bit hashes with open addressing. 0 stands for an empty place.
class hash_set
{
  public:
    // Returns false if it was there.
    bool insert(std::uint64_t hash)
    {
        if (hash == 0)
            hash = 1;
        if (count_ * 3 >= places_.size() * 2)
            grow();
        return place(hash);
    }
    std::uint64_t size() const { return count_; }

  private:
    bool place(std::uint64_t hash)
    {
        const std::size_t last = places_.size() - 1;
        std::size_t i = static_cast<std::size_t>(hash) & last;
        while (places_[i] != 0 && places_[i] != hash)
            i = (i + 1) & last;
        if (places_[i] == hash)
            return false;
        places_[i] = hash;
        count_++;
        return true;
    }
    void grow()
    {
        std::vector<std::uint64_t> old(places_.size() * 2);
        old.swap(places_);
        count_ = 0;
        for (const std::uint64_t hash : old)
            if (hash != 0)
                place(hash);
    }

    std::vector<std::uint64_t> places_ = std::vector<std::uint64_t>(1 << 16);
    std::uint64_t count_ = 0;
};

// A state on the path of the search, and the steps that remain to be tried from it.
struct frame
{
    state now;
    std::vector<action> steps;
    std::size_t next = 0;
};

std::vector<action> path_of(const std::vector<frame>& stack, std::size_t depth)
{
    std::vector<action> path;
    for (std::size_t i = 0; i < depth; i++)
        path.push_back(stack[i].steps[stack[i].next - 1]);
    return path;
}

// SplitMix64.
class random_numbers
{
  public:
    explicit random_numbers(std::uint64_t seed) : state_{seed * 0x9e3779b97f4a7c15} {}
    std::size_t below(std::size_t bound)
    {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return static_cast<std::size_t>((z ^ z >> 31) % bound);
    }

  private:
    std::uint64_t state_;
};

constexpr std::size_t weight_of(kind what)
{
    if (what >= kind::flush)
        return 1;
    if (what == kind::end || what == kind::repeat_acquire || what == kind::repeat_raise)
        return 1;
    return what == kind::tick || what == kind::read || what == kind::watch ? 4 : 8;
}

// What one walk prefers. Each walk differs, because a walk that does a little of everything reaches little: some
// kinds of steps are rare in it, and some parties and servers are slow.
class preferences
{
  public:
    explicit preferences(random_numbers& random)
    {
        for (std::size_t k = 0; k < kinds_.size(); k++)
            kinds_[k] = weight_of(static_cast<kind>(k)) << random.below(5);
        for (auto& places : pace_)
            for (std::size_t& pace : places)
                pace = random.below(3) == 0 ? 1 : 8;
    }
    const action& choose(const std::vector<action>& steps, random_numbers& random) const
    {
        std::size_t total = 0;
        for (const action& step : steps)
            total += weight(step);
        std::size_t left = random.below(total);
        for (const action& step : steps)
        {
            if (left < weight(step))
                return step;
            left -= weight(step);
        }
        return steps.back();
    }

  private:
    std::size_t weight(const action& step) const
    {
        return kinds_[static_cast<std::size_t>(step.what)] * pace_[step.who][step.at];
    }

    std::array<std::size_t, static_cast<std::size_t>(kind::count)> kinds_{};
    std::array<std::array<std::size_t, max_servers>, max_attempts> pace_{};
};

// Takes a step, and notes what was reached.
invariant take(const protocol& model, state& now, const action& step, outcome& result)
{
    result.kinds.set(static_cast<std::size_t>(step.what));
    const invariant broken = model.take(now, step);
    for (int i = 0; i < max_attempts; i++)
        if (now.attempts[i].issued != 0)
            result.issued |= static_cast<mask>(1 << i);
    return broken;
}

// Follows one walk. Returns false at a violation.
bool walk_once(const protocol& model, std::uint64_t seed, int max_steps, outcome& result)
{
    random_numbers random{seed};
    const preferences wanted{random};
    state now = model.initial();
    std::vector<action> steps;
    result.trace.clear();
    for (int i = 0; i < max_steps; i++)
    {
        model.list_steps(now, steps);
        if (steps.empty())
            break;
        const action step = wanted.choose(steps, random);
        result.trace.push_back(step);
        result.states++;
        result.broken = take(model, now, step, result);
        if (result.broken != invariant::none)
            return false;
    }
    return true;
}

} // namespace

outcome explore(const protocol& model, std::uint64_t max_states)
{
    outcome result;
    hash_set visited;
    std::vector<frame> stack(1);
    stack[0].now = model.initial();
    model.list_steps(stack[0].now, stack[0].steps);
    visited.insert(model.hash(stack[0].now));
    std::size_t depth = 1; // Frames above it are kept for their memory.
    while (depth != 0 && visited.size() < max_states)
    {
        frame& top = stack[depth - 1];
        if (top.next == top.steps.size())
        {
            depth--;
            continue;
        }
        state reached = top.now;
        result.broken = take(model, reached, top.steps[top.next++], result);
        if (result.broken != invariant::none)
        {
            result.trace = path_of(stack, depth);
            break;
        }
        if (!visited.insert(model.hash(reached)))
            continue;
        if (depth == stack.size())
            stack.emplace_back();
        frame& below = stack[depth++];
        below.now = reached;
        below.next = 0;
        model.list_steps(below.now, below.steps);
    }
    result.states = visited.size();
    result.complete = result.broken == invariant::none && depth == 0;
    return result;
}

outcome walk(const protocol& model, std::uint64_t first_seed, std::uint64_t walks, int max_steps)
{
    outcome result;
    for (std::uint64_t seed = first_seed; seed < first_seed + walks; seed++)
    {
        result.walks++;
        if (!walk_once(model, seed, max_steps, result))
            return result;
    }
    result.trace.clear();
    return result;
}

outcome replay(const protocol& model, const std::vector<action>& steps)
{
    outcome result;
    state now = model.initial();
    for (const action& step : steps)
    {
        if (!model.is_possible(now, step))
            continue;
        result.trace.push_back(step);
        result.broken = model.take(now, step);
        if (result.broken != invariant::none)
            break;
    }
    return result;
}

outcome shorten(const protocol& model, const outcome& found)
{
    outcome best = found;
    for (std::size_t i = best.trace.size(); i-- > 0;)
    {
        std::vector<action> fewer = best.trace;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
        const outcome again = replay(model, fewer);
        if (again.broken != found.broken)
            continue;
        best.trace = again.trace;
        i = std::min(i, best.trace.size());
    }
    return best;
}

} // namespace model
