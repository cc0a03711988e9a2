// SPDX-License-Identifier: BSL-1.0
// The masters of the simulation against a real server: the same random commands, the same replies.
#include "both_masters.hpp"
#include "vocabulary.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace redlock::test
{

namespace
{

/// REDLOCK_TEST_SEQUENCES, for more of them by hand.
std::uint64_t sequences()
{
    const char* const wanted = std::getenv("REDLOCK_TEST_SEQUENCES");
    return wanted != nullptr ? std::stoull(wanted) : 150;
}

/// Some connections to both, and what is done with them, from one seed.
/// A server closes the connection of a client that sends more before it has logged in.
constexpr std::size_t max_words_before_log_in = 10;

class sequence
{
  public:
    sequence(both_masters& masters, std::uint64_t seed, bool logs_in)
        : masters_{masters}, chance_{seed}, logs_in_{logs_in}, first_id_{masters.last_id() + 1}
    {
    }

    /// In words, the first difference; empty for none.
    std::string run()
    {
        constexpr int steps = 40;
        std::string found;
        for (int step = 0; step < steps && found.empty(); ++step)
        {
            found = take_step();
        }
        return found.empty() ? look_at_keys() : found;
    }
    std::size_t compared() const { return compared_; }

  private:
    struct client
    {
        std::unique_ptr<both_connection> connection;
        std::string unsent; // The rest of a pipeline that was cut.
    };

    std::string take_step()
    {
        constexpr std::size_t max_clients = 4;
        std::erase_if(clients_, [](const client& each) { return !each.connection->open(); });
        const std::size_t what = chance_.below(100);
        if (clients_.empty() || (what < 10 && clients_.size() < max_clients))
        {
            add_client();
            return settle();
        }
        client& who = clients_[chance_.below(clients_.size())];
        if (what < 60)
        {
            return talk(who);
        }
        if (what < 70)
        {
            return log_in(who);
        }
        if (what < 78)
        {
            who.connection->close(chance_.in_percent(70));
            return settle();
        }
        return what < 86 ? leave_behind_pause(who) : what < 92 ? kill_behind_pause() : expire(who);
    }

    void add_client()
    {
        clients_.push_back({masters_.connect(), {}});
        if (logs_in_ && chance_.in_percent(80))
        {
            clients_.back().unsent = as_bytes({"AUTH", right_password});
        }
    }

    std::string pipeline()
    {
        constexpr std::size_t max_commands = 6;
        std::string bytes;
        for (std::size_t left = 1 + chance_.below(max_commands); left > 0; --left)
        {
            command words = random_command(chance_, {first_id_, masters_.last_id()});
            while (logs_in_ && words.size() > max_words_before_log_in)
            {
                words = random_command(chance_, {first_id_, masters_.last_id()});
            }
            bytes += as_bytes(words);
        }
        return bytes;
    }

    /// In pieces of any size, each with a separate write.
    void send_in_pieces(client& who, std::string_view bytes)
    {
        while (!bytes.empty())
        {
            const std::size_t size = chance_.in_percent(50) ? bytes.size() : 1 + chance_.below(bytes.size());
            who.connection->send(bytes.substr(0, size));
            bytes.remove_prefix(size);
        }
    }

    /// Some commands; the last of them may have to wait for its end until this client's turn comes again.
    std::string talk(client& who)
    {
        std::string bytes = who.unsent + pipeline();
        const std::size_t size = chance_.in_percent(60) ? bytes.size() : 1 + chance_.below(bytes.size());
        who.unsent = bytes.substr(size);
        send_in_pieces(who, std::string_view{bytes}.substr(0, size));
        return settle();
    }

    std::string log_in(client& who)
    {
        who.connection->send(std::exchange(who.unsent, {}));
        const std::string found = settle();
        send_in_pieces(who, as_bytes(random_log_in(chance_)));
        return found + settle();
    }

    /// Commands are in the buffer of a connection that its client has closed when the server comes to it.
    std::string leave_behind_pause(client& who)
    {
        masters_.hang();
        send_in_pieces(who, who.unsent + pipeline());
        who.connection->close(chance_.in_percent(70));
        masters_.resume();
        return settle() + look_at_keys();
    }

    /// Commands are in the buffer of a connection that an older one kills before the server comes to them.
    std::string kill_behind_pause()
    {
        if (clients_.size() < 2)
        {
            return {};
        }
        client& killer = clients_.front();
        client& victim = clients_.back();
        masters_.hang();
        killer.connection->send(
            killer.unsent + as_bytes({"CLIENT", "KILL", "ID", std::to_string(masters_.last_id())}));
        killer.unsent.clear();
        victim.connection->send(victim.unsent + pipeline());
        victim.unsent.clear();
        masters_.resume();
        return settle();
    }

    std::string expire(client& who)
    {
        const std::string key = chance_.one_of(keys);
        who.connection->send(std::exchange(who.unsent, {}) + as_bytes(short_set(chance_, key)));
        std::string found = settle();
        masters_.wait_for_expiry(key);
        return found;
    }

    /// What both have in the end.
    std::string look_at_keys()
    {
        add_client();
        client& who = clients_.back();
        who.unsent = logs_in_ ? as_bytes({"AUTH", right_password}) : "";
        for (const std::string_view key : keys)
        {
            who.unsent += as_bytes(inspection(std::string{key}));
        }
        who.connection->send(std::exchange(who.unsent, {}));
        return settle();
    }

    std::string settle()
    {
        masters_.settle();
        std::string found;
        for (client& each : clients_)
        {
            const std::size_t before = each.connection->compared();
            each.connection->settle();
            found += each.connection->difference();
            compared_ += each.connection->compared() - before;
        }
        return found;
    }

    both_masters& masters_;
    chance chance_;
    bool logs_in_;
    std::int64_t first_id_;
    std::vector<client> clients_;
    std::size_t compared_ = 0;
};

void compare(const std::string& password)
{
    both_masters masters{password};
    std::size_t replies = 0;
    for (std::uint64_t seed = 1; seed <= sequences(); ++seed)
    {
        INFO("sequence " << seed);
        sequence one{masters, seed, !password.empty()};
        const std::string difference = one.run();
        CHECK(difference == "");
        replies += one.compared();
        masters.clear();
    }
    fmt::print("{} replies compared in {} sequences\n", replies, sequences());
    CHECK(replies > sequences());
}

} // namespace

TEST_CASE("a simulated master answers as a real one", "[own-servers]")
{
    compare({});
}

TEST_CASE("a simulated master answers as a real one that asks for a password", "[own-servers]")
{
    compare(right_password);
}

} // namespace redlock::test
