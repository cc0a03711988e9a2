// SPDX-License-Identifier: BSL-1.0
// The figures of the section contention, with their goals.
#include "sections/contention_tables.hpp"

#include "harness/statistics.hpp"

#include <cstddef>
#include <optional>
#include <utility>

namespace redlock::bench
{

namespace
{

constexpr double max_greedy_share = 0.6;
constexpr double max_wait_of_bound = 1.3;
constexpr double max_hand_over_tail = 3; // p99 to p50.
constexpr double max_rounds_per_grant = 1.1;
constexpr double max_time_of_alone = 1.6; // 1000 grants per second, where a client alone makes 1600.

std::optional<double> goal_if(bool judged, double value)
{
    return judged ? std::optional{value} : std::nullopt;
}

/// Returns a figure of the measured value that is judged by itself.
figure by_itself(const contention_metric& metric, const contention_rounds& of, std::optional<double> goal)
{
    figure one = without_ratio(metric, of, of, goal);
    one.reference.reset();
    return one;
}

} // namespace

figure greedy_share(const contention_rounds& textbook, const contention_rounds& redlock)
{
    figure share = without_ratio(first_share, textbook, redlock, max_greedy_share);
    share.samples = per_round(first_share, redlock);
    return share;
}

std::vector<figure> contention_costs(
    const contention_rounds& textbook, const contention_rounds& redlock, const contention_row& row)
{
    // The clients' commands: at most two to each master, and two more. The script's SET is counted as well.
    const double max_commands = 2 * static_cast<double>(row.masters) + 2 + 1;
    const auto if_judged = [&](double goal) { return goal_if(row.has_command_goals, goal); };
    return {
        compared(grants_per_second, textbook, redlock),
        compared(hand_over_p50, textbook, redlock),
        compared(hand_over_p99, textbook, redlock),
        compared(hand_over_max, textbook, redlock),
        without_ratio(rounds_per_grant, textbook, redlock, if_judged(max_rounds_per_grant)),
        without_ratio(commands_per_grant, textbook, redlock, if_judged(max_commands)),
        compared(server_cpu_per_grant, textbook, redlock),
        compared(longest_wait, textbook, redlock)};
}

std::vector<figure> contention_fairness(const contention_rounds& textbook, const contention_rounds& redlock)
{
    std::vector<figure> figures;
    for (const contention_metric& each :
         {first_grant, idle_share, fewest_grants, most_grants, repeated_grants, grants_ahead,
          grants_ahead_waited, max_lead})
    {
        figures.push_back(without_ratio(each, textbook, redlock));
    }
    return figures;
}

std::vector<figure>
against_alone(const contention_rounds& alone, const contention_rounds& redlock, const contention_row& row)
{
    figure hand_over =
        without_ratio(hand_over_p50, redlock, redlock, goal_if(row.has_wait_goals, row.max_hand_over));
    hand_over.reference = value_of(wait_p50, alone);
    hand_over.ratio = ratios(per_round(hand_over_p50, redlock), per_round(wait_p50, alone));
    // With two clients, a wait is one hold, whose longest isn't the mean.
    figure wait = without_ratio(
        longest_wait, redlock, redlock, goal_if(row.has_wait_goals && row.clients > 2, max_wait_of_bound));
    const std::vector<double> bounds = wait_bounds(redlock, alone);
    wait.reference = spread_of(bounds).median;
    wait.ratio = ratios(per_round(longest_wait, redlock), bounds);
    return {
        std::move(hand_over),
        by_itself(hand_over_tail, redlock, goal_if(row.has_wait_goals, max_hand_over_tail)), std::move(wait)};
}

figure
against_full_rate(const contention_rounds& alone, const contention_rounds& redlock, const contention_row& row)
{
    return compared(time_per_grant, alone, redlock, goal_if(row.has_rate_goal, max_time_of_alone));
}

std::vector<figure> peer_contention(const contention_rounds& all, const contention_rounds& peer)
{
    // The rounds that both have.
    const contention_rounds redlock(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(peer.size()));
    return {compared(grants_per_second, redlock, peer),  compared(hand_over_p50, redlock, peer),
            compared(hand_over_p99, redlock, peer),      compared(server_cpu_per_grant, redlock, peer),
            compared(longest_wait, redlock, peer),       without_ratio(idle_share, redlock, peer),
            without_ratio(fewest_grants, redlock, peer), without_ratio(most_grants, redlock, peer),
            without_ratio(grants_ahead, redlock, peer)};
}

const std::string_view start_note =
    "All clients begin at once, and no client knows of the others; the first grant after the start is "
    "that of this moment. The other figures are measured afterwards, the longest wait from the start. A "
    "grant is "
    "ahead of an older client if another one had waited for at least 2 ms longer. The commands include the "
    "SET "
    "that the script of the queue makes, one per grant.";

const std::string_view alone_note = "The reference of release to grant is the acquire (p50) of a client that "
                                    "is alone, after a pause as long as a hold; of "
                                    "the longest wait: clients x (mean hold + two such acquires); of the "
                                    "time per grant: that of a client that is alone "
                                    "and doesn't pause.";

const std::string_view peers_note =
    "The ratio is peer to redlock. etcd is a single node, which writes each change to disk; PostgreSQL a "
    "single server, "
    "whose advisory lock has no ttl and writes nothing. Both keep the queue themselves.";

} // namespace redlock::bench
