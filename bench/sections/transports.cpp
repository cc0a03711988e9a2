// SPDX-License-Identifier: BSL-1.0
// What a lock costs over unix sockets and over TLS, beside itself over TCP in the same round.
#include "sections/sections.hpp"

#include "harness/redlock_client.hpp"
#include "harness/rounds.hpp"

#include "support/world.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace redlock::bench
{

namespace
{

constexpr std::size_t many = 100;
constexpr std::array<std::string_view, 3> names{"TCP", "unix socket", "TLS"};

/// Masters that are reached in the same way, and a client of theirs.
class reached
{
  public:
    reached(test::transport over, const options& asked)
        : masters_{test::start_servers(asked.masters, {.program = asked.server, .over = over})},
          client_{options_for(masters_)}
    {
    }

    turn to_measure() { return {client_, masters_}; }

  private:
    static config options_for(std::span<const test::server> masters)
    {
        config options = unhurried(masters);
        if (masters.front().speaks_tls())
        {
            options.tls.ca_file = test::certificates_of_world().ca_file;
        }
        return options;
    }

    std::vector<test::server> masters_;
    redlock_client client_;
};

} // namespace

figure_group measure_transports(std::span<test::server>, const options& asked, progress& shown)
{
    shown.show(fmt::format("starting {} masters over TCP, unix sockets and TLS each", asked.masters));
    reached over_tcp{test::transport::tcp, asked};
    reached over_unix_sockets{test::transport::unix_socket, asked};
    reached over_tls{test::transport::tls, asked};
    const auto measure = [&](const work& round, std::string_view what)
    {
        return by_turns(
            {over_tcp.to_measure(), over_unix_sockets.to_measure(), over_tls.to_measure()}, round,
            asked.rounds, shown, what);
    };
    figure_group group{"Other transports, all on one CPU", "TCP", {}};
    group.measured = "other";
    const std::string at_once = fmt::format(", {} at once", many);
    const std::vector<rounds> alone = measure({asked.pairs}, "transports");
    const std::vector<rounds> together = measure(round_for(many, asked), "transports" + at_once);
    plot latencies = distribution_plot("transports", "Acquire latency of one client", {});
    for (std::size_t each = 0; each < names.size(); ++each)
    {
        latencies.lines.push_back(distribution(std::string{names[each]}, alone[each]));
    }
    group.plots.push_back(std::move(latencies));
    for (std::size_t other = 1; other < names.size(); ++other)
    {
        const std::string prefix = fmt::format("{}: ", names[other]);
        const rounds& tcp = alone.front();
        const rounds& measured = alone[other];
        add({compared(acquire_p50, tcp, measured), compared(acquire_p99, tcp, measured),
             compared(client_cpu, tcp, measured), compared(server_cpu, tcp, measured),
             compared(kernel_calls, tcp, measured), compared(bytes_sent, tcp, measured)},
            prefix, "", group.figures);
        const rounds& tcp_of_many = together.front();
        const rounds& measured_of_many = together[other];
        add({compared(pairs_per_second, tcp_of_many, measured_of_many),
             compared(client_cpu, tcp_of_many, measured_of_many),
             compared(server_cpu, tcp_of_many, measured_of_many)},
            prefix, at_once, group.figures);
    }
    return group;
}

} // namespace redlock::bench
