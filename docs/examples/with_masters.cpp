// SPDX-License-Identifier: BSL-1.0
// Runs a program with the URLs of some throw-away masters as its last arguments, and ends them with it:
// example_with_masters 3 ./example_design
#include "throwaway_servers.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>

/// Runs a program to its end and returns its exit code.
int run(std::vector<std::string> words)
{
    std::vector<char*> arguments;
    for (std::string& word : words)
    {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);

    const pid_t child = ::fork();
    if (child == 0)
    {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::execvp(arguments[0], arguments.data());
        std::perror(arguments[0]);
        ::_exit(127);
    }
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child)
    {
        throw std::runtime_error{"can't run " + words.front()};
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char** argv)
{
    const long count = argc > 2 ? std::strtol(argv[1], nullptr, 10) : 0;
    if (count < 1 || count > 31)
    {
        std::fprintf(stderr, "usage: %s <number of masters, 1 to 31> <program> [argument...]\n", argv[0]);
        return 64;
    }
    try
    {
        const std::vector<throwaway_server> servers(static_cast<std::size_t>(count));
        std::vector<std::string> words{argv + 2, argv + argc};
        for (const throwaway_server& server : servers)
        {
            words.push_back(server.url());
        }
        return run(words);
    }
    catch (const std::exception& failure)
    {
        std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
        return 1;
    }
}
