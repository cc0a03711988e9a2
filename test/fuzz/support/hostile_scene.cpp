// SPDX-License-Identifier: BSL-1.0
// A manager among hostile masters: its beginning, its time, its end, and what has to hold.
#include "hostile_scene.hpp"

#include "api/create.hpp"
#include "manager/access.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <variant>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

constexpr double drift_factor = 0.01;
constexpr clock::duration rounding = 1us;
constexpr clock::duration second_look = 10ms; // At what the kernel may still have, and some more.
constexpr clock::duration after_wait =
    500ms;                                 // What an acquire may take beyond its wait, with the last answers.
constexpr std::size_t much_room = 64;      // Outstanding keys.
constexpr std::size_t max_steps = 100'000; // Of one call: more means that time stands still.
constexpr std::string_view password = "S3same0pen";

/// The simulation's clock, chance and alarms; but all ways lead to hostile masters.
class hostile_environment final : public runtime::environment
{
  public:
    hostile_environment(
        std::shared_ptr<const virtual_environment> inner,
        const std::vector<std::unique_ptr<fuzz_master>>& masters)
        : inner_{std::move(inner)}
    {
        std::transform(
            masters.begin(), masters.end(), std::back_inserter(masters_),
            [](const auto& each) { return each.get(); });
    }

    clock::time_point now() const noexcept override { return inner_->now(); }
    void random(std::span<std::byte> out) const noexcept override { inner_->random(out); }
    std::unique_ptr<runtime::stream> make_stream(runtime::scheduler& strand, const master& to) const override
    {
        const auto index = static_cast<std::size_t>(to.host().back() - '1');
        return std::make_unique<hostile_stream>(strand, *masters_.at(index));
    }
    std::unique_ptr<runtime::alarm> make_alarm(runtime::scheduler& strand) const override
    {
        return inner_->make_alarm(strand);
    }

  private:
    std::shared_ptr<const virtual_environment> inner_;
    std::vector<fuzz_master*> masters_;
};

} // namespace

hostile_scene::hostile_scene(fuzz_input& input)
    : input_{input},
      environment_{std::make_shared<virtual_environment>(1)},
      world_{environment_->world()},
      max_outstanding_{input.one_of(std::array<std::size_t, 4>{64, 1, 2, 5})},
      seen_{input.one_of(std::array<std::size_t, 4>{3, 1, 2, 3}), drift_factor},
      warm_at_latest_{world_.now()}
{
    seen_.on_release = [this](std::string_view owner_id)
    {
        for (const lease& each : leases_)
        {
            require(
                each.owner_id() != owner_id || each.valid_until() == clock::time_point{},
                "a lease is valid though it is being released");
        }
    };
    config options;
    options.node_timeout = input.one_of(std::array{50ms, 5ms, 20ms});
    const std::size_t manner = input.below(4);
    options.response_timeout = response_timeout_ = manner % 2 == 0 ? 300ms : 100ms;
    options.order = manner < 2 ? order::waiting : order::strict;
    // Short ones: whatever takes long to get over costs runs.
    options.connect_timeout = 200ms;
    options.reconnect_delay_max = 100ms;
    options.max_outstanding_keys = max_outstanding_;
    options.observer.on_event = [this](const event& what) { check_event(what); };
    const std::uint8_t hostile = input.byte();
    with_password_ = (hostile & 0x40U) != 0;
    if ((hostile & 0x80U) != 0)
    {
        options.max_operations = 3;
        options.max_waiting_acquires = 1;
        options.max_write_queue_bytes = 65'536;
    }
    for (std::size_t index = 0; index < seen_.masters(); ++index)
    {
        masters_.push_back(std::make_unique<fuzz_master>(index, world_, input, seen_, 4 * max_outstanding_));
        masters_.back()->is_hostile = (hostile >> index & 1U) != 0;
        masters_.back()->greets_well = (hostile >> index & 8U) == 0;
        const std::string host = "10.0.0." + std::to_string(index + 1);
        options.masters.emplace_back(
            "redis://" + (with_password_ ? ":" + std::string{password} + '@' : std::string{}) + host);
    }
    warm_at_latest_ += options.connect_timeout;
    auto outside = std::make_shared<hostile_environment>(environment_, masters_);
    locks_.emplace(detail::access::make_manager(
        api::create(io_->get_executor(), std::move(options), std::move(outside))));
}

hostile_scene::~hostile_scene()
{
    // The handlers in it refer to everything else.
    io_.reset();
}

clock::duration hostile_scene::until_warm() const
{
    return std::max(warm_at_latest_ - world_.now(), clock::duration::zero());
}

bool hostile_scene::step(clock::time_point limit)
{
    io_->restart();
    if (io_->poll_one() > 0)
    {
        return true;
    }
    for (const auto& each : masters_)
    {
        each->check_when_idle();
    }
    if (world_.empty() || world_.next() > limit)
    {
        return false;
    }
    world_.run_next();
    return true;
}

