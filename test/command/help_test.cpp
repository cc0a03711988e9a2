// SPDX-License-Identifier: BSL-1.0
// The help, the man page and the completion agree.
#include "command/command.hpp"

#include <catch2/catch_test_macros.hpp>

#include <regex>
#include <set>

#include <fmt/format.h>

namespace redlock::test
{

namespace
{

const std::string sources = REDLOCK_COMMAND_SOURCES;

std::string output_of(const strings& arguments)
{
    const command_run asked{arguments};
    if (asked.wait() != process_end{.exit_code = 0})
    {
        throw std::runtime_error{"doesn't end with 0: " + asked.errors()};
    }
    return asked.output();
}

/// Returns the long options in a text, each once.
std::set<std::string> long_options_in(const std::string& text)
{
    static const std::regex option{"--[a-z][a-z-]*"};
    std::set<std::string> found;
    for (std::sregex_iterator each{text.begin(), text.end(), option}, end; each != end; ++each)
    {
        found.insert(each->str());
    }
    return found;
}

/// Returns what a bash script writes to stdout and stderr.
std::string written_by(const std::string& script)
{
    const temporary_directory directory;
    const std::string output = directory.path() + "/output";
    const child_process shell{{"bash", "--norc", "-u", "-c", script}, output};
    if (!shell.wait_for_end(patience))
    {
        throw stuck{"bash doesn't end"};
    }
    return text_of(output);
}

/// Returns what bash offers for the last of the words, one on each line.
std::string completions(const strings& words)
{
    std::string script = fmt::format("source {}/completion.bash; COMP_WORDS=(", sources);
    for (const std::string& word : words)
    {
        script += "'" + word + "' ";
    }
    script +=
        fmt::format("); COMP_CWORD={}; _redlock; printf '%s\\n' \"${{COMPREPLY[@]}}\"", words.size() - 1);
    return written_by(script);
}

} // namespace

TEST_CASE("help: the help, the man page and the completion have the same options")
{
    const std::set<std::string> of_run = long_options_in(output_of({"run", "--help"}));
    const std::set<std::string> of_status = long_options_in(output_of({"status", "--help"}));
    const std::set<std::string> of_doctor = long_options_in(output_of({"doctor", "--help"}));
    const std::set<std::string> of_provision = long_options_in(output_of({"provision", "--help"}));
    std::set<std::string> all = long_options_in(output_of({"--help"}));
    CHECK(all == std::set<std::string>{"--help", "--version"});
    all.insert(of_run.begin(), of_run.end());
    all.insert(of_status.begin(), of_status.end());
    all.insert(of_doctor.begin(), of_doctor.end());
    all.insert(of_provision.begin(), of_provision.end());
    CHECK(all.size() == 28);

    // A man page escapes its hyphens.
    const std::string page = std::regex_replace(text_of(sources + "/redlock.1"), std::regex{R"(\\-)"}, "-");
    std::set<std::string> of_page = long_options_in(page);
    of_page.erase("--all"); // An option of the command in an example.
    CHECK(of_page == all);

    CHECK(long_options_in(completions({"redlock", "run", "--"})) == of_run);
    CHECK(long_options_in(completions({"redlock", "status", "--"})) == of_status);
    CHECK(long_options_in(completions({"redlock", "doctor", "--"})) == of_doctor);
    CHECK(long_options_in(completions({"redlock", "provision", "--"})) == of_provision);
}

TEST_CASE("completion: offers subcommands, values, and commands after --")
{
    CHECK(completions({"redlock", "r"}) == "run\n");
    CHECK(completions({"redlock", "st"}) == "status\n");
    CHECK(completions({"redlock", "d"}) == "doctor\n");
    CHECK(completions({"redlock", "p"}) == "provision\n");
    CHECK(completions({"redlock", "provision", "--policy", ""}) == "clocks\noperator\n");
    CHECK(completions({"redlock", "doctor", "--ca-file", "/dev/nul"}) == "/dev/null\n");
    CHECK(completions({"redlock", "run", "--max-hold", "unl"}) == "unlimited\n");
    CHECK(completions({"redlock", "run", "--ma"}) == "--master\n--max-hold\n");
    CHECK(completions({"redlock", "run", "job", "--", "mkfif"}).starts_with("mkfifo\n"));
    CHECK(completions({"redlock", "run", "job", "--", "ls", "/dev/nul"}) == "/dev/null\n");
}

TEST_CASE("help: ends with 71 and a message if stdout can't be written")
{
    for (const std::string words : {"--version", "--help", "run --help"})
    {
        CHECK(
            written_by(fmt::format("{} {} >/dev/full; echo $?", REDLOCK_COMMAND, words)) ==
            "redlock: can't write to stdout\n71\n");
    }
}

TEST_CASE("help: --version prints the project's version")
{
    CHECK(std::regex_match(output_of({"--version"}), std::regex{"redlock [0-9]+\\.[0-9]+\\.[0-9]+\n"}));
}

} // namespace redlock::test
