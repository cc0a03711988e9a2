// SPDX-License-Identifier: BSL-1.0
// The options of each command.
#include "cli/common/option_list.hpp"

#include <memory>
#include <utility>

namespace redlock::cli
{

namespace
{

constexpr const char* urls =
    "A URL is redis://[[user]:password@]host[:port][/db], rediss:// for the same over TLS, or\n"
    "unix:///path[?db=n].\n";
constexpr const char* exit_codes =
    "Exit code: that of COMMAND (128 + n if signal n killed it), or\n"
    "  64 usage error  69 no quorum of masters  71 system error  75 held by another client\n"
    "  76 lock lost  77 --max-hold reached  78 invalid masters  126 COMMAND can't be run\n"
    "  127 COMMAND not found";

/// Help with a synopsis that CLI11 can't produce: CLI11 omits what follows --.
class help_with_synopsis : public CLI::Formatter
{
  public:
    explicit help_with_synopsis(std::string synopsis) : synopsis_{std::move(synopsis)} {}

    std::string make_usage(const CLI::App*, std::string) const override
    {
        return "Usage: " + synopsis_ + "\n";
    }

  private:
    std::string synopsis_;
};

void add_masters(CLI::App& to, raw_arguments& raw)
{
    master_arguments& servers = raw.common.servers;
    to.add_option(
          "--master", servers.masters,
          "A master; repeat for each (default: REDLOCK_MASTERS, separated by commas)")
        ->type_name("URL")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->allow_extra_args(false);
    to.add_option(
          "--ca-file", servers.tls.ca_file, "Trusted authorities, PEM, for rediss:// (default: the system's)")
        ->type_name("FILE");
    to.add_option(
          "--certificate-file", servers.tls.certificate_file,
          "Client certificate, PEM, for masters that require one")
        ->type_name("FILE");
    to.add_option(
          "--private-key-file", servers.tls.private_key_file,
          "Private key of that certificate, PEM, not encrypted")
        ->type_name("FILE");
    to.add_option(
          "--connect-timeout", raw.connect_timeout,
          "Limit for connecting to a master, for masters that are far away (default: 1s, provision: 5s)")
        ->type_name("DURATION");
}

void add_resource(CLI::App& to, raw_arguments& raw)
{
    add_masters(to, raw);
    to.add_option("--prefix", raw.common.prefix, "Prefix of the key, in front of RESOURCE (default: lock:)")
        ->type_name("TEXT");
    to.add_option(
          "RESOURCE", raw.common.resource, "Name of the lock; put it after -- if it begins with a dash")
        ->type_name("");
}

} // namespace

CLI::App& add_run(CLI::App& app, raw_arguments& raw)
{
    CLI::App& run = *app.add_subcommand("run", "Run a command while holding a lock");
    run.formatter(std::make_shared<help_with_synopsis>(
        "redlock run [OPTION]... --max-hold DURATION|unlimited RESOURCE -- COMMAND [ARG]..."));
    add_resource(run, raw);
    run.add_option("--ttl", raw.ttl, "Lifetime of the keys, extended while the command runs (default: 10s)")
        ->type_name("DURATION");
    run.add_option(
           "--max-hold", raw.max_hold, "Time after which the command is stopped, or 'unlimited' (required)")
        ->type_name("DURATION");
    CLI::Option* wait =
        run.add_option(
               "--wait", raw.wait, "How long to try to acquire the lock, or 'unlimited' (default: 10s)")
            ->type_name("DURATION");
    run.add_flag("--try", raw.try_once, "Try once and don't wait")->excludes(wait);
    run.add_option(
           "--grace", raw.grace,
           "Time from SIGTERM to SIGKILL when the lock is lost (default: ttl / 4, at most 5s)")
        ->type_name("DURATION");
    run.add_flag(
        "--no-inherit-masters", raw.no_inherit_masters,
        "Don't pass REDLOCK_MASTERS and its passwords to the command");
    run.add_flag(
        "--guarded", raw.guarded,
        "Use masters that were provisioned, and pass REDLOCK_FENCING_TOKEN to the command");
    run.add_flag("-v,--verbose", raw.verbose, "Report events on stderr");
    run.footer(
        std::string{urls} + "A DURATION is a whole number with a unit: 500ms, 10s, 5m, 2h, 1d.\n" +
        exit_codes);
    return run;
}

CLI::App& add_status(CLI::App& app, raw_arguments& raw)
{
    CLI::App& status = *app.add_subcommand("status", "Show which owner holds a lock");
    status.formatter(std::make_shared<help_with_synopsis>("redlock status [OPTION]... RESOURCE"));
    add_resource(status, raw);
    status.add_flag("--json", raw.json, "Write one JSON object");
    status.footer(
        std::string{urls} +
        "Exit code: 0 held on a quorum of the masters, 1 not held, 69 fewer than a quorum answered\n"
        "  64 usage error  71 system error  78 invalid masters");
    return status;
}

CLI::App& add_doctor(CLI::App& app, raw_arguments& raw)
{
    CLI::App& doctor = *app.add_subcommand("doctor", "Check whether the masters are fit for locks");
    doctor.formatter(std::make_shared<help_with_synopsis>("redlock doctor [OPTION]..."));
    add_masters(doctor, raw);
    doctor
        .add_option("--prefix", raw.common.prefix, "Prefix of the key of the probe's lock (default: lock:)")
        ->type_name("TEXT");
    doctor.add_flag(
        "--no-probe", raw.no_probe, "Don't acquire a lock on the masters; without --guarded, write no key");
    doctor.add_flag("--guarded", raw.guarded, "Check whether the masters vote in guarded mode, too");
    doctor.add_flag("--json", raw.json, "Write one JSON object");
    doctor.footer(
        std::string{urls} +
        "Exit code: 0 all masters are good (with notes at most), 1 a master has a warning or a failure\n"
        "and a quorum can be used, 69 fewer than a quorum can be used\n"
        "  64 usage error  71 system error  78 invalid masters");
    return doctor;
}

CLI::App& add_provision(CLI::App& app, raw_arguments& raw)
{
    CLI::App& provision = *app.add_subcommand("provision", "Make the masters a group for guarded locks");
    provision.formatter(std::make_shared<help_with_synopsis>(
        "redlock provision [OPTION]... --max-ttl DURATION\n"
        "       redlock provision [OPTION]... --change --max-ttl DURATION [--from URL]...\n"
        "       redlock provision [OPTION]... --arm | --again GROUP | --retire URL"));
    add_masters(provision, raw);
    provision.add_option("--prefix", raw.common.prefix, "Prefix of the keys of the group (default: lock:)")
        ->type_name("TEXT");
    CLI::Option* const max_ttl =
        provision
            .add_option(
                "--max-ttl", raw.max_ttl,
                "The longest ttl of a lock, and how long a master is in quarantine (required)")
            ->type_name("DURATION");
    CLI::Option* const policy =
        provision
            .add_option(
                "--policy", raw.policy,
                "After a restart of all masters: clients arm them (clocks), or an operator (default: clocks)")
            ->type_name("clocks|operator");
    CLI::Option* const fresh =
        provision.add_flag("--fresh", raw.fresh, "Skip the wait, which is refused if a master has keys");
    CLI::Option* const change =
        provision
            .add_flag(
                "--change", raw.change,
                "Replace the group of the masters by one with this list, --max-ttl and --policy")
            ->excludes(fresh);
    const auto add_old_masters =
        [&provision, fresh](const char* name, std::vector<std::string>& to, const char* what)
    {
        return provision.add_option(name, to, what)
            ->type_name("URL")
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
            ->allow_extra_args(false)
            ->excludes(fresh);
    };
    CLI::Option* const from = add_old_masters(
        "--from", raw.leaving, "A master of the group before that isn't in the new list; repeat for each");
    CLI::Option* const stopped = add_old_masters(
        "--stopped", raw.stopped, "Such a master that is stopped and never comes back; repeat for each");
    CLI::Option* const takeover =
        provision.add_flag("--takeover", raw.takeover, "Replace the group of another unfinished run, too")
            ->excludes(fresh);
    CLI::Option* const arm =
        provision
            .add_flag(
                "--arm", raw.arm, "Arm the masters that were restarted with their data (--policy operator)")
            ->excludes(max_ttl, policy, fresh, change, from, stopped, takeover);
    CLI::Option* const again =
        provision.add_option("--again", raw.group, "Arm this group again, which has lost its data")
            ->type_name("GROUP")
            ->excludes(arm, fresh, change, from, stopped, takeover);
    provision
        .add_option(
            "--retire", raw.retired, "Delete the marker of this server, which has old data; repeat for each")
        ->type_name("URL")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->allow_extra_args(false)
        ->excludes(max_ttl, policy, fresh, change, from, stopped, takeover, arm, again)
        ->excludes(provision.get_option("--master"));
    provision.add_flag("--json", raw.json, "Write one JSON object");
    provision.footer(
        std::string{urls} +
        "Exit code: 0 the masters are armed (--retire: have no marker), 1 a master can't be a member or\n"
        "has changed, 69 a master can't be used\n"
        "  64 usage error  71 system error  78 invalid masters");
    return provision;
}

} // namespace redlock::cli
