// SPDX-License-Identifier: BSL-1.0
// Tests of batching: the extensions of many leases that are due at the same beat share one write per master.
#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>

#include <set>
#include <utility>
#include <vector>

namespace redlock::test
{

namespace
{

/// The number of writes, and their times.
struct writing
{
    const virtual_environment& outside;
    std::vector<clock::time_point> writes{};
};

class counting_stream final : public runtime::stream
{
  public:
    counting_stream(std::unique_ptr<runtime::stream> inner, std::shared_ptr<writing> seen)
        : inner_{std::move(inner)}, seen_{std::move(seen)}
    {
    }
    void connect(runtime::io_operation& operation, clock::time_point until) override
    {
        inner_->connect(operation, until);
    }
    void read_some(std::span<char> buffer, runtime::io_operation& operation) override
    {
        inner_->read_some(buffer, operation);
    }
    void write(std::span<const char> bytes, runtime::io_operation& operation) override
    {
        seen_->writes.push_back(seen_->outside.now());
        inner_->write(bytes, operation);
    }
    void close() noexcept override { inner_->close(); }

  private:
    std::unique_ptr<runtime::stream> inner_;
    std::shared_ptr<writing> seen_;
};

/// The simulation's environment, which also counts writes.
class counting_environment final : public runtime::environment
{
  public:
    explicit counting_environment(std::shared_ptr<writing> seen) : seen_{std::move(seen)} {}

    clock::time_point now() const noexcept override { return seen_->outside.now(); }
    void random(std::span<std::byte> out) const noexcept override { seen_->outside.random(out); }
    std::unique_ptr<runtime::stream> make_stream(runtime::scheduler& strand, const master& to) const override
    {
        return std::make_unique<counting_stream>(seen_->outside.make_stream(strand, to), seen_);
    }
    std::unique_ptr<runtime::alarm> make_alarm(runtime::scheduler& strand) const override
    {
        return seen_->outside.make_alarm(strand);
    }

  private:
    std::shared_ptr<writing> seen_;
};

} // namespace

TEST_CASE("the extensions that fall on one beat are one write for each master")
{
    constexpr std::size_t leases = 1000;
    simulation sim{5};
    const auto seen = std::make_shared<writing>(writing{sim.environment()});
    config options = sim.options();
    options.probe_interval = 1h;
    lock_manager locks = sim.make_manager(options, std::make_shared<counting_environment>(seen));
    sim.run_until_idle();
    std::vector<outcome_ptr> held;
    for (std::size_t index = 0; index < leases; ++index)
    {
        held.push_back(
            sim.acquire_kept(locks, "stock" + std::to_string(index), {.ttl = 10s, .max_hold = no_limit}));
    }
    sim.run_until_idle();
    for (const auto& each : sim.masters())
    {
        each->forget_log();
    }
    seen->writes.clear();
    sim.run_for(30s);

    // 200 beats in the mean time between two extensions of a lease: five leases on each.
    std::set<clock::time_point> beats;
    for (const received& each : sim.master(0).log())
    {
        beats.insert(each.at);
    }
    const std::size_t extensions = sim.master(0).count("extend");
    CHECK(extensions > leases * 8);
    CHECK(seen->writes.size() == beats.size() * 5);
    CHECK(beats.size() * 4 < extensions);
    for (const outcome_ptr& each : held)
    {
        CHECK(each->lease.valid());
    }
}

} // namespace redlock::test
