// SPDX-License-Identifier: BSL-1.0
// A holder of a lock, whose resource refuses its writes once a later holder has shown its token. The usage is above
// `main`; check_fencing runs two of them, one of which is stopped until the other one has taken over.
#include "fencing_file.hpp"
#include "fencing_object.hpp"
#include "fencing_postgresql.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

std::unique_ptr<fenced_account> make_account(const std::string& kind, const std::string& where, rules obeyed)
{
    if (kind == "row")
    {
        return std::make_unique<fenced_row>(obeyed);
    }
    if (kind == "transactions")
    {
        return std::make_unique<fenced_transactions>();
    }
    if (kind == "object")
    {
        return std::make_unique<fenced_object>(where, obeyed);
    }
    if (kind == "file")
    {
        return std::make_unique<fenced_file>(where);
    }
    throw std::invalid_argument{"unknown resource: " + kind};
}

rules rules_of(std::string_view name)
{
    return name == "unchecked" ? rules::unchecked : name == "unopened" ? rules::unopened : rules::both;
}

/// Waits for a line on the standard input. Stands for the work, and for a pause that nothing can exclude: a check of
/// `lease.valid()` after it makes the window smaller, but there is always one between the last check and the write.
void wait_for_a_line()
{
    std::string ignored;
    if (!std::getline(std::cin, ignored))
    {
        throw std::runtime_error{"the standard input has ended"};
    }
}

int deposit(redlock::lock_manager& locks, fenced_account& account, std::int64_t amount)
{
    const redlock::acquire_options options{.ttl = 2s, .wait = 1min};
    redlock::lease lease = locks.async_acquire("account:42", options, asio::use_future).get();
    const std::uint64_t token = lease.fencing_token().value();

    const std::optional<std::int64_t> balance = account.open(token);
    if (!balance)
    {
        std::cout << "refused: a later holder has shown its token" << std::endl;
        return superseded;
    }
    std::cout << "token " << token << ", balance " << *balance << std::endl;
    wait_for_a_line();
    if (!account.write(token, *balance + amount))
    {
        std::cout << "refused: a later holder has shown its token" << std::endl;
        return superseded;
    }
    std::cout << "wrote " << *balance + amount << std::endl;
    lease.async_release(asio::use_future).wait();
    return 0;
}

/// example_fencing <resource> both|unopened|unchecked <amount> <master>...
///
/// `resource` is `row` or `transactions` for PostgreSQL, `object=<port>` for a store on this machine, or
/// `file=<command>`. The program acquires the lock in guarded mode, shows its token, reads the balance, waits for a line
/// on its standard input, and adds the amount.
int main(int argc, char** argv)
{
    if (argc < 5)
    {
        std::cerr << "usage: " << argv[0] << " <resource> both|unopened|unchecked <amount> <master>...\n";
        return 64;
    }
    try
    {
        const std::string resource = argv[1];
        const std::size_t end = resource.find('=');
        const auto account = make_account(
            resource.substr(0, end), end == std::string::npos ? "" : resource.substr(end + 1),
            rules_of(argv[2]));

        const std::vector<redlock::master> masters{argv + 4, argv + argc};
        redlock::config options{.masters = masters};
        options.guarded.emplace();
        options.node_timeout = 500ms; // Ten times the default: this machine may be slow.
        asio::thread_pool pool{1};
        redlock::lock_manager locks{pool, options};
        const int result = deposit(locks, *account, std::stoll(argv[3]));
        locks.async_shutdown(asio::use_future).wait();
        pool.join();
        return result;
    }
    catch (const std::exception& failure)
    {
        std::cerr << argv[0] << ": " << failure.what() << '\n';
        return 1;
    }
}
