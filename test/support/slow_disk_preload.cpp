// SPDX-License-Identifier: BSL-1.0
// Preloaded into a server, this makes each write to the disk take SLOW_DISK_MS milliseconds. The real disk isn't used,
// so that 0 stands for a disk that is never slow.
#include <cstdlib>

#include <time.h>

namespace
{

int write_slowly()
{
    const char* const text = std::getenv("SLOW_DISK_MS");
    const long milliseconds = text != nullptr ? std::atol(text) : 0;
    timespec left{milliseconds / 1000, milliseconds % 1000 * 1'000'000};
    while (nanosleep(&left, &left) != 0)
    {
    }
    return 0;
}

} // namespace

extern "C"
{
    int fsync(int)
    {
        return write_slowly();
    }

    int fdatasync(int)
    {
        return write_slowly();
    }
}
