// SPDX-License-Identifier: BSL-1.0
// Writes lines to stderr without blocking.
#include "cli/common/message.hpp"

#include <redlock/report.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace redlock::cli
{

namespace
{

/// stderr, written without blocking. O_NONBLOCK is a flag of the open file description, which redlock shares with its
/// parent and its child. So redlock opens pipes and terminals again.
class error_stream
{
  public:
    error_stream()
    {
        struct stat about
        {
        };
        if (::fstat(STDERR_FILENO, &about) != 0)
        {
            return;
        }
        socket_ = S_ISSOCK(about.st_mode);
        waits_ = S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode);
        if (waits_)
        {
            own_ = ::open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        }
    }
    error_stream(const error_stream&) = delete;
    error_stream& operator=(const error_stream&) = delete;
    ~error_stream()
    {
        if (own_ >= 0)
        {
            ::close(own_);
        }
    }

    /// Returns true if the whole line was written.
    bool write(std::string_view line) const noexcept
    {
        while (!line.empty())
        {
            const ssize_t written = write_some(line);
            if (written <= 0)
            {
                return false;
            }
            line.remove_prefix(static_cast<std::size_t>(written));
        }
        return true;
    }

  private:
    ssize_t write_some(std::string_view line) const noexcept
    {
        if (socket_)
        {
            return ::send(STDERR_FILENO, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        }
        if (own_ >= 0)
        {
            return ::write(own_, line.data(), line.size());
        }
        // stderr couldn't be opened again. The poll promises room for so much; this write can still block, if another
        // process fills the pipe after it.
        pollfd ready{STDERR_FILENO, POLLOUT, 0};
        if (waits_ && ::poll(&ready, 1, 0) != 1)
        {
            errno = EAGAIN;
            return -1;
        }
        return ::write(
            STDERR_FILENO, line.data(), waits_ ? std::min<std::size_t>(line.size(), PIPE_BUF) : line.size());
    }

    int own_ = -1;
    bool socket_ = false;
    bool waits_ = false; // A pipe or a terminal, where a write may block.
};

} // namespace

void say(std::string_view text)
{
    static const error_stream out;
    static std::size_t dropped = 0;
    if (dropped > 0)
    {
        const std::string gap =
            fmt::format("redlock: ({} lines were dropped: stderr was blocked)\n", dropped);
        if (!out.write(gap))
        {
            ++dropped;
            return;
        }
        dropped = 0;
    }
    if (!out.write(fmt::format("redlock: {}\n", text)))
    {
        ++dropped;
    }
}

std::string in_quotes(std::string_view resource)
{
    return fmt::format("'{}'", short_text{resource}.view());
}

std::string shown_word(std::string_view word)
{
    return word.find_first_of(":@") == std::string_view::npos ? in_quotes(word) : std::string{"the value"};
}

std::string what_happened(const error_code& error)
{
    const std::string text = error.message();
    return text.substr(0, text.find(": "));
}

std::string in_plain_words(const error_code& error)
{
    if (error == errc::hold_limit_reached)
    {
        return "--max-hold was reached";
    }
    if (error == errc::validity_exhausted)
    {
        return "a quorum granted it too late, with too little of the --ttl left";
    }
    if (error.category() != master_category())
    {
        return what_happened(error);
    }
    switch (static_cast<master_errc>(error.value()))
    {
    case master_errc::timed_out:
        return "no answer in time";
    case master_errc::unresponsive:
        return "it stopped answering and was disconnected";
    case master_errc::connect_timed_out:
        return "no connection to it in time";
    case master_errc::write_queue_full:
        return "it doesn't read what is sent to it";
    case master_errc::too_many_outstanding_keys:
        return "too many releases to it are unconfirmed";
    case master_errc::same_server:
        return "it is the same server as another master, so it has no vote";
    default:
        return what_happened(error);
    }
}

bool is_refused_by_system(const error_code& error) noexcept
{
    const auto matches = [&error](int number) {
        return error == error_code{number, boost::system::system_category()};
    };
    return matches(EMFILE) || matches(ENFILE) || matches(ENOMEM) || matches(ENOBUFS);
}

} // namespace redlock::cli
