// SPDX-License-Identifier: BSL-1.0
// A manager among hostile masters, on virtual time: what is begun there, and what has to hold all the time.
#pragma once

#include "fuzz_input.hpp"
#include "fuzz_master.hpp"
#include "simulation/virtual_environment.hpp"
#include "witness.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

namespace asio = boost::asio;

/// An operation that was begun.
struct begun
{
    std::string_view what;
    clock::time_point at{};
    clock::time_point ends_at_latest{};
    std::string owner_id{}; // Of a lease's operation.
    bool done = false;
    redlock::report report{};
    boost::asio::cancellation_signal cancel{};
};
using begun_ptr = std::shared_ptr<begun>;

class hostile_scene
{
  public:
    static constexpr std::size_t max_scene_operations = 64; // That run, or were begun.
    static constexpr std::size_t max_scene_leases = 8;

    /// The first decisions are the options of the manager and the masters' ways.
    explicit hostile_scene(fuzz_input& input);
    hostile_scene(const hostile_scene&) = delete;
    hostile_scene& operator=(const hostile_scene&) = delete;
    ~hostile_scene();

    /// The next thing that happens, as the input says.
    void act();
    /// All masters behave from now on: everything has to come to its end. Then the manager is destroyed.
    void end();

  private:
    void act_on_leases(std::size_t what);
    void act_on_masters(std::size_t what);
    void act_on_manager(std::size_t what);

    begun_ptr begin(std::string_view what, clock::duration at_most);
    auto status_into(const begun_ptr& to);
    auto lease_into(const begun_ptr& to);
    void acquire(std::size_t how);
    void extend(lease& held);
    void release(lease& held);
    void wait_lost(lease& held);
    void inspect();
    void examine();
    begun_ptr shut_down();
    lease* some_lease();
    std::string some_resource();
    clock::duration until_warm() const;

    bool step(clock::time_point limit);
    void run_for(clock::duration length);
    void jump(clock::duration length);
    void run_until_idle();
    /// What holds at any time.
    void look();
    void check_lease(const lease& held);
    void check_text(std::string_view text) const;
    /// Of what a server said.
    void check_words(std::string_view text) const;
    void check_event(const event& what) const;
    void check_queues() const;
    void end_in_order();
    void end_at_once();

    fuzz_input& input_;
    std::shared_ptr<virtual_environment> environment_;
    virtual_world& world_;
    std::size_t max_outstanding_;
    bool with_password_ = false;
    witness seen_;
    std::vector<std::unique_ptr<fuzz_master>> masters_;
    std::optional<boost::asio::io_context> io_{std::in_place};
    std::optional<lock_manager> locks_;
    clock::time_point warm_at_latest_;
    std::chrono::milliseconds response_timeout_;
    std::vector<begun_ptr> operations_;
    std::vector<lease> leases_;
    std::set<std::string, std::less<>> lapsed_; // The owner ids of those that were seen not to be valid.
    bool shut_down_ = false;
};

} // namespace redlock::test
