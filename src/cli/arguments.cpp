// SPDX-License-Identifier: BSL-1.0
// Parses the command line with CLI11. No message repeats a word that could be a URL, which may contain a password.
#include "cli/arguments.hpp"

#include "cli/duration.hpp"
#include "cli/exit_code.hpp"
#include "cli/message.hpp"
#include "cli/times.hpp"
#include "cli/words.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace redlock::cli
{

namespace
{

constexpr const char* urls =
    "A URL is redis://[user[:password]@]host[:port][/db], rediss:// for the same over TLS, or\n"
    "unix:///path[?db=n].\n";
constexpr const char* exit_codes =
    "Exit codes: those of the command (128 + n if signal n killed it), or\n"
    "  64 usage  69 no quorum  71 system error  75 held by another  76 lost  77 hold limit reached\n"
    "  78 masters that can't be used  126 the command can't be run  127 there is no such command";

/// The options as given, before their values are parsed.
struct raw_arguments
{
    resource_arguments common;
    std::string ttl = "10s";
    std::string max_hold;
    std::string wait = "10s";
    std::optional<std::string> grace;
    bool no_inherit_masters = false;
    bool try_once = false;
    bool verbose = false;
    bool json = false;
    bool no_probe = false;
};

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

void add_masters(CLI::App& to, master_arguments& servers)
{
    to.add_option(
          "--master", servers.masters, "A master, once for each; else from REDLOCK_MASTERS, with commas")
        ->type_name("URL")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->allow_extra_args(false);
    to.add_option(
          "--ca-file", servers.tls.ca_file, "Authorities that are trusted, for rediss:// (the system's)")
        ->type_name("FILE");
    to.add_option(
          "--certificate-file", servers.tls.certificate_file,
          "This client's certificate, for masters that ask for one")
        ->type_name("FILE");
    to.add_option("--private-key-file", servers.tls.private_key_file, "The key to it, not encrypted")
        ->type_name("FILE");
}

void add_resource(CLI::App& to, resource_arguments& common)
{
    add_masters(to, common.servers);
    to.add_option("--prefix", common.prefix, "Put in front of RESOURCE to make the key (lock:)")
        ->type_name("TEXT");
    to.add_option("RESOURCE", common.resource, "What is locked; after -- if it begins with a dash")
        ->type_name("");
}

CLI::App& add_run(CLI::App& app, raw_arguments& raw)
{
    CLI::App& run = *app.add_subcommand("run", "Run a command while a resource is held");
    run.formatter(std::make_shared<help_with_synopsis>(
        "redlock run [OPTION]... --max-hold DURATION|unlimited RESOURCE -- COMMAND [ARG]..."));
    add_resource(run, raw.common);
    run.add_option("--ttl", raw.ttl, "Lifetime of the keys; they are extended while the command runs (10s)")
        ->type_name("DURATION");
    run.add_option("--max-hold", raw.max_hold, "After so long the command is stopped; or 'unlimited'")
        ->type_name("DURATION");
    CLI::Option* wait =
        run.add_option("--wait", raw.wait, "For how long to try to get the resource, or 'unlimited' (10s)")
            ->type_name("DURATION");
    run.add_flag("--try", raw.try_once, "Try once, don't wait")->excludes(wait);
    run.add_option(
           "--grace", raw.grace, "From SIGTERM to SIGKILL once the lease is lost (ttl / 4, at most 5s)")
        ->type_name("DURATION");
    run.add_flag(
        "--no-inherit-masters", raw.no_inherit_masters,
        "The command doesn't get REDLOCK_MASTERS and its passwords");
    run.add_flag("-v,--verbose", raw.verbose, "Say on stderr what happens");
    run.footer(
        std::string{urls} + "A DURATION is a whole number with a unit: 500ms, 10s, 5m, 2h, 1d.\n" +
        exit_codes);
    return run;
}

CLI::App& add_status(CLI::App& app, raw_arguments& raw)
{
    CLI::App& status = *app.add_subcommand("status", "Show who holds a resource");
    status.formatter(std::make_shared<help_with_synopsis>("redlock status [OPTION]... RESOURCE"));
    add_resource(status, raw.common);
    status.add_flag("--json", raw.json, "Write one JSON object");
    status.footer(
        std::string{urls} +
        "Exit codes: 0 held by a quorum, 1 not, 69 fewer than a quorum of the masters answered");
    return status;
}

CLI::App& add_doctor(CLI::App& app, raw_arguments& raw)
{
    CLI::App& doctor = *app.add_subcommand("doctor", "Examine whether the masters are fit to keep locks");
    doctor.formatter(std::make_shared<help_with_synopsis>("redlock doctor [OPTION]..."));
    add_masters(doctor, raw.common.servers);
    doctor.add_option("--prefix", raw.common.prefix, "With what the keys of locks begin (lock:)")
        ->type_name("TEXT");
    doctor.add_flag("--no-probe", raw.no_probe, "Only look, acquire no lock on the masters");
    doctor.add_flag("--json", raw.json, "Write one JSON object");
    doctor.footer(
        std::string{urls} +
        "Exit codes: 0 all are good (there may be notes), 1 something was found, 69 fewer than a\n"
        "quorum of the masters can be used");
    return doctor;
}

bool is_command(std::string_view word) noexcept
{
    return word == "run" || word == "status" || word == "doctor";
}

std::string no_such_command(const std::string& word)
{
    // The word could be a URL with a password.
    const bool may_be_shown = word.find_first_of(":@") == std::string::npos;
    return fmt::format(
        "there is no such command{}; there are run, status and doctor",
        may_be_shown ? fmt::format(": {}", in_quotes(word)) : std::string{});
}

/// Describes an error of CLI11 in one line that repeats no value of an option.
std::string complaint_of(const CLI::ParseError& error, const std::vector<std::string>& words)
{
    const bool begins_with_option = !words.empty() && words.front().starts_with('-');
    if (!words.empty() && !begins_with_option && !is_command(words.front()))
    {
        return no_such_command(words.front());
    }
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && (words.empty() || begins_with_option))
    {
        return "give a command: run, status or doctor";
    }
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
    {
        for (const std::string& word : words)
        {
            const std::string name = word.substr(0, word.find('='));
            const std::string shown = error.what();
            if (name.starts_with('-') && shown.find(name) != std::string::npos)
            {
                return fmt::format("there is no option {}", in_quotes(name));
            }
        }
        if (words.front() == "doctor")
        {
            return "there are arguments besides options; a master is given by --master";
        }
        return "there are more arguments than the one RESOURCE; behind it stands -- and then the command";
    }
    if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr)
    {
        return "an option that takes no value was given one";
    }
    return error.what();
}

