// SPDX-License-Identifier: BSL-1.0
// A client that inspects resources, examines masters, sends invalid requests, and checks every text of the library.
#pragma once

#include "chance.hpp"
#include "trace_numbers.hpp"

#include <redlock/redlock.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace redlock::test
{

class process;

/// An event of which an observer must be notified.
enum class expected_event : std::uint8_t
{
    failed_extension,
    loss,
    release
};

class observer_client
{
  public:
    /// The password of the masters. No text of the library may contain it.
    static constexpr std::string_view password = "pa55w0rd";

    observer_client(process& home, std::uint64_t seed) : home_{home}, draws_{seed} {}

    void start();
    void stop() noexcept { stopping_ = true; }
    /// Called by the observer of its managers.
    void on_event(const event& what);
    /// The observer must be notified of this event by the end.
    void expect(expected_event what, const std::string& owner_id) { expected_.emplace(what, owner_id); }
    /// Returns an expected event that never came, in words; empty if there is none.
    std::string missing() const;
    /// Checks that a text is printable and has no password in it.
    void read(std::string_view text);
    void read(const report& told);

  private:
    void later();
    void act();
    void inspect();
    void examine();
    void ask_wrongly();
    void set_up_wrongly();
    void name_a_master();
    void note(observed what, error_code reason = {});
    void check_round(const round_decided& decided);
    void check_owner(std::string_view what, std::string_view owner_id);

    process& home_;
    chance draws_;
    bool stopping_ = false;
    bool examining_ = false;
    std::set<std::pair<expected_event, std::string>> expected_;
    std::set<std::pair<expected_event, std::string>> told_;
    bool dropped_ = false;
    std::set<std::string, std::less<>> lost_; // Owner ids of leases that were reported lost.
};

} // namespace redlock::test
