// SPDX-License-Identifier: BSL-1.0
// A consumer of the library, as small as can be: it makes a manager and lets it go.
#include <redlock/redlock.hpp>

#include <boost/asio/io_context.hpp>

#include <iostream>

int main()
{
    boost::asio::io_context io;
    redlock::lock_manager locks{io, {"redis://127.0.0.1:1"}};
    std::cout << "a consumer of redlock\n";
}