[[noreturn]] void refuse(const std::string& why)
{
    throw std::invalid_argument{why};
}

template <class Read>
auto option_value(const char* option, const std::string& text, Read read)
{
    try
    {
        return read(text);
    }
    catch (const std::invalid_argument& error)
    {
        refuse(fmt::format("{}: {}", option, error.what()));
    }
}

std::vector<std::string> split_at_commas(std::string_view text)
{
    std::vector<std::string> parts;
    while (!text.empty())
    {
        const std::size_t comma = std::min(text.find(','), text.size());
        const std::string_view part = text.substr(0, comma);
        const std::size_t first = part.find_first_not_of(" \t\n");
        if (first != std::string_view::npos)
        {
            parts.emplace_back(part.substr(first, part.find_last_not_of(" \t\n") - first + 1));
        }
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return parts;
}

master_arguments complete(master_arguments servers)
{
    if (servers.masters.empty())
    {
        const char* variable = std::getenv(masters_variable);
        servers.masters = split_at_commas(variable == nullptr ? "" : variable);
    }
    if (servers.masters.empty())
    {
        refuse(fmt::format(
            "there are no masters: give --master redis://host[:port] once for each, or {} separated by "
            "commas",
            masters_variable));
    }
    if (servers.tls.certificate_file.empty() != servers.tls.private_key_file.empty())
    {
        refuse("--certificate-file and --private-key-file go together: give both, or neither");
    }
    return servers;
}

/// Checked here, because the library's message would name its own option.
const std::string& read_prefix(const std::string& text)
{
    constexpr std::size_t longest = 1024;
    if (text.size() > longest)
    {
        refuse(fmt::format("--prefix: it has {} bytes: give {} at most", text.size(), longest));
    }
    return text;
}

resource_arguments complete(resource_arguments common)
{
    common.prefix = read_prefix(common.prefix);
    common.servers = complete(std::move(common.servers));
    if (common.resource.empty())
    {
        refuse("RESOURCE is missing or empty: give a name of 1 to 1024 bytes");
    }
    return common;
}

std::chrono::milliseconds read_grace(const raw_arguments& raw, std::chrono::milliseconds ttl)
{
    const bool given = raw.grace.has_value();
    const auto grace = given ? option_value("--grace", *raw.grace, read_duration) : default_grace(ttl);
    const auto most = longest_grace(ttl);
    if (!most)
    {
        refuse(fmt::format(
            "--ttl: {} is too short to be kept: it must be {} or more", in_words(ttl),
            in_words(shortest_ttl())));
    }
    if (grace > *most)
    {
        refuse(fmt::format(
            "--grace: {} is too long for a ttl of {}: it must be {} at most{}", in_words(grace),
            in_words(ttl), in_words(*most), given ? "" : " (give a longer ttl, or a shorter --grace)"));
    }
    return grace;
}

run_arguments complete_run(const raw_arguments& raw, std::optional<std::vector<std::string>> command)
{
    if (raw.max_hold.empty())
    {
        refuse("--max-hold is required: after how long a command that hangs is stopped, as in --max-hold "
               "12h, or "
               "--max-hold unlimited");
    }
    if (!command || command->empty())
    {
        refuse("there is no command: behind RESOURCE stands -- and then the command and its arguments");
    }
    if (raw.common.resource.empty() && command->front().starts_with('-'))
    {
        refuse("-- is missing between RESOURCE and COMMAND: give -- RESOURCE -- COMMAND");
    }
    run_arguments all;
    all.common = complete(raw.common);
    all.command = std::move(*command);
    all.ttl = option_value("--ttl", raw.ttl, read_duration);
    all.grace = read_grace(raw, all.ttl);
    all.max_hold = option_value("--max-hold", raw.max_hold, read_limit);
    all.wait = option_value("--wait", raw.wait, read_limit);
    all.try_once = raw.try_once;
    all.verbose = raw.verbose;
    all.inherit_masters = !raw.no_inherit_masters;
    if (all.max_hold.value() <= std::chrono::milliseconds{0})
    {
        refuse("--max-hold: it must be 1ms or more, or 'unlimited'");
    }
    return all;
}

} // namespace

