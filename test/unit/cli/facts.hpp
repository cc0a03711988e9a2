// SPDX-License-Identifier: BSL-1.0
// Shared parts of the doctor's unit tests: a master without findings, and probes that failed.
#pragma once

#include "cli/doctor/finding.hpp"

#include <chrono>
#include <string>
#include <utility>

namespace redlock::test
{

/// Returns a successful probe, whose steps took 1, 2 and 3 ms.
inline cli::probe good_probe()
{
    using namespace std::chrono_literals;
    cli::probe made;
    for (cli::probe_outcome& each : made.steps)
    {
        each.tried = true;
    }
    made.at(cli::probe_step::acquire).took = 1ms;
    made.at(cli::probe_step::extend).took = 2ms;
    made.at(cli::probe_step::release).took = 3ms;
    made.tries = 1;
    return made;
}

/// Makes a step of the probe fail.
inline void fail(cli::probe& made, cli::probe_step step, error_code reason, std::string detail = {})
{
    made.at(step) = {
        .tried = true, .key_gone = false, .reason = reason, .detail = std::move(detail), .took = {}};
}

/// Returns the facts of a master without findings.
inline cli::master_facts good_facts(std::string name = "redis://10.0.0.1:6379")
{
    using namespace std::chrono_literals;
    cli::master_facts facts;
    facts.examined.name = std::move(name);
    facts.examined.server = "redis 7.0.15";
    facts.examined.run_id = "run-id-of-" + facts.examined.name;
    facts.examined.fastest_round_trip = 100us;
    facts.examined.median_round_trip = 200us;
    facts.examined.appendonly = "yes";
    facts.examined.appendfsync = "always";
    facts.examined.save = "";
    facts.user = "locker";
    facts.key_prefix = "team:";
    facts.probed = good_probe();
    return facts;
}

} // namespace redlock::test
