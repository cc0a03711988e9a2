// SPDX-License-Identifier: BSL-1.0
// Replaces the global allocation functions. Asio calls aligned_alloc itself, which the linker redirects to this file.
#include "allocation/failing_allocations.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define REDLOCK_FINDS_LEAKS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REDLOCK_FINDS_LEAKS 1
#endif
#endif
#if defined(REDLOCK_FINDS_LEAKS)
#include <sanitizer/lsan_interface.h>
#endif

namespace
{

// Constant initialisation, because they are used before and after main().
constinit thread_local bool counting = false;
constinit thread_local std::uint64_t allocations = 0;
constinit std::atomic<std::int64_t> in_use{0};
constinit std::uint64_t chosen = 0;
constinit bool failed = false;
constinit bool escape_allowed = false;
constinit bool escaped = false;
constinit bool in_call = false;
constinit bool was_reported = false;

enum exit_codes : int
{
    passed = 10, // No allocation failed: there are fewer than n.
    coped_with = 11,
    left_run = 16,
    reported = 12,
    terminated = 13,
    crashed = 14,
    went_wrong = 15
};

constexpr int max_allocations = 20'000;
#if defined(REDLOCK_FINDS_LEAKS)
constexpr int usual_stride = 11; // Children of a sanitised process take ten times as long.
#else
constexpr int usual_stride = 1;
#endif
constexpr unsigned max_seconds = 120; // Of one child. Only a hang takes that long.

/// Counts a block that was allocated, or null.
void* counted(void* memory) noexcept
{
    in_use += memory != nullptr ? 1 : 0;
    return memory;
}

void free_counted(void* memory) noexcept
{
    in_use -= memory != nullptr ? 1 : 0;
    std::free(memory);
}

bool fails_now() noexcept
{
    if (!counting || ++allocations != chosen)
    {
        return false;
    }
    failed = true;
    return true;
}

} // namespace

extern "C" void* __real_aligned_alloc(std::size_t alignment, std::size_t bytes);
extern "C" void* __wrap_aligned_alloc(std::size_t alignment, std::size_t bytes)
{
    return fails_now() ? nullptr : __real_aligned_alloc(alignment, bytes);
}

void* operator new(std::size_t bytes)
{
    void* const memory = fails_now() ? nullptr : counted(std::malloc(bytes == 0 ? 1 : bytes));
    if (memory == nullptr)
    {
        throw std::bad_alloc{};
    }
    return memory;
}

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept
{
    return fails_now() ? nullptr : counted(std::malloc(bytes == 0 ? 1 : bytes));
}

void* operator new(std::size_t bytes, std::align_val_t alignment)
{
    const auto boundary = static_cast<std::size_t>(alignment);
    const std::size_t whole = (bytes + boundary - 1) / boundary * boundary;
    void* const memory =
        fails_now() ? nullptr : counted(__real_aligned_alloc(boundary, whole == 0 ? boundary : whole));
    if (memory == nullptr)
    {
        throw std::bad_alloc{};
    }
    return memory;
}

void operator delete(void* memory) noexcept
{
    free_counted(memory);
}

void operator delete(void* memory, std::size_t) noexcept
{
    free_counted(memory);
}

void operator delete(void* memory, std::align_val_t) noexcept
{
    free_counted(memory);
}

void operator delete(void* memory, std::size_t, std::align_val_t) noexcept
{
    free_counted(memory);
}

namespace redlock::test
{

namespace
{

[[noreturn]] void end(int code)
{
    std::fflush(nullptr);
    ::_exit(code);
}

/// Where `noexcept` ends an exception, the compiler may call `terminate` without a current exception.
bool is_by_another_exception() noexcept
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
        return false;
    }
    catch (...)
    {
        return true;
    }
    return false;
}

[[noreturn]] void on_terminate() noexcept
{
    counting = false;
    if (!failed || is_by_another_exception())
    {
        wrong("terminate without a failed allocation");
    }
    if (in_call)
    {
        wrong("terminate in a call by the user");
    }
    end(terminated);
}

