// SPDX-License-Identifier: BSL-1.0
// Preloaded into a server, this shifts its wall clock by the number of seconds in the first eight bytes of a file, read
// at each call. Clocks that a process uses for waiting are unchanged. Doesn't allocate, because allocators read clocks
// during their initialisation.
#include <cstdint>
#include <cstdlib>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

namespace
{

std::int64_t seconds_ahead()
{
    static const volatile std::int64_t* const shared = []() -> const volatile std::int64_t*
    {
        const char* path = std::getenv("SETTABLE_CLOCK");
        const int file = path != nullptr ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        void* const memory = mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, file, 0);
        close(file);
        return memory == MAP_FAILED ? nullptr : static_cast<const volatile std::int64_t*>(memory);
    }
    ();
    return shared != nullptr ? *shared : 0;
}

} // namespace

extern "C"
{
    int clock_gettime(clockid_t which, timespec* out) noexcept
    {
        const auto result = static_cast<int>(syscall(SYS_clock_gettime, which, out));
        if (result == 0 && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
        {
            out->tv_sec += seconds_ahead();
        }
        return result;
    }

    int gettimeofday(timeval* out, void*) noexcept
    {
        timespec now{};
        clock_gettime(CLOCK_REALTIME, &now);
        out->tv_sec = now.tv_sec;
        out->tv_usec = now.tv_nsec / 1000;
        return 0;
    }

    time_t time(time_t* out) noexcept
    {
        timespec now{};
        clock_gettime(CLOCK_REALTIME, &now);
        if (out != nullptr)
        {
            *out = now.tv_sec;
        }
        return now.tv_sec;
    }
}
