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
    virtual_alarm(runtime::scheduler& strand, const virtual_environment& home)
        : strand_{strand}, home_{home}, state_{std::make_shared<state>(pending_handlers::of(strand))}
    {
        home_.alarms_.push_back(this);
    }
    ~virtual_alarm() override
    {
        state_->waiting = 0;
        std::erase(home_.alarms_, this);
    }

    void set(clock::time_point at) override
    {
        ++home_.alarms_set_;
        home_.late_alarms_ += at < home_.now() ? 1U : 0U;
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
        const clock::time_point due_at = home_.clock_.when_shown(at_);
        state_->due_at = due_at;
        auto due = [state = state_, due_at]
        {
            // Nothing waits after the alarm was destroyed, and its context may be destroyed too.
            if (state->waiting != 0 && state->due_at == due_at)
            {
                state->handlers.complete(state->waiting, {});
            }
        };
        home_.world().at(due_at, event_kind::timer, std::move(due));
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
    const virtual_environment& home_;
    clock::time_point at_{};
    std::shared_ptr<state> state_;
};

clock::time_point virtual_environment::now() const noexcept
{
    if (readings_left_ > 0 && --readings_left_ == 0)
    {
        jump(jump_);
    }
    return clock_.shown_at(world_->now());
}

void virtual_environment::set_rate(std::int64_t millionths)
{
    clock_.set_rate(world_->now(), millionths);
    set_alarms_anew();
}

void virtual_environment::jump(clock::duration by) const
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
    return std::make_unique<virtual_alarm>(strand, *this);
}

} // namespace redlock::test
