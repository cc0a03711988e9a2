// SPDX-License-Identifier: BSL-1.0
// Redirects stderr to a file without a name.
#include "unit/cli/captured_errors.hpp"

#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace redlock::test
{

captured_errors::captured_errors()
    : file_{::memfd_create("stderr", MFD_CLOEXEC)}, former_{::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)}
{
    if (!file_ || !former_ || ::dup2(file_.get(), STDERR_FILENO) < 0)
    {
        throw std::system_error{errno, std::generic_category(), "can't redirect stderr"};
    }
}

captured_errors::~captured_errors()
{
    ::dup2(former_.get(), STDERR_FILENO);
}

std::string captured_errors::take()
{
    std::string text;
    char part[4096];
    ::lseek(file_.get(), 0, SEEK_SET);
    for (ssize_t size = 0; (size = ::read(file_.get(), part, sizeof part)) > 0;)
    {
        text.append(part, static_cast<std::size_t>(size));
    }
    ::lseek(file_.get(), 0, SEEK_SET);
    if (::ftruncate(file_.get(), 0) != 0)
    {
        throw std::system_error{errno, std::generic_category(), "can't empty a file"};
    }
    return text;
}

} // namespace redlock::test
