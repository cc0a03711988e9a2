// SPDX-License-Identifier: BSL-1.0
// The next step that redlock doctor --guarded names, on real servers.
#include "command/diagnosed.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace redlock::test
{

namespace
{

using Catch::Matchers::ContainsSubstring;

constexpr const char* marker_key = "lock::redlock-guard";

server_options keeping_data()
{
    server_options options = server_options::plain();
    options.settings = {"--appendonly", "yes", "--appendfsync", "always"};
    return options;
}

/// Servers that keep their data, the first of which are a group with a max_ttl of a minute.
struct group_and_servers
{
    explicit group_and_servers(std::size_t in_group, std::size_t more = 0, const strings& options = {})
        : members{start_servers(in_group, keeping_data())}, others{start_servers(more, keeping_data())}
    {
        // The record has the names in this order.
        std::sort(
            members.begin(), members.end(),
            [](const server& left, const server& right) { return left.url() < right.url(); });
        strings words{"provision", "--fresh", "--max-ttl", "60s"};
        words.insert(words.end(), options.begin(), options.end());
        const command_run made{words, environment(urls_of(members))};
        REQUIRE(made.wait() == process_end{.exit_code = 0});
        group = this->members[0].command({"GET", marker_key}).text.substr(10, 16);
    }

    static strings environment(const strings& list)
    {
        return {fmt::format("REDLOCK_MASTERS={}", fmt::join(list, ","))};
    }
    std::string again() const { return "redlock provision --again " + group; }
    /// Returns the addresses of the members from `first` to before `last`.
    strings list(std::size_t first, std::size_t last) const
    {
        const strings all = urls_of(members);
        return {
            all.begin() + static_cast<std::ptrdiff_t>(first),
            all.begin() + static_cast<std::ptrdiff_t>(last)};
    }
    /// Returns the output of the doctor on a list.
    static std::string diagnosis_of(const strings& list)
    {
        const command_run one{{"doctor", "--guarded", "--no-probe"}, environment(list)};
        one.wait();
        return one.output();
    }
    std::string diagnosis() const { return diagnosis_of(urls_of(members)); }

    std::vector<server> members;
    std::vector<server> others;
    std::string group;
};

} // namespace

TEST_CASE("guarded doctor: describes the group below the table", "[guarded][doctor]")
{
    const group_and_servers masters{3, 0, {"--policy", "operator"}};
    CHECK_THAT(
        masters.diagnosis(), ContainsSubstring(fmt::format(
                                 "\n\ngroup {}: 3 masters, max_ttl 1 m, policy operator\n", masters.group)));
}

TEST_CASE("guarded doctor: a master that can't be reached isn't armed", "[guarded][doctor]")
{
    group_and_servers masters{3};
    masters.members[1].kill();
    const command_run one{{"doctor", "--guarded", "--json"}, masters.environment(urls_of(masters.members))};
    one.wait();
    const tree all = read_json(one.output());
    const tree& up = master_at(all, 0);
    const tree& down = master_at(all, 1);
    CHECK(up.get<std::string>("guarded.armed") == "true");
    CHECK(keys_of(down.get_child("guarded")) == keys_of(up.get_child("guarded")));
    CHECK(down.get<std::string>("guarded.armed") == "false");
    CHECK(down.get<std::string>("guarded.reason") == "other");
    CHECK(findings_of(down) == "failure unreachable");
}

TEST_CASE("guarded doctor: names the masters that a list lacks", "[guarded][doctor]")
{
    const group_and_servers masters{5, 2};
    const strings left = masters.list(3, 5);
    SECTION("a short list")
    {
        const std::string text = masters.diagnosis_of(masters.list(0, 3));
        CHECK_THAT(
            text, ContainsSubstring(fmt::format(
                      "all 3 masters: failure: group {} has 5 masters, and this list has 3: it lacks {}. ",
                      masters.group, fmt::join(left, ", "))));
        CHECK_THAT(text, !ContainsSubstring("--again"));
    }
    SECTION("a list with wrong addresses")
    {
        strings list = masters.list(0, 3);
        list.push_back(masters.others[0].url());
        list.push_back(masters.others[1].url());
        const std::string text = masters.diagnosis_of(list);
        CHECK_THAT(text, ContainsSubstring("usable: 3 of 5 masters can be used"));
        CHECK_THAT(
            text,
            ContainsSubstring(fmt::format(
                "{}: failure: it belongs to no group, and isn't a master of group {}. It has no vote in "
                "guarded mode. Check its address: the list lacks {}.",
                list[4], masters.group, fmt::join(left, ", "))));
        CHECK_THAT(text, !ContainsSubstring("--again"));
    }
    SECTION("a long list")
    {
        strings list = urls_of(masters.members);
        list.push_back(masters.others[0].url());
        CHECK_THAT(
            masters.diagnosis_of(list),
            ContainsSubstring(fmt::format(
                "{}: failure: group {} has 5 masters, and this list has 6: {} doesn't belong to the group. ",
                list[0], masters.group, list[5])));
    }
}

TEST_CASE("guarded doctor: advises --again only if the record confirms the list", "[guarded][doctor]")
{
    group_and_servers masters{3, 2};
    const strings wrong{masters.members[0].url(), masters.others[0].url(), masters.others[1].url()};
    SECTION("a record shows that the empty servers are the wrong ones")
    {
        const std::string text = masters.diagnosis_of(wrong);
        CHECK_THAT(text, !ContainsSubstring("--again"));
        CHECK_THAT(text, ContainsSubstring("Check its address: the list lacks"));
    }
    SECTION("a client has written the record to the emptied master of the list")
    {
        masters.members[0].command({"FLUSHALL"});
        REQUIRE_THAT(masters.diagnosis(), ContainsSubstring("it arms this master within 64 s"));
        REQUIRE_THAT(
            masters.members[0].command({"GET", marker_key}).text, ContainsSubstring(" quarantine emptied "));
        const std::string text = masters.diagnosis_of(wrong);
        CHECK_THAT(text, !ContainsSubstring("--again"));
        CHECK_THAT(text, ContainsSubstring("Check its address: the list lacks"));
    }
    SECTION("no master shows the record")
    {
        masters.members[0].command({"DEL", "lock::redlock-members"});
        const std::string text = masters.diagnosis_of(wrong);
        CHECK_THAT(text, !ContainsSubstring(masters.again()));
        CHECK_THAT(
            text, ContainsSubstring(fmt::format(
                      "Check that {}, {} are the right servers, since an empty one may be the wrong one; if "
                      "so: redlock provision --again and the name of the group.",
                      wrong[1], wrong[2])));
    }
    SECTION("the record has the list")
    {
        masters.members[1].command({"FLUSHALL"});
        masters.members[2].command({"FLUSHALL"});
        CHECK_THAT(masters.diagnosis(), ContainsSubstring("then run " + masters.again() + "."));
    }
}

TEST_CASE("guarded doctor: names the one step that ends a quarantine", "[guarded][doctor]")
{
    group_and_servers masters{3};
    std::string step;
    SECTION("clients arm one of three")
    {
        masters.members[2].restart();
        step = "Leave a client of the group connected: it arms this master within 64 s.";
    }
    SECTION("clients arm all three")
    {
        for (server& each : masters.members)
        {
            each.restart();
        }
        step = "Leave a client of the group connected: it arms this master within 64 s.";
    }
    SECTION("one is armed, one was emptied, one restarted")
    {
        masters.members[1].command({"FLUSHALL"});
        REQUIRE_THAT(masters.diagnosis(), ContainsSubstring("Leave a client")); // And begins the quarantine.
        masters.members[2].restart();
        step = "Clients can't arm it, because too few masters are armed: run " + masters.again() + ".";
    }
    SECTION("one is down, and one was restarted")
    {
        masters.members[1].kill();
        masters.members[2].restart();
        step = fmt::format("Start {} again with its data, because", masters.members[1].url());
    }
    SECTION("one refuses a command of arming")
    {
        masters.members[2].restart();
        masters.members[2].command({"ACL", "SETUSER", "default", "-hvals"});
        step = "First do what its warning says, so that a client can arm it.";
    }
    for (int time = 0; time < 2; ++time)
    {
        const std::string text = masters.diagnosis();
        CHECK_THAT(text, ContainsSubstring("it may have forgotten keys, and doesn't vote yet. "));
        CHECK_THAT(text, ContainsSubstring(step));
        CHECK_THAT(text, !ContainsSubstring("for about"));
    }
}

TEST_CASE("guarded doctor: an operator arms the masters of the policy operator", "[guarded][doctor]")
{
    group_and_servers masters{3, 0, {"--policy", "operator"}};
    masters.members[0].restart();
    masters.members[2].restart();
    CHECK_THAT(
        masters.diagnosis(),
        ContainsSubstring("Clients don't arm it under the policy operator: run redlock provision --arm."));
}

TEST_CASE("guarded doctor: an interrupted run is repeated", "[guarded][doctor]")
{
    std::vector<server> servers = start_servers(3, keeping_data());
    const strings list = urls_of(servers);
    const command_run made{{"provision", "--max-ttl", "60s"}, group_and_servers::environment(list)};
    made.wait_for_error_line(servers[0], "waits");
    for (server& each : servers)
    {
        REQUIRE(comes_true(each, [&] { return each.command({"EXISTS", marker_key}) == 1; }));
    }
    made.signal(SIGKILL);
    made.wait();
    CHECK_THAT(
        group_and_servers::diagnosis_of(list),
        ContainsSubstring("all 3 masters: failure: group ") &&
            ContainsSubstring(
                " isn't complete: no master of it was armed. It has no vote in guarded mode. Repeat "
                "the redlock provision or redlock provision --change that was interrupted"));
}

TEST_CASE("guarded doctor: a member under another name learns the recorded one", "[guarded][doctor]")
{
    group_and_servers masters{3};
    strings renamed;
    for (server& each : masters.members)
    {
        each.restart();
        renamed.push_back(fmt::format("redis://localhost:{}", each.port()));
    }
    const std::string text = masters.diagnosis_of(renamed);
    CHECK_THAT(
        text, ContainsSubstring(fmt::format(
                  "all 3 masters: failure: its name isn't on the record of group {}, which has {} instead. ",
                  masters.group, fmt::join(urls_of(masters.members), ", "))));
    CHECK_THAT(text, ContainsSubstring("see \"Names\" in docs/guarded.md"));
    CHECK_THAT(text, !ContainsSubstring("Leave a client"));
}

TEST_CASE("guarded doctor: a missing command is named before the group is made", "[guarded][doctor]")
{
    server_options options = server_options::plain();
    options.settings = {"--rename-command", "HVALS", ""};
    const server renamed{options};
    const std::string text = group_and_servers::diagnosis_of({renamed.url()});
    CHECK_THAT(text, ContainsSubstring("warning: it can't be armed (HVALS: "));
    CHECK_THAT(text, ContainsSubstring("Allow the command: its ACL or a rename-command forbids it"));
}

} // namespace redlock::test
