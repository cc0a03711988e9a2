// SPDX-License-Identifier: BSL-1.0
// The seam of the simulation.
#include "virtual_environment.hpp"

#include "pending_handlers.hpp"
#include "virtual_stream.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>

namespace redlock::test
{

/// Set for one time of its process's clock. Its events share its state, since they may outlive it.
class virtual_alarm final : public runtime::alarm
{
  public:
    virtual_alarm(
        runtime::scheduler& strand, virtual_world& world, const process_clock& by, alarm_count& counted,
        std::vector<virtual_alarm*>& all)
        : strand_{strand},
          world_{world},
          clock_{by},
          counted_{counted},
          all_{all},
          state_{std::make_shared<state>(pending_handlers::of(strand))}
    {
        all_.push_back(this);
    }
    ~virtual_alarm() override
    {
        state_->waiting = 0;
        std::erase(all_, this);
    }

    void set(clock::time_point at) override
    {
        ++counted_.all;
        counted_.late += at < clock_.shown_at(world_.now()) ? 1U : 0U;
        if (state_->waiting == 0)
        {
            runtime::scheduler& strand = strand_;
            auto fired = [&strand](error_code closed, std::size_t)
            {
                if (!closed)
                {
                    strand.on_alarm();
                }
            };
            state_->waiting = state_->handlers.add(strand_, fired);
        }
        at_ = at;
        set_anew();
    }

    /// The clock was changed.
    void set_anew()
    {
        if (state_->waiting == 0)
        {
            return;
        }
        const clock::time_point due_at = clock_.when_shown(at_);
        state_->due_at = due_at;
        auto due = [state = state_, due_at]
        {
            // Nothing waits after the alarm was destroyed, and its context may be destroyed too.
            if (state->waiting != 0 && state->due_at == due_at)
            {
                state->handlers.complete(state->waiting, {});
            }
        };
        world_.at(due_at, event_kind::timer, std::move(due));
    }

    void close() noexcept override
    {
        state_->handlers.complete(state_->waiting, boost::asio::error::operation_aborted);
    }

  private:
    struct state
    {
        explicit state(pending_handlers& of) : handlers{of} {}

        pending_handlers& handlers;
        pending_handlers::ticket waiting = 0;
        clock::time_point due_at{}; // True.
    };

    runtime::scheduler& strand_;
    virtual_world& world_;
    const process_clock& clock_;
    alarm_count& counted_;
    std::vector<virtual_alarm*>& all_;
    clock::time_point at_{};
    std::shared_ptr<state> state_;
};

void virtual_environment::set_rate(std::int64_t millionths)
{
    clock_.set_rate(world_->now(), millionths);
    set_alarms_anew();
}

void virtual_environment::jump(clock::duration by)
{
    clock_.jump(world_->now(), by);
    set_alarms_anew();
}

void virtual_environment::set_alarms_anew() const
{
    for (virtual_alarm* each : alarms_)
    {
        each->set_anew();
    }
}

void virtual_environment::random(std::span<std::byte> out) const noexcept
{
    std::generate(
        out.begin(), out.end(), [this] { return static_cast<std::byte>(world_->random_number() & 0xffU); });
}

std::unique_ptr<runtime::stream>
virtual_environment::make_stream(runtime::scheduler& strand, const master& to) const
{
    return std::make_unique<virtual_stream>(strand, *world_, *masters_.at(to.host()), origin_, streams_);
}

std::unique_ptr<runtime::alarm> virtual_environment::make_alarm(runtime::scheduler& strand) const
{
    return std::make_unique<virtual_alarm>(strand, *world_, clock_, alarms_set_, alarms_);
}

} // namespace redlock::test