/// Runs the scenario in this process, which is a child. Returns its exit code.
int run_in_child(const std::function<void()>& scenario, std::uint64_t which)
{
    ::alarm(max_seconds);
    std::set_terminate(on_terminate);
    for (const int signal : {SIGSEGV, SIGABRT})
    {
        std::signal(signal, [](int) { ::_exit(crashed); });
    }
    chosen = which;
    bool threw = false;
    try
    {
        scenario();
    }
    catch (const std::exception& error)
    {
        std::fprintf(
            stderr, "allocation %llu: the scenario ended with an exception: %s\n",
            static_cast<unsigned long long>(which), error.what());
        threw = true;
    }
#if defined(REDLOCK_FINDS_LEAKS)
    threw = __lsan_do_recoverable_leak_check() != 0 || threw;
#endif
    if (threw)
    {
        return went_wrong;
    }
    return !failed ? passed : escaped ? left_run : was_reported ? reported : coped_with;
}

} // namespace

// A report of a sanitizer ends the child as a crash does: Asio's own crash is one under UBSan.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options()
{
    return "exitcode=14";
}

static_assert(crashed == 14);

fallible::fallible() noexcept : before_{counting}
{
    counting = true;
}

fallible::~fallible()
{
    counting = before_;
}

infallible::infallible() noexcept : before_{counting}
{
    counting = false;
}

infallible::~infallible()
{
    counting = before_;
}

std::int64_t blocks_in_use() noexcept
{
    return in_use;
}

bool has_failed() noexcept
{
    return failed;
}

bool call_once(const std::function<void()>& what)
{
    in_call = true;
    try
    {
        const fallible now;
        what();
    }
    catch (const std::bad_alloc&)
    {
        expect(failed, "bad_alloc without a failed allocation");
        was_reported = true;
        in_call = false;
        return false;
    }
    in_call = false;
    return true;
}

void allow_escape() noexcept
{
    escape_allowed = true;
}

void call(const std::function<void()>& what)
{
    if (!call_once(what))
    {
        what();
    }
}

void in_background(const std::function<void()>& what)
{
    try
    {
        const fallible now;
        what();
    }
    catch (const std::bad_alloc&)
    {
        expect(escape_allowed, "bad_alloc has left the function that runs the context");
        escaped = true;
    }
}

void wrong(std::string_view why)
{
    counting = false;
    std::fprintf(
        stderr, "allocation %llu: %.*s\n", static_cast<unsigned long long>(chosen),
        static_cast<int>(why.size()), why.data());
    end(went_wrong);
}

endings fail_each_allocation(const std::function<void()>& scenario)
{
    endings seen;
    if (const char* const only = std::getenv("REDLOCK_FAIL_ALLOCATION"))
    {
        end(run_in_child(scenario, std::strtoull(only, nullptr, 10)));
    }
    const char* const chosen_stride = std::getenv("REDLOCK_ALLOCATION_STRIDE");
    const int stride = chosen_stride != nullptr ? std::max(std::atoi(chosen_stride), 1) : usual_stride;
    for (int which = 1; which < max_allocations; which += stride)
    {
        std::fflush(nullptr);
        const pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0)
        {
            end(run_in_child(scenario, static_cast<std::uint64_t>(which)));
        }
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        INFO("allocation " << which << ", status " << status);
        switch (WIFEXITED(status) ? WEXITSTATUS(status) : went_wrong)
        {
        case passed:
            return seen;
        case coped_with:
            ++seen.coped_with;
            break;
        case left_run:
            ++seen.escaped;
            break;
        case reported:
            ++seen.reported;
            break;
        case terminated:
            ++seen.terminated;
            break;
        case crashed:
            ++seen.crashed;
            break;
        default:
            FAIL("the scenario went wrong: see above");
        }
    }
    FAIL("the scenario allocates without end");
    return seen;
}

} // namespace redlock::test
