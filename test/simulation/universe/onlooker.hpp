// SPDX-License-Identifier: BSL-1.0
// Somebody who looks on: asks who holds what and how the masters are, asks for what can't be had, and reads all that the
// library says.
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

/// What an observer has to be notified of.
enum class expected_event : std::uint8_t
{
    failed_extension,
    loss,
    release
};

class onlooker
{
  public:
    /// The password of the masters: nothing that is read may have it in it.
    static constexpr std::string_view password = "pa55w0rd";

    onlooker(process& home, std::uint64_t seed) : home_{home}, draws_{seed} {}

    void start();
    void stop() noexcept { stopping_ = true; }
    /// What its managers tell.
    void on_event(const event& what);
    /// The observer has to be notified of this, sooner or later.
    void expect(expected_event what, const std::string& owner_id) { expected_.emplace(what, owner_id); }
    /// In words, something of it that never came; empty if all did.
    std::string missing() const;
    /// Texts are printable, and have no password in them.
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
    std::set<std::string, std::less<>> lost_; // The owner ids that it was told of as lost.
};

} // namespace redlock::test