request read_arguments(int count, const char* const* words)
{
    std::vector<std::string> given{words + std::min(count, 1), words + count};
    std::optional<std::vector<std::string>> command = take_command(given);
    raw_arguments raw;
    CLI::App app{"Distributed locks over independent Redis or Valkey masters.", "redlock"};
    app.set_version_flag("--version", "redlock " REDLOCK_COMMAND_VERSION);
    app.require_subcommand(1);
    // The last occurrence counts, so that a user can override the options in an alias or a script.
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    const CLI::App& run = add_run(app, raw);
    const CLI::App& status = add_status(app, raw);
    add_doctor(app, raw);
    try
    {
        const bool known = !given.empty() && is_command(given.front());
        const std::vector<std::string> complete_words =
            known ? with_empty_values(given, *app.get_subcommand(given.front())) : given;
        app.parse(std::vector<std::string>{complete_words.rbegin(), complete_words.rend()});
        if (status.parsed())
        {
            return status_arguments{complete(raw.common), raw.json};
        }
        if (!run.parsed())
        {
            return doctor_arguments{
                complete(raw.common.servers), read_prefix(raw.common.prefix), !raw.no_probe, raw.json};
        }
        if (raw.common.resource.empty() && command)
        {
            raw.common.resource = take_resource(*command);
        }
        return complete_run(raw, std::move(command));
    }
    catch (const CLI::Success& wanted)
    {
        // Help or version, on stdout.
        return answered{app.exit(wanted)};
    }
    catch (const CLI::ParseError& error)
    {
        say(complaint_of(error, given) + "; see redlock --help");
    }
    catch (const std::invalid_argument& error)
    {
        say(error.what());
    }
    return answered{number_of(exit_code::usage)};
}

} // namespace redlock::cli
