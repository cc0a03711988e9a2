// SPDX-License-Identifier: BSL-1.0
// The scripts of guarded mode on a simulated master and on a real server: random sequences of them, and of everything that
// changes their replies, are answered alike.
#include "both_masters.hpp"
#include "core/marker.hpp"
#include "net/arming_scripts.hpp"
#include "net/queue_scripts.hpp"
#include "vocabulary.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace redlock::test
{

namespace
{

using core::marker_state;

constexpr const char* guard = "lock::redlock-guard";
constexpr const char* fence = "lock::redlock-fence";
constexpr const char* members = "lock::redlock-members";
constexpr const char* group_beginning = "redlock 1 0123456789abcdef ";
constexpr std::array<std::string_view, 2> locks{"lock:a", "lock:b"};
constexpr std::array<std::string_view, 6> some_owners{"x", "x", "x", "x", "y", ""};
constexpr std::array<std::string_view, 3> slots{"0", "7", "1023"};
// A manager that isn't subscribed has its waiters dropped as soon as they are sent a message, except those with a "-".
constexpr std::array<std::string_view, 3> waiters{"a:1", "b:2", "-c:3"};
// Far away, so that neither the time that a test takes nor its order matters.
constexpr std::array<std::string_view, 2> some_ttls{"1000000", "2000000"};
constexpr const char* long_time = "1000000"; // Of the queue, in milliseconds.
constexpr std::int64_t hour = 3'600'000'000; // In microseconds.
constexpr std::int64_t end_of_numbers = std::int64_t{1} << 53;

/// Every script, as often as it is to be called.
constexpr std::array called{
    &net::guarded_acquire_script,
    &net::guarded_acquire_script,
    &net::guarded_acquire_script,
    &net::guarded_ask_script,
    &net::guarded_ask_script,
    &net::guarded_ask_script,
    &net::raise_script,
    &net::raise_script,
    &net::guarded_extend_script,
    &net::guarded_extend_script,
    &net::quarantine_script,
    &net::quarantine_script,
    &net::largest_counter_script,
    &net::arm_script,
    &net::arm_script,
    &net::arm_script,
    &net::release_script,
    &net::release_to_queue_script,
    &net::extend_script};

/// REDLOCK_TEST_SEQUENCES, for more of them by hand.
std::uint64_t guarded_sequences()
{
    const char* const wanted = std::getenv("REDLOCK_TEST_SEQUENCES");
    return wanted != nullptr ? std::stoull(wanted) : 60;
}

/// One connection to both, and what is done with it, from one seed.
class guarded_sequence
{
  public:
    /// `accepted`: how often each script has answered a number above 0, or a marker, by its digest.
    guarded_sequence(
        both_masters& masters, std::uint64_t seed, std::map<std::string_view, std::size_t>& accepted)
        : masters_{masters},
          accepted_{accepted},
          chance_{seed},
          began_{masters.align_clocks()},
          connection_{masters.connect()}
    {
    }

    /// Returns the first difference in words; empty if there is none.
    std::string run()
    {
        constexpr int steps = 60;
        std::string found = load_scripts();
        if (chance_.in_percent(80))
        {
            found += send({"SET", guard, marker(marker_state::armed)}) +
                     send({"HSET", fence, "floor", number_near_counters()});
        }
        for (int step = 0; step < steps && found.empty(); ++step)
        {
            found = take_step() + look();
        }
        masters_.promote();
        return found;
    }
    std::size_t compared() const { return compared_before_ + connection_->compared(); }

  private:
    std::string take_step()
    {
        const std::size_t what = chance_.below(100);
        return what < 80 ? call() : what < 94 ? send(neighbour()) : change_server();
    }

    std::string load_scripts()
    {
        std::string found;
        for (const net::script* const each : called)
        {
            found += send({"SCRIPT", "LOAD", std::string{each->text}});
        }
        return found;
    }

    std::string send(const command& words)
    {
        connection_->send(as_bytes(words));
        masters_.settle();
        connection_->settle();
        return connection_->difference();
    }

    // ---- Scripts.
    std::string call()
    {
        const net::script& which = *called.at(chance_.below(called.size()));
        const bool by_text = chance_.in_percent(10);
        command words{by_text ? "EVAL" : "EVALSHA", std::string{by_text ? which.text : which.sha1}};
        const command keys = keys_of(which);
        words.push_back(std::to_string(keys.size()));
        words.insert(words.end(), keys.begin(), keys.end());
        const std::size_t first = words.size();
        const command arguments = arguments_of(which);
        words.insert(words.end(), arguments.begin(), arguments.end());
        if (chance_.in_percent(4))
        {
            spoil(words, first);
            if (is_one_of(which, {&net::guarded_ask_script}) && words.size() > first + 3 &&
                words[first + 3] == "-1")
            {
                words[first + 3] =
                    "x"; // An arrival in the future: its order would depend on how long a command takes.
            }
        }
        const std::string found = send(words);
        const std::string& reply = connection_->last();
        const bool positive = reply.starts_with(':') && reply != ":0\r\n" && !reply.starts_with(":-");
        const bool granted_to_waiter = reply.starts_with("*2\r\n");
        accepted_[which.sha1] += positive || granted_to_waiter || reply.starts_with('$') ? 1U : 0U;
        return found;
    }

    static bool is_one_of(const net::script& which, std::initializer_list<const net::script*> these)
    {
        return std::find(these.begin(), these.end(), &which) != these.end();
    }

    command keys_of(const net::script& which)
    {
        if (is_one_of(which, {&net::release_script, &net::release_to_queue_script, &net::extend_script}))
        {
            return {chance_.one_of(locks)};
        }
        if (&which == &net::guarded_extend_script)
        {
            return {chance_.one_of(locks), guard};
        }
        const bool votes =
            is_one_of(which, {&net::guarded_acquire_script, &net::guarded_ask_script, &net::raise_script});
        return {votes ? chance_.one_of(locks) : members, guard, fence};
    }

    command arguments_of(const net::script& which)
    {
        if (&which == &net::guarded_acquire_script)
        {
            return {
                chance_.one_of(some_owners),
                chance_.one_of(some_ttls),
                seen_marker(),
                chance_.one_of(slots),
                hint(),
                latest()};
        }
        if (&which == &net::guarded_ask_script)
        {
            return {
                chance_.one_of(waiters),
                chance_.one_of(some_owners),
                chance_.one_of(some_ttls),
                chance_.one_of(some_ttls), // How long it has waited.
                chance_.in_percent(80) ? long_time : "0",
                long_time,
                seen_marker(),
                chance_.one_of(slots),
                hint(),
                latest()};
        }
        if (&which == &net::raise_script)
        {
            return {
                chance_.one_of(some_owners), seen_marker(), chance_.one_of(slots), number_near_counters()};
        }
        if (&which == &net::quarantine_script)
        {
            const bool right = chance_.in_percent(90);
            return {
                seen_marker(), marker(marker_state::quarantine),
                right ? std::to_string(database_) : chance_.one_of(databases), "0123456789abcdef 1=a:6379"};
        }
        if (&which == &net::largest_counter_script)
        {
            return {seen_marker()};
        }
        if (&which == &net::arm_script)
        {
            const std::string waited_for = seen_marker();
            return {waited_for, armed(waited_for), number_near_counters(), "0123456789abcdef 1=a:6379"};
        }
        if (&which == &net::extend_script)
        {
            return {chance_.one_of(some_owners), chance_.one_of(some_ttls)};
        }
        if (&which == &net::guarded_extend_script)
        {
            return {
                chance_.one_of(some_owners), chance_.one_of(some_ttls),
                chance_.in_percent(85) ? group_beginning : "redlock 1 fedcba9876543210 "};
        }
        if (&which == &net::release_to_queue_script)
        {
            return {
                chance_.one_of(some_owners), long_time, chance_.in_percent(50) ? "released" : "left",
                chance_.in_percent(50) ? chance_.one_of(waiters) : ""};
        }
        return {chance_.one_of(some_owners)};
    }

    static std::string armed(const std::string& text)
    {
        const auto found = core::parse_marker(text);
        return found ? to_text(core::armed(*found)) : text;
    }

    /// A marker of the present incarnation, or of an earlier one.
    std::string marker(marker_state state)
    {
        if (known_ids_.empty() || known_ids_.back() != masters_.replication_id())
        {
            known_ids_.push_back(masters_.replication_id());
        }
        static constexpr std::array<std::string_view, 3> nonces{
            "00000000000000aa", "00000000000000bb", "00000000000000cc"};
        const std::string text = to_text(core::marker{
            .group = "0123456789abcdef",
            .seat = 1,
            .masters = 3,
            .max_ttl = std::chrono::minutes{1},
            .policy = core::arming_policy::clocks,
            .state = state,
            .why = core::incarnation_end::stale,
            .nonce = chance_.one_of(nonces),
            .replication_id =
                chance_.in_percent(93) ? known_ids_.back() : known_ids_[chance_.below(known_ids_.size())]});
        return texts_.emplace_back(text);
    }

    /// The marker that the server has, or another one.
    std::string seen_marker()
    {
        const std::size_t what = chance_.below(100);
        if (what < 85)
        {
            return masters_.value(guard);
        }
        return what < 95 && !texts_.empty() ? texts_[chance_.below(texts_.size())]
                                            : chance_.one_of(wrong_words);
    }

    std::string latest() { return std::to_string(began_ + (chance_.in_percent(90) ? hour : -hour)); }

    /// Returns no number within some minutes of what the scripts compare with their clock.
    std::string hint()
    {
        const std::array<std::int64_t, 5> all{0, 1500, began_ - hour, began_ + hour / 2, began_ + 2 * hour};
        return std::to_string(all.at(chance_.below(all.size())));
    }

    std::string number_near_counters()
    {
        const std::array<std::int64_t, 8> all{
            1,
            1000,
            1500,
            began_ - 2 * hour,
            began_ - hour,
            began_,
            began_ + 2 * hour,
            end_of_numbers - 2 - static_cast<std::int64_t>(chance_.below(3))};
        // The last ones end the counters, so they are rare.
        return chance_.in_percent(97)
                   ? std::to_string(all.at(chance_.below(all.size() - 1)))
                   : std::to_string(all.back() + static_cast<std::int64_t>(chance_.below(4)));
    }

    void spoil(command& words, std::size_t first)
    {
        if (words.size() == first || chance_.in_percent(30))
        {
            words.pop_back();
            return;
        }
        words[first + chance_.below(words.size() - first)] = chance_.one_of(wrong_words);
    }

    // ---- Changes of what they answer.
    command neighbour()
    {
        static constexpr std::array<std::string_view, 5> all{guard, fence, members, locks[0], locks[1]};
        switch (chance_.below(20)) // Most of them delete a lock.
        {
        case 2:
            return {"DEL", chance_.one_of(all)};
        case 3:
        case 4:
            return {
                "SET", guard,
                marker(chance_.in_percent(70) ? marker_state::armed : marker_state::quarantine)};
        case 5:
            return {"HSET",
                    fence,
                    "floor",
                    number_near_counters(),
                    chance_.one_of(slots),
                    number_near_counters()};
        case 6:
            return {"HSET", chance_.one_of(all), "floor", chance_.one_of(wrong_words)};
        case 7:
            return {"SET", chance_.one_of(all), chance_.one_of(wrong_words)};
        case 8:
            return {"SET", chance_.one_of(locks),    chance_.one_of(some_owners), "NX",
                    "PX",  chance_.one_of(some_ttls)};
        case 9:
            return {"SWAPDB", chance_.one_of(databases), chance_.one_of(databases)};
        case 10:
            return select(chance_.in_percent(70) ? "0" : chance_.one_of(databases));
        case 11:
            return {chance_.in_percent(50) ? "FLUSHALL" : "TIME"};
        case 12:
            return {"HDEL", fence, chance_.in_percent(50) ? "floor" : chance_.one_of(slots)};
        default:
            return {"DEL", chance_.one_of(locks)};
        }
    }

    command select(const std::string& which)
    {
        if (which != "16")
        {
            database_ = std::stoi(which);
        }
        return {"SELECT", which};
    }

    std::string change_server()
    {
        const std::size_t what = chance_.below(100);
        if (what < 15)
        {
            restart(chance_.in_percent(60));
            return load_scripts();
        }
        if (what < 30)
        {
            return send({"SCRIPT", "FLUSH"});
        }
        if (what < 45)
        {
            return load_scripts();
        }
        what < 60 ? masters_.demote() : masters_.promote();
        return {};
    }

    void restart(bool keeps_keys)
    {
        compared_before_ += connection_->compared();
        connection_.reset();
        masters_.restart(keeps_keys);
        connection_ = masters_.connect();
        database_ = 0;
    }

    /// Compares what both have now, in three databases.
    std::string look()
    {
        std::string bytes = as_bytes({"INFO", "replication"});
        for (const std::string_view each : {"0", "1", "15"})
        {
            bytes += as_bytes({"SELECT", std::string{each}});
            for (const std::string_view key :
                 {std::string_view{guard}, std::string_view{members}, locks[0], locks[1]})
            {
                bytes += as_bytes({"GET", std::string{key}});
            }
            for (const std::string_view key : locks)
            {
                bytes += as_bytes(
                    {"EVAL", "return redis.call('zrange', KEYS[1], 0, -1)", "1",
                     "redlock-queue:order:" + std::string{key}});
            }
            for (const std::string_view field : {std::string_view{"floor"}, slots[0], slots[1], slots[2]})
            {
                bytes += as_bytes({"HGET", fence, std::string{field}});
            }
        }
        connection_->send(bytes + as_bytes({"SELECT", std::to_string(database_)}));
        masters_.settle();
        connection_->settle();
        return connection_->difference();
    }

    static constexpr std::array<std::string_view, 4> databases{"0", "1", "15", "16"};

    both_masters& masters_;
    std::map<std::string_view, std::size_t>& accepted_;
    chance chance_;
    std::int64_t began_;
    std::unique_ptr<both_connection> connection_;
    std::size_t compared_before_ = 0;
    int database_ = 0;
    std::vector<std::string> known_ids_;
    std::vector<std::string> texts_;
};

} // namespace

TEST_CASE("a simulated master runs the scripts of guarded mode as a real one", "[own-servers]")
{
    both_masters masters{{}, GENERATE("redis-server", "valkey-server")};
    std::size_t replies = 0;
    std::map<std::string_view, std::size_t> accepted;
    for (std::uint64_t seed = 1; seed <= guarded_sequences(); ++seed)
    {
        INFO("sequence " << seed);
        guarded_sequence one{masters, seed, accepted};
        const std::string difference = one.run();
        CHECK(difference == "");
        replies += one.compared();
        masters.clear();
    }
    fmt::print("{} replies compared in {} sequences\n", replies, guarded_sequences());
    CHECK(replies > guarded_sequences());
    for (const net::script* const each : called)
    {
        INFO(each->text);
        CHECK(accepted[each->sha1] * 8 >= guarded_sequences());
    }
}

} // namespace redlock::test
