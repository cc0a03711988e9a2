// SPDX-License-Identifier: BSL-1.0
// The seam of the simulation.
#include "virtual_environment.hpp"

#include "pending_handlers.hpp"
#include "virtual_stream.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>

namespace redlock::test
{

namespace
{

/// Set for one point in time. Its events find its state where they may come after it has gone.
class virtual_alarm final : public env::alarm
{
  public:
    virtual_alarm(env::scheduler& strand, virtual_world& world, std::size_t& late)
        : strand_{strand},
          world_{world},
          late_{late},
          state_{std::make_shared<state>(pending_handlers::of(strand))}
    {
    }
    ~virtual_alarm() override { state_->waiting = 0; }

    void set(clock::time_point at) override
    {
        late_ += at < world_.now() ? 1U : 0U;
        if (state_->waiting == 0)
        {
            env::scheduler& strand = strand_;
            auto fired = [&strand](error_code closed, std::size_t)
            {
                if (!closed)
                {
                    strand.on_alarm();
                }
            };
            state_->waiting = state_->handlers.add(strand_, fired);
        }
        state_->at = at;
        auto due = [state = state_, at]
        {
            // None is waiting once the alarm has gone, and its context may have gone too.
            if (state->waiting != 0 && state->at == at)
            {
                state->handlers.complete(state->waiting, {});
            }
        };
        world_.at(at, event_kind::timer, std::move(due));
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
        clock::time_point at{};
    };

    env::scheduler& strand_;
    virtual_world& world_;
    std::size_t& late_;
    std::shared_ptr<state> state_;
};

} // namespace

void virtual_environment::random(std::span<std::byte> out) const noexcept
{
    std::generate(
        out.begin(), out.end(), [this] { return static_cast<std::byte>(world_.random_number() & 0xffU); });
}

std::unique_ptr<env::stream> virtual_environment::make_stream(env::scheduler& strand, const master& to) const
{
    return std::make_unique<virtual_stream>(strand, world_, *masters_.at(to.host()));
}

std::unique_ptr<env::alarm> virtual_environment::make_alarm(env::scheduler& strand) const
{
    return std::make_unique<virtual_alarm>(strand, world_, late_alarms_);
}

} // namespace redlock::test
