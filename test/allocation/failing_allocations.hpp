// SPDX-License-Identifier: BSL-1.0
// Makes the n-th allocation of a scenario fail, for each n, in a child process each.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace redlock::test
{

/// While it exists, the allocations of the calling thread are counted, and the chosen one fails.
class fallible
{
  public:
    fallible() noexcept;
    fallible(const fallible&) = delete;
    fallible& operator=(const fallible&) = delete;
    ~fallible();

  private:
    bool before_;
};

/// While it exists, the allocations of the calling thread are those of the test: neither counted nor failing.
class infallible
{
  public:
    infallible() noexcept;
    infallible(const infallible&) = delete;
    infallible& operator=(const infallible&) = delete;
    ~infallible();

  private:
    bool before_;
};

/// Returns how many blocks of memory the process has allocated by `new` and not freed. Thread-safe.
std::int64_t blocks_in_use() noexcept;

/// Returns true if the chosen allocation has failed.
bool has_failed() noexcept;

/// A call by the user. An allocation that fails in it has to be reported to the caller, unless the library copes with it.
/// Returns false if it was reported.
bool call_once(const std::function<void()>& what);
/// Repeats the call if a failure was reported.
void call(const std::function<void()>& what);

/// Runs something during which `terminate` is the only answer to a failed allocation, unless the library copes with it.
void in_background(const std::function<void()>& what);
/// From now on, `bad_alloc` may leave what runs in the background, as it leaves run() for coroutines of Asio.
void allow_escape() noexcept;

/// Fails the scenario.
[[noreturn]] void wrong(std::string_view why);
inline void expect(bool holds, std::string_view why)
{
    if (!holds)
    {
        wrong(why);
    }
}

/// How often the scenario ended in each way.
struct endings
{
    int reported = 0;   // `bad_alloc` was thrown to the caller, who repeated the call.
    int terminated = 0; // By `terminate`, because of `bad_alloc`, outside of any call.
    int coped_with = 0; // The scenario went on.
    int escaped = 0;    // `bad_alloc` has left `in_background`, after `allow_escape`.
    int crashed = 0;    // A test has to say why.
};

/// Runs the scenario in a child process for each n, with the n-th allocation failing, until it makes fewer than n.
/// Fails the test if a child hangs, leaks or calls `wrong`. For a debugger, REDLOCK_FAIL_ALLOCATION=n runs that one in
/// this process. Sanitised, it is each eleventh n, or each REDLOCK_ALLOCATION_STRIDE-th.
endings fail_each_allocation(const std::function<void()>& scenario);

} // namespace redlock::test
