// SPDX-License-Identifier: BSL-1.0
// The cost of a lock over unix sockets and TLS, compared with TCP in the same round.
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

constexpr std::size_t concurrent_workers = 100;
constexpr std::array<std::string_view, 3> names{"TCP", "unix socket", "TLS"};

/// Masters with the same transport, and their client.
class transport_under_test
{
  public:
    transport_under_test(test::transport over, const options& settings)
        : masters_{test::start_servers(settings.masters, {.program = settings.server, .over = over})},
          client_{options_for(masters_)}
    {
    }

    participant as_participant() { return {client_, masters_}; }

  private:
    static config options_for(std::span<const test::server> masters)
    {
        config options = config_with_long_timeout(masters);
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

figure_group measure_transports(std::span<test::server>, const options& settings, progress& status)
{
    status.show(fmt::format("starting {} masters for each of TCP, unix sockets and TLS", settings.masters));
    transport_under_test over_tcp{test::transport::tcp, settings};
    transport_under_test over_unix_sockets{test::transport::unix_socket, settings};
    transport_under_test over_tls{test::transport::tls, settings};
    const auto measure = [&](const workload& round, std::string_view what)
    {
        return run_alternately(
            {over_tcp.as_participant(), over_unix_sockets.as_participant(), over_tls.as_participant()}, round,
            settings.rounds, status, what);
    };
    figure_group group{"Other transports, all on one CPU", "TCP", {}};
    group.measured = "other";
    const std::string with_workers = fmt::format(", {} workers", concurrent_workers);
    const std::vector<rounds> alone = measure({settings.pairs}, "transports");
    const std::vector<rounds> together =
        measure(round_for(concurrent_workers, settings), "transports" + with_workers);
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
             compared(client_cpu_per_pair, tcp, measured), compared(server_cpu_per_pair, tcp, measured),
             compared(system_calls_per_pair, tcp, measured), compared(bytes_sent, tcp, measured)},
            prefix, "", group.figures);
        const rounds& concurrent_tcp = together.front();
        const rounds& concurrent_measured = together[other];
        add({compared(pairs_per_second, concurrent_tcp, concurrent_measured),
             compared(client_cpu_per_pair, concurrent_tcp, concurrent_measured),
             compared(server_cpu_per_pair, concurrent_tcp, concurrent_measured)},
            prefix, with_workers, group.figures);
    }
    return group;
}

} // namespace redlock::bench
