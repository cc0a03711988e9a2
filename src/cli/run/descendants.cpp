// SPDX-License-Identifier: BSL-1.0
// Reads the parent of each process from /proc. /proc/PID/task/TID/children would be quicker; not every kernel has it.
#include "cli/run/descendants.hpp"

#include <redlock/error.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>
#include <unordered_map>

#include <fcntl.h>
#include <unistd.h>

namespace redlock::cli
{

namespace
{

struct process
{
    pid_t id = 0; // 0: there is none.
    pid_t parent = 0;
    bool alive = false;
};

template <class Number>
bool read_number(std::string_view text, Number& value) noexcept
{
    return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc{};
}

/// Returns the n-th word, counted from 0. Empty if there are fewer.
std::string_view word_of(std::string_view text, std::size_t number) noexcept
{
    for (; number > 0 && !text.empty(); --number)
    {
        const std::size_t space = text.find(' ');
        text = space == std::string_view::npos ? std::string_view{} : text.substr(space + 1);
    }
    return text.substr(0, text.find(' '));
}

/// "123 (name) S 1 ...": the name may have spaces and parentheses in it.
process parse(std::string_view stat) noexcept
{
    constexpr std::size_t threads_after_state = 17;
    constexpr std::size_t to_state = 2;
    constexpr std::size_t to_parent = 4;
    process one;
    const std::size_t end_of_name = stat.rfind(')');
    if (end_of_name == std::string_view::npos || stat.size() < end_of_name + to_parent + 1 ||
        !read_number(stat.substr(end_of_name + to_parent), one.parent) || !read_number(stat, one.id))
    {
        return {};
    }
    const char state = stat[end_of_name + to_state];
    // A process whose main thread has ended is shown as a zombie, while its other threads run on.
    int threads = 0;
    const bool has_others =
        read_number(word_of(stat.substr(end_of_name + to_state), threads_after_state), threads) &&
        threads > 1;
    one.alive = state != 'X' && (state != 'Z' || has_others);
    return one;
}

process read_process(int proc, const char* name) noexcept
{
    pid_t id = 0;
    if (!read_number(name, id))
    {
        return {};
    }
    char path[32] = {};
    const std::string_view file{"/stat"};
    const std::string_view folder{name};
    if (folder.size() + file.size() >= sizeof path)
    {
        return {};
    }
    file.copy(path + folder.copy(path, folder.size()), file.size());
    const int stat = ::openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (stat < 0)
    {
        return {};
    }
    char text[512];
    const ssize_t length = ::read(stat, text, sizeof text);
    ::close(stat);
    return length > 0 ? parse({text, static_cast<std::size_t>(length)}) : process{};
}

/// 0 if it can't be found out.
pid_t parent_of(pid_t id) noexcept
{
    const int proc = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0)
    {
        return 0;
    }
    char name[16] = {};
    std::to_chars(name, name + sizeof name - 1, id);
    const pid_t parent = read_process(proc, name).parent;
    ::close(proc);
    return parent;
}

/// Nothing if the system has no descriptor left.
std::optional<std::unordered_multimap<pid_t, process>> children_by_parent(DIR* folder)
{
    std::unordered_multimap<pid_t, process> all;
    ::rewinddir(folder);
    while (const dirent* entry = ::readdir(folder))
    {
        errno = 0;
        const process one = read_process(::dirfd(folder), entry->d_name);
        if (one.id == 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
        {
            return std::nullopt;
        }
        if (one.id != 0)
        {
            all.emplace(one.parent, one);
        }
    }
    return all;
}

/// Returns whether /proc shows the processes of this namespace.
bool shows_us()
{
    char text[16] = {};
    const ssize_t length = ::readlink("/proc/self", text, sizeof text - 1);
    pid_t shown = 0;
    return length > 0 && read_number({text, static_cast<std::size_t>(length)}, shown) && shown == ::getpid();
}

} // namespace

process_table::~process_table()
{
    if (folder_ != nullptr)
    {
        ::closedir(folder_);
        ::close(spare_);
    }
}

void process_table::open()
{
    if (!shows_us())
    {
        return;
    }
    folder_ = ::opendir("/proc");
    spare_ = folder_ != nullptr ? ::fcntl(::dirfd(folder_), F_DUPFD_CLOEXEC, 0) : -1;
    if (spare_ < 0)
    {
        const int error = errno;
        if (folder_ != nullptr)
        {
            ::closedir(folder_);
            folder_ = nullptr;
        }
        throw system_error{error_code{error, boost::system::system_category()}, "can't read /proc"};
    }
}

std::optional<std::vector<pid_t>> process_table::descendants(const std::vector<pid_t>& excluded)
{
    if (!is_open())
    {
        return std::nullopt;
    }
    ::close(spare_);
    const auto children = children_by_parent(folder_);
    const int error = errno;
    spare_ = ::fcntl(::dirfd(folder_), F_DUPFD_CLOEXEC, 0);
    errno = error;
    if (!children)
    {
        return std::nullopt;
    }
    std::vector<pid_t> found;
    std::vector<pid_t> parents{::getpid()};
    // Each process has one parent, so each is visited once at most.
    while (!parents.empty())
    {
        const auto [first, last] = children->equal_range(parents.back());
        parents.pop_back();
        for (auto each = first; each != last; ++each)
        {
            const process& one = each->second;
            if (one.alive && std::find(excluded.begin(), excluded.end(), one.id) == excluded.end())
            {
                found.push_back(one.id);
                parents.push_back(one.id);
            }
        }
    }
    return found;
}

bool can_be_continued() noexcept
{
    // An ancestor that ends meanwhile, and whose number is used again, could make a ring of them.
    constexpr int max_ancestors = 1000;
    const pid_t session = ::getsid(0);
    pid_t ancestor = ::getppid();
    for (int seen = 0; seen < max_ancestors && ancestor > 0 && ::getsid(ancestor) == session; ++seen)
    {
        if (::getpgid(ancestor) != ::getpgrp())
        {
            return true;
        }
        ancestor = parent_of(ancestor);
    }
    return false;
}

} // namespace redlock::cli
