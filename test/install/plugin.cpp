// SPDX-License-Identifier: BSL-1.0
// A consumer that is a shared object, loaded by plugin_host.
#include <redlock/redlock.hpp>

#include <boost/asio/io_context.hpp>

#include <iostream>

extern "C" void run_plugin()
{
    boost::asio::io_context io;
    redlock::lock_manager locks{io, {"redis://127.0.0.1:1"}};
    std::cout << "a plugin with redlock" << std::endl;
}
