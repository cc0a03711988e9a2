// SPDX-License-Identifier: BSL-1.0
// A process that ignores SIGTERM and whose main thread ends, while another thread runs on. /proc shows it as a zombie.
//
// usage: without_main_thread FILE
// Writes its process id to FILE.
#include <csignal>
#include <fstream>
#include <thread>

#include <pthread.h>
#include <unistd.h>

int main(int count, char** words)
{
    if (count != 2)
    {
        return 64;
    }
    std::signal(SIGTERM, SIG_IGN);
    std::thread{[file = words[1]]
                {
                    std::ofstream{file} << ::getpid() << std::endl;
                    for (;;)
                    {
                        ::pause();
                    }
                }}
        .detach();
    ::pthread_exit(nullptr);
}
