// SPDX-License-Identifier: BSL-1.0
// The redlock command.
#include "cli/common/arguments.hpp"
#include "cli/common/exit_code.hpp"
#include "cli/common/leave.hpp"
#include "cli/common/manager_config.hpp"
#include "cli/common/message.hpp"
#include "cli/common/words.hpp"
#include "cli/doctor/doctor.hpp"
#include "cli/provision/provision.hpp"
#include "cli/run/run.hpp"
#include "cli/status/status.hpp"

#include <redlock/error.hpp>

#include <cstdlib>
#include <exception>
#include <new>
#include <variant>

#include <fcntl.h>
#include <unistd.h>

namespace redlock::cli
{

namespace
{

/// Opens the standard descriptors that the parent has closed, so that no file opened later becomes one of them. Output to them
/// fails as it does without a descriptor.
void open_standard_descriptors()
{
    int descriptor = 0;
    do
    {
        descriptor = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    } while (descriptor >= 0 && descriptor <= STDERR_FILENO);
    if (descriptor > STDERR_FILENO)
    {
        ::close(descriptor);
    }
}

int report_out_of_memory()
{
    say("out of memory");
    return number_of(exit_code::system_error);
}

/// The library terminates the program if one of its own coroutines gets no memory.
[[noreturn]] void on_terminate() noexcept
{
    const std::exception_ptr thrown = std::current_exception();
    try
    {
        if (thrown)
        {
            std::rethrow_exception(thrown);
        }
    }
    catch (const std::bad_alloc&)
    {
        leave({report_out_of_memory(), 0});
    }
    catch (...)
    {
        std::abort();
    }
    std::abort();
}

/// Carries out each kind of request.
struct carry_out
{
    int operator()(const answered& done) const
    {
        if (done.exit_code == number_of(exit_code::success))
        {
            leave_with_output(exit_code::success); // Help, or the version.
        }
        return done.exit_code;
    }
    int operator()(const run_arguments& asked) const { run(asked); }
    int operator()(const status_arguments& asked) const { status(asked); }
    int operator()(const doctor_arguments& asked) const { doctor(asked); }
    int operator()(const provision_arguments& asked) const { provision(asked); }
};

/// Carries out the command line. Returns the exit code, unless the program ends in it.
int answer(int count, char** words)
{
    try
    {
        const request asked = read_arguments(count, words);
        hide_passwords(count, words);
        return std::visit(carry_out{}, asked);
    }
    catch (const system_error& error)
    {
        return refuse(error);
    }
}

} // namespace

} // namespace redlock::cli

int main(int count, char** words)
{
    namespace cli = redlock::cli;
    try
    {
        std::set_terminate(cli::on_terminate);
        cli::open_standard_descriptors();
        return cli::answer(count, words);
    }
    catch (const std::bad_alloc&)
    {
        return cli::report_out_of_memory();
    }
    catch (const std::exception& error)
    {
        cli::say(error.what());
        return cli::number_of(cli::exit_code::system_error);
    }
}