void hostile_scene::run_for(clock::duration length)
{
    const clock::time_point limit = world_.now() + length;
    std::size_t steps = 0;
    while (step(limit))
    {
        require(++steps < max_steps, "time stands still");
    }
    world_.jump(std::max(limit - world_.now(), clock::duration::zero()));
    for (const auto& each : masters_)
    {
        each->check_patience(response_timeout_ + second_look);
    }
    look();
}

/// The machine sleeps: whatever has to end ends later by as much.
void hostile_scene::jump(clock::duration length)
{
    world_.jump(length);
    warm_at_latest_ += length;
    for (const auto& each : masters_)
    {
        each->forgive();
    }
    for (const begun_ptr& each : operations_)
    {
        each->ends_at_latest += length;
    }
}

void hostile_scene::run_until_idle()
{
    std::size_t steps = 0;
    while (step(world_.quiet() ? world_.now() : clock::time_point::max()))
    {
        require(++steps < max_steps, "it never becomes idle");
    }
}

void hostile_scene::look()
{
    for (const begun_ptr& each : operations_)
    {
        if (!each->done && world_.now() > each->ends_at_latest)
        {
            fail("an operation doesn't end: " + std::string{each->what});
        }
    }
    for (const lease& each : leases_)
    {
        check_lease(each);
    }
}

void hostile_scene::check_lease(const lease& held)
{
    if (held.valid_until() != clock::time_point{})
    {
        require(
            held.valid_until() <= seen_.provable(held.owner_id()) + rounding,
            "a lease is valid for longer than a quorum has said");
    }
    if (!held.valid())
    {
        lapsed_.emplace(held.owner_id());
    }
    else
    {
        require(!lapsed_.contains(held.owner_id()), "a lease that had lapsed is valid again");
    }
}

void hostile_scene::check_text(std::string_view text) const
{
    const bool printable = std::all_of(
        text.begin(), text.end(), [](char one) { return (one >= ' ' && one <= '~') || one == '\n'; });
    require(printable, "something is told that isn't printable");
    const bool told = with_password_ && text.find(password) != std::string_view::npos;
    require(!told, "the password is told");
}

void hostile_scene::check_words(std::string_view text) const
{
    check_text(text);
    require(text.size() <= short_text::capacity, "more of what a server said is told than fits into a line");
}

void hostile_scene::check_event(const event& what) const
{
    if (const auto* up = std::get_if<master_up>(&what))
    {
        check_words(up->server);
    }
    else if (const auto* down = std::get_if<master_down>(&what))
    {
        check_words(down->detail);
    }
    else if (const auto* risky = std::get_if<master_warning>(&what))
    {
        check_words(risky->detail);
    }
    else if (const auto* decided = std::get_if<round_decided>(&what))
    {
        check_text(decided->report.to_string());
    }
}

void hostile_scene::end()
{
    input_.end();
    for (const auto& each : masters_)
    {
        each->become_honest();
    }
    if (locks_)
    {
        end_in_order();
    }
    end_at_once();
}

/// Whatever runs comes to its end, and nothing is left on any master.
void hostile_scene::end_in_order()
{
    // Longer than any back-off, and any connection that hangs.
    run_for(1s);
    run_for(after_wait);
    check_queues();
    leases_.clear();
    shut_down();
    // Each has its own bound, which is checked; that of a wait for a loss ends with its lease.
    const auto is_done = [](const begun_ptr& each) { return each->done; };
    for (int waited = 0; !std::all_of(operations_.begin(), operations_.end(), is_done); ++waited)
    {
        require(waited < 300, "an operation outlives a shutdown");
        run_for(100ms);
    }
    if (!shut_down_)
    {
        require(seen_.still_owed() == seen_.masters(), "a SET was never followed by a release");
    }
}

/// No acquire waits any more, so that none is in a queue. With little room, the command that leaves it may be dropped:
/// then the queue master drops the client after its liveness.
void hostile_scene::check_queues() const
{
    if (max_outstanding_ < much_room || shut_down_)
    {
        return;
    }
    for (std::size_t index = 0; index < masters_.size(); ++index)
    {
        const std::string member = masters_[index]->has_client() ? seen_.still_queued(index) : std::string{};
        require(member.empty(), "a client that doesn't wait any more is left in the queue: " + member);
    }
}

/// The manager is destroyed, and nothing is left of it in this process.
void hostile_scene::end_at_once()
{
    locks_.reset();
    run_until_idle();
    for (const begun_ptr& each : operations_)
    {
        require(each->done, "an operation outlived its manager");
    }
    leases_.clear();
    // A release that a master has put off keeps its connection meanwhile.
    run_for(response_timeout_);
    io_->restart();
    io_->poll();
    for (const auto& each : masters_)
    {
        require(each->streams() == 0, "a connection outlived its manager by more than the response timeout");
    }
    require(io_->stopped(), "something is pending though nothing is left");
}

} // namespace redlock::test
