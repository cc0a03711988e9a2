// SPDX-License-Identifier: BSL-1.0
// A client that inspects resources, examines masters, sends invalid requests, and checks every text of the library.
#pragma once

#include "chance.hpp"

#include <redlock/redlock.hpp>

#include <concepts>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace redlock::test
{

class process;

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
    /// Checks that texts are printable and have no password in them.
    template <std::convertible_to<std::string_view>... Text>
    void read(const Text&... texts)
    {
        (check_text(texts), ...);
    }
    void read(const report& told);

  private:
    void later();
    void act();
    void inspect();
    void examine();
    void ask_wrongly();
    void set_up_wrongly();
    void name_a_master();
    void note(error_code reason = {});
    void check_round(const round_decided& decided);
    void check_text(std::string_view text);
    void check_owner(std::string_view what, std::string_view owner_id);

    process& home_;
    chance draws_;
    bool stopping_ = false;
    bool examining_ = false;
};

} // namespace redlock::test
