// SPDX-License-Identifier: BSL-1.0
// A minimal consumer of the library: it creates and destroys a manager.
#include <redlock/redlock.hpp>

#include <boost/asio/io_context.hpp>

#include <iostream>

int main()
{
    boost::asio::io_context io;
    redlock::lock_manager locks{io, {"redis://127.0.0.1:1"}};
    std::cout << "a consumer of redlock\n";
}
