// SPDX-License-Identifier: BSL-1.0
// The machine that is measured, and the restriction to one CPU.
#include "harness/machine.hpp"

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include <boost/version.hpp>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace redlock::bench
{

namespace
{

std::string processor_name()
{
    std::ifstream file{"/proc/cpuinfo"};
    for (std::string line; std::getline(file, line);)
    {
        if (line.starts_with("model name"))
        {
            const std::size_t value = line.find_first_not_of(" \t", line.find(':') + 1);
            return value == std::string::npos ? std::string{} : line.substr(value);
        }
    }
    return "unknown";
}

} // namespace

machine_info describe_machine()
{
    utsname system{};
    ::uname(&system);
    double load = 0;
    ::getloadavg(&load, 1);
    machine_info here;
    here.processor = processor_name();
    here.cores = ::sysconf(_SC_NPROCESSORS_ONLN);
    here.kernel = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
#if defined(__clang__)
    here.compiler = fmt::format("clang {}", __clang_version__);
#else
    here.compiler = fmt::format("g++ {}", __VERSION__);
#endif
    here.boost =
        fmt::format("{}.{}.{}", BOOST_VERSION / 100'000, BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100);
    here.load = load;
    return here;
}

cpu_pinning::cpu_pinning(std::optional<int> wanted)
{
    if (::sched_getaffinity(0, sizeof before_, &before_) != 0)
    {
        throw std::system_error{errno, std::generic_category(), "sched_getaffinity"};
    }
    number_ = wanted.value_or(CPU_SETSIZE - 1);
    while (!wanted && number_ > 0 && !CPU_ISSET(static_cast<std::size_t>(number_), &before_))
    {
        --number_;
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(number_), &one);
    if (::sched_setaffinity(0, sizeof one, &one) != 0)
    {
        throw std::system_error{
            errno, std::generic_category(), fmt::format("restricting the process to CPU {}", number_)};
    }
}

cpu_pinning::~cpu_pinning()
{
    // The mask was valid before, so this can't fail.
    ::sched_setaffinity(0, sizeof before_, &before_);
}

} // namespace redlock::bench
